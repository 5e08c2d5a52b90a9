//! Threads and runs of the plugin's own app: start, resume, cancel, read and list them.
//!
//! ```
//! use wattle_plugin::prelude::*;
//! use wattle_plugin::runs::{EndedRun, Interrupt, Outcome};
//! use wattle_plugin::testing::FakeHost;
//!
//! let host = FakeHost::new().run_ends(|run| EndedRun {
//!     run: run.clone(),
//!     outcome: Outcome::Interrupted(vec![Interrupt::new("q-1", "review", json!({"rows": 2}))]),
//!     state: json!({}),
//! });
//! host.run(|| {
//!     let started = runs::Start::graph("asset").input(json!({"text": "hi"})).start()?;
//!     let ended = runs::wait(&started)?;
//!     assert_eq!(ended.question()?.payload, json!({"rows": 2}));
//!     runs::Resume::thread(&started.thread_id).answer(json!({"ok": true})).resume()?;
//!     Ok::<_, Failure>(())
//! })?;
//! assert_eq!(host.resumed()[0].answers[0].1, json!({"ok": true}));
//! # Ok::<_, Failure>(())
//! ```

mod event;
mod log;
mod once;
pub(crate) mod request;
mod result;
mod run_ref;
mod search;

use serde_json::Value;

pub use self::event::{
    CallKind, CallStarted, Called, Custom, Delta, Event, EventKind, RunEnded, RunStarted, Streamed,
    TaskFinished, Write,
};
pub use self::log::{RunLog, all_events, by_run};
pub use self::once::ResumeOutcome;
pub use self::request::{OnFailure, Resume, Start};
pub use self::result::{EndedRun, Interrupt, Outcome, Thread};
pub use self::run_ref::RunRef;
pub use self::search::{ThreadPage, ThreadSearch, ThreadSummary};
use crate::failure::{Failure, code};
use crate::host;

/// Starts a run. Returns without waiting for its end.
///
/// # Errors
///
/// `not-found` if the app has no such graph, `conflict` if the thread belongs to another graph or,
/// with [`Start::reject_if_interrupted`], has pending interrupts, `busy` if a run of the thread is
/// active.
pub fn start(request: Start) -> Result<RunRef, Failure> {
    host::runs::start(request)
}

/// Answers pending interrupts and resumes the thread. Returns without waiting for the end of the
/// run.
///
/// # Errors
///
/// `not-found` if the thread does not exist or has expired, `conflict` if an interrupt is not
/// pending, `invalid` if an answer violates its schema (the interrupt remains pending), `busy` if a
/// run of the thread is active.
pub fn resume(request: Resume) -> Result<RunRef, Failure> {
    host::runs::resume(request)
}

/// Waits until a run has ended or is interrupted.
pub fn wait(run: &RunRef) -> Result<EndedRun, Failure> {
    host::runs::wait(run)
}

/// Cancels a run.
pub fn cancel(run: &RunRef) -> Result<(), Failure> {
    host::runs::cancel(run)
}

/// Cancels a run and waits until it has ended.
pub fn cancel_and_wait(run: &RunRef) -> Result<EndedRun, Failure> {
    cancel(run)?;
    wait(run)
}

/// Returns a thread, or `None` if it does not exist or has expired.
pub fn thread(thread_id: &str) -> Result<Option<Thread>, Failure> {
    host::runs::thread(thread_id)
}

/// Returns a thread of a graph, or `None` if the graph has no such thread. A text that cannot be
/// the id of a thread is no failure, because the ids of requests come from clients.
///
/// ```
/// use wattle_plugin::prelude::*;
/// use wattle_plugin::runs::Thread;
/// use wattle_plugin::testing::FakeHost;
///
/// let mut thread = Thread::new("thread-1", "notes", "running", json!({}));
/// thread.run_id = Some("run-7".to_owned());
/// let host = FakeHost::new().thread(thread);
/// host.run(|| {
///     let thread = runs::find("notes", "thread-1")?.ok_or_else(|| Failure::not_found("gone"))?;
///     let run = thread.active_run().map(|run| run.run_id);
///     assert_eq!(run.as_deref(), Some("run-7"));
///     assert_eq!(runs::find("orders", "thread-1")?, None);
///     Ok::<_, Failure>(())
/// })?;
/// # Ok::<_, Failure>(())
/// ```
pub fn find(graph: &str, thread_id: &str) -> Result<Option<Thread>, Failure> {
    match thread(thread_id) {
        Err(failure) if matches!(failure.code.as_str(), code::NOT_FOUND | code::INVALID) => {
            Ok(None)
        }
        found => Ok(found?.filter(|thread| thread.graph == graph)),
    }
}

/// Deletes a thread and all its data.
pub fn delete_thread(thread_id: &str) -> Result<(), Failure> {
    host::runs::delete_thread(thread_id)
}

/// Deletes a thread and all its data, if it exists. A record of the app, such as a case, has no
/// thread before its first run.
pub fn delete_thread_if_any(thread_id: &str) -> Result<(), Failure> {
    match delete_thread(thread_id) {
        Err(failure) if failure.code == code::NOT_FOUND => Ok(()),
        deleted => deleted,
    }
}

/// Lists threads of the request's tenant, newest update first; for a request without a tenant,
/// those without one. See [`ThreadSearch`].
pub fn threads(search: ThreadSearch) -> Result<ThreadPage, Failure> {
    host::runs::threads(search)
}

/// Adds the fields of a JSON object to the metadata of a thread. Each replaces the field of the
/// same name. The thread moves to the beginning of lists.
///
/// # Errors
///
/// `not-found` if the thread does not exist for the tenant of the request or has expired, `invalid`
/// if the metadata is not an object, `limit` if the metadata becomes too large, `busy` if a run of
/// the thread is active on another host, or if another operation uses the thread for too long.
///
/// ```
/// use serde_json::json;
/// use wattle_plugin::runs::{self, Thread};
/// use wattle_plugin::testing::FakeHost;
///
/// let host = FakeHost::new().thread(Thread::new("t", "notes", "idle", json!({})));
/// host.run(|| {
///     runs::update_thread("t", json!({"title": "Tea", "pinned": true}))?;
///     runs::update_thread("t", json!({"title": "Green tea"}))?;
///     let thread = runs::thread("t")?;
///     let metadata = thread.map(|thread| thread.metadata);
///     assert_eq!(metadata, Some(json!({"title": "Green tea", "pinned": true})));
///     Ok::<_, wattle_plugin::Failure>(())
/// })?;
/// # Ok::<_, wattle_plugin::Failure>(())
/// ```
pub fn update_thread(thread_id: &str, metadata: impl Into<Value>) -> Result<(), Failure> {
    host::runs::update_thread(thread_id, metadata.into())
}

/// Maximum number of events that one call of [`events`] returns.
pub const PAGE_EVENTS: u32 = 256;

/// Returns at most `limit` events of a thread after a sequence number, as JSON, and never more than
/// [`PAGE_EVENTS`]. Fewer are returned if they are large; only an empty list is the end of the log.
/// [`Event::read`] converts them, and [`all_events`] reads all pages.
pub fn events(thread_id: &str, after: u64, limit: u32) -> Result<Vec<Value>, Failure> {
    host::runs::events(thread_id, after, limit)
}

#[cfg(test)]
mod tests;
