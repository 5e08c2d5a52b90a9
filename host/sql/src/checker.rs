//! Checks statements of plugins with read-only access on separate threads.
//!
//! Parsing a statement can take longer than a worker of the runtime may be blocked, and the tree of
//! a statement can need more stack than a worker has.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use tokio::sync::{Semaphore, oneshot};
use wattle_graph::failure::{Failure, code};
use wattle_run::grant::SqlRule;

use crate::readonly;
use crate::statement::Dialect;

/// Stack of a thread that checks a statement. A statement has at most 1,000 levels, and a level may
/// take tens of KiB in a build without optimization. The system provides only the pages that are
/// used.
const STACK_BYTES: usize = 64 << 20;

/// Runs [`readonly::check`] on threads with a large stack. Clones share the maximum number of
/// threads, which is the number of cores.
#[derive(Clone)]
pub(crate) struct ReadOnlyChecker {
    permits: Arc<Semaphore>,
}

impl ReadOnlyChecker {
    pub(crate) fn new() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self { permits: Arc::new(Semaphore::new(cores)) }
    }

    /// Checks that a statement only reads, and reads only what the rule permits. If the caller
    /// drops the future, the thread still finishes its work before it releases its permit.
    ///
    /// # Errors
    ///
    /// Returns the failures of [`readonly::check`], and `unavailable` if no thread can be started.
    pub(crate) async fn check(
        &self,
        dialect: Dialect,
        text: &str,
        rule: &SqlRule,
    ) -> Result<(), Failure> {
        let aborted = || Failure::internal("the check of the SQL statement was aborted");
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| aborted())?;
        let (text, rule) = (text.to_owned(), rule.clone());
        let (tell, told) = oneshot::channel();
        let work = move || {
            let checked = readonly::check(dialect, &text, &rule);
            drop(permit);
            // Sending fails if the caller has dropped the future.
            let _ = tell.send(checked);
        };
        let builder = thread::Builder::new().name("sql-check".to_owned()).stack_size(STACK_BYTES);
        builder.spawn(work).map_err(|error| {
            let message = format!("cannot start a thread that checks the SQL statement: {error}");
            Failure::new(code::UNAVAILABLE, message).retryable()
        })?;
        told.await.map_err(|_| aborted())?
    }
}
