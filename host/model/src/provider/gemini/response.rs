//! Assembles a response from chunks, each of which has the form of an unstreamed response.
//!
//! A stream ends with its connection. A finish reason does not end the stream, because some
//! services send a finish reason with every chunk.

use serde_json::Value;
use wattle_graph::llm::{FinishReason, ToolCall, Usage};
use wattle_run::json::bounded::JsonBudget;
use wattle_run::json::lenient::SurrogateJoiner;

use crate::provider::arguments;
use crate::provider::exchange::{Progress, ResponseBuilder, ResponseError};
use crate::provider::finish_reason;
use crate::provider::provider_state::{Fields, MessageBuilder, StateOwner, StateSize, has_content};
use crate::provider::think_tags::StreamedText;
use crate::provider::throttle::MAX_CALLS;
use crate::provider::token_counts::TokenCounts;
use crate::provider::turn_response::TurnResponse;
use crate::sink::CallSink;

/// Fields of a part that this module interprets. All others are provider state, such as
/// `thoughtSignature`.
const KNOWN_FIELDS: [&str; 3] = ["text", "thought", "functionCall"];

/// Fields of a function call that this module interprets. All others are provider state, such as
/// `id`.
const KNOWN_CALL_FIELDS: [&str; 2] = ["name", "args"];

/// Counts in the usage.
const COUNTS: [&str; 4] = [
    "/promptTokenCount",
    "/candidatesTokenCount",
    "/thoughtsTokenCount",
    "/cachedContentTokenCount",
];

/// Maximum parts of one response.
const MAX_PARTS: usize = 100_000;

/// A response that is being assembled.
pub(in crate::provider) struct GeminiResponse<'a> {
    owner: StateOwner,
    sink: &'a CallSink<'a>,
    model: String,
    message: MessageBuilder,
    /// Consecutive text without a signature, which is not yet part of the draft message.
    unsigned_text: StreamedText,
    text: SurrogateJoiner,
    reasoning: SurrogateJoiner,
    call_count: usize,
    part_count: usize,
    /// Bytes of text, reasoning, tool names and arguments in the draft message.
    message_bytes: usize,
    /// The budget of the arguments of all calls.
    arguments: JsonBudget,
    /// The size of the provider state so far.
    state_size: StateSize,
    finish_reason: Option<String>,
    /// Whether output followed a finish reason.
    output_after_finish: bool,
    /// Whether the prompt was blocked.
    is_prompt_blocked: bool,
    counts: TokenCounts,
    has_started: bool,
}

impl<'a> GeminiResponse<'a> {
    pub(in crate::provider) fn new(owner: StateOwner, model: &str, sink: &'a CallSink<'a>) -> Self {
        Self {
            owner,
            sink,
            model: model.to_owned(),
            message: MessageBuilder::default(),
            unsigned_text: StreamedText::for_model(model),
            text: SurrogateJoiner::default(),
            reasoning: SurrogateJoiner::default(),
            call_count: 0,
            part_count: 0,
            message_bytes: 0,
            arguments: JsonBudget::default(),
            state_size: StateSize::default(),
            finish_reason: None,
            output_after_finish: false,
            is_prompt_blocked: false,
            counts: TokenCounts::default(),
            has_started: false,
        }
    }

    /// Returns the bytes of text, reasoning, tool names and arguments so far.
    fn output_bytes(&self) -> usize {
        self.message_bytes + self.unsigned_text.bytes()
    }

    fn push_part(&mut self, part: &Value) -> Result<(), ResponseError> {
        let Some(object) = part.as_object() else { return Ok(()) };
        self.part_count += 1;
        if self.part_count > MAX_PARTS {
            return Err(ResponseError::Malformed(format!("it has more than {MAX_PARTS} parts")));
        }
        let mut fields = other_fields(object, &KNOWN_FIELDS);
        self.state_size.add_fields(&fields).map_err(ResponseError::Malformed)?;
        let call = object.get("functionCall").and_then(Value::as_object);
        let text = object.get("text").and_then(Value::as_str);
        if let Some(text) = text {
            let thought = object.get("thought").and_then(Value::as_bool) == Some(true);
            // In a part with text and a call, the fields belong to the call.
            let own = if call.is_some() { Fields::new() } else { std::mem::take(&mut fields) };
            self.push_text(text, thought, own);
        }
        if let Some(call) = call {
            let own = other_fields(call, &KNOWN_CALL_FIELDS);
            self.state_size.add_fields(&own).map_err(ResponseError::Malformed)?;
            if !own.is_empty() {
                fields.insert("functionCall".into(), own.into());
            }
            self.push_call(call, fields)?;
        } else if text.is_none() && !fields.is_empty() {
            self.flush_text();
            self.message.push_opaque(part.clone());
        }
        Ok(())
    }

