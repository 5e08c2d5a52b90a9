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
