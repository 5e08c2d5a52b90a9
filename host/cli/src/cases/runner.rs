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
use crate::cases::day::Today;
use crate::cases::interrupt::Interrupt;
use crate::cases::verdict::Verdict;
use crate::cases::wait::{self, Stopped};
use crate::client::{Client, segment};
use crate::error::Error;

/// Runs the cases of an app.
pub(crate) struct Runner<'a> {
    pub(crate) client: &'a Client,
    pub(crate) app: &'a str,
    pub(crate) today: Today,
    /// Time limit of a case.
    pub(crate) timeout: HumanDuration,
    pub(crate) interrupt: &'a Interrupt,
    /// Metadata key of a thread that contains the name of its case.
    pub(crate) key: &'static str,
}

/// The end of a case.
pub(crate) struct Ended {
    pub(crate) verdict: Verdict,
    /// The thread; `None` if the graph rejects the input.
    pub(crate) thread: Option<String>,
    /// Why the run was cancelled, if it was.
    pub(crate) stopped: Option<Stopped>,
    pub(crate) time_ms: u64,
}

impl Runner<'_> {
    /// Runs a case. A failed run is a result; an error means that the host failed.
    pub(crate) async fn run(&self, case: &Case) -> Result<Ended, Error> {
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
                let verdict = Verdict::of_refused(case, failure, &self.today);
                return Ok(Ended { verdict, thread: None, stopped: None, time_ms });
            }
            Err(error) => return Err(error),
        };
        let is_late = stopped == Some(Stopped::Timeout);
        if is_late {
            run.failure = Some(self.took_too_long());
        }
        let mut verdict = Verdict::of_run(case, &run, &self.today);
        verdict.passed &= !is_late;
        Ok(Ended { verdict, thread: Some(run.thread), stopped, time_ms })
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
            metadata: BTreeMap::from([(self.key.to_owned(), json!(case.name))]),
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
            let Some(resume) = next_answers(&run, &mut answers) else { return Ok((run, stopped)) };
            let path = format!("/api/v1/threads/{}/resume", segment(&run.thread));
            started = self.client.post(&path, &resume).await?;
        }
    }
}

/// Returns the next answers of a case, one for each pending interrupt; `None` if there is none.
pub(crate) fn next_answers<'a>(
    run: &RunDocument,
    answers: &mut impl Iterator<Item = &'a Value>,
) -> Option<ResumeDocument> {
    let asked = run.interrupts.iter();
    let answered: BTreeMap<String, Value> =
        asked.zip(answers).map(|(it, value)| (it.id.clone(), value.clone())).collect();
    (!answered.is_empty()).then(|| ResumeDocument { answers: answered, ..Default::default() })
}
