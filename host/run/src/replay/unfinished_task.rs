//! Replays tasks that did not finish: tasks that failed, and tasks that wait for an answer.

use serde_json::{Value, json};
use wattle_graph::event::{TaskFailed, TaskFault, TaskFinished};
use wattle_graph::failure::Failure;
use wattle_graph::graph::Node;
use wattle_graph::plan::Task;

use super::step::{Superstep, outcome_json};
use super::{Counts, Divergence, Replay};
use crate::driver::LoggedTask;
use crate::gate::LoggedCalls;
use crate::gate::unwind::{GuestError, Unwind};
use crate::task::logged_failure;

/// The end of a task that did not finish.
enum RecordedEnd<'r> {
    /// The node failed, and was not tried again.
    Failed(&'r TaskFailed),
    /// The node waits for answers to these questions.
    Interrupted(Vec<&'r Value>),
}

impl RecordedEnd<'_> {
    /// Returns the end as a divergence shows it.
    fn to_json(&self) -> Value {
        match self {
            Self::Failed(failed) => failure_json(failed.fault, &failed.failure),
            Self::Interrupted(questions) => json!({ "questions": questions }),
        }
    }
}

impl Superstep<'_> {
    /// Executes a task that started and did not finish, up to its failure or its question.
    pub(super) async fn replay_unfinished(
        &self,
        task: &Task,
        node: &Node,
        run_context: Value,
        replay: &mut Replay,
    ) {
        let past = self.logged.task(&task.id).filter(|past| past.started_seq.is_some());
        let Some(past) = past else { return };
        let recorded = match self.recorded_end(task, past) {
            Ok(recorded) => recorded,
            Err(reason) => {
                return self.skip(task, reason, Counts::task(past.call_count()), replay);
            }
        };
        let own = self.own_calls(task, replay);
        let now = self.execute(task, node, run_context).await;
        match self.difference(task, node, &recorded, now) {
            Some(divergence) => replay.add_divergence(divergence),
            None => {
                replay.tasks += 1;
                replay.calls += own;
            }
        }
    }

    /// Returns how a task ended, or the reason why the replay cannot compare its end.
    fn recorded_end(
        &self,
        task: &Task,
        past: &LoggedTask,
    ) -> Result<RecordedEnd<'_>, &'static str> {
        let has_failed = self.logged.has_failed(&task.id);
        let end = match self.lineage.failed.get(&task.id).filter(|_| has_failed) {
            // A fork copies a failure with an error handler, and not the calls of the task.
            Some(TaskFailed { handler: Some(_), .. })
                if past.calls_by_scope.is_empty() && self.is_of_fork(task) =>
            {
                return Err(
                    "the failure was copied by a fork, or the task made no calls in a fork",
                );
            }
            Some(failed) if matches!(failed.fault, TaskFault::Failure | TaskFault::Trap) => {
                RecordedEnd::Failed(failed)
            }
            // The time, the memory and the log size of a replay differ from those of the recorded
            // run.
            Some(_) => return Err("the host ended the task, such as at a limit or a timeout"),
            None if self.lineage.is_waiting(&task.id) => {
                let open = self.lineage.pending_interrupts().into_iter().map(|it| &it.raised);
                let own = open.filter(|raised| raised.task == task.id);
                RecordedEnd::Interrupted(own.map(|raised| &raised.payload).collect())
            }
            None => return Err("the task has not ended"),
        };
        // Such calls include questions of tools, of MCP servers, and about calls in doubt.
        let own = past.calls_by_scope.get([].as_slice());
        if own.is_some_and(LoggedCalls::has_open_calls) {
            return Err("a call of the task has no result");
        }
        Ok(end)
    }

    /// Returns true if a task started in the run of a fork.
    fn is_of_fork(&self, task: &Task) -> bool {
        let run = self.logged.run_of(&task.id);
        run.is_some_and(|run| self.replay_context.recording.is_fork(run))
    }

    /// Returns the difference between the recorded and the current end of a task.
    fn difference(
        &self,
        task: &Task,
        node: &Node,
        recorded: &RecordedEnd<'_>,
        now: Result<TaskFinished, GuestError>,
    ) -> Option<Divergence> {
        let (place, then) = ((&task.id, &task.node), recorded.to_json());
        let ended = match now {
            Ok(now) => {
                let message = "the node did not finish when it was recorded, and finishes now";
                return Some(self.divergence_of(place, message, then, outcome_json(&now)));
            }
            Err(ended) => ended,
        };
        let message = match recorded {
            RecordedEnd::Failed(_) => "the node fails in another way than when it was recorded",
            RecordedEnd::Interrupted(_) => "the node asked when it was recorded, and fails now",
        };
        match (recorded, ended) {
            // A question that the log does not hold is a divergence, so this question is recorded.
            (RecordedEnd::Interrupted(_), GuestError::Unwound(Unwind::Suspended(_))) => None,
            (RecordedEnd::Failed(_), ended @ (GuestError::Failure(_) | GuestError::Trap(_))) => {
                let (fault, failure) = logged_failure(node, ended);
                let now = failure_json(fault, &failure);
                (then != now).then(|| self.divergence_of(place, message, then, now))
            }
            (_, ended) => Some(self.error_divergence(task, message, then, ended)),
        }
    }
}

/// Returns the part of a failure that is compared. Traps are compared by their kind alone: their
/// messages may name places in the compiled code.
fn failure_json(fault: TaskFault, failure: &Failure) -> Value {
    match fault {
        TaskFault::Trap => json!({ "fault": fault }),
        _ => json!({ "fault": fault, "code": failure.code, "message": failure.message }),
    }
}
