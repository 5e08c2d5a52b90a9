//! Compares Wattle's Agent Server with the LangGraph server: the same client sends the same
//! requests, in alternating order and in several rounds. The median of the rounds counts.
//!
//! Each server runs in a separate process, which is started for a round and ended after it.

mod contestant;
mod lanes;
mod report;

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use tokio::runtime::Builder;

use contestant::{CONTESTANTS, Contestant, Running};
use lanes::Lanes;
use report::{Figures, Measure, Report};

use crate::say;

/// Number of rounds for each server.
const ROUNDS: usize = 3;

/// Duration of one measurement, in seconds.
const SECONDS: f64 = 4.0;

/// Duration of one measurement with [`QUICK`], in seconds.
const QUICK_SECONDS: f64 = 0.5;

/// The option for one short round.
const QUICK: &str = "--quick";

/// Numbers of concurrent clients. The last one is above the number of concurrent jobs of the
/// LangGraph server. That server then always finds waiting runs, and does not pause before its next
/// poll.
const CLIENTS: [usize; 3] = [1, 16, 64];

/// Measures all servers, prints the results and writes them to `folder`, in which the LangGraph
/// server is installed.
///
/// # Errors
///
/// If a measurement fails.
pub(crate) fn table(folder: &Path, words: &[&str]) -> Result<()> {
    let (rounds, seconds) = match words {
        [] => (ROUNDS, SECONDS),
        [QUICK] => (1, QUICK_SECONDS),
        [other, ..] => bail!("unknown option `{other}`; the option is {QUICK}"),
    };
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::default();
    let mut failures = 0;
    for round in 0..rounds {
        for contestant in in_turn(folder, round) {
            say(&format!("round {}: {}", round + 1, contestant.name()));
            match runtime.block_on(measure(folder, contestant, seconds)) {
                Ok(figures) => report.add(contestant, figures),
                Err(error) => {
                    say(&format!("note: {} failed: {error:#}", contestant.name()));
                    failures += 1;
                }
            }
        }
    }
    report.print();
    let file = folder.join("agent-server.json");
    std::fs::write(&file, report.to_json()?)
        .with_context(|| format!("cannot write {}", file.display()))?;
    say(&format!("written to {}", file.display()));
    match failures {
        0 => Ok(()),
        failures => bail!("{failures} measurements failed; see the notes above"),
    }
}

/// Returns the installed servers. Every second round has the reverse order, so that no server
/// always comes first.
fn in_turn(folder: &Path, round: usize) -> Vec<Contestant> {
    let mut present: Vec<_> = CONTESTANTS.into_iter().filter(|it| it.is_there(folder)).collect();
    if round % 2 == 1 {
        present.reverse();
    }
    present
}

async fn measure(folder: &Path, contestant: Contestant, seconds: f64) -> Result<Figures> {
    let running = Running::start(folder, contestant).await?;
    let measured = measure_running(&running, seconds).await;
    let measured = measured.with_context(|| running.last_words());
    running.stop().await?;
    measured
}

async fn measure_running(running: &Running, seconds: f64) -> Result<Figures> {
    let mut figures = Figures::new();
    for clients in CLIENTS {
        let lanes = Lanes::new(&running.url, clients, seconds)?;
        let trips = lanes.round_trips().await?;
        figures.push((Measure::RoundTrips(clients), trips.per_second()));
        let streams = lanes.first_events().await?;
        for percent in [50, 99] {
            let took_ms = streams.times.percentile_ms(percent);
            figures.push((Measure::FirstEvent { percent, clients }, took_ms));
        }
    }
    figures.push((Measure::Memory, running.usage()?.peak_rss_bytes as f64 / 1e6));
    Ok(figures)
}
