//! The threads that this host knows to have pending runs, with the time of their next check.
//!
//! Each caller has a queue. A thread is in the queue of the caller of its next run. Among the
//! callers with due threads, the caller that holds the fewest places for runs is next. Callers that
//! hold equally many places take turns. The threads of one caller are checked in the order in which
//! they became due.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use wattle_graph::id::{RunId, ThreadId};

use crate::caller_id::CallerId;
use crate::engine::run_places::RunPlaces;

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
    /// Scheduled checks by caller. No queue is empty.
    queues: HashMap<CallerId, CallerQueue>,
    /// Number of threads that were added so far.
    added: u64,
    /// Number of turns of all callers so far.
    turns: u64,
    /// Caller that had the last turn.
    last_turn: Option<CallerId>,
    /// Number of lists of all pending runs so far.
    list_count: u64,
    /// Number of failed starts of each run.
    start_failures: HashMap<RunId, u32>,
    /// Senders by run, for callers that wait until the run is no longer pending. A sender is
    /// dropped when its run is no longer pending.
    queue_waiters: HashMap<RunId, watch::Sender<()>>,
}

/// Scheduled check: its time in milliseconds since 1970, the order of the thread, and the thread.
type Check = (i64, u64, ThreadId);

/// Scheduled checks of the threads of one caller.
struct CallerQueue {
    checks: BTreeSet<Check>,
    /// Rank of the caller: among callers with equally many places, the lowest `turn` is next.
    turn: u64,
}

/// A thread with pending runs.
struct ScheduledThread {
    /// Time of the next check, milliseconds since 1970. `None` during a check, and while a run of
    /// the thread is active in this process.
    at_ms: Option<i64>,
    /// Caller of the run that starts next, as far as this host knows. A check corrects it.
    caller: CallerId,
    /// Order in which threads were added. The order decides between checks at the same time.
    order: u64,
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
    fn set(&mut self, thread: &ThreadId, at_ms: Option<i64>, caller: CallerId) {
        let before = self.threads.remove(thread);
        let order = before.as_ref().map_or(self.added, |known| known.order);
        self.added += u64::from(before.is_none());
        let list_number = self.list_count;
        let known = ScheduledThread { at_ms, caller, order, list_number };
        self.threads.insert(thread.clone(), known);
        let check = at_ms.map(|at_ms| (at_ms, order, thread.clone()));
        // The new check is added first, so that the queue of its caller never becomes empty and
        // keeps its turn.
        if let Some(check) = &check {
            self.queue_of(caller).checks.insert(check.clone());
        }
        if let Some(ScheduledThread { at_ms: Some(before_ms), caller: former, .. }) = before {
            let former_check = (before_ms, order, thread.clone());
            if check.as_ref() != Some(&former_check) || former != caller {
                self.remove_check(former, &former_check);
            }
        }
    }

    fn remove(&mut self, thread: &ThreadId) {
        let known = self.threads.remove(thread);
        if let Some(ScheduledThread { at_ms: Some(at_ms), caller, order, .. }) = known {
            self.remove_check(caller, &(at_ms, order, thread.clone()));
        }
    }

    fn remove_check(&mut self, caller: CallerId, check: &Check) {
        if let Some(queue) = self.queues.get_mut(&caller) {
            queue.checks.remove(check);
            if queue.checks.is_empty() {
                self.queues.remove(&caller);
            }
        }
    }

    /// Returns the queue of a caller. A new queue comes after the queues of all waiting callers,
    /// and before the queue of the caller that had the last turn.
    fn queue_of(&mut self, caller: CallerId) -> &mut CallerQueue {
        let had_last_turn = self.last_turn == Some(caller);
        let turn = (2 * self.turns).saturating_sub(u64::from(!had_last_turn));
        let new = || CallerQueue { checks: BTreeSet::new(), turn };
        self.queues.entry(caller).or_insert_with(new)
    }

    /// Records a turn of a caller. Afterwards, the caller comes after all other callers.
    fn take_turn(&mut self, caller: CallerId) {
        self.turns += 1;
        self.last_turn = Some(caller);
        if let Some(queue) = self.queues.get_mut(&caller) {
            queue.turn = 2 * self.turns;
        }
    }

    /// Returns the caller whose thread is checked next; `None` if no thread is due whose run may
    /// start. Skips callers for which `has_memory` returns false.
    fn next_caller(
        &self,
        now_ms: i64,
        places: &RunPlaces,
        has_memory: impl Fn(CallerId) -> bool,
    ) -> Option<CallerId> {
        let due = self.queues.iter().filter_map(|(caller, queue)| {
            let (at_ms, order, _) = queue.checks.first()?;
            let rank = (places.held_by(*caller), queue.turn, *at_ms, *order);
            (*at_ms <= now_ms && has_memory(*caller)).then_some((rank, *caller))
        });
        let (_, caller) = due.min()?;
        // If this caller may not start a run, a caller with more places may not start one either.
        places.may_start(caller).then_some(caller)
    }

