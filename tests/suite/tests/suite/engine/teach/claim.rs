//! The result of a command of an example, and the comparison with the page.

use serde_json::{Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::id::NodeName;
use wattle_run::hostcall::runs::{EndedRun, RunOutcome};
use wattle_run::time_travel::StateView;
use wattle_suite::world::World;

use super::script::json_and_rest;

/// The result of a command.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The result in words.
    pub(super) what: String,
    /// The data after the words, by default the state.
    pub(super) data: Value,
    /// The state.
    pub(super) state: Value,
}

impl Seen {
    /// Creates a result without data.
    pub(super) fn said(what: impl Into<String>) -> Self {
        Self { what: what.into(), ..Self::default() }
    }

    /// Creates the result of a run.
    pub(super) fn of(result: Result<EndedRun, Failure>) -> Self {
        match result {
            Ok(ended) => Self::ended(ended),
            Err(failure) => Self::said(format!("refused {}", failure.code)),
        }
    }

    fn ended(ended: EndedRun) -> Self {
        let state = ended.state;
        let (what, data) = match ended.outcome {
            RunOutcome::Completed => ("completed".to_owned(), state.clone()),
            RunOutcome::Cancelled => ("cancelled".to_owned(), state.clone()),
            RunOutcome::Failed { failure } => (format!("failed {}", failure.code), state.clone()),
            RunOutcome::Interrupted { interrupts, next } if interrupts.is_empty() => {
                (stands(&next), state.clone())
            }
            RunOutcome::Interrupted { mut interrupts, .. } => {
                interrupts.sort_by(|one, other| one.node.cmp(&other.node));
                let asked = interrupts.iter().map(|question| question.payload.clone());
                ("asks".to_owned(), asked.collect())
            }
        };
        Self { what, data, state }
    }

    /// Creates the result of an edit.
    pub(super) fn edited(result: Result<StateView, Failure>) -> Self {
        match result {
            Ok(view) => {
                Self { what: stands(&view.next), data: view.values.clone(), state: view.values }
            }
            Err(failure) => Self::said(format!("refused {}", failure.code)),
        }
    }

    /// Creates the history of a thread: number, source and writers of each checkpoint.
    pub(super) fn history(views: &[StateView]) -> Self {
        let line = |view: &StateView| json!([view.checkpoint, view.source, view.writers]);
        let data = views.iter().rev().map(line).collect();
        Self { what: "history".to_owned(), data, state: Value::Null }
    }

    /// Checks a claim of the page. The error describes the actual result.
    pub(super) fn holds(&self, claim: &str, world: &World) -> Result<(), String> {
        let counted = |calls: usize| json!(calls);
        let (data, rest) = if let Some(rest) = claim.strip_prefix("state ") {
            (self.state.clone(), rest)
        } else if let Some(rest) = claim.strip_prefix("model calls ") {
            (counted(world.model.calls()), rest)
        } else if let Some(rest) = claim.strip_prefix("service calls ") {
            (counted(world.net.calls()), rest)
        } else if let Some(rest) = claim.strip_prefix(self.what.as_str()) {
            (self.data.clone(), rest)
        } else {
            return Err(format!("`{claim}`, but: {} {}", self.what, self.data));
        };
        match (rest.trim(), json_and_rest(rest)) {
            ("", _) => Ok(()),
            (_, Some((claimed, ""))) if claimed == data => Ok(()),
            _ => Err(format!("`{claim}`, but: {} {data}", self.what)),
        }
    }
}

fn stands(next: &[NodeName]) -> String {
    let names: Vec<&str> = next.iter().map(NodeName::as_str).collect();
    format!("stands before {}", names.join(" and "))
}
