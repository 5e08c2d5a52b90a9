//! The floor of free disk space, below which a host begins nothing that takes more of the disk.
//!
//! The number of threads and the bytes of blobs have no limit by default, so callers can fill the
//! disk, and on a full disk no run can write its log. Below the floor, the host refuses new
//! threads, new runs, blobs, documents and plugins, and writes no files of apps. The rest of the
//! disk is for the logs of runs in progress, and for cancels and deletes, which write as well.
//! Answers to questions have half of it too: a person may have waited long for the question, and
//! the run that asked has stored nearly all that it has.
//!
//! The space is read at most once in [`DISK_READING_MS`], and not on a thread that serves requests:
//! a file system of the network can block for long. While the space is read, the previous reading
//! applies to all other work. Only before the first reading, all work waits.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use tokio::task::spawn_blocking;
use wattle_graph::failure::{Failure, code};

use crate::limit::{ANSWER_FLOOR_DIVISOR, DISK_READING_MS, FREE_DISK_BYTES, FREE_DISK_DIVISOR};

/// Name of the limit in the details of failures.
const FREE_DISK: &str = "free_disk";

/// What does not happen below the floor.
const NEW_REFUSED: &str =
    "no run begins, and no thread, blob, document, plugin or file of an app is stored";

const NANOS_PER_MILLI: u64 = 1_000_000;

/// The space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes of the whole file system.
    pub total_bytes: u64,
    /// Bytes that the process can still write.
    pub free_bytes: u64,
}

/// The free space of the disk at the last reading, and its floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskStatus {
    /// Bytes that the process can still write.
    pub free_bytes: u64,
    /// Free bytes below which the host begins nothing.
    pub floor_bytes: u64,
}

/// Work that takes more of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskUse {
    /// A new run, a new thread, a blob, a document of the long-term memory, a plugin or the files
    /// that an app has of a run.
    New,
    /// Answers to questions of a thread.
    Answer,
}

impl DiskUse {
    /// Returns the free bytes below which the host refuses the work.
    fn floor_bytes(self, floor_bytes: u64) -> u64 {
        match self {
            Self::New => floor_bytes,
            Self::Answer => floor_bytes / ANSWER_FLOOR_DIVISOR,
        }
    }

    /// Returns what does not happen below the floor.
    fn refused(self) -> &'static str {
        match self {
            Self::New => NEW_REFUSED,
            Self::Answer => "no answer is taken",
        }
    }
}

/// Reads the space of the file system of the store.
pub type ReadDiskSpace = Arc<dyn Fn() -> io::Result<DiskSpace> + Send + Sync>;

/// The free space of the disk with its floor. Clones share the last reading. The default has no
/// floor.
#[derive(Clone, Default)]
pub struct FreeDisk(Option<Arc<WatchedDisk>>);

struct WatchedDisk {
    read: ReadDiskSpace,
    /// The configured floor in bytes. `None` means the default floor.
    floor_bytes: Option<u64>,
    last: Mutex<Option<Reading>>,
    /// Held by the thread that reads the space.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone, Copy)]
struct Reading {
    /// Time of the monotonic clock.
    at_ns: u64,
    /// `None` if the space could not be read.
    status: Option<DiskStatus>,
}

impl DiskStatus {
    /// Returns the status for a reading. Without a configured floor, the floor is
    /// [`FREE_DISK_BYTES`], or less on a small file system.
    #[must_use]
    pub fn new(space: DiskSpace, floor_bytes: Option<u64>) -> Self {
        let usual = FREE_DISK_BYTES.min(space.total_bytes / FREE_DISK_DIVISOR);
        Self { free_bytes: space.free_bytes, floor_bytes: floor_bytes.unwrap_or(usual) }
    }

    /// Returns true if the free space is below the floor.
    #[must_use]
    pub fn is_low(self) -> bool {
        self.free_bytes < self.floor_bytes
    }
}

impl FreeDisk {
    /// Creates the free space of a disk with a floor in bytes. Without a floor, the default floor
    /// applies.
    pub fn new(read: ReadDiskSpace, floor_bytes: Option<u64>) -> Self {
        let (last, turn) = (Mutex::default(), Arc::default());
        Self(Some(Arc::new(WatchedDisk { read, floor_bytes, last, turn })))
    }

    /// Returns the status at `now_ns`, a time of the monotonic clock. Returns `None` without a
    /// floor, or if the space cannot be read.
    pub(crate) async fn status(&self, now_ns: u64) -> Option<DiskStatus> {
        self.0.as_ref()?.status(now_ns).await
    }

