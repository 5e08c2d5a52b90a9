//! Executor of capabilities: the model plans a query over the fields of the ontology.

use wattle_plugin::prelude::{Failure, json};

use crate::executor::{CapabilityExecutor, Execution, Order, catalog, checked};
use crate::model;
use crate::plan::{Wanted, normalize};

/// Instructions for the model.
pub(super) const PROMPT: &str = include_str!("../../prompts/plan_capability.md");

const NAME: &str = "LLMCapabilityExecutor";

/// Executor that plans with the model.
pub(crate) struct LlmCapabilityExecutor;

impl CapabilityExecutor for LlmCapabilityExecutor {
    fn execute(&self, order: &Order<'_>) -> Result<Execution, Failure> {
        let catalog = catalog(order.ontology)?;
        let operators = (order.services.operators)()?;
        let mut facts = order.facts(&operators)?;
        facts["attributes"] = json!(catalog.document()?);
        let wanted = model::choose("reasoning_plan", PROMPT, &facts, |wanted: Wanted, attempt| {
            checked(wanted, &catalog, attempt)
        })?;
        let plan = normalize(&wanted.unwrap_or_default(), &catalog, &operators)?;
        order.carry_out(NAME, order.ontology, plan)
    }
}
