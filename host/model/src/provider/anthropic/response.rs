//! Assembles a response from the events of a stream.
//!
//! A message is an array of blocks. One event starts a block and further events extend it. Some
//! gateways send a complete block in the start event, omit indexes and ids, or start a block before
//! the previous block ends. A start of a tool call that arrives twice starts one call.

use serde_json::{Map, Value};
use wattle_graph::llm::{ToolCall, Usage};
use wattle_run::json::bounded::JsonBudget;
use wattle_run::json::lenient::{self, SurrogateJoiner};

use crate::provider::arguments::{self, ArgumentsBuffer};
use crate::provider::exchange::{Progress, ResponseBuilder, ResponseError};
use crate::provider::finish_reason;
use crate::provider::names;
use crate::provider::provider_state::{Fields, MessageBuilder, StateOwner, StateSize, has_content};
use crate::provider::think_tags::StreamedText;
use crate::provider::token_counts::TokenCounts;
use crate::provider::turn_response::TurnResponse;
use crate::sink::CallSink;

/// Maximum blocks of one response. A response with the provider's own tools has some dozens.
const MAX_BLOCKS: usize = 1_000;

/// Fields of text, thinking and tool-use blocks that this module interprets.
const KNOWN_FIELDS: [&str; 6] = ["type", "text", "thinking", "id", "name", "input"];

/// Counts in the usage.
const COUNTS: [&str; 5] = [
    "/input_tokens",
    "/output_tokens",
    "/cache_read_input_tokens",
    "/cache_creation_input_tokens",
    "/output_tokens_details/thinking_tokens",
];

/// A response that is being assembled.
pub(in crate::provider) struct AnthropicResponse<'a> {
    owner: StateOwner,
    sink: &'a CallSink<'a>,
    id: String,
    /// The requested model.
    requested_model: String,
    model: String,
    blocks: Vec<Block>,
    call_count: usize,
    /// Number of bytes of text, reasoning, call ids, tool names and arguments so far.
    output_bytes: usize,
    /// The size of the provider state so far.
    state_size: StateSize,
    stop_reason: Option<String>,
    /// Whether output followed a stop reason.
    output_after_stop: bool,
    counts: TokenCounts,
    /// Whether usage arrived together with the stop reason or after it.
    has_final_usage: bool,
    is_ended: bool,
    has_started: bool,
}

/// A block of a response.
struct Block {
    index: Option<u64>,
    kind: BlockKind,
    /// All fields except those that arrive in fragments.
    fields: Fields,
    /// The text and the reasoning of the block.
    output: StreamedText,
    halves: SurrogateJoiner,
    /// The arguments that arrive in fragments, after the start event.
    arguments: ArgumentsBuffer,
    /// The index of the tool call in the response, once it was emitted.
    call_index: Option<usize>,
}

impl Block {
    /// Returns whether the start event of a block repeats the start event of this tool call, of
    /// which no arguments have arrived since.
    fn is_repeated_by(&self, number: Option<u64>, fields: &Fields) -> bool {
        self.kind == BlockKind::ToolUse
            && self.index == number
            && self.arguments.text().is_empty()
            && !str_field(&self.fields, "id").is_empty()
            && self.fields == *fields
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    ToolUse,
    Opaque,
}

impl BlockKind {
    /// Returns the kind of the blocks that have deltas of a type; `None` for a type that blocks of
    /// several kinds have.
    fn of_delta(delta: &str) -> Option<Self> {
        match delta {
            "text_delta" => Some(Self::Text),
            "thinking_delta" => Some(Self::Thinking),
            "input_json_delta" => Some(Self::ToolUse),
            _ => None,
        }
    }

