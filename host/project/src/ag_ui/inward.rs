//! Requests of clients, and which of their messages are new to a thread.
//!
//! A client sends the whole conversation with each request. The thread has most of it already, and
//! its state takes precedence over the copy of the client.

mod message;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::message::MessageView;

use self::message::{Envelope, Role};

/// Request of an AG-UI client to run a graph. Further members of the protocol are ignored.
#[derive(Clone, Debug, PartialEq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunAgentInput {
    /// Id of the thread, which the client chooses. A thread that does not exist is created.
    pub thread_id: String,
    /// Id of the run, which the client chooses and which must be unique.
    pub run_id: String,
    /// The conversation, oldest message first. Messages that the thread has are ignored.
    #[schema(value_type = Vec<Object>)]
    pub messages: Vec<Value>,
    /// Channel values by name for the first run of a thread. Later runs ignore it, because the
    /// state of the thread takes precedence.
    #[serde(default)]
    pub state: Value,
    /// Run context, which every node receives. An empty object keeps the context of the thread.
    #[serde(default)]
    pub forwarded_props: Value,
}

/// Error of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// A message is invalid.
    #[error("field `messages[{position}]` of the request is not valid: {why}")]
    Message {
        /// Position of the message, from 0.
        position: usize,
        /// The reason.
        why: String,
    },
}

/// Converts the messages of a client that are new to a thread to messages of a channel. `known` has
/// the messages of the channel; `None` for the first run of a thread, to which the whole
/// conversation is new.
///
/// Reasoning and activities are never converted. On a thread with messages, messages of the system
/// and of users are new if they follow the last message of the agent and the last message whose id
/// the thread has. Earlier messages may have been removed from the thread. The result of a tool is
/// new if the thread has the call without a result.
///
/// # Errors
///
/// [`InputError::Message`] if a message has no id or role, or if a new message is invalid.
pub fn new_messages(messages: &[Value], known: Option<&[Value]>) -> Result<Vec<Value>, InputError> {
    let invalid = |position, why| InputError::Message { position, why };
    let read = messages.iter().enumerate();
    let read =
        read.map(|(position, message)| Envelope::of(message).map_err(|why| invalid(position, why)));
    let envelopes: Vec<Envelope<'_>> = read.collect::<Result<_, _>>()?;
    let mut known = known.map(Known::of);
    let first_new = known.as_ref().map_or(0, |known| known.first_new(&envelopes));
    let mut new = Vec::new();
    for (position, envelope) in envelopes.iter().enumerate() {
        let mut tool = None;
        let is_new = match (&mut known, envelope.role) {
            (_, Role::Reasoning | Role::Activity) | (Some(_), Role::Assistant) => false,
            (None, _) => true,
            (Some(known), Role::Tool) => {
                tool = envelope.tool_call_id.and_then(|call| known.open_calls.remove(call));
                tool.is_some()
            }
            (Some(_), Role::User | Role::System | Role::Developer) => position >= first_new,
        };
        if is_new {
            new.push(envelope.convert(tool).map_err(|why| invalid(position, why))?);
        }
    }
    Ok(new)
}

/// The messages of a thread.
#[derive(Default)]
struct Known {
    ids: BTreeSet<String>,
    /// Names of the tools of calls without a result, by the ids of the calls.
    open_calls: BTreeMap<String, String>,
}

impl Known {
    fn of(messages: &[Value]) -> Self {
        let mut known = Self::default();
        for message in messages.iter().filter_map(MessageView::of) {
            known.ids.extend(message.id().map(str::to_owned));
            let calls = message.tool_calls().into_iter();
            known.open_calls.extend(calls.map(|call| (call.id, call.name)));
            if let Some(call) = message.tool_call_id() {
                known.open_calls.remove(call);
            }
        }
        known
    }

    /// Returns the position after the last message that the thread has or that the agent sent.
    fn first_new(&self, messages: &[Envelope<'_>]) -> usize {
        let is_old = |message: &Envelope<'_>| {
            let is_of_agent = matches!(message.role, Role::Assistant | Role::Reasoning);
            is_of_agent || self.ids.contains(message.id)
        };
        messages.iter().rposition(is_old).map_or(0, |position| position + 1)
    }
}

/// Returns the ids of all tool calls in the messages of a client.
pub fn tool_call_ids(messages: &[Value]) -> BTreeSet<String> {
    let calls = messages.iter().filter_map(|message| message.get("toolCalls")?.as_array());
    calls.flatten().filter_map(|call| Some(call.get("id")?.as_str()?.to_owned())).collect()
}