    /// Rejects work that takes more of the disk. `now_ns` is a time of the monotonic clock.
    ///
    /// # Errors
    ///
    /// `unavailable` if the free space is below the floor of this work.
    pub async fn check(&self, now_ns: u64, disk_use: DiskUse) -> Result<(), Failure> {
        let Some(DiskStatus { free_bytes, floor_bytes }) = self.status(now_ns).await else {
            return Ok(());
        };
        let allowed = disk_use.floor_bytes(floor_bytes);
        if free_bytes < allowed {
            Err(too_little_space(free_bytes, allowed, disk_use))
        } else {
            Ok(())
        }
    }
}

impl WatchedDisk {
    async fn status(self: &Arc<Self>, now_ns: u64) -> Option<DiskStatus> {
        if let Some(reading) = self.recent(now_ns) {
            return reading.status;
        }
        let (before, turn) = (*self.last(), self.turn.clone());
        let turn = match before {
            None => turn.lock_owned().await,
            Some(before) => match turn.try_lock_owned() {
                Ok(turn) => turn,
                Err(_taken) => return before.status,
            },
        };
        // Another task may have read the space in the meantime.
        if let Some(reading) = self.recent(now_ns) {
            return reading.status;
        }
        let disk = self.clone();
        let read = spawn_blocking(move || {
            let status = disk.keep(now_ns, (disk.read)());
            drop(turn);
            status
        });
        read.await.unwrap_or_else(|error| self.keep(now_ns, Err(io::Error::other(error))))
    }

    /// Keeps the space that was read. Returns its status, or `None` if the space cannot be read.
    fn keep(&self, now_ns: u64, read: io::Result<DiskSpace>) -> Option<DiskStatus> {
        let read = read.map(|space| DiskStatus::new(space, self.floor_bytes));
        let status = read.as_ref().ok().copied();
        let before = self.last().replace(Reading { at_ns: now_ns, status });
        log_change(before, &read);
        status
    }

    /// Returns the last reading. Returns `None` before the first reading, and if the last one is at
    /// least [`DISK_READING_MS`] old.
    fn recent(&self, now_ns: u64) -> Option<Reading> {
        let last = *self.last();
        last.filter(|reading| {
            now_ns.saturating_sub(reading.at_ns) < DISK_READING_MS * NANOS_PER_MILLI
        })
    }

