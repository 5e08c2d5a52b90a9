//! Truncated and modified streams. Each stream has reasoning with a signature, text, two tool calls
//! and usage.
//!
//! * A stream that ends early, after any byte, is a failure or the whole completion.
//! * If one event is modified, doubled or swapped with the next one, the stream is a failure, or a
//!   completion with all output of the other events: text, reasoning, signatures and calls. So no
//!   completion is empty.
//! * A completion has at most one call for each call of the stream. It has the arguments of the
//!   stream, or arguments that are not JSON, unless a value of an event with all of them is
//!   modified.

use std::sync::LazyLock;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use wattle_graph::failure::Failure;
use wattle_graph::llm::{Completion, Part, ToolCall};
use wattle_kit::oddity::{change_one, wire};
use wattle_model::config::ProviderKind;
use wattle_model::recorded::Recorded;

const KINDS: [ProviderKind; 3] =
    [ProviderKind::Openai, ProviderKind::Gemini, ProviderKind::Anthropic];

/// The number of deltas of the text, and of the reasoning.
const PIECES: usize = 3;

/// The signatures of the reasoning and of the first call.
const SIGNATURES: [&str; 2] = ["sig-reasoning", "sig-call"];

/// An event of a stream.
#[derive(Clone)]
struct Event {
    /// The number of the call to which the event belongs.
    call: Option<usize>,
    document: Value,
}

/// A change of one event.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Another value at one location, see [`change_one`].
    Value { place: usize, variant: usize },
    /// The event arrives twice.
    Doubled,
    /// The event arrives after the next one.
    Swapped,
}

/// Returns the deltas of the text or of the reasoning, each of which contains its number.
fn deltas(kind: &'static str) -> impl Iterator<Item = String> {
    (0..PIECES).map(move |number| format!("<{kind} {number} é\u{1f600}>"))
}

fn texts() -> impl Iterator<Item = String> {
    deltas("text")
}

fn thoughts() -> impl Iterator<Item = String> {
    deltas("thought")
}

fn calls() -> [ToolCall; 2] {
    let call = |id: &str, name: &str, arguments: Value| ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
    };
    [
        call("call_a", "add", json!({ "a": 1, "b": "é\u{1f600}" })),
        call("call_b", "save", json!({ "c": [true], "d": 2.5 })),
    ]
}

/// Returns the arguments of a call in two fragments, neither of which is JSON.
fn fragments(call: &ToolCall) -> [String; 2] {
    let text = call.arguments.to_string();
    let (first, second) = text.split_at(text.find("\"b\"").unwrap());
    [first.to_owned(), second.to_owned()]
}

/// Returns whether an event has all arguments of a call, as JSON or as a text.
fn has_whole_arguments(event: &str, call: &ToolCall) -> bool {
    let arguments = call.arguments.to_string();
    event.contains(&arguments) || event.contains(&json!(arguments).to_string())
}

fn events(kind: ProviderKind) -> Vec<Event> {
    match kind {
        ProviderKind::Openai => openai(),
        ProviderKind::Gemini => gemini(),
        ProviderKind::Anthropic => anthropic(),
    }
}

fn openai() -> Vec<Event> {
    let event = |call: Option<usize>, delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        Event { call, document: json!({ "id": "a", "model": "m", "choices": [choice] }) }
    };
    let output = |delta: Value| event(None, delta, Value::Null);
    let fragment = |number: usize, call: Value| {
        event(Some(number), json!({ "tool_calls": [call] }), Value::Null)
    };
    let [add, save] = calls();
    let [first, second] = fragments(&add);
    let signature = json!({ "google": { "thought_signature": SIGNATURES[1] } });
    let start = json!({ "index": 0, "id": add.id, "type": "function", "extra_content": signature,
        "function": { "name": add.name, "arguments": first } });
    let rest = json!({ "index": 0, "function": { "arguments": second } });
    let whole = json!({ "index": 1, "id": save.id, "type": "function",
        "function": { "name": save.name, "arguments": save.arguments.to_string() } });
    let details = json!([{ "type": "reasoning.encrypted", "index": 0, "data": SIGNATURES[0] }]);
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 4 });
    let mut events = vec![output(json!({ "role": "assistant", "content": "" }))];
    events.extend(thoughts().map(|text| output(json!({ "reasoning_content": text }))));
    events.push(output(json!({ "reasoning_details": details })));
    events.extend(texts().map(|text| output(json!({ "content": text }))));
    events.extend([fragment(0, start), fragment(0, rest), fragment(1, whole)]);
    events.push(event(None, json!({}), json!("tool_calls")));
    events.push(Event { call: None, document: json!({ "choices": [], "usage": usage }) });
    events
}