    /// Returns whether a block of this kind has deltas of a type. An opaque block may be a call of
    /// a tool of the service, with arguments.
    fn has_deltas(self, delta: &str) -> bool {
        match Self::of_delta(delta) {
            Some(Self::ToolUse) => matches!(self, Self::ToolUse | Self::Opaque),
            Some(kind) => kind == self,
            None => true,
        }
    }
}

impl<'a> AnthropicResponse<'a> {
    pub(in crate::provider) fn new(owner: StateOwner, model: &str, sink: &'a CallSink<'a>) -> Self {
        Self {
            owner,
            sink,
            id: String::new(),
            requested_model: model.to_owned(),
            model: model.to_owned(),
            blocks: Vec::new(),
            call_count: 0,
            output_bytes: 0,
            state_size: StateSize::default(),
            stop_reason: None,
            output_after_stop: false,
            counts: TokenCounts::default(),
            has_final_usage: false,
            is_ended: false,
            has_started: false,
        }
    }

    /// Adds a complete message, which is an unstreamed response.
    fn push_message(&mut self, message: &Value) -> Result<(), ResponseError> {
        self.read_message(message)?;
        self.read_stop_reason(message)?;
        self.read_usage(message);
        Ok(())
    }

    /// Adds the start of a message. A stop reason before any output, which some gateways send, is
    /// ignored.
    fn start_message(&mut self, message: &Value) -> Result<(), ResponseError> {
        self.read_message(message)?;
        if self.total_bytes() > 0 {
            self.read_stop_reason(message)?;
        }
        self.read_usage(message);
        Ok(())
    }

