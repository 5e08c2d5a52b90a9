//! Opening of redb files whose pages may be damaged.

use std::fs;
use std::path::Path;

use redb::{DatabaseError, ReadOnlyDatabase};
use wattle_run::ports::store::StoreError;

use crate::file::guarded;
use crate::file::marker::{self, OpenLock};
use crate::file::view::{Integrity, check_integrity};

/// Maximum size in bytes of a file whose pages are compared with their checksums at every opening.
/// The comparison reads the whole file, so with a larger file the start would take too long. Reads
/// and `wattle store verify` detect the damage of a larger file.
pub const CHECKED_AT_START_BYTES: u64 = 256 * 1024 * 1024;

const OP_OPEN: &str = "open its file";

/// Opens a file, and creates it if it does not exist. Compares the pages of a file of at most
/// `checked_bytes` bytes with their checksums first, and the pages of a larger file only if the
/// file cannot be opened. Calls `rebuild` with a description of the damage; `rebuild` replaces the
/// damaged file by an intact one. Calls `open` with `true` if all pages of the file are known to be
/// intact.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the file is missing although its marker exists.
/// [`StoreError::Backend`] if another process has the file open. Also the errors of `rebuild` and
/// `open`.
pub(crate) fn open_or_rebuild<T>(
    path: &Path,
    checked_bytes: u64,
    rebuild: impl Fn(&str) -> Result<(), StoreError>,
    open: impl Fn(bool) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    marker::ensure_not_lost(path)?;
    // The lock is needed until redb has locked the file itself.
    let _lock = lock_file(path)?;
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

/// Acquires the lock of a file that no process has open.
///
/// # Errors
///
/// [`StoreError::Backend`] if another process has the lock or has the file open.
pub(crate) fn lock_file(path: &Path) -> Result<OpenLock, StoreError> {
    let lock = OpenLock::acquire(path)?;
    ensure_not_in_use(path)?;
    Ok(lock)
}

/// Checks that no process has a file open, without changing the file.
///
/// # Errors
///
/// [`StoreError::Backend`] if a process has the file open.
pub(crate) fn ensure_not_in_use(path: &Path) -> Result<(), StoreError> {
    // Any other error, or a panic, has its cause in the content of the file, which the caller
    // checks next.
    let opened = guarded(OP_OPEN, || {
        Ok(matches!(ReadOnlyDatabase::open(path), Err(DatabaseError::DatabaseAlreadyOpen)))
    });
    if opened.unwrap_or(false) { Err(marker::in_use_error(path)) } else { Ok(()) }
}

/// Returns whether a file exists and is not empty. An empty file is no store.
pub fn is_filled(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0)
}
