//! Events of a thread, as far as they mean something to a session.

use wattle_plugin::prelude::{Deserialize, Failure, Value, code, runs};

use crate::channel;

/// Events that are read at once. Some carry all that a video says, so a page is small.
const PAGE: u32 = 100;

/// The node that talks.
pub(crate) const AGENT: &str = "agent";

/// The node that calls tools.
pub(crate) const TOOLS: &str = "tools";

const TOOL_CALL: &str = "tools.call";

/// One event.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Event {
    /// Position in the log.
    pub(crate) seq: u64,
    /// When.
    pub(crate) at_ms: i64,
    /// The run.
    pub(crate) run: String,
    /// What happened.
    #[serde(flatten)]
    pub(crate) kind: Kind,
}

/// What happened.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A run began, or went on after a restart.
    RunStarted {
        /// `input`, `recovery` and so on.
        #[serde(default)]
        reason: String,
    },
    /// A run ended.
    RunEnded(Ended),
    /// A task ended well.
    TaskFinished(TaskFinished),
    /// A call began.
    CallStarted(CallStarted),
    /// Pieces of a model's answer arrived.
    Streamed(Streamed),
    /// A call was answered.
    Called(Box<Called>),
    /// Anything else.
    #[serde(other)]
    Other,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Ended {
    /// `completed`, `failed`, `cancelled` or `interrupted`.
    pub(crate) status: String,
    /// Why, if it failed.
    #[serde(default)]
    pub(crate) failure: Option<Value>,
}

/// A task that ended well.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct TaskFinished {
    /// Its node.
    pub(crate) node: String,
    /// What it wrote.
    #[serde(default)]
    pub(crate) writes: Vec<Write>,
}

/// A write to a channel.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Write {
    /// The channel.
    pub(crate) channel: String,
    /// The value.
    pub(crate) value: Value,
}

/// A call that began.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CallStarted {
    /// The task.
    pub(crate) task: String,
    #[serde(default)]
    scope: Vec<u32>,
    /// Its number in the task.
    pub(crate) call: u32,
    function: String,
    /// The tool, for a call of one.
    #[serde(default)]
    pub(crate) summary: String,
}

/// Pieces of a model's answer.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Streamed {
    /// The task.
    pub(crate) task: String,
    node: String,
    #[serde(default)]
    scope: Vec<u32>,
    /// The call.
    pub(crate) call: u32,
    /// The pieces.
    pub(crate) deltas: Vec<Delta>,
}

/// A piece of a model's answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Delta {
    /// Text.
    Text {
        /// The piece.
        text: String,
    },
    /// What it thinks.
    Reasoning {
        /// The piece.
        text: String,
    },
    /// What came before is void.
    Restart,
    /// Anything else.
    #[serde(other)]
    Other,
}

/// A call that was answered.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Called {
    /// The task.
    pub(crate) task: String,
    node: String,
    #[serde(default)]
    scope: Vec<u32>,
    /// Its number in the task.
    pub(crate) call: u32,
    function: String,
    /// The answer.
    pub(crate) result: Result<Value, Value>,
    /// How long it took.
    #[serde(default)]
    pub(crate) duration_us: u64,
    /// The tool, for a call of one.
    #[serde(default)]
    pub(crate) summary: String,
}

impl Event {
    /// Whether it changes what is known of a session: pieces of text come by the hundred.
    pub(crate) fn matters(&self) -> bool {
        match &self.kind {
            Kind::RunStarted { .. } | Kind::RunEnded(_) => true,
            Kind::CallStarted(call) => call.is_tool(),
            Kind::Called(called) => called.is_tool(),
            _ => false,
        }
    }
}

impl CallStarted {
    /// Whether the graph calls a tool: what tools do inside is none of the session's business.
    pub(crate) fn is_tool(&self) -> bool {
        self.scope.is_empty() && self.function == TOOL_CALL
    }

    /// Whether the graph asks a model.
    pub(crate) fn is_model(&self) -> bool {
        self.scope.is_empty() && is_model(&self.function)
    }
}

impl Called {
    /// Whether the graph called a tool.
    pub(crate) fn is_tool(&self) -> bool {
        self.scope.is_empty() && self.node == TOOLS && self.function == TOOL_CALL
    }

    /// Whether the graph asked a model.
    pub(crate) fn is_model(&self) -> bool {
        self.scope.is_empty() && self.node == AGENT && is_model(&self.function)
    }
}

impl Streamed {
    /// Whether it is part of the conversation.
    pub(crate) fn is_talk(&self) -> bool {
        self.scope.is_empty() && self.node == AGENT
    }
}

fn is_model(function: &str) -> bool {
    matches!(function, "llm.complete" | "llm.stream")
}

/// The events of one run.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Its id.
    pub(crate) id: String,
    /// In order, never none.
    pub(crate) events: Vec<Event>,
}

impl Run {
    /// The event with which it ended, when, and how.
    pub(crate) fn ended(&self) -> Option<(u64, i64, &Ended)> {
        self.events.iter().rev().find_map(|event| match &event.kind {
            Kind::RunEnded(ended) => Some((event.seq, event.at_ms, ended)),
            _ => None,
        })
    }
}

/// Puts the events of each run together. Runs of a thread follow each other.
pub(crate) fn runs_of(events: Vec<Event>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for event in events {
        match runs.last_mut().filter(|run| run.id == event.run) {
            Some(run) => run.events.push(event),
            None => runs.push(Run { id: event.run.clone(), events: vec![event] }),
        }
    }
    runs
}

/// All events of a thread after one; `None` if there is no such thread.
pub(crate) fn events(thread_id: &str, after: u64) -> Result<Option<Vec<Event>>, Failure> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let seen = events.last().map_or(after, |event| event.seq);
        let page = match runs::events(thread_id, seen, PAGE) {
            Err(failure) if failure.code == code::NOT_FOUND => return Ok(None),
            page => page?,
        };
        let is_last = page.len() < PAGE as usize;
        for event in page {
            events.push(read(event)?);
        }
        if is_last {
            return Ok(Some(events));
        }
    }
}

/// An event without what is of no use here: tasks write and calls answer long documents.
///
/// # Errors
///
/// It is none.
pub(crate) fn read(event: Value) -> Result<Event, Failure> {
    let mut event: Event = serde_json::from_value(event)?;
    match &mut event.kind {
        Kind::TaskFinished(task) => {
            task.writes.retain(|write| write.channel == channel::MESSAGES);
        }
        Kind::Called(called) if !called.is_tool() && !called.is_model() => {
            event.kind = Kind::Other;
        }
        _ => {}
    }
    Ok(event)
}
