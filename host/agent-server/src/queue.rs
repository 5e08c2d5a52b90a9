//! Runs that wait for their turn: one run of a thread is at work at a time, the others come after
//! it in the order in which they were asked for.
//!
//! Each thread with runs that wait has a lane with one worker. The lane is only an order: what is
//! to be run stands in the documents, and whether it still waits. So a host that starts again takes
//! the lanes up, as does another one that shares the documents, and a run is taken out by whichever
//! host is asked to.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as Gate, Notify, OwnedMutexGuard, watch};
use tokio::time::Instant;
use wattle_graph::id::{RunId, ThreadId};

use crate::doc::run::RunDoc;

mod submit;
mod take_out;
mod take_up;
mod work;

pub(crate) use self::submit::{cancel, has_waiting, remove, submit};
pub(crate) use self::take_out::drop_waiting;
pub(crate) use self::take_up::{listed, take_up};

/// Runs that may wait for one thread: each is a document in memory and on disk.
const LANE_RUNS: usize = 1_000;

/// All lanes.
#[derive(Default)]
pub(crate) struct Queue {
    lanes: Mutex<HashMap<ThreadId, Lane>>,
}

/// What waits for one thread.
#[derive(Default)]
struct Lane {
    /// Held while it is decided what the thread does next.
    gate: Arc<Gate<()>>,
    waiting: VecDeque<Turn>,
    has_worker: bool,
    /// Tells the worker that other runs wait than before.
    changed: Arc<Notify>,
    /// How many hold the gate or wait for it: a lane without any, and without runs, is forgotten.
    users: usize,
}

/// A run that waits.
#[derive(Clone)]
struct Turn {
    doc: Arc<RunDoc>,
    /// Not before.
    due: Instant,
    /// Becomes true when it does not wait any more.
    left: Arc<watch::Sender<bool>>,
}

impl Turn {
    fn new(doc: RunDoc, now_ms: i64) -> Self {
        let wait_ms = u64::try_from(doc.due_ms.saturating_sub(now_ms)).unwrap_or(0);
        let due = Instant::now() + Duration::from_millis(wait_ms);
        Self { doc: Arc::new(doc), due, left: Arc::new(watch::Sender::new(false)) }
    }
}

/// The right to decide what a thread does next, for as long as this lives.
pub(crate) struct Turnstile<'q> {
    _held: OwnedMutexGuard<()>,
    _user: User<'q>,
}

/// One of those who have that right or wait for it, and may stop waiting.
struct User<'q> {
    queue: &'q Queue,
    thread: ThreadId,
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        let mut lanes = self.queue.lock();
        if let Some(lane) = lanes.get_mut(&self.thread) {
            lane.users -= 1;
        }
        forget_idle(&mut lanes, &self.thread);
    }
}

fn forget_idle(lanes: &mut HashMap<ThreadId, Lane>, thread: &ThreadId) {
    let is_idle = |lane: &Lane| lane.users == 0 && !lane.has_worker && lane.waiting.is_empty();
    if lanes.get(thread).is_some_and(is_idle) {
        lanes.remove(thread);
    }
}

impl Queue {
    /// No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the right to decide what a thread does next.
    pub(crate) async fn enter(&self, thread: &ThreadId) -> Turnstile<'_> {
        let gate = {
            let mut lanes = self.lock();
            let lane = lanes.entry(thread.clone()).or_default();
            lane.users += 1;
            lane.gate.clone()
        };
        let user = User { queue: self, thread: thread.clone() };
        Turnstile { _held: gate.lock_owned().await, _user: user }
    }

    /// Waits until nobody decides what a thread does next.
    pub(crate) async fn settle(&self, thread: &ThreadId) {
        drop(self.enter(thread).await);
    }

    /// Whether runs wait for a thread.
    pub(crate) fn has_waiting(&self, thread: &ThreadId) -> bool {
        self.lock().get(thread).is_some_and(|lane| !lane.waiting.is_empty())
    }

    /// All runs that wait here.
    fn waiting(&self) -> Vec<(ThreadId, RunId)> {
        let lanes = self.lock();
        let docs = lanes.values().flat_map(|lane| &lane.waiting).map(|turn| &turn.doc);
        docs.map(|doc| (doc.thread.clone(), doc.run.clone())).collect()
    }

    /// Becomes true when a run does not wait any more; `None` if it does not wait here.
    pub(crate) fn left(&self, thread: &ThreadId, run: &RunId) -> Option<watch::Receiver<bool>> {
        let lanes = self.lock();
        let turn = lanes.get(thread)?.waiting.iter().find(|turn| turn.doc.run == *run)?;
        Some(turn.left.subscribe())
    }

    /// Takes runs out of a lane: the one that is named, or all.
    fn leave(&self, thread: &ThreadId, run: Option<&RunId>) {
        let mut lanes = self.lock();
        let Some(lane) = lanes.get_mut(thread) else { return };
        let is_meant = |turn: &Turn| run.is_none_or(|run| turn.doc.run == *run);
        let (taken, kept): (VecDeque<Turn>, _) = lane.waiting.drain(..).partition(is_meant);
        lane.waiting = kept;
        lane.changed.notify_one();
        for turn in taken {
            turn.left.send_replace(true);
        }
    }

    /// Puts a run at the end of its lane, unless it waits there already. `true` if the lane needs a
    /// worker, which is then counted.
    fn push(&self, turn: Turn) -> bool {
        let mut lanes = self.lock();
        let lane = lanes.entry(turn.doc.thread.clone()).or_default();
        if lane.waiting.iter().any(|waiting| waiting.doc.run == turn.doc.run) {
            return false;
        }
        lane.waiting.push_back(turn);
        lane.changed.notify_one();
        !std::mem::replace(&mut lane.has_worker, true)
    }

    fn is_full(&self, thread: &ThreadId) -> bool {
        self.lock().get(thread).is_some_and(|lane| lane.waiting.len() >= LANE_RUNS)
    }

    /// The first run whose time has come, or when that is. The worker ends with `None`.
    fn next(&self, thread: &ThreadId) -> Option<Next> {
        let mut lanes = self.lock();
        let lane = lanes.get_mut(thread)?;
        let now = Instant::now();
        if let Some(turn) = lane.waiting.iter().find(|turn| turn.due <= now) {
            return Some(Next::Turn(turn.clone()));
        }
        if let Some(due) = lane.waiting.iter().map(|turn| turn.due).min() {
            return Some(Next::At(due, lane.changed.clone()));
        }
        lane.has_worker = false;
        forget_idle(&mut lanes, thread);
        None
    }
}

/// What a lane's worker does next.
enum Next {
    /// Begins a run.
    Turn(Turn),
    /// Looks again at that time, or when other runs wait.
    At(Instant, Arc<Notify>),
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_lane_is_forgotten_also_if_somebody_stopped_waiting_for_it() {
        let (queue, thread) = (Queue::default(), ThreadId::new("t").unwrap());
        let turnstile = queue.enter(&thread).await;
        assert!(queue.enter(&thread).now_or_never().is_none());
        assert_eq!(queue.lock().len(), 1);
        drop(turnstile);
        assert!(queue.lock().is_empty());
    }
}
