//! Attempts with the candidates of a route, until a completion passes.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::failure::{Failure, code};
use crate::llm::task::{Checked, TASK_FAILED, Task, bounded};
use crate::llm::{self, Attempt, Completion, Request, RouteInfo};
use crate::log;

/// The failure of one candidate.
#[derive(Debug, Serialize)]
struct GaveUp {
    /// `provider:model`.
    model: String,
    /// Number of attempts.
    attempts: u32,
    /// Reasons of the last attempt.
    errors: Vec<String>,
}

/// Calls the candidates one after the other. `ask` makes a request with the reasons of the last
/// completion, and `read` returns the value of a completion or the reasons against it.
pub(super) fn run<T>(
    task: &Task,
    ask: impl Fn(&[String]) -> Result<Request, Failure>,
    read: impl Fn(&Completion) -> Result<T, Vec<String>>,
) -> Result<Checked<T>, Failure> {
    task.check_refusal()?;
    let route = llm::route(task.route).map_err(|failure| failure.context(task.name))?;
    let mut reasons = Vec::new();
    let mut failed = Vec::new();
    for number in 0..route.candidates() {
        let candidate = Candidate { task, number, route: &route };
        match candidate.run(&mut reasons, &ask, &read)? {
            Ok(checked) => return Ok(checked),
            Err(gave_up) => {
                log::warn!("task `{}`: {}", task.name, gave_up.sentence());
                failed.push(gave_up);
            }
        }
    }
    Err(all_failed(task, &failed))
}

/// One candidate of a route, for one task.
struct Candidate<'a> {
    task: &'a Task,
    number: u32,
    route: &'a RouteInfo,
}

/// The result of a request.
enum Verdict<T> {
    /// The completion passes.
    Passed(T),
    /// The completion violates the schema, or the check refuses it.
    Refused(Vec<String>),
    /// There is no completion, but a retry can succeed.
    Transient(Vec<String>),
    /// There is no completion, and a retry cannot succeed.
    Permanent(Vec<String>),
}

impl Candidate<'_> {
    /// Calls the candidate until a completion passes or no attempt is left. The outer failure ends
    /// the task, the inner one only the attempts with this candidate. `reasons` are those of the
    /// last completion, of any candidate.
    fn run<T>(
        &self,
        reasons: &mut Vec<String>,
        ask: impl Fn(&[String]) -> Result<Request, Failure>,
        read: impl Fn(&Completion) -> Result<T, Vec<String>>,
    ) -> Result<Result<Checked<T>, GaveUp>, Failure> {
        let allowed = self.task.retries.saturating_add(1);
        let (mut attempts, mut model) = (0, self.name());
        loop {
            // The next request has all reasons, so the host does not repair the completion.
            let request = ask(reasons)?.candidate(self.number).without_repair();
            let result = request.retries(allowed - attempts - 1).complete();
            let tried = reported(&result);
            attempts += tried.iter().map(|attempt| attempt.tries).sum::<u32>().max(1);
            if let Some(last) = tried.last() {
                model = format!("{}:{}", last.provider, last.model);
            }
            let (last, is_over) = match judge(result, &read)? {
                Verdict::Passed(value) => return Ok(Ok(Checked { value, model, attempts })),
                Verdict::Refused(why) => {
                    reasons.clone_from(&why);
                    (why, false)
                }
                Verdict::Transient(why) => (why, false),
                Verdict::Permanent(why) => (why, true),
            };
            if is_over || attempts >= allowed {
                return Ok(Err(GaveUp { model, attempts, errors: bounded(&last) }));
            }
        }
    }

    /// Returns the name of the model before the host reports it.
    fn name(&self) -> String {
        let RouteInfo { provider, model, .. } = self.route;
        match self.number {
            0 => format!("{provider}:{model}"),
            number => format!("fallback {number}"),
        }
    }
}

/// Judges the result of a request.
///
/// # Errors
///
/// `cancelled`, after which no request may be sent.
fn judge<T>(
    result: Result<Completion, Failure>,
    read: impl Fn(&Completion) -> Result<T, Vec<String>>,
) -> Result<Verdict<T>, Failure> {
    Ok(match result {
        Ok(completion) => read(&completion).map_or_else(Verdict::Refused, Verdict::Passed),
        Err(failure) if failure.code == code::CANCELLED => return Err(failure),
        Err(failure) if failure.refused_completion().is_some() => Verdict::Refused(lines(&failure)),
        Err(failure) if is_transient(&failure) => Verdict::Transient(lines(&failure)),
        Err(failure) => Verdict::Permanent(lines(&failure)),
    })
}

/// Returns the attempts that the host reports with a completion or a failure.
fn reported(result: &Result<Completion, Failure>) -> Vec<Attempt> {
    match result {
        Ok(completion) => completion.attempts(),
        Err(failure) => {
            let attempts = failure.details.as_ref().and_then(|details| details.get("attempts"));
            let attempts = attempts.map(Vec::<Attempt>::deserialize);
            attempts.and_then(Result::ok).unwrap_or_default()
        }
    }
}

/// Returns true if the same request can succeed now. If a provider demands a longer delay than the
/// host accepts, the next candidate follows.
fn is_transient(failure: &Failure) -> bool {
    let details = failure.details.as_ref();
    failure.retryable && details.is_none_or(|details| details["retry_after_ms"].is_null())
}

fn lines(failure: &Failure) -> Vec<String> {
    let lines = failure.message.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

impl GaveUp {
    fn sentence(&self) -> String {
        let Self { model, attempts, errors } = self;
        format!("`{model}` (attempts={attempts}): {}", errors.join("; "))
    }
}

fn all_failed(task: &Task, failed: &[GaveUp]) -> Failure {
    let sentences: Vec<String> = failed.iter().map(GaveUp::sentence).collect();
    let message = format!("no model could do task `{}`: {}", task.name, sentences.join(" | "));
    Failure::new(TASK_FAILED, message).with_details(json!({ "task": task.name, "models": failed }))
}
