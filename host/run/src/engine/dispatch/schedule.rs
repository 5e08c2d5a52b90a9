//! The threads that this host knows to have pending runs, with the time of their next check.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use wattle_graph::id::{RunId, ThreadId};

/// Schedule of the checks of threads with pending runs.
#[derive(Default)]
pub(in crate::engine) struct DispatchSchedule {
    state: Mutex<ScheduleState>,
    pub(super) changed: Notify,
    /// Set once the dispatcher runs.
    pub(super) is_running: AtomicBool,
    /// Set while a list of all pending runs is requested.
    list_requested: AtomicBool,
}

#[derive(Default)]
struct ScheduleState {
    /// Threads with pending runs.
    threads: BTreeMap<ThreadId, ScheduledThread>,
    /// Threads with a scheduled check, by its time in milliseconds since 1970.
    times: BTreeSet<(i64, ThreadId)>,
    /// Number of lists of all pending runs so far.
    list_count: u64,
    /// Number of failed starts of each run.
    start_failures: HashMap<RunId, u32>,
    /// Senders of the callers that wait until a run is no longer pending. A sender is dropped when
    /// that happens.
    queue_waiters: HashMap<RunId, watch::Sender<()>>,
}

/// A thread with pending runs.
struct ScheduledThread {
    /// Time of the next check, milliseconds since 1970. `None` during a check, and while a run of
    /// the thread is active in this process.
    at_ms: Option<i64>,
    /// Value of [`ScheduleState::list_count`] at the last update of the entry.
    list_number: u64,
}

/// Result of the check of a thread.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextCheck {
    /// The thread has no pending run.
    Never,
    /// The next check follows the end of the active run.
    AfterRun,
    /// The next check is at this time, milliseconds since 1970.
    At(i64),
}

impl ScheduleState {
    fn set(&mut self, thread: &ThreadId, at_ms: Option<i64>) {
        let known = ScheduledThread { at_ms, list_number: self.list_count };
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

impl DispatchSchedule {
    /// Locks the state. No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, ScheduleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules a check of a thread at `at_ms`, unless an earlier one is scheduled.
    pub(in crate::engine) fn schedule_at(&self, thread: &ThreadId, at_ms: i64) {
        let mut state = self.lock();
        let known = state.threads.get(thread).and_then(|known| known.at_ms);
        state.set(thread, Some(known.map_or(at_ms, |known_ms| known_ms.min(at_ms))));
        drop(state);
        self.changed.notify_one();
    }

    /// Takes at most `most` threads whose check is due at `now_ms`. Also returns the time of the
    /// next check.
    pub(super) fn take_due(&self, now_ms: i64, most: usize) -> (Vec<ThreadId>, Option<i64>) {
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
    pub(super) fn record_check(&self, thread: &ThreadId, next: &NextCheck) {
        match next {
            NextCheck::At(at_ms) => self.schedule_at(thread, *at_ms),
            NextCheck::AfterRun => {}
            NextCheck::Never => self.remove_unscheduled(thread),
        }
    }

    /// Removes a thread without pending runs, unless a check is scheduled.
    fn remove_unscheduled(&self, thread: &ThreadId) {
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
    pub(in crate::engine) fn request_list(&self) {
        self.list_requested.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    /// Takes the request for a list of all pending runs. Returns true if there was one.
    pub(super) fn take_list_request(&self) -> bool {
        self.list_requested.swap(false, Ordering::AcqRel)
    }

    /// Begins a list of all pending runs and returns its number.
    pub(super) fn begin_list(&self) -> u64 {
        let mut state = self.lock();
        state.list_count += 1;
        state.list_count
    }

    /// Completes a list. Threads that have not been scheduled since the list began have no pending
    /// run and are removed.
    pub(super) fn end_list(&self, number: u64) {
        let mut state = self.lock();
        let gone = state.threads.iter().filter(|(_, known)| known.list_number < number);
        let gone: Vec<ThreadId> = gone.map(|(thread, _)| thread.clone()).collect();
        for thread in gone {
            state.remove(&thread);
        }
    }

    /// Records the end of a run. The next run of the thread may start, and the capacity that the
    /// run used is free for runs of other threads.
    pub(in crate::engine) fn run_ended(&self, thread: &ThreadId, now_ms: i64) {
        let is_waiting = self.has_pending(thread);
        if is_waiting {
            self.schedule_at(thread, now_ms);
        } else {
            self.changed.notify_one();
        }
    }

    /// Returns true if the thread is known to have pending runs.
    pub(in crate::engine) fn has_pending(&self, thread: &ThreadId) -> bool {
        self.lock().threads.contains_key(thread)
    }

    /// Counts a failed start of a run and returns the number of failures.
    pub(super) fn count_start_failure(&self, run: &RunId) -> u32 {
        let mut state = self.lock();
        let tries = state.start_failures.entry(run.clone()).or_default();
        *tries += 1;
        *tries
    }

    /// Removes a run that is no longer pending, and wakes the callers that wait for this.
    pub(in crate::engine) fn run_left_queue(&self, run: &RunId) {
        let mut state = self.lock();
        state.start_failures.remove(run);
        state.queue_waiters.remove(run);
    }

    /// Returns a receiver that closes when an operation of this process starts or removes the
    /// pending run. Senders without receivers are removed, so the map does not outgrow the number
    /// of waiting callers.
    pub(in crate::engine) fn subscribe_left(&self, run: &RunId) -> watch::Receiver<()> {
        let mut state = self.lock();
        state.queue_waiters.retain(|_, sender| sender.receiver_count() > 0);
        state.queue_waiters.entry(run.clone()).or_default().subscribe()
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
        let dispatch = DispatchSchedule::default();
        dispatch.schedule_at(&thread("a"), 9);
        dispatch.schedule_at(&thread("b"), 5);
        dispatch.schedule_at(&thread("a"), 3);
        dispatch.schedule_at(&thread("a"), 7);
        assert_eq!(dispatch.take_due(2, MOST), (vec![], Some(3)));
        assert_eq!(dispatch.take_due(4, MOST), (vec![thread("a")], Some(5)));
        assert_eq!(dispatch.take_due(99, MOST), (vec![thread("b")], None));
        dispatch.schedule_at(&thread("a"), 1);
        dispatch.schedule_at(&thread("b"), 2);
        assert_eq!(dispatch.take_due(99, 1), (vec![thread("a")], Some(2)));
    }

    #[test]
    fn thread_is_removed_if_a_check_or_a_list_finds_no_pending_run() {
        let dispatch = DispatchSchedule::default();
        let (a, b) = (thread("a"), thread("b"));
        dispatch.schedule_at(&a, 0);
        assert_eq!(dispatch.take_due(0, MOST).0, std::slice::from_ref(&a));
        // A run is enqueued during the check.
        dispatch.schedule_at(&a, 5);
        dispatch.record_check(&a, &NextCheck::Never);
        assert!(dispatch.has_pending(&a));
        assert_eq!(dispatch.take_due(5, MOST).0, std::slice::from_ref(&a));
        dispatch.record_check(&a, &NextCheck::Never);
        assert!(!dispatch.has_pending(&a));
        dispatch.schedule_at(&a, 9);
        let number = dispatch.begin_list();
        dispatch.schedule_at(&b, 9);
        dispatch.end_list(number);
        assert_eq!((dispatch.has_pending(&a), dispatch.has_pending(&b)), (false, true));
        assert_eq!(dispatch.take_due(9, MOST).0, [b]);
    }
}
