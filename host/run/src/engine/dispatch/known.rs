//! Threads that are known here to have pending runs, and when each is looked at.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use wattle_graph::id::{RunId, ThreadId};

/// Which threads are to be looked at, and when.
#[derive(Default)]
pub(in crate::engine) struct Known {
    state: Mutex<State>,
    pub(super) changed: Notify,
    /// Set once somebody looks at threads.
    pub(super) is_running: AtomicBool,
    /// Set while all pending runs are to be listed once more.
    is_to_list: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Threads with pending runs.
    threads: BTreeMap<ThreadId, Entry>,
    /// Those that are to be looked at, by the time of that, milliseconds since 1970.
    times: BTreeSet<(i64, ThreadId)>,
    /// How often all pending runs have been listed.
    listed: u64,
    /// Failures to begin a run.
    tries: HashMap<RunId, u32>,
    /// Those who wait until a run is not pending any more. Each value is dropped then.
    leaving: HashMap<RunId, watch::Sender<()>>,
}

/// A thread with pending runs.
struct Entry {
    /// When it is looked at, milliseconds since 1970; `None` while it is looked at, and while it is
    /// at work in this process.
    at_ms: Option<i64>,
    /// The list of pending runs after which it was noted.
    listed: u64,
}

/// What is to be done after a look at a thread.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing: it has no pending run.
    Nothing,
    /// Another look when its run has ended.
    AtEnd,
    /// Another look at a time, milliseconds since 1970.
    At(i64),
}

impl State {
    fn set(&mut self, thread: &ThreadId, at_ms: Option<i64>) {
        let known = Entry { at_ms, listed: self.listed };
        let before = self.threads.insert(thread.clone(), known);
        if let Some(before_ms) = before.and_then(|known| known.at_ms) {
            self.times.remove(&(before_ms, thread.clone()));
        }
        if let Some(at_ms) = at_ms {
            self.times.insert((at_ms, thread.clone()));
        }
    }

    fn remove(&mut self, thread: &ThreadId) {
        let known = self.threads.remove(thread);
        if let Some(at_ms) = known.and_then(|known| known.at_ms) {
            self.times.remove(&(at_ms, thread.clone()));
        }
    }
}

impl Known {
    /// No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a thread looked at, at a time or before.
    pub(in crate::engine) fn wake_at(&self, thread: &ThreadId, at_ms: i64) {
        let mut state = self.lock();
        let known = state.threads.get(thread).and_then(|known| known.at_ms);
        state.set(thread, Some(known.map_or(at_ms, |known_ms| known_ms.min(at_ms))));
        drop(state);
        self.changed.notify_one();
    }

    /// Takes at most so many threads that are to be looked at by a time, and says when the next one is.
    pub(super) fn due(&self, now_ms: i64, most: usize) -> (Vec<ThreadId>, Option<i64>) {
        let mut state = self.lock();
        let mut due = Vec::new();
        while let Some((at_ms, thread)) = state.times.first().cloned() {
            if at_ms > now_ms || due.len() == most {
                return (due, Some(at_ms));
            }
            state.set(&thread, None);
            due.push(thread);
        }
        (due, None)
    }

    /// Notes what a look at a thread found, unless it is to be looked at again already.
    pub(super) fn looked(&self, thread: &ThreadId, next: &Next) {
        match next {
            Next::At(at_ms) => self.wake_at(thread, *at_ms),
            Next::AtEnd => {}
            Next::Nothing => self.forget(thread),
        }
    }

    /// A thread has no pending run, unless it is to be looked at again.
    fn forget(&self, thread: &ThreadId) {
        let mut state = self.lock();
        if state.threads.get(thread).is_some_and(|known| known.at_ms.is_none()) {
            state.remove(thread);
        }
    }

    /// The last pending run of a thread was taken out.
    pub(in crate::engine) fn clear(&self, thread: &ThreadId) {
        self.lock().remove(thread);
    }

