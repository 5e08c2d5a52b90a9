//! Stops a statement that nobody waits for any more: its time is over, or its run was cancelled.
//!
//! SQLite works on a thread of its own and would go on; the library asks us every so many steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::SqliteConnection;

/// Steps of SQLite's virtual machine between two looks: some tens of microseconds.
const STEPS: i32 = 1_000;

/// Watches over the statements of one connection.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
}

impl Watch {
    /// Replaces the watch of the connection's previous user.
    pub(crate) async fn over(connection: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let mut handle = connection.lock_handle().await?;
        handle.set_progress_handler(STEPS, move || !seen.load(Ordering::Relaxed));
        Ok(Self { stop })
    }

    /// From now on somebody waits for a statement.
    pub(crate) fn awaited(&self) -> Awaited<'_> {
        self.stop.store(false, Ordering::Relaxed);
        Awaited { watch: self, answered: false }
    }
}

/// Somebody waits. Dropped without an answer, it stops the statement.
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
