//! Going on with runs that were cut: by a crash or a shutdown of this host, or of one that shares the
//! store.
//!
//! After a start this happens in the background, oldest first, a few at a time. Whatever is wanted
//! of a thread meanwhile goes on with its run first. A run that cannot be gone on with is set aside
//! with the reason; it keeps no other from going on, and is tried again now and then, after the next
//! start, or when somebody asks for it.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use serde_json::json;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::task::AbortOnDropHandle;
use wattle_graph::event::{RunReason, RunStatus};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};

use super::{Engine, Inner, new_run_id, no_thread};
use crate::hostcall::runs::RunRef;
use crate::limit;
use crate::ports::Ports;
use crate::ports::store::{LEASE_MS, StoreError, ThreadHead, ThreadRecord, ThreadStatus};
use crate::view::store_failure;

/// Runs that are gone on with at once: each waits for the store a few times before it begins.
const AT_ONCE: usize = 16;

/// Bytes of a permit to read threads.
const PERMIT_BYTES: u64 = 1 << 10;

/// Shortest pause between two looks. With many hosts some lease would run out all the time, unless
/// its host is heard of, which nearly always it is.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);

/// Pause before another look at a store that could not say which runs were cut.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Runs after which the log tells how far the recovery is.
const TOLD_RUNS: usize = 500;

/// Pause before a run that was set aside is tried again; it doubles each time, so that one that
/// never works costs little.
const FIRST_RETRY_MS: i64 = 30_000;

/// The longest of these pauses.
const LONGEST_RETRY_MS: i64 = 3_600_000;

/// How far the recovery after a start is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Whether all runs that were cut before the start have been gone on with or set aside.
    pub is_over: bool,
    /// Runs that were found.
    pub found: usize,
    /// Runs that go on.
    pub recovered: usize,
    /// Runs that are set aside now.
    pub set_aside: usize,
}

impl Recovery {
    /// Nothing is to be recovered.
    const NONE: Self = Self { is_over: true, found: 0, recovered: 0, set_aside: 0 };
}

/// A thread whose run was cut and cannot be gone on with.
#[derive(Clone, Debug, PartialEq)]
pub struct SetAside {
    /// Its run.
    pub run: Option<RunId>,
    /// Why.
    pub failure: Failure,
    /// Since when, milliseconds since 1970.
    pub since_ms: i64,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is tried again, milliseconds since 1970.
    retry_ms: i64,
}

/// What an engine knows of runs that were cut.
pub(super) struct Cuts {
    progress: watch::Sender<Recovery>,
    /// Another host has stopped runs.
    pub(super) handed_over: Notify,
    set_aside: Mutex<BTreeMap<ThreadId, SetAside>>,
}

impl Default for Cuts {
    fn default() -> Self {
        let progress = watch::Sender::new(Recovery::NONE);
        Self { progress, handed_over: Notify::new(), set_aside: Mutex::default() }
    }
}

impl Cuts {
    /// No code that can panic runs under this lock.
    fn set_aside(&self) -> MutexGuard<'_, BTreeMap<ThreadId, SetAside>> {
        self.set_aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what belongs to the recovery after a start.
    fn note(&self, change: impl FnOnce(&mut Recovery)) {
        self.progress.send_if_modified(|recovery| {
            if recovery.is_over {
                return false;
            }
            change(recovery);
            true
        });
    }
}

/// A thread whose run was cut. Its record may be large, so only this is kept of many.
#[derive(Clone)]
struct Cut {
    thread: ThreadId,
    run: Option<RunId>,
    updated_ms: i64,
}

impl From<ThreadRecord> for Cut {
    fn from(record: ThreadRecord) -> Self {
        Self { thread: record.id, run: record.run, updated_ms: record.updated_ms }
    }
}

/// What became of an attempt to go on with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// It goes on.
    Recovered,
    /// There is nothing to go on with: it has ended, or is at work.
    Nothing,
    /// It was set aside.
    SetAside,
}

