//! The file lock that serializes the builds of an app.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use crate::error::Error;
use crate::output::Output;

/// Name of the locked file. It is not deleted after the build.
const FILE: &str = "build.lock";

/// Time between attempts to acquire the lock. A blocking wait would prevent a stopped command from
/// ending.
const RETRY_PERIOD: Duration = Duration::from_millis(100);

/// Waits until no other process builds the app with the work folder `work`, and locks it. The lock
/// is held until the file is dropped. On a file system without locks, the call succeeds at once.
///
/// # Errors
///
/// [`Error::File`].
pub(super) async fn take(work: &Path) -> Result<File, Error> {
    fs::create_dir_all(work).map_err(Error::file("create", work))?;
    let path = work.join(FILE);
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(Error::file("write", &path))?;
    let mut has_waited = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                return Ok(file);
            }
            Err(TryLockError::Error(error)) => return Err(Error::file("lock", path)(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        if !has_waited {
            Output::note(&format!("waiting for another build that uses `{}`", work.display()));
            has_waited = true;
        }
        tokio::time::sleep(RETRY_PERIOD).await;
    }
}