    fn push_text(&mut self, text: &str, thought: bool, fields: Fields) {
        if thought {
            self.flush_text();
            let text = self.reasoning.feed(text);
            self.message_bytes += text.len();
            self.sink.emit_reasoning(&text);
            self.message.push_reasoning(&text, fields);
            return;
        }
        let text = self.text.feed(text);
        if fields.is_empty() {
            self.unsigned_text.push_text(&text, self.sink);
        } else {
            // Signed text must be sent back unchanged, so text without a signature is not joined
            // with it.
            self.flush_text();
            self.message_bytes += text.len();
            self.sink.emit_text(&text);
            self.message.push_text(&text, fields);
        }
    }

    /// Moves the text since the last signed part, and the reasoning in it, into the draft. After
    /// that, a closing tag cannot turn this text into reasoning any more.
    fn flush_text(&mut self) {
        self.unsigned_text.flush(self.sink);
        let words = std::mem::replace(&mut self.unsigned_text, StreamedText::with_literal_tags());
        self.message_bytes += words.bytes();
        self.message.push_reasoning(&words.reasoning, Fields::new());
        self.message.push_text(&words.text, Fields::new());
    }

    fn push_call(&mut self, call: &Fields, fields: Fields) -> Result<(), ResponseError> {
        self.flush_text();
        let text = |field: &str| call.get(field).and_then(Value::as_str).unwrap_or_default();
        let name = text("name").to_owned();
        let id = match text("id") {
            "" => format!("call#{name}#{}", self.call_count),
            id => id.to_owned(),
        };
        let arguments = arguments::from_json(call.get("args"), &self.arguments);
        let call = ToolCall { id, name, arguments };
        // A call that arrives twice, with the id that the service sent, is one call.
        if self.message.has_call(&call) {
            return Ok(());
        }
        if self.call_count == MAX_CALLS {
            let reason = format!("it has more than {MAX_CALLS} tool calls");
            return Err(ResponseError::Malformed(reason));
        }
        let shown = match &call.arguments {
            Value::String(text) => text.clone(),
            arguments => arguments.to_string(),
        };
        self.message_bytes += call.id.len() + call.name.len() + shown.len();
        // A call without a name cannot be emitted.
        if !call.name.is_empty() {
            self.sink.emit_call(self.call_count, &call.id, &call.name, &shown);
        }
        self.call_count += 1;
        self.message.push_call(call, fields);
        Ok(())
    }
}

impl ResponseBuilder for GeminiResponse<'_> {
    fn push(&mut self, document: &Value) -> Result<(), ResponseError> {
        ResponseError::check_reported(document)?;
        if let Some(model) = document["modelVersion"].as_str().filter(|model| !model.is_empty()) {
            model.clone_into(&mut self.model);
        }
        self.counts.merge(&document["usageMetadata"], &COUNTS);
        let block_reason = document["promptFeedback"]["blockReason"].as_str();
        if block_reason.is_some_and(finish_reason::is_specified) {
            self.is_prompt_blocked = true;
            self.has_started = true;
        }
        let candidate = &document["candidates"][0];
        if !candidate.is_object() {
            return Ok(());
        }
        self.has_started = true;
        let (said, was_finished) = (self.output_bytes(), self.finish_reason.is_some());
        let parts = candidate["content"]["parts"].as_array();
        for part in parts.into_iter().flatten() {
            self.push_part(part)?;
        }
        self.output_after_finish |= was_finished && self.output_bytes() > said;
        let reason = candidate.get("finishReason").and_then(Value::as_str);
        if let Some(reason) = reason.filter(|reason| finish_reason::is_specified(reason)) {
            if finish_reason::is_interrupted(reason) {
                return Err(ResponseError::Stopped(reason.to_owned()));
            }
            reason.clone_into(self.finish_reason.get_or_insert_default());
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        match self.finish_reason {
            _ if self.is_prompt_blocked => Progress::UsageReceived,
            Some(_) if self.output_after_finish || self.total_bytes() == 0 => {
                Progress::FinishIgnored
            }
            Some(_) => Progress::MaybeFinished,
            None if self.has_started => Progress::Started,
            None => Progress::Nothing,
        }
    }

    fn total_bytes(&self) -> usize {
        self.output_bytes() + self.state_size.bytes()
    }

    fn build(mut self) -> TurnResponse {
        let reasoning = self.reasoning.finish();
        self.sink.emit_reasoning(reasoning);
        self.message.push_reasoning(reasoning, Fields::new());
        self.unsigned_text.push_text(self.text.finish(), self.sink);
        self.flush_text();
        let finish_reason = if self.is_prompt_blocked {
            FinishReason::ContentFilter
        } else {
            finish_reason::from_name(self.finish_reason.as_deref(), self.call_count > 0)
        };
        let usage = to_usage(&self.counts);
        TurnResponse {
            parts: self.message.build(self.owner),
            finish_reason,
            usage,
            model: self.model,
        }
    }
}

