//! An application with its data set and stand-ins, and its results.

#![expect(clippy::print_stdout, reason = "shares are results, not only conditions")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;
use wattle_kit::standin::{Fault, FaultRule, Imprecise, Imprecision, Pattern};
use wattle_suite::binary;
use wattle_suite::guests::root;
use wattle_suite::server::{Setup, TestServer};

/// Determines which completions are distorted.
const SEED: u64 = 14;

/// Share of the completions that are distorted.
const RATE: f64 = 0.33;

/// Maximum duration of one run of a data set. None of its cases may hang.
const LIMIT: Duration = Duration::from_secs(150);

/// Codes of failures of the host or the plugin, which no completion may cause.
const BUGS: [&str; 5] = ["trap", "internal", "divergence", "broken", "limit"];

/// The fixed time of the server's clock, for the process that runs the data set.
const CLOCK: &str = "[clock]\nfixed = \"2025-01-15T10:30:45+08:00\"\n";

/// A running application.
pub(crate) struct Bench {
    app: &'static str,
    server: TestServer,
}

/// The result of a data set.
struct Outcome {
    share: f64,
    passed: BTreeSet<String>,
    /// The deviations by case.
    failed: BTreeMap<String, String>,
    statuses: String,
    model_calls: u64,
}

impl Bench {
    /// Starts the application.
    pub(crate) async fn start(app: &'static str, setup: Setup) -> Self {
        let server = setup.replace("[clock]\n", CLOCK).start().await;
        Self { app, server }
    }

    /// Checks that every case ends as expected, except those that the stand-ins do not understand,
    /// and that no thread is left.
    pub(crate) async fn precise(&self) {
        let outcome = self.run().await;
        let beyond = beyond(self.app);
        let wrong: Vec<&String> = outcome
            .failed
            .iter()
            .filter(|(name, _)| !beyond.contains(*name))
            .map(|it| it.1)
            .collect();
        assert!(wrong.is_empty(), "not as expected:\n{wrong:#?}");
        let within: Vec<&String> = beyond.intersection(&outcome.passed).collect();
        assert!(within.is_empty(), "remove from the list beyond the stand-ins: {within:?}");
        let known = outcome.passed.len() + outcome.failed.len();
        assert!(beyond.len() * 3 <= known, "the stand-ins understand too few cases: {beyond:?}");
        let threads = self.server.get("/api/v1/threads").await.expect(200);
        assert_eq!(threads["items"], serde_json::json!([]), "threads of cases are deleted");
        println!("{} precise: {}", self.app, outcome.line());
    }

    /// Checks that most cases end as expected with each kind of imprecision, and that all of them
    /// end.
    pub(crate) async fn imprecise(&self, floor: f64) {
        let mut shares = Vec::new();
        for kind in Imprecision::ALL {
            self.server.standin().clear_faults();
            let mode = Imprecise::new(SEED).rate(kind, RATE);
            let fault = FaultRule::new(Pattern::any(), Fault::Imprecise(mode));
            self.server.standin().fault(fault);
            let outcome = self.run().await;
            println!("{} {kind:?}: {}", self.app, outcome.line());
            shares.push(outcome.share);
        }
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        println!("{} imprecise, mean: {:.1} %", self.app, mean * 100.0);
        assert!(mean >= floor, "{mean} of the cases, fewer than {floor}, end as expected");
        let distorted = self.server.standin().requests();
        let distorted = distorted.iter().filter(|it| it.fault.as_deref() == Some("imprecise"));
        assert!(distorted.count() > Imprecision::ALL.len(), "the models were imprecise");
    }

    async fn run(&self) -> Outcome {
        let args = ["eval", self.app, "--json", "--quiet", "--concurrency", "4"];
        let run = binary::run(&self.server.setup.workspace, &args);
        let ended = timeout(LIMIT, run).await.expect("the data set ends in time");
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        Outcome::of(&ended.json())
    }
}

impl Outcome {
    fn of(report: &Value) -> Self {
        let runs = report["runs"].as_array().expect("runs");
        let (mut passed, mut failed) = (BTreeSet::new(), BTreeMap::new());
        for run in runs {
            let name = run["name"].as_str().unwrap_or_default().to_owned();
            let code = run["failure"]["code"].as_str().unwrap_or_default();
            assert!(!BUGS.contains(&code), "{run:#}");
            if run["passed"] == true {
                passed.insert(name);
            } else {
                failed.insert(name, wrong(run));
            }
        }
        let summary = &report["summary"];
        Self {
            share: summary["share"].as_f64().unwrap_or_default(),
            passed,
            failed,
            statuses: summary["statuses"].to_string(),
            model_calls: summary["spent"]["model_calls"].as_u64().unwrap_or_default(),
        }
    }

    fn line(&self) -> String {
        let (passed, count) = (self.passed.len(), self.passed.len() + self.failed.len());
        let share = self.share * 100.0;
        let wrong: Vec<&str> = self.failed.keys().map(String::as_str).collect();
        format!(
            "{passed} of {count} ({share:.1} %), {}, {} model calls, not {}",
            self.statuses,
            self.model_calls,
            wrong.join(" ")
        )
    }
}

/// Returns the deviations of a run on one line.
fn wrong(run: &Value) -> String {
    let checks = run["checks"].as_array().into_iter().flatten();
    let wrong = checks.filter(|check| check["passed"] == false).map(|check| {
        format!("{} is {}, not {}", check["pointer"], check["got"], check["expected"])
    });
    let mut parts: Vec<String> = wrong.collect();
    if !run["failure"].is_null() {
        parts.push(format!("{}: {}", run["failure"]["code"], run["failure"]["message"]));
    }
    format!("{}: {}", run["name"], parts.join("; "))
}

/// Returns the names of the cases that the stand-ins do not understand. The data sets are for real
/// models.
fn beyond(app: &str) -> BTreeSet<String> {
    let file = root().join("tests/suite/tests/suite/eval/beyond").join(format!("{app}.txt"));
    let text = std::fs::read_to_string(&file);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}
