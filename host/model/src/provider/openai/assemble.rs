//! Assembles a response from chunks.
//!
//! Fields that are not part of the format are provider state, see [`state`](crate::provider::state). They are merged
//! like in OpenAI's own clients.
//!
//! A finish reason ends the response, even if the connection stays open. Some services send one with every chunk, such
//! as gateways in front of Gemini. If output follows a finish reason, only the end of the stream ends the response. If
//! the finish reason comes in one chunk with output, more output may follow.

use serde_json::{Value, json};
use wattle_graph::llm::{FinishReason, Usage};
use wattle_run::json::lenient::Halves;

use crate::provider::exchange::{Assembly, Broken, Progress};
use crate::provider::openai::calls::Calls;
use crate::provider::openai::own;
use crate::provider::reply::Reply;
use crate::provider::state::{Draft, Fields, OwnBytes, Owner};
use crate::provider::think::Words;
use crate::sink::Sink;

/// Fields of a message that this crate reads or writes itself.
const READ: [&str; 8] = [
    "role",
    "content",
    "tool_calls",
    "function_call",
    "reasoning_content",
    "reasoning",
    "refusal",
    "annotations",
];

/// JSON pointers to the usage. Moonshot sends it within the choice, Groq in its field `x_groq`.
const USAGE: [&str; 3] = ["/usage", "/choices/0/usage", "/x_groq/usage"];

/// A response that is being assembled.
pub(in crate::provider) struct OpenAi<'a> {
    owner: Owner,
    sink: &'a Sink<'a>,
    id: String,
    model: String,
    words: Words,
    text: Halves,
    reasoning: Halves,
    /// Whether the model sent an explicit refusal.
    refused: bool,
    calls: Calls,
    /// Provider-specific fields of the message.
    fields: Fields,
    /// The size of the provider state so far, including that of tool calls.
    own: OwnBytes,
    finish: Option<String>,
    /// Whether output followed a finish reason.
    goes_on: bool,
    /// Whether the finish reason came in one chunk with output.
    may_go_on: bool,
    usage: Option<Usage>,
    /// Whether any part of a completion was seen, even an empty one.
    seen: bool,
}

impl<'a> OpenAi<'a> {
    pub(in crate::provider) fn new(owner: Owner, model: &str, sink: &'a Sink<'a>) -> Self {
        Self {
            owner,
            sink,
            id: String::new(),
            model: model.to_owned(),
            words: Words::of(model),
            text: Halves::default(),
            reasoning: Halves::default(),
            refused: false,
            calls: Calls::default(),
            fields: Fields::new(),
            own: OwnBytes::default(),
            finish: None,
            goes_on: false,
            may_go_on: false,
            usage: None,
            seen: false,
        }
    }

    fn take_delta(&mut self, delta: &Value) -> Result<(), String> {
        let field = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        let reasoning = match field("reasoning_content") {
            "" => field("reasoning"),
            reasoning => reasoning,
        };
        self.add_reasoning(reasoning);
        match delta.get("content") {
            Some(Value::String(text)) => self.add_content(text),
            Some(Value::Array(pieces)) => pieces.iter().for_each(|piece| self.add_typed(piece)),
            _ => {}
        }
        // A refusal is appended to the text, in order of arrival.
        let refusal = field("refusal");
        self.refused |= !refusal.is_empty();
        self.words.say(&self.text.feed(refusal), self.sink);
        for call in calls(delta) {
            self.calls.take(call, &self.id, self.sink, &mut self.own)?;
        }
        // The legacy form for a single call.
        if let Some(function) = delta.get("function_call").filter(|call| call.is_object()) {
            let call = json!({ "index": 0, "function": function });
            self.calls.take(&call, &self.id, self.sink, &mut self.own)?;
        }
        // A `restart` would discard a refusal or a call as well.
        if self.refused || !self.calls.is_empty() {
            self.words.fix_text();
        }
        own::add_fields(&mut self.fields, delta, &READ, &mut self.own)
    }

    /// Returns the bytes of text, reasoning, call ids, tool names and arguments so far.
    fn said(&self) -> usize {
        self.words.bytes() + self.calls.bytes()
    }

    fn add_reasoning(&mut self, piece: &str) {
        self.words.reason(&self.reasoning.feed(piece), self.sink);
    }

    fn add_content(&mut self, piece: &str) {
        self.words.feed(&self.text.feed(piece), self.sink);
    }

