//! What was asked for when a run begins, and which questions an answer answers.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::RunId;
use wattle_graph::interrupt::named_answers;
use wattle_graph::principal::Principal;

use crate::hostcall::runs::OpenQuestion;
use crate::ports::store::{RunRecord, RunSpec, Turn};

/// What was asked for when a run begins, and whether it is its turn. It holds in place of the run and
/// the principal of the request that begins the run.
#[derive(Default)]
pub(super) struct Asked {
    /// The id of the run; a fresh one without it.
    pub(super) run: Option<RunId>,
    pub(super) turn: Turn,
    pub(super) created_ms: Option<i64>,
    pub(super) spec: Option<Box<RunSpec>>,
    /// Who asks.
    pub(super) principal: Option<Principal>,
}

impl Asked {
    /// A run that is asked for now and begins at once.
    pub(super) fn now(run: Option<RunId>, principal: Option<Principal>) -> Self {
        Self { run, turn: Turn::Free, principal, ..Self::default() }
    }

    /// What the run takes is in its first event from then on, so its record keeps only what its client
    /// asks for later, if there is any.
    pub(super) fn of(record: &RunRecord, turn: Turn) -> Self {
        let spec = record.spec.as_deref().filter(|spec| !spec.client.is_null());
        let spec = spec.map(|spec| Box::new(spec.emptied()));
        let created_ms = record.created_ms;
        let principal = record.spec.as_ref().and_then(|spec| spec.principal.clone());
        Self { run: Some(record.id.clone()), turn, created_ms, spec, principal }
    }
}

/// Which questions a value answers: an object that [names questions](named_answers) answers each of
/// these; any other value answers the only open question.
///
/// # Errors
///
/// `conflict` if a question that the value names is not open, or if none is; `invalid` if several are
/// and the value does not name them.
pub fn matched(open: &[OpenQuestion], value: &Value) -> Result<BTreeMap<String, Value>, Failure> {
    let is_open = |id: &str| open.iter().any(|question| question.id == id);
    let named = named_answers(value, is_open)
        .map_err(|error| Failure::new(code::CONFLICT, error.to_string()))?;
    if let Some(answers) = named {
        return Ok(answers);
    }
    match open {
        [only] => Ok([(only.id.clone(), value.clone())].into()),
        [] => {
            let text = "the answer is for a question, and none is open on this thread";
            Err(Failure::new(code::CONFLICT, text))
        }
        several => {
            let ids: Vec<_> = several.iter().map(|question| format!("`{}`", question.id)).collect();
            let text = format!(
                "several questions are open; answer with an object from interrupt ids to answers, \
                 of {}",
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

    fn question(id: &str) -> OpenQuestion {
        OpenQuestion {
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
    fn a_value_answers_the_only_question_and_a_map_each_that_it_names() {
        let one = [question("a")];
        let two = [question("a"), question("b")];
        let told = |open: &[OpenQuestion], value: Value| {
            matched(open, &value).map(|it| json!(it)).map_err(|failure| failure.code.clone())
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
    fn a_map_never_answers_a_question_that_it_does_not_name() {
        let (stale, open) = ("0123456789abcdef".repeat(2), "f".repeat(32));
        let one = [question(&open)];
        let refused = |value: Value| matched(&one, &value).unwrap_err();
        for value in [
            json!({ &stale: "yes" }),
            json!({ &stale: "yes", &open: "yes" }),
            json!({ &open: "yes", "comment": "fine" }),
        ] {
            let failure = refused(value);
            assert_eq!(failure.code, "conflict");
            assert!(failure.message.contains("is not open"), "{}", failure.message);
        }
        assert!(refused(json!({ &stale: "yes" })).message.contains(&stale));
        let itself = json!({ "decision": "yes", &stale: 1 });
        assert_eq!(matched(&one, &itself).unwrap()[&open], itself, "these keys are no ids");
    }
}
