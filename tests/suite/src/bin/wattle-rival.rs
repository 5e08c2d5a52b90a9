//! `wattle-rival`: one of two hosts that share a database, for tests only.
//!
//! `wattle-rival <store> <name> <services> <thread>...` starts a run on each thread, and takes over
//! the threads of the other host until its standard input is closed.

use std::env;

use anyhow::{Context as _, Result};
use wattle_graph::id::ThreadId;
use wattle_suite::mortal::rival::{Order, compete};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let mut next = |name| arguments.next().with_context(|| format!("name the {name}"));
    let (store, name, services) = (next("store")?, next("host")?, next("services")?);
    let threads = arguments.map(|thread| Ok(ThreadId::new(&thread)?));
    let threads = threads.collect::<Result<_>>()?;
    compete(Order { store, name, services, threads }).await
}
