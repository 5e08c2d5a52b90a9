//! Number of tasks of a run, in all of its graphs.
//!
//! Finished and running tasks count. After a crash the finished ones are counted from the log, so a
//! run reaches its limit at the same number of tasks as without the crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wattle_graph::event::EventKind;
use wattle_graph::id::{GraphName, RunId};
use wattle_graph::limit::{self, Exceeded};

use crate::ports::store::CheckpointTuple;

/// Counter of a run's tasks.
pub(crate) struct TaskCount {
    allowed: u64,
    taken: AtomicU64,
}

impl Default for TaskCount {
    fn default() -> Self {
        Self::new(u64::MAX, 0)
    }
}

impl TaskCount {
    /// Creates the counter of a run with `finished` finished tasks.
    pub(crate) fn new(allowed: u64, finished: u64) -> Self {
        Self { allowed, taken: AtomicU64::new(finished) }
    }

    /// Returns the number of finished and running tasks.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Adds finished tasks.
    pub(crate) fn add(&self, tasks: u64) {
        self.taken.fetch_add(tasks, Ordering::Relaxed);
    }

    /// Counts tasks of a graph that are about to start.
    pub(crate) fn take(
        self: &Arc<Self>,
        tasks: usize,
        graph: &GraphName,
    ) -> Result<Running, Exceeded> {
        let tasks = tasks as u64;
        let more = |taken: u64| {
            let taken = taken.saturating_add(tasks);
            (taken <= self.allowed).then_some(taken)
        };
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map_err(|_| limit::run_tasks(graph, self.allowed))?;
        Ok(Running { count: self.clone(), tasks })
    }
}

/// Running tasks. Dropping it subtracts those that have not finished.
pub(crate) struct Running {
    count: Arc<TaskCount>,
    tasks: u64,
}

impl Running {
    /// Records that one of them has finished.
    pub(crate) fn finished(&mut self) {
        self.tasks = self.tasks.saturating_sub(1);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.count.taken.fetch_sub(self.tasks, Ordering::Relaxed);
    }
}

/// Returns the number of finished tasks of a run according to the log.
pub(crate) fn finished(tuple: &CheckpointTuple, run: &RunId) -> u64 {
    let meta = &tuple.checkpoint.meta;
    let before = if meta.run == *run { meta.tasks } else { 0 };
    let since = tuple
        .events
        .iter()
        .filter(|event| event.run == *run && matches!(event.kind, EventKind::TaskFinished(_)));
    before + since.count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_tasks_are_subtracted() {
        let count = Arc::new(TaskCount::new(10, 4));
        let graph = GraphName::new("g").unwrap();
        let mut running = count.take(6, &graph).unwrap();
        assert_eq!(count.take(1, &graph).err().map(|exceeded| exceeded.limit), Some("run_tasks"));
        running.finished();
        drop(running);
        assert_eq!(count.taken(), 5);
    }
}
