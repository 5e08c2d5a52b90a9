//! Assembles a response from chunks.
//!
//! Fields that are not part of the format are provider state, see
//! [`crate::provider::provider_state`]. Fields of several chunks are merged as in OpenAI's own
//! clients.
//!
//! A finish reason ends the response, even if the connection stays open. Some services, such as
//! gateways in front of Gemini, send a finish reason with every chunk. If output follows a finish
//! reason, only the end of the stream ends the response. If a chunk has both output and a finish
//! reason, more output may follow.

use std::iter::once;

use serde_json::{Value, json};
use wattle_graph::llm::{FinishReason, Usage};
use wattle_run::json::lenient::SurrogateJoiner;

use crate::provider::exchange::{Progress, ResponseBuilder, ResponseError};
use crate::provider::finish_reason;
use crate::provider::left_out::LeftOutLog;
use crate::provider::openai::call_ids::CallIdForm;
use crate::provider::openai::choices::{self, FurtherChoices};
use crate::provider::openai::content_parts::{self, ContentParts, Position};
use crate::provider::openai::extra_fields;
use crate::provider::openai::reasoning_field::{self, ReasoningField};
use crate::provider::openai::tool_calls::ToolCalls;
use crate::provider::provider_state::{Fields, MessageBuilder, StateOwner, StateSize};
use crate::provider::think_tags::StreamedText;
use crate::provider::token_counts::TokenCounts;
use crate::provider::turn_response::TurnResponse;
use crate::sink::CallSink;

/// Fields of a message that this crate reads or writes, and `channel`. Groq sends `channel` with
/// every chunk of gpt-oss, and rejects it in a message: "property 'channel' is unsupported".
const KNOWN_FIELDS: [&str; 9] = [
    "role",
    "channel",
    "content",
    "tool_calls",
    "function_call",
    "reasoning_content",
    "reasoning",
    "refusal",
    "annotations",
];

/// Counts in the usage. Gateways in front of other formats send `input_tokens` and `output_tokens`,
/// DeepSeek `prompt_cache_hit_tokens` and Moonshot `cached_tokens`.
const COUNTS: [&str; 9] = [
    "/prompt_tokens",
    "/input_tokens",
    "/completion_tokens",
    "/output_tokens",
    "/prompt_tokens_details/cached_tokens",
    "/prompt_cache_hit_tokens",
    "/cached_tokens",
    "/completion_tokens_details/reasoning_tokens",
    "/total_tokens",
];

/// A response that is being assembled.
pub(in crate::provider) struct OpenAiResponse<'a> {
    owner: StateOwner,
    sink: &'a CallSink<'a>,
    left_out: &'a LeftOutLog,
    id: String,
    model: String,
    /// The form of call ids that the service accepts from other services.
    id_form: CallIdForm,
    output: StreamedText,
    /// The typed parts of the content.
    parts: ContentParts,
    text: SurrogateJoiner,
    reasoning: SurrogateJoiner,
    /// The field in which the first reasoning came.
    reasoning_field: Option<ReasoningField>,
    /// Whether the model sent an explicit refusal.
    has_refusal: bool,
    calls: ToolCalls,
    /// The output of choices after the first one.
    further: FurtherChoices,
    /// Provider-specific fields of the message.
    fields: Fields,
    /// The size of the provider state so far, including that of tool calls.
    state_size: StateSize,
    finish_reason: Option<String>,
    /// Whether output followed a finish reason.
    output_after_finish: bool,
    /// Whether the chunk with the finish reason also had output.
    finish_with_output: bool,
    counts: TokenCounts,
    /// Whether usage arrived together with the finish reason or after it.
    has_final_usage: bool,
    /// Whether any part of a completion was seen, even an empty one.
    has_started: bool,
}

