//! The result of a turn, which `execute` and `finalize` make.

use std::collections::BTreeMap;

use wattle_plugin::prelude::{JsonSchema, Serialize, Value};

use crate::plan::{Mode, Plan};
use crate::state::{Brief, Candidate, Intent, PlanState, SelectedTask};

/// The result of a turn.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ModelOutput {
    pub(crate) summary: String,
    pub(crate) orchestration_framework: String,
    pub(crate) llm_framework: String,
    pub(crate) llm_route: LlmRoute,
    pub(crate) planning: Planning,
    pub(crate) data_execution_mode: Mode,
    #[schemars(with = "DataExecution")]
    pub(crate) data_execution: Value,
    pub(crate) selected_ontology: Brief,
    pub(crate) selected_task: Option<SelectedTask>,
    pub(crate) candidate_attributes: Vec<Candidate>,
}

/// The model route of the turn.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LlmRoute {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) has_fallback: bool,
}

/// The decisions that led to the data.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Planning {
    pub(crate) intent: Intent,
    pub(crate) plan_state: PlanState,
}

/// The data of a result, with the plan that got it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DataExecution {
    pub(crate) mode: Mode,
    /// Tool of the data service.
    pub(crate) method: String,
    pub(crate) ontology: Brief,
    pub(crate) class_id: String,
    pub(crate) plan: Plan,
    /// Names of the fields for users.
    pub(crate) labels: BTreeMap<String, String>,
    /// Number of all rows, as the data service returns it.
    #[schemars(with = "Option<u64>")]
    pub(crate) total: Option<Value>,
    /// Rows, as the data service returns them.
    #[schemars(with = "Option<Vec<BTreeMap<String, Value>>>")]
    pub(crate) items: Option<Value>,
}
