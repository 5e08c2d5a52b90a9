//! Reuse of results that a cancelled run obtained and did not use.
//!
//! A cancel can discard completed model calls. The next run of the thread reuses each such result
//! once, if it makes an equal call. The scan stops at a completed run, whose caller wants new
//! results, and at a failed run, whose results may be the cause.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{Called, Event, EventKind, RunStatus};
use wattle_graph::id::{Digest, RunId, TaskId, path_of_call};
use wattle_graph::llm::{CompletionRequest, ImageRequest};
use wattle_graph::tool::ToolRequest;

use crate::hostcall::HostCall;
use crate::json::approx_bytes;
use crate::limit;
use crate::ports::store::{RunSummary, Store, StoreError, ThreadHead};
use crate::tail::range::EventRange;

/// Functions whose results cost money and that have no effect outside of the host.
const REUSABLE_FUNCTIONS: [&str; 2] = [CompletionRequest::FUNCTION, ImageRequest::FUNCTION];

/// Reusable results by function and request digest. Results of one request are in log order.
#[derive(Default)]
pub(crate) struct ReusableResults(Mutex<BTreeMap<(String, Digest), VecDeque<ReusableResult>>>);

/// A reusable result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReusableResult {
    /// Sequence number of the journal entry.
    pub seq: u64,
    /// The output.
    pub output: Value,
}

/// Scans the cancelled runs that directly precede `run`, and `run` itself if it started before.
///
/// # Errors
///
/// [`StoreError`] if the log cannot be read.
pub(crate) async fn scan(
    store: &dyn Store,
    head: &ThreadHead,
    run: &RunId,
) -> Result<ReuseScan, StoreError> {
    let thread = &head.record.id;
    let mut search = ReuseScan::new(run.clone(), limit::REUSE_BYTES);
    let Some(newest) = &head.record.run else { return Ok(search) };
    if newest != run {
        let newest = store.run(newest).await?;
        if newest.is_none_or(|newest| newest.status != RunStatus::Cancelled) {
            return Ok(search);
        }
    }
    // One run more than the limit, because `run` itself may be the newest.
    let most = limit::REUSE_SCAN_RUNS + 1;
    let mut newest: Vec<RunSummary> = Vec::new();
    let mut is_last = false;
    while !is_last && newest.len() < most {
        let page = store.newest_runs(thread, newest.len(), most - newest.len()).await?;
        is_last = page.is_last || page.items.is_empty();
        newest.extend(page.items.iter().map(RunSummary::from));
    }
    let Some(first) = first_seq(&newest, run) else { return Ok(search) };
    let mut events = EventRange::new(store, thread, first.saturating_sub(1), head.last_seq);
    while let Some(page) = events.next().await? {
        for event in &page {
            search.apply(event);
        }
    }
    Ok(search)
}

/// Returns the sequence number at which the cancelled runs start that directly precede a run;
/// `None` if no cancelled run precedes it. `newest` is ordered from the newest to the oldest run.
/// Runs that have not started have no events, and do not separate the runs around them.
fn first_seq(newest: &[RunSummary], run: &RunId) -> Option<u64> {
    let before = newest.iter().filter(|known| known.id != *run && known.started_ms.is_some());
    let cancelled = before.take_while(|known| known.status == RunStatus::Cancelled);
    cancelled.take(limit::REUSE_SCAN_RUNS).last().map(|first| first.first_seq)
}

impl ReusableResults {
    /// Takes the oldest result of a request. No code that can panic runs under the lock.
    pub(crate) fn take(&self, function: &str, digest: Digest) -> Option<ReusableResult> {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.is_empty() {
            return None;
        }
        pool.get_mut(&(function.to_owned(), digest))?.pop_front()
    }
}

/// Scan for unused results: the tasks of cancelled runs, folded event by event. Results are
/// candidates until the scan shows that they were used.
pub(crate) struct ReuseScan {
    /// The run that starts.
    run: RunId,
    limit_bytes: u64,
    tasks: BTreeMap<TaskId, CancelledTask>,
    /// Results of the tasks, by sequence number.
    candidates: BTreeMap<u64, CandidateResult>,
    /// Approximate size of `candidates` in bytes.
    bytes: u64,
}

/// A task of a cancelled run.
#[derive(Default)]
struct CancelledTask {
    /// True if the task finished in the current superstep.
    finished: bool,
    /// Sequence numbers of its results.
    results: Vec<u64>,
    /// Call paths of completed tool calls. The results of calls inside of them were used.
    tools: BTreeSet<Vec<u32>>,
}

/// A result of a cancelled run.
struct CandidateResult {
    scope: Vec<u32>,
    function: String,
    digest: Digest,
    output: Value,
    bytes: u64,
}

impl ReuseScan {
    fn new(run: RunId, limit_bytes: u64) -> Self {
        let (tasks, candidates) = (BTreeMap::new(), BTreeMap::new());
        Self { run, limit_bytes, tasks, candidates, bytes: 0 }
    }

