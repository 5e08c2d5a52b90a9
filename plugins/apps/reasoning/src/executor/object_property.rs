//! Executor of object properties: the model chooses a target ontology and plans a query over its
//! fields.

use wattle_plugin::prelude::{Deserialize, Failure, JsonSchema, json};

use crate::catalog::Catalog;
use crate::executor::{Execution, NO_TARGET, ObjectPropertyExecutor, Order, catalog, checked};
use crate::ontology::{Ontology, reachable};
use crate::plan::{Wanted, normalize};
use crate::{model, state};

/// Instructions for the model.
pub(super) const PROMPT: &str = include_str!("../../prompts/plan_object_property.md");

const NAME: &str = "LLMObjectPropertyExecutor";

/// Executor that plans with the model.
pub(crate) struct LlmObjectPropertyExecutor;

/// A target ontology, and the plan for it.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct WantedThere {
    target_ontology_code: String,
    #[serde(flatten)]
    plan: Wanted,
}

impl ObjectPropertyExecutor for LlmObjectPropertyExecutor {
    fn execute(&self, order: &Order<'_>) -> Result<Execution, Failure> {
        let targets = targets(order)?;
        let operators = (order.services.operators)()?;
        let mut facts = order.facts(&operators)?;
        facts["targets"] = targets.iter().map(document).collect();
        let chosen = model::choose(
            "reasoning_target_plan",
            PROMPT,
            &facts,
            |wanted: WantedThere, attempt| {
                let target = target(&targets, &wanted.target_ontology_code)?;
                let catalog = Catalog::new(&target.attributes);
                Ok((target, checked(wanted.plan, &catalog, attempt)?))
            },
        )?;
        let (target, wanted) = chosen.ok_or_else(|| undecided(&targets))?;
        let plan = normalize(&wanted, &catalog(target)?, &operators)?;
        order.carry_out(NAME, target, plan)
    }
}

/// Returns the target that the model names by code or name. A single target needs no choice.
fn target<'a>(targets: &'a [Ontology], wanted: &str) -> Result<&'a Ontology, String> {
    let names = targets.iter().map(|target| (&*target.code, &*target.name));
    match (targets, state::meant(names, wanted)) {
        ([only], _) => Ok(only),
        (_, Some(at)) => Ok(&targets[at]),
        _ => Err(format!("target_ontology_code `{wanted}` 不在 targets 中")),
    }
}

/// Returns the failure of a relation with several targets of which the model chose none.
fn undecided(targets: &[Ontology]) -> Failure {
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    let message = "the model chose none of the ontologies that the relation leads to";
    Failure::new(NO_TARGET, message).with_details(json!({ "targets": names }))
}

/// Returns the target ontologies that the graph service knows.
fn targets(order: &Order<'_>) -> Result<Vec<Ontology>, Failure> {
    let codes = reachable(order.detail, &order.ontology.code);
    let mut targets = Vec::new();
    for code in &codes {
        targets.extend((order.services.ontology)(code)?);
    }
    if targets.is_empty() { Err(leads_nowhere(order)) } else { Ok(targets) }
}

fn document(target: &Ontology) -> wattle_plugin::prelude::Value {
    json!({ "code": target.code, "name": target.name, "description": target.description,
            "attributes": target.attributes })
}

fn leads_nowhere(order: &Order<'_>) -> Failure {
    let (property, ontology) = (&order.resource.code, &order.ontology.code);
    let message =
        format!("object property `{property}` leads to no other ontology from `{ontology}`");
    let details = json!({ "reason": message });
    Failure::invalid(message).with_details(details)
}
