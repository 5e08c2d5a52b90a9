//! Benchmarks. `cargo xtask bench` runs them, `cargo xtask attack` runs [`attack`], and the README
//! of this crate describes both.
//!
//! # Layout
//!
//! * [`steps`]: steps per second of the engine, and the parts of their time, with a [`timed`]
//!   store.
//! * [`peer`]: Wattle compared with LangGraph, each case in a separate process.
//! * [`own`]: one case on Wattle, in such a process.
//! * [`load`]: many streams and runs on a server, with a check for lost events.
//! * [`agent_server`]: the same requests to Wattle's server and to the LangGraph server.
//! * [`hosts`]: three hosts on one database.
//! * [`studio`]: requests of the studio to a host with many threads.
//! * [`turns`]: a conversation of many turns on one thread.
//! * [`attack`]: the attacks of the suite, and the service of other callers during them.
//! * [`date`]: latency of the date tool of the application `expense`.
//! * [`model`]: latency of model calls, compared with plain HTTP requests.
//! * [`served`]: Wattle's server in a separate process; [`usage`]: resource usage of a process.
//! * [`graphs`], [`stores`], [`host`]: graphs of the cases, stores, and an engine with both.
//! * [`order`]: input and output of a process that measures a case.

mod agent_server;
mod attack;
mod date;
mod graphs;
mod host;
mod hosts;
mod load;
mod model;
mod order;
mod own;
mod peer;
mod served;
mod steps;
mod stores;
mod studio;
mod timed;
mod turns;
mod usage;

use anyhow::{Result, bail};

/// The allocator of the host.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "\
usage: wattle-bench
       wattle-bench peer <folder> [--quick] [<case>...]
       wattle-bench load [--streams <n>] [--rate <n>] [--seconds <n>] [--store redb|memory]
       wattle-bench agent-server <folder> [--quick]
       wattle-bench hosts [--seconds <n>] [--threads <n>] [--runs <n>]
       wattle-bench studio [--threads <n>] [--calls <n>] [--requests <n>]
       wattle-bench turns [--turns <n>]
       wattle-bench attack [--seconds <n>] [<attack>...]
       wattle-bench date
       wattle-bench model";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => steps::table(),
        ["peer", folder, rest @ ..] => peer::table(folder.as_ref(), rest),
        ["own", code, case, store, order] => own::answer(code, case, store, order),
        ["attack", rest @ ..] => attack::table(rest),
        ["date"] => date::table(),
        ["model"] => model::table(),
        ["hosts", rest @ ..] => hosts::table(rest),
        ["load", rest @ ..] => load::table(rest),
        ["studio", rest @ ..] => studio::table(rest),
        ["turns", rest @ ..] => turns::table(rest),
        ["agent-server", folder, rest @ ..] => agent_server::table(folder.as_ref(), rest),
        _ => bail!("{USAGE}"),
    }
}

#[expect(clippy::print_stdout, reason = "tables are the output of the program")]
fn print_line(line: &str) {
    println!("{line}");
}

/// Prints progress to the standard error.
#[expect(clippy::print_stderr, reason = "standard output has tables only")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// Sorts values and returns their median, or 0 if there are none.
fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}