    /// Takes the first check of a caller.
    fn take_check(&mut self, caller: CallerId) -> Option<ThreadId> {
        let (_, _, thread) = self.queues.get(&caller)?.checks.first()?.clone();
        self.take_turn(caller);
        self.set(&thread, None, caller);
        Some(thread)
    }

    /// Returns the time of the first check that is not due.
    fn next_time(&self, now_ms: i64) -> Option<i64> {
        let firsts = self.queues.values().filter_map(|queue| queue.checks.first());
        firsts.map(|(at_ms, ..)| *at_ms).filter(|at_ms| *at_ms > now_ms).min()
    }
}

impl DispatchSchedule {
    /// Locks the state. No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, ScheduleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules a check of a thread at `at_ms` for a run of `caller`, unless an earlier check is
    /// scheduled.
    pub(in crate::engine) fn schedule(&self, thread: &ThreadId, at_ms: i64, caller: CallerId) {
        let mut state = self.lock();
        let (at_ms, caller) = match state.threads.get(thread) {
            Some(&ScheduledThread { at_ms: Some(known_ms), caller: known, .. }) => {
                if at_ms < known_ms { (at_ms, caller) } else { (known_ms, known) }
            }
            // The run comes after the pending runs that the thread already has.
            Some(known) => (at_ms, known.caller),
            None => (at_ms, caller),
        };
        state.set(thread, Some(at_ms), caller);
        drop(state);
        self.changed.notify_one();
    }

    /// Schedules a further check of a thread at `at_ms`, unless an earlier check is scheduled.
    pub(in crate::engine) fn schedule_at(&self, thread: &ThreadId, at_ms: i64) {
        let caller = self.lock().threads.get(thread).map(|known| known.caller);
        self.schedule(thread, at_ms, caller.unwrap_or_default());
    }

    /// Sets the caller of the run that starts next on a thread.
    pub(super) fn set_caller(&self, thread: &ThreadId, caller: CallerId) {
        let mut state = self.lock();
        if let Some(at_ms) = state.threads.get(thread).map(|known| known.at_ms) {
            state.set(thread, at_ms, caller);
        }
    }

    /// Records that a run of a caller starts without a check, which is a turn of the caller.
    pub(in crate::engine) fn take_turn(&self, caller: CallerId) {
        self.lock().take_turn(caller);
    }

    /// Returns true if at least `count` checks are due at `now_ms`.
    pub(in crate::engine) fn has_due(&self, now_ms: i64, count: usize) -> bool {
        let state = self.lock();
        let is_due = |check: &&Check| check.0 <= now_ms;
        let due = state.queues.values().flat_map(|queue| queue.checks.iter().take_while(is_due));
        due.take(count).count() == count
    }

