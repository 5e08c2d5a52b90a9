//! `finalize`: writes the summary and the structured result.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, Value, emit, json, llm, node, settings,
};

use crate::ontology::Ontology;
use crate::plan::Mode;
use crate::result::{LlmRoute, ModelOutput, Planning};
use crate::state::{Candidate, Intent, PlanState, SelectedTask};
use crate::{ROUTE, model, time};

/// Instructions for the model.
const PROMPT: &str = include_str!("../../prompts/finalize.md");

/// Maximum rows in the request for the summary, which bounds its cost.
const SUMMARIZED_ITEMS: usize = 20;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Input {
    query: String,
    intent: Intent,
    plan_state: PlanState,
    current_ontology: Ontology,
    #[serde(default)]
    candidate_attributes: Vec<Candidate>,
    selected_task: Option<SelectedTask>,
    data_execution_mode: Mode,
    data_execution: Value,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Update {
    model_output: Value,
}

#[derive(Deserialize, JsonSchema)]
struct Summary {
    summary: String,
}

/// Writes the summary and the structured result.
#[node]
pub(crate) fn finalize(_context: &Context, input: Input) -> Result<Update, Failure> {
    let Summary { summary } = model::summarize("reasoning_summary", PROMPT, &facts(&input)?)?;
    let route = llm::route(ROUTE)?;
    let completed = json!({ "summary": summary });
    let model_output = ModelOutput {
        summary,
        orchestration_framework: settings::require("orchestration_framework")?,
        llm_framework: settings::require("llm_framework")?,
        llm_route: LlmRoute {
            provider: route.provider,
            model: route.model,
            has_fallback: route.has_fallback,
        },
        planning: Planning { intent: input.intent, plan_state: input.plan_state },
        data_execution_mode: input.data_execution_mode,
        data_execution: input.data_execution,
        selected_ontology: input.current_ontology.brief(),
        selected_task: input.selected_task,
        candidate_attributes: input.candidate_attributes,
    };
    let model_output = serde_json::to_value(model_output)?;
    emit::custom("session_completed", completed)?;
    Ok(Update { model_output })
}

fn facts(input: &Input) -> Result<Value, Failure> {
    let data = &input.data_execution;
    let items: Vec<&Value> =
        data["items"].as_array().into_iter().flatten().take(SUMMARIZED_ITEMS).collect();
    Ok(json!({
        "query": input.query, "today": time::today()?, "intent": input.intent,
        "ontology": data["ontology"], "mode": input.data_execution_mode, "plan": data["plan"],
        "total": data["total"], "items": items,
    }))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::llm::RouteInfo;
    use wattle_plugin::prelude::{Completion, Context, Value, json};
    use wattle_plugin::testing::{assert_contains, run_node};

    use super::{PROMPT, finalize};
    use crate::testing::host;

    #[test]
    fn result_has_all_rows_and_the_prompt_the_first_ones() {
        let route = RouteInfo {
            provider: "deepseek".to_owned(),
            model: "deepseek-chat".to_owned(),
            has_fallback: true,
            ..RouteInfo::default()
        };
        let host = host()
            .llm(|_| Ok(Completion::of_json(json!({"summary": "共 30 行"}))))
            .route("reasoning", route)
            .setting("orchestration_framework", "langgraph")
            .setting("llm_framework", "langchain");
        let items: Vec<Value> = (0..30).map(|n| json!({ "row": format!("row-{n}") })).collect();
        let input = json!({"query": "查", "intent": {}, "plan_state": {"executor": "e"},
            "current_ontology": {"code": "order", "name": "订单"}, "data_execution_mode": "query",
            "data_execution": {"items": items, "total": 30}});
        let decision = host.run(|| run_node::<finalize>(&Context::default(), &input)).unwrap();
        let output = decision.update("model_output").unwrap();
        assert_eq!(output["summary"], "共 30 行");
        assert_eq!(
            output["llm_route"],
            json!({"provider": "deepseek", "model": "deepseek-chat", "has_fallback": true})
        );
        assert_eq!(output["orchestration_framework"], "langgraph");
        assert_eq!(output["data_execution"]["items"].as_array().map(Vec::len), Some(30));
        let asked = host.llm_requests()[0].text();
        assert!(asked.contains("row-19") && !asked.contains("row-20"), "{asked}");
    }

    #[test]
    fn s1_54_summary_prompt_permits_only_the_data() {
        assert_contains(
            PROMPT,
            &["summary", "不要编造数字", "没有查到", "plan.ignored", "items", "total"],
        );
    }
}
