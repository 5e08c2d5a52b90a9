//! A mark beside a file of redb, which says that it was made: redb takes an empty file for a new
//! one, so a file that lost its bytes would become an empty store.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use wattle_run::ports::store::StoreError;

use crate::error::{backend, corrupt};

const OPEN: &str = "open its file";

/// The text of a mark, for a person who finds it.
const TEXT: &str = "A store was made in the file beside this one. If that file is missing or empty, wattle \
                    refuses to start,\nsince it would begin with an empty store. Delete this file as well if that is wanted.\n";

/// The mark of a file.
pub(crate) fn of(path: &Path) -> PathBuf {
    beside(path, "made")
}

/// The mark of a file that a restore has not put there yet.
pub(crate) fn of_restore(path: &Path) -> PathBuf {
    beside(path, "restoring")
}

/// A file beside another.
pub(crate) fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}

/// Refuses a file that was made and is missing or empty now, one that a restore has not put there yet,
/// and an empty one beside blobs.
///
/// # Errors
///
/// [`StoreError::Corrupt`] that says what to do.
pub(crate) fn refuse_lost(path: &Path) -> Result<(), StoreError> {
    let what = match fs::metadata(path) {
        Ok(facts) if facts.len() > 0 => return Ok(()),
        Ok(_) => "empty",
        Err(error) if error.kind() == io::ErrorKind::NotFound => "missing",
        Err(error) => return Err(backend(OPEN, format!("`{}`: {error}", path.display()))),
    };
    let restoring = of_restore(path);
    if restoring.exists() {
        let message = format!(
            "a restore of it was cut, as `{}` says. Begin it again with `wattle store restore`",
            restoring.display()
        );
        return Err(corrupt(format!("store `{}`", path.display()), message));
    }
    let mark = of(path);
    let has_blobs = || {
        let blobs = path.parent().map(|folder| folder.join("blobs"));
        blobs
            .and_then(|blobs| fs::read_dir(blobs).ok())
            .is_some_and(|blobs| blobs.flatten().any(|entry| entry.file_name().len() == 2))
    };
    let (reason, way) = if mark.exists() {
        (format!("{what}, and `{}` says that it was made", mark.display()), "delete that mark too")
    } else if what == "empty" && has_blobs() {
        ("empty, and there are blobs beside it".to_owned(), "delete the empty file")
    } else {
        return Ok(());
    };
    let message = format!(
        "its file is {reason}. Restore a backup with `wattle store restore`; {way} if you want to \
         begin with an empty store"
    );
    Err(corrupt(format!("store `{}`", path.display()), message))
}

/// Notes that a file was made.
pub(crate) fn make(path: &Path) -> Result<(), StoreError> {
    let mark = of(path);
    if mark.exists() {
        return Ok(());
    }
    let write = || -> io::Result<()> {
        let mut file = File::create(&mark)?;
        file.write_all(TEXT.as_bytes())?;
        file.sync_all()?;
        sync_folder(path)
    };
    write().map_err(|error| backend(OPEN, format!("`{}`: {error}", mark.display())))
}

/// Makes it durable which files are in the folder of a file.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Keeps other processes from opening a file while it is checked, and perhaps replaced.
#[derive(Debug)]
pub(crate) struct Turn(#[expect(dead_code, reason = "held for its lock")] File);

impl Turn {
    /// Takes the turn.
    ///
    /// # Errors
    ///
    /// [`StoreError::Backend`] if another process has it.
    pub(crate) fn take(path: &Path) -> Result<Self, StoreError> {
        let place = beside(path, "lock");
        let failed = |error: io::Error| backend(OPEN, format!("`{}`: {error}", place.display()));
        let options = || File::options().create(true).truncate(false).write(true).open(&place);
        let file = options().map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(in_use(path)),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                Ok(Self(file))
            }
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// The refusal of a file that another process has open.
pub(crate) fn in_use(path: &Path) -> StoreError {
    let path = path.display();
    backend(OPEN, format!("`{path}` is in use; stop the other wattle that has it open"))
}
