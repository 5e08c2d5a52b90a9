//! Aborts statements that time out or whose run is cancelled.
//!
//! `sqlx` executes statements of SQLite on a separate thread, on which a statement would continue
//! after a timeout or a cancel. The progress handler of SQLite therefore checks a flag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::SqliteConnection;

/// Steps of SQLite's virtual machine between two checks: some tens of microseconds.
const STEPS_PER_CHECK: i32 = 1_000;

/// The flag that aborts the running statement of a connection.
pub(crate) struct AbortFlag {
    aborted: Arc<AtomicBool>,
}

impl AbortFlag {
    /// Installs a progress handler. This handler replaces the handler of the previous user of the
    /// connection.
    pub(crate) async fn install(connection: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        let aborted = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&aborted);
        let mut handle = connection.lock_handle().await?;
        handle.set_progress_handler(STEPS_PER_CHECK, move || !seen.load(Ordering::Relaxed));
        Ok(Self { aborted })
    }

    /// Clears the abort flag, and returns the guard of the next statement.
    pub(crate) fn arm(&self) -> AbortGuard<'_> {
        self.aborted.store(false, Ordering::Relaxed);
        AbortGuard { flag: self, is_disarmed: false }
    }
}

/// Removes the progress handler of the previous user of a connection.
pub(crate) async fn uninstall(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    connection.lock_handle().await?.remove_progress_handler();
    Ok(())
}

/// Guard of a running statement. Dropping it before [`disarm`](Self::disarm) aborts the statement.
pub(crate) struct AbortGuard<'a> {
    flag: &'a AbortFlag,
    is_disarmed: bool,
}

impl AbortGuard<'_> {
    pub(crate) fn disarm(mut self) {
        self.is_disarmed = true;
    }
}

impl Drop for AbortGuard<'_> {
    fn drop(&mut self) {
        if !self.is_disarmed {
            self.flag.aborted.store(true, Ordering::Relaxed);
        }
    }
}
