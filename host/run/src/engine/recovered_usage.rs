//! The tokens that an orphaned run has used, counted in the log of its thread.
//!
//! Only the cost of the run needs the count. So the count is bounded, and neither a long log nor a
//! damaged one prevents the recovery of the run.

use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::RunId;

use crate::log::event_memory_bytes;
use crate::meter::model_usage::ModelUsage;
use crate::ports::store::{RunRecord, Store, StoreError, ThreadHead};
use crate::tail::range::EventRange;

/// Maximum events in which the tokens of a run are counted. A longer run has no cost. A remote
/// store reads them in some 40 round trips.
const MAX_EVENTS: u64 = 10_000;

/// Maximum bytes in memory of these events. The results of calls may have megabytes each, and
/// reading 10,000 of them would take longer than a recovery may take. A run whose events have 6 KiB
/// on average reaches [`MAX_EVENTS`] first.
const MAX_BYTES: u64 = 64 << 20;

/// Counts the tokens of the calls that an orphaned run has made. Returns a partial usage if the log
/// is too long or cannot be read.
pub(super) async fn count(store: &dyn Store, head: &ThreadHead, run: &RunRecord) -> ModelUsage {
    try_count(store, head, run).await.unwrap_or_else(|error| {
        tracing::warn!(
            thread = %head.record.id, %error,
            "cannot count the tokens of a run; the run has no cost"
        );
        ModelUsage::partial()
    })
}

async fn try_count(
    store: &dyn Store,
    head: &ThreadHead,
    run: &RunRecord,
) -> Result<ModelUsage, StoreError> {
    let before_run = run.first_seq.saturating_sub(1);
    if head.last_seq.saturating_sub(before_run) > MAX_EVENTS {
        return Ok(ModelUsage::partial());
    }
    let mut tokens = TokenCount::new(&run.id, MAX_BYTES);
    let mut events = EventRange::new(store, &head.record.id, before_run, head.last_seq);
    while tokens.is_complete()
        && let Some(page) = events.next().await?
    {
        for event in &page {
            tokens.add(event);
        }
    }
    Ok(tokens.into_usage())
}

/// A count of the tokens of a run, within a budget of bytes.
struct TokenCount<'a> {
    run: &'a RunId,
    usage: ModelUsage,
    /// The rest of the budget; `None` after an event that exceeds it.
    left_bytes: Option<u64>,
}

impl<'a> TokenCount<'a> {
    fn new(run: &'a RunId, bytes: u64) -> Self {
        Self { run, usage: ModelUsage::default(), left_bytes: Some(bytes) }
    }

    /// Counts an event, also one of another run: reading it takes time as well.
    fn add(&mut self, event: &Event) {
        let bytes = event_memory_bytes(&event.kind);
        self.left_bytes = self.left_bytes.and_then(|left| left.checked_sub(bytes));
        if event.run == *self.run
            && let EventKind::Called(called) = &event.kind
        {
            self.usage.count(called);
        }
    }

    /// Returns false once the events exceed the budget.
    fn is_complete(&self) -> bool {
        self.left_bytes.is_some()
    }

    fn into_usage(self) -> ModelUsage {
        if self.is_complete() { self.usage } else { ModelUsage::partial() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the event of a model call of a run that used one token in each direction.
    fn called(run: &str) -> Event {
        serde_json::from_value(json!({
            "seq": 1, "at_ms": 0, "run": run, "type": "called", "task": "t", "node": "n",
            "call": 0, "batch": 0, "function": "llm.complete", "digest": "0".repeat(64),
            "request": {}, "result": { "Ok": { "model": "mini", "attempts": [] } },
            "started_ms": 0, "duration_us": 1, "tokens": { "input": 1, "output": 1 },
        }))
        .unwrap()
    }

    #[test]
    fn tokens_are_counted_within_the_budget_of_bytes() {
        let run = RunId::new("own").unwrap();
        let events = [called("own"), called("other"), called("own")];
        let usage = |bytes| {
            let mut tokens = TokenCount::new(&run, bytes);
            for event in &events {
                tokens.add(event);
            }
            tokens.into_usage()
        };
        let bytes: u64 = events.iter().map(|event| event_memory_bytes(&event.kind)).sum();
        let counted = serde_json::to_value(usage(bytes)).unwrap();
        assert_eq!(counted["models"]["mini"]["input"], 2, "{counted}");
        assert_eq!(usage(bytes - 1), ModelUsage::partial());
    }
}
