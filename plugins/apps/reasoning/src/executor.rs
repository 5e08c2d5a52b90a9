//! Executors, which get the data of a chosen resource. An executor plans a query from the details
//! of the resource and executes it.

mod capability;
mod object_property;

use std::collections::BTreeMap;

use wattle_plugin::prelude::{Failure, Value, json};

pub(crate) use self::capability::LlmCapabilityExecutor;
pub(crate) use self::object_property::LlmObjectPropertyExecutor;
use crate::catalog::Catalog;
use crate::model::Attempt;
use crate::ontology::Ontology;
use crate::plan::{Mode, Operator, Operators, Plan, Unknown, Wanted, unknown_words};
use crate::state::{Brief, Intent};
use crate::{mcp, time};

/// Failure code of an ontology without fields to query.
pub(crate) const NO_FIELDS: &str = "no-fields";

/// Failure code of a relation with several target ontologies of which the model chose none.
pub(crate) const NO_TARGET: &str = "no-target";

/// Gets the data of a capability of an ontology.
pub(crate) trait CapabilityExecutor {
    /// Called once per task. Fails with the failure of the model or of the service, or with one
    /// that only the user can resolve: [`NO_FIELDS`], [`UNSUPPORTED`](crate::plan::UNSUPPORTED) or
    /// [`UNKNOWN_WORD`](crate::plan::UNKNOWN_WORD).
    fn execute(&self, order: &Order<'_>) -> Result<Execution, Failure>;
}

/// Gets the data of a target ontology of an object property.
pub(crate) trait ObjectPropertyExecutor {
    /// Called once per task. Fails like [`CapabilityExecutor::execute`]. Also fails with
    /// [`NO_TARGET`] if the model chose none of several targets, and with `invalid` if the property
    /// has no target.
    fn execute(&self, order: &Order<'_>) -> Result<Execution, Failure>;
}

/// A resource to execute, with what an executor needs for it.
pub(crate) struct Order<'a> {
    pub(crate) query: &'a str,
    pub(crate) intent: &'a Intent,
    /// Ontology of the resource.
    pub(crate) ontology: &'a Ontology,
    pub(crate) resource: &'a Brief,
    /// Details of the resource from the graph service.
    pub(crate) detail: &'a Value,
    pub(crate) services: Services,
}

/// The calls that an executor may make.
#[derive(Clone, Copy)]
pub(crate) struct Services {
    /// Returns the operators of conditions that the data service supports.
    pub(crate) operators: fn() -> Result<Operators, Failure>,
    /// Reads an ontology with its attributes.
    pub(crate) ontology: fn(&str) -> Result<Option<Ontology>, Failure>,
    /// Queries the data service.
    pub(crate) data: fn(Mode, Value) -> Result<Value, Failure>,
}

/// The calls of the MCP servers.
pub(crate) const SERVICES: Services =
    Services { operators: Operators::declared, ontology: read_ontology, data: mcp::data };

/// Result of an executor.
pub(crate) struct Execution {
    /// Name of the executor.
    pub(crate) executor: &'static str,
    pub(crate) mode: Mode,
    pub(crate) plan: Plan,
    /// Ontology of the data.
    pub(crate) ontology: Brief,
    pub(crate) class_id: String,
    /// Names of the fields for users.
    pub(crate) labels: BTreeMap<String, String>,
    /// Output of the data service.
    pub(crate) data: Value,
}

impl Order<'_> {
    /// Returns the facts that every plan needs.
    fn facts(&self, operators: &Operators) -> Result<Value, Failure> {
        Ok(json!({
            "query": self.query, "today": time::today()?, "intent": self.intent,
            "ontology": self.ontology.brief(), "resource": self.resource, "detail": self.detail,
            "operators": operators.names(),
        }))
    }

    /// Executes a plan on an ontology.
    fn carry_out(
        &self,
        executor: &'static str,
        ontology: &Ontology,
        plan: Plan,
    ) -> Result<Execution, Failure> {
        let class_id = ontology.class_id().to_owned();
        let data = (self.services.data)(plan.mode, plan.arguments(&class_id))?;
        let (mode, labels) = (plan.mode, Catalog::new(&ontology.attributes).labels());
        Ok(Execution { executor, mode, plan, ontology: ontology.brief(), class_id, labels, data })
    }
}

/// Returns the catalog of an ontology. Fails with [`NO_FIELDS`] if it has no attributes.
fn catalog(ontology: &Ontology) -> Result<Catalog<'_>, Failure> {
    let catalog = Catalog::new(&ontology.attributes);
    if catalog.is_empty() {
        let message = format!("ontology `{}` has no attributes to ask for", ontology.code);
        return Err(Failure::new(NO_FIELDS, message));
    }
    Ok(catalog)
}

/// Checks that a plan has a list of conditions, that their fields exist, and that each word of the
/// plan has a meaning. At the last attempt every plan is accepted: conditions on unknown fields are
/// then reported and not executed, and the user is asked about unknown words.
fn checked(wanted: Wanted, catalog: &Catalog<'_>, attempt: Attempt) -> Result<Wanted, String> {
    if attempt == Attempt::Last {
        return Ok(wanted);
    }
    let Some(filters) = &wanted.filters else {
        return Err("缺少 filters，没有条件时写空数组".to_owned());
    };
    let fields = filters.iter().map(|filter| filter.field.as_str());
    let fields: Vec<&str> = fields.filter(|field| catalog.field(field).is_none()).collect();
    let words = filters.iter().map(|filter| filter.op.as_str());
    let words: Vec<&str> = words.filter(|word| Operator::read(word).is_none()).collect();
    let mut wrong = Vec::new();
    if !fields.is_empty() {
        let fields = fields.join("、");
        wrong.push(format!("filters 中的 {fields} 不在 attributes 的 field_name 中"));
    }
    if !words.is_empty() {
        let (words, known) = (words.join("、"), Operator::all_names().join("、"));
        wrong.push(format!("filters 中的 op {words} 无法识别，请按原意改用 {known} 之一"));
    }
    wrong.extend(unknown_words(&wanted, catalog).iter().map(Unknown::correction));
    if wrong.is_empty() { Ok(wanted) } else { Err(wrong.join("；")) }
}

fn read_ontology(code: &str) -> Result<Option<Ontology>, Failure> {
    let found = mcp::items(mcp::ONTOLOGY_DETAILS, json!({ "ontologyCodes": [code] }))?;
    Ok(found.into_iter().find(|ontology: &Ontology| ontology.code == code))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::testing::assert_contains;

    use super::{capability, object_property};

    #[test]
    fn s1_47_s1_48_plan_prompts_require_explicit_values() {
        for prompt in [capability::PROMPT, object_property::PROMPT] {
            assert_contains(prompt, &["mode", "query", "group-analysis", "group_by", "metrics"]);
            assert_contains(
                prompt,
                &["page_size", "sort_field", "sort_order", "field_name", "operators"],
            );
            assert_contains(
                prompt,
                &["明确取值", "手机号", "必须写入 filters", "原样照抄", "不要遗漏"],
            );
            assert_contains(
                prompt,
                &["correction", "除了……以外", "不能写成 eq 或 in", "today", "上个月", "2024-12"],
            );
            for op in ["eq", "ne", "in", "not_in", "like", "gt", "gte", "lt", "lte"] {
                assert_contains(prompt, &[op]);
            }
        }
        assert_contains(object_property::PROMPT, &["target_ontology_code", "targets"]);
    }
}
