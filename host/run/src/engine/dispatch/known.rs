//! The threads that this host knows to have pending runs, with the time of their next check.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use wattle_graph::id::{RunId, ThreadId};

/// Schedule of the checks of threads with pending runs.
#[derive(Default)]
pub(in crate::engine) struct Known {
    state: Mutex<State>,
    pub(super) changed: Notify,
    /// Set once the dispatcher runs.
    pub(super) is_running: AtomicBool,
    /// Set while a list of all pending runs is requested.
    is_to_list: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Threads with pending runs.
    threads: BTreeMap<ThreadId, Entry>,
    /// Threads with a scheduled check, by its time in milliseconds since 1970.
    times: BTreeSet<(i64, ThreadId)>,
    /// Number of lists of all pending runs so far.
    listed: u64,
    /// Number of failed starts of each run.
    tries: HashMap<RunId, u32>,
    /// Senders of the callers that wait until a run is no longer pending. A sender is dropped when
    /// that happens.
    leaving: HashMap<RunId, watch::Sender<()>>,
}

/// A thread with pending runs.
struct Entry {
    /// Time of the next check, milliseconds since 1970. `None` during a check, and while a run of
    /// the thread is active in this process.
    at_ms: Option<i64>,
    /// Value of [`State::listed`] at the last update of the entry.
    listed: u64,
}

/// Result of the check of a thread.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The thread has no pending run.
    Nothing,
    /// The next check follows the end of the active run.
    AtEnd,
    /// The next check is at this time, milliseconds since 1970.
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
    /// Locks the state. No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules a check of a thread at `at_ms`, unless an earlier one is scheduled.
    pub(in crate::engine) fn wake_at(&self, thread: &ThreadId, at_ms: i64) {
        let mut state = self.lock();
        let known = state.threads.get(thread).and_then(|known| known.at_ms);
        state.set(thread, Some(known.map_or(at_ms, |known_ms| known_ms.min(at_ms))));
        drop(state);
        self.changed.notify_one();
    }

    /// Takes at most `most` threads whose check is due at `now_ms`. Also returns the time of the
    /// next check.
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

    /// Records the result of a check, unless another check was scheduled meanwhile.
    pub(super) fn looked(&self, thread: &ThreadId, next: &Next) {
        match next {
            Next::At(at_ms) => self.wake_at(thread, *at_ms),
            Next::AtEnd => {}
            Next::Nothing => self.forget(thread),
        }
    }

    /// Removes a thread without pending runs, unless a check is scheduled.
    fn forget(&self, thread: &ThreadId) {
        let mut state = self.lock();
        if state.threads.get(thread).is_some_and(|known| known.at_ms.is_none()) {
            state.remove(thread);
        }
    }

    /// Removes a thread after the removal of its last pending run.
    pub(in crate::engine) fn clear(&self, thread: &ThreadId) {
        self.lock().remove(thread);
    }

    /// Requests a list of all pending runs, because the store may have runs that this host does not
    /// know.
    pub(in crate::engine) fn list_again(&self) {
        self.is_to_list.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    /// Takes the request for a list of all pending runs. Returns true if there was one.
    pub(super) fn take_list_again(&self) -> bool {
        self.is_to_list.swap(false, Ordering::AcqRel)
    }

    /// Begins a list of all pending runs and returns its number.
    pub(super) fn begin_list(&self) -> u64 {
        let mut state = self.lock();
        state.listed += 1;
        state.listed
    }

    /// Completes a list. Threads that have not been scheduled since the list began have no pending
    /// run and are removed.
    pub(super) fn end_list(&self, number: u64) {
        let mut state = self.lock();
        let gone = state.threads.iter().filter(|(_, known)| known.listed < number);
        let gone: Vec<ThreadId> = gone.map(|(thread, _)| thread.clone()).collect();
        for thread in gone {
            state.remove(&thread);
        }
    }

    /// Records the end of a run. The next run of the thread may start, and the capacity that the
    /// run used is free for runs of other threads.
    pub(in crate::engine) fn ended(&self, thread: &ThreadId, now_ms: i64) {
        let is_waiting = self.is_waiting(thread);
        if is_waiting {
            self.wake_at(thread, now_ms);
        } else {
            self.changed.notify_one();
        }
    }

    /// Returns true if the thread is known to have pending runs.
    pub(in crate::engine) fn is_waiting(&self, thread: &ThreadId) -> bool {
        self.lock().threads.contains_key(thread)
    }

    /// Counts a failed start of a run and returns the number of failures.
    pub(super) fn failed(&self, run: &RunId) -> u32 {
        let mut state = self.lock();
        let tries = state.tries.entry(run.clone()).or_default();
        *tries += 1;
        *tries
    }

    /// Removes a run that is no longer pending, and wakes the callers that wait for this.
    pub(in crate::engine) fn left(&self, run: &RunId) {
        let mut state = self.lock();
        state.tries.remove(run);
        state.leaving.remove(run);
    }

    /// Returns a receiver that closes when an operation of this process starts or removes the
    /// pending run. Senders without receivers are removed, so the map does not outgrow the number
    /// of waiting callers.
    pub(in crate::engine) fn leaving(&self, run: &RunId) -> watch::Receiver<()> {
        let mut state = self.lock();
        state.leaving.retain(|_, sender| sender.receiver_count() > 0);
        state.leaving.entry(run.clone()).or_default().subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Greater than the number of threads in a test.
    const MOST: usize = 9;

    fn thread(name: &str) -> ThreadId {
        ThreadId::new(name).unwrap()
    }

    #[test]
    fn thread_is_due_once_at_the_earliest_requested_time() {
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
    fn thread_is_removed_if_a_check_or_a_list_finds_no_pending_run() {
        let dispatch = Known::default();
        let (a, b) = (thread("a"), thread("b"));
        dispatch.wake_at(&a, 0);
        assert_eq!(dispatch.due(0, MOST).0, std::slice::from_ref(&a));
        // A run is enqueued during the check.
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
