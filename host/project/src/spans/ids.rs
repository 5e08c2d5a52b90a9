//! Ids of traces and spans. They are derived from the log, so spans that are sent again keep their
//! ids.

use wattle_graph::id::{Digest, RunId, TaskId};

use crate::spans::span::{SpanId, TraceId};

/// A host call of a run. A call that failed may be repeated under the same number; the parameter
/// `repeat` of [`of_call`] distinguishes these calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallKey {
    pub(super) task: TaskId,
    pub(super) scope: Vec<u32>,
    pub(super) call: u32,
}

impl CallKey {
    pub(super) fn new(task: &TaskId, scope: &[u32], call: u32) -> Self {
        Self { task: task.clone(), scope: scope.to_vec(), call }
    }

    /// Returns the tool call that made this call.
    pub(super) fn outer(&self) -> Option<Self> {
        let (call, scope) = self.scope.split_last()?;
        Some(Self::new(&self.task, scope, *call))
    }
}

pub(super) fn of_trace(run: &RunId) -> TraceId {
    digest(&format!("trace\n{run}"))
}

pub(super) fn of_run(run: &RunId) -> SpanId {
    digest(&format!("run\n{run}"))
}

pub(super) fn of_task(run: &RunId, task: &TaskId) -> SpanId {
    digest(&format!("task\n{run}\n{task}"))
}

pub(super) fn of_call(run: &RunId, key: &CallKey, repeat: u32) -> SpanId {
    let CallKey { task, scope, call } = key;
    digest(&format!("call\n{run}\n{task}\n{scope:?}\n{call}\n{repeat}"))
}

/// Returns the first bytes of the digest of a text.
fn digest<const BYTES: usize>(text: &str) -> [u8; BYTES] {
    let mut id = [0; BYTES];
    id.copy_from_slice(&Digest::of(text.as_bytes()).as_bytes()[..BYTES]);
    id
}
