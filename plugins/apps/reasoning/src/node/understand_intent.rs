//! `understand_intent`: what the question is about. A run starts here, so what an earlier run of
//! the same session left in the state ends here.

use wattle_plugin::prelude::{
    Context, Deserialize, Empty, Failure, JsonSchema, Outcome, Serialize, emit, json, node,
};

use crate::model;
use crate::node::clarify;
use crate::plan::Mode;
use crate::state::{Candidate, Clarification, Intent};

const UNDERSTAND_PROMPT: &str = "\
你是业务数据助手，负责理解用户的问题，为后续检索本体和数据字段做准备。只做理解，不回答问题。
输入是一个 JSON：query 为用户的问题，其中以 [clarification] 开头的行是用户后来的补充说明。
请输出：
- keywords：用于检索的关键词，按重要性排序，取自问题原文或其常用说法。
- business_elements：问题涉及的业务要素，例如业务对象、字段、指标、明确的取值。
- goal_actions：用户想做的事，例如查询、统计、排名、对比。
- intent_summary：用一句话概括用户的意图。
问题里没有可用的业务信息时，前三项留空数组。不要编造问题中没有的内容。";

const UNCLEAR: &str = "没有理解您的问题，请说明想了解的业务对象和内容，例如“查询某个客户的订单”。";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Input {
    query: String,
}

/// What was understood, and a clean table for the nodes that follow.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Update {
    intent: Intent,
    clarification: Option<Clarification>,
    candidate_attributes: Vec<Candidate>,
    candidate_ontologies: Vec<Candidate>,
    plan_state: Empty,
    current_ontology: Option<Empty>,
    selected_capability: Option<Empty>,
    selected_capability_detail: Option<Empty>,
    selected_object_property: Option<Empty>,
    selected_object_property_detail: Option<Empty>,
    selected_task: Option<Empty>,
    data_execution_mode: Option<Mode>,
    data_execution: Option<Empty>,
    model_output: Option<Empty>,
}

/// Reads keywords, business elements, actions and the intent out of the question.
#[node]
pub(crate) fn understand_intent(
    _context: &Context,
    input: Input,
) -> Result<Outcome<Update>, Failure> {
    let question = json!({ "query": input.query });
    let intent: Intent = model::decide("reasoning_intent", UNDERSTAND_PROMPT, &question)?;
    emit::custom("intent_parsed", serde_json::to_value(&intent)?)?;
    let is_empty = intent.keywords.is_empty() && intent.business_elements.is_empty();
    let clarification = is_empty.then(|| clarify("intent_unclear", UNCLEAR)).transpose()?;
    Ok(Outcome::new(fresh(intent, clarification)).overwrite("plan_state"))
}

fn fresh(intent: Intent, clarification: Option<Clarification>) -> Update {
    Update {
        intent,
        clarification,
        candidate_attributes: Vec::new(),
        candidate_ontologies: Vec::new(),
        plan_state: Empty {},
        current_ontology: None,
        selected_capability: None,
        selected_capability_detail: None,
        selected_object_property: None,
        selected_object_property_detail: None,
        selected_task: None,
        data_execution_mode: None,
        data_execution: None,
        model_output: None,
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::node::Decision;
    use wattle_plugin::prelude::{Completion, Context, Value, json};
    use wattle_plugin::testing::{FakeHost, run_node};

    use super::understand_intent;

    fn run(answer: Value) -> (Decision, FakeHost) {
        let host = FakeHost::new().llm(move |_| Ok(Completion::of_json(answer.clone())));
        let input = json!({"query": "各区域客户数量"});
        let decision = host.run(|| run_node::<understand_intent>(&Context::default(), &input));
        (decision.unwrap(), host)
    }

    #[test]
    fn missing_lists_are_empty() {
        let (decision, host) = run(json!({"keywords": ["客户"], "intent_summary": "统计客户"}));
        let intent = json!({"keywords": ["客户"], "business_elements": [], "goal_actions": [],
                            "intent_summary": "统计客户"});
        assert_eq!(decision.update("intent"), Some(&intent));
        assert_eq!(host.emitted(), [("intent_parsed".to_owned(), intent)]);
        assert_eq!(host.llm_requests().len(), 1);
    }

    #[test]
    fn what_an_earlier_run_left_is_cleared() {
        let (decision, _) = run(json!({"keywords": ["客户"]}));
        for channel in ["clarification", "model_output", "selected_task", "data_execution"] {
            assert_eq!(decision.update(channel), Some(&Value::Null), "{channel}");
        }
        let plan = decision.updates.iter().find(|update| update.channel == "plan_state").unwrap();
        assert!(plan.overwrite && plan.value == json!({}));
    }

    #[test]
    fn nothing_understood_is_asked_back() {
        let (decision, host) = run(json!({}));
        assert_eq!(decision.update("clarification").unwrap()["reason"], "intent_unclear");
        assert_eq!(host.emitted()[1].0, "clarification_asked");
    }
}
