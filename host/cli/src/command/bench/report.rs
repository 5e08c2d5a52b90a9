//! The report of a measured run.

use std::time::Duration;

use serde::Serialize;
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};
use wattle_run::replay::{RecordedRun, RunCost};

use crate::output::Table;

/// Width of the numbers in the table.
const NUMBER_WIDTH: usize = 8;

/// The cost of the steps of a run. A step is the execution of a node by a plugin.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    app: AppName,
    graph: GraphName,
    thread: ThreadId,
    run: RunId,
    /// Number of measured executions.
    times: usize,
    /// Number of steps of one execution.
    steps: u32,
    /// Time of a step.
    us_per_step: StepCost,
    /// Bytes of JSON that a step adds to the store.
    bytes_per_step: u64,
}

/// The time of a step in microseconds. Each value is the median of all executions, so the parts add
/// up to the total only approximately.
#[derive(Clone, Copy, Debug, Serialize)]
struct StepCost {
    guest: f64,
    json: f64,
    engine: f64,
    store: f64,
    total: f64,
    /// The total of the fastest execution.
    fastest: f64,
    /// The total of the slowest execution.
    slowest: f64,
}

impl Report {
    pub(super) fn new(app: &AppName, run: &RecordedRun, costs: &[RunCost]) -> Self {
        Self {
            app: app.clone(),
            graph: run.graph().clone(),
            thread: run.thread().clone(),
            run: run.id().clone(),
            times: costs.len(),
            steps: costs.first().map_or(0, |cost| cost.steps),
            us_per_step: StepCost::median_of(costs),
            bytes_per_step: costs.first().map_or(0, |it| it.bytes / u64::from(it.steps.max(1))),
        }
    }

    /// Returns the report as text.
    pub(super) fn render(&self) -> String {
        let StepCost { guest, json, engine, store, total, fastest, slowest } = self.us_per_step;
        let head = format!("{:>NUMBER_WIDTH$}", "us/step");
        let mut table = Table::new(&["part", &head, "share"]);
        let sum = guest + json + engine + store;
        for (part, us) in [("guest", guest), ("json", json), ("engine", engine), ("store", store)] {
            let share = if sum > 0.0 { us / sum * 100.0 } else { 0.0 };
            let cells =
                [part.to_owned(), format!("{us:>NUMBER_WIDTH$.1}"), format!("{share:>4.0}%")];
            table.row(cells);
        }
        table.row(["total".to_owned(), format!("{total:>NUMBER_WIDTH$.1}")]);
        table.row(["bytes".to_owned(), format!("{:>NUMBER_WIDTH$}", self.bytes_per_step)]);
        let Self { graph, run, times, steps, .. } = self;
        format!(
            "{}\nrun {run} of graph `{graph}`: {steps} steps, executed {times} times, from \
             {fastest:.1} to {slowest:.1} us/step",
            table.render()
        )
    }
}

impl StepCost {
    fn median_of(costs: &[RunCost]) -> Self {
        let sorted = |part: fn(&RunCost) -> Duration| {
            let mut all: Vec<f64> =
                costs.iter().map(|cost| us_per_step(cost, part(cost))).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let median = |part: fn(&RunCost) -> Duration| {
            let all = sorted(part);
            all.get(all.len() / 2).copied().unwrap_or_default()
        };
        let totals = sorted(|cost| cost.total);
        Self {
            guest: median(|cost| cost.guest),
            json: median(|cost| cost.json),
            engine: median(RunCost::engine),
            store: median(|cost| cost.store),
            total: median(|cost| cost.total),
            fastest: totals.first().copied().unwrap_or_default(),
            slowest: totals.last().copied().unwrap_or_default(),
        }
    }
}

/// Returns a time of a run per step in microseconds, with one decimal.
fn us_per_step(cost: &RunCost, time: Duration) -> f64 {
    let us = time.as_secs_f64() * 1e6 / f64::from(cost.steps.max(1));
    (us * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(total_us: u64, guest_us: u64) -> RunCost {
        RunCost {
            steps: 2,
            total: Duration::from_micros(total_us),
            guest: Duration::from_micros(guest_us),
            json: Duration::from_micros(8),
            store: Duration::from_micros(32),
            bytes: 4_001,
        }
    }

    #[test]
    fn a_report_has_the_median_of_each_part_for_one_step() {
        let costs = [cost(900, 600), cost(200, 120), cost(240, 130)];
        let report = Report {
            app: AppName::new("shop").unwrap(),
            graph: GraphName::new("main").unwrap(),
            thread: ThreadId::new("t").unwrap(),
            run: RunId::new("r").unwrap(),
            times: costs.len(),
            steps: 2,
            us_per_step: StepCost::median_of(&costs),
            bytes_per_step: 2_000,
        };
        insta::assert_snapshot!(report.render(), @"
        part     us/step  share
        guest       65.0    54%
        json         4.0     3%
        engine      35.0    29%
        store       16.0    13%
        total      120.0
        bytes       2000
        run r of graph `main`: 2 steps, executed 3 times, from 100.0 to 450.0 us/step
        ");
    }
}
