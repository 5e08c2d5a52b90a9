//! One run of a case, with its usage.

use serde::Serialize;
use wattle_api::document::run::FailureDocument;

use crate::cases::case::Case;
use crate::cases::runner::{Ended, Runner};
use crate::cases::verdict::{Check, Verdict};
use crate::cases::wait::Stopped;
use crate::client::segment;
use crate::command::eval::spent::{Prices, Spent};
use crate::error::Error;

/// The state that all runs share.
pub(super) struct Bench<'a> {
    pub(super) runner: Runner<'a>,
    pub(super) prices: &'a Prices,
    pub(super) keep: bool,
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

impl Bench<'_> {
    /// Runs a case. Returns `None` if the user presses Ctrl-C before the run has ended.
    pub(super) async fn run(&self, case: &Case) -> Result<Option<Trial>, Error> {
        if self.runner.interrupt.is_pressed() {
            return Ok(None);
        }
        let Ended { verdict, thread, stopped, time_ms } = self.runner.run(case).await?;
        let mut trial = Trial::new(case, verdict, time_ms);
        if let Some(thread) = thread {
            trial.spent = Spent::of(self.runner.client, &thread, self.prices).await?;
            if self.keep {
                trial.thread = Some(thread);
            } else {
                let path = format!("/api/v1/threads/{}", segment(&thread));
                self.runner.client.delete(&path).await?;
            }
        }
        Ok((stopped != Some(Stopped::Interrupt)).then_some(trial))
    }
}

impl Trial {
    fn new(case: &Case, verdict: Verdict, time_ms: u64) -> Self {
        let Verdict { passed, status, failure, checks } = verdict;
        Self {
            name: case.name.clone(),
            passed,
            status,
            thread: None,
            time_ms,
            spent: Spent::default(),
            failure,
            checks,
        }
    }
}
