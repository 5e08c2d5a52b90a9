//! Compares the end of a run with the expectations of its case.

use serde::Serialize;
use serde_json::{Value, json};
use wattle_api::document::run::{FailureDocument, RunDocument};
use wattle_run::text::Escaped;

use crate::cases::case::{Case, Expectation};
use crate::cases::date::Today;

/// The result of a case.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    /// True if all expectations are met.
    pub(crate) passed: bool,
    /// Status of the run; `refused` if the graph rejects the input.
    pub(crate) status: String,
    /// Failure of a failed run.
    pub(crate) failure: Option<FailureDocument>,
    /// Result of each expectation.
    pub(crate) checks: Vec<Check>,
}

/// The result of an expectation.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) pointer: String,
    #[serde(skip)]
    pub(crate) field: String,
    pub(crate) passed: bool,
    /// Expected and actual value of a failed expectation.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) mismatch: Option<Mismatch>,
}

/// The expected value and the actual value.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Mismatch {
    pub(crate) expected: Value,
    pub(crate) got: Value,
}

impl Verdict {
    /// Compares the end of a run.
    pub(crate) fn from_run(case: &Case, run: &RunDocument, today: &Today) -> Self {
        Self::compare(case, &pointer_root(run), run.failure.clone(), today)
    }

    /// Compares the failure of an input that the graph rejects.
    pub(crate) fn from_rejection(case: &Case, failure: FailureDocument, today: &Today) -> Self {
        let document = json!({ "status": "refused", "failure": failure });
        Self::compare(case, &document, Some(failure), today)
    }

    fn compare(
        case: &Case,
        document: &Value,
        failure: Option<FailureDocument>,
        today: &Today,
    ) -> Self {
        let checks: Vec<Check> =
            case.expect.iter().map(|it| check_expectation(it, document, today)).collect();
        let status = document["status"].as_str().unwrap_or_default().to_owned();
        let expects_status = checks.iter().any(|check| check.pointer == "/status");
        let ended = expects_status || ["completed", "interrupted"].contains(&status.as_str());
        let passed = ended && checks.iter().all(|check| check.passed);
        Self { passed, status, failure, checks }
    }
}

/// Maximum number of characters that are shown of a value for a failed expectation.
const MAX_SHOWN_CHARS: usize = 160;

/// Describes why a case failed: the failure of its run, and the expectations that are not met.
pub(crate) fn describe_failure(failure: Option<&FailureDocument>, checks: &[Check]) -> Vec<String> {
    let failure = failure.map(|failure| {
        format!("  {}", Escaped(format_args!("{}: {}", failure.code, failure.message)))
    });
    let mismatch = |check: &Check| {
        let mismatch = check.mismatch.as_ref()?;
        Some(format!(
            "  {}\n    expected  {}\n    got       {}",
            check.pointer,
            to_single_line(&mismatch.expected),
            to_single_line(&mismatch.got)
        ))
    };
    failure.into_iter().chain(checks.iter().filter_map(mismatch)).collect()
}

fn to_single_line(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Returns the JSON object from which pointers select.
fn pointer_root(run: &RunDocument) -> Value {
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

fn check_expectation(expectation: &Expectation, document: &Value, today: &Today) -> Check {
    let Expectation { pointer, matcher, source } = expectation;
    let selected = pointer.select(document);
    let passed = matcher.matches_selected(&selected, today);
    let mismatch = || Mismatch { expected: source.clone(), got: selected.to_value() };
    Check {
        pointer: pointer.text().to_owned(),
        field: pointer.field(),
        passed,
        mismatch: (!passed).then(mismatch),
    }
}
