//! A capability: the model plans over the fields of its ontology.

use wattle_plugin::prelude::{Failure, json};

use crate::executor::{CapabilityExecutor, Execution, Order, catalog};
use crate::model;
use crate::plan::{Wanted, normalize};

const NAME: &str = "LLMCapabilityExecutor";

const PLAN_PROMPT: &str = "\
你是数据执行规划器。根据能力的详情和本体的字段目录，为用户的问题生成数据执行计划：
- mode：查询明细用 query，分组统计用 group-analysis。
- filters：过滤条件，每条为 field、op（eq、like、in）、value。用户给出的明确取值（手机号、编号、地区、状态等）必须写入 filters。
- group_by、metrics：分组字段和指标（agg 为 count、sum、avg、min、max，除 count 外要写 field），只用于 group-analysis。
- page、page_size、sort_field、sort_order：分页和排序，不需要时留空。
输入是一个 JSON：query、intent、ontology、resource、detail 和 attributes（code、name、field_name）。
字段只能使用 attributes 中的 field_name。";

/// Plans with the model.
pub(crate) struct LlmCapabilityExecutor;

impl CapabilityExecutor for LlmCapabilityExecutor {
    fn execute(&self, order: &Order<'_>) -> Result<Execution, Failure> {
        let catalog = catalog(order.ontology)?;
        let mut facts = order.facts();
        facts["attributes"] = json!(catalog.document()?);
        let wanted: Wanted = model::decide("reasoning_plan", PLAN_PROMPT, &facts)?;
        let plan = normalize(&wanted, &catalog, order.query);
        order.carry_out(NAME, order.ontology, plan)
    }
}