impl<'a> OpenAiResponse<'a> {
    pub(in crate::provider) fn new(
        owner: StateOwner,
        model: &str,
        sink: &'a CallSink<'a>,
        left_out: &'a LeftOutLog,
    ) -> Self {
        Self {
            owner,
            sink,
            left_out,
            id: String::new(),
            model: model.to_owned(),
            id_form: CallIdForm::of_model(model),
            output: StreamedText::for_model(model),
            parts: ContentParts::default(),
            text: SurrogateJoiner::default(),
            reasoning: SurrogateJoiner::default(),
            reasoning_field: None,
            has_refusal: false,
            calls: ToolCalls::default(),
            further: FurtherChoices::default(),
            fields: Fields::new(),
            state_size: StateSize::default(),
            finish_reason: None,
            output_after_finish: false,
            finish_with_output: false,
            counts: TokenCounts::default(),
            has_final_usage: false,
            has_started: false,
        }
    }

    fn push_delta(&mut self, index: u64, delta: &Value) -> Result<(), String> {
        if !self.further.keep(index, delta) {
            self.push_output(delta)?;
        }
        self.calls.set_choice(index);
        for call in tool_calls(delta) {
            self.push_call(call)?;
        }
        // `function_call` is the legacy form of a single tool call.
        if let Some(function) = delta.get("function_call").filter(|call| call.is_object()) {
            self.push_call(&json!({ "index": 0, "function": function }))?;
        }
        // The text must not become reasoning any more, because the `restart` would also discard the
        // refusal or the calls.
        if self.has_refusal || !self.calls.is_empty() {
            self.output.fix_text();
        }
        Ok(())
    }

    /// Adds a delta without its tool calls.
    fn push_output(&mut self, delta: &Value) -> Result<(), String> {
        let field = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        if let Some((name, reasoning)) = ReasoningField::find(delta) {
            self.reasoning_field = self.reasoning_field.or(Some(name));
            self.add_reasoning(reasoning);
        }
        match delta.get("content") {
            Some(Value::String(text)) => self.add_content(text),
            Some(Value::Array(pieces)) => {
                for (index, piece) in pieces.iter().enumerate() {
                    self.push_typed_content(piece, index == 0)?;
                }
            }
            _ => {}
        }
        // A refusal is appended to the text, in order of arrival.
        let refusal = field("refusal");
        self.has_refusal |= !refusal.is_empty();
        self.output.push_plain_text(&self.text.feed(refusal), self.sink);
        extra_fields::merge_chunk(&mut self.fields, delta, &KNOWN_FIELDS, &mut self.state_size)
    }

    /// Adds the choices of a chunk. A chunk of a stream has deltas.
    fn push_choices(&mut self, choices: &[(u64, &Value)]) -> Result<(), ResponseError> {
        let (said, was_finished) = (self.output_bytes(), self.finish_reason.is_some());
        let mut has_delta = false;
        for (index, choice) in choices {
            has_delta |= self.push_choice(*index, choice)?;
        }
        if self.output_bytes() > said {
            self.output_after_finish |= was_finished;
            // Nothing follows an unstreamed response.
            self.finish_with_output |= has_delta && self.finish_reason.is_some();
        }
        Ok(())
    }

    /// Adds a choice. Returns whether it has a delta.
    fn push_choice(&mut self, index: u64, choice: &Value) -> Result<bool, ResponseError> {
        ResponseError::check_reported(choice)?;
        self.has_started = true;
        let delta = choice.get("delta").filter(|delta| delta.is_object());
        if let Some(delta) = delta.or_else(|| choice.get("message")) {
            self.push_delta(index, delta).map_err(ResponseError::Malformed)?;
        }
        let reason = choice.get("finish_reason").and_then(Value::as_str);
        if let Some(reason) = reason.filter(|reason| finish_reason::is_specified(reason)) {
            if finish_reason::is_interrupted(reason) {
                return Err(ResponseError::Stopped(reason.to_owned()));
            }
            self.finish_reason = Some(reason.to_owned());
        }
        Ok(delta.is_some())
    }

    /// Returns the bytes of text, reasoning, call ids, tool names and arguments so far.
    fn output_bytes(&self) -> usize {
        self.output.bytes() + self.calls.bytes() + self.further.bytes()
    }

    /// Adds the output of further choices, which has waited for the end. Output that exceeds a limit
    /// is left out.
    fn push_further_choices(&mut self) {
        for delta in self.further.take() {
            if let Err(reason) = self.push_output(&delta) {
                self.left_out.log("choice", &reason);
            }
        }
    }