    /// Applies the next event.
    fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Called(called) => {
                if let Some(seq) = called.reused {
                    self.discard(seq);
                }
                if event.run != self.run {
                    self.called(event.seq, called);
                }
            }
            // The result may be the cause of the failure.
            EventKind::TaskFailed(failed) => {
                if let Some(task) = self.tasks.remove(&failed.task) {
                    self.discard_all(task);
                }
            }
            EventKind::TaskFinished(finished) => {
                if let Some(task) = self.tasks.get_mut(&finished.task) {
                    task.finished = true;
                }
            }
            // The writes of a subgraph are used when the superstep of the root graph completes.
            EventKind::Checkpointed(_) if !event.namespace.is_root() => {}
            // A superstep whose tasks have all finished becomes state.
            EventKind::Checkpointed(made) if made.source == CheckpointSource::Loop => {
                let finished = self.tasks.extract_if(.., |_, task| task.finished);
                for (_, task) in finished.collect::<Vec<_>>() {
                    self.discard_all(task);
                }
            }
            // A superstep that a new input abandons does not become state.
            EventKind::Checkpointed(_) => {
                self.tasks.values_mut().for_each(|task| task.finished = false);
            }
            _ => {}
        }
    }

    fn called(&mut self, seq: u64, called: &Called) {
        let is_reusable = REUSABLE_FUNCTIONS.contains(&called.function.as_str());
        if called.function == ToolRequest::FUNCTION {
            let task = self.tasks.entry(called.task.clone()).or_default();
            task.tools.insert(path_of_call(&called.scope, called.call));
        } else if let (true, Ok(output)) = (is_reusable, &called.result) {
            self.tasks.entry(called.task.clone()).or_default().results.push(seq);
            let bytes = approx_bytes(output);
            let candidate = CandidateResult {
                scope: called.scope.clone(),
                function: called.function.clone(),
                digest: called.digest,
                output: output.clone(),
                bytes,
            };
            self.bytes += bytes;
            self.candidates.insert(seq, candidate);
            while self.bytes > self.limit_bytes
                && let Some((_, oldest)) = self.candidates.pop_first()
            {
                self.bytes -= oldest.bytes;
            }
        }
    }

    fn discard(&mut self, seq: u64) {
        self.bytes -= self.candidates.remove(&seq).map_or(0, |candidate| candidate.bytes);
    }

    fn discard_all(&mut self, task: CancelledTask) {
        task.results.into_iter().for_each(|seq| self.discard(seq));
    }

    /// Returns the reusable results. Results of tasks that continue from their journals are
    /// excluded.
    pub(crate) fn into_reusable(mut self, goes_on: impl Fn(&TaskId) -> bool) -> ReusableResults {
        for (id, task) in std::mem::take(&mut self.tasks) {
            for seq in &task.results {
                let is_used = self.candidates.get(seq).is_some_and(|result| task.has_used(result));
                if is_used || goes_on(&id) {
                    self.discard(*seq);
                }
            }
        }
        let mut pool: BTreeMap<_, VecDeque<_>> = BTreeMap::new();
        for (seq, CandidateResult { function, digest, output, .. }) in self.candidates {
            pool.entry((function, digest)).or_default().push_back(ReusableResult { seq, output });
        }
        ReusableResults(Mutex::new(pool))
    }
}

impl CancelledTask {
    /// Returns true if a completed tool call of the task used a result.
    fn has_used(&self, result: &CandidateResult) -> bool {
        (1..=result.scope.len()).any(|depth| self.tools.contains(&result.scope[..depth]))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns an event with a model's output of `length` bytes for the request `digest`.
    fn answered(seq: u64, digest: &str, length: usize) -> Event {
        let event = json!({
            "seq": seq, "at_ms": 0, "run": "old", "type": "called", "task": format!("t{seq}"),
            "node": "n", "call": 0, "function": CompletionRequest::FUNCTION,
            "digest": Digest::of(digest.as_bytes()), "request": null,
            "result": { "Ok": "x".repeat(length) }, "started_ms": 0, "duration_us": 0, "batch": 0,
        });
        serde_json::from_value(event).unwrap()
    }

    fn search(events: &[Event]) -> ReusableResults {
        let mut search = ReuseScan::new(RunId::new("new").unwrap(), 100);
        for event in events {
            search.apply(event);
        }
        search.into_reusable(|_| false)
    }

    fn taken(reusable_results: &ReusableResults, digest: &str) -> Option<u64> {
        let digest = Digest::of(digest.as_bytes());
        reusable_results.take(CompletionRequest::FUNCTION, digest).map(|result| result.seq)
    }

    #[test]
    fn oldest_results_are_dropped_over_the_size_limit() {
        let found = search(&[answered(1, "a", 40), answered(2, "b", 40), answered(3, "a", 40)]);
        assert_eq!((taken(&found, "b"), taken(&found, "a")), (Some(2), Some(3)));
        let found = search(&[answered(1, "a", 40), answered(2, "b", 400)]);
        assert_eq!((taken(&found, "b"), taken(&found, "a")), (None, None));
    }

    #[test]
    fn reused_results_free_their_memory() {
        let mut again = answered(2, "a", 40);
        if let EventKind::Called(called) = &mut again.kind {
            called.reused = Some(1);
        }
        let found = search(&[answered(1, "a", 40), again, answered(3, "b", 40)]);
        assert_eq!((taken(&found, "a"), taken(&found, "b")), (Some(2), Some(3)));
        assert_eq!(taken(&found, "a"), None);
    }
}
