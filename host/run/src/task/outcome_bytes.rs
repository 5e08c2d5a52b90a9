//! Size of the outcomes of a superstep that are not applied yet.
//!
//! All of these outcomes are in memory until every task of the superstep has finished. A task
//! counts its outcome before it logs the outcome, so no more than the limit is kept, even if many
//! tasks finish at the same time. If the limit is exceeded, the run fails and not the task: the
//! order of the tasks decides which task exceeds the limit, and if an error handler ran in place of
//! that task, the result would depend on this order.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wattle_graph::event::TaskFinished;
use wattle_graph::failure::Failure;
use wattle_graph::graph::Graph;
use wattle_graph::limit;
use wattle_graph::weight::outcome_weight;

use crate::run_memory::MemoryCharge;

/// Counter of the outcomes of a superstep. The default has no limit.
#[derive(Default)]
pub(crate) struct OutcomeBytes {
    allowed: Option<u64>,
    used: AtomicU64,
    is_full: AtomicBool,
    memory: MemoryCharge,
}

impl OutcomeBytes {
    /// Creates the counter of a superstep in which tasks have finished already. All outcomes also
    /// count as `memory`.
    ///
    /// # Errors
    ///
    /// `limit` if their outcomes exceed the limit or the memory of the run.
    pub(crate) fn new<'t>(
        graph: &Graph,
        finished: impl IntoIterator<Item = &'t TaskFinished>,
        memory: MemoryCharge,
    ) -> Result<Self, Failure> {
        let allowed = Some(graph.limits().step_outcome_bytes);
        let count = Self { allowed, memory, ..Self::default() };
        finished.into_iter().try_for_each(|finished| count.add(graph, finished))?;
        Ok(count)
    }

    /// Counts the outcome of a task that finishes.
    ///
    /// # Errors
    ///
    /// `limit` if the outcomes would exceed the limit or the memory of the run. The caller then
    /// starts no further task.
    pub(crate) fn add(&self, graph: &Graph, finished: &TaskFinished) -> Result<(), Failure> {
        let Some(allowed) = self.allowed else { return Ok(()) };
        let more = outcome_weight(finished);
        let sum = |used: u64| used.checked_add(more).filter(|used| *used <= allowed);
        let counted = match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum) {
            Ok(before) => self.memory.raise_to(before + more),
            Err(_) => Err(limit::step_outcome_bytes(&graph.name, allowed).to_failure()),
        };
        if counted.is_err() {
            self.is_full.store(true, Ordering::Relaxed);
        }
        counted
    }

    /// Returns true if an outcome was rejected because of the limit.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }
}