    /// Adds reasoning. Returns the number of its bytes.
    fn add_reasoning(&mut self, piece: &str) -> usize {
        let start = self.output.reasoning.len();
        self.output.push_reasoning(&self.reasoning.feed(piece), self.sink);
        self.output.reasoning.len() - start
    }

    /// Adds the half of a character that the reasoning ends with.
    fn finish_reasoning(&mut self) {
        let (start, rest) = (self.output.reasoning.len(), self.reasoning.finish());
        self.output.push_reasoning(rest, self.sink);
        self.parts.extend_last(start, rest.len());
    }

    fn push_call(&mut self, call: &Value) -> Result<(), String> {
        let bytes = self.output_bytes();
        self.calls.push_fragment(call, &self.id, bytes, self.sink, &mut self.state_size)?;
        if self.calls.take_renamed() {
            self.sink.restart();
            self.output.emit_again(self.sink);
            self.calls.emit_again(self.sink);
        }
        Ok(())
    }

    fn add_content(&mut self, piece: &str) {
        self.output.push_text(&self.text.feed(piece), self.sink);
    }

    /// Adds an item of an array of content. The first item of a chunk may continue the last part.
    fn push_typed_content(&mut self, piece: &Value, is_first: bool) -> Result<(), String> {
        let kind = piece.get("type").and_then(Value::as_str);
        let (Some(part), Some(kind)) = (piece.as_object(), kind) else {
            self.left_out.log("unknown", "it has no type");
            return Ok(());
        };
        if kind == "text" {
            return self.push_text_part(part, is_first);
        }
        // From now on tags are text, because a service that separates the reasoning leaves no tags
        // in the text.
        self.output.flush(self.sink);
        let is_next = is_first && self.parts.is_continued_by(part, Position::end_of(&self.output));
        if self.can_keep(kind, part, is_next) { self.push_part(part, is_next) } else { Ok(()) }
    }

    /// Returns whether a part can be kept. If not, logs the reason.
    fn can_keep(&self, kind: &str, part: &Fields, is_next: bool) -> bool {
        let reason = self.parts.rejection(part, is_next, self.state_size.bytes());
        if let Some(reason) = &reason {
            self.left_out.log(kind, reason);
        }
        reason.is_none()
    }

    /// Adds a text, and a part if the text has other fields.
    fn push_text_part(&mut self, part: &Fields, is_first: bool) -> Result<(), String> {
        let text = match part.get("text") {
            Some(Value::String(text)) => text.as_str(),
            None | Some(Value::Null) => "",
            Some(_) => {
                self.left_out.log("text", "its text is not a string");
                return Ok(());
            }
        };
        let Some(fields) = content_parts::fields_of_text(part) else {
            self.add_content(text);
            return Ok(());
        };
        self.output.end_text(self.sink);
        let start = Position::end_of(&self.output);
        let is_next = is_first && self.parts.is_continued_by(&fields, start);
        let is_kept = self.can_keep("fields of a text", &fields, is_next);
        self.add_content(text);
        if !is_kept {
            return Ok(());
        }
        self.output.end_text(self.sink);
        self.add_part(fields, start, is_next)
    }

    /// Adds a part, which may have reasoning, or adds it to the last part if it is the next piece
    /// of that part.
    fn push_part(&mut self, part: &Fields, is_next: bool) -> Result<(), String> {
        if !is_next {
            self.finish_reasoning();
        }
        let start = Position::end_of(&self.output);
        let mut part = part.clone();
        for text in content_parts::reasoning_texts(&mut part) {
            *text = match &*text {
                Value::String(words) => self.add_reasoning(words).into(),
                _ => Value::Null,
            };
        }
        self.add_part(part, start, is_next)
    }

    /// Adds a part that ends here, to the last part if `is_next`.
    fn add_part(&mut self, part: Fields, start: Position, is_next: bool) -> Result<(), String> {
        let end = Position::end_of(&self.output);
        let bytes = if is_next {
            self.parts.continue_last(part, end)?
        } else {
            self.parts.push(part, start, end)?
        };
        self.state_size.add(bytes)
    }
}

