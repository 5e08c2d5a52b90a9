//! Opening of redb files whose pages may be damaged.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use redb::{DatabaseError, ReadOnlyDatabase};
use wattle_run::ports::store::StoreError;

use crate::file::guarded;
use crate::file::marker::{self, OpenLock};
use crate::file::view::{Integrity, check_integrity};

/// Maximum size in bytes of a file whose pages are compared with their checksums at every opening.
/// The comparison reads the whole file, so with a larger file the start would take too long. Reads
/// and `wattle store verify` detect the damage of a larger file.
pub const CHECKED_AT_START_BYTES: u64 = 256 * 1024 * 1024;

/// Pause between two attempts to lock a file. Closing a file takes some milliseconds.
const LOCK_RETRY_PERIOD: Duration = Duration::from_millis(20);

const OP_OPEN: &str = "open its file";

/// Opens a file, and creates it if it does not exist. Waits at most `lock_wait` for another process
/// that has the file open.
///
/// Compares the pages of a file of at most `checked_bytes` bytes with their checksums first, and
/// the pages of a larger file only if the file cannot be opened. Calls `rebuild` with a description
/// of the damage; `rebuild` replaces the damaged file by an intact one. Calls `open` with `true` if
/// all pages of the file are known to be intact.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the file is missing although its marker exists.
/// [`StoreError::Backend`] if another process has the file open. Also the errors of `rebuild` and
/// `open`.
pub(crate) fn open_or_rebuild<T>(
    path: &Path,
    lock_wait: Duration,
    checked_bytes: u64,
    rebuild: impl Fn(&str) -> Result<(), StoreError>,
    open: impl Fn(bool) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    // The lock is needed until redb has locked the file itself.
    let _lock = lock_file(path, lock_wait)?;
    // Another process that has the lock may be replacing the file, which is then missing.
    marker::ensure_not_lost(path)?;
    let integrity = compare_checksums(path, checked_bytes)?;
    if let Integrity::Damaged(damage) = &integrity {
        rebuild(damage)?;
    }
    let is_intact = !matches!(integrity, Integrity::Unchecked);
    let opened = match guarded(OP_OPEN, || open(is_intact)) {
        Err(error @ StoreError::Corrupt { .. }) => {
            let Some(damage) = find_damage(path, u64::MAX)? else { return Err(error) };
            rebuild(&damage)?;
            guarded(OP_OPEN, || open(true))?
        }
        opened => opened?,
    };
    marker::create(path)?;
    Ok(opened)
}

/// Returns the damage of a file of at most `checked_bytes` bytes; `None` if the file has no damage
/// or is larger.
///
/// # Errors
///
/// Errors of reading the file.
pub(crate) fn find_damage(path: &Path, checked_bytes: u64) -> Result<Option<String>, StoreError> {
    match compare_checksums(path, checked_bytes)? {
        Integrity::Damaged(damage) => Ok(Some(damage)),
        Integrity::Intact | Integrity::Unchecked => Ok(None),
    }
}

/// Compares the pages of a file of at most `checked_bytes` bytes with their checksums.
fn compare_checksums(path: &Path, checked_bytes: u64) -> Result<Integrity, StoreError> {
    let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
    if bytes == 0 || bytes > checked_bytes {
        return Ok(Integrity::Unchecked);
    }
    check_integrity(path)
}

/// Acquires the lock of a file that no process has open. Waits at most `wait` for another process
/// that has the lock or has the file open, and blocks the calling thread in the meantime.
///
/// # Errors
///
/// [`StoreError::Backend`] if the other process still has the lock or the file, or if the lock
/// cannot be used.
pub(crate) fn lock_file(path: &Path, wait: Duration) -> Result<OpenLock, StoreError> {
    let lock = retry(wait, || try_lock_file(path))?;
    lock.ok_or_else(|| marker::in_use_error(path))
}

/// Acquires the lock of a file. Returns `None` if another process has the lock or has the file
/// open.
fn try_lock_file(path: &Path) -> Result<Option<OpenLock>, StoreError> {
    let lock = OpenLock::try_acquire(path)?;
    Ok(lock.filter(|_| !is_in_use(path)))
}

/// Repeats an attempt until it returns a value, or `wait` has passed.
fn retry<T>(
    wait: Duration,
    mut attempt: impl FnMut() -> Result<Option<T>, StoreError>,
) -> Result<Option<T>, StoreError> {
    let end = Instant::now() + wait;
    loop {
        let done = attempt()?;
        if done.is_some() || Instant::now() >= end {
            return Ok(done);
        }
        thread::sleep(LOCK_RETRY_PERIOD);
    }
}

/// Checks that no process has a file open, without changing the file.
///
/// # Errors
///
/// [`StoreError::Backend`] if a process has the file open.
pub(crate) fn ensure_not_in_use(path: &Path) -> Result<(), StoreError> {
    if is_in_use(path) { Err(marker::in_use_error(path)) } else { Ok(()) }
}

/// Returns whether a process has a file open, without changing the file.
fn is_in_use(path: &Path) -> bool {
    // Any other error, or a panic, has its cause in the content of the file, which the caller
    // checks next.
    let opened = guarded(OP_OPEN, || {
        Ok(matches!(ReadOnlyDatabase::open(path), Err(DatabaseError::DatabaseAlreadyOpen)))
    });
    opened.unwrap_or(false)
}

/// Returns whether a file exists and is not empty. An empty file is no store.
pub fn is_filled(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn locked_file_is_tried_again_until_it_is_free() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("wattle.redb");
        let mut held = Some(lock_file(&path, Duration::ZERO).unwrap());
        let refused = lock_file(&path, Duration::ZERO).unwrap_err();
        assert!(refused.to_string().contains("is in use; stop the other wattle"), "{refused}");
        let lock = retry(Duration::from_mins(1), || {
            let lock = try_lock_file(&path);
            drop(held.take());
            lock
        });
        assert!(lock.unwrap().is_some());
    }

    #[test]
    fn file_that_another_process_replaces_is_in_use_and_not_lost() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("wattle.redb");
        let held = lock_file(&path, Duration::ZERO).unwrap();
        marker::create(&path).unwrap();
        let open = || open_or_rebuild(&path, Duration::ZERO, 0, |_| Ok(()), |_| Ok(()));
        let refused = open().unwrap_err();
        assert!(refused.to_string().contains("is in use"), "{refused}");
        drop(held);
        let lost = open().unwrap_err();
        assert!(lost.to_string().contains("missing, although"), "{lost}");
    }
}
