//! The memory that runs hold in the host, divided between callers.
//!
//! A run has limits of its state, of the journal of each task and of the outcomes of a superstep.
//! Many runs, each within these limits, could still exhaust the memory of the host. So all runs
//! together have a limit, and the runs of one caller hold at most half of what runs of other
//! callers leave; see [`shared_pool`](crate::shared_pool).
//!
//! # What counts
//!
//! What a run keeps between the polls of its tasks counts, by its weight (see
//! [`wattle_graph::weight`]):
//!
//! * the newest state of each graph of the run, and the events with which the run continues;
//! * the requests and results in the journals of tasks that have not ended;
//! * the requests of model calls in progress, with the messages of their histories;
//! * the input of a node that a client calls outside of any run;
//! * the outcomes of a superstep until it is applied;
//! * events until the store has accepted them.
//!
//! A run that waits for a person has ended, so it holds nothing.
//!
//! # Starts wait, growth does not
//!
//! A run takes its first memory before it reads the state of its thread. A pending run stays
//! pending until its caller has memory. A recovered run does not wait either, because it would keep
//! the runs of other callers from their recovery: its thread is set aside and tried again. Any
//! other run waits in a queue of its caller for a limited time. A run whose state does not fit does
//! not start: a pending run and a recovery are tried again later.
//!
//! The growth of a running run is granted or refused at once, because runs that hold memory and
//! wait for more could wait for one another forever. A model call whose request does not fit fails,
//! a task whose journal does not fit fails, and a run whose state or outcomes do not fit fails, with
//! the code `limit`. Events cannot be refused. They count beyond the share, so that later growth is
//! refused until the store has accepted them.
//!
//! # Cost
//!
//! A run takes memory from the pool in chunks, and divides its memory with one atomic operation for
//! each charge. A run that needs one chunk locks the pool only at its start and at its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use wattle_graph::checkpoint::{ChannelValue, Checkpoint};
use wattle_graph::failure::{Failure, code};

use crate::blocking::{are_large_values, block_in_place_if};
use crate::caller_id::CallerId;
use crate::limit::{RUN_MEMORY_CHUNK_BYTES, RUN_WAIT_MS, SMALL_RUN_BYTES, WAITING_RUNS};
use crate::shared_pool::{PoolLease, PoolLimits, Room, SharedPool};
use crate::state_cache::WeighedState;

/// Name of the limit in the details of failures.
const RUNS_MEMORY: &str = "runs_memory";

/// Unused memory of a run above which all but one chunk returns to the pool. The memory of many
/// small values that come and go stays with the run.
const SURPLUS_BYTES: u64 = 2 * RUN_MEMORY_CHUNK_BYTES;

/// The memory of all runs. Clones share it.
#[derive(Clone)]
pub(crate) struct RunMemoryPool {
    pool: SharedPool<CallerId>,
    freed: Arc<Freed>,
}

/// The signal that memory has returned to the pool.
#[derive(Default)]
struct Freed {
    notify: Notify,
    /// True if a caller had too little memory to start a run since the last signal.
    is_wanted: AtomicBool,
}

impl Freed {
    fn signal(&self) {
        if self.is_wanted.swap(false, Ordering::SeqCst) {
            self.notify.notify_one();
        }
    }
}

impl RunMemoryPool {
    /// Creates a pool of `total` bytes.
    pub(crate) fn new(total: u64) -> Self {
        let (small, waiting) = (SMALL_RUN_BYTES, WAITING_RUNS);
        let pool = SharedPool::new(PoolLimits { total, small, waiting });
        Self { pool, freed: Arc::default() }
    }

    /// Returns true if a caller has memory for the start of a run. If the result is false,
    /// [`RunMemoryPool::freed`] completes when memory returns to the pool.
    pub(crate) fn may_start(&self, caller: CallerId) -> bool {
        let fits = || self.pool.fits(&caller, RUN_MEMORY_CHUNK_BYTES, Room::Usual);
        if fits() {
            return true;
        }
        self.freed.is_wanted.store(true, Ordering::SeqCst);
        // Memory may have returned before the flag was set.
        fits()
    }

    /// Waits until memory returns to the pool, for the only task that starts pending runs.
    pub(crate) async fn freed(&self) {
        self.freed.notify.notified().await;
    }

    /// Takes the first memory of a run. Waits until it fits, behind the runs of the same caller
    /// that wait already.
    ///
    /// # Errors
    ///
    /// `limit` if [`WAITING_RUNS`] runs of the caller wait, or after [`RUN_WAIT_MS`].
    pub(crate) async fn start(&self, caller: CallerId) -> Result<RunMemory, Failure> {
        if let Ok(memory) = self.try_start(caller) {
            return Ok(memory);
        }
        // A run that stops waiting returns what it was granted meanwhile.
        let _freed = SignalOnDrop(self.freed.clone());
        let longest = Duration::from_millis(RUN_WAIT_MS);
        let entered = self.pool.enter(caller, RUN_MEMORY_CHUNK_BYTES, Room::Usual);
        match tokio::time::timeout(longest, entered).await {
            Ok(Some(lease)) => Ok(self.memory(lease)),
            Ok(None) => {
                let state = format!("and {WAITING_RUNS} more wait for it");
                Err(share_used(self.pool.share(&caller), &state))
            }
            Err(_elapsed) => {
                let state = format!("and no memory was free for {} s", longest.as_secs());
                Err(share_used(self.pool.share(&caller), &state))
            }
        }
    }

