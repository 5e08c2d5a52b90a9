//! Assembles tool calls from their fragments.
//!
//! In the format, each fragment has the index of its call. Services deviate: they send no index,
//! the same index for all calls, complete calls, alternating fragments of two calls, names in
//! fragments, or ids that come late or differ in each fragment. A complete call that arrives twice
//! is one call.

use serde_json::{Map, Value};
use wattle_graph::llm::ToolCall;
use wattle_run::json::bounded::JsonBudget;

use crate::provider::arguments::ArgumentsBuffer;
use crate::provider::names;
use crate::provider::openai::extra_fields;
use crate::provider::provider_state::{Fields, MessageBuilder, StateSize};
use crate::provider::throttle::MAX_CALLS;
use crate::sink::CallSink;

/// Fields of a call, and of its function, that are part of the format.
const KNOWN_CALL_FIELDS: [&str; 4] = ["index", "id", "type", "function"];
const KNOWN_FUNCTION_FIELDS: [&str; 2] = ["name", "arguments"];

/// Maximum bytes of a name that arrives in fragments.
const MAX_SPLIT_NAME_BYTES: usize = 256;

/// Maximum bytes of output that are emitted again because names arrive in fragments.
const MAX_REPEATED_BYTES: usize = 1 << 20;

/// The tool calls of one response.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    calls: Vec<PartialCall>,
    /// The choice to which the next fragment belongs.
    choice: u64,
    /// Whether a name has changed that was emitted.
    is_renamed: bool,
    /// Bytes of output that were emitted again.
    repeated_bytes: usize,
}

#[derive(Debug, Default)]
struct PartialCall {
    /// The choice in which the call started.
    choice: u64,
    /// The index that the service sent.
    index: Option<u64>,
    /// The id that the service sent.
    sent_id: Option<String>,
    id: String,
    name: String,
    arguments: ArgumentsBuffer,
    nesting: Nesting,
    /// Provider-specific fields.
    fields: Fields,
    /// Whether the call was emitted, which requires its name.
    is_emitted: bool,
}

/// A fragment of a call.
struct CallFragment<'a> {
    index: Option<u64>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    arguments: String,
}

impl<'a> CallFragment<'a> {
    fn parse(piece: &'a Value) -> Self {
        let text = |value: &'a Value| value.as_str().filter(|text| !text.is_empty());
        let function = &piece["function"];
        let arguments = match &function["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            // Some services send the arguments as a JSON value instead of a string.
            document => document.to_string(),
        };
        Self {
            index: piece.get("index").and_then(Value::as_u64),
            id: text(&piece["id"]),
            name: text(&function["name"]),
            arguments,
        }
    }

    /// Returns whether this fragment starts another call although `find_call` matched it to `call`.
    /// A fragment with another name, or with further arguments, starts another call if the
    /// arguments of `call` are complete. A fragment with another name and another id also does if
    /// these arguments have not started. A fragment with the id of `call` then continues `call`,
    /// because an empty object may precede the arguments, and the name may be split. So does a
    /// fragment with nothing but a name, if `call` has an id: each call of the service has one.
    fn starts_new_call(&self, call: &PartialCall) -> bool {
        let has_its_id = self.id.is_some() && self.id == call.sent_id.as_deref();
        let has_no_arguments = self.arguments.trim().is_empty();
        let is_name = self.id.is_none() && call.sent_id.is_some() && has_no_arguments;
        match self.name {
            None => false,
            Some(_) if call.name.is_empty() => false,
            Some(name) if name != call.name => {
                call.nesting.is_closed() || !has_its_id && !is_name && !call.nesting.is_open()
            }
            Some(_) if has_its_id && call.arguments.is_none() => false,
            Some(_) => call.nesting.is_closed() && !has_no_arguments,
        }
    }
}