    /// Reads the id, the model and the blocks of a message.
    fn read_message(&mut self, message: &Value) -> Result<(), ResponseError> {
        self.has_started = true;
        let text = |field: &str| message.get(field).and_then(Value::as_str);
        if let Some(id) = text("id") {
            id.clone_into(&mut self.id);
        }
        if let Some(model) = text("model").filter(|model| !model.is_empty()) {
            model.clone_into(&mut self.model);
        }
        match message.get("content") {
            Some(Value::String(text)) => {
                self.start_block(None, &serde_json::json!({ "type": "text", "text": text }))?;
            }
            Some(Value::Array(blocks)) => {
                blocks.iter().try_for_each(|block| self.start_block(None, block))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn read_stop_reason(&mut self, value: &Value) -> Result<(), ResponseError> {
        let reason = value.get("stop_reason").and_then(Value::as_str);
        if let Some(reason) = reason.filter(|reason| finish_reason::is_specified(reason)) {
            if finish_reason::is_interrupted(reason) {
                return Err(ResponseError::Stopped(reason.to_owned()));
            }
            self.stop_reason = Some(reason.to_owned());
        }
        Ok(())
    }

    fn read_usage(&mut self, value: &Value) {
        let has_counts = self.counts.merge(&value["usage"], &COUNTS);
        self.has_final_usage |= has_counts && self.stop_reason.is_some();
    }

    /// Starts a block with the content of its start event.
    fn start_block(&mut self, number: Option<u64>, block: &Value) -> Result<(), ResponseError> {
        let Some(object) = block.as_object() else { return Ok(()) };
        if self.blocks.iter().any(|block| block.is_repeated_by(number, object)) {
            return Ok(());
        }
        if self.blocks.len() == MAX_BLOCKS {
            return Err(ResponseError::Malformed(format!("it has more than {MAX_BLOCKS} blocks")));
        }
        let kind = match object.get("type").and_then(Value::as_str) {
            Some("text") => BlockKind::Text,
            Some("thinking") => BlockKind::Thinking,
            Some("tool_use") => BlockKind::ToolUse,
            _ => BlockKind::Opaque,
        };
        // For blocks of known kinds, text, thinking and arguments are not provider state.
        let own = object.iter().filter(|(name, value)| {
            kind == BlockKind::Opaque
                || !KNOWN_FIELDS.contains(&name.as_str()) && has_content(value)
        });
        self.state_size.add_fields(own).map_err(ResponseError::Malformed)?;
        if let Some(last) = self.blocks.len().checked_sub(1) {
            self.update_text(last, StreamedText::start_next_part);
        }
        // After the first output, a closing tag without an opening tag is text: the `restart` that
        // turns the text of this block into reasoning would also discard the output of earlier
        // blocks.
        let output = if self.output_bytes == 0 {
            StreamedText::for_model(&self.requested_model)
        } else {
            StreamedText::with_literal_tags()
        };
        self.blocks.push(Block {
            index: number,
            kind,
            fields: object.clone(),
            output,
            halves: SurrogateJoiner::default(),
            arguments: ArgumentsBuffer::default(),
            call_index: None,
        });
        let index = self.blocks.len() - 1;
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        match kind {
            BlockKind::Text => self.push_text(index, text("text")),
            BlockKind::Thinking => self.push_text(index, text("thinking")),
            BlockKind::ToolUse => self.emit_call(index),
            BlockKind::Opaque => {}
        }
        Ok(())
    }

    fn push_text(&mut self, index: usize, piece: &str) {
        let (kind, piece) = (self.blocks[index].kind, self.blocks[index].halves.feed(piece));
        self.update_text(index, |words, sink| match kind {
            BlockKind::Text => words.push_text(&piece, sink),
            BlockKind::Thinking => words.push_reasoning(&piece, sink),
            BlockKind::ToolUse | BlockKind::Opaque => {}
        });
        // The last block must not emit a `restart` any more, because the `restart` would also
        // discard this text, which was emitted later.
        if index + 1 < self.blocks.len()
            && let Some(last) = self.blocks.last_mut()
        {
            last.output.fix_text();
        }
    }

    /// Applies `change` to the text and the reasoning of a block, and counts the bytes that it
    /// adds.
    fn update_text(&mut self, index: usize, change: impl FnOnce(&mut StreamedText, &CallSink<'_>)) {
        let words = &mut self.blocks[index].output;
        let before = words.bytes();
        change(words, self.sink);
        self.output_bytes += words.bytes() - before;
    }

    /// Emits a tool call with the arguments of its start event.
    fn emit_call(&mut self, index: usize) {
        let block = &mut self.blocks[index];
        let name = str_field(&block.fields, "name").to_owned();
        if str_field(&block.fields, "id").is_empty() {
            let id = names::generated_id(&self.id, "toolu", self.call_count);
            block.fields.insert("id".into(), id.into());
        }
        let arguments = match block.fields.get("input") {
            Some(Value::String(text)) => ArgumentsBuffer::from_whole(text).text().to_owned(),
            Some(document) if has_content(document) => {
                lenient::join_surrogates_in(document.clone()).to_string()
            }
            _ => String::new(),
        };
        let id = str_field(&block.fields, "id");
        self.output_bytes += id.len() + name.len() + arguments.len();
        // A call without a name cannot be emitted.
        if !name.is_empty() {
            self.sink.emit_call(self.call_count, id, &name, &arguments);
            block.call_index = Some(self.call_count);
        }
        self.call_count += 1;
    }

    /// Returns the block of an event: the block with the index of the event, or else the last
    /// block.
    fn find_block(&self, event: &Value) -> Option<usize> {
        let number = event.get("index").and_then(Value::as_u64);
        let numbered = number
            .and_then(|number| self.blocks.iter().rposition(|block| block.index == Some(number)));
        numbered.or_else(|| self.blocks.len().checked_sub(1))
    }

    fn push_delta(&mut self, event: &Value) -> Result<(), ResponseError> {
        let Some(delta) = event.get("delta").and_then(Value::as_object) else { return Ok(()) };
        let kind = str_field(delta, "type");
        let known = self.find_block(event).filter(|_| !self.is_unknown_index(event));
        // The block of this delta has not started, or has another type.
        if !known.is_some_and(|index| self.blocks[index].kind.has_deltas(kind)) {
            let name = match BlockKind::of_delta(kind) {
                Some(BlockKind::Text) => "text",
                Some(BlockKind::Thinking) => "thinking",
                // Without these arguments, a tool would run with others.
                _ if !str_field(delta, "partial_json").is_empty() => {
                    return Err(ResponseError::Malformed(
                        "it has arguments of no tool call".into(),
                    ));
                }
                _ => return Ok(()),
            };
            let number = event.get("index").and_then(Value::as_u64);
            self.start_block(number, &serde_json::json!({ "type": name }))?;
        }
        let Some(index) = self.find_block(event) else { return Ok(()) };
        let block = &mut self.blocks[index];
        match kind {
            "text_delta" => {
                let text = str_field(delta, "text").to_owned();
                self.push_text(index, &text);
            }
            "thinking_delta" => {
                let text = str_field(delta, "thinking").to_owned();
                self.push_text(index, &text);
            }
            "signature_delta" => {
                let more = str_field(delta, "signature");
                self.state_size.add(more.len()).map_err(ResponseError::Malformed)?;
                match block.fields.get_mut("signature") {
                    Some(Value::String(signature)) => signature.push_str(more),
                    _ => drop(block.fields.insert("signature".into(), more.into())),
                }
            }
            "input_json_delta" => {
                let more = block.arguments.push(str_field(delta, "partial_json"));
                self.output_bytes += more.len();
                if let Some(call) = block.call_index {
                    self.sink.emit_arguments(call, more);
                }
            }
            "citations_delta" => {
                let citation = delta.get("citation").cloned().unwrap_or_default();
                self.state_size.add_value(&citation).map_err(ResponseError::Malformed)?;
                match block.fields.get_mut("citations") {
                    Some(Value::Array(citations)) => citations.push(citation),
                    _ => drop(block.fields.insert("citations".into(), vec![citation].into())),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns whether an event has the index of a block that has not started. If the last block
    /// started without an index, the index may be that of the last block.
    fn is_unknown_index(&self, event: &Value) -> bool {
        let number = event.get("index").and_then(Value::as_u64);
        number.is_some_and(|number| {
            self.blocks.last().is_some_and(|last| last.index.is_some())
                && self.blocks.iter().all(|block| block.index != Some(number))
        })
    }
}

impl AnthropicResponse<'_> {
    /// Adds an event of a stream, or a whole response.
    fn push_event(&mut self, document: &Value) -> Result<(), ResponseError> {
        match document.get("type").and_then(Value::as_str) {
            Some("message_start") => match document.get("message") {
                Some(message) => self.start_message(message),
                None => Ok(()),
            },
            Some("content_block_start") => {
                self.has_started = true;
                let number = document.get("index").and_then(Value::as_u64);
                match document.get("content_block") {
                    Some(block) => self.start_block(number, block),
                    None => Ok(()),
                }
            }
            Some("content_block_delta") => {
                self.has_started = true;
                self.push_delta(document)
            }
            Some("message_delta") => {
                self.has_started = true;
                if let Some(delta) = document.get("delta") {
                    self.read_stop_reason(delta)?;
                }
                self.read_usage(document);
                Ok(())
            }
            Some("message_stop") => {
                self.is_ended = self.has_started;
                Ok(())
            }
            Some("content_block_stop" | "ping") => Ok(()),
            // A whole response. Some gateways omit its type.
            _ if document.get("content").is_some() => self.push_message(document),
            _ => Ok(()),
        }
    }
}

impl ResponseBuilder for AnthropicResponse<'_> {
    fn push(&mut self, document: &Value) -> Result<(), ResponseError> {
        ResponseError::check_reported(document)?;
        let (bytes_before, was_stopped) = (self.output_bytes, self.stop_reason.is_some());
        self.push_event(document)?;
        self.output_after_stop |= was_stopped && self.output_bytes > bytes_before;
        Ok(())
    }

    fn progress(&self) -> Progress {
        match self.stop_reason {
            _ if self.is_ended => Progress::StreamEnded,
            Some(_) if self.output_after_stop || self.total_bytes() == 0 => Progress::FinishIgnored,
            Some(_) if self.has_final_usage => Progress::UsageReceived,
            Some(_) => Progress::Finished,
            None if self.has_started => Progress::Started,
            None => Progress::Nothing,
        }
    }

    fn total_bytes(&self) -> usize {
        self.output_bytes + self.state_size.bytes()
    }

    fn build(self) -> TurnResponse {
        let (mut draft, budget) = (MessageBuilder::default(), JsonBudget::default());
        for mut block in self.blocks {
            let remaining = block.halves.finish();
            let mut fields = join_surrogates(block.fields);
            match block.kind {
                BlockKind::Text | BlockKind::Thinking => {
                    fields.retain(|name, value| {
                        !KNOWN_FIELDS.contains(&name.as_str()) && has_content(value)
                    });
                    let mut words = block.output;
                    if block.kind == BlockKind::Text {
                        words.push_text(remaining, self.sink);
                        words.flush(self.sink);
                        draft.push_reasoning(&words.reasoning, Fields::new());
                        draft.push_text(&words.text, fields);
                    } else {
                        words.push_reasoning(remaining, self.sink);
                        draft.push_reasoning(&words.reasoning, fields);
                    }
                }
                BlockKind::ToolUse => {
                    let rest = block.arguments.finish();
                    if let Some(call) = block.call_index {
                        self.sink.emit_arguments(call, rest);
                    }
                    let call = ToolCall {
                        id: str_field(&fields, "id").to_owned(),
                        name: str_field(&fields, "name").to_owned(),
                        arguments: call_arguments(fields.get("input"), &block.arguments, &budget),
                    };
                    fields.retain(|name, value| {
                        !KNOWN_FIELDS.contains(&name.as_str()) && has_content(value)
                    });
                    draft.push_call(call, fields);
                }
                BlockKind::Opaque => {
                    block.arguments.finish();
                    if !block.arguments.text().is_empty() {
                        let input = fields.get("input");
                        let arguments = call_arguments(input, &block.arguments, &budget);
                        fields.insert("input".into(), arguments);
                    }
                    draft.push_opaque(Value::Object(fields));
                }
            }
        }
        let usage = to_usage(&self.counts);
        let finish_reason =
            finish_reason::from_name(self.stop_reason.as_deref(), self.call_count > 0);
        TurnResponse { parts: draft.build(self.owner), finish_reason, usage, model: self.model }
    }
}

/// Returns the arguments of a tool call: the fragments, or else the arguments of the start event.
fn call_arguments(begun: Option<&Value>, pieces: &ArgumentsBuffer, budget: &JsonBudget) -> Value {
    if pieces.text().is_empty() {
        arguments::from_json(begun, budget)
    } else {
        pieces.parse(budget)
    }
}

/// Joins the surrogate halves in the texts of the fields.
fn join_surrogates(fields: Fields) -> Fields {
    match lenient::join_surrogates_in(Value::Object(fields)) {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    }
}

fn str_field<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the usage. Anthropic does not count tokens that were read from or written to its cache
/// as input.
fn to_usage(counts: &TokenCounts) -> Usage {
    let cached_input_tokens = counts.get("/cache_read_input_tokens");
    let written = counts.get("/cache_creation_input_tokens");
    let input = [counts.get("/input_tokens"), cached_input_tokens, written];
    let is_told = input.iter().any(Option::is_some);
    let input = input.into_iter().flatten().fold(0, u64::saturating_add);
    Usage {
        input_tokens: is_told.then_some(input),
        output_tokens: counts.get("/output_tokens"),
        cached_input_tokens,
        reasoning_tokens: counts.get("/output_tokens_details/thinking_tokens"),
    }
}

#[cfg(test)]
mod tests;
