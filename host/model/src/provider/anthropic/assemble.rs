//! Assembles a response from the events of a stream.
//!
//! A message is an array of blocks. One event starts a block and further events extend it. Some gateways send a
//! complete block in its start event, omit indexes and ids, or start a block before the previous one ends.

use serde_json::{Map, Value};
use wattle_graph::llm::{FinishReason, ToolCall, Usage};
use wattle_run::json::lenient::{self, Halves};

use crate::provider::arguments::{self, Arguments};
use crate::provider::exchange::{Assembly, Broken, Progress};
use crate::provider::reply::Reply;
use crate::provider::state::{Draft, Fields, OwnBytes, Owner, says};
use crate::provider::think::Words;
use crate::sink::Sink;

/// Maximum blocks of one response. A response with the provider's own tools has some dozens.
const MAX_BLOCKS: usize = 1_000;

/// Fields of text, thinking and tool-use blocks that this module interprets.
const READ: [&str; 6] = ["type", "text", "thinking", "id", "name", "input"];

/// A response that is being assembled.
pub(in crate::provider) struct Anthropic<'a> {
    owner: Owner,
    sink: &'a Sink<'a>,
    id: String,
    /// The requested model.
    asked: String,
    model: String,
    blocks: Vec<Block>,
    calls: usize,
    /// Bytes of text, reasoning, call ids, tool names and arguments so far.
    said: usize,
    /// The size of the provider state so far.
    own: OwnBytes,
    stop: Option<String>,
    /// Whether output followed a stop reason.
    goes_on: bool,
    counts: Option<Map<String, Value>>,
    /// Whether usage came with or after the stop reason.
    is_counted: bool,
    is_ended: bool,
    seen: bool,
}

/// A block of a response.
struct Block {
    number: Option<u64>,
    kind: Kind,
    /// All fields except those that arrive in fragments.
    fields: Fields,
    /// The text and the reasoning of the block.
    words: Words,
    halves: Halves,
    /// The arguments that arrive in fragments, after the start event.
    arguments: Arguments,
    /// The index of the tool call in the response, once it was emitted.
    call: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    ToolUse,
    Own,
}

impl<'a> Anthropic<'a> {
    pub(in crate::provider) fn new(owner: Owner, model: &str, sink: &'a Sink<'a>) -> Self {
        Self {
            owner,
            sink,
            id: String::new(),
            asked: model.to_owned(),
            model: model.to_owned(),
            blocks: Vec::new(),
            calls: 0,
            said: 0,
            own: OwnBytes::default(),
            stop: None,
            goes_on: false,
            counts: None,
            is_counted: false,
            is_ended: false,
            seen: false,
        }
    }

    /// Adds a complete message, which is an unstreamed response.
    fn message(&mut self, message: &Value) -> Result<(), Broken> {
        self.read(message)?;
        self.stopped(message);
        self.count(message);
        Ok(())
    }

    /// Adds the start of a message. A stop reason before any output, which some gateways send, is ignored.
    fn begun(&mut self, message: &Value) -> Result<(), Broken> {
        self.read(message)?;
        if self.carried() > 0 {
            self.stopped(message);
        }
        self.count(message);
        Ok(())
    }

