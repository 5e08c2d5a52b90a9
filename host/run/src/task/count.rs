//! How many tasks a run has, in all of its graphs.
//!
//! Those that have finished and those under way count; the former are counted again from the log
//! when the run goes on after a crash. So the count follows from what has happened, and a run that
//! was cut reaches its limit at the same number of tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wattle_graph::event::EventKind;
use wattle_graph::id::{GraphName, RunId};
use wattle_graph::limit::{self, Exceeded};

use crate::ports::store::CheckpointTuple;

/// Tasks of a run.
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
    /// Of a run that has finished so many tasks.
    pub(crate) fn new(allowed: u64, finished: u64) -> Self {
        Self { allowed, taken: AtomicU64::new(finished) }
    }

    /// Tasks that have finished or are under way.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Counts tasks that have finished.
    pub(crate) fn add(&self, tasks: u64) {
        self.taken.fetch_add(tasks, Ordering::Relaxed);
    }

    /// Counts tasks of a graph that are to begin.
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

/// Tasks under way. Those that do not finish are given back.
pub(crate) struct Running {
    count: Arc<TaskCount>,
    tasks: u64,
}

impl Running {
    /// One of them has finished.
    pub(crate) fn finished(&mut self) {
        self.tasks = self.tasks.saturating_sub(1);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.count.taken.fetch_sub(self.tasks, Ordering::Relaxed);
    }
}

/// How many tasks a run has finished, as far as the log says.
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
    fn what_does_not_finish_is_given_back() {
        let count = Arc::new(TaskCount::new(10, 4));
        let graph = GraphName::new("g").unwrap();
        let mut running = count.take(6, &graph).unwrap();
        assert_eq!(count.take(1, &graph).err().map(|exceeded| exceeded.limit), Some("run_tasks"));
        running.finished();
        drop(running);
        assert_eq!(count.taken(), 5);
    }
}
