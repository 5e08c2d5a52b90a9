//! Pages of a log that does not grow, or that is read as far as it goes.
//!
//! Traces, telemetry, files of apps, replays and salvage read a log after the fact. They wait for
//! nothing, so a store is all they need.

use wattle_graph::event::Event;
use wattle_graph::id::ThreadId;

use crate::limit::PAGE_EVENTS;
use crate::ports::store::{Store, StoreError};

/// Reads the events of a thread between two sequence numbers, page by page.
pub struct EventRange<'a> {
    store: &'a dyn Store,
    thread: &'a ThreadId,
    after: u64,
    last: u64,
}

impl<'a> EventRange<'a> {
    /// The events after a sequence number, up to and including `last`. With [`u64::MAX`] as `last`
    /// the log is read to its end.
    pub fn new(store: &'a dyn Store, thread: &'a ThreadId, after: u64, last: u64) -> Self {
        Self { store, thread, after, last }
    }

    /// The next page, oldest event first: at least one event and [`PAGE_EVENTS`] at most. `None`
    /// behind the last event, and for a thread that does not exist.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn next(&mut self) -> Result<Option<Vec<Event>>, StoreError> {
        let left = usize::try_from(self.last.saturating_sub(self.after)).unwrap_or(usize::MAX);
        if left == 0 {
            return Ok(None);
        }
        let limit = left.min(PAGE_EVENTS);
        let mut page = self.store.events(self.thread, self.after, limit).await?;
        // A page that is not full is the last one.
        self.after = match page.last() {
            Some(last) if page.len() == limit => last.seq,
            _ => self.last,
        };
        // A log that was pruned has gaps.
        page.retain(|event| event.seq <= self.last);
        Ok((!page.is_empty()).then_some(page))
    }
}