    /// Adds an item of the content array that Mistral sends: `{"type": "text" | "thinking", ...}`.
    fn add_typed(&mut self, piece: &Value) {
        match piece.get("type").and_then(Value::as_str) {
            Some("text") => {
                self.add_content(piece.get("text").and_then(Value::as_str).unwrap_or_default());
            }
            Some("thinking") => {
                for inner in list(piece.get("thinking")) {
                    let text = inner.get("text").and_then(Value::as_str).unwrap_or_default();
                    self.add_reasoning(text);
                }
            }
            _ => {}
        }
    }
}

impl Assembly for OpenAi<'_> {
    /// Adds a chunk of a stream, or a whole response.
    fn take(&mut self, chunk: &Value) -> Result<(), Broken> {
        Broken::reported(chunk)?;
        if let Some(id) = chunk.get("id").and_then(Value::as_str) {
            id.clone_into(&mut self.id);
        }
        if let Some(model) = chunk.get("model").and_then(Value::as_str)
            && !model.is_empty()
        {
            model.clone_into(&mut self.model);
        }
        // An object without counts may come with or after the real usage.
        let mut told = USAGE.iter().filter_map(|place| chunk.pointer(place)).map(usage);
        if let Some(usage) = told.find(|usage| *usage != Usage::default()) {
            self.usage = Some(usage);
        }
        let Some(choice) = chunk.pointer("/choices/0").filter(|choice| choice.is_object()) else {
            return Ok(());
        };
        Broken::reported(choice)?;
        self.seen = true;
        let (said, was_finished) = (self.said(), self.finish.is_some());
        let delta = choice.get("delta").filter(|delta| delta.is_object());
        if let Some(delta) = delta.or_else(|| choice.get("message")) {
            self.take_delta(delta).map_err(Broken::Unreadable)?;
        }
        match choice.get("finish_reason").and_then(Value::as_str) {
            // DeepSeek sends the first one when it has no capacity, some routers send the second one for any error.
            Some(reason @ ("insufficient_system_resource" | "error")) => {
                return Err(Broken::GaveUp(reason.to_owned()));
            }
            Some(reason) if !reason.is_empty() => self.finish = Some(reason.to_owned()),
            _ => {}
        }
        if self.said() > said {
            self.goes_on |= was_finished;
            // Nothing follows an unstreamed response.
            self.may_go_on |= delta.is_some() && self.finish.is_some();
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        match (&self.finish, &self.usage) {
            // Before any output, the finish reason may be that of a service that sends one with every chunk, or the end
            // of an empty completion. Waiting for the end of the stream is right for both.
            (Some(_), _) if self.goes_on || self.carried() == 0 => Progress::GoesOn,
            (Some(_), _) if self.may_go_on => Progress::Open,
            (Some(_), Some(_)) => Progress::Counted,
            (Some(_), None) => Progress::Said,
            (None, _) if self.seen => Progress::Begun,
            (None, _) => Progress::Nothing,
        }
    }

    fn carried(&self) -> usize {
        self.said() + self.own.count()
    }

    fn reply(mut self) -> Reply {
        self.words.feed(self.text.end(), self.sink);
        self.words.end(self.sink);
        self.words.reason(self.reasoning.end(), self.sink);
        let finish = finish(self.finish.as_deref(), !self.calls.is_empty(), self.refused);
        let mut draft = Draft::default();
        draft.fields = self.fields;
        draft.reasoning(&self.words.reasoning, Fields::new());
        draft.text(&self.words.text, Fields::new());
        self.calls.give(&mut draft, self.sink);
        let usage = self.usage.unwrap_or_default();
        Reply { parts: draft.parts(self.owner), finish, usage, model: self.model }
    }
}

