//! Events of tool calls.
//!
//! The start event of a call has the id that the model gave. Older hosts wrote this id only into
//! the result, so the start of such a call is sent together with its end.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::call::CallKind;
use wattle_graph::event::{
    CallStarted, Called, Event, EventKind, RunStatus, TaskFailed, TaskFinished,
};
use wattle_graph::failure::Failure;
use wattle_graph::id::{Namespace, RunId, TaskId};

use crate::agent_server::message;
use crate::agent_server::thread_info::ThreadInfo;
use crate::agent_server::tool_call::{ToolError, ToolRequest, text};

/// Error of a tool call whose run was cancelled.
const CANCELLED: &str = "the run was cancelled before the tool returned a result";

/// The tool calls of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolCalls {
    /// Arguments of calls without a result; the keys are call ids. The log omits the arguments of
    /// large requests, but messages contain them. The end of a completed run clears the map, so
    /// that a stream can start after the run.
    arguments: BTreeMap<String, Value>,
    /// Open calls. The keys are the task and the call number.
    pending: BTreeMap<(TaskId, u32), PendingToolCall>,
    /// Calls with a result, until the root graph's task that made them ends. That task may write
    /// the messages with their results.
    ended: Vec<(TaskId, PendingToolCall)>,
}

/// An open call.
#[derive(Clone, Debug)]
struct PendingToolCall {
    /// Id that the model gave.
    id: String,
    /// Graph that made the call.
    namespace: Namespace,
    /// Run that started or continued the call.
    run: RunId,
    /// Whether no task continues the call: its task has ended, or a new run has not started the
    /// task again.
    is_abandoned: bool,
}

impl ToolCalls {
    /// Applies an event and returns the events of tool calls, each with the graph that made the
    /// call.
    pub(super) fn apply(
        &mut self,
        event: &Event,
        thread_info: &ThreadInfo,
    ) -> Vec<(Namespace, Value)> {
        let here = |data: Value| (event.namespace.clone(), data);
        match &event.kind {
            EventKind::CallStarted(started) => {
                self.begin(event, started).map(here).into_iter().collect()
            }
            EventKind::Called(called) => self.end(called).into_iter().map(here).collect(),
            EventKind::RunStarted(_) if event.namespace.is_root() => {
                self.pending.values_mut().for_each(|begun| begun.is_abandoned = true);
                Vec::new()
            }
            EventKind::TaskStarted(started) => {
                let own = self.pending.iter_mut().filter(|((task, _), _)| *task == started.task);
                own.for_each(|(_, begun)| begun.is_abandoned = false);
                Vec::new()
            }
            EventKind::TaskFinished(finished) => self.hear(event, finished, thread_info),
            EventKind::TaskFailed(TaskFailed { task, node, failure, .. }) => {
                let inside = |graph: &Namespace| graph.is_run_by(&event.namespace, task, node);
                self.cut(|it, begun| it == task || inside(&begun.namespace), failure)
            }
            EventKind::RunEnded(ended) if event.namespace.is_root() => match ended.status {
                // A tool that waits for an answer continues in the next run.
                RunStatus::Interrupted | RunStatus::Pending | RunStatus::Running => Vec::new(),
                RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => {
                    self.ended.clear();
                    if ended.status == RunStatus::Completed {
                        self.arguments.clear();
                    }
                    let cancelled = || Failure::new("cancelled", CANCELLED);
                    let why = ended.failure.clone().unwrap_or_else(cancelled);
                    self.cut(|_, _| true, &why)
                }
            },
            _ => Vec::new(),
        }
    }

    /// Returns the id of the tool call that runs a subgraph. Returns `None` if no model requested
    /// the call.
    pub(super) fn around(&self, namespace: &Namespace) -> Option<&str> {
        let level = namespace.as_str().rsplit('|').next()?;
        let mut place = level.split_once(':')?.1.split('.').skip(1);
        let call = place.next()?.parse().ok()?;
        // The call path of a subgraph that the node itself started has only one number.
        place.next()?;
        self.pending.get(&(namespace.task()?, call)).map(|begun| begun.id.as_str())
    }

    fn begin(&mut self, event: &Event, started: &CallStarted) -> Option<Value> {
        if started.kind() != Some(CallKind::CallTool) || !started.scope.is_empty() {
            return None;
        }
        let asked = ToolRequest::read(started.request.as_ref()?)?;
        let place = (started.task.clone(), started.call);
        // The start of a call that continues after an interrupt or a crash was already sent. After
        // a command or a fork, another task continues the call. Two tasks of one run whose calls
        // have the same id have two calls.
        let goes_on = |at: &(TaskId, u32), begun: &mut PendingToolCall| {
            *at == place || (begun.id == asked.id && at.0 != place.0 && begun.run != event.run)
        };
        let is_new = self.pending.extract_if(.., goes_on).count() == 0;
        let (id, namespace, run) =
            (asked.id.to_owned(), event.namespace.clone(), event.run.clone());
        self.pending.insert(place, PendingToolCall { id, namespace, run, is_abandoned: false });
        is_new.then(|| self.began(&asked))
    }