    /// Locks the last reading and ignores poisoning: no code that can panic runs under the lock.
    fn last(&self) -> MutexGuard<'_, Option<Reading>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the operator when the space falls below its floor or is enough again, and when it can no
/// longer be read.
fn log_change(before: Option<Reading>, read: &io::Result<DiskStatus>) {
    let was_low = before.and_then(|reading| reading.status).is_some_and(DiskStatus::is_low);
    match read {
        Ok(DiskStatus { free_bytes, floor_bytes }) if free_bytes < floor_bytes => {
            if !was_low {
                tracing::warn!(
                    free_bytes,
                    floor_bytes,
                    "the free space of the disk is below `limits.free_disk`: {NEW_REFUSED}"
                );
            }
        }
        Ok(DiskStatus { free_bytes, .. }) => {
            if was_low {
                tracing::info!(free_bytes, "the disk has enough free space again");
            }
        }
        Err(error) => {
            if before.is_none_or(|reading| reading.status.is_some()) {
                tracing::warn!(%error, "cannot read the free space of the disk: it has no floor");
            }
        }
    }
}

fn too_little_space(free_bytes: u64, allowed: u64, disk_use: DiskUse) -> Failure {
    let refused = disk_use.refused();
    let text = format!(
        "the disk of this host has {free_bytes} bytes left: below {allowed} bytes {refused}; \
         delete threads, make room on the disk, or lower `limits.free_disk` in wattle.toml"
    );
    let details = json!({ "limit": FREE_DISK, "allowed": allowed, "free": free_bytes });
    Failure::new(code::UNAVAILABLE, text).retryable().with_details(details)
}

/// Returns true if a run was refused because the disk has too little free space.
pub(crate) fn lacks_space(failure: &Failure) -> bool {
    let limit = failure.details.as_ref().and_then(|details| details["limit"].as_str());
    failure.code == code::UNAVAILABLE && limit == Some(FREE_DISK)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;

    use futures::{FutureExt as _, poll};

    use super::*;

    const PERIOD_NS: u64 = DISK_READING_MS * NANOS_PER_MILLI;

    fn floor(total_bytes: u64) -> u64 {
        DiskStatus::new(DiskSpace { total_bytes, free_bytes: 0 }, None).floor_bytes
    }

    #[test]
    fn default_floor_is_a_part_of_a_small_file_system() {
        assert_eq!((floor(1 << 40), floor(5_000)), (FREE_DISK_BYTES, 100));
    }

    /// Returns a disk of 1,000 bytes with a floor, of which `free` bytes are free.
    fn disk(free: &Arc<AtomicU64>, floor_bytes: u64) -> FreeDisk {
        let free = free.clone();
        let space = move || -> io::Result<DiskSpace> {
            Ok(DiskSpace { total_bytes: 1_000, free_bytes: free.load(Ordering::Relaxed) })
        };
        FreeDisk::new(Arc::new(space), Some(floor_bytes))
    }

    #[tokio::test]
    async fn space_is_read_once_in_a_period() {
        let free = Arc::new(AtomicU64::new(100));
        let disk = disk(&free, 100);
        disk.check(0, DiskUse::New).await.unwrap();
        free.store(99, Ordering::Relaxed);
        disk.check(PERIOD_NS - 1, DiskUse::New).await.unwrap();
        let failure = disk.check(PERIOD_NS, DiskUse::New).await.unwrap_err();
        assert_eq!((&*failure.code, failure.retryable), (code::UNAVAILABLE, true));
        let details = json!({ "limit": "free_disk", "allowed": 100, "free": 99 });
        assert_eq!(failure.details, Some(details));
        free.store(100, Ordering::Relaxed);
        disk.check(2 * PERIOD_NS, DiskUse::New).await.unwrap();
    }

    #[tokio::test]
    async fn previous_reading_applies_while_the_space_is_read() {
        let (reading, readings) = mpsc::channel();
        let readings = Mutex::new(readings);
        let space = move || -> io::Result<DiskSpace> {
            let free_bytes = readings.lock().unwrap().recv().map_err(io::Error::other)?;
            Ok(DiskSpace { total_bytes: 1_000, free_bytes })
        };
        let disk = FreeDisk::new(Arc::new(space), Some(100));
        let check = |now_ns| disk.check(now_ns, DiskUse::New);
        let (mut first, mut second) = (pin!(check(0)), pin!(check(0)));
        assert!(poll!(first.as_mut()).is_pending() && poll!(second.as_mut()).is_pending());
        reading.send(100).unwrap();
        first.await.unwrap();
        second.await.unwrap();
        let mut reader = pin!(check(PERIOD_NS));
        assert!(poll!(reader.as_mut()).is_pending());
        check(PERIOD_NS).now_or_never().expect("a check does not wait for the reader").unwrap();
        reading.send(99).unwrap();
        reader.await.unwrap_err();
        check(PERIOD_NS).await.unwrap_err();
    }

    #[tokio::test]
    async fn answers_have_half_of_the_floor() {
        let half = disk(&Arc::new(AtomicU64::new(50)), 100);
        assert!(half.check(0, DiskUse::New).await.is_err());
        half.check(0, DiskUse::Answer).await.unwrap();
        let less = disk(&Arc::new(AtomicU64::new(49)), 100);
        let failure = less.check(0, DiskUse::Answer).await.unwrap_err();
        assert_eq!(failure.details.unwrap()["allowed"], 50);
    }

    #[tokio::test]
    async fn only_the_floor_lacks_space() {
        let full = disk(&Arc::new(AtomicU64::new(0)), 1);
        assert!(lacks_space(&full.check(0, DiskUse::New).await.unwrap_err()));
        let other = Failure::new(code::UNAVAILABLE, "no route");
        assert!(!lacks_space(&other));
        assert!(!lacks_space(&other.with_details(json!({ "limit": "handlers" }))));
    }

    #[tokio::test]
    async fn disk_that_cannot_be_read_has_no_floor() {
        let read = || -> io::Result<DiskSpace> { Err(io::ErrorKind::Unsupported.into()) };
        let disk = FreeDisk::new(Arc::new(read), Some(u64::MAX));
        assert_eq!(disk.status(0).await, None);
        disk.check(0, DiskUse::New).await.unwrap();
        FreeDisk::default().check(0, DiskUse::New).await.unwrap();
    }
}
