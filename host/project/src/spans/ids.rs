//! Ids of traces and spans. The ids are derived from the log, so the spans of a log have the same
//! ids if they are sent again.

use wattle_graph::id::{CallKey, Digest, RunId, TaskId};

use crate::spans::span::{SpanId, TraceId};

pub(super) fn of_trace(run: &RunId) -> TraceId {
    digest(&format!("trace\n{run}"))
}

pub(super) fn of_run(run: &RunId) -> SpanId {
    digest(&format!("run\n{run}"))
}

pub(super) fn of_task(run: &RunId, task: &TaskId) -> SpanId {
    digest(&format!("task\n{run}\n{task}"))
}

/// Returns the id of a call of a run. `repeat` distinguishes repetitions of a failed call under the
/// same key.
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
