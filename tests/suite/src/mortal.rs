//! Engines in processes of their own: one that dies at a selected write, like by a power cut, for
//! the program `wattle-crash`; and one that shares a database with another, for `wattle-rival`.
//!
//! * [`store`]: a store whose process ends at one of its writes
//! * [`journey`]: the graph of the engine that dies, and its nodes
//! * [`services`]: a model and HTTP over the real sockets of a stand-in
//! * [`life`]: one life of the process: it recovers the orphaned run and answers the pending
//!   interrupt
//! * [`rival`]: one of two hosts that share a database

pub mod journey;
pub mod life;
pub mod rival;
pub mod services;
pub mod store;

use anyhow::Result;
use serde_json::json;
use wattle_graph::id::{AppName, GraphName, ThreadId};
use wattle_run::hostcall::runs::StartRun;

/// Returns the start of the main graph on a thread.
fn start(thread: &ThreadId) -> Result<StartRun> {
    Ok(StartRun {
        graph: Some(GraphName::new("main")?),
        thread: Some(thread.clone()),
        ..StartRun::new(AppName::new("test")?, json!({}))
    })
}
