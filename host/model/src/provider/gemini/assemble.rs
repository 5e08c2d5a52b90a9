//! Assembles a response from chunks, each of which has the form of an unstreamed response.
//!
//! A stream ends with its connection. A finish reason does not end it, because some services send one with every chunk.

use serde_json::{Value, json};
use wattle_graph::llm::{FinishReason, ToolCall, Usage};
use wattle_run::json::lenient::Halves;

use crate::provider::arguments;
use crate::provider::exchange::{Assembly, Broken, Progress};
use crate::provider::reply::Reply;
use crate::provider::state::{Draft, Fields, OwnBytes, Owner, says};
use crate::provider::think::Words;
use crate::sink::Sink;

/// Fields of a part that this module interprets. All others are provider state, such as `thoughtSignature`.
const READ: [&str; 3] = ["text", "thought", "functionCall"];

/// Maximum parts of one response.
const MAX_PARTS: usize = 100_000;

/// A response that is being assembled.
pub(in crate::provider) struct Gemini<'a> {
    owner: Owner,
    sink: &'a Sink<'a>,
    model: String,
    draft: Draft,
    /// Consecutive text without a signature that is not yet in the draft.
    words: Words,
    text: Halves,
    reasoning: Halves,
    calls: usize,
    parts: usize,
    /// Bytes of text, reasoning, tool names and arguments in the draft.
    drafted: usize,
    /// The size of the provider state so far.
    own: OwnBytes,
    finish: Option<String>,
    /// Whether output followed a finish reason.
    goes_on: bool,
    /// Whether the prompt was blocked.
    blocked: bool,
    usage: Option<Usage>,
    seen: bool,
}

impl<'a> Gemini<'a> {
    pub(in crate::provider) fn new(owner: Owner, model: &str, sink: &'a Sink<'a>) -> Self {
        Self {
            owner,
            sink,
            model: model.to_owned(),
            draft: Draft::default(),
            words: Words::of(model),
            text: Halves::default(),
            reasoning: Halves::default(),
            calls: 0,
            parts: 0,
            drafted: 0,
            own: OwnBytes::default(),
            finish: None,
            goes_on: false,
            blocked: false,
            usage: None,
            seen: false,
        }
    }

    /// Returns the bytes of text, reasoning, tool names and arguments so far.
    fn said(&self) -> usize {
        self.drafted + self.words.bytes()
    }

    fn part(&mut self, part: &Value) -> Result<(), Broken> {
        let Some(object) = part.as_object() else { return Ok(()) };
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(Broken::Unreadable(format!("it has more than {MAX_PARTS} parts")));
        }
        let own =
            object.iter().filter(|(name, value)| !READ.contains(&name.as_str()) && says(value));
        let mut fields: Fields = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        self.own.add_fields(&fields).map_err(Broken::Unreadable)?;
        let call = object.get("functionCall").filter(|call| call.is_object());
        let text = object.get("text").and_then(Value::as_str);
        if let Some(text) = text {
            let thought = object.get("thought").and_then(Value::as_bool) == Some(true);
            // In a part with text and a call, the fields belong to the call.
            let own = if call.is_some() { Fields::new() } else { std::mem::take(&mut fields) };
            self.say(text, thought, own);
        }
        if let Some(call) = call {
            if let Some(id) = call.get("id").and_then(Value::as_str) {
                fields.insert("functionCall".into(), json!({ "id": id }));
            }
            self.call(call, fields);
        } else if text.is_none() && !fields.is_empty() {
            self.settle();
            self.draft.own(part.clone());
        }
        Ok(())
    }

    fn say(&mut self, text: &str, thought: bool, fields: Fields) {
        if thought {
            self.settle();
            let text = self.reasoning.feed(text);
            self.drafted += text.len();
            self.sink.reasoning(&text);
            self.draft.reasoning(&text, fields);
            return;
        }
        let text = self.text.feed(text);
        if fields.is_empty() {
            self.words.feed(&text, self.sink);
        } else {
            // Signed text is sent back unchanged.
            self.settle();
            self.drafted += text.len();
            self.sink.text(&text);
            self.draft.text(&text, fields);
        }
    }

    /// Moves the text since the last signed part, and the reasoning in it, into the draft. A later closing tag cannot
    /// turn this text into reasoning.
    fn settle(&mut self) {
        self.words.end(self.sink);
        let words = std::mem::replace(&mut self.words, Words::unmarked());
        self.drafted += words.bytes();
        self.draft.reasoning(&words.reasoning, Fields::new());
        self.draft.text(&words.text, Fields::new());
    }

    fn call(&mut self, call: &Value, fields: Fields) {
        self.settle();
        let text = |field: &str| call.get(field).and_then(Value::as_str).unwrap_or_default();
        let name = text("name").to_owned();
        let id = match text("id") {
            "" => format!("call#{name}#{}", self.calls),
            id => id.to_owned(),
        };
        let arguments = arguments::of_document(call.get("args"));
        let shown = match &arguments {
            Value::String(text) => text.clone(),
            arguments => arguments.to_string(),
        };
        self.drafted += id.len() + name.len() + shown.len();
        // A call without a name cannot be emitted.
        if !name.is_empty() {
            self.sink.call(self.calls, &id, &name, &shown);
        }
        self.calls += 1;
        self.draft.call(ToolCall { id, name, arguments }, fields);
    }
}