fn gemini() -> Vec<Event> {
    let event = |call: Option<usize>, part: Value, finish: Value| {
        let content = json!({ "role": "model", "parts": [part] });
        let usage = json!({ "promptTokenCount": 3, "candidatesTokenCount": 4 });
        let document = json!({ "candidates": [{ "content": content, "finishReason": finish }],
            "usageMetadata": usage, "modelVersion": "m" });
        Event { call, document }
    };
    let output = |part: Value| event(None, part, Value::Null);
    let function =
        |call: &ToolCall| json!({ "id": call.id, "name": call.name, "args": call.arguments });
    let [add, save] = calls();
    let signed = json!({ "functionCall": function(&add), "thoughtSignature": SIGNATURES[1] });
    let unsigned = json!({ "functionCall": function(&save) });
    let last = json!({ "text": "", "thoughtSignature": SIGNATURES[0] });
    let mut events: Vec<Event> =
        thoughts().map(|text| output(json!({ "text": text, "thought": true }))).collect();
    events.extend(texts().map(|text| output(json!({ "text": text }))));
    events.extend([event(Some(0), signed, Value::Null), event(Some(1), unsigned, Value::Null)]);
    events.push(event(None, last, json!("STOP")));
    events
}

fn anthropic() -> Vec<Event> {
    let event = |call: Option<usize>, document: Value| Event { call, document };
    let of_block = |index: usize, kind: &str, field: &str, value: Value| {
        let kind = format!("content_block_{kind}");
        json!({ "type": kind, "index": index, field: value })
    };
    let start = |index: usize, block: Value| of_block(index, "start", "content_block", block);
    let delta = |index: usize, delta: Value| of_block(index, "delta", "delta", delta);
    let stop = |index: usize| event(None, json!({ "type": "content_block_stop", "index": index }));
    let tool_use = |call: &ToolCall| {
        let (id, name) = (&call.id, &call.name);
        json!({ "type": "tool_use", "id": id, "name": name, "input": {} })
    };
    let input = |text: &str| json!({ "type": "input_json_delta", "partial_json": text });
    let [add, save] = calls();
    let [first, second] = fragments(&add);
    let message = json!({ "id": "a", "type": "message", "role": "assistant", "model": "m",
        "content": [], "usage": { "input_tokens": 3 } });
    let thinking = json!({ "type": "thinking", "thinking": "", "signature": "" });
    let signature = json!({ "type": "signature_delta", "signature": SIGNATURES[0] });
    let mut events = vec![event(None, json!({ "type": "message_start", "message": message }))];
    events.push(event(None, start(0, thinking)));
    events.extend(
        thoughts().map(|text| {
            event(None, delta(0, json!({ "type": "thinking_delta", "thinking": text })))
        }),
    );
    events.extend([event(None, delta(0, signature)), stop(0)]);
    events.push(event(None, start(1, json!({ "type": "text", "text": "" }))));
    events.extend(
        texts().map(|text| event(None, delta(1, json!({ "type": "text_delta", "text": text })))),
    );
    events.push(stop(1));
    events.push(event(Some(0), start(2, tool_use(&add))));
    events.extend([first, second].map(|text| event(Some(0), delta(2, input(&text)))));
    events.push(stop(2));
    events.push(event(Some(1), start(3, tool_use(&save))));
    events.extend([event(Some(1), delta(3, input(&save.arguments.to_string()))), stop(3)]);
    let reason = json!({ "stop_reason": "tool_use" });
    let usage = json!({ "output_tokens": 4 });
    let end = json!({ "type": "message_delta", "delta": reason, "usage": usage });
    events.extend([event(None, end), event(None, json!({ "type": "message_stop" }))]);
    events
}

fn encoded(kind: ProviderKind, events: &[Event]) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for event in events {
        bytes.extend_from_slice(format!("data: {}\n\n", wire(&event.document)).as_bytes());
    }
    if kind == ProviderKind::Openai {
        bytes.extend_from_slice(b"data: [DONE]\n\n");
    }
    bytes
}

/// Returns the bytes in chunks that end at `cuts`.
fn chunks(bytes: &[u8], cuts: &[Index]) -> Vec<Bytes> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
    ends.extend([0, bytes.len()]);
    ends.sort_unstable();
    ends.windows(2).map(|pair| Bytes::copy_from_slice(&bytes[pair[0]..pair[1]])).collect()
}

fn read(kind: ProviderKind, pieces: Vec<Bytes>) -> Result<Completion, Failure> {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    static READERS: LazyLock<[Recorded; 3]> =
        LazyLock::new(|| KINDS.map(|kind| Recorded::new(kind).unwrap()));
    let reader = READERS.iter().zip(KINDS).find(|(_, its)| *its == kind).unwrap().0;
    RUNTIME.block_on(reader.read(pieces)).0
}

/// The output of a completion.
#[derive(Debug, Default)]
struct Output {
    text: String,
    reasoning: String,
    calls: Vec<ToolCall>,
    /// JSON of the provider state.
    state: String,
}

impl Output {
    fn of(completion: Completion) -> Self {
        let mut output = Self::default();
        for part in completion.parts {
            match part {
                Part::Text(text) => output.text.push_str(&text),
                Part::Reasoning(text) => output.reasoning.push_str(&text),
                Part::ToolCall(call) => output.calls.push(call),
                Part::Other(state) => output.state.push_str(&state.to_string()),
                other => panic!("{other:?}"),
            }
        }
        output
    }

