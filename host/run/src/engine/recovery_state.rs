//! The state of the recovery of orphaned runs: its progress, the threads that are set aside, and
//! the runs that wait for their apps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};

use crate::ports::store::OrphanedThread;
use crate::reads::ReadTurns;

/// Maximum number of concurrent recoveries that hold a large thread. The stored size of a thread
/// does not bound the memory of its recovery: decoded, a thread can take thousands of times its
/// compressed size.
const RECOVERY_READS: usize = 4;

/// Progress of the recovery after a start of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// True if each run that was orphaned before the start is recovered, waits for its app, or
    /// cannot be recovered, so that its thread is set aside.
    pub is_complete: bool,
    /// Number of orphaned runs that were found.
    pub found: usize,
    /// Number of orphaned runs that continue.
    pub recovered: usize,
    /// Number of threads that are set aside now.
    pub set_aside: usize,
    /// Number of orphaned runs that now wait until their apps are loaded.
    pub waiting: usize,
}

impl Recovery {
    /// The progress if there is nothing to recover.
    pub(super) const NONE: Self =
        Self { is_complete: true, found: 0, recovered: 0, set_aside: 0, waiting: 0 };
}

/// A thread whose orphaned run cannot be recovered.
#[derive(Clone, Debug, PartialEq)]
pub struct SetAside {
    /// The orphaned run.
    pub run: Option<RunId>,
    /// The failure of the last attempt.
    pub failure: Failure,
    /// Time of the first failure, milliseconds since 1970.
    pub since_ms: i64,
    /// Number of failed attempts.
    pub attempts: u32,
    /// Time of the next attempt, milliseconds since 1970.
    pub(super) retry_ms: i64,
}

/// State of the recovery.
pub(super) struct RecoveryState {
    pub(super) progress: watch::Sender<Recovery>,
    /// Notified when another host has handed over runs.
    pub(super) handed_over: Notify,
    /// Turns of recoveries that hold a large thread. The recovery after a start, that of runs whose
    /// apps have been loaded, and that of runs of other hosts share them.
    pub(super) turns: ReadTurns,
    set_aside: Mutex<BTreeMap<ThreadId, SetAside>>,
    /// Orphaned runs whose apps are being loaded.
    waiting: Mutex<BTreeMap<ThreadId, OrphanedThread>>,
    /// Threads with an orphaned run whose log this process could not write.
    lost_logs: Mutex<BTreeSet<ThreadId>>,
}

impl Default for RecoveryState {
    fn default() -> Self {
        let progress = watch::Sender::new(Recovery::NONE);
        let (set_aside, waiting, lost_logs) =
            (Mutex::default(), Mutex::default(), Mutex::default());
        let turns = ReadTurns::new(RECOVERY_READS);
        Self { progress, handed_over: Notify::new(), turns, set_aside, waiting, lost_logs }
    }
}

impl RecoveryState {
    /// Locks the threads that are set aside. No code that can panic runs under this lock.
    pub(super) fn set_aside(&self) -> MutexGuard<'_, BTreeMap<ThreadId, SetAside>> {
        self.set_aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the runs that wait for their apps. No code that can panic runs under this lock.
    pub(super) fn waiting(&self) -> MutexGuard<'_, BTreeMap<ThreadId, OrphanedThread>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the threads whose logs were lost. No code that can panic runs under this lock.
    pub(super) fn lost_logs(&self) -> MutexGuard<'_, BTreeSet<ThreadId>> {
        self.lost_logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the progress, unless the recovery after a start is complete.
    pub(super) fn update_progress(&self, change: impl FnOnce(&mut Recovery)) {
        self.progress.send_if_modified(|recovery| {
            if recovery.is_complete {
                return false;
            }
            change(recovery);
            true
        });
    }
}
