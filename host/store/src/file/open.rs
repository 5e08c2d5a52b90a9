//! Opening of redb files whose pages may be damaged.

use std::fs;
use std::path::Path;

use redb::{DatabaseError, ReadOnlyDatabase};
use wattle_run::ports::store::StoreError;

use crate::file::guarded;
use crate::file::look::{Soundness, soundness};
use crate::file::mark::{self, Turn};

/// Maximum size in bytes of a file whose pages are compared with their checksums at every opening.
/// The comparison reads the whole file, so for a larger one the start would take too long. Damage
/// of a larger file is found when it is read, and by `wattle store verify`.
pub const CHECKED_AT_START_BYTES: u64 = 256 * 1024 * 1024;

const OPEN: &str = "open its file";

/// Opens a file, and creates it if it does not exist. The pages of a file of at most
/// `checked_bytes` bytes are compared with their checksums first, those of a larger file only if it
/// cannot be opened. `rebuild` gets the damage of a file and replaces the file by an intact one.
/// `open` gets whether all pages of the file are known to be intact.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the file is missing although a store was created in it,
/// [`StoreError::Backend`] if another process has it open, and errors of `rebuild` and `open`.
pub(crate) fn checked<T>(
    path: &Path,
    checked_bytes: u64,
    rebuild: impl Fn(&str) -> Result<(), StoreError>,
    open: impl Fn(bool) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    mark::refuse_lost(path)?;
    // The lock is needed until redb has locked the file itself.
    let _turn = turn(path)?;
    let soundness = compared(path, checked_bytes)?;
    if let Soundness::Damaged(damage) = &soundness {
        rebuild(damage)?;
    }
    let is_whole = !matches!(soundness, Soundness::Unknown);
    let opened = match guarded(OPEN, || open(is_whole)) {
        Err(error @ StoreError::Corrupt { .. }) => {
            let Some(damage) = damage(path, u64::MAX)? else { return Err(error) };
            rebuild(&damage)?;
            guarded(OPEN, || open(true))?
        }
        opened => opened?,
    };
    mark::make(path)?;
    Ok(opened)
}

/// Returns the damage of a file of at most `checked_bytes` bytes; `None` if it has none or is
/// larger.
///
/// # Errors
///
/// Errors of reading the file.
pub(crate) fn damage(path: &Path, checked_bytes: u64) -> Result<Option<String>, StoreError> {
    match compared(path, checked_bytes)? {
        Soundness::Damaged(damage) => Ok(Some(damage)),
        Soundness::Sound | Soundness::Unknown => Ok(None),
    }
}

/// Compares the pages of a file of at most `checked_bytes` bytes with their checksums.
fn compared(path: &Path, checked_bytes: u64) -> Result<Soundness, StoreError> {
    let bytes = fs::metadata(path).map_or(0, |facts| facts.len());
    if bytes == 0 || bytes > checked_bytes {
        return Ok(Soundness::Unknown);
    }
    soundness(path)
}

/// Acquires the lock of a file that no process has open.
///
/// # Errors
///
/// [`StoreError::Backend`] if another process has the lock or has the file open.
pub(crate) fn turn(path: &Path) -> Result<Turn, StoreError> {
    let turn = Turn::take(path)?;
    refuse_in_use(path)?;
    Ok(turn)
}

/// Checks that no process has a file open, without changing the file.
///
/// # Errors
///
/// [`StoreError::Backend`] if a process has the file open.
pub(crate) fn refuse_in_use(path: &Path) -> Result<(), StoreError> {
    // Any other error, or a panic, has its cause in the content of the file, which the caller
    // checks next.
    let opened = guarded(OPEN, || {
        Ok(matches!(ReadOnlyDatabase::open(path), Err(DatabaseError::DatabaseAlreadyOpen)))
    });
    if opened.unwrap_or(false) { Err(mark::in_use(path)) } else { Ok(()) }
}

/// Returns whether a file exists and is not empty. An empty file is no store.
pub fn is_filled(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|facts| facts.len() > 0)
}
