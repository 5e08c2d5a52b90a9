//! What of a task's journal a fork takes over: all of it, or what comes before the call whose answer
//! is replaced and what was called together with that.

use wattle_graph::event::Called;

use crate::driver::PastTask;
use crate::hostcall::stream::LOOK;

/// The part of a journal that is taken over.
pub(super) struct Part<'p> {
    pub past: &'p PastTask,
    end: End,
}

/// Where it ends.
enum End {
    /// Nowhere.
    Open,
    /// At a call, with the number of its batch.
    At(Vec<u32>, u32),
}

impl<'p> Part<'p> {
    /// All of it.
    pub(super) fn all(past: &'p PastTask) -> Self {
        Self { past, end: End::Open }
    }

    /// What does not depend on the call at `path`.
    pub(super) fn before(past: &'p PastTask, path: Vec<u32>, batch: u32) -> Self {
        Self { past, end: End::At(path, batch) }
    }

    /// Whether what stands at a path is taken over. What was called inside of a tool that has
    /// answered has served.
    pub(super) fn has(&self, path: &[u32]) -> bool {
        let mut around = (1..path.len()).map(|depth| &path[..depth]);
        self.is_before(path)
            && !around.any(|around| self.is_before(around) && self.has_answer(around))
    }

    /// Whether a call was answered well.
    pub(super) fn has_answer(&self, path: &[u32]) -> bool {
        self.called(path).is_some_and(|called| called.result.is_ok())
    }

    /// Whether what stands at a path does not depend on where the part ends.
    fn is_before(&self, path: &[u32]) -> bool {
        let End::At(target, batch) = &self.end else { return true };
        let differs = path.iter().zip(target).position(|(one, other)| one != other);
        // What is around the call runs again; what is inside of it is not needed.
        let Some(level) = differs else { return false };
        path[level] < target[level] || self.is_of_batch(&path[..=level], target, *batch)
    }

    /// Whether a later call was made together with the one at the end, or with one that is around
    /// it.
    fn is_of_batch(&self, path: &[u32], target: &[u32], batch: u32) -> bool {
        let batch = match path.len() {
            whole if whole == target.len() => Some(batch),
            level => self.called(&target[..level]).map(|called| called.batch),
        };
        // Looks at a streamed answer show what was replaced.
        let other = self.called(path).filter(|called| called.function != LOOK);
        batch.is_some() && other.map(|called| called.batch) == batch
    }

    fn called(&self, path: &[u32]) -> Option<&'p Called> {
        let (call, scope) = path.split_last()?;
        self.past.scopes.get(scope)?.answered.get(call).map(|(_, called)| called)
    }
}

/// A call's scope and number as one path.
pub(super) fn path(scope: &[u32], call: u32) -> Vec<u32> {
    scope.iter().copied().chain([call]).collect()
}
