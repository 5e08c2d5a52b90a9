//! One run of a case, with its usage.

use serde::Serialize;
use wattle_api::document::run::FailureDocument;
use wattle_run::ports::statistics::ModelPrices;

use crate::cases::case::Case;
use crate::cases::runner::{CaseOutcome, Runner};
use crate::cases::verdict::{Check, Verdict};
use crate::cases::wait::CancelReason;
use crate::client::encode_segment;
use crate::command::eval::usage::ModelUsage;
use crate::error::Error;

/// Runs cases and measures the usage of models.
pub(super) struct EvalRunner<'a> {
    pub(super) runner: Runner<'a>,
    pub(super) prices: &'a ModelPrices,
    pub(super) keep: bool,
}

/// The result of a run of a case.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CaseRun {
    pub(super) name: String,
    /// True if all expectations are met.
    pub(super) passed: bool,
    /// Status of the run; `refused` if the graph rejects the input.
    pub(super) status: String,
    /// Id of the thread, if the thread is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thread: Option<String>,
    pub(super) time_ms: u64,
    pub(super) spent: ModelUsage,
    /// Failure of a failed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<FailureDocument>,
    /// Result of each expectation.
    pub(super) checks: Vec<Check>,
}

impl EvalRunner<'_> {
    /// Runs a case. Returns `None` if the user presses Ctrl-C before the run has ended.
    pub(super) async fn run(&self, case: &Case) -> Result<Option<CaseRun>, Error> {
        if self.runner.ctrl_c.is_pressed() {
            return Ok(None);
        }
        let CaseOutcome { verdict, thread, cancel_reason, time_ms } = self.runner.run(case).await?;
        let mut run = CaseRun::new(case, verdict, time_ms);
        if let Some(thread) = thread {
            run.spent = ModelUsage::read(self.runner.client, &thread, self.prices).await?;
            if self.keep {
                run.thread = Some(thread);
            } else {
                let path = format!("/api/v1/threads/{}", encode_segment(&thread));
                self.runner.client.delete(&path).await?;
            }
        }
        Ok((cancel_reason != Some(CancelReason::CtrlC)).then_some(run))
    }
}

impl CaseRun {
    fn new(case: &Case, verdict: Verdict, time_ms: u64) -> Self {
        let Verdict { passed, status, failure, checks } = verdict;
        Self {
            name: case.name.clone(),
            passed,
            status,
            thread: None,
            time_ms,
            spent: ModelUsage::default(),
            failure,
            checks,
        }
    }
}