/// Returns the tool calls of a chunk. Some services send a single call without an array.
fn calls(delta: &Value) -> &[Value] {
    match delta.get("tool_calls") {
        Some(call) if call.get("function").is_some() => std::slice::from_ref(call),
        calls => list(calls),
    }
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn finish(reason: Option<&str>, calls: bool, refused: bool) -> FinishReason {
    match reason {
        _ if refused => FinishReason::ContentFilter,
        // Some services send `stop` for tool calls as well.
        Some("stop" | "eos" | "end_turn") | None if calls => FinishReason::ToolCalls,
        Some("stop" | "eos" | "end_turn") => FinishReason::Stop,
        Some("length" | "max_tokens") => FinishReason::Length,
        Some("tool_calls" | "function_call") => FinishReason::ToolCalls,
        Some("content_filter" | "refusal" | "safety") => FinishReason::ContentFilter,
        Some(other) => FinishReason::Other(other.to_owned()),
        None => FinishReason::Other("unknown".to_owned()),
    }
}

fn usage(told: &Value) -> Usage {
    let count = |field: &str| told.pointer(field).and_then(Value::as_u64);
    Usage {
        input_tokens: count("/prompt_tokens"),
        output_tokens: count("/completion_tokens"),
        cached_input_tokens: count("/prompt_tokens_details/cached_tokens")
            // The names of DeepSeek and of Moonshot.
            .or_else(|| count("/prompt_cache_hit_tokens"))
            .or_else(|| count("/cached_tokens")),
        reasoning_tokens: count("/completion_tokens_details/reasoning_tokens"),
    }
}

#[cfg(test)]
mod tests {
    use wattle_graph::llm::{Part, ToolCall};
    use wattle_run::ports::model::NoDeltas;

    use crate::provider::state::{Piece, Said};

    use super::{
        Assembly as _, Broken, FinishReason, OpenAi, Owner, Progress, Reply, Sink, Value, json,
    };

    fn read(chunks: &[Value]) -> Result<Reply, Broken> {
        let sink = Sink::new(&NoDeltas);
        let mut assembly = OpenAi::new(Owner::new("p", "m"), "m", &sink);
        for chunk in chunks {
            assembly.take(chunk)?;
        }
        Ok(assembly.reply())
    }

    fn delta(delta: Value) -> Value {
        json!({ "id": "a", "model": "m-dated", "choices": [{ "index": 0, "delta": delta }] })
    }

    fn end(reason: &str) -> Value {
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
    }

    #[test]
    fn reasoning_precedes_text_and_tool_calls() {
        let call = json!({ "index": 0, "id": "x", "function": { "name": "t", "arguments": "{}" } });
        let reply = read(&[
            delta(json!({ "role": "assistant", "content": "", "reasoning_content": null })),
            delta(json!({ "reasoning_content": "h" })),
            delta(json!({ "reasoning_content": "m" })),
            delta(json!({ "content": "let me " })),
            delta(json!({ "content": "see" })),
            delta(json!({ "tool_calls": [call] })),
            end("stop"),
            json!({ "choices": [], "usage": { "prompt_tokens": 7, "prompt_cache_hit_tokens": 5 } }),
        ])
        .unwrap();
        let call = ToolCall { id: "x".into(), name: "t".into(), arguments: json!({}) };
        let expected =
            [Part::Reasoning("hm".into()), Part::Text("let me see".into()), Part::ToolCall(call)];
        assert_eq!(reply.parts[1..], expected, "after the state");
        assert_eq!(reply.finish, FinishReason::ToolCalls);
        assert_eq!((reply.usage.input_tokens, reply.usage.cached_input_tokens), (Some(7), Some(5)));
        assert_eq!(reply.model, "m-dated");
    }

    #[test]
    fn dialects_are_understood() {
        let thinking = json!([{ "type": "thinking", "thinking": [{ "text": "hm" }] }]);
        let cases = [
            (json!({ "reasoning": "hm", "content": "hi" }), "hm", "hi"),
            (json!({ "content": "<think>hm</think>hi" }), "hm", "hi"),
            (json!({ "content": thinking }), "hm", ""),
            (json!({ "content": [{ "type": "text", "text": "hi" }] }), "", "hi"),
        ];
        for (said, reasoning, text) in cases {
            let reply = read(&[delta(said.clone()), end("stop")]).unwrap();
            let found = reply.parts.iter().find_map(|part| match part {
                Part::Reasoning(text) => Some(text.as_str()),
                _ => None,
            });
            assert_eq!(found.unwrap_or_default(), reasoning, "{said}");
            assert_eq!(reply.text(), text, "{said}");
        }
    }

    #[test]
    fn provider_specific_fields_become_provider_state() {
        let signature = json!({ "google": { "thought_signature": "s" } });
        let call = json!({ "index": 0, "id": "x", "extra_content": signature,
            "function": { "name": "t", "arguments": "{}" } });
        let detail = json!({ "type": "reasoning.encrypted", "data": "abc", "index": 0 });
        let reply = read(&[
            delta(json!({ "role": "assistant", "content": "", "reasoning_details": [detail] })),
            delta(json!({ "tool_calls": [call], "annotations": [1] })),
            end("tool_calls"),
        ])
        .unwrap();
        let said = Said::new(&reply.parts, &Owner::new("p", "m"));
        assert_eq!(Value::Object(said.fields), json!({ "reasoning_details": [detail] }));
        let [Piece::Call(_, fields)] = &said.pieces[..] else { panic!("{:?}", said.pieces) };
        assert_eq!(Value::Object(fields.clone()), json!({ "extra_content": signature }));
    }

    #[test]
    fn refusal_stays_in_order() {
        let reply = read(&[
            delta(json!({ "content": "a <" })),
            delta(json!({ "refusal": "no" })),
            end("stop"),
        ]);
        assert_eq!(reply.unwrap().text(), "a <no");
    }

    #[test]
    fn text_before_a_closing_tag_alone_is_reasoning() {
        let reply = read(&[
            delta(json!({ "content": "The user greets me.\n</thi" })),
            delta(json!({ "content": "nk>\n\nHello!" })),
            end("stop"),
        ])
        .unwrap();
        let expected =
            [Part::Reasoning("The user greets me.\n".into()), Part::Text("Hello!".into())];
        assert_eq!(reply.parts[1..], expected);
    }

    #[test]
    fn split_surrogate_pairs_are_joined() {
        let piece = |text: &str| {
            let chunk = format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
            wattle_run::json::lenient::read(&chunk).unwrap()
        };
        let reply = read(&[piece("caf\\ud83d"), piece("\\ude00!\\ud83d"), end("stop")]).unwrap();
        assert_eq!(reply.text(), "caf\u{1f600}!\u{fffd}");
    }

    #[test]
    fn usage_is_found_in_every_place() {
        let counts = json!({ "prompt_tokens": 7, "cached_tokens": 2 });
        for last in [
            json!({ "choices": [], "usage": counts }),
            json!({ "choices": [{ "delta": {}, "usage": counts }], "usage": null }),
            json!({ "choices": [], "x_groq": { "id": "a", "usage": counts } }),
            json!({ "choices": [{ "delta": {}, "usage": counts }], "usage": {} }),
        ] {
            let empty = json!({ "choices": [], "usage": { "prompt_tokens": null } });
            let chunks = [delta(json!({ "content": "a" })), end("stop"), last, empty];
            let reply = read(&chunks).unwrap();
            assert_eq!(
                (reply.usage.input_tokens, reply.usage.cached_input_tokens),
                (Some(7), Some(2))
            );
        }
    }

    #[test]
    fn finish_reason_determines_the_progress() {
        let words = delta(json!({ "content": "a" }));
        let mut last = words.clone();
        last["choices"][0]["finish_reason"] = json!("stop");
        let usage = json!({ "choices": [], "usage": { "prompt_tokens": 1 } });
        let mut counted = last.clone();
        counted["usage"] = usage["usage"].clone();
        let choice = json!({ "message": { "content": "a" }, "finish_reason": "stop" });
        let whole = json!({ "choices": [choice] });
        let own = delta(json!({ "reasoning_details": [{ "signature": "s" }] }));
        for (chunks, progress) in [
            (vec![&words, &end("stop")], Progress::Said),
            (vec![&words, &end("stop"), &own], Progress::Said),
            (vec![&words, &end("stop"), &usage], Progress::Counted),
            (vec![&words, &end("stop"), &words], Progress::GoesOn),
            (vec![&last], Progress::Open),
            (vec![&last, &usage], Progress::Open),
            (vec![&last, &last], Progress::GoesOn),
            (vec![&counted], Progress::Open),
            (vec![&whole], Progress::Said),
            (vec![&whole, &usage], Progress::Counted),
            (vec![&end("stop")], Progress::GoesOn),
        ] {
            let sink = Sink::new(&NoDeltas);
            let mut assembly = OpenAi::new(Owner::new("p", "m"), "m", &sink);
            for chunk in &chunks {
                assembly.take(chunk).unwrap();
            }
            assert_eq!(assembly.progress(), progress, "{chunks:?}");
        }
    }

    #[test]
    fn service_that_stops_early_is_an_error() {
        let error = json!({ "error": { "message": "busy", "type": "server_error" } });
        assert_eq!(read(std::slice::from_ref(&error)).unwrap_err(), Broken::Error(error));
        let gave_up =
            read(&[delta(json!({ "content": "a" })), end("insufficient_system_resource")]);
        assert!(matches!(gave_up, Err(Broken::GaveUp(_))));
    }
}
