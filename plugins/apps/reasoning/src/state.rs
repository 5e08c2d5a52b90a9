//! The types of the state channels.

use wattle_plugin::prelude::{Context, Deserialize, JsonSchema, Serialize};

/// For what a run works. A run that was started past the app's endpoints has none.
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
    /// The turn of a run; thread and run stand in for a session and turn that are not there.
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

/// Something that fits the question, and how well.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Candidate {
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) score: f64,
}

/// As much of a thing as is needed to choose it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Brief {
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) description: String,
}

/// Which of some things a model means that answers with `word`: the one with that code, or else the
/// only one that is called so. Things are given as code and name.
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

/// A question back to the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Clarification {
    /// A word for programs, such as `no_attribute_match`.
    pub(crate) reason: String,
    /// What the user reads.
    pub(crate) question: String,
}

/// What kind of thing is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    ExecuteCapability,
    ExecuteObjectProperty,
}

/// What was decided to execute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ExecutionDecision {
    pub(crate) action: Action,
    pub(crate) code: String,
    pub(crate) reason: String,
}

/// What was decided so far; nodes add to it.
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
    /// Which executor did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) executor: Option<String>,
}

/// A task as results show it.
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
    fn a_thing_is_meant_by_its_code_or_by_a_name_of_its_own() {
        let things = [("order", "订单"), ("customer", "客户"), ("vip", "客户")];
        let check = |word: &str| meant(things.into_iter(), word);
        assert_eq!((check("order"), check(" ORDER "), check("订单")), (Some(0), Some(0), Some(0)));
        assert_eq!((check("客户"), check("ship"), check("")), (None, None, None));
    }
}
