//! Runs a case on its own thread.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use wattle_api::document::run::{FailureDocument, ResumeDocument, RunDocument, StartDocument};
use wattle_graph::definition::HumanDuration;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::code;

use crate::cases::case::Case;
use crate::cases::ctrl_c::CtrlC;
use crate::cases::date::Today;
use crate::cases::verdict::Verdict;
use crate::cases::wait::{self, CancelReason};
use crate::client::{Client, encode_segment};
use crate::error::Error;

/// Runs the cases of an app.
pub(crate) struct Runner<'a> {
    pub(crate) client: &'a Client,
    pub(crate) app: &'a str,
    pub(crate) today: Today,
    /// Time limit of a case.
    pub(crate) timeout: HumanDuration,
    pub(crate) ctrl_c: &'a CtrlC,
    /// Metadata key of a thread that contains the name of its case.
    pub(crate) metadata_key: &'static str,
}

/// The end of a case.
pub(crate) struct CaseOutcome {
    pub(crate) verdict: Verdict,
    /// The thread; `None` if the graph rejects the input.
    pub(crate) thread: Option<String>,
    /// Why the run was cancelled; `None` if it was not cancelled.
    pub(crate) cancel_reason: Option<CancelReason>,
    pub(crate) time_ms: u64,
}

impl Runner<'_> {
    /// Runs a case. A failed run is a result; an error means that the host failed.
    pub(crate) async fn run(&self, case: &Case) -> Result<CaseOutcome, Error> {
        let started_at = Instant::now();
        let deadline = started_at + Duration::from_millis(self.timeout.as_ms());
        let ended = self.execute(case, deadline).await;
        let time_ms = u64::try_from(started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (mut run, cancel_reason) = match ended {
            Ok(ended) => ended,
            // An input that the graph rejects fails only this case.
            Err(Error::Problem(problem)) if [400, 409, 422].contains(&problem.status) => {
                let failure = FailureDocument {
                    code: problem.code.clone(),
                    message: problem.detail.clone(),
                    retryable: false,
                    details: None,
                };
                let verdict = Verdict::from_rejection(case, failure, &self.today);
                return Ok(CaseOutcome { verdict, thread: None, cancel_reason: None, time_ms });
            }
            Err(error) => return Err(error),
        };
        let is_late = cancel_reason == Some(CancelReason::Timeout);
        if is_late {
            run.failure = Some(self.timeout_failure());
        }
        let mut verdict = Verdict::from_run(case, &run, &self.today);
        verdict.passed &= !is_late;
        Ok(CaseOutcome { verdict, thread: Some(run.thread), cancel_reason, time_ms })
    }

    fn timeout_failure(&self) -> FailureDocument {
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
    ) -> Result<(RunDocument, Option<CancelReason>), Error> {
        let start = StartDocument {
            graph: case.graph.clone(),
            input: case.input.clone(),
            context: case.context.clone(),
            metadata: BTreeMap::from([(self.metadata_key.to_owned(), json!(case.name))]),
            ..StartDocument::default()
        };
        let path = format!("/api/v1/apps/{}/runs", encode_segment(self.app));
        let mut started: RunDocument = self.client.post(&path, &start).await?;
        let mut answers = case.answers.iter();
        loop {
            let waited = wait::wait(self.client, &started, deadline, self.ctrl_c).await?;
            let (run, cancel_reason) = waited;
            if run.status != RunStatus::Interrupted {
                return Ok((run, cancel_reason));
            }
            let Some(resume) = next_answers(&run, &mut answers) else {
                return Ok((run, cancel_reason));
            };
            let path = format!("/api/v1/threads/{}/resume", encode_segment(&run.thread));
            started = self.client.post(&path, &resume).await?;
        }
    }
}

/// Returns the next answers of a case, one for each pending interrupt; `None` if the case has no
/// further answer.
pub(crate) fn next_answers<'a>(
    run: &RunDocument,
    answers: &mut impl Iterator<Item = &'a Value>,
) -> Option<ResumeDocument> {
    let asked = run.interrupts.iter();
    let answered: BTreeMap<String, Value> =
        asked.zip(answers).map(|(it, value)| (it.id.clone(), value.clone())).collect();
    (!answered.is_empty()).then(|| ResumeDocument { answers: answered, ..Default::default() })
}
