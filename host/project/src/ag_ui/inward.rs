//! Requests of AG-UI clients: which messages are new to a thread, and the answers to the interrupts
//! of the thread.
//!
//! A client sends the whole conversation with each request. The thread already has most messages,
//! and the state of the thread takes precedence over the messages of the client.

mod message;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use wattle_graph::message::MessageView;

use self::message::{Envelope, Role};
use crate::agent_server::message::ParseText;

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
    /// Answers to the pending interrupts of the thread, one for each of them.
    #[serde(default)]
    pub resume: Option<Vec<ResumeEntry>>,
}

/// The answer of an AG-UI client to an interrupt.
#[derive(Clone, Debug, PartialEq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResumeEntry {
    /// Id of the interrupt.
    pub interrupt_id: String,
    /// Whether a person answered the interrupt or dismissed it.
    pub status: ResumeStatus,
    /// The answer of a resolved interrupt.
    #[serde(default)]
    pub payload: Value,
}

/// The status of an interrupt at an AG-UI client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResumeStatus {
    /// A person answered the interrupt.
    Resolved,
    /// A person dismissed the interrupt.
    Cancelled,
}

/// A pending interrupt of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Pending<'i> {
    /// Id of the interrupt.
    pub id: &'i str,
    /// JSON Schema of the answer.
    pub response_schema: Option<&'i Value>,
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
    /// Two entries of `resume` are for the same interrupt.
    #[error("`resume` has two entries for interrupt `{id}`; send one entry for each interrupt")]
    Duplicate {
        /// Id of the interrupt.
        id: String,
    },
    /// The answer is for an interrupt that is not pending.
    #[error(
        "interrupt `{id}` is not pending: it has an answer, its thread has expired, or this thread \
         never raised it; remove its entry, or send the status `cancelled`, which is ignored"
    )]
    NotPending {
        /// Id of the interrupt.
        id: String,
    },
    /// `resume` has no entry for some pending interrupts.
    #[error(
        "the thread waits for answers; `resume` has no entry for these pending interrupts: {}; \
         send an entry for each pending interrupt",
        quoted(ids)
    )]
    Unanswered {
        /// Ids of the interrupts.
        ids: Vec<String>,
    },
    /// An entry has the status `cancelled`, and no answer cancels its interrupt.
    #[error(
        "no answer cancels the interrupts {}; answer them, or cancel all interrupts and send a new \
         message, with which the graph starts again",
        quoted(ids)
    )]
    NotCancellable {
        /// Ids of the interrupts.
        ids: Vec<String>,
    },
}

impl InputError {
    /// Returns true if the request is well-formed but conflicts with the interrupts of the thread.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::NotPending { .. } | Self::Unanswered { .. })
    }
}

fn quoted(ids: &[String]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
    ids.join(", ")
}

/// Converts the messages of a client that are new to a thread to messages of a channel. `known`
/// contains the messages of the channel. `None` means the first run of a thread, to which all
/// messages are new. `parse` parses the arguments of tool calls.
///
/// Reasoning and activities are never converted. On a thread with messages, system messages and
/// user messages are new if they follow the last message of the agent and the last message whose id
/// the thread has. The thread may have removed earlier messages, so a missing id alone does not
/// make a message new. The result of a tool is new if the thread has the call without a result.
///
/// # Errors
///
/// [`InputError::Message`] if a message has no id or role, or if a new message is invalid.
pub fn new_messages(
    messages: &[Value],
    known: Option<&[Value]>,
    parse: ParseText<'_>,
) -> Result<Vec<Value>, InputError> {
    let invalid = |position, why| InputError::Message { position, why };
    let read = messages.iter().enumerate();
    let read =
        read.map(|(position, message)| Envelope::of(message).map_err(|why| invalid(position, why)));
    let envelopes: Vec<Envelope<'_>> = read.collect::<Result<_, _>>()?;
    let mut known = known.map(KnownMessages::of);
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
            new.push(envelope.convert(tool, parse).map_err(|why| invalid(position, why))?);
        }
    }
    Ok(new)
}

