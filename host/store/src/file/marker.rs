//! The marker of a redb file: a file that records that a store was created. redb takes an empty
//! file for a new one, so without the marker a file that lost its bytes would become an empty
//! store.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use wattle_run::ports::store::StoreError;

use crate::error::{backend, corrupt};
use crate::folders::BLOBS_FOLDER;

const OP_OPEN: &str = "open its file";

/// Content of a marker: an explanation for the operator.
const CONTENT: &str = "\
A store was created in the file that has this name without `.made`. If that file is missing or \
empty, wattle refuses to start,
since it would begin with an empty store. To begin with an empty store, delete this file too.
";

/// Returns the path of the marker of a file.
pub(crate) fn marker_path(path: &Path) -> PathBuf {
    with_suffix(path, "made")
}

/// Returns the path of the marker of a restore that is not finished.
pub(crate) fn restore_marker_path(path: &Path) -> PathBuf {
    with_suffix(path, "restoring")
}

/// Returns a path with a suffix after its file name and a dot.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// Fails if a file is missing or empty although its marker exists. Also fails if the restore of the
/// file is not finished, or if an empty file is in a folder with blobs.
///
/// # Errors
///
/// [`StoreError::Corrupt`] with advice for the operator.
pub(crate) fn ensure_not_lost(path: &Path) -> Result<(), StoreError> {
    let what = match fs::metadata(path) {
        Ok(metadata) if metadata.len() > 0 => return Ok(()),
        Ok(_) => "empty",
        Err(error) if error.kind() == io::ErrorKind::NotFound => "missing",
        Err(error) => return Err(backend(OP_OPEN, format!("`{}`: {error}", path.display()))),
    };
    let restoring = restore_marker_path(path);
    if restoring.exists() {
        let message = format!(
            "its restore did not finish, as `{}` shows. Repeat it with `wattle store restore`",
            restoring.display()
        );
        return Err(corrupt(format!("store `{}`", path.display()), message));
    }
    let marker = marker_path(path);
    let has_blobs = || {
        let blobs = path.parent().map(|folder| folder.join(BLOBS_FOLDER));
        blobs
            .and_then(|blobs| fs::read_dir(blobs).ok())
            .is_some_and(|blobs| blobs.flatten().any(|entry| entry.file_name().len() == 2))
    };
    let (reason, remedy) = if marker.exists() {
        (
            format!("{what}, although `{}` shows that it was created", marker.display()),
            "delete the marker too",
        )
    } else if what == "empty" && has_blobs() {
        ("empty, although its folder contains blobs".to_owned(), "delete the empty file")
    } else {
        return Ok(());
    };
    let message = format!(
        "its file is {reason}. Restore a backup with `wattle store restore`; to begin with an \
         empty store, {remedy}"
    );
    Err(corrupt(format!("store `{}`", path.display()), message))
}

/// Creates the marker of a file.
pub(crate) fn create(path: &Path) -> Result<(), StoreError> {
    let marker = marker_path(path);
    if marker.exists() {
        return Ok(());
    }
    let write = || -> io::Result<()> {
        let mut file = File::create(&marker)?;
        file.write_all(CONTENT.as_bytes())?;
        file.sync_all()?;
        sync_folder(path)
    };
    write().map_err(|error| backend(OP_OPEN, format!("`{}`: {error}", marker.display())))
}

/// Makes the entries of the folder of a file durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// The lock that a process holds while it opens a file. The lock prevents other processes from
/// opening the file while the file is checked, and possibly replaced.
#[derive(Debug)]
pub(crate) struct OpenLock(#[expect(dead_code, reason = "held for its lock")] File);

impl OpenLock {
    /// Acquires the lock. Returns `None` if another process has it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Backend`] if the file of the lock cannot be opened or locked.
    pub(crate) fn try_acquire(path: &Path) -> Result<Option<Self>, StoreError> {
        let lock_path = with_suffix(path, "lock");
        let failed =
            |error: io::Error| backend(OP_OPEN, format!("`{}`: {error}", lock_path.display()));
        let options = || File::options().create(true).truncate(false).write(true).open(&lock_path);
        let file = options().map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                Ok(Some(Self(file)))
            }
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// Builds the error for a file that another process has open.
pub(crate) fn in_use_error(path: &Path) -> StoreError {
    let path = path.display();
    backend(OP_OPEN, format!("`{path}` is in use; stop the other wattle that has it open"))
}