    /// Returns what of the output of an unmodified event is missing.
    fn missing(&self, event: &Event) -> Option<String> {
        let document = event.document.to_string();
        let signatures = SIGNATURES.iter().map(|signature| (*signature).to_owned());
        let wanted = texts()
            .map(|text| (text, &self.text))
            .chain(thoughts().map(|text| (text, &self.reasoning)))
            .chain(signatures.map(|signature| (signature, &self.state)));
        let mut wanted = wanted.filter(|(piece, _)| document.contains(piece.as_str()));
        wanted.find(|(piece, found)| !found.contains(piece.as_str())).map(|(piece, _)| piece)
    }
}

/// Returns whether the deltas that a text contains are in order.
fn is_in_order(text: &str, deltas: impl Iterator<Item = String>) -> bool {
    let found: Vec<usize> = deltas.filter_map(|delta| text.rfind(&delta)).collect();
    found.is_sorted()
}

#[test]
fn truncated_stream_is_complete_or_a_failure() {
    for kind in KINDS {
        let bytes = encoded(kind, &events(kind));
        let whole = Output::of(read(kind, vec![Bytes::copy_from_slice(&bytes)]).unwrap());
        assert_eq!(whole.text, texts().collect::<String>(), "{kind:?}");
        assert_eq!(whole.reasoning, thoughts().collect::<String>(), "{kind:?}");
        assert_eq!(whole.calls, calls(), "{kind:?}");
        let mut wholes = 0;
        for end in 0..=bytes.len() {
            if let Ok(completion) = read(kind, vec![Bytes::copy_from_slice(&bytes[..end])]) {
                let output = Output::of(completion);
                assert_eq!(output.text, whole.text, "{kind:?} up to byte {end}");
                assert_eq!(output.reasoning, whole.reasoning, "{kind:?} up to byte {end}");
                assert_eq!(output.calls, whole.calls, "{kind:?} up to byte {end}");
                assert_eq!(output.state, whole.state, "{kind:?} up to byte {end}");
                wholes += 1;
            }
        }
        assert!(wholes > 0 && wholes < bytes.len() / 2, "{kind:?}: {wholes}");
    }
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => any::<(usize, usize)>().prop_map(|(place, variant)| Change::Value { place, variant }),
        1 => Just(Change::Doubled),
        1 => Just(Change::Swapped),
    ]
}

/// Changes the event with this index. Returns the number of changed events, from this index on.
fn apply(change: Change, events: &mut Vec<Event>, index: usize) -> usize {
    match change {
        Change::Value { place, variant } => {
            change_one(&mut events[index].document, place, variant);
            1
        }
        Change::Doubled => {
            events.insert(index, events[index].clone());
            2
        }
        Change::Swapped if index + 1 < events.len() => {
            events.swap(index, index + 1);
            2
        }
        Change::Swapped => 1,
    }
}

proptest! {
    #[test]
    fn modification_loses_only_the_modified_output(
        kind in prop::sample::select(KINDS.to_vec()),
        event in any::<Index>(),
        change in any_change(),
        cuts in prop::collection::vec(any::<Index>(), 0..4),
    ) {
        let mut events = events(kind);
        let index = event.index(events.len());
        let original = events[index].document.to_string();
        let changed = index..index + apply(change, &mut events, index);
        let bytes = encoded(kind, &events);
        if let Ok(completion) = read(kind, chunks(&bytes, &cuts)) {
            let output = Output::of(completion);
            for (index, event) in events.iter().enumerate() {
                // An event that is doubled or swapped has its output as well.
                if matches!(change, Change::Value { .. }) && changed.contains(&index) {
                    continue;
                }
                let missing = output.missing(event);
                prop_assert!(missing.is_none(), "{missing:?} of event {index} in {output:?}");
            }
            if !matches!(change, Change::Swapped) {
                let others = |delta: &String| !original.contains(delta.as_str());
                let (texts, thoughts) = (texts().filter(others), thoughts().filter(others));
                prop_assert!(is_in_order(&output.text, texts), "{output:?}");
                prop_assert!(is_in_order(&output.reasoning, thoughts), "{output:?}");
            }
            let touched: Vec<usize> = changed.filter_map(|at| events[at].call).collect();
            for (number, call) in calls().iter().enumerate() {
                let made: Vec<&ToolCall> =
                    output.calls.iter().filter(|made| made.name == call.name).collect();
                prop_assert!(made.len() <= 1, "{call:?} is made more than once: {output:?}");
                let is_made = output.calls.contains(call);
                prop_assert!(is_made || touched.contains(&number), "{call:?} in {output:?}");
                let may_differ = matches!(change, Change::Value { .. })
                    && has_whole_arguments(&original, call);
                let is_right = made.iter().all(|made| {
                    made.arguments == call.arguments || made.arguments.is_string()
                });
                prop_assert!(may_differ || is_right, "{call:?} in {output:?}");
            }
            prop_assert!(!output.text.is_empty() || !output.calls.is_empty(), "it is empty");
        }
    }
}
