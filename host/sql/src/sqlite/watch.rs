//! Interrupts statements that time out or whose run is cancelled.
//!
//! SQLite executes a statement on a separate thread and would continue. Its progress handler checks
//! a flag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::SqliteConnection;

/// Steps of SQLite's virtual machine between two checks: some tens of microseconds.
const STEPS: i32 = 1_000;

/// The interrupt flag of a connection.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
}

impl Watch {
    /// Installs a progress handler. It replaces the one of the previous user of the connection.
    pub(crate) async fn over(connection: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let mut handle = connection.lock_handle().await?;
        handle.set_progress_handler(STEPS, move || !seen.load(Ordering::Relaxed));
        Ok(Self { stop })
    }

    /// Clears the flag for the next statement.
    pub(crate) fn awaited(&self) -> Awaited<'_> {
        self.stop.store(false, Ordering::Relaxed);
        Awaited { watch: self, answered: false }
    }
}

/// Guard of a running statement. Dropping it before [`answered`](Self::answered) interrupts the
/// statement.
pub(crate) struct Awaited<'a> {
    watch: &'a Watch,
    answered: bool,
}

impl Awaited<'_> {
    pub(crate) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.watch.stop.store(true, Ordering::Relaxed);
        }
    }
}
