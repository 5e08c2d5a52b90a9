//! An answer out of its pieces.

use serde_json::{Map, Value, json};
use wattle_graph::llm::{FinishReason, Part, Usage};

use crate::message::PROVIDER_PART;
use crate::provider::openai::calls::Calls;
use crate::provider::openai::think::{Piece, Think};
use crate::provider::reply::Reply;
use crate::sink::Sink;

/// Signed blocks of reasoning in one answer: a model makes a few for each tool that it asks for.
const MAX_DETAILS: usize = 1_000;

/// The fields of these that come in pieces.
const PIECEWISE: [&str; 3] = ["text", "summary", "data"];

/// What keeps the pieces from making an answer.
#[derive(Debug, PartialEq)]
pub(super) enum Broken {
    /// The service said so itself, in this error object.
    Error(Value),
    /// It cannot be read.
    Unreadable(String),
    /// The service gave up.
    GaveUp(String),
}

/// An answer that is arriving. Every piece is handed on at once.
pub(super) struct Assembly<'a> {
    sink: &'a Sink<'a>,
    id: String,
    model: String,
    text: String,
    reasoning: String,
    /// Whether the model said in so many words that it refuses.
    refused: bool,
    think: Think,
    calls: Calls,
    details: Vec<Map<String, Value>>,
    /// Pieces of these that said something.
    detailed: usize,
    finish: Option<String>,
    usage: Usage,
    /// Any part of an answer was seen, if only an empty one.
    seen: bool,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(model: &str, sink: &'a Sink<'a>) -> Self {
        Self {
            sink,
            id: String::new(),
            model: model.to_owned(),
            text: String::new(),
            reasoning: String::new(),
            refused: false,
            think: Think::default(),
            calls: Calls::default(),
            details: Vec::new(),
            detailed: 0,
            finish: None,
            usage: Usage::default(),
            seen: false,
        }
    }

    /// Whether the model said that it has said all. Only usage may follow.
    pub(super) fn finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether any part of an answer was seen.
    pub(super) fn seen(&self) -> bool {
        self.seen
    }

    /// A number that grows with every piece that carries something.
    pub(super) fn carried(&self) -> usize {
        let texts = self.text.len() + self.reasoning.len();
        texts + self.calls.bytes() + self.detailed
    }

    /// Takes a chunk of a stream, or a whole answer.
    pub(super) fn take(&mut self, chunk: &Value) -> Result<(), Broken> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(Broken::Error(json!({ "error": error })));
        }
        if let Some(id) = chunk.get("id").and_then(Value::as_str) {
            id.clone_into(&mut self.id);
        }
        if let Some(model) = chunk.get("model").and_then(Value::as_str)
            && !model.is_empty()
        {
            model.clone_into(&mut self.model);
        }
        if let Some(told) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = usage(told);
        }
        let Some(choice) = chunk.pointer("/choices/0").filter(|choice| choice.is_object()) else {
            return Ok(());
        };
        self.seen = true;
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
            self.take_delta(delta).map_err(Broken::Unreadable)?;
        }
        match choice.get("finish_reason").and_then(Value::as_str) {
            // DeepSeek stops so when it has no machine left, some routers so for any error.
            Some(reason @ ("insufficient_system_resource" | "error")) => {
                Err(Broken::GaveUp(reason.to_owned()))
            }
            Some(reason) if !reason.is_empty() => {
                self.finish = Some(reason.to_owned());
                Ok(())
            }
            _ => Ok(()),
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
        // A refusal is text, where it was said.
        let refusal = field("refusal");
        self.refused |= !refusal.is_empty();
        self.add_piece(Piece::Text(refusal.to_owned()));
        for detail in list(delta.get("reasoning_details")) {
            self.add_detail(detail)?;
        }
        for call in list(delta.get("tool_calls")) {
            self.calls.take(call, &self.id, self.sink)?;
        }
        Ok(())
    }

    fn add_reasoning(&mut self, piece: &str) {
        if !piece.is_empty() {
            // A service that keeps reasoning apart leaves no marks in the text.
            self.think = Think::Outside;
            self.reasoning.push_str(piece);
            self.sink.reasoning(piece);
        }
    }

    fn add_content(&mut self, text: &str) {
        let pieces = self.think.feed(text);
        for piece in pieces {
            self.add_piece(piece);
        }
    }

    fn add_piece(&mut self, piece: Piece) {
        match piece {
            Piece::Text(text) => {
                self.sink.text(&text);
                self.text.push_str(&text);
            }
            Piece::Reasoning(text) => {
                self.sink.reasoning(&text);
                self.reasoning.push_str(&text);
            }
        }
    }

    /// Mistral sends lists of `{"type": "text" | "thinking", ...}`.
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

    /// OpenRouter's signed blocks of reasoning, which it wants back as they were. Their pieces are
    /// numbered; texts go on, everything else is said once.
    fn add_detail(&mut self, piece: &Value) -> Result<(), String> {
        let Some(piece) = piece.as_object() else { return Ok(()) };
        let says = |name: &str| piece.get(name).is_some_and(|text| text.as_str() != Some(""));
        if PIECEWISE.into_iter().any(says) {
            self.detailed += 1;
        }
        let same = |detail: &&mut Map<String, Value>| {
            piece.contains_key("index") && detail.get("index") == piece.get("index")
        };
        let Some(detail) = self.details.iter_mut().find(same) else {
            if self.details.len() == MAX_DETAILS {
                return Err(format!("it has more than {MAX_DETAILS} blocks of reasoning"));
            }
            self.details.push(piece.clone());
            return Ok(());
        };
        for (name, value) in piece {
            match (detail.get_mut(name), value) {
                (Some(Value::String(text)), Value::String(more))
                    if PIECEWISE.contains(&name.as_str()) =>
                {
                    text.push_str(more);
                }
                _ if !value.is_null() => drop(detail.insert(name.clone(), value.clone())),
                _ => {}
            }
        }
        Ok(())
    }

    /// The answer, now that nothing follows.
    pub(super) fn reply(mut self) -> Reply {
        if let Some(piece) = self.think.end() {
            self.add_piece(piece);
        }
        let calls = !self.calls.is_empty();
        let finish = finish(self.finish.as_deref(), calls, self.refused);
        let details = self.details.into_iter().map(|detail| {
            Part::Other(json!({ "type": PROVIDER_PART, "data": Value::Object(detail) }))
        });
        let mut parts: Vec<Part> = details.collect();
        parts.extend(Some(self.reasoning).filter(|text| !text.is_empty()).map(Part::Reasoning));
        parts.extend(Some(self.text).filter(|text| !text.is_empty()).map(Part::Text));
        parts.extend(self.calls.parts());
        Reply { parts, finish, usage: self.usage, model: self.model }
    }
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn finish(reason: Option<&str>, calls: bool, refused: bool) -> FinishReason {
    match reason {
        _ if refused => FinishReason::ContentFilter,
        // Some services say `stop` for calls of tools, too.
        Some("stop" | "eos" | "end_turn") | None if calls => FinishReason::ToolCalls,
        Some("stop" | "eos" | "end_turn") => FinishReason::Stop,
        Some("length" | "max_tokens") => FinishReason::Length,
        Some("tool_calls" | "function_call") => FinishReason::ToolCalls,
        Some("content_filter") => FinishReason::ContentFilter,
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
            // DeepSeek's name for it.
            .or_else(|| count("/prompt_cache_hit_tokens")),
        reasoning_tokens: count("/completion_tokens_details/reasoning_tokens"),
    }
}