impl Assembly for Gemini<'_> {
    fn take(&mut self, document: &Value) -> Result<(), Broken> {
        Broken::reported(document)?;
        let text = |path: &str| document.pointer(path).and_then(Value::as_str);
        if let Some(model) = text("/modelVersion").filter(|model| !model.is_empty()) {
            model.clone_into(&mut self.model);
        }
        if let Some(told) = document.get("usageMetadata").filter(|usage| usage.is_object()) {
            self.usage = Some(usage(told));
        }
        if text("/promptFeedback/blockReason").is_some_and(is_reason) {
            self.blocked = true;
            self.seen = true;
        }
        let Some(candidate) = document.pointer("/candidates/0").filter(|it| it.is_object()) else {
            return Ok(());
        };
        self.seen = true;
        let (said, was_finished) = (self.said(), self.finish.is_some());
        let parts = candidate.pointer("/content/parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.part(part)?;
        }
        self.goes_on |= was_finished && self.said() > said;
        let reason = candidate.get("finishReason").and_then(Value::as_str);
        if let Some(reason) = reason.filter(|reason| is_reason(reason)) {
            reason.clone_into(self.finish.get_or_insert_default());
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        match self.finish {
            _ if self.blocked => Progress::Counted,
            Some(_) if self.goes_on || self.carried() == 0 => Progress::GoesOn,
            Some(_) => Progress::Open,
            None if self.seen => Progress::Begun,
            None => Progress::Nothing,
        }
    }

    fn carried(&self) -> usize {
        self.said() + self.own.count()
    }

    fn reply(mut self) -> Reply {
        let reasoning = self.reasoning.end();
        self.sink.reasoning(reasoning);
        self.draft.reasoning(reasoning, Fields::new());
        self.words.feed(self.text.end(), self.sink);
        self.settle();
        let finish = if self.blocked {
            FinishReason::ContentFilter
        } else {
            finish(self.finish.as_deref(), self.calls > 0)
        };
        let usage = self.usage.unwrap_or_default();
        Reply { parts: self.draft.parts(self.owner), finish, usage, model: self.model }
    }
}

/// Returns whether a finish reason is specified. Each enum of the API has a default that ends with `_UNSPECIFIED`,
/// which gateways send with every chunk.
fn is_reason(reason: &str) -> bool {
    !reason.is_empty() && !reason.ends_with("_UNSPECIFIED")
}

/// Returns the finish reason. Gemini sends `STOP` for tool calls as well.
fn finish(reason: Option<&str>, calls: bool) -> FinishReason {
    match reason {
        Some("STOP" | "FUNCTION_CALL") | None if calls => FinishReason::ToolCalls,
        Some("STOP") => FinishReason::Stop,
        Some("MAX_TOKENS") => FinishReason::Length,
        Some(
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "MODEL_ARMOR",
        ) => FinishReason::ContentFilter,
        Some(other) => FinishReason::Other(other.to_owned()),
        None => FinishReason::Other("unknown".to_owned()),
    }
}