    /// Reads the id, the model and the blocks of a message.
    fn read(&mut self, message: &Value) -> Result<(), Broken> {
        self.seen = true;
        let text = |field: &str| message.get(field).and_then(Value::as_str);
        if let Some(id) = text("id") {
            id.clone_into(&mut self.id);
        }
        if let Some(model) = text("model").filter(|model| !model.is_empty()) {
            model.clone_into(&mut self.model);
        }
        match message.get("content") {
            Some(Value::String(text)) => {
                self.begin(None, &serde_json::json!({ "type": "text", "text": text }))?;
            }
            Some(Value::Array(blocks)) => {
                blocks.iter().try_for_each(|block| self.begin(None, block))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn stopped(&mut self, value: &Value) {
        if let Some(reason) = value.get("stop_reason").and_then(Value::as_str)
            && !reason.is_empty()
        {
            self.stop = Some(reason.to_owned());
        }
    }

    /// Merges token counts. A later count replaces an earlier one of the same name.
    fn count(&mut self, value: &Value) {
        if let Some(counts) = value.get("usage").and_then(Value::as_object) {
            let told = counts.iter().filter(|(_, count)| !count.is_null());
            let told = told.map(|(name, count)| (name.clone(), count.clone()));
            self.counts.get_or_insert_default().extend(told);
            self.is_counted |= self.stop.is_some();
        }
    }

    /// Starts a block with the content of its start event.
    fn begin(&mut self, number: Option<u64>, block: &Value) -> Result<(), Broken> {
        let Some(object) = block.as_object() else { return Ok(()) };
        if self.blocks.len() == MAX_BLOCKS {
            return Err(Broken::Unreadable(format!("it has more than {MAX_BLOCKS} blocks")));
        }
        let kind = match object.get("type").and_then(Value::as_str) {
            Some("text") => Kind::Text,
            Some("thinking") => Kind::Thinking,
            Some("tool_use") => Kind::ToolUse,
            _ => Kind::Own,
        };
        // Text, thinking and arguments of the known kinds are stored separately.
        let own = object.iter().filter(|(name, value)| {
            kind == Kind::Own || !READ.contains(&name.as_str()) && says(value)
        });
        self.own.add_fields(own).map_err(Broken::Unreadable)?;
        if let Some(last) = self.blocks.len().checked_sub(1) {
            self.speak(last, Words::interrupt);
        }
        // Once there was output, a closing tag alone is text: the `restart` that turns the text of this block into
        // reasoning would discard the output of earlier blocks as well.
        let words = if self.said == 0 { Words::of(&self.asked) } else { Words::unmarked() };
        self.blocks.push(Block {
            number,
            kind,
            fields: object.clone(),
            words,
            halves: Halves::default(),
            arguments: Arguments::default(),
            call: None,
        });
        let index = self.blocks.len() - 1;
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        match kind {
            Kind::Text => self.say(index, text("text")),
            Kind::Thinking => self.say(index, text("thinking")),
            Kind::ToolUse => self.call(index),
            Kind::Own => {}
        }
        Ok(())
    }

    fn say(&mut self, index: usize, piece: &str) {
        let (kind, piece) = (self.blocks[index].kind, self.blocks[index].halves.feed(piece));
        self.speak(index, |words, sink| match kind {
            Kind::Text => words.feed(&piece, sink),
            Kind::Thinking => words.reason(&piece, sink),
            Kind::ToolUse | Kind::Own => {}
        });
        // This text was emitted after that of the last block, so a `restart` by the last block would discard it as
        // well.
        if index + 1 < self.blocks.len()
            && let Some(last) = self.blocks.last_mut()
        {
            last.words.fix_text();
        }
    }

    /// Applies `change` to the text and the reasoning of a block, and counts the bytes that it adds.
    fn speak(&mut self, index: usize, change: impl FnOnce(&mut Words, &Sink<'_>)) {
        let words = &mut self.blocks[index].words;
        let before = words.bytes();
        change(words, self.sink);
        self.said += words.bytes() - before;
    }

    /// Emits a tool call with the arguments of its start event.
    fn call(&mut self, index: usize) {
        let block = &mut self.blocks[index];
        let name = text_of(&block.fields, "name").to_owned();
        if text_of(&block.fields, "id").is_empty() {
            let id = if self.id.is_empty() {
                format!("toolu_{}", self.calls)
            } else {
                format!("{}-{}", self.id, self.calls)
            };
            block.fields.insert("id".into(), id.into());
        }
        let arguments = match block.fields.get("input") {
            Some(Value::String(text)) => Arguments::whole(text).text().to_owned(),
            Some(document) if says(document) => lenient::settled(document.clone()).to_string(),
            _ => String::new(),
        };
        let id = text_of(&block.fields, "id");
        self.said += id.len() + name.len() + arguments.len();
        // A call without a name cannot be emitted.
        if !name.is_empty() {
            self.sink.call(self.calls, id, &name, &arguments);
            block.call = Some(self.calls);
        }
        self.calls += 1;
    }

    /// Returns the block of an event: the one with its index, else the last one.
    fn block(&self, event: &Value) -> Option<usize> {
        let number = event.get("index").and_then(Value::as_u64);
        let numbered = number
            .and_then(|number| self.blocks.iter().rposition(|block| block.number == Some(number)));
        numbered.or_else(|| self.blocks.len().checked_sub(1))
    }

    fn delta(&mut self, event: &Value) -> Result<(), Broken> {
        let Some(delta) = event.get("delta").and_then(Value::as_object) else { return Ok(()) };
        let kind = text_of(delta, "type");
        let wanted = match kind {
            "text_delta" => Some(("text", Kind::Text)),
            "thinking_delta" => Some(("thinking", Kind::Thinking)),
            _ => None,
        };
        let known = self.block(event).filter(|_| !self.is_other(event));
        let fits = |index: usize| wanted.is_none_or(|(_, kind)| self.blocks[index].kind == kind);
        // The block of this delta never started, or started with another type.
        if !known.is_some_and(fits) {
            let Some((name, _)) = wanted else { return Ok(()) };
            let number = event.get("index").and_then(Value::as_u64);
            self.begin(number, &serde_json::json!({ "type": name }))?;
        }
        let Some(index) = self.block(event) else { return Ok(()) };
        let block = &mut self.blocks[index];
        match kind {
            "text_delta" => {
                let text = text_of(delta, "text").to_owned();
                self.say(index, &text);
            }
            "thinking_delta" => {
                let text = text_of(delta, "thinking").to_owned();
                self.say(index, &text);
            }
            "signature_delta" => {
                let more = text_of(delta, "signature");
                self.own.add(more.len()).map_err(Broken::Unreadable)?;
                match block.fields.get_mut("signature") {
                    Some(Value::String(signature)) => signature.push_str(more),
                    _ => drop(block.fields.insert("signature".into(), more.into())),
                }
            }
            "input_json_delta" => {
                let more = block.arguments.feed(text_of(delta, "partial_json"));
                self.said += more.len();
                if let Some(call) = block.call {
                    self.sink.arguments(call, more);
                }
            }
            "citations_delta" => {
                let citation = delta.get("citation").cloned().unwrap_or_default();
                self.own.add_value(&citation).map_err(Broken::Unreadable)?;
                match block.fields.get_mut("citations") {
                    Some(Value::Array(citations)) => citations.push(citation),
                    _ => drop(block.fields.insert("citations".into(), vec![citation].into())),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns whether an event has the index of a block that has not started.
    fn is_other(&self, event: &Value) -> bool {
        let number = event.get("index").and_then(Value::as_u64);
        number.is_some_and(|number| {
            let numbered = self.blocks.iter().filter_map(|block| block.number);
            let mut numbered = numbered.peekable();
            numbered.peek().is_some() && numbered.all(|known| known != number)
        })
    }
}

impl Anthropic<'_> {
    /// Adds an event of a stream, or a whole response.
    fn event(&mut self, document: &Value) -> Result<(), Broken> {
        match document.get("type").and_then(Value::as_str) {
            Some("message_start") => match document.get("message") {
                Some(message) => self.begun(message),
                None => Ok(()),
            },
            Some("content_block_start") => {
                self.seen = true;
                let number = document.get("index").and_then(Value::as_u64);
                match document.get("content_block") {
                    Some(block) => self.begin(number, block),
                    None => Ok(()),
                }
            }
            Some("content_block_delta") => {
                self.seen = true;
                self.delta(document)
            }
            Some("message_delta") => {
                self.seen = true;
                if let Some(delta) = document.get("delta") {
                    self.stopped(delta);
                }
                self.count(document);
                Ok(())
            }
            Some("message_stop") => {
                self.is_ended = self.seen;
                Ok(())
            }
            Some("content_block_stop" | "ping") => Ok(()),
            // A whole response. Some gateways omit its type.
            _ if document.get("content").is_some() => self.message(document),
            _ => Ok(()),
        }
    }
}

impl Assembly for Anthropic<'_> {
    fn take(&mut self, document: &Value) -> Result<(), Broken> {
        Broken::reported(document)?;
        let (said, was_stopped) = (self.said, self.stop.is_some());
        self.event(document)?;
        self.goes_on |= was_stopped && self.said > said;
        Ok(())
    }

    fn progress(&self) -> Progress {
        match self.stop {
            _ if self.is_ended => Progress::Ended,
            Some(_) if self.goes_on || self.carried() == 0 => Progress::GoesOn,
            Some(_) if self.is_counted => Progress::Counted,
            Some(_) => Progress::Said,
            None if self.seen => Progress::Begun,
            None => Progress::Nothing,
        }
    }

    fn carried(&self) -> usize {
        self.said + self.own.count()
    }

    fn reply(self) -> Reply {
        let mut draft = Draft::default();
        for mut block in self.blocks {
            let tail = block.halves.end();
            let mut fields = json_fields(block.fields);
            match block.kind {
                Kind::Text | Kind::Thinking => {
                    fields.retain(|name, value| !READ.contains(&name.as_str()) && says(value));
                    let mut words = block.words;
                    if block.kind == Kind::Text {
                        words.feed(tail, self.sink);
                        words.end(self.sink);
                        draft.reasoning(&words.reasoning, Fields::new());
                        draft.text(&words.text, fields);
                    } else {
                        words.reason(tail, self.sink);
                        draft.reasoning(&words.reasoning, fields);
                    }
                }
                Kind::ToolUse => {
                    let rest = block.arguments.end();
                    if let Some(call) = block.call {
                        self.sink.arguments(call, rest);
                    }
                    let call = ToolCall {
                        id: text_of(&fields, "id").to_owned(),
                        name: text_of(&fields, "name").to_owned(),
                        arguments: input(fields.get("input"), &block.arguments),
                    };
                    fields.retain(|name, value| !READ.contains(&name.as_str()) && says(value));
                    draft.call(call, fields);
                }
                Kind::Own => {
                    block.arguments.end();
                    if !block.arguments.text().is_empty() {
                        let arguments = input(fields.get("input"), &block.arguments);
                        fields.insert("input".into(), arguments);
                    }
                    draft.own(Value::Object(fields));
                }
            }
        }
        let usage = self.counts.as_ref().map(usage).unwrap_or_default();
        let finish = finish(self.stop.as_deref(), self.calls > 0);
        Reply { parts: draft.parts(self.owner), finish, usage, model: self.model }
    }
}

/// Returns the arguments of a tool call: the fragments, or else those of the start event.
fn input(begun: Option<&Value>, pieces: &Arguments) -> Value {
    if pieces.text().is_empty() { arguments::of_document(begun) } else { pieces.value() }
}

fn json_fields(fields: Fields) -> Fields {
    match lenient::settled(Value::Object(fields)) {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    }
}

fn text_of<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn finish(reason: Option<&str>, calls: bool) -> FinishReason {
    match reason {
        Some("end_turn" | "stop_sequence" | "tool_use") | None if calls => FinishReason::ToolCalls,
        Some("end_turn" | "stop_sequence") => FinishReason::Stop,
        Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
        Some("tool_use") => FinishReason::ToolCalls,
        Some("refusal" | "content_filter" | "safety") => FinishReason::ContentFilter,
        Some(other) => FinishReason::Other(other.to_owned()),
        None => FinishReason::Other("unknown".to_owned()),
    }
}

/// Returns the usage. Anthropic does not count tokens that were read from or written to its cache as input.
fn usage(counts: &Map<String, Value>) -> Usage {
    let count = |name: &str| counts.get(name).and_then(Value::as_u64);
    let (read, written) = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
    let input = [count("input_tokens"), read, written];
    let is_told = input.iter().any(Option::is_some);
    let input = input.into_iter().flatten().fold(0, u64::saturating_add);
    let thinking = counts.get("output_tokens_details").and_then(|it| it.get("thinking_tokens"));
    Usage {
        input_tokens: is_told.then_some(input),
        output_tokens: count("output_tokens"),
        cached_input_tokens: read,
        reasoning_tokens: thinking.and_then(Value::as_u64),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::llm::Part;
    use wattle_run::ports::model::NoDeltas;

    use super::*;

    fn begin(number: u64, block: Value) -> Value {
        json!({ "type": "content_block_start", "index": number, "content_block": block })
    }

    fn text(number: u64, text: &str) -> Value {
        let delta = json!({ "type": "text_delta", "text": text });
        json!({ "type": "content_block_delta", "index": number, "delta": delta })
    }

    /// Returns the reasoning and the text of a response.
    fn read(events: &[Value]) -> (String, String) {
        let sink = Sink::new(&NoDeltas);
        let mut assembly = Anthropic::new(Owner::new("a", "qwen3"), "qwen3", &sink);
        for event in events {
            assembly.take(event).unwrap();
        }
        let mut read = (String::new(), String::new());
        for part in assembly.reply().parts {
            match part {
                Part::Reasoning(text) => read.0.push_str(&text),
                Part::Text(text) => read.1.push_str(&text),
                _ => {}
            }
        }
        read
    }

    #[test]
    fn think_tags_are_found_after_empty_blocks_and_across_blocks() {
        let call = json!({ "type": "tool_use", "id": "t", "name": "add", "input": {} });
        let empty = begin(0, json!({ "type": "thinking", "thinking": "" }));
        let open = begin(1, json!({ "type": "text", "text": "" }));
        let behind = [empty, open.clone(), text(1, "hm\n"), text(1, "</think>\n\nHello!")];
        assert_eq!(read(&behind), ("hm\n".into(), "Hello!".into()));
        let within = [
            begin(0, json!({ "type": "text", "text": "<think>h" })),
            begin(1, call),
            text(0, "m</th"),
            text(0, "ink>Hello!"),
        ];
        assert_eq!(read(&within), ("hm".into(), "Hello!".into()));
        let mixed = [
            begin(0, json!({ "type": "text", "text": "" })),
            open,
            text(1, "hm\n"),
            text(0, "Hello!"),
            text(1, "</think>\n\n"),
        ];
        assert_eq!(read(&mixed), (String::new(), "Hello!hm\n".into()), "no restart");
    }

    #[test]
    fn provider_state_is_bounded() {
        let sink = Sink::new(&NoDeltas);
        let long = "s".repeat(1 << 20);
        let begin = |block: Value| json!({ "type": "content_block_start", "content_block": block });
        let delta = |delta: Value| json!({ "type": "content_block_delta", "delta": delta });
        for piece in [
            begin(json!({ "type": "thinking", "thinking": "", "signature": long })),
            begin(json!({ "type": "redacted_thinking", "data": long })),
            delta(json!({ "type": "signature_delta", "signature": long })),
            delta(json!({ "type": "citations_delta", "citation": { "cited_text": long } })),
        ] {
            let mut assembly = Anthropic::new(Owner::new("a", "claude"), "claude", &sink);
            assembly.take(&begin(json!({ "type": "thinking", "thinking": "" }))).unwrap();
            let taken = (0..5).try_for_each(|_| assembly.take(&piece));
            assert!(matches!(taken, Err(Broken::Unreadable(_))), "{taken:?}");
            assert!(assembly.carried() > 4 << 20);
        }
    }
}
