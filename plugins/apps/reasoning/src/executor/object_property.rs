//! An object property: the model chooses among the ontologies at its other end and plans over the
//! fields of the chosen one.

use wattle_plugin::prelude::{Deserialize, Failure, JsonSchema, json};

use crate::executor::{Execution, ObjectPropertyExecutor, Order, catalog};
use crate::model;
use crate::ontology::{Ontology, reachable};
use crate::plan::{Wanted, normalize};

const NAME: &str = "LLMObjectPropertyExecutor";

const PLAN_PROMPT: &str = "\
你是数据执行规划器。用户的问题需要沿一个关系到达目标本体取数。请从 targets 中选择目标本体，并基于它的字段生成数据执行计划：
- target_ontology_code：targets 中的一个 code。
- mode：查询明细用 query，分组统计用 group-analysis。
- filters：过滤条件，每条为 field、op（eq、like、in）、value。用户给出的明确取值（手机号、编号、姓名、状态等）必须写入 filters。
- group_by、metrics：分组字段和指标（agg 为 count、sum、avg、min、max，除 count 外要写 field），只用于 group-analysis。
- page、page_size、sort_field、sort_order：分页和排序，不需要时留空。
输入是一个 JSON：query、intent、ontology、resource、detail 和 targets（code、name、attributes）。
字段只能使用所选目标本体 attributes 中的 field_name。";

/// Plans with the model.
pub(crate) struct LlmObjectPropertyExecutor;

/// What the model answers: where to, and the plan there.
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
        let mut facts = order.facts();
        facts["targets"] = targets.iter().map(document).collect();
        let wanted: WantedThere = model::decide("reasoning_target_plan", PLAN_PROMPT, &facts)?;
        let chosen = targets.iter().find(|target| target.code == wanted.target_ontology_code);
        let target = chosen.or(targets.first()).ok_or_else(|| leads_nowhere(order))?;
        let plan = normalize(&wanted.plan, &catalog(target)?, order.query);
        order.carry_out(NAME, target, plan)
    }
}

/// The ontologies at the other end, as far as the graph service knows them.
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
