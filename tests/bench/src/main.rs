//! Benchmarks of no-op graphs; `cargo xtask bench` runs them, and the README beside this crate says
//! what they measure.
//!
//! # Layout
//!
//! * [`steps`]: steps per second of the engine and where the time goes, by a [`timed`] store.
//! * [`peer`]: Wattle beside LangGraph, each case in a process of its own.
//! * [`own`]: one case on Wattle, in such a process.
//! * [`load`]: many streams and runs on a server, and whether an event was lost.
//! * [`agent_server`]: the same requests to our server and to that of LangGraph.
//! * [`hosts`]: three hosts on one database.
//! * [`attack`]: the attacks of the suite, and what others have of the host meanwhile.
//! * [`date`]: how long the tool of the expense application takes that reckons dates.
//! * [`model`]: calls of models beside the same bytes alone.
//! * [`served`]: our server, in a process of its own; [`usage`]: what a process takes.
//! * [`graphs`], [`stores`], [`host`]: the graphs of the cases, the stores, an engine over both.
//! * [`order`]: the order to a process, and its answer.

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
mod timed;
mod usage;

use anyhow::{Result, bail};

/// As in the host.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "\
usage: wattle-bench
       wattle-bench peer <folder> [--quick] [<case>...]
       wattle-bench load [--streams <n>] [--rate <n>] [--seconds <n>] [--store redb|memory]
       wattle-bench agent-server <folder> [--quick]
       wattle-bench hosts [--seconds <n>] [--threads <n>] [--runs <n>]
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
        ["agent-server", folder, rest @ ..] => agent_server::table(folder.as_ref(), rest),
        _ => bail!("{USAGE}"),
    }
}

#[expect(clippy::print_stdout, reason = "tables are what this program is for")]
fn print_line(line: &str) {
    println!("{line}");
}

/// The middle of some figures; 0 if there are none.
fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}