impl Engine {
    /// Begins to go on with the runs that were cut, in the background. Answers at once: from then on
    /// whatever is wanted of such a thread waits until its run goes on.
    pub fn start_recovery(&self) {
        self.serve();
        self.0.cuts.progress.send_replace(Recovery { is_over: false, ..Recovery::NONE });
        let engine = self.clone();
        self.0.runtime.spawn(async move {
            while engine.recover_all().await.is_err() {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            engine.0.cuts.note(|recovery| recovery.is_over = true);
            engine.keep_dispatching();
        });
    }

    /// How far the recovery is.
    pub fn recovery(&self) -> Recovery {
        let set_aside = self.0.cuts.set_aside().len();
        Recovery { set_aside, ..*self.0.cuts.progress.borrow() }
    }

    /// Waits until the recovery is over.
    pub async fn recovered(&self) -> Recovery {
        let mut progress = self.0.cuts.progress.subscribe();
        // The sender is there as long as this engine is.
        let _ = progress.wait_for(|recovery| recovery.is_over).await;
        self.recovery()
    }

    /// Why the run of a thread cannot be gone on with, if it was set aside.
    pub fn set_aside(&self, thread: &ThreadId) -> Option<SetAside> {
        self.0.cuts.set_aside().get(thread).cloned()
    }

    /// Goes on with the runs that a crash or a shutdown cut, on this host or on one that shares the
    /// store and is silent. Answers how many.
    pub async fn recover(&self) -> usize {
        // What went wrong is in the log.
        self.recover_all().await.unwrap_or_default()
    }

    pub(super) async fn recover_all(&self) -> Result<usize, StoreError> {
        let cuts = self.cut_runs().await.inspect_err(|error| {
            tracing::error!(%error, "cannot look for runs to recover");
        })?;
        self.0.cuts.note(|recovery| recovery.found += cuts.len());
        if !cuts.is_empty() {
            tracing::info!(runs = cuts.len(), "going on with runs that were cut");
        }
        let room = Arc::new(Semaphore::new(permits(limit::RECOVERY_BYTES) as usize));
        let attempts = futures::stream::iter(cuts).map(|cut| self.in_its_turn(cut, room.clone()));
        let recovered = attempts.buffer_unordered(AT_ONCE).fold(0, |sum, came| async move {
            let sum = sum + usize::from(came == Came::Recovered);
            if came == Came::Recovered && sum % TOLD_RUNS == 0 {
                tracing::info!(runs = sum, "runs go on that were cut");
            }
            sum
        });
        let recovered = recovered.await;
        let Recovery { is_over, set_aside, .. } = self.recovery();
        if !is_over && recovered + set_aside > 0 {
            tracing::info!(
                runs = recovered,
                set_aside,
                "all runs that were cut have been looked at"
            );
        }
        Ok(recovered)
    }

    /// Runs that were cut and are due, oldest first.
    async fn cut_runs(&self) -> Result<Vec<Cut>, StoreError> {
        let (mut cuts, mut after) = (Vec::new(), None);
        loop {
            let holder = self.0.leases.holder();
            let found = self.0.ports.store.abandoned(holder, after.as_ref()).await?;
            let Some(last) = found.last() else { break };
            after = Some(last.id.clone());
            let is_wanted =
                |record: &ThreadRecord| !self.is_active(&record.id) && self.is_due(&record.id);
            cuts.extend(found.into_iter().filter(is_wanted).map(Cut::from));
        }
        cuts.sort_by(|one, other| {
            (one.updated_ms, &one.thread).cmp(&(other.updated_ms, &other.thread))
        });
        Ok(cuts)
    }

    /// Whether a run that was set aside is to be tried again.
    fn is_due(&self, thread: &ThreadId) -> bool {
        self.set_aside(thread).is_none_or(|aside| aside.retry_ms <= self.now_ms())
    }

    /// Waits for room for what is read of the thread. In a task of its own: to read a large thread
    /// must not hold up the others.
    async fn in_its_turn(&self, cut: Cut, room: Arc<Semaphore>) -> Came {
        let bytes = self.0.ports.store.stored_bytes(&cut.thread).await.unwrap_or(u64::MAX);
        // One thread leaves half of the room to others, however large it is.
        let wanted = permits(bytes.min(limit::RECOVERY_BYTES / 2));
        let _room = room.acquire_many_owned(wanted).await;
        let engine = self.clone();
        let attempt = async move { engine.recover_or_set_aside(cut).await };
        AbortOnDropHandle::new(self.0.runtime.spawn(attempt)).await.unwrap_or(Came::Nothing)
    }

    /// Shares the runs with other hosts for as long as it is polled: recovers runs of theirs, and
    /// reports the load of this one. It looks for runs when another host has handed some over, and when
    /// the next lease runs out: a host that lives has been heard of by then.
    pub async fn keep_recovering(&self) {
        tokio::join!(self.keep_looking(), self.keep_balancing());
    }

    async fn keep_looking(&self) {
        let Inner { ports: Ports { store, .. }, leases, cuts, .. } = &*self.0;
        let longest = Duration::from_millis(store.lease_ms().min(LEASE_MS));
        self.recovered().await;
        loop {
            self.recover().await;
            let next = store.next_lapse(leases.holder()).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot look when leases of other hosts end");
                None
            });
            // A host that begins meanwhile may have a shorter lease than this one.
            let pause = next.unwrap_or(longest).clamp(SHORTEST_PAUSE, longest);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = cuts.handed_over.notified() => {}
            }
        }
    }

    /// Tries runs again that were set aside and are due. Answers how many go on.
    pub async fn retry_set_aside(&self) -> usize {
        let due: Vec<ThreadId> = {
            let now_ms = self.now_ms();
            let set_aside = self.0.cuts.set_aside();
            let due = set_aside.iter().filter(|(_, aside)| aside.retry_ms <= now_ms);
            due.map(|(thread, _)| thread.clone()).collect()
        };
        let mut recovered = 0;
        for thread in due {
            recovered +=
                usize::from(self.pull(&thread).await.is_ok_and(|it| it == Came::Recovered));
        }
        recovered
    }

    /// Tries once more to go on with the run of a thread that was cut.
    ///
    /// # Errors
    ///
    /// `not-found`; `conflict` if the thread has no run that was cut; why the run cannot be gone on
    /// with.
    pub async fn retry(&self, thread: &ThreadId) -> Result<RunRef, Failure> {
        let head = self.live_thread(thread).await?.ok_or_else(|| no_thread(thread))?;
        let came = self.pull(thread).await?;
        if let Some(aside) = self.set_aside(thread).filter(|_| came == Came::SetAside) {
            return Err(aside.failure);
        }
        match (head.record.status, head.record.run) {
            (ThreadStatus::Running, Some(run)) => Ok(RunRef { thread: thread.clone(), run }),
            _ => Err(Failure::new(
                code::CONFLICT,
                format!("thread `{thread}` has no run that was cut; nothing is to be tried again"),
            )),
        }
    }

    /// Goes on with the run of a thread before anything else is done with it, while the recovery
    /// after a start has perhaps not come to it yet.
    pub(super) async fn pull_forward(&self, thread: &ThreadId) -> Result<(), Failure> {
        if self.recovery().is_over || self.set_aside(thread).is_some() {
            return Ok(());
        }
        self.pull(thread).await.map(drop)
    }

    async fn pull(&self, thread: &ThreadId) -> Result<Came, Failure> {
        if self.is_active(thread) {
            return Ok(Came::Nothing);
        }
        let head = self.0.ports.store.thread(thread).await.map_err(store_failure)?;
        let Some(record) = head.map(|head| head.record) else {
            self.forget_cut(thread);
            return Ok(Came::Nothing);
        };
        if record.status != ThreadStatus::Running {
            self.forget_cut(thread);
            return Ok(Came::Nothing);
        }
        Ok(self.recover_or_set_aside(record.into()).await)
    }

    async fn recover_or_set_aside(&self, cut: Cut) -> Came {
        let patience = Duration::from_millis(limit::RECOVERY_MS);
        let attempt = tokio::time::timeout(patience, self.recover_thread(&cut));
        // What it has claimed is given back while it unwinds.
        let recovered = match AssertUnwindSafe(attempt).catch_unwind().await {
            Ok(in_time) => in_time.unwrap_or_else(|_elapsed| Err(too_long(&cut.thread))),
            Err(panic) => Err(panicked(&cut.thread, &*panic)),
        };
        let failure = match recovered {
            Ok(is_recovered) => {
                self.forget_cut(&cut.thread);
                self.0.cuts.note(|recovery| recovery.recovered += usize::from(is_recovered));
                return if is_recovered { Came::Recovered } else { Came::Nothing };
            }
            Err(failure) => failure,
        };
        if failure.code == code::BUSY || self.is_halting() {
            tracing::debug!(thread = %cut.thread, %failure, "a run is at work elsewhere");
            return Came::Nothing;
        }
        tracing::error!(
            thread = %cut.thread, %failure,
            "cannot go on with a run that was cut; it is set aside"
        );
        self.put_aside(cut, failure);
        Came::SetAside
    }

    /// Sets aside a thread whose run was cut by what cannot pass.
    pub(super) fn put_run_aside(&self, run: RunRef, failure: Failure) {
        let cut = Cut { thread: run.thread, run: Some(run.run), updated_ms: self.now_ms() };
        self.put_aside(cut, failure);
    }

    fn put_aside(&self, cut: Cut, failure: Failure) {
        let now_ms = self.now_ms();
        let mut set_aside = self.0.cuts.set_aside();
        let before = set_aside.get(&cut.thread);
        let attempts = before.map_or(0, |aside| aside.attempts);
        let pause_ms = FIRST_RETRY_MS.saturating_mul(1_i64 << attempts.min(16));
        let aside = SetAside {
            run: cut.run,
            failure,
            since_ms: before.map_or(now_ms, |aside| aside.since_ms),
            attempts: attempts + 1,
            retry_ms: now_ms.saturating_add(pause_ms.min(LONGEST_RETRY_MS)),
        };
        set_aside.insert(cut.thread, aside);
    }

    /// A thread is deleted, and so is what was known of its run.
    pub(super) fn forget_cut(&self, thread: &ThreadId) {
        self.0.cuts.set_aside().remove(thread);
    }

    /// `false` if the run has ended meanwhile, on the host that was at work on it.
    async fn recover_thread(&self, cut: &Cut) -> Result<bool, Failure> {
        let run = cut.run.clone().unwrap_or_else(new_run_id);
        let mut slot = self.claim_first(&cut.thread, run.clone()).await?;
        let store = &self.0.ports.store;
        let Some(head) = self.live_thread(&cut.thread).await? else { return Ok(false) };
        if head.record.status != ThreadStatus::Running || head.record.run != cut.run {
            return Ok(false);
        }
        let known = store.run(&run).await.map_err(store_failure)?;
        if known.as_ref().is_some_and(|run| run.status != RunStatus::Running) {
            return Ok(false);
        }
        let run = known.unwrap_or_else(|| self.new_run(&mut slot, &head, None));
        self.go_on(slot, head, run, RunReason::Recovery, Vec::new()).await?;
        Ok(true)
    }

    /// A run that was cut goes on in its thread, and nothing else is begun there before that.
    ///
    /// # Errors
    ///
    /// `unavailable` until the run is recovered; `busy`, with the reason, if it was set aside.
    pub(super) async fn refuse_cut(&self, head: &ThreadHead) -> Result<(), Failure> {
        let (ThreadStatus::Running, Some(run)) = (head.record.status, &head.record.run) else {
            return Ok(());
        };
        let known = self.0.ports.store.run(run).await.map_err(store_failure)?;
        match known {
            Some(known) if known.status == RunStatus::Running => {
                Err(self.not_recovered(&head.record.id, run))
            }
            _ => Ok(()),
        }
    }

    /// Why nothing can be done with a run that was cut.
    pub(super) fn not_recovered(&self, thread: &ThreadId, run: &RunId) -> Failure {
        if let Some(aside) = self.set_aside(thread) {
            let text = format!(
                "run `{run}` was cut and cannot be gone on with: {}; mend that and retry the \
                 thread, or delete it",
                aside.failure.message
            );
            return Failure::new(code::BUSY, text);
        }
        let text = if self.is_halting() {
            format!(
                "the host is shutting down; run `{run}` is recovered elsewhere or after a start"
            )
        } else {
            format!("run `{run}` was cut and is not recovered yet; try again")
        };
        let details = json!({ "thread_id": thread, "run_id": run });
        Failure::new(code::UNAVAILABLE, text).retryable().with_details(details)
    }
}

fn permits(bytes: u64) -> u32 {
    u32::try_from(bytes / PERMIT_BYTES).unwrap_or(u32::MAX).max(1)
}

fn too_long(thread: &ThreadId) -> Failure {
    Failure::new(
        code::TIMEOUT,
        format!("thread `{thread}` could not be read within {} ms", limit::RECOVERY_MS),
    )
}

/// A fault of the host itself, which keeps no other run from going on.
fn panicked(thread: &ThreadId, panic: &(dyn Any + Send)) -> Failure {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
    let said = said.unwrap_or("without a message");
    Failure::internal(format!("the recovery of thread `{thread}` panicked: {said}"))
}