    fn end(&mut self, called: &Called) -> Vec<Value> {
        // The start and the end of a call that a fork carries over were sent in the run that made
        // the call.
        if called.kind() != Some(CallKind::CallTool)
            || !called.scope.is_empty()
            || called.reused.is_some()
        {
            return Vec::new();
        }
        let begun = self.pending.remove(&(called.task.clone(), called.call));
        let has_begun = begun.is_some();
        self.ended.extend(begun.map(|begun| (called.task.clone(), begun)));
        let Some(asked) = ToolRequest::read(&called.request) else { return Vec::new() };
        let begin = (!has_begun).then(|| self.began(&asked));
        begin.into_iter().chain([ended(called, &asked)]).collect()
    }

    /// Returns the start event of a call.
    fn began(&self, asked: &ToolRequest<'_>) -> Value {
        let input = asked.arguments.or_else(|| self.arguments.get(asked.id));
        json!({
            "event": "tool-started",
            "tool_call_id": asked.id,
            "tool_name": asked.name(),
            "input": input,
        })
    }

    /// Records the calls that models request. Ends the abandoned calls whose results the messages
    /// contain.
    fn hear(
        &mut self,
        event: &Event,
        finished: &TaskFinished,
        thread_info: &ThreadInfo,
    ) -> Vec<(Namespace, Value)> {
        let TaskFinished { task, node, .. } = finished;
        let is_own = |it: &TaskId, begun: &PendingToolCall| {
            it == task || begun.namespace.is_run_by(&event.namespace, task, node)
        };
        let mut over = Vec::new();
        let writes = finished.writes.iter();
        for write in writes.filter(|write| thread_info.channels.contains(write.channel.as_str())) {
            let messages =
                write.value.as_array().map_or(std::slice::from_ref(&write.value), |it| it);
            for message in messages {
                let calls = message.get("tool_calls").and_then(Value::as_array);
                self.arguments.extend(calls.into_iter().flatten().filter_map(wanted));
                if let Some(id) = message.get("tool_call_id").and_then(Value::as_str) {
                    self.arguments.remove(id);
                    over.extend(self.close(id, &text(message), is_own));
                }
            }
        }
        let left = self.pending.iter_mut().filter(|((it, _), begun)| is_own(it, begun));
        left.for_each(|(_, begun)| begun.is_abandoned = true);
        if event.namespace.is_root() {
            self.ended.retain(|(it, begun)| !is_own(it, begun));
        }
        over
    }

    /// Ends the open calls with this id, whose result a tool message contains. If the writing task
    /// or one of its subgraphs has or had such a call, only the open calls of this task end.
    /// Otherwise all abandoned calls with this id end.
    fn close(
        &mut self,
        id: &str,
        why: &str,
        is_own: impl Fn(&TaskId, &PendingToolCall) -> bool,
    ) -> Vec<(Namespace, Value)> {
        let is_meant =
            |task: &TaskId, begun: &PendingToolCall| begun.id == id && is_own(task, begun);
        let has_own = self.pending.iter().any(|((task, _), begun)| is_meant(task, begun))
            || self.ended.iter().any(|(task, begun)| is_meant(task, begun));
        let closed = self.pending.extract_if(.., |(task, _), begun| {
            if has_own { is_meant(task, begun) } else { begun.id == id && begun.is_abandoned }
        });
        closed.map(|(_, it)| (it.namespace, failed(id, why, None))).collect()
    }

    /// Ends calls that cannot get a result. The calls of the innermost graphs end first.
    fn cut(
        &mut self,
        is_cut: impl Fn(&TaskId, &PendingToolCall) -> bool,
        why: &Failure,
    ) -> Vec<(Namespace, Value)> {
        let cut = self.pending.extract_if(.., |(task, _), begun| is_cut(task, begun));
        let mut cut: Vec<PendingToolCall> = cut.map(|(_, begun)| begun).collect();
        cut.sort_by_key(|begun| std::cmp::Reverse(begun.namespace.depth()));
        let say = |begun: PendingToolCall| {
            let said = failed(&begun.id, &why.message, Some(&why.code));
            (begun.namespace, said)
        };
        cut.into_iter().map(say).collect()
    }
}

/// Returns the id and the arguments of a call in a message.
fn wanted(call: &Value) -> Option<(String, Value)> {
    let id = call.get("id")?.as_str()?.to_owned();
    Some((id, call.get("arguments").cloned().unwrap_or_default()))
}

fn ended(called: &Called, asked: &ToolRequest<'_>) -> Value {
    match asked.result(called) {
        Ok(mut output) => {
            message::compact(&mut output);
            json!({ "event": "tool-finished", "tool_call_id": asked.id, "output": output })
        }
        Err(ToolError { message, code }) => failed(asked.id, &message, code),
    }
}

fn failed(id: &str, message: &str, code: Option<&str>) -> Value {
    let mut error = json!({ "event": "tool-error", "tool_call_id": id, "message": message });
    if let Some(code) = code {
        error["code"] = code.into();
    }
    error
}

#[cfg(test)]
mod tests;
