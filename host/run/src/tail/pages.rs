//! Pages of logs, each read once for all tails at the same position of a thread.
//!
//! Each tail reads the log of its thread when the store announces a change. A hundred tails of one
//! thread would read the same page a hundred times for each event. Two rules let them share pages:
//!
//! * A page with events does not change, so every tail at its position may use the page while the
//!   thread is the same. After a deletion, another thread may get the id.
//! * A tail that requests a page during a read shares the next read with all other waiting tails.
//!   It cannot use the read in progress, which started before the request and may miss the change
//!   that woke the tail.
//!
//! A page is in memory while a tail is at its position. A client that does not read its stream
//! keeps its tail there, so all pages together have a limit of memory. Beyond it, a page has one
//! event: clients that do not read their streams slow other streams down, but take no further
//! memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};

use crate::limit::{PAGE_EVENT_BYTES, PAGE_EVENTS};
use crate::log::event_memory_bytes;
use crate::memory_pool::{MemoryPool, Occupied};
use crate::ports::store::{Store, ThreadHead};

/// A thread, and a page of its events.
#[derive(Debug)]
pub(super) struct EventPage {
    /// The thread before the events were read; `None` if it does not exist.
    pub(super) head: Option<Arc<ThreadHead>>,
    /// Events in order, at most [`PAGE_EVENTS`]; empty if the thread has no event after the
    /// position.
    pub(super) events: Vec<Arc<Event>>,
    /// The memory of the events; `None` without events.
    _memory: Option<Occupied>,
}

/// The result of a read.
type ReadResult = Result<Arc<EventPage>, Failure>;

/// The pages at the positions of tails. Clones share the pages.
#[derive(Clone)]
pub struct Pages {
    shared: Arc<Mutex<SharedPages>>,
    memory: MemoryPool,
}

type SharedPages = HashMap<(ThreadId, u64), Weak<SharedPage>>;

/// The reads of one page, one after another.
#[derive(Default)]
struct SharedPage {
    /// Number of reads that were started.
    started_reads: AtomicU64,
    /// The last read, with its number. Locked during a read.
    last_read: tokio::sync::Mutex<Option<(u64, ReadResult)>>,
}

impl Pages {
    /// Creates pages that take at most `max_bytes` of memory together.
    #[must_use]
    pub fn new(max_bytes: u64) -> Self {
        Self { shared: Arc::default(), memory: MemoryPool::new(max_bytes) }
    }

    /// Returns a reader for one tail of a thread.
    pub(super) fn reader(&self, store: &Arc<dyn Store>, thread: &ThreadId) -> PageReader {
        PageReader {
            pages: self.clone(),
            store: store.clone(),
            position: TailPosition::new(thread),
        }
    }

    /// Locks the pages. No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, SharedPages> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared_page(&self, key: &(ThreadId, u64)) -> Arc<SharedPage> {
        let mut pages = self.lock();
        if let Some(page) = pages.get(key).and_then(Weak::upgrade) {
            return page;
        }
        let page = Arc::new(SharedPage::default());
        pages.insert(key.clone(), Arc::downgrade(&page));
        page
    }

    async fn read_shared(
        &self,
        place: &mut TailPosition,
        after: u64,
        read: impl Future<Output = ReadResult>,
    ) -> ReadResult {
        let page = self.enter(place, after);
        let begun = page.started_reads.load(Ordering::SeqCst);
        let mut last = page.last_read.lock().await;
        let outcome = match &*last {
            Some((number, outcome)) if *number > begun || place.may_use(outcome) => outcome.clone(),
            _ => {
                let number = page.started_reads.fetch_add(1, Ordering::SeqCst) + 1;
                let outcome = read.await;
                *last = Some((number, outcome.clone()));
                outcome
            }
        };
        if let Ok(page) = &outcome {
            place.incarnation = page.head.as_ref().and_then(|head| head.record.incarnation.clone());
        }
        outcome
    }

    /// Moves a tail to a page.
    fn enter(&self, place: &mut TailPosition, after: u64) -> Arc<SharedPage> {
        if let Some((at, page)) = &place.page
            && *at == after
        {
            return page.clone();
        }
        self.leave(place);
        let page = self.shared_page(&(place.thread.clone(), after));
        place.page = Some((after, page.clone()));
        page
    }

    fn leave(&self, place: &mut TailPosition) {
        let Some((at, page)) = place.page.take() else { return };
        let key = (place.thread.clone(), at);
        let mut pages = self.lock();
        let unused = Arc::into_inner(page);
        if unused.is_some() {
            pages.remove(&key);
        }
        // The events of a page take long to free, so the lock is released before.
        drop(pages);
        drop(unused);
    }
}