impl ToolCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Sets the choice to which the next fragments belong. Each choice has its own indexes of calls.
    pub(super) fn set_choice(&mut self, choice: u64) {
        self.choice = choice;
    }

    /// Returns the number of bytes of the ids, names and arguments of all calls.
    pub(super) fn bytes(&self) -> usize {
        let bytes =
            |call: &PartialCall| call.id.len() + call.name.len() + call.arguments.text().len();
        self.calls.iter().map(bytes).sum()
    }

    /// Returns the ids that the service sent.
    pub(super) fn sent_ids(&self) -> impl Iterator<Item = &str> {
        let sent = self.calls.iter().filter(|call| call.sent_id.as_ref() == Some(&call.id));
        sent.map(|call| call.id.as_str())
    }

    /// Returns whether a name has changed that was emitted. The deltas are then void, and all
    /// output so far is emitted again.
    pub(super) fn take_renamed(&mut self) -> bool {
        std::mem::take(&mut self.is_renamed)
    }

    /// Emits all calls so far, after a restart.
    pub(super) fn emit_again(&self, sink: &CallSink<'_>) {
        for (index, call) in self.calls.iter().enumerate().filter(|(_, call)| call.is_emitted) {
            sink.emit_call(index, &call.id, &call.name, call.arguments.text());
        }
    }

    /// Adds a fragment to a response with `output_bytes` of output so far. Derives missing ids from
    /// `response_id`. Adds the size of the provider-specific fields to `own`.
    pub(super) fn push_fragment(
        &mut self,
        document: &Value,
        response_id: &str,
        output_bytes: usize,
        sink: &CallSink<'_>,
        own: &mut StateSize,
    ) -> Result<(), String> {
        let piece = CallFragment::parse(document);
        if self.has_call(&piece) {
            return Ok(());
        }
        let index = match self.find_call(&piece) {
            Some(index) => index,
            None if self.calls.len() == MAX_CALLS => {
                return Err(format!("it has more than {MAX_CALLS} tool calls"));
            }
            None => {
                let generated = || names::generated_id(response_id, "call", self.calls.len());
                let id = piece.id.map_or_else(generated, str::to_owned);
                let (choice, index) = (self.choice, piece.index);
                self.calls.push(PartialCall { choice, index, id, ..PartialCall::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[index];
        extra_fields::merge_chunk(&mut call.fields, document, &KNOWN_CALL_FIELDS, own)?;
        let mut function = match call.fields.remove("function") {
            Some(Value::Object(function)) => function,
            _ => Map::new(),
        };
        if let Some(piece) = document.get("function") {
            extra_fields::merge_chunk(&mut function, piece, &KNOWN_FUNCTION_FIELDS, own)?;
        }
        if !function.is_empty() {
            call.fields.insert("function".into(), Value::Object(function));
        }
        let can_repeat = self.repeated_bytes + output_bytes <= MAX_REPEATED_BYTES;
        if can_repeat && piece.name.is_some_and(|name| call.add_to_name(name)) {
            self.is_renamed = true;
            self.repeated_bytes += output_bytes;
        }
        call.append(index, &piece, sink);
        Ok(())
    }

    /// Returns whether a fragment is the whole of a complete call once more, with the same id,
    /// index, name and arguments.
    fn has_call(&self, piece: &CallFragment<'_>) -> bool {
        let (Some(id), Some(name)) = (piece.id, piece.name) else { return false };
        if piece.arguments.trim().is_empty() {
            return false;
        }
        // Both texts come from a buffer, which drops white space and an empty object at the start.
        let arguments = ArgumentsBuffer::from_whole(&piece.arguments);
        self.calls.iter().any(|call| {
            call.sent_id.as_deref() == Some(id)
                && call.index == piece.index
                && call.name == name
                && (call.nesting.is_closed() || call.arguments.is_none())
                && call.arguments.text() == arguments.text()
        })
    }

    /// Returns the call that a fragment continues; `None` if the fragment starts a call.
    fn find_call(&self, piece: &CallFragment<'_>) -> Option<usize> {
        let last = |wanted: &dyn Fn(&PartialCall) -> bool| self.calls.iter().rposition(wanted);
        let by_id = piece.id.and_then(|id| last(&|call| call.sent_id.as_deref() == Some(id)));
        let found = match (by_id, piece.index) {
            // If an id occurs with several indexes, the id does not identify a call.
            (Some(index), Some(number)) => {
                let has_number = self.calls[index].index.is_none_or(|known| known == number);
                Some(index).filter(|_| has_number || piece.name.is_none())
            }
            (Some(index), None) => Some(index),
            // A fragment with the index of a call, but another id and a name, starts another call.
            (None, Some(number)) => {
                let own = |call: &PartialCall| call.choice == self.choice;
                let in_choice = last(&|call| own(call) && call.index == Some(number));
                // A fragment without a name continues a call, if need be that of another choice.
                let in_any = || last(&|call| piece.name.is_none() && call.index == Some(number));
                in_choice.or_else(in_any).filter(|index| {
                    let call = &self.calls[*index];
                    piece.name.is_none()
                        || piece.id.is_none()
                        || call.name.is_empty()
                        || call.sent_id.is_none()
                })
            }
            (None, None) if piece.id.is_some() => None,
            (None, None) => self.calls.len().checked_sub(1).filter(|index| {
                let call = &self.calls[*index];
                // A fragment with a name starts another call, unless the arguments of the last call
                // are incomplete and the names are equal.
                piece.name.is_none_or(|name| name == call.name && call.nesting.is_open())
            }),
        };
        found.filter(|index| !piece.starts_new_call(&self.calls[*index]))
    }

    /// Moves all calls into a draft. Emits the arguments that were held back.
    pub(super) fn move_into(self, draft: &mut MessageBuilder, sink: &CallSink<'_>) {
        let budget = JsonBudget::default();
        for (index, mut call) in self.calls.into_iter().enumerate() {
            let rest = call.arguments.finish();
            if call.is_emitted {
                sink.emit_arguments(index, rest);
            }
            let arguments = call.arguments.parse(&budget);
            let request = ToolCall { id: call.id, name: call.name, arguments };
            draft.push_call(request, call.fields);
        }
    }
}

impl PartialCall {
    /// Appends a fragment to the name, if the call has a name, another one, and no arguments.
    /// Returns whether the name has changed.
    fn add_to_name(&mut self, piece: &str) -> bool {
        let is_fragment = !self.name.is_empty()
            && self.name != piece
            && !self.nesting.has_opened
            && self.arguments.text().is_empty()
            && self.name.len() + piece.len() <= MAX_SPLIT_NAME_BYTES;
        if is_fragment {
            self.name.push_str(piece);
        }
        is_fragment
    }

    fn append(&mut self, index: usize, piece: &CallFragment<'_>, sink: &CallSink<'_>) {
        // Some services repeat the name in every fragment. `add_to_name` appends other fragments.
        if let Some(name) = piece.name
            && self.name.is_empty()
        {
            name.clone_into(&mut self.name);
        }
        if let Some(id) = piece.id
            && self.sent_id.is_none()
        {
            self.sent_id = Some(id.to_owned());
            if !self.is_emitted {
                id.clone_into(&mut self.id);
            }
        }
        self.nesting.feed(&piece.arguments);
        let more = self.arguments.push(&piece.arguments);
        if self.is_emitted {
            sink.emit_arguments(index, more);
        } else if !self.name.is_empty() {
            self.is_emitted = true;
            sink.emit_call(index, &self.id, &self.name, self.arguments.text());
        }
    }
}

/// Tracks the nesting depth at the end of a part of a JSON text.
#[derive(Debug, Default)]
struct Nesting {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Whether an object or array was opened.
    has_opened: bool,
}

impl Nesting {
    fn feed(&mut self, text: &str) {
        for letter in text.chars() {
            if self.in_string {
                match letter {
                    _ if self.escaped => self.escaped = false,
                    '\\' => self.escaped = true,
                    '"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match letter {
                '"' => self.in_string = true,
                '{' | '[' => {
                    self.depth += 1;
                    self.has_opened = true;
                }
                '}' | ']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Returns whether an object, array or string is open.
    fn is_open(&self) -> bool {
        self.depth > 0 || self.in_string
    }

    /// Returns whether at least one object or array was opened, and all are closed.
    fn is_closed(&self) -> bool {
        self.has_opened && !self.is_open()
    }
}

#[cfg(test)]
mod tests;
