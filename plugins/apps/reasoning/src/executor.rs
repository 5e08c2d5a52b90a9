//! From a chosen resource to its data. What to execute is decided before; an executor plans how,
//! from the details of the resource, and does it.

mod capability;
mod object_property;

use std::collections::BTreeMap;

use wattle_plugin::prelude::{Failure, Value, json};

pub(crate) use self::capability::LlmCapabilityExecutor;
pub(crate) use self::object_property::LlmObjectPropertyExecutor;
use crate::catalog::Catalog;
use crate::model::Attempt;
use crate::ontology::Ontology;
use crate::plan::{Mode, Operators, Plan, Wanted};
use crate::state::{Brief, Intent};
use crate::{mcp, time};

/// Code of the failure of an ontology that has no fields to ask for.
pub(crate) const NO_FIELDS: &str = "no-fields";

/// Code of the failure of a relation that leads to several ontologies of which none was chosen.
pub(crate) const NO_TARGET: &str = "no-target";

/// Gets the data of a capability of an ontology.
pub(crate) trait CapabilityExecutor {
    /// Called once for a task. Fails with the model's or the service's failure, or with one that
    /// only the user can mend: [`NO_FIELDS`] or [`UNSUPPORTED`](crate::plan::UNSUPPORTED).
    fn execute(&self, order: &Order<'_>) -> Result<Execution, Failure>;
}

/// Gets the data that an object property leads to.
pub(crate) trait ObjectPropertyExecutor {
    /// Called once for a task. Fails as a capability does, and if the property leads nowhere.
    fn execute(&self, order: &Order<'_>) -> Result<Execution, Failure>;
}

/// What is to be executed.
pub(crate) struct Order<'a> {
    pub(crate) query: &'a str,
    pub(crate) intent: &'a Intent,
    /// The ontology that the resource belongs to.
    pub(crate) ontology: &'a Ontology,
    pub(crate) resource: &'a Brief,
    /// Everything about the resource.
    pub(crate) detail: &'a Value,
    pub(crate) services: Services,
}

/// The calls that an executor may make.
#[derive(Clone, Copy)]
pub(crate) struct Services {
    /// The conditions that the data service can express.
    pub(crate) operators: fn() -> Result<Operators, Failure>,
    /// Reads an ontology with its attributes.
    pub(crate) ontology: fn(&str) -> Result<Option<Ontology>, Failure>,
    /// Asks the data service.
    pub(crate) data: fn(Mode, Value) -> Result<Value, Failure>,
}

/// The calls as they are made for real.
pub(crate) const SERVICES: Services =
    Services { operators: Operators::declared, ontology: read_ontology, data: mcp::data };

/// What was done.
pub(crate) struct Execution {
    /// Which executor did it.
    pub(crate) executor: &'static str,
    pub(crate) mode: Mode,
    pub(crate) plan: Plan,
    /// Whose data it is.
    pub(crate) ontology: Brief,
    pub(crate) class_id: String,
    /// What people call the fields of the data.
    pub(crate) labels: BTreeMap<String, String>,
    /// What the data service answered.
    pub(crate) data: Value,
}

impl Order<'_> {
    /// What every plan is made from.
    fn facts(&self, operators: &Operators) -> Result<Value, Failure> {
        Ok(json!({
            "query": self.query, "today": time::today()?, "intent": self.intent,
            "ontology": self.ontology.brief(), "resource": self.resource, "detail": self.detail,
            "operators": operators.names(),
        }))
    }

    /// Carries a plan out on an ontology.
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

/// The fields of an ontology.
fn catalog(ontology: &Ontology) -> Result<Catalog<'_>, Failure> {
    let catalog = Catalog::new(&ontology.attributes);
    if catalog.is_empty() {
        let message = format!("ontology `{}` has no attributes to ask for", ontology.code);
        return Err(Failure::new(NO_FIELDS, message));
    }
    Ok(catalog)
}

/// A plan that says which conditions there are, on fields that exist. The last answer is taken as
/// it is: conditions that cannot be executed are reported.
fn on_fields(wanted: Wanted, catalog: &Catalog<'_>, attempt: Attempt) -> Result<Wanted, String> {
    if attempt == Attempt::Last {
        return Ok(wanted);
    }
    let Some(filters) = &wanted.filters else {
        return Err("缺少 filters，没有条件时写空数组".to_owned());
    };
    let is_unknown = |field: &&str| catalog.field(field).is_none();
    let fields = filters.iter().map(|filter| filter.field.as_str());
    let unknown: Vec<&str> = fields.filter(is_unknown).collect();
    if unknown.is_empty() {
        return Ok(wanted);
    }
    Err(format!("filters 中的 {} 不在 attributes 的 field_name 中", unknown.join("、")))
}

fn read_ontology(code: &str) -> Result<Option<Ontology>, Failure> {
    let found = mcp::items(mcp::ONTOLOGY_DETAILS, json!({ "ontologyCodes": [code] }))?;
    Ok(found.into_iter().find(|ontology: &Ontology| ontology.code == code))
}