/// The messages of a thread that decide which messages of a client are new.
#[derive(Default)]
struct KnownMessages {
    ids: BTreeSet<String>,
    /// Names of the tools of calls without a result; the keys are call ids.
    open_calls: BTreeMap<String, String>,
}

impl KnownMessages {
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

/// Returns the answers to the pending interrupts of a thread. Returns `None` if no interrupt is
/// pending, or if all of them are cancelled and the request has new messages, with which the graph
/// starts again.
///
/// The answer to a cancelled elicitation is `cancel`, and the answer to a cancelled approval is
/// `reject`.
///
/// # Errors
///
/// [`InputError`] if two entries are for the same interrupt, if an answer is for an interrupt that
/// is not pending, if a pending interrupt has no entry, or if an interrupt cannot be cancelled.
pub fn answers(
    entries: &[ResumeEntry],
    pending: &[Pending<'_>],
    has_messages: bool,
) -> Result<Option<BTreeMap<String, Value>>, InputError> {
    let mut by_id: BTreeMap<&str, &ResumeEntry> = BTreeMap::new();
    for entry in entries {
        let id = entry.interrupt_id.as_str();
        if by_id.insert(id, entry).is_some() {
            return Err(InputError::Duplicate { id: id.to_owned() });
        }
    }
    let is_pending = |id: &str| pending.iter().any(|interrupt| interrupt.id == id);
    let mut resolved = entries.iter().filter(|entry| entry.status == ResumeStatus::Resolved);
    if let Some(stale) = resolved.clone().find(|entry| !is_pending(&entry.interrupt_id)) {
        return Err(InputError::NotPending { id: stale.interrupt_id.clone() });
    }
    let mut answers = BTreeMap::new();
    let (mut unanswered, mut not_cancellable) = (Vec::new(), Vec::new());
    for Pending { id, response_schema } in pending {
        let answer = match by_id.get(id) {
            None => {
                unanswered.push((*id).to_owned());
                continue;
            }
            Some(entry) if entry.status == ResumeStatus::Resolved => Some(entry.payload.clone()),
            Some(_) => response_schema.and_then(cancellation),
        };
        match answer {
            Some(answer) => drop(answers.insert((*id).to_owned(), answer)),
            None => not_cancellable.push((*id).to_owned()),
        }
    }
    if !unanswered.is_empty() {
        return Err(InputError::Unanswered { ids: unanswered });
    }
    if has_messages && resolved.next().is_none() {
        return Ok(None);
    }
    if !not_cancellable.is_empty() {
        return Err(InputError::NotCancellable { ids: not_cancellable });
    }
    Ok((!answers.is_empty()).then_some(answers))
}

/// Returns the answer that cancels an interrupt with this response schema. Returns `None` unless
/// the interrupt is an approval or an elicitation, which may have several questions.
fn cancellation(schema: &Value) -> Option<Value> {
    let can_cancel = |question: &Value| {
        let actions = question.pointer("/properties/action/enum").and_then(Value::as_array);
        actions.is_some_and(|actions| actions.iter().any(|action| action == "cancel"))
    };
    let cancel = json!({ "action": "cancel" });
    if can_cancel(schema) {
        return Some(cancel);
    }
    let questions = schema.get("properties").and_then(Value::as_object);
    let questions = questions.filter(|questions| !questions.is_empty());
    if let Some(questions) = questions.filter(|questions| questions.values().all(can_cancel)) {
        return Some(questions.keys().map(|name| (name.clone(), cancel.clone())).collect());
    }
    let decisions = schema.get("oneOf").and_then(Value::as_array);
    let rejects = |decision: &Value| {
        decision.pointer("/properties/decision/const").is_some_and(|name| name == "reject")
    };
    decisions?.iter().any(rejects).then(|| json!({ "decision": "reject" }))
}