fn usage(told: &Value) -> Usage {
    let count = |field: &str| told.get(field).and_then(Value::as_u64);
    let thoughts = count("thoughtsTokenCount");
    let output = match (count("candidatesTokenCount"), thoughts) {
        (None, None) => None,
        (answer, thoughts) => Some(answer.unwrap_or(0).saturating_add(thoughts.unwrap_or(0))),
    };
    Usage {
        input_tokens: count("promptTokenCount"),
        output_tokens: output,
        cached_input_tokens: count("cachedContentTokenCount"),
        reasoning_tokens: thoughts,
    }
}

#[cfg(test)]
mod tests {
    use wattle_graph::llm::Part;
    use wattle_run::ports::model::NoDeltas;

    use crate::provider::state::{Piece, Said};

    use super::*;

    fn owner() -> Owner {
        Owner::new("g", "gemini-3-pro")
    }

    fn read(pieces: &[Value]) -> Reply {
        let sink = Sink::new(&NoDeltas);
        let mut assembly = Gemini::new(owner(), "gemini-3-pro", &sink);
        for piece in pieces {
            assembly.take(piece).unwrap();
        }
        assembly.reply()
    }

    fn piece(part: Value) -> Value {
        json!({ "candidates": [{ "content": { "role": "model", "parts": [part] } }] })
    }

    fn stop(part: Value) -> Value {
        let mut piece = piece(part);
        piece["candidates"][0]["finishReason"] = json!("STOP");
        piece
    }

    #[test]
    fn output_after_a_finish_reason_is_read() {
        let reply = read(&[
            json!({ "usageMetadata": { "promptTokenCount": 3 } }),
            stop(json!({ "text": "" })),
            stop(json!({ "text": "One, " })),
            stop(json!({ "text": "two." })),
            json!({ "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 4 } }),
        ]);
        assert_eq!(reply.parts, [Part::Text("One, two.".into())]);
        assert_eq!((reply.finish, reply.usage.output_tokens), (FinishReason::Stop, Some(4)));
    }

    #[test]
    fn signatures_stay_with_their_parts() {
        let call = |id: Value| json!({ "name": "add", "args": null, "id": id });
        let reply = read(&[
            piece(json!({ "text": "hm", "thought": true })),
            piece(json!({ "functionCall": call(Value::Null), "thoughtSignature": "s1" })),
            piece(json!({ "functionCall": call(json!("own")) })),
            stop(json!({ "text": "", "thoughtSignature": "s2" })),
        ]);
        assert_eq!(reply.finish, FinishReason::ToolCalls);
        let said = Said::new(&reply.parts, &owner());
        let shown: Vec<(String, Value)> = said
            .pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text, fields) => ((*text).to_owned(), json!(fields)),
                Piece::Reasoning(text, fields) => (format!("({text})"), json!(fields)),
                Piece::Call(call, fields) => (call.id.clone(), json!(fields)),
                Piece::Own(own) => (String::new(), own.clone()),
            })
            .collect();
        let expected = [
            ("(hm)".to_owned(), json!({})),
            ("call#add#0".to_owned(), json!({ "thoughtSignature": "s1" })),
            ("own".to_owned(), json!({ "functionCall": { "id": "own" } })),
            (String::new(), json!({ "thoughtSignature": "s2" })),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn provider_state_is_bounded() {
        let sink = Sink::new(&NoDeltas);
        let signature = "s".repeat(1 << 20);
        for part in [
            json!({ "text": "", "thoughtSignature": signature }),
            json!({ "functionCall": { "name": "add" }, "thoughtSignature": signature }),
            json!({ "inlineData": { "mimeType": "image/png", "data": signature } }),
        ] {
            let mut assembly = Gemini::new(owner(), "gemini-3-pro", &sink);
            let taken = (0..5).try_for_each(|_| assembly.take(&piece(part.clone())));
            assert!(matches!(taken, Err(Broken::Unreadable(_))), "{taken:?}");
            assert!(assembly.carried() > 4 << 20);
        }
    }

    #[test]
    fn finish_reasons_are_mapped() {
        for (reason, calls, expected) in [
            ("FUNCTION_CALL", true, FinishReason::ToolCalls),
            ("SAFETY", false, FinishReason::ContentFilter),
            ("MAX_TOKENS", true, FinishReason::Length),
            (
                "MALFORMED_FUNCTION_CALL",
                false,
                FinishReason::Other("MALFORMED_FUNCTION_CALL".into()),
            ),
        ] {
            assert_eq!(finish(Some(reason), calls), expected);
        }
    }
}
