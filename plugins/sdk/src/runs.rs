//! Threads and runs of the plugin's own app: start, resume, cancel and read them.
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
mod request;
mod result;
mod run_ref;

use serde_json::Value;

pub use self::event::{
    CallKind, CallStarted, Called, Custom, Delta, Event, EventKind, RunEnded, RunStarted, Streamed,
    TaskFinished, Write,
};
pub use self::request::{OnFailure, Resume, Start};
pub use self::result::{EndedRun, Interrupt, Outcome, Thread};
pub use self::run_ref::RunRef;
use crate::failure::Failure;
use crate::host;

/// Starts a run. Returns without waiting for its end.
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

/// Returns a thread, or `None` if it does not exist or has expired.
pub fn thread(thread_id: &str) -> Result<Option<Thread>, Failure> {
    host::runs::thread(thread_id)
}

/// Deletes a thread and all its data.
pub fn delete_thread(thread_id: &str) -> Result<(), Failure> {
    host::runs::delete_thread(thread_id)
}

/// Maximum number of events that one call of [`events`] returns.
pub const PAGE_EVENTS: u32 = 256;

/// Returns at most `limit` events of a thread after a sequence number, as JSON, and never more than
/// [`PAGE_EVENTS`]. Fewer are returned if they are large; only an empty list is the end of the log.
/// [`Event::read`] converts them.
pub fn events(thread_id: &str, after: u64, limit: u32) -> Result<Vec<Value>, Failure> {
    host::runs::events(thread_id, after, limit)
}
