//! The pending interrupts of all threads, page by page, and their number.

use wattle_graph::failure::Failure;
use wattle_graph::id::{Namespace, ThreadId};

use super::Engine;
use crate::hostcall::runs::InterruptView;
use crate::limit::{INTERRUPT_COUNT_PAGES, INTERRUPT_EVENT_BYTES, INTERRUPT_THREADS};
use crate::log::event_memory_bytes;
use crate::ports::store::{
    CheckpointOutline, StoreError, ThreadCursor, ThreadRecord, ThreadSearch, ThreadStatus,
    ThreadSummary,
};
use crate::{unpersisted_events, view};

/// A thread with its pending interrupts.
#[derive(Clone, Debug, PartialEq)]
pub struct InterruptedThread {
    /// Record of the thread.
    pub record: ThreadRecord,
    /// Pending interrupts of the root graph and its subgraphs, oldest first. A thread that stopped
    /// at a breakpoint has none.
    pub interrupts: Vec<InterruptView>,
}

/// A page of interrupted threads. A page may have fewer threads than its limit, or none, although
/// another page follows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterruptPage {
    /// The threads, newest update first.
    pub threads: Vec<InterruptedThread>,
    /// Position after which the next page begins; `None` if nothing follows.
    pub next: Option<ThreadCursor>,
}

/// The number of pending interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptCount {
    /// Number of pending interrupts of the threads that were read.
    pub total: u64,
    /// False if there may be more interrupts, because not all threads were read.
    pub is_complete: bool,
}

impl Engine {
    /// Returns the pending interrupts of the threads that match a search and are interrupted. A
    /// page has at most [`INTERRUPT_THREADS`] threads. A page ends early once the events from which
    /// it was read have [`INTERRUPT_EVENT_BYTES`].
    ///
    /// Threads that have expired or are set aside are left out, and so are those whose log cannot
    /// be read: one damaged thread does not hide the interrupts of all others.
    ///
    /// # Errors
    ///
    /// Errors of the store, except for damage of single threads.
    pub async fn pending_interrupts(&self, search: ThreadSearch) -> Result<InterruptPage, Failure> {
        let (status, limit) = (Some(ThreadStatus::Interrupted), search.limit);
        let search = ThreadSearch { status, limit: limit.min(INTERRUPT_THREADS), ..search };
        let found = self.search_threads(search).await?;
        let mut page = InterruptPage { threads: Vec::new(), next: found.next };
        let (mut read_bytes, last) = (0, found.items.len().saturating_sub(1));
        for (place, thread) in found.items.iter().enumerate() {
            let Some(outline) = self.readable_outline(thread).await? else { continue };
            read_bytes += event_bytes(&outline);
            page.threads.extend(self.interrupted_thread(thread, outline));
            if read_bytes >= INTERRUPT_EVENT_BYTES && place < last {
                page.next = Some(ThreadCursor::from(thread));
                break;
            }
        }
        Ok(page)
    }

    /// Counts the interrupts that [`pending_interrupts`](Self::pending_interrupts) lists for a
    /// search, on at most [`INTERRUPT_COUNT_PAGES`] pages: those of the threads with the newest
    /// update.
    ///
    /// # Errors
    ///
    /// Errors of the store, except for damage of single threads.
    pub async fn count_interrupts(&self, search: ThreadSearch) -> Result<InterruptCount, Failure> {
        let mut search = ThreadSearch { limit: INTERRUPT_THREADS, ..search };
        let mut count = InterruptCount::default();
        for _ in 0..INTERRUPT_COUNT_PAGES {
            let page = self.pending_interrupts(search.clone()).await?;
            count.total += page.threads.iter().map(|it| it.interrupts.len() as u64).sum::<u64>();
            count.is_complete = page.next.is_none();
            if count.is_complete {
                break;
            }
            search.after = page.next;
        }
        Ok(count)
    }

    /// Returns the current checkpoint of a thread without its values. Returns `None` if the thread
    /// has no checkpoint, is set aside, or has damaged or too many events.
    async fn readable_outline(
        &self,
        thread: &ThreadSummary,
    ) -> Result<Option<CheckpointOutline>, StoreError> {
        if self.set_aside(&thread.id).is_some() {
            return Ok(None);
        }
        let read = self.current_outline(&thread.id).await;
        read.or_else(|error| match error {
            StoreError::Broken { .. }
            | StoreError::Corrupt { .. }
            | StoreError::TooLarge { .. } => {
                tracing::debug!(thread = %thread.id, %error, "a thread is not listed");
                Ok(None)
            }
            error => Err(error),
        })
    }

    async fn current_outline(
        &self,
        thread: &ThreadId,
    ) -> Result<Option<CheckpointOutline>, StoreError> {
        let store = self.0.ports.store.as_ref();
        let Some(current) = store.thread(thread).await?.and_then(|head| head.current) else {
            return Ok(None);
        };
        let outline = store.checkpoint_outline(thread, &Namespace::root(), current).await?;
        let Some(CheckpointOutline { head, tuple }) = outline else { return Ok(None) };
        let tuple = unpersisted_events::with_earlier_events(store, tuple, thread).await?;
        Ok(Some(CheckpointOutline { head, tuple }))
    }

    /// Returns a thread with its pending interrupts. Returns `None` if the thread has changed since
    /// the search: it was resumed, has expired, or was deleted and created again.
    fn interrupted_thread(
        &self,
        found: &ThreadSummary,
        outline: CheckpointOutline,
    ) -> Option<InterruptedThread> {
        let CheckpointOutline { head, tuple } = outline;
        let record = head.record;
        let is_found = (&record.tenant, &record.app, &record.graph)
            == (&found.tenant, &found.app, &found.graph);
        let is_current = head.current == Some(tuple.checkpoint.meta.id);
        let is_interrupted = record.status == ThreadStatus::Interrupted && is_current;
        if !is_found || !is_interrupted || record.is_expired(self.now_ms()) {
            return None;
        }
        let (lineage, subgraphs) = view::lineage_and_subgraphs(&tuple);
        let interrupts = view::pending_interrupts(&lineage, &subgraphs, record.expires_ms);
        Some(InterruptedThread { record, interrupts })
    }
}

/// Returns the approximate size of the events of a checkpoint in memory, in bytes.
fn event_bytes(outline: &CheckpointOutline) -> u64 {
    outline.tuple.events.iter().map(|event| event_memory_bytes(&event.kind)).sum()
}
