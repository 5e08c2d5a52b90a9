//! One run of a case, on its own thread.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use wattle_api::document::run::{FailureDocument, ResumeDocument, RunDocument, StartDocument};
use wattle_graph::definition::HumanDuration;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::code;

use crate::cases::case::{Case, Expectation};
use crate::cases::day::Today;
use crate::cases::interrupt::Interrupt;
use crate::cases::wait::{self, Stopped};
use crate::client::{Client, segment};
use crate::command::eval::spent::{Prices, Spent};
use crate::command::words;
use crate::error::Error;

/// Metadata key of a thread that contains the name of its case.
const METADATA: &str = "eval";

/// The state that all runs share.
pub(super) struct Bench<'a> {
    pub(super) client: &'a Client,
    pub(super) app: &'a str,
    pub(super) today: Today,
    pub(super) prices: &'a Prices,
    pub(super) keep: bool,
    /// Time limit of a case.
    pub(super) timeout: HumanDuration,
    pub(super) interrupt: &'a Interrupt,
}

/// The result of a run of a case.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Trial {
    pub(super) name: String,
    /// True if all expectations are met.
    pub(super) passed: bool,
    /// Status of the run; `refused` if the graph rejects the input.
    pub(super) status: String,
    /// Id of the thread, if the thread is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thread: Option<String>,
    pub(super) time_ms: u64,
    pub(super) spent: Spent,
    /// Failure of a failed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<FailureDocument>,
    /// Result of each expectation.
    pub(super) checks: Vec<Check>,
}

/// The result of an expectation.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    pub(super) pointer: String,
    #[serde(skip)]
    pub(super) field: String,
    pub(super) passed: bool,
    /// Expected and actual value of a failed expectation.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) wrong: Option<Wrong>,
}

/// The expected value and the actual one.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Wrong {
    pub(super) expected: Value,
    pub(super) got: Value,
}

impl Bench<'_> {
    /// Runs a case. A failed run is a result; an error means that the host failed. Returns `None`
    /// if the user presses Ctrl-C before the run has ended.
    pub(super) async fn run(&self, case: &Case) -> Result<Option<Trial>, Error> {
        if self.interrupt.is_pressed() {
            return Ok(None);
        }
        let begun = Instant::now();
        let deadline = begun + Duration::from_millis(self.timeout.as_ms());
        let ended = self.execute(case, deadline).await;
        let time_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (mut run, stopped) = match ended {
            Ok(ended) => ended,
            // An input that the graph rejects fails only this case.
            Err(Error::Problem(problem)) if [400, 409, 422].contains(&problem.status) => {
                let failure = FailureDocument {
                    code: problem.code.clone(),
                    message: problem.detail.clone(),
                    retryable: false,
                    details: None,
                };
                let document = json!({ "status": "refused", "failure": failure });
                return Ok(Some(trial(case, &document, Some(failure), time_ms, &self.today)));
            }
            Err(error) => return Err(error),
        };
        let spent = Spent::of(self.client, &run.thread, self.prices).await?;
        if !self.keep {
            self.client.delete(&format!("/api/v1/threads/{}", segment(&run.thread))).await?;
        }
        if stopped == Some(Stopped::Interrupt) {
            return Ok(None);
        }
        let is_late = stopped == Some(Stopped::Timeout);
        if is_late {
            run.failure = Some(self.took_too_long());
        }
        let found = trial(case, &document(&run), run.failure, time_ms, &self.today);
        let passed = found.passed && !is_late;
        Ok(Some(Trial { passed, spent, thread: self.keep.then_some(run.thread), ..found }))
    }

    fn took_too_long(&self) -> FailureDocument {
        FailureDocument {
            code: code::TIMEOUT.to_owned(),
            message: format!(
                "the case was cancelled after {}; `--timeout` sets the limit",
                self.timeout
            ),
            retryable: false,
            details: None,
        }
    }

    /// Runs a case until it ends, or until it is interrupted and the case has no further answer.
    async fn execute(
        &self,
        case: &Case,
        deadline: Instant,
    ) -> Result<(RunDocument, Option<Stopped>), Error> {
        let start = StartDocument {
            graph: case.graph.clone(),
            input: case.input.clone(),
            context: case.context.clone(),
            metadata: BTreeMap::from([(METADATA.to_owned(), json!(case.name))]),
            ..StartDocument::default()
        };
        let path = format!("/api/v1/apps/{}/runs", segment(self.app));
        let mut started: RunDocument = self.client.post(&path, &start).await?;
        let mut answers = case.answers.iter();
        loop {
            let waited = wait::wait(self.client, &started, deadline, self.interrupt).await?;
            let (run, stopped) = waited;
            if run.status != RunStatus::Interrupted {
                return Ok((run, stopped));
            }
            let asked = run.interrupts.iter();
            let answered: BTreeMap<String, Value> = asked
                .zip(answers.by_ref())
                .map(|(it, value)| (it.id.clone(), value.clone()))
                .collect();
            if answered.is_empty() {
                return Ok((run, stopped));
            }
            let resume = ResumeDocument { answers: answered, ..ResumeDocument::default() };
            let path = format!("/api/v1/threads/{}/resume", segment(&run.thread));
            started = self.client.post(&path, &resume).await?;
        }
    }
}

/// Returns the JSON object from which pointers select.
fn document(run: &RunDocument) -> Value {
    let payloads: Vec<&Value> = run.interrupts.iter().map(|question| &question.payload).collect();
    let mut document = json!({ "status": run.status, "state": run.state, "interrupts": payloads });
    if let Some(first) = payloads.first() {
        document["interrupt"] = (*first).clone();
    }
    if let Some(failure) = &run.failure {
        document["failure"] = json!(failure);
    }
    document
}

fn trial(
    case: &Case,
    document: &Value,
    failure: Option<FailureDocument>,
    time_ms: u64,
    today: &Today,
) -> Trial {
    let checks: Vec<Check> = case.expect.iter().map(|it| check(it, document, today)).collect();
    let status = words::word(&document["status"]);
    let expects_status = checks.iter().any(|check| check.pointer == "/status");
    let ended = expects_status || ["completed", "interrupted"].contains(&status.as_str());
    Trial {
        name: case.name.clone(),
        passed: ended && checks.iter().all(|check| check.passed),
        status,
        thread: None,
        time_ms,
        spent: Spent::default(),
        failure,
        checks,
    }
}

fn check(expectation: &Expectation, document: &Value, today: &Today) -> Check {
    let Expectation { pointer, matcher, written } = expectation;
    let selected = pointer.select(document);
    let passed = matcher.fits_selected(&selected, today);
    let wrong = || Wrong { expected: written.clone(), got: selected.shown() };
    Check {
        pointer: pointer.text().to_owned(),
        field: pointer.field(),
        passed,
        wrong: (!passed).then(wrong),
    }
}
