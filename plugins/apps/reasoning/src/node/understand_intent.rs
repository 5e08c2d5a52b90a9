//! `understand_intent`: extracts the intent of the question. Every run starts here, so this node
//! also clears what an earlier run of the session left in the state.

use wattle_plugin::prelude::{
    Context, Deserialize, Empty, Failure, JsonSchema, Outcome, Serialize, emit, json, node,
};

use crate::node::clarify;
use crate::plan::Mode;
use crate::state::{Candidate, Clarification, Intent};
use crate::{model, time};

/// Instructions for the model.
const PROMPT: &str = include_str!("../../prompts/understand_intent.md");

const UNCLEAR: &str = "没有理解您的问题，请说明想了解的业务对象和内容，例如“查询某个客户的订单”。";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Input {
    query: String,
}

/// The intent, and empty values for the channels of all later nodes.
#[derive(Debug, Default, Serialize, JsonSchema)]
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

/// Extracts keywords, business elements, actions and the intent from the question.
#[node]
pub(crate) fn understand_intent(
    _context: &Context,
    input: Input,
) -> Result<Outcome<Update>, Failure> {
    let question = json!({ "query": input.query, "today": time::today()? });
    let intent: Intent = model::decide("reasoning_intent", PROMPT, &question)?;
    emit::custom("intent_parsed", serde_json::to_value(&intent)?)?;
    let is_empty = intent.keywords.is_empty() && intent.business_elements.is_empty();
    let clarification = is_empty.then(|| clarify("intent_unclear", UNCLEAR)).transpose()?;
    let update = Update { intent, clarification, ..Update::default() };
    Ok(Outcome::new(update).overwrite("plan_state"))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::llm::Request;
    use wattle_plugin::node::Decision;
    use wattle_plugin::prelude::{Completion, Context, Value, json};
    use wattle_plugin::testing::{FakeHost, assert_contains, run_node};

    use super::{PROMPT, understand_intent};
    use crate::testing::host;

    fn run(answer: Value) -> (Decision, FakeHost) {
        let host = host().llm(move |_| Ok(Completion::of_json(answer.clone())));
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
        let asked: Vec<String> = host.llm_requests().iter().map(Request::text).collect();
        assert_eq!(asked.len(), 1);
        assert!(asked[0].contains(r#""date":"2025-01-15""#), "{asked:?}");
    }

    #[test]
    fn channels_of_an_earlier_run_are_cleared() {
        let (decision, _) = run(json!({"keywords": ["客户"]}));
        for channel in ["clarification", "model_output", "selected_task", "data_execution"] {
            assert_eq!(decision.update(channel), Some(&Value::Null), "{channel}");
        }
        let plan = decision.updates.iter().find(|update| update.channel == "plan_state").unwrap();
        assert!(plan.overwrite && plan.value == json!({}));
    }

    #[test]
    fn empty_intent_requests_a_clarification() {
        let (decision, host) = run(json!({}));
        assert_eq!(decision.update("clarification").unwrap()["reason"], "intent_unclear");
        assert_eq!(host.emitted()[1].0, "clarification_asked");
    }

    #[test]
    fn s1_21_intent_prompt_requests_four_fields_and_forbids_inventions() {
        assert_contains(
            PROMPT,
            &["keywords", "business_elements", "goal_actions", "intent_summary", "只做理解"],
        );
        assert_contains(PROMPT, &["[clarification]", "today", "原样照抄", "留空数组", "不要编造"]);
    }
}
