//! Number of tasks of a run, in all of its graphs.
//!
//! Finished and running tasks count. After a crash, finished tasks are counted from the log, so a
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
    /// Number of finished and running tasks.
    counted: AtomicU64,
}

impl Default for TaskCount {
    fn default() -> Self {
        Self::new(u64::MAX, 0)
    }
}

impl TaskCount {
    /// Creates the task counter of a run that may have `allowed` tasks, of which `finished` have
    /// finished.
    pub(crate) fn new(allowed: u64, finished: u64) -> Self {
        Self { allowed, counted: AtomicU64::new(finished) }
    }

    /// Returns the number of finished and running tasks.
    pub(crate) fn counted(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }

    /// Adds finished tasks.
    pub(crate) fn add(&self, tasks: u64) {
        self.counted.fetch_add(tasks, Ordering::Relaxed);
    }

    /// Counts tasks of a graph that are about to start, before they start.
    ///
    /// # Errors
    ///
    /// [`Exceeded`] if the run would have more tasks than allowed.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        tasks: usize,
        graph: &GraphName,
    ) -> Result<RunningTasks, Exceeded> {
        let tasks = tasks as u64;
        let more = |counted: u64| {
            let counted = counted.saturating_add(tasks);
            (counted <= self.allowed).then_some(counted)
        };
        let reserved = self.counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        reserved.map_err(|_| limit::run_tasks(graph, self.allowed))?;
        Ok(RunningTasks { count: self.clone(), tasks })
    }
}

/// A reservation of running tasks. Its drop subtracts the tasks that have not finished.
pub(crate) struct RunningTasks {
    count: Arc<TaskCount>,
    tasks: u64,
}

impl RunningTasks {
    /// Records that one of the tasks has finished.
    pub(crate) fn finish_one(&mut self) {
        self.tasks = self.tasks.saturating_sub(1);
    }
}

impl Drop for RunningTasks {
    fn drop(&mut self) {
        self.count.counted.fetch_sub(self.tasks, Ordering::Relaxed);
    }
}

/// Returns the number of finished tasks of a run according to the log.
pub(crate) fn finished_in_log(tuple: &CheckpointTuple, run: &RunId) -> u64 {
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
    fn task_count_subtracts_unfinished_tasks() {
        let count = Arc::new(TaskCount::new(10, 4));
        let graph = GraphName::new("g").unwrap();
        let mut running = count.reserve(6, &graph).unwrap();
        let refused = count.reserve(1, &graph).err();
        assert_eq!(refused.map(|exceeded| exceeded.limit), Some("run_tasks"));
        running.finish_one();
        drop(running);
        assert_eq!(count.counted(), 5);
    }
}
