//! The report of an evaluation: accuracy, tokens, cost and time, and the failed cases.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use wattle_graph::omit::is_zero;

use crate::cases::verdict;
use crate::command::eval::case_run::CaseRun;
use crate::command::eval::usage::ModelUsage;
use crate::command::format;
use crate::output::Table;

/// The results of a data set.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) app: String,
    pub(super) cases_file: PathBuf,
    pub(super) summary: Summary,
    /// Scores by pointer, with array indexes replaced by `*`.
    pub(super) fields: BTreeMap<String, Score>,
    pub(super) runs: Vec<CaseRun>,
    /// Number of planned runs that were not measured because of Ctrl-C.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) unmeasured: usize,
}

/// The totals of all runs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    #[serde(flatten)]
    pub(super) score: Score,
    /// Number of runs by status.
    pub(super) statuses: BTreeMap<String, usize>,
    pub(super) spent: ModelUsage,
    pub(super) time: Latency,
}

/// Number of values, number of passes, and the pass rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Score {
    pub(super) count: usize,
    pub(super) passed: usize,
    pub(super) share: f64,
}

/// Durations of the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Latency {
    pub(super) median_ms: u64,
    pub(super) p95_ms: u64,
    /// Time from the start of the first run to the end of the last run.
    pub(super) total_ms: u64,
}

impl Score {
    fn add(&mut self, passed: bool) {
        self.count += 1;
        self.passed += usize::from(passed);
        self.share = self.passed as f64 / self.count as f64;
    }
}

impl Report {
    /// Summarizes the results of runs. `planned` is the number of planned runs, including those
    /// that were not measured.
    pub(super) fn new(
        app: &str,
        file: PathBuf,
        runs: Vec<CaseRun>,
        planned: usize,
        elapsed: Duration,
    ) -> Self {
        let mut fields: BTreeMap<String, Score> = BTreeMap::new();
        let mut score = Score::default();
        let mut statuses: BTreeMap<String, usize> = BTreeMap::new();
        let mut spent = ModelUsage::default();
        for run in &runs {
            score.add(run.passed);
            *statuses.entry(run.status.clone()).or_default() += 1;
            spent.add(&run.spent);
            for check in &run.checks {
                fields.entry(check.field.clone()).or_default().add(check.passed);
            }
        }
        let time = Latency::from_durations(runs.iter().map(|run| run.time_ms).collect(), elapsed);
        let summary = Summary { score, statuses, spent, time };
        let unmeasured = planned.saturating_sub(runs.len());
        Self { app: app.to_owned(), cases_file: file, summary, fields, runs, unmeasured }
    }

    /// Returns the report as text.
    pub(super) fn render(&self) -> String {
        let mut parts: Vec<String> =
            self.runs.iter().filter(|run| !run.passed).map(render_failed).collect();
        let mut table = Table::new(&["field", "right", "of", "share"]);
        for (field, score) in &self.fields {
            table.row(cells(field, *score));
        }
        table.row(cells("runs that ended as expected", self.summary.score));
        parts.push(table.render());
        parts.push(self.render_totals());
        if self.unmeasured > 0 {
            let (measured, planned) = (self.runs.len(), self.runs.len() + self.unmeasured);
            parts.push(format!("interrupted: {measured} of {planned} runs were measured"));
        }
        parts.join("\n\n")
    }

    fn render_totals(&self) -> String {
        let Summary { statuses, spent, time, .. } = &self.summary;
        let statuses: Vec<String> =
            statuses.iter().map(|(status, count)| format!("{count} {status}")).collect();
        let cost = match spent.cost {
            Some(cost) => format!("{cost:.4}"),
            None => "unknown: no price under `[model.prices]`".to_owned(),
        };
        let mut lines = vec![
            format!("status  {}", statuses.join(", ")),
            format!(
                "tokens  {} in, {} out, in {} model calls",
                spent.input_tokens, spent.output_tokens, spent.model_calls
            ),
            format!("cost    {cost}"),
            format!(
                "time    median {}, p95 {}, total {}",
                format::duration(time.median_ms * 1_000),
                format::duration(time.p95_ms * 1_000),
                format::duration(time.total_ms * 1_000)
            ),
        ];
        if spent.cost.is_some() && !spent.without_price.is_empty() {
            let models: Vec<&str> = spent.without_price.iter().map(String::as_str).collect();
            lines.push(format!("        without a price: {}", models.join(", ")));
        }
        lines.join("\n")
    }
}

impl Latency {
    fn from_durations(mut times: Vec<u64>, elapsed: Duration) -> Self {
        times.sort_unstable();
        let rank = |percent: usize| {
            let index = (times.len() * percent).div_ceil(100).saturating_sub(1);
            times.get(index).copied().unwrap_or_default()
        };
        let total_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        Self { median_ms: rank(50), p95_ms: rank(95), total_ms }
    }
}

fn cells(name: &str, score: Score) -> [String; 4] {
    let percent = format!("{:.1} %", score.share * 100.0);
    [name.to_owned(), score.passed.to_string(), score.count.to_string(), percent]
}

fn render_failed(run: &CaseRun) -> String {
    let mut lines = vec![format!("{}: {}", run.name, run.status)];
    lines.extend(verdict::describe_failure(run.failure.as_ref(), &run.checks));
    if let Some(thread) = &run.thread {
        lines.push(format!("  thread {thread}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cases::verdict::{Check, Mismatch};

    fn run(name: &str, time_ms: u64, got: Option<Value>) -> CaseRun {
        let check = Check {
            pointer: "/state/rows/0/ticker".into(),
            field: "/state/rows/*/ticker".into(),
            passed: got.is_none(),
            mismatch: got.clone().map(|got| Mismatch { expected: json!("0700.HK"), got }),
        };
        let spent = ModelUsage {
            model_calls: 2,
            input_tokens: 1_000,
            output_tokens: 50,
            cost: Some(0.0125),
            without_price: ["other".to_owned()].into(),
        };
        CaseRun {
            name: name.into(),
            passed: got.is_none(),
            status: "interrupted".into(),
            thread: None,
            time_ms,
            spent,
            failure: None,
            checks: vec![check],
        }
    }

    #[test]
    fn a_report_has_failed_cases_and_totals() {
        let runs = vec![
            run("buy", 1_500, None),
            run("sell", 2_500, Some(json!("UNKNOWN"))),
            run("hold", 500, None),
        ];
        let elapsed = Duration::from_millis(4_600);
        let report = Report::new("asset", PathBuf::from("cases.jsonl"), runs, 3, elapsed);
        insta::assert_snapshot!(report.render());
        insta::assert_json_snapshot!(report.summary);
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let times = Latency::from_durations((1..=100).collect(), Duration::from_secs(1));
        assert_eq!((times.median_ms, times.p95_ms, times.total_ms), (50, 95, 1_000));
        assert_eq!(Latency::from_durations(Vec::new(), Duration::ZERO), Latency::default());
    }
}
