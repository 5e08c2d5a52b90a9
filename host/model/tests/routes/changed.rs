//! Truncated and modified streams: the result is a failure, or has all output that was not
//! modified.

use std::sync::LazyLock;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use wattle_graph::failure::Failure;
use wattle_graph::llm::Completion;
use wattle_kit::oddity::{change, others, places};
use wattle_model::config::ProviderKind;
use wattle_model::recorded::Recorded;

const KINDS: [ProviderKind; 3] =
    [ProviderKind::Openai, ProviderKind::Gemini, ProviderKind::Anthropic];

/// The number of deltas of the text.
const PIECES: usize = 5;

fn marker(piece: usize) -> String {
    format!("<{piece}é\u{1f600}>")
}

/// Returns the events of a response, and the number of leading events without text. Event
/// `first + n` has delta `n` of the text.
fn events(kind: ProviderKind) -> (usize, Vec<Value>) {
    let pieces = (0..PIECES).map(marker);
    match kind {
        ProviderKind::Openai => {
            let piece = |delta: Value, finish: Value| {
                json!({ "id": "a", "object": "chat.completion.chunk", "model": "m",
                    "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
            };
            let mut events =
                vec![piece(json!({ "role": "assistant", "content": "" }), Value::Null)];
            events.extend(pieces.map(|text| piece(json!({ "content": text }), Value::Null)));
            events.push(piece(json!({}), json!("stop")));
            events.push(json!({ "choices": [], "usage": { "prompt_tokens": 3 } }));
            (1, events)
        }
        ProviderKind::Gemini => {
            let piece = |text: String| {
                json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": text }] } }],
                    "usageMetadata": { "promptTokenCount": 3 }, "modelVersion": "m" })
            };
            let mut events: Vec<Value> = pieces.map(piece).collect();
            events.push(json!({ "candidates": [{ "finishReason": "STOP" }] }));
            (0, events)
        }
        ProviderKind::Anthropic => {
            let piece = |text: String| {
                json!({ "type": "content_block_delta", "index": 0,
                    "delta": { "type": "text_delta", "text": text } })
            };
            let message = json!({ "id": "a", "type": "message", "role": "assistant", "model": "m",
                "content": [], "usage": { "input_tokens": 3 } });
            let begin = json!({ "type": "text", "text": "" });
            let mut events = vec![
                json!({ "type": "message_start", "message": message }),
                json!({ "type": "content_block_start", "index": 0, "content_block": begin }),
            ];
            events.extend(pieces.map(piece));
            events.push(json!({ "type": "content_block_stop", "index": 0 }));
            let delta = json!({ "stop_reason": "end_turn" });
            let usage = json!({ "output_tokens": 4 });
            events.push(json!({ "type": "message_delta", "delta": delta, "usage": usage }));
            events.push(json!({ "type": "message_stop" }));
            (2, events)
        }
    }
}

fn encoded(events: &[Value]) -> Vec<u8> {
    events.iter().flat_map(|event| format!("data: {event}\n\n").into_bytes()).collect()
}

fn read(kind: ProviderKind, pieces: Vec<Bytes>) -> Result<Completion, Failure> {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    static READERS: LazyLock<[Recorded; 3]> =
        LazyLock::new(|| KINDS.map(|kind| Recorded::new(kind).unwrap()));
    let reader = READERS.iter().zip(KINDS).find(|(_, its)| *its == kind).unwrap().0;
    RUNTIME.block_on(reader.read(pieces)).0
}

#[test]
fn truncated_stream_is_complete_or_a_failure() {
    let whole: String = (0..PIECES).map(marker).collect();
    for kind in KINDS {
        let bytes = encoded(&events(kind).1);
        let mut wholes = 0;
        for end in 0..=bytes.len() {
            if let Ok(answer) = read(kind, vec![Bytes::copy_from_slice(&bytes[..end])]) {
                assert_eq!(answer.text(), whole, "{kind:?} up to byte {end}");
                wholes += 1;
            }
        }
        assert!(wholes > 0 && wholes < bytes.len() / 2, "{kind:?}: {wholes}");
    }
}

proptest! {
    #[test]
    fn modification_loses_only_the_modified_output(
        kind in prop::sample::select(KINDS.to_vec()),
        (event, place) in any::<(Index, Index)>(),
        other in prop::sample::select(others()),
        doubled in any::<bool>(),
        cuts in prop::collection::vec(any::<Index>(), 0..4),
    ) {
        let (first, mut events) = events(kind);
        let index = event.index(events.len());
        let place = place.get(&places(&events[index])).clone();
        if doubled {
            events.insert(index, events[index].clone());
        }
        change(&mut events[index], &place, other);
        let bytes = encoded(&events);
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        ends.extend([0, bytes.len()]);
        ends.sort_unstable();
        let pieces = ends.windows(2).map(|pair| Bytes::copy_from_slice(&bytes[pair[0]..pair[1]]));
        if let Ok(answer) = read(kind, pieces.collect()) {
            let text = answer.text();
            let mut rest = text.as_str();
            for piece in (0..PIECES).filter(|piece| first + piece != index) {
                let marker = marker(piece);
                let found = rest.find(&marker);
                prop_assert!(found.is_some(), "{marker} is lost of {text:?}");
                rest = &rest[found.unwrap_or_default()..];
            }
        }
    }
}