    /// Has all pending runs listed once more: the store may have some that nobody noted.
    pub(in crate::engine) fn list_again(&self) {
        self.is_to_list.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    /// Whether all pending runs are to be listed once more, which the caller does now.
    pub(super) fn take_list_again(&self) -> bool {
        self.is_to_list.swap(false, Ordering::AcqRel)
    }

    /// A list of all pending runs begins. Answers its number.
    pub(super) fn begin_list(&self) -> u64 {
        let mut state = self.lock();
        state.listed += 1;
        state.listed
    }

    /// The list of that number is complete: threads that neither it nor anything since has noted have
    /// no pending run.
    pub(super) fn end_list(&self, number: u64) {
        let mut state = self.lock();
        let gone = state.threads.iter().filter(|(_, known)| known.listed < number);
        let gone: Vec<ThreadId> = gone.map(|(thread, _)| thread.clone()).collect();
        for thread in gone {
            state.remove(&thread);
        }
    }

    /// A run of a thread has ended: the next one may begin, if one is known to be pending. Those of
    /// other threads have room.
    pub(in crate::engine) fn ended(&self, thread: &ThreadId, now_ms: i64) {
        let is_waiting = self.is_waiting(thread);
        if is_waiting {
            self.wake_at(thread, now_ms);
        } else {
            self.changed.notify_one();
        }
    }

    /// Whether runs of a thread are known to be pending.
    pub(in crate::engine) fn is_waiting(&self, thread: &ThreadId) -> bool {
        self.lock().threads.contains_key(thread)
    }

    /// Counts a failure to begin a run.
    pub(super) fn failed(&self, run: &RunId) -> u32 {
        let mut state = self.lock();
        let tries = state.tries.entry(run.clone()).or_default();
        *tries += 1;
        *tries
    }

    /// A run is not pending any more.
    pub(in crate::engine) fn left(&self, run: &RunId) {
        let mut state = self.lock();
        state.tries.remove(run);
        state.leaving.remove(run);
    }

    /// Changes when a run is not pending any more, by a deed of this process. Senders without a
    /// receiver are let go, so that their number is that of those who wait.
    pub(in crate::engine) fn leaving(&self, run: &RunId) -> watch::Receiver<()> {
        let mut state = self.lock();
        state.leaving.retain(|_, sender| sender.receiver_count() > 0);
        state.leaving.entry(run.clone()).or_default().subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More threads than a test has.
    const MOST: usize = 9;

    fn thread(name: &str) -> ThreadId {
        ThreadId::new(name).unwrap()
    }

    #[test]
    fn a_thread_is_looked_at_once_at_its_earliest_time() {
        let dispatch = Known::default();
        dispatch.wake_at(&thread("a"), 9);
        dispatch.wake_at(&thread("b"), 5);
        dispatch.wake_at(&thread("a"), 3);
        dispatch.wake_at(&thread("a"), 7);
        assert_eq!(dispatch.due(2, MOST), (vec![], Some(3)));
        assert_eq!(dispatch.due(4, MOST), (vec![thread("a")], Some(5)));
        assert_eq!(dispatch.due(99, MOST), (vec![thread("b")], None));
        dispatch.wake_at(&thread("a"), 1);
        dispatch.wake_at(&thread("b"), 2);
        assert_eq!(dispatch.due(99, 1), (vec![thread("a")], Some(2)));
    }

    #[test]
    fn a_thread_is_known_until_a_look_or_a_list_finds_nothing() {
        let dispatch = Known::default();
        let (a, b) = (thread("a"), thread("b"));
        dispatch.wake_at(&a, 0);
        assert_eq!(dispatch.due(0, MOST).0, std::slice::from_ref(&a));
        // A run is enqueued during the look.
        dispatch.wake_at(&a, 5);
        dispatch.looked(&a, &Next::Nothing);
        assert!(dispatch.is_waiting(&a));
        assert_eq!(dispatch.due(5, MOST).0, std::slice::from_ref(&a));
        dispatch.looked(&a, &Next::Nothing);
        assert!(!dispatch.is_waiting(&a));
        dispatch.wake_at(&a, 9);
        let number = dispatch.begin_list();
        dispatch.wake_at(&b, 9);
        dispatch.end_list(number);
        assert_eq!((dispatch.is_waiting(&a), dispatch.is_waiting(&b)), (false, true));
        assert_eq!(dispatch.due(9, MOST).0, [b]);
    }
}