    /// Takes the first memory of a run like [`RunMemoryPool::start`], but does not wait.
    ///
    /// # Errors
    ///
    /// `limit` if the caller does not have enough memory.
    pub(crate) fn try_start(&self, caller: CallerId) -> Result<RunMemory, Failure> {
        self.try_begin(caller, Room::Usual)
    }

    /// Takes the first memory of a run that was cut, and does not wait. Part of the share of each
    /// caller is for such runs, so that new runs of the caller do not come before them.
    ///
    /// # Errors
    ///
    /// `limit` if the caller does not have enough memory.
    pub(crate) fn recover(&self, caller: CallerId) -> Result<RunMemory, Failure> {
        self.try_begin(caller, Room::Awaited)
    }

    fn try_begin(&self, caller: CallerId, room: Room) -> Result<RunMemory, Failure> {
        let lease = self.pool.try_enter(caller, RUN_MEMORY_CHUNK_BYTES, room);
        let lease = lease
            .ok_or_else(|| share_used(self.pool.share(&caller), "so this run cannot start now"))?;
        Ok(self.memory(lease))
    }

    fn memory(&self, lease: PoolLease<CallerId>) -> RunMemory {
        let (free, freed) = (AtomicU64::new(lease.held()), SignalOnDrop(self.freed.clone()));
        let excess = AtomicU64::default();
        RunMemory(Some(Arc::new(RunLease { lease, free, excess, freed })))
    }
}

/// The memory of one run. It returns to the pool when the last clone and the last charge are
/// dropped. The default counts nothing, for work that is no run of the engine.
#[derive(Clone, Default)]
pub(crate) struct RunMemory(Option<Arc<RunLease>>);

struct RunLease {
    lease: PoolLease<CallerId>,
    /// The part of the lease that nothing uses.
    free: AtomicU64,
    /// The part of the lease that was counted beyond the share of the caller.
    excess: AtomicU64,
    /// Dropped after the lease.
    freed: SignalOnDrop,
}

struct SignalOnDrop(Arc<Freed>);

impl Drop for SignalOnDrop {
    fn drop(&mut self) {
        self.0.signal();
    }
}

impl RunLease {
    /// Takes a part of the lease. Returns the missing bytes if the lease has less.
    fn take_free(&self, bytes: u64) -> Result<(), u64> {
        let rest = |free: u64| free.checked_sub(bytes);
        match self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest) {
            Ok(_) => Ok(()),
            Err(free) => Err(bytes - free),
        }
    }

    /// Takes a part of the lease, which grows if it has less. Returns the bytes that the pool
    /// refuses.
    fn try_take(&self, bytes: u64) -> Result<(), u64> {
        while let Err(missing) = self.take_free(bytes) {
            let more = whole_chunks(missing);
            if !self.lease.grow_by(more) {
                return Err(more);
            }
            self.free.fetch_add(more, Ordering::Relaxed);
        }
        Ok(())
    }

    fn take(&self, bytes: u64) -> Result<(), Failure> {
        self.try_take(bytes).map_err(|more| self.full(more))
    }

    /// Takes memory for what exists already, also beyond the share of the caller.
    fn count(&self, bytes: u64) {
        if self.try_take(bytes).is_err() {
            self.lease.count(bytes);
            self.excess.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Takes back memory of the lease. The memory beyond the share of the caller returns to the
    /// pool first: if it became free, the run would grow into it without a check of the share.
    fn give(&self, bytes: u64) {
        let rest = |excess: u64| (excess > 0).then_some(excess.saturating_sub(bytes));
        let before = self.excess.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        let returned = before.map_or(0, |excess| excess.min(bytes));
        if returned > 0 {
            self.lease.shrink_by(returned);
            self.freed.0.signal();
        }
        self.free_up(bytes - returned);
    }

    fn free_up(&self, bytes: u64) {
        let free = self.free.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if free <= SURPLUS_BYTES {
            return;
        }
        let kept = |free: u64| (free > SURPLUS_BYTES).then_some(RUN_MEMORY_CHUNK_BYTES);
        let surplus = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, kept);
        if let Ok(before) = surplus {
            self.lease.shrink_by(before - RUN_MEMORY_CHUNK_BYTES);
            self.freed.0.signal();
        }
    }

    /// Returns the failure of a run that cannot grow by `more` bytes.
    fn full(&self, more: u64) -> Failure {
        let (pool, owner) = (self.lease.pool(), self.lease.owner());
        let most = pool.most_of_one();
        let held = self.lease.held().saturating_sub(self.excess.load(Ordering::Relaxed));
        if held.saturating_add(more) > most {
            return too_large(most);
        }
        share_used(pool.share(owner), "so this run cannot hold more now")
    }
}