/// The position of a tail.
struct TailPosition {
    thread: ThreadId,
    /// Incarnation of the thread, once it is known.
    incarnation: Option<RunId>,
    page: Option<(u64, Arc<SharedPage>)>,
}

impl TailPosition {
    fn new(thread: &ThreadId) -> Self {
        Self { thread: thread.clone(), incarnation: None, page: None }
    }

    /// Returns true if the tail may use a page that was read before its request.
    fn may_use(&self, outcome: &ReadResult) -> bool {
        let Ok(page) = outcome else { return false };
        let Some(head) = &page.head else { return false };
        !page.events.is_empty()
            && self.incarnation.is_some()
            && self.incarnation == head.record.incarnation
    }
}

/// Reads the pages of a thread for one tail.
pub(super) struct PageReader {
    pages: Pages,
    store: Arc<dyn Store>,
    position: TailPosition,
}

impl PageReader {
    /// Reads the page of the events after a sequence number.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(super) async fn read(&mut self, after: u64) -> ReadResult {
        let Self { pages, store, position } = self;
        let thread = position.thread.clone();
        let read = read_page(store.as_ref(), &pages.memory, &thread, after);
        pages.read_shared(position, after, read).await
    }

    /// Leaves the page that was read last.
    pub(super) fn leave(&mut self) {
        self.pages.leave(&mut self.position);
    }
}

impl Drop for PageReader {
    fn drop(&mut self) {
        self.leave();
    }
}

async fn read_page(
    store: &dyn Store,
    memory: &MemoryPool,
    thread: &ThreadId,
    after: u64,
) -> ReadResult {
    let head = store.thread(thread).await?.map(Arc::new);
    // An event that becomes durable after this check is announced, and ends the next wait.
    if head.as_ref().is_none_or(|head| head.last_seq <= after) {
        return Ok(Arc::new(EventPage { head, events: Vec::new(), _memory: None }));
    }
    let reserved = memory.reserve(PAGE_EVENT_BYTES);
    let limit = if reserved.is_ok() { PAGE_EVENTS } else { 1 };
    let events = store.events(thread, after, limit).await?;
    let occupied = memory.count(events.iter().map(|event| event_memory_bytes(&event.kind)).sum());
    drop(reserved);
    let events = events.into_iter().map(Arc::new).collect();
    Ok(Arc::new(EventPage { head, events, _memory: Some(occupied) }))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::Semaphore;

    use super::*;

    fn place() -> TailPosition {
        TailPosition::new(&ThreadId::new("t").unwrap())
    }

    fn empty() -> Arc<EventPage> {
        Arc::new(EventPage { head: None, events: Vec::new(), _memory: None })
    }

    #[tokio::test]
    async fn requests_during_a_read_share_the_next_read() {
        let (pages, readings, go) = (Pages::new(u64::MAX), AtomicUsize::new(0), Semaphore::new(0));
        let ask = async |after| {
            let mut place = place();
            let read = async {
                readings.fetch_add(1, Ordering::SeqCst);
                go.acquire().await.unwrap().forget();
                Ok(empty())
            };
            let outcome = pages.read_shared(&mut place, after, read).await;
            pages.leave(&mut place);
            outcome
        };
        let mut first = Box::pin(ask(7));
        assert!(futures::poll!(&mut first).is_pending());
        let mut others: Vec<_> = (0..100).map(|_| Box::pin(ask(7))).collect();
        for other in &mut others {
            assert!(futures::poll!(other).is_pending());
        }
        assert_eq!(readings.load(Ordering::SeqCst), 1);
        go.add_permits(2);
        assert!(first.await.is_ok());
        for other in others {
            assert!(other.await.is_ok());
        }
        assert_eq!(readings.load(Ordering::SeqCst), 2);
        go.add_permits(1);
        assert!(ask(8).await.is_ok());
        assert!(pages.lock().is_empty(), "pages without a tail are dropped");
    }

    #[tokio::test]
    async fn cancelled_read_is_repeated_by_the_next_request() {
        let (pages, mut first, mut second) = (Pages::new(u64::MAX), place(), place());
        {
            let reading = pages.read_shared(&mut first, 0, std::future::pending());
            let mut reading = std::pin::pin!(reading);
            assert!(futures::poll!(&mut reading).is_pending());
        }
        assert!(pages.read_shared(&mut second, 0, async { Ok(empty()) }).await.is_ok());
    }
}
