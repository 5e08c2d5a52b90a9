//! Compares Wattle with LangGraph: every case in a separate process, in alternating order and in
//! several rounds. The median of the rounds counts.

mod compare;
mod contest;
mod floor;
mod process;
mod report;
mod summary;

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use contest::{CONTESTS, Contest};
use process::Processes;
use report::Report;
use summary::Figures;

use crate::say;

/// Number of rounds for each measurement.
const ROUNDS: usize = 3;

/// Duration of one measurement in seconds, unless the case is one burst.
const SECONDS: f64 = 1.5;

/// Duration of one measurement with [`QUICK`], in seconds.
const QUICK_SECONDS: f64 = 0.3;

/// The option for one short round.
const QUICK: &str = "--quick";

/// Measures the named cases, or all of them, prints the results and writes them to `folder`, in
/// which the programs of the peers are installed.
pub(crate) fn table(folder: &Path, words: &[&str]) -> Result<()> {
    let quick = words.contains(&QUICK);
    let names: Vec<&str> = words.iter().copied().filter(|word| *word != QUICK).collect();
    let contests = chosen(&names)?;
    let (rounds, seconds) = if quick { (1, QUICK_SECONDS) } else { (ROUNDS, SECONDS) };
    let mut processes = Processes::new(folder, seconds)?;
    let mut report = Report::new();
    for contest in contests {
        report.floor(floor::fdatasync_us(folder)?);
        measure(contest, rounds, &mut processes, &mut report);
    }
    report.finish();
    report.print();
    let file = folder.join("peer.json");
    std::fs::write(&file, report.to_json()?)
        .with_context(|| format!("cannot write {}", file.display()))?;
    say(&format!("written to {}", file.display()));
    match report.failures() {
        0 => Ok(()),
        failures => bail!("{failures} measurements failed; see the notes above"),
    }
}

fn chosen(names: &[&str]) -> Result<Vec<&'static Contest>> {
    if names.is_empty() {
        return Ok(CONTESTS.iter().collect());
    }
    let named = |name: &&str| {
        CONTESTS.iter().find(|contest| contest.name == *name).with_context(|| {
            let known: Vec<&str> = CONTESTS.iter().map(|contest| contest.name).collect();
            format!("unknown case `{name}`; the cases are {}", known.join(", "))
        })
    };
    names.iter().map(named).collect()
}

/// Measures a case. Every second round has the reverse order, so that no entry always comes first.
fn measure(contest: &Contest, rounds: usize, processes: &mut Processes, report: &mut Report) {
    let mut entries = contest.entries();
    entries.retain(|entry| processes.can_run(entry));
    let mut figures = vec![Figures::default(); entries.len()];
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let entry = entries[index];
            say(&format!("{}, round {}: {entry}", contest.name, round + 1));
            match processes.measure(contest, entry) {
                Ok(answer) => figures[index].push(answer),
                Err(error) => {
                    say(&format!("note: {entry} failed: {error:#}"));
                    report.failed();
                }
            }
        }
    }
    let mut measured: Vec<_> = entries.into_iter().zip(figures).collect();
    measured.sort_by_key(|(entry, _)| entry.side);
    for (entry, figures) in measured {
        report.add(contest, entry, &figures);
    }
}
