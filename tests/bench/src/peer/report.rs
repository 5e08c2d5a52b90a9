//! The tables, as text and as JSON.

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Serialize;

use crate::order::Reads;
use crate::peer::compare::{self, Compared};
use crate::peer::contest::{CONTESTS, Contest, Entry};
use crate::peer::summary::{Figures, Summary};
use crate::{median, print_line};

/// All results.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    cores: usize,
    /// Median time to write 1 KB durably, in microseconds.
    fdatasync_us: f64,
    /// Names and versions of the measured peers.
    versions: BTreeSet<String>,
    rows: Vec<Summary>,
    comparisons: Vec<Compared>,
    failures: usize,
    #[serde(skip)]
    floors: Vec<f64>,
}

impl Report {
    /// Creates an empty report.
    pub(crate) fn new() -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            fdatasync_us: 0.0,
            versions: BTreeSet::new(),
            rows: Vec::new(),
            comparisons: Vec::new(),
            failures: 0,
            floors: Vec::new(),
        }
    }

    /// Adds a measurement of the disk.
    pub(crate) fn floor(&mut self, fdatasync_us: f64) {
        self.floors.push(fdatasync_us);
    }

    /// Adds all rounds of a measurement.
    pub(crate) fn add(&mut self, contest: &Contest, entry: Entry, figures: &Figures) {
        self.versions.extend(figures.version().map(str::to_owned));
        self.rows.extend(Summary::new(contest, entry, figures));
    }

    /// Counts a failed measurement.
    pub(crate) fn failed(&mut self) {
        self.failures += 1;
    }

    /// Returns the number of failed measurements.
    pub(crate) fn failures(&self) -> usize {
        self.failures
    }

    /// Computes medians and comparisons after all measurements.
    pub(crate) fn finish(&mut self) {
        self.fdatasync_us = median(&mut self.floors);
        self.comparisons = compare::all(&self.rows);
    }

    /// Returns the report as JSON.
    pub(crate) fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// Prints all tables.
    pub(crate) fn print(&self) {
        print_line(&format!(
            "{} cores; fdatasync of 1 KB takes {:.0} us, {:.0} a second",
            self.cores,
            self.fdatasync_us,
            1e6 / self.fdatasync_us
        ));
        for version in &self.versions {
            print_line(version);
        }
        for contest in CONTESTS {
            let rows: Vec<&Summary> =
                self.rows.iter().filter(|row| row.case == contest.name).collect();
            if !rows.is_empty() {
                print_contest(contest, &rows);
            }
        }
        self.print_comparisons();
    }

    fn print_comparisons(&self) {
        print_line("\nhow many times better Wattle is than the best LangGraph store");
        let head = ["comparison", "case", "native", "wasm", "aim", "verdict"];
        let times = |times: Option<f64>| times.map_or_else(String::new, |x| format!("{x:.1}x"));
        print_comparison(&head.map(str::to_owned));
        for compared in &self.comparisons {
            print_comparison(&[
                compared.what.to_owned(),
                compared.case.to_owned(),
                times(compared.native),
                times(compared.wasm),
                times(compared.aim),
                compared.verdict().to_owned(),
            ]);
        }
    }
}

fn print_contest(contest: &Contest, rows: &[&Summary]) {
    print_line(&format!("\n{}: {}", contest.name, contest.what));
    let head = [
        "who",
        "store",
        "steps/s",
        "slowest",
        "fastest",
        "peak MB",
        "stored KB",
        "20/all/latest/events ms",
    ];
    print_row(&head.map(str::to_owned));
    for row in rows {
        print_row(&[
            row.side.to_owned(),
            row.store.to_owned(),
            format!("{:.0}", row.steps_per_second),
            format!("{:.0}", row.slowest),
            format!("{:.0}", row.fastest),
            format!("{:.1}", row.peak_rss_bytes / 1e6),
            row.stored_bytes.map_or_else(String::new, |bytes| format!("{:.0}", bytes / 1e3)),
            row.reads.as_ref().map_or_else(String::new, reads),
        ]);
    }
}

fn reads(reads: &Reads) -> String {
    let states = format!("{:.2} / {:.1} / {:.3}", reads.page_ms, reads.all_ms, reads.latest_ms);
    match reads.events_ms {
        Some(events_ms) => format!("{states} / {events_ms:.2}"),
        None => states,
    }
}

fn print_row([who, store, cells @ ..]: &[String; 8]) {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>10}")).collect();
    print_line(format!("{who:<17} {store:<14} {}", cells.join(" ")).trim_end());
}

fn print_comparison([what, case, cells @ ..]: &[String; 6]) {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>10}")).collect();
    print_line(format!("{what:<37} {case:<9} {}", cells.join(" ")).trim_end());
}