impl ResponseBuilder for OpenAiResponse<'_> {
    /// Adds a chunk of a stream, or a whole response.
    fn push(&mut self, chunk: &Value) -> Result<(), ResponseError> {
        ResponseError::check_reported(chunk)?;
        // Groq writes there why it stopped a stream early.
        ResponseError::check_reported(&chunk["x_groq"])?;
        if let Some(id) = chunk.get("id").and_then(Value::as_str) {
            id.clone_into(&mut self.id);
        }
        if let Some(model) = chunk.get("model").and_then(Value::as_str)
            && !model.is_empty()
        {
            model.clone_into(&mut self.model);
        }
        let choices = choices::in_order(chunk);
        self.push_choices(&choices)?;
        // Moonshot sends the usage within the choice, Groq in its field `x_groq`.
        let in_choices = choices.iter().map(|(_, choice)| &choice["usage"]);
        let usages = once(&chunk["usage"]).chain(in_choices).chain(once(&chunk["x_groq"]["usage"]));
        for usage in usages {
            let has_counts = self.counts.merge(usage, &COUNTS);
            self.has_final_usage |= has_counts && self.finish_reason.is_some();
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        match self.finish_reason {
            // Before any output, the finish reason may be that of a service that sends one with
            // every chunk, or the end of an empty completion. In both cases the reader waits for
            // the end of the stream.
            Some(_) if self.output_after_finish || self.total_bytes() == 0 => {
                Progress::FinishIgnored
            }
            Some(_) if self.finish_with_output => Progress::MaybeFinished,
            Some(_) if self.has_final_usage => Progress::UsageReceived,
            Some(_) => Progress::Finished,
            None if self.has_started => Progress::Started,
            None => Progress::Nothing,
        }
    }

    fn total_bytes(&self) -> usize {
        self.output_bytes() + self.state_size.bytes()
    }

    fn build(mut self) -> TurnResponse {
        self.push_further_choices();
        self.output.push_text(self.text.finish(), self.sink);
        self.output.flush(self.sink);
        self.finish_reasoning();
        let finish_reason = if self.has_refusal {
            FinishReason::ContentFilter
        } else {
            finish_reason::from_name(self.finish_reason.as_deref(), !self.calls.is_empty())
        };
        let mut draft = MessageBuilder::default();
        draft.fields = self.fields;
        draft.has_own_ids = self.calls.sent_ids().any(|id| !self.id_form.accepts(id));
        let state = match (self.reasoning_field, self.output.tags()) {
            (None, Some(tags)) => reasoning_field::tags_to_state(tags),
            (field, _) => field.unwrap_or_default().to_state(),
        };
        self.parts.move_into(&mut draft, &self.output, &state);
        self.calls.move_into(&mut draft, self.sink);
        let usage = to_usage(&self.counts);
        TurnResponse { parts: draft.build(self.owner), finish_reason, usage, model: self.model }
    }
}

/// Returns the tool calls of a chunk. Some services send a single call without an array.
fn tool_calls(delta: &Value) -> &[Value] {
    match delta.get("tool_calls") {
        Some(call) if call.get("function").is_some() => std::slice::from_ref(call),
        calls => array_items(calls),
    }
}

fn array_items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn to_usage(counts: &TokenCounts) -> Usage {
    let mut usage = Usage {
        input_tokens: counts.largest(&["/prompt_tokens", "/input_tokens"]),
        output_tokens: counts.largest(&["/completion_tokens", "/output_tokens"]),
        cached_input_tokens: counts.largest(&[
            "/prompt_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cached_tokens",
        ]),
        reasoning_tokens: counts.get("/completion_tokens_details/reasoning_tokens"),
    };
    if let Some(output) = output_with_reasoning(&usage, counts.get("/total_tokens")) {
        usage.output_tokens = Some(output);
    }
    usage
}

/// Returns the tokens of output and reasoning if the service counts the reasoning apart from the
/// output, as xAI does. The total is then the sum of input, output and reasoning. In the format,
/// the output includes the reasoning.
fn output_with_reasoning(usage: &Usage, total: Option<u64>) -> Option<u64> {
    let output = usage.output_tokens?.checked_add(usage.reasoning_tokens?)?;
    let sum = usage.input_tokens?.checked_add(output)?;
    (total == Some(sum)).then_some(output)
}

#[cfg(test)]
mod tests;
