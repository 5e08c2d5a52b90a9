//! The request for a run, and the assignment of answers to interrupts.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, RunId};
use wattle_graph::interrupt::named_answers;
use wattle_graph::principal::Principal;

use crate::caller_id::CallerId;
use crate::hostcall::runs::InterruptView;
use crate::ports::store::{
    QueueCondition, RunAnswers, RunRecord, RunSpec, StaleAnswers, ThreadRecord,
};

/// The request for a run, with the queue condition of the run. The run id and the principal of this
/// value take precedence over those of the request that starts the run.
#[derive(Default)]
pub(super) struct RunRequest {
    /// Id of the run. Default: a new UUID.
    pub(super) run: Option<RunId>,
    pub(super) queue_condition: QueueCondition,
    /// Record of the thread that the run creates.
    pub(super) new_thread: Option<Box<ThreadRecord>>,
    pub(super) created_ms: Option<i64>,
    pub(super) spec: Option<Box<RunSpec>>,
    /// The caller.
    pub(super) principal: Option<Principal>,
    /// What happens to stale answers; `None` if the specification of the run has no answers. If the
    /// specification has answers and none of them is for a pending interrupt, the run ends and
    /// leaves the thread unchanged, unless it [continues](super::unanswered::continues_unanswered)
    /// or also executes a command.
    pub(super) stale_answers: Option<StaleAnswers>,
    /// True if the specification of the run has an answer that names no interrupt. Such a run
    /// continues a thread that stopped at a breakpoint.
    pub(super) passes_breakpoint: bool,
}

impl RunRequest {
    /// Creates the request for a run that starts immediately.
    pub(super) fn immediate(run: Option<RunId>, principal: Option<Principal>) -> Self {
        Self { run, queue_condition: QueueCondition::Free, principal, ..Self::default() }
    }

    /// Creates the request from the record of a run. Once the run has started, the log has its
    /// input, so the record keeps only a specification without the input, and only if that has
    /// client data.
    pub(super) fn from_record(record: &RunRecord, queue_condition: QueueCondition) -> Self {
        let spec = record.spec.as_deref().filter(|spec| !spec.client.is_null());
        let spec = spec.map(|spec| Box::new(spec.without_input()));
        let created_ms = record.created_ms;
        let whole = record.spec.as_deref();
        let principal = whole.and_then(|spec| spec.principal.clone());
        let answers = whole.and_then(|spec| spec.kind.answers());
        let stale_answers = whole.filter(|_| answers.is_some()).map(|spec| spec.stale_answers);
        let passes_breakpoint = answers.is_some_and(names_no_interrupt);
        Self {
            run: Some(record.id.clone()),
            queue_condition,
            new_thread: None,
            created_ms,
            spec,
            principal,
            stale_answers,
            passes_breakpoint,
        }
    }

    /// Takes the [`QueueCondition`] of the run for the batch that starts it.
    pub(super) fn take_queue_condition(&mut self) -> QueueCondition {
        std::mem::take(&mut self.queue_condition)
    }

    /// Returns true if answers to interrupts that are not pending are ignored.
    pub(super) fn ignores_stale_answers(&self) -> bool {
        self.stale_answers == Some(StaleAnswers::Ignore)
    }

    /// Returns the caller for which the request is checked, on a thread of this app.
    pub(super) fn caller(&self, app: &AppName) -> CallerId {
        CallerId::of_run(self.principal.as_ref(), app)
    }
}

/// Returns true if the answers are a value that names no interrupt. The result matters only if no
/// interrupt is pending, so the form of its keys alone decides whether an object names interrupts.
fn names_no_interrupt(answers: &RunAnswers) -> bool {
    let RunAnswers::Matched(value) = answers else { return false };
    !is_empty_map(value) && named_answers(value, |_| false).is_none()
}

