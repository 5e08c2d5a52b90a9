//! Attempts with the models of a route, until one returns a valid completion.

use serde::Serialize;
use wattle_plugin::llm::{self, Request, RouteInfo};
use wattle_plugin::prelude::{Completion, Failure, Value, code, json, log};

use crate::task::ask::told;
use crate::task::spec::Task;

/// Failure code of a model task ([`Task`]) for which no model of the route returned a valid
/// completion.
pub(crate) const TASK_FAILED: &str = "task-failed";

/// A completion that passed all checks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Structured<T> {
    pub(crate) value: T,
    /// Model of the completion, as `provider:model (attempts=n)`.
    pub(crate) model: String,
}

/// The failure of one model.
#[derive(Debug, Serialize)]
struct GaveUp {
    /// `provider:model`.
    model: String,
    /// Number of attempts.
    attempts: u32,
    /// Errors of the last attempt.
    errors: Vec<String>,
}

/// Calls the models one after the other. `ask` makes a request with the errors of the last
/// completion, and `read` returns the value of a completion or its errors.
pub(super) fn run<T>(
    task: Task,
    ask: impl Fn(&[String]) -> Result<Request, Failure>,
    read: impl Fn(&Completion) -> Result<T, Vec<String>>,
) -> Result<Structured<T>, Failure> {
    let route = llm::route(task.name).map_err(|failure| failure.context(task.name))?;
    let mut errors = Vec::new();
    let mut failed = Vec::new();
    for number in 0..route.candidates() {
        let candidate = Candidate { task, number, route: &route };
        match candidate.run(&mut errors, &ask, &read)? {
            Ok(answer) => return Ok(answer),
            Err(gave_up) => {
                log::warn!("task `{}`: {}", task.name, gave_up.sentence());
                failed.push(gave_up);
            }
        }
    }
    Err(all_failed(task, &failed))
}

/// One model of a route, for one task.
struct Candidate<'a> {
    task: Task,
    number: u32,
    route: &'a RouteInfo,
}

/// The result of a request.
enum Verdict<T> {
    /// A valid completion.
    Good(T),
    /// A completion with errors.
    Wrong(Vec<String>),
    /// No completion, but a retry may succeed.
    Away(Vec<String>),
    /// No completion, and a retry cannot succeed.
    Never(Vec<String>),
}

impl Candidate<'_> {
    /// Calls the model until a completion is valid or no attempt is left. The outer failure ends
    /// the task, the inner one only the turn of this model. `errors` are those of the last
    /// completion, of any model.
    fn run<T>(
        &self,
        errors: &mut Vec<String>,
        ask: impl Fn(&[String]) -> Result<Request, Failure>,
        read: impl Fn(&Completion) -> Result<T, Vec<String>>,
    ) -> Result<Result<Structured<T>, GaveUp>, Failure> {
        let allowed = self.task.retries + 1;
        let (mut attempts, mut model) = (0, self.name());
        loop {
            // The next prompt lists all errors, so the host does not repair the completion.
            let request = ask(errors)?.candidate(self.number).without_repair();
            let answer = request.retries(allowed - attempts - 1).complete();
            let reported = ReportedAttempts::of(&answer);
            attempts += reported.tries;
            model = reported.model.unwrap_or(model);
            let (last, is_over) = match judge(answer, &read)? {
                Verdict::Good(value) => {
                    let model = format!("{model} (attempts={attempts})");
                    return Ok(Ok(Structured { value, model }));
                }
                Verdict::Wrong(wrong) => {
                    errors.clone_from(&wrong);
                    (wrong, false)
                }
                Verdict::Away(why) => (why, false),
                Verdict::Never(why) => (why, true),
            };
            if is_over || attempts >= allowed {
                return Ok(Err(GaveUp { model, attempts, errors: told(&last) }));
            }
        }
    }

    /// Returns the name of the model before its first response.
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
/// Returns `cancelled`, after which no request may be sent.
fn judge<T>(
    answer: Result<Completion, Failure>,
    read: impl Fn(&Completion) -> Result<T, Vec<String>>,
) -> Result<Verdict<T>, Failure> {
    Ok(match answer {
        Ok(completion) => read(&completion).map_or_else(Verdict::Wrong, Verdict::Good),
        Err(failure) if failure.code == code::CANCELLED => return Err(failure),
        Err(failure) if is_wrong_shape(&failure) => Verdict::Wrong(lines(&failure)),
        Err(failure) if may_pass(&failure) => Verdict::Away(lines(&failure)),
        Err(failure) => Verdict::Never(lines(&failure)),
    })
}

/// The model and the number of tries, if the host reports them.
struct ReportedAttempts {
    model: Option<String>,
    tries: u32,
}

impl ReportedAttempts {
    fn of(answer: &Result<Completion, Failure>) -> Self {
        let attempts = match answer {
            Ok(completion) => completion.extra.get("attempts"),
            Err(failure) => failure.details.as_ref().and_then(|details| details.get("attempts")),
        };
        let attempts = attempts.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let tries = |attempt: &Value| attempt["tries"].as_u64().map_or(1, |tries| tries as u32);
        let tries: u32 = attempts.iter().map(tries).sum();
        let model = attempts.last().and_then(|attempt| {
            let (provider, model) = (attempt["provider"].as_str()?, attempt["model"].as_str()?);
            Some(format!("{provider}:{model}"))
        });
        Self { model, tries: tries.max(1) }
    }
}

/// Returns true if the completion violates the schema. The details of such a failure have the
/// completion.
fn is_wrong_shape(failure: &Failure) -> bool {
    failure.details.as_ref().is_some_and(|details| details["answer"].is_string())
}

/// Returns true if the same request may succeed now. If a provider demands a longer delay than the
/// host accepts, the next model follows.
fn may_pass(failure: &Failure) -> bool {
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

fn all_failed(task: Task, failed: &[GaveUp]) -> Failure {
    let sentences: Vec<String> = failed.iter().map(GaveUp::sentence).collect();
    let message = format!("no model could do task `{}`: {}", task.name, sentences.join(" | "));
    Failure::new(TASK_FAILED, message).with_details(json!({ "task": task.name, "models": failed }))
}
