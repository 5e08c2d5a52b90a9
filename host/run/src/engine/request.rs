//! The request for a run, and the assignment of answers to interrupts.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::RunId;
use wattle_graph::interrupt::named_answers;
use wattle_graph::principal::Principal;

use crate::hostcall::runs::InterruptView;
use crate::ports::store::{QueueCondition, RunRecord, RunSpec};

/// The request for a run, with its turn in the queue. Its run id and principal take precedence over
/// those of the request that starts the run.
#[derive(Default)]
pub(super) struct RunRequest {
    /// Id of the run. Default: a new UUID.
    pub(super) run: Option<RunId>,
    pub(super) queue_condition: QueueCondition,
    pub(super) created_ms: Option<i64>,
    pub(super) spec: Option<Box<RunSpec>>,
    /// The caller.
    pub(super) principal: Option<Principal>,
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
        let principal = record.spec.as_ref().and_then(|spec| spec.principal.clone());
        Self { run: Some(record.id.clone()), queue_condition, created_ms, spec, principal }
    }
}

/// Assigns a value to the interrupts that it answers. An object that [names
/// interrupts](named_answers) answers each of them; any other value answers the only pending
/// interrupt.
///
/// # Errors
///
/// `conflict` if the value names an interrupt that is not pending, or if no interrupt is pending;
/// `invalid` if several interrupts are pending and the value does not name them.
pub fn answers_by_interrupt(
    open: &[InterruptView],
    value: &Value,
) -> Result<BTreeMap<String, Value>, Failure> {
    let is_open = |id: &str| open.iter().any(|question| question.id == id);
    let named = named_answers(value, is_open)
        .map_err(|error| Failure::new(code::CONFLICT, error.to_string()))?;
    if let Some(answers) = named {
        return Ok(answers);
    }
    match open {
        [only] => Ok([(only.id.clone(), value.clone())].into()),
        [] => {
            let text = "the thread has no pending interrupt to answer";
            Err(Failure::new(code::CONFLICT, text))
        }
        several => {
            let ids: Vec<_> = several.iter().map(|question| format!("`{}`", question.id)).collect();
            let text = format!(
                "several interrupts are pending; answer with an object that maps interrupt ids to \
                 answers: {}",
                ids.join(", ")
            );
            Err(Failure::new(code::INVALID, text))
        }
    }
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

    #[test]
    fn value_answers_the_only_interrupt_and_object_each_interrupt_that_it_names() {
        let one = [question("a")];
        let two = [question("a"), question("b")];
        let told = |open: &[InterruptView], value: Value| {
            answers_by_interrupt(open, &value)
                .map(|it| json!(it))
                .map_err(|failure| failure.code.clone())
        };
        assert_eq!(told(&one, json!("yes")), Ok(json!({ "a": "yes" })));
        assert_eq!(told(&one, json!({ "x": 1 })), Ok(json!({ "a": { "x": 1 } })));
        assert_eq!(told(&one, json!({})), Ok(json!({ "a": {} })));
        assert_eq!(told(&two, json!({ "b": 1 })), Ok(json!({ "b": 1 })));
        assert_eq!(told(&two, json!({ "c": 2 })), Err("invalid".into()));
        assert_eq!(told(&two, json!("yes")), Err("invalid".into()));
        assert_eq!(told(&[], json!("yes")), Err("conflict".into()));
    }

    #[test]
    fn object_with_interrupt_ids_answers_no_other_interrupt() {
        let (stale, open) = ("0123456789abcdef".repeat(2), "f".repeat(32));
        let one = [question(&open)];
        let refused = |value: Value| answers_by_interrupt(&one, &value).unwrap_err();
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
            answers_by_interrupt(&one, &itself).unwrap()[&open],
            itself,
            "these keys are not ids"
        );
    }
}