    /// Wakes the dispatcher, because the host may have a free place for a run.
    pub(in crate::engine) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Takes at most `most` threads, with their callers, whose check is due at `now_ms` and for
    /// whose runs the callers have places and memory. Adds the runs to `places`. Also returns the
    /// time of the next check.
    pub(super) fn take_due(
        &self,
        now_ms: i64,
        most: usize,
        places: &mut RunPlaces,
        has_memory: impl Fn(CallerId) -> bool,
    ) -> (Vec<(ThreadId, CallerId)>, Option<i64>) {
        let mut state = self.lock();
        let mut due = Vec::new();
        while let Some(caller) = state.next_caller(now_ms, places, &has_memory) {
            if due.len() == most {
                return (due, Some(now_ms));
            }
            let Some(thread) = state.take_check(caller) else { break };
            places.add(caller, 1);
            due.push((thread, caller));
        }
        (due, state.next_time(now_ms))
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

    /// Records the end of a run. The next run of the thread may start, and the place of the ended
    /// run is free for runs of other threads.
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

    /// Takes due threads without a limit of places.
    fn take(dispatch: &DispatchSchedule, now_ms: i64, most: usize) -> (Vec<ThreadId>, Option<i64>) {
        let mut places = RunPlaces::new(usize::MAX);
        let (due, next_ms) = dispatch.take_due(now_ms, most, &mut places, |_| true);
        (due.into_iter().map(|(thread, _)| thread).collect(), next_ms)
    }

    #[test]
    fn thread_is_due_once_at_the_earliest_requested_time() {
        let dispatch = DispatchSchedule::default();
        dispatch.schedule_at(&thread("a"), 9);
        dispatch.schedule_at(&thread("b"), 5);
        dispatch.schedule_at(&thread("a"), 3);
        dispatch.schedule_at(&thread("a"), 7);
        assert_eq!(take(&dispatch, 2, MOST), (vec![], Some(3)));
        assert_eq!(take(&dispatch, 4, MOST), (vec![thread("a")], Some(5)));
        assert_eq!(take(&dispatch, 99, MOST), (vec![thread("b")], None));
        dispatch.schedule_at(&thread("a"), 1);
        dispatch.schedule_at(&thread("b"), 2);
        assert_eq!(take(&dispatch, 99, 1), (vec![thread("a")], Some(99)));
    }

    #[test]
    fn thread_leaves_the_schedule_if_a_check_or_a_list_finds_no_pending_run() {
        let dispatch = DispatchSchedule::default();
        let (a, b) = (thread("a"), thread("b"));
        dispatch.schedule_at(&a, 0);
        assert_eq!(take(&dispatch, 0, MOST).0, std::slice::from_ref(&a));
        // A run is enqueued during the check.
        dispatch.schedule_at(&a, 5);
        dispatch.record_check(&a, &NextCheck::Never);
        assert!(dispatch.has_pending(&a));
        assert_eq!(take(&dispatch, 5, MOST).0, std::slice::from_ref(&a));
        dispatch.record_check(&a, &NextCheck::Never);
        assert!(!dispatch.has_pending(&a));
        dispatch.schedule_at(&a, 9);
        let number = dispatch.begin_list();
        dispatch.schedule_at(&b, 9);
        dispatch.end_list(number);
        assert_eq!((dispatch.has_pending(&a), dispatch.has_pending(&b)), (false, true));
        assert_eq!(take(&dispatch, 9, MOST).0, [b]);
    }

    fn caller(name: &str) -> CallerId {
        CallerId::of_key(name)
    }

    /// Schedules a thread of a caller for each name, which begins with the caller.
    fn schedule(dispatch: &DispatchSchedule, names: &[&str]) {
        for name in names {
            dispatch.schedule(&thread(name), 0, caller(&name[..1]));
        }
    }

    /// Takes all due threads one after another. Each run ends before the next one starts.
    fn in_turn(dispatch: &DispatchSchedule) -> Vec<String> {
        let next = || take(dispatch, 0, 1).0.pop();
        std::iter::from_fn(next).map(|thread| thread.to_string()).collect()
    }

    #[test]
    fn callers_take_turns_and_threads_of_a_caller_keep_their_order() {
        let dispatch = DispatchSchedule::default();
        schedule(&dispatch, &["a3", "a2", "a1", "a0", "b2", "b1", "c1"]);
        assert_eq!(in_turn(&dispatch), ["a3", "b2", "c1", "a2", "b1", "a1", "a0"]);
    }

    #[test]
    fn caller_that_had_the_last_turn_comes_after_a_new_caller() {
        let dispatch = DispatchSchedule::default();
        dispatch.take_turn(caller("a"));
        schedule(&dispatch, &["a1", "a2", "b1"]);
        assert_eq!(take(&dispatch, 0, 1).0, [thread("b1")]);
        // The last turn does not put caller `b` before caller `a` a second time.
        schedule(&dispatch, &["b2"]);
        assert_eq!(in_turn(&dispatch), ["a1", "b2", "a2"]);
    }

    #[test]
    fn caller_with_the_fewest_places_is_next() {
        let dispatch = DispatchSchedule::default();
        schedule(&dispatch, &["a1", "a2", "b1", "b2", "b3"]);
        let mut places = RunPlaces::new(6);
        places.add(caller("a"), 2);
        let (due, _) = dispatch.take_due(0, MOST, &mut places, |_| true);
        let due: Vec<String> = due.into_iter().map(|(thread, _)| thread.to_string()).collect();
        assert_eq!(due, ["b1", "b2", "a1", "b3"]);
        assert!(dispatch.has_due(0, 1) && !dispatch.has_due(0, 2), "no place is left for `b3`");
    }

    #[test]
    fn caller_without_memory_keeps_no_other_caller_from_its_turn() {
        let dispatch = DispatchSchedule::default();
        schedule(&dispatch, &["a1", "b1"]);
        let (due, next_ms) =
            dispatch.take_due(0, MOST, &mut RunPlaces::new(MOST), |other| other != caller("a"));
        assert_eq!((due, next_ms), (vec![(thread("b1"), caller("b"))], None));
        assert_eq!(in_turn(&dispatch), ["a1"]);
    }

    #[test]
    fn thread_moves_to_the_queue_of_the_caller_of_its_next_run() {
        let dispatch = DispatchSchedule::default();
        schedule(&dispatch, &["a1", "b1"]);
        // A later run of another caller does not move the thread; an earlier run does.
        dispatch.schedule(&thread("a1"), 0, caller("b"));
        dispatch.schedule(&thread("b1"), -1, caller("c"));
        let mut places = RunPlaces::new(MOST);
        let (due, _) = dispatch.take_due(0, MOST, &mut places, |_| true);
        let due: Vec<CallerId> = due.into_iter().map(|(_, caller)| caller).collect();
        assert_eq!(due, [caller("c"), caller("a")]);
        dispatch.set_caller(&thread("a1"), caller("b"));
        dispatch.schedule_at(&thread("a1"), 0);
        let (due, _) = dispatch.take_due(0, 1, &mut places, |_| true);
        assert_eq!(due, [(thread("a1"), caller("b"))]);
    }
}
