//! Answers that a cancelled run paid for and that nothing came of.
//!
//! A cancel cuts tasks whose models may have answered already. If the next run makes the same call,
//! it is given that answer, once. A run that completed or failed ends the search: after the one,
//! who asks the same again wants it done again; after the other, a bad answer must not come back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use wattle_graph::checkpoint::Source;
use wattle_graph::event::{Called, Event, EventKind, RunStatus};
use wattle_graph::id::{Digest, RunId, TaskId};

use crate::call::HostCall;
use crate::call::image::ImageRequest;
use crate::call::llm::CompletionRequest;
use crate::call::tools::ToolRequest;
use crate::limit;
use crate::ports::store::RunRecord;

/// Calls whose answers cost money and change nothing outside.
const FUNCTIONS: [&str; 2] = [CompletionRequest::FUNCTION, ImageRequest::FUNCTION];

/// Answers that may still be used, by function and request; those of one request in their order.
#[derive(Default)]
pub(crate) struct Salvage(Mutex<BTreeMap<(String, Digest), VecDeque<Salvaged>>>);

/// An answer that may still be used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Salvaged {
    /// Sequence number of its entry in the log.
    pub seq: u64,
    /// The answer.
    pub answer: Value,
}

/// Where the cancelled runs begin that directly precede a run; `None` if none does.
pub(crate) fn first_seq(runs: &[RunRecord], run: &RunId) -> Option<u64> {
    let before = runs.iter().rev().filter(|known| known.id != *run);
    let cancelled = before.take_while(|known| known.status == RunStatus::Cancelled);
    cancelled.take(limit::SALVAGED_RUNS).last().map(|first| first.first_seq)
}

impl Salvage {
    /// What is left of the runs whose events are given, and of `run` itself if it was begun
    /// before. Tasks that go on from their journals have no part in it.
    pub(crate) fn of(events: &[Event], run: &RunId, goes_on: impl Fn(&TaskId) -> bool) -> Self {
        let mut tasks = Tasks::default();
        for event in events {
            tasks.happen(event, event.run == *run);
        }
        let Tasks { open, reused } = tasks;
        let mut left: Vec<Paid> = open.into_values().flat_map(Cut::lost).collect();
        left.retain(|paid| !goes_on(&paid.called.task) && !reused.contains(&paid.seq));
        left.sort_by_key(|paid| paid.seq);
        let mut pool: BTreeMap<_, VecDeque<_>> = BTreeMap::new();
        for Paid { seq, called } in left {
            let Ok(answer) = called.result else { continue };
            let key = (called.function, called.digest);
            pool.entry(key).or_default().push_back(Salvaged { seq, answer });
        }
        Self(Mutex::new(pool))
    }

    /// Takes the oldest answer to a request. No code that can panic runs under the lock.
    pub(crate) fn take(&self, function: &str, digest: Digest) -> Option<Salvaged> {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.is_empty() {
            return None;
        }
        pool.get_mut(&(function.to_owned(), digest))?.pop_front()
    }
}

/// The tasks of some runs, as far as nothing came of them.
#[derive(Default)]
struct Tasks {
    open: BTreeMap<TaskId, Cut>,
    /// Entries whose answers were used again.
    reused: BTreeSet<u64>,
}

/// What is known of a task.
#[derive(Default)]
struct Cut {
    /// Whether it has finished in the superstep that is under way.
    finished: bool,
    paid: Vec<Paid>,
    /// Places of tools that answered: what was called inside of them has served.
    tools: BTreeSet<Vec<u32>>,
}

struct Paid {
    seq: u64,
    called: Called,
}

impl Tasks {
    fn happen(&mut self, event: &Event, is_own: bool) {
        match &event.kind {
            EventKind::Called(called) => {
                self.reused.extend(called.reused);
                if !is_own {
                    self.open.entry(called.task.clone()).or_default().called(event.seq, called);
                }
            }
            // The answer may be what it failed of.
            EventKind::TaskFailed(failed) => drop(self.open.remove(&failed.task)),
            EventKind::TaskFinished(finished) => {
                if let Some(cut) = self.open.get_mut(&finished.task) {
                    cut.finished = true;
                }
            }
            // A superstep whose tasks have all finished becomes state.
            EventKind::Checkpointed(made) if made.source == Source::Loop => {
                self.open.retain(|_, cut| !cut.finished);
            }
            // One that a new input leaves behind never does.
            EventKind::Checkpointed(_) => {
                self.open.values_mut().for_each(|cut| cut.finished = false);
            }
            _ => {}
        }
    }
}

impl Cut {
    fn called(&mut self, seq: u64, called: &Called) {
        if called.function == ToolRequest::FUNCTION {
            self.tools.insert(place(called));
        } else if FUNCTIONS.contains(&called.function.as_str()) && called.result.is_ok() {
            self.paid.push(Paid { seq, called: called.clone() });
        }
    }

    fn lost(self) -> Vec<Paid> {
        let Self { paid, tools, .. } = self;
        let has_served = |paid: &Paid| {
            let scope = &paid.called.scope;
            (1..=scope.len()).any(|depth| tools.contains(&scope[..depth]))
        };
        paid.into_iter().filter(|paid| !has_served(paid)).collect()
    }
}

/// The path that leads to a call, which is the scope of what is called inside of it.
fn place(called: &Called) -> Vec<u32> {
    called.scope.iter().copied().chain([called.call]).collect()
}
