//! `wattle-crash`: an engine in a separate process that dies at a write, for tests only.
//!
//! `wattle-crash <store> <thread> <services> [before|handed-over|durable <write>]` continues the
//! thread that an earlier process left, and prints its state as JSON.

use std::env;

use anyhow::{Context as _, Result};
use wattle_graph::id::ThreadId;
use wattle_suite::mortal::life::{Order, live};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "its output")]
async fn main() -> Result<()> {
    println!("{}", Box::pin(live(&order()?)).await?);
    Ok(())
}

fn order() -> Result<Order> {
    let mut arguments = env::args().skip(1);
    let mut next = |name| arguments.next().with_context(|| format!("name the {name}"));
    let (store, thread, services) = (next("store")?, next("thread")?, next("services")?);
    let thread = ThreadId::new(&thread)?;
    let death = match next("moment") {
        Ok(moment) => Some((moment.parse()?, next("number of a write")?.parse()?)),
        Err(_) => None,
    };
    Ok(Order { store, thread, services, death })
}