/// Returns the fields of an object with content, except the known fields.
fn other_fields(object: &Fields, known: &[&str]) -> Fields {
    let other =
        object.iter().filter(|(name, value)| !known.contains(&name.as_str()) && has_content(value));
    other.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the usage. Gemini does not count tokens of reasoning as output.
fn to_usage(counts: &TokenCounts) -> Usage {
    let reasoning_tokens = counts.get("/thoughtsTokenCount");
    let output_tokens = match (counts.get("/candidatesTokenCount"), reasoning_tokens) {
        (None, None) => None,
        (answer, reasoning_tokens) => {
            Some(answer.unwrap_or(0).saturating_add(reasoning_tokens.unwrap_or(0)))
        }
    };
    Usage {
        input_tokens: counts.get("/promptTokenCount"),
        output_tokens,
        cached_input_tokens: counts.get("/cachedContentTokenCount"),
        reasoning_tokens,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::llm::Part;
    use wattle_run::ports::model::DiscardDeltas;

    use crate::provider::provider_state::{SentMessage, SentPart};

    use super::*;

    fn owner() -> StateOwner {
        StateOwner::new("g", "gemini-3-pro")
    }

    fn read(pieces: &[Value]) -> TurnResponse {
        let sink = CallSink::new(&DiscardDeltas);
        let mut builder = GeminiResponse::new(owner(), "gemini-3-pro", &sink);
        for piece in pieces {
            builder.push(piece).unwrap();
        }
        builder.build()
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
            json!({ "usageMetadata": { "promptTokenCount": 3, "thoughtsTokenCount": "2" } }),
            json!({ "usageMetadata": {} }),
        ]);
        assert_eq!(reply.parts, [Part::Text("One, two.".into())]);
        assert_eq!((reply.finish_reason, reply.usage.output_tokens), (FinishReason::Stop, Some(6)));
    }

    #[test]
    fn signatures_stay_with_their_parts() {
        let call = |id: Value| json!({ "name": "add", "args": null, "id": id });
        let reply = read(&[
            piece(json!({ "text": "hm", "thought": true })),
            piece(json!({ "functionCall": call(Value::Null), "thoughtSignature": "s1" })),
            piece(json!({ "functionCall": call(json!("own")) })),
            piece(json!({ "functionCall": { "name": "add", "id": "more", "at": { "step": 1 } } })),
            stop(json!({ "text": "", "thoughtSignature": "s2" })),
        ]);
        assert_eq!(reply.finish_reason, FinishReason::ToolCalls);
        let said = SentMessage::new(&reply.parts, &owner());
        let shown: Vec<(String, Value)> = said
            .parts
            .iter()
            .map(|piece| match piece {
                SentPart::Text(text, fields) => ((*text).to_owned(), json!(fields)),
                SentPart::Reasoning(text, fields) => (format!("({text})"), json!(fields)),
                SentPart::Call(call, fields) => (call.id.clone(), json!(fields)),
                SentPart::Opaque(own) => (String::new(), own.clone()),
            })
            .collect();
        let expected = [
            ("(hm)".to_owned(), json!({})),
            ("call#add#0".to_owned(), json!({ "thoughtSignature": "s1" })),
            ("own".to_owned(), json!({ "functionCall": { "id": "own" } })),
            ("more".to_owned(), json!({ "functionCall": { "id": "more", "at": { "step": 1 } } })),
            (String::new(), json!({ "thoughtSignature": "s2" })),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn provider_state_is_bounded() {
        let sink = CallSink::new(&DiscardDeltas);
        let signature = "s".repeat(1 << 20);
        for part in [
            json!({ "text": "", "thoughtSignature": signature }),
            json!({ "functionCall": { "name": "add" }, "thoughtSignature": signature }),
            json!({ "functionCall": { "name": "add", "mark": signature } }),
            json!({ "inlineData": { "mimeType": "image/png", "data": signature } }),
        ] {
            let mut builder = GeminiResponse::new(owner(), "gemini-3-pro", &sink);
            let taken = (0..5).try_for_each(|_| builder.push(&piece(part.clone())));
            assert!(matches!(taken, Err(ResponseError::Malformed(_))), "{taken:?}");
            assert!(builder.total_bytes() > 4 << 20);
        }
    }

    #[test]
    fn calls_are_bounded() {
        let sink = CallSink::new(&DiscardDeltas);
        let mut builder = GeminiResponse::new(owner(), "gemini-3-pro", &sink);
        let call = |number: usize| {
            let call = json!({ "id": format!("c{number}"), "name": "add", "args": {} });
            piece(json!({ "functionCall": call }))
        };
        for number in (0..MAX_CALLS).chain([0]) {
            builder.push(&call(number)).unwrap();
        }
        let refused = builder.push(&call(MAX_CALLS)).unwrap_err();
        assert_eq!(refused, ResponseError::Malformed("it has more than 128 tool calls".into()));
    }
}
