//! Selects the journal entries of a task that a fork carries over: all entries, or the entries
//! before the overridden call plus the rest of its batch.

use wattle_graph::event::Called;

use crate::driver::LoggedTask;
use crate::hostcall::stream::STREAM_READ;

/// The part of a task's journal that a fork takes over.
pub(super) struct JournalPrefix<'p> {
    pub task: &'p LoggedTask,
    end: PrefixEnd,
}

/// The end of a [`JournalPrefix`].
enum PrefixEnd {
    /// The part has no end: it is the whole journal.
    Whole,
    /// Path of the call before which the part ends, and the number of its batch.
    BeforeCall(Vec<u32>, u32),
}

impl<'p> JournalPrefix<'p> {
    /// Creates the part with all entries.
    pub(super) fn all(task: &'p LoggedTask) -> Self {
        Self { task, end: PrefixEnd::Whole }
    }

    /// Creates the part with the entries that do not depend on the call at `path`.
    pub(super) fn before(task: &'p LoggedTask, path: Vec<u32>, batch: u32) -> Self {
        Self { task, end: PrefixEnd::BeforeCall(path, batch) }
    }

    /// Returns true if the entry at a path is carried over. Calls inside of a tool call that has
    /// succeeded are not needed.
    pub(super) fn includes(&self, path: &[u32]) -> bool {
        let mut around = (1..path.len()).map(|depth| &path[..depth]);
        self.is_before(path)
            && !around.any(|around| self.is_before(around) && self.has_succeeded(around))
    }

    /// Returns true if a call has succeeded.
    pub(super) fn has_succeeded(&self, path: &[u32]) -> bool {
        self.called(path).is_some_and(|called| called.result.is_ok())
    }

    /// Returns true if the entry at a path does not depend on the call at which the part ends.
    fn is_before(&self, path: &[u32]) -> bool {
        let PrefixEnd::BeforeCall(target, batch) = &self.end else { return true };
        let differs = path.iter().zip(target).position(|(one, other)| one != other);
        // Calls that contain the end call run again; calls inside of the end call are not needed.
        let Some(level) = differs else { return false };
        path[level] < target[level] || self.is_in_batch(&path[..=level], target, *batch)
    }

    /// Returns true if a later call is in the same batch as the end call, or as a call that
    /// contains the end call.
    fn is_in_batch(&self, path: &[u32], target: &[u32], batch: u32) -> bool {
        let batch = match path.len() {
            whole if whole == target.len() => Some(batch),
            level => self.called(&target[..level]).map(|called| called.batch),
        };
        // Reads of a stream are not kept: they return the result that is overridden.
        let other = self.called(path).filter(|called| called.function != STREAM_READ);
        batch.is_some() && other.map(|called| called.batch) == batch
    }

    fn called(&self, path: &[u32]) -> Option<&'p Called> {
        let (call, scope) = path.split_last()?;
        self.task.calls_by_scope.get(scope)?.results.get(call).map(|(_, called)| called)
    }
}
