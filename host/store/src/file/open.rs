//! Opens files of redb whose pages may be damaged.

use std::fs;
use std::path::Path;

use redb::{DatabaseError, ReadOnlyDatabase};
use wattle_run::ports::store::StoreError;

use crate::file::guarded;
use crate::file::look::{Soundness, soundness};
use crate::file::mark::{self, Turn};

/// A file up to this size is compared with its checksums at every opening: all of it is read for
/// that, so a start must not wait for more. Damage of a larger one is found when it is read, and by
/// `wattle store verify`.
pub const CHECKED_AT_START_BYTES: u64 = 256 * 1024 * 1024;

const OPEN: &str = "open its file";

/// Opens or creates a file. A file of at most so many bytes is compared with its checksums first, a
/// larger one only if it cannot be opened. `rebuild` gets what is damaged of a file, and puts a whole
/// one in its place. `open` gets whether all pages of the file are known to be whole.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the file is missing though it was made, [`StoreError::Backend`] if
/// another process has it open, and those of `rebuild` and `open`.
pub(crate) fn checked<T>(
    path: &Path,
    checked_bytes: u64,
    rebuild: impl Fn(&str) -> Result<(), StoreError>,
    open: impl Fn(bool) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    mark::refuse_lost(path)?;
    // Until redb has its own lock.
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

/// Why a file cannot be rebuilt, together with how it is damaged. `refusal` says what to do then.
pub(crate) fn with_damage(
    error: StoreError,
    damage: &str,
    refusal: impl FnOnce(String) -> StoreError,
) -> StoreError {
    match error {
        StoreError::Corrupt { message, .. } if message != damage => {
            refusal(format!("{damage}; {message}"))
        }
        StoreError::Corrupt { message, .. } => refusal(message),
        error => error,
    }
}

/// How a file is damaged, if it is and has at most so many bytes.
///
/// # Errors
///
/// Those of reading the file.
pub(crate) fn damage(path: &Path, checked_bytes: u64) -> Result<Option<String>, StoreError> {
    match compared(path, checked_bytes)? {
        Soundness::Damaged(damage) => Ok(Some(damage)),
        Soundness::Sound | Soundness::Unknown => Ok(None),
    }
}

/// Compares the pages of a file with their checksums, if it has at most so many bytes.
fn compared(path: &Path, checked_bytes: u64) -> Result<Soundness, StoreError> {
    let bytes = fs::metadata(path).map_or(0, |facts| facts.len());
    if bytes == 0 || bytes > checked_bytes {
        return Ok(Soundness::Unknown);
    }
    soundness(path)
}

/// Takes the turn of a file that no process has open.
///
/// # Errors
///
/// [`StoreError::Backend`] if another process has the turn or the file.
pub(crate) fn turn(path: &Path) -> Result<Turn, StoreError> {
    let turn = Turn::take(path)?;
    refuse_in_use(path)?;
    Ok(turn)
}

/// A look for the lock of redb, which leaves the file as it is.
///
/// # Errors
///
/// [`StoreError::Backend`] if a process has the file open.
pub(crate) fn refuse_in_use(path: &Path) -> Result<(), StoreError> {
    // Any other refusal, also a panic, has its reason in the file, which is looked at next.
    let opened = guarded(OPEN, || {
        Ok(matches!(ReadOnlyDatabase::open(path), Err(DatabaseError::DatabaseAlreadyOpen)))
    });
    if opened.unwrap_or(false) { Err(mark::in_use(path)) } else { Ok(()) }
}

/// Whether a file has something in it: an empty one is no store.
pub fn is_filled(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|facts| facts.len() > 0)
}