/// Returns true for an object without answers.
fn is_empty_map(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

/// Assigns a value to the interrupts that it answers. An object that [names
/// interrupts](named_answers) answers each of them, and an empty object answers none; any other
/// value answers the only pending interrupt. The result is empty if the value answers none of the
/// pending interrupts.
///
/// # Errors
///
/// `conflict` if the value names an interrupt that is not pending, and `invalid` for an empty
/// object, unless stale answers are ignored; `invalid` if several interrupts are pending and the
/// value does not name them. The details have the `reason` as LangGraph servers name it:
/// `not_pending`, `empty_map` or `ambiguous`.
pub fn answers_by_interrupt(
    open: &[InterruptView],
    value: &Value,
    stale: StaleAnswers,
) -> Result<BTreeMap<String, Value>, Failure> {
    let is_strict = stale == StaleAnswers::Reject;
    let is_open = |id: &str| open.iter().any(|question| question.id == id);
    if let Some(named) = named_answers(value, is_open) {
        return match named.stale.first() {
            Some(id) if is_strict => Err(not_pending(open, id)),
            _ => Ok(named.pending),
        };
    }
    if is_empty_map(value) {
        return if is_strict { Err(names_none(open)) } else { Ok(BTreeMap::new()) };
    }
    match open {
        [] => Ok(BTreeMap::new()),
        [only] => Ok([(only.id.clone(), value.clone())].into()),
        several => Err(ambiguous(several)),
    }
}

fn not_pending(open: &[InterruptView], id: &str) -> Failure {
    let text = format!(
        "interrupt `{id}` is not pending (not_pending): it has an answer, or this thread never \
         raised it; {}",
        pending(open)
    );
    refused(code::CONFLICT, text, "not_pending", open)
}

fn names_none(open: &[InterruptView]) -> Failure {
    let text = format!(
        "the answer names no interrupt (empty_map); answer with an object that maps interrupt ids \
         to answers; {}",
        pending(open)
    );
    refused(code::INVALID, text, "empty_map", open)
}

fn ambiguous(open: &[InterruptView]) -> Failure {
    let text = format!(
        "several interrupts are pending (ambiguous); answer with an object that maps interrupt ids \
         to answers; {}",
        pending(open)
    );
    refused(code::INVALID, text, "ambiguous", open)
}

/// Lists the pending interrupts for a message.
fn pending(open: &[InterruptView]) -> String {
    if open.is_empty() {
        return "no interrupt is pending".to_owned();
    }
    let ids: Vec<_> = open.iter().map(|question| format!("`{}`", question.id)).collect();
    format!("pending interrupts: {}", ids.join(", "))
}

fn refused(code: &str, text: String, reason: &str, open: &[InterruptView]) -> Failure {
    let ids: Vec<_> = open.iter().map(|question| question.id.as_str()).collect();
    Failure::new(code, text).with_details(json!({ "reason": reason, "pending_ids": ids }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::id::{Namespace, NodeName};

    use super::*;

    fn question(id: &str) -> InterruptView {
        InterruptView {
            id: id.into(),
            namespace: Namespace::root(),
            node: NodeName::new("ask").unwrap(),
            payload: Value::Null,
            response_schema: None,
            asked_ms: 0,
            expires_ms: None,
        }
    }

    /// Returns the answers, or the code and the reason of the failure.
    fn matched(
        open: &[InterruptView],
        value: &Value,
        stale: StaleAnswers,
    ) -> Result<Value, (String, Value)> {
        let matched = answers_by_interrupt(open, value, stale);
        matched.map(|it| json!(it)).map_err(|failure| {
            let reason = failure.details.as_ref().unwrap()["reason"].clone();
            (failure.code.clone(), reason)
        })
    }

    #[test]
    fn value_answers_the_only_interrupt_and_object_answers_each_named_interrupt() {
        let one = [question("a")];
        let two = [question("a"), question("b")];
        for stale in [StaleAnswers::Reject, StaleAnswers::Ignore] {
            let told = |open: &[InterruptView], value: Value| matched(open, &value, stale);
            let ambiguous = Err(("invalid".to_owned(), json!("ambiguous")));
            assert_eq!(told(&one, json!("yes")), Ok(json!({ "a": "yes" })));
            assert_eq!(told(&one, json!({ "x": 1 })), Ok(json!({ "a": { "x": 1 } })));
            assert_eq!(told(&two, json!({ "b": 1 })), Ok(json!({ "b": 1 })));
            assert_eq!(told(&two, json!({ "c": 2 })), ambiguous);
            assert_eq!(told(&two, json!("yes")), ambiguous);
            assert_eq!(told(&[], json!("yes")), Ok(json!({})), "there is nothing to answer");
        }
    }

    #[test]
    fn stale_answers_are_ignored_unless_they_are_rejected() {
        let (stale, open) = ("0123456789abcdef".repeat(2), "f".repeat(32));
        let one = [question(&open)];
        let both = json!({ &stale: "no", &open: "yes" });
        for (value, ignored, code, reason) in [
            (json!({ &stale: "no" }), json!({}), "conflict", "not_pending"),
            (both, json!({ &open: "yes" }), "conflict", "not_pending"),
            (json!({}), json!({}), "invalid", "empty_map"),
        ] {
            assert_eq!(matched(&one, &value, StaleAnswers::Ignore), Ok(ignored));
            let refused = Err((code.to_owned(), json!(reason)));
            assert_eq!(matched(&one, &value, StaleAnswers::Reject), refused);
        }
    }

    #[test]
    fn object_with_interrupt_ids_answers_no_other_interrupt() {
        let (stale, open) = ("0123456789abcdef".repeat(2), "f".repeat(32));
        let one = [question(&open)];
        let reject = StaleAnswers::Reject;
        let refused = |value: Value| answers_by_interrupt(&one, &value, reject).unwrap_err();
        for value in [
            json!({ &stale: "yes" }),
            json!({ &stale: "yes", &open: "yes" }),
            json!({ &open: "yes", "comment": "fine" }),
        ] {
            let failure = refused(value);
            assert_eq!(failure.code, "conflict");
            assert!(failure.message.contains("is not pending"), "{}", failure.message);
        }
        assert!(refused(json!({ &stale: "yes" })).message.contains(&stale));
        let itself = json!({ "decision": "yes", &stale: 1 });
        assert_eq!(
            answers_by_interrupt(&one, &itself, reject).unwrap()[&open],
            itself,
            "these keys are not ids"
        );
    }
}
