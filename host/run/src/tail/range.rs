//! Reads pages of a log that does not grow, or that is read only to its current end.
//!
//! Traces, telemetry, files of apps, replays and result reuse read a log afterwards. They never
//! wait for new events, so they need only a store.

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
    /// Creates a reader of the events after a sequence number, up to and including `last`. With
    /// [`u64::MAX`] as `last`, the reader reads the log to its end, and needs one read more than
    /// with the sequence number of the newest event.
    pub fn new(store: &'a dyn Store, thread: &'a ThreadId, after: u64, last: u64) -> Self {
        Self { store, thread, after, last }
    }

    /// Returns the next page, oldest event first, with at least one event and at most
    /// [`PAGE_EVENTS`]. Returns `None` after the last event, and for a thread that does not exist.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn next(&mut self) -> Result<Option<Vec<Event>>, StoreError> {
        let left = usize::try_from(self.last.saturating_sub(self.after)).unwrap_or(usize::MAX);
        if left == 0 {
            return Ok(None);
        }
        let limit = left.min(PAGE_EVENTS);
        let mut page = self.store.events(self.thread, self.after, limit).await?;
        // A page of large events is shorter than the limit, so only an empty page ends the log.
        self.after = page.last().map_or(self.last, |last| last.seq);
        // The sequence numbers of a pruned log have gaps.
        page.retain(|event| event.seq <= self.last);
        Ok((!page.is_empty()).then_some(page))
    }
}