fn whole_chunks(bytes: u64) -> u64 {
    bytes.div_ceil(RUN_MEMORY_CHUNK_BYTES).saturating_mul(RUN_MEMORY_CHUNK_BYTES)
}

/// Returns the failure if the runs of a caller hold their share of `share` bytes. `state` says what
/// follows for the run.
fn share_used(share: u64, state: &str) -> Failure {
    let text = format!(
        "the runs of this caller hold their share of the memory of all runs, at present {share} \
         bytes, {state}; try again when some have ended, run fewer at once, put large data into \
         blobs, or raise `limits.runs_memory`"
    );
    let details = json!({ "limit": RUNS_MEMORY, "allowed": share });
    Failure::new(code::LIMIT, text).retryable().with_details(details)
}

/// Returns the failure of a run that needs more than `most` bytes.
fn too_large(most: u64) -> Failure {
    let text = format!(
        "the run needs more than {most} bytes of memory for its state, its journals and its \
         events, and one run cannot have more of the memory of all runs; put large data into \
         blobs, or raise `limits.runs_memory`"
    );
    Failure::new(code::LIMIT, text).with_details(json!({ "limit": RUNS_MEMORY, "allowed": most }))
}

/// Returns true if a run has failed because its caller did not have enough memory, and may succeed
/// later.
pub(crate) fn lacks_memory(failure: &Failure) -> bool {
    let limit = failure.details.as_ref().and_then(|details| details["limit"].as_str());
    failure.code == code::LIMIT && failure.retryable && limit == Some(RUNS_MEMORY)
}

/// Returns the memory of the values of a checkpoint, in bytes.
pub(crate) fn state_bytes(checkpoint: &Checkpoint) -> u64 {
    let is_long = are_large_values(WeighedState::decoded_values(checkpoint));
    let values = checkpoint.values.values();
    block_in_place_if(is_long, || values.map(ChannelValue::memory_bytes).sum())
}

/// The part of a run's memory that one thing takes, such as a journal. It returns to the run on
/// drop.
#[derive(Default)]
pub(crate) struct MemoryCharge {
    memory: RunMemory,
    bytes: AtomicU64,
}

impl MemoryCharge {
    /// Creates a charge of 0 bytes.
    pub(crate) fn new(memory: RunMemory) -> Self {
        Self { memory, bytes: AtomicU64::new(0) }
    }

    /// Creates a charge of 0 bytes for something else in the same run.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.memory.clone())
    }

    /// Returns false if the charge counts nothing.
    pub(crate) fn is_of_run(&self) -> bool {
        self.memory.0.is_some()
    }

    /// Raises the charge to `bytes`. Does nothing if the charge is higher.
    ///
    /// # Errors
    ///
    /// `limit` if the run does not get the memory. The charge is then unchanged.
    pub(crate) fn raise_to(&self, bytes: u64) -> Result<(), Failure> {
        let Some(lease) = &self.memory.0 else { return Ok(()) };
        let mut before = self.bytes.load(Ordering::Relaxed);
        while let Some(more) = bytes.checked_sub(before).filter(|more| *more > 0) {
            lease.take(more)?;
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            match self.bytes.compare_exchange(before, bytes, success, failure) {
                Ok(_) => return Ok(()),
                // Another task has changed the charge.
                Err(now) => {
                    lease.give(more);
                    before = now;
                }
            }
        }
        Ok(())
    }

    /// Raises or lowers the charge to `bytes`.
    ///
    /// # Errors
    ///
    /// See [`MemoryCharge::raise_to`].
    pub(crate) fn set(&mut self, bytes: u64) -> Result<(), Failure> {
        let before = *self.bytes.get_mut();
        if bytes >= before {
            return self.raise_to(bytes);
        }
        *self.bytes.get_mut() = bytes;
        if let Some(lease) = &self.memory.0 {
            lease.give(before - bytes);
        }
        Ok(())
    }

    /// Raises the charge by `bytes` for what exists already, also beyond the share of the caller.
    pub(crate) fn count(&mut self, bytes: u64) {
        if let Some(lease) = &self.memory.0 {
            lease.count(bytes);
            *self.bytes.get_mut() += bytes;
        }
    }

    /// Moves the charge into the result, and leaves a charge of 0 bytes.
    pub(crate) fn take(&mut self) -> Self {
        let bytes = std::mem::take(self.bytes.get_mut());
        Self { memory: self.memory.clone(), bytes: AtomicU64::new(bytes) }
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        if let Some(lease) = &self.memory.0 {
            lease.give(*self.bytes.get_mut());
        }
    }
}

#[cfg(test)]
mod tests;
