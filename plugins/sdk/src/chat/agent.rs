//! The events of an agent in the log of a thread.

use serde_json::Value;

use crate::failure::Failure;
use crate::runs::{CallStarted, Called, Event, EventKind, Streamed, TaskFinished};

/// The nodes of an agent and the channel with its conversation, by which its events are found in
/// the log of a thread.
///
/// [`Agent::steps`] and [`Agent::message`] are for an app that stores conversations in tables. They
/// are pure: the same events give the same results, so an app can apply a log again after a crash.
/// The log has more than the channel, such as the text of a model call that was cancelled.
///
/// The start of a call does not name its node, so no other node of the graph may call tools: their
/// calls would be steps without a result.
///
/// ```
/// use wattle_plugin::chat::{Agent, StepStatus};
/// use wattle_plugin::prelude::*;
///
/// const AGENT: Agent = Agent { model_node: "writer", ..Agent::DEFAULT };
///
/// // A run that is cancelled during a tool call.
/// let log = [
///     json!({"type": "streamed", "task": "t1", "node": "writer", "call": 0,
///         "deltas": [{"kind": "text", "text": "Let me add them."}]}),
///     json!({"type": "call_started", "task": "t2", "call": 0, "function": "tools.call",
///         "summary": "notes/add"}),
///     json!({"type": "run_ended", "status": "cancelled"}),
/// ];
/// let mut events = Vec::new();
/// for (mut event, seq) in log.into_iter().zip(1..) {
///     (event["seq"], event["at_ms"], event["run"]) = (json!(seq), json!(5), json!("run-7"));
///     events.push(AGENT.read(&event)?);
/// }
/// let steps = AGENT.steps(&events);
/// assert_eq!((steps[0].tool.as_str(), steps[0].status), ("add", StepStatus::Cancelled));
/// let message = AGENT.message(&events, &steps, Value::clone);
/// let message = message.ok_or_else(|| Failure::not_found("the run has no output"))?;
/// assert_eq!((message.id.as_str(), message.text()), ("msg_run-7", "Let me add them.".to_owned()));
/// # Ok::<_, Failure>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agent {
    /// The node that calls the model.
    pub model_node: &'static str,
    /// The node that calls the tools.
    pub tool_node: &'static str,
    /// The channel with the conversation, which has the reducer `messages`.
    pub channel: &'static str,
}

impl Agent {
    /// The names of a graph with the nodes of the plugin `std`: the nodes `agent` and `tools`, and
    /// the channel `messages`.
    pub const DEFAULT: Self = Self { model_node: "agent", tool_node: "tools", channel: "messages" };

    /// Reads an event and drops what an agent does not need: writes to other channels, and outputs
    /// of other calls, which can be long documents. [`Agent::steps`] and [`Agent::message`] return
    /// the same for events with and without it.
    ///
    /// # Errors
    ///
    /// `invalid` if the value is not an event.
    pub fn read(&self, event: &Value) -> Result<Event, Failure> {
        let mut event = Event::read(event)?;
        match &mut event.kind {
            EventKind::TaskFinished(task) => {
                task.writes.retain(|write| write.channel == self.channel);
            }
            EventKind::Called(called) if !self.ends_step(called) && !self.ends_turn(called) => {
                event.kind = EventKind::Other;
            }
            _ => {}
        }
        Ok(event)
    }

    /// Returns true if an event begins or ends a run or a step. Most events do not, such as deltas
    /// of texts.
    pub fn is_progress(&self, event: &Event) -> bool {
        match &event.kind {
            EventKind::RunStarted(_) | EventKind::RunEnded(_) => true,
            EventKind::CallStarted(call) => Self::begins_step(call),
            EventKind::Called(called) => self.ends_step(called),
            _ => false,
        }
    }

    /// Returns true if a node calls a tool. Calls that tools make are not steps.
    pub(super) fn begins_step(call: &CallStarted) -> bool {
        call.scope.is_empty() && call.kind.is_tool()
    }

    /// Returns true if a tool call has ended.
    pub(super) fn ends_step(&self, called: &Called) -> bool {
        called.scope.is_empty() && called.node == self.tool_node && called.kind.is_tool()
    }

    /// Returns true if a node calls a model.
    pub(super) fn begins_turn(call: &CallStarted) -> bool {
        call.scope.is_empty() && call.kind.is_model()
    }

    /// Returns true if a model call of the conversation has ended.
    pub(super) fn ends_turn(&self, called: &Called) -> bool {
        called.scope.is_empty() && called.node == self.model_node && called.kind.is_model()
    }

    /// Returns true if deltas are those of a model call of the conversation.
    pub(super) fn streams_turn(&self, streamed: &Streamed) -> bool {
        streamed.scope.is_empty() && streamed.node == self.model_node
    }

    /// Returns the messages that a task has written.
    pub(super) fn written_messages<'t>(
        &self,
        task: &'t TaskFinished,
    ) -> impl Iterator<Item = &'t Value> {
        let channel = self.channel;
        let writes = task.writes.iter().filter(move |write| write.channel == channel);
        writes.flat_map(|write| match &write.value {
            Value::Array(messages) => messages.as_slice(),
            one => std::slice::from_ref(one),
        })
    }
}