#[cfg(test)]
mod tests {
    use wattle_graph::llm::ToolCall;
    use wattle_run::ports::model::NoDeltas;

    use super::*;

    fn read(chunks: &[Value]) -> Result<Reply, Broken> {
        let sink = Sink::new(&NoDeltas);
        let mut assembly = Assembly::new("m", &sink);
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
    fn parts_stand_in_the_order_in_which_they_are_thought() {
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
        assert_eq!(reply.parts, expected);
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
    fn signed_reasoning_is_put_together() {
        let detail = |text: &str, signature: Value| {
            json!({ "reasoning_details": [{
                "type": "reasoning.text", "text": text, "signature": signature, "index": 0,
            }] })
        };
        let reply = read(&[
            delta(detail("a", Value::Null)),
            delta(detail("b", json!("s"))),
            delta(detail("", Value::Null)),
            end("stop"),
        ])
        .unwrap();
        let whole = json!({ "type": "reasoning.text", "text": "ab", "signature": "s", "index": 0 });
        assert_eq!(reply.parts, [Part::Other(json!({ "type": PROVIDER_PART, "data": whole }))]);
    }

    #[test]
    fn a_service_that_gives_up_is_no_answer() {
        let error = json!({ "error": { "message": "busy", "type": "server_error" } });
        assert_eq!(read(std::slice::from_ref(&error)).unwrap_err(), Broken::Error(error));
        let gave_up =
            read(&[delta(json!({ "content": "a" })), end("insufficient_system_resource")]);
        assert!(matches!(gave_up, Err(Broken::GaveUp(_))));
    }
}
