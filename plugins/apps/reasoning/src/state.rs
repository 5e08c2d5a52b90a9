//! Types of the state channels.

use wattle_plugin::prelude::{Context, Deserialize, JsonSchema, Serialize};

/// Session and turn of a run. A run that was not started by the app's endpoints has none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Turn {
    pub(crate) session_id: String,
    pub(crate) turn_id: String,
    pub(crate) turn_no: i64,
    /// Ontologies that the caller prefers, from the metadata of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) preferred_ontology_codes: Vec<String>,
}

impl Turn {
    /// Returns the turn of a run. Without a turn, the ids of thread and run serve as those of
    /// session and turn.
    pub(crate) fn of(turn: Option<Turn>, context: &Context) -> Self {
        turn.unwrap_or_else(|| Self {
            session_id: context.thread_id.clone(),
            turn_id: context.run_id.clone(),
            ..Self::default()
        })
    }
}

/// What the question is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Intent {
    /// Words to search with.
    pub(crate) keywords: Vec<String>,
    /// Things of the business: objects, fields, values.
    pub(crate) business_elements: Vec<String>,
    /// What the user wants done.
    pub(crate) goal_actions: Vec<String>,
    /// The intent in one sentence.
    pub(crate) intent_summary: String,
}

/// An attribute or ontology that matches the question, with its score.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Candidate {
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) score: f64,
}

/// Code, name and description, from which a thing is chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Brief {
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) description: String,
}

/// Returns the index of the thing that a model names with `word`: the thing with this code,
/// otherwise the only thing with this code in any case or with this name. `things` are pairs of
/// code and name.
pub(crate) fn meant<'a>(
    things: impl Iterator<Item = (&'a str, &'a str)>,
    word: &str,
) -> Option<usize> {
    let things: Vec<(&str, &str)> = things.collect();
    let word = word.trim();
    if let Some(at) = things.iter().position(|(code, _)| *code == word) {
        return Some(at);
    }
    let is_called = |(_, (code, name)): &(usize, &(&str, &str))| {
        !word.is_empty() && (code.eq_ignore_ascii_case(word) || name.trim() == word)
    };
    let mut called = things.iter().enumerate().filter(is_called);
    match (called.next(), called.next()) {
        (Some((at, _)), None) => Some(at),
        _ => None,
    }
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Clarification {
    /// Reason for programs, such as `no_attribute_match`.
    pub(crate) reason: String,
    /// Text for the user.
    pub(crate) question: String,
}

/// What kind of thing is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    ExecuteCapability,
    ExecuteObjectProperty,
}

/// The chosen resource, and what to do with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ExecutionDecision {
    pub(crate) action: Action,
    pub(crate) code: String,
    pub(crate) reason: String,
}

/// Decisions of the nodes so far. Each node adds to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct PlanState {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) input_ontology_codes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) target_ontology_codes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) selection_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) execution_decision: Option<ExecutionDecision>,
    /// Name of the executor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) executor: Option<String>,
}

/// A task as a result shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SelectedTask {
    pub(crate) task_id: String,
    /// `capability` or `object_property`.
    pub(crate) task_type: String,
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) status: String,
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn things_are_named_by_code_or_unique_name() {
        let things = [("order", "订单"), ("customer", "客户"), ("vip", "客户")];
        let check = |word: &str| meant(things.into_iter(), word);
        assert_eq!((check("order"), check(" ORDER "), check("订单")), (Some(0), Some(0), Some(0)));
        assert_eq!((check("客户"), check("ship"), check("")), (None, None, None));
    }
}
