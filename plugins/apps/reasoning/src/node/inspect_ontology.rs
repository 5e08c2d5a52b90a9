//! `inspect_ontology`: chooses what to execute on an anchor. The model sees only names and
//! descriptions. The details of the chosen resource are loaded afterwards, only for the execution.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, Value, emit, json, node,
};

use crate::node::clarify;
use crate::ontology::Ontology;
use crate::state::{self, Action, Brief, Clarification, ExecutionDecision, Intent, PlanState};
use crate::{mcp, model};

/// Instructions for the model.
const PROMPT: &str = include_str!("../../prompts/inspect_ontology.md");

const NOTHING_TO_EXECUTE: &str =
    "找到了相关的业务对象，但它没有可执行的能力或关系，请换一种问法或补充业务对象。";

/// Maximum resources in the question to the user.
const OFFERED: usize = 8;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Input {
    query: String,
    intent: Intent,
    plan_state: PlanState,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Update {
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_state: Option<PlanState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_ontology: Option<Ontology>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selected_capability: Option<Brief>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selected_capability_detail: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selected_object_property: Option<Brief>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selected_object_property_detail: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clarification: Option<Clarification>,
}

/// What the model chooses.
#[derive(Deserialize, JsonSchema)]
struct Choice {
    action: Action,
    #[serde(default)]
    capability_code: Option<String>,
    #[serde(default)]
    object_property_code: Option<String>,
    #[serde(default)]
    reason: String,
}

/// Chooses a capability or an object property of the first anchor that has any.
#[node]
pub(crate) fn inspect_ontology(_context: &Context, input: Input) -> Result<Update, Failure> {
    let Some(ontology) = first_executable(&input.plan_state.input_ontology_codes)? else {
        let clarification = Some(clarify("no_executable_resource", NOTHING_TO_EXECUTE)?);
        return Ok(Update { clarification, ..Update::default() });
    };
    let facts = facts(&input, &ontology);
    let chosen = model::choose("reasoning_inspect", PROMPT, &facts, |choice: Choice, _| {
        let (action, resource) = settle(&choice, &ontology)?;
        Ok((action, resource, choice.reason))
    })?;
    let Some((action, resource, reason)) = chosen else {
        let clarification = Some(clarify("execution_target_missing", &question(&ontology))?);
        return Ok(Update { clarification, ..Update::default() });
    };
    let decision = ExecutionDecision { action, code: resource.code.clone(), reason };
    let detail = detail(action, &resource.code)?;
    emit::custom(
        "task_planned",
        json!({ "ontology": ontology.brief(), "execution_decision": decision }),
    )?;
    Ok(update(ontology, decision, resource, detail))
}

fn first_executable(anchors: &[String]) -> Result<Option<Ontology>, Failure> {
    for code in anchors {
        let arguments = json!({ "ontologyCodes": [code] });
        let found: Vec<Ontology> = mcp::items(mcp::ONTOLOGY_DETAILS, arguments)?;
        if let Some(ontology) = found.into_iter().find(Ontology::is_executable) {
            return Ok(Some(ontology));
        }
    }
    Ok(None)
}

/// Returns the facts for the choice, which have no details of resources.
fn facts(input: &Input, ontology: &Ontology) -> Value {
    json!({
        "query": input.query,
        "intent": input.intent,
        "target_ontology_codes": input.plan_state.target_ontology_codes,
        "ontology": ontology.brief(),
        "capabilities": ontology.capabilities,
        "object_properties": ontology.object_properties,
    })
}

/// Returns the resource that the model named by code or name, and the action for its kind. Models
/// also write the code of a capability into `object_property_code` and the reverse, so both kinds
/// are searched. The model's action decides only if a resource of each kind has the name.
fn settle(choice: &Choice, ontology: &Ontology) -> Result<(Action, Brief), String> {
    let (given, other) = match choice.action {
        Action::ExecuteCapability => (&choice.capability_code, &choice.object_property_code),
        Action::ExecuteObjectProperty => (&choice.object_property_code, &choice.capability_code),
    };
    let word = given.as_deref().filter(|word| !word.trim().is_empty()).or(other.as_deref());
    let word = word.unwrap_or_default();
    let kinds = [
        (Action::ExecuteCapability, &ontology.capabilities),
        (Action::ExecuteObjectProperty, &ontology.object_properties),
    ];
    let mut found = kinds.into_iter().filter_map(|(action, list)| {
        let names = list.iter().map(|known| (&*known.code, &*known.name));
        Some((action, list[state::meant(names, word)?].clone()))
    });
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(one), Some(two)) => Ok(if one.0 == choice.action { one } else { two }),
        _ => Err(format!("`{word}` 不在 capabilities 或 object_properties 中")),
    }
}

/// Returns the question to the user, with the resources to choose from.
fn question(ontology: &Ontology) -> String {
    let all = ontology.capabilities.iter().chain(&ontology.object_properties);
    let names: Vec<&str> = all.take(OFFERED).map(|known| &*known.name).collect();
    format!(
        "无法确定要对“{}”做什么。可以：{}。请说明您需要哪一种。",
        ontology.name,
        names.join("、")
    )
}

/// Loads the details of a resource. Returns an empty object if the service does not know it.
fn detail(action: Action, code: &str) -> Result<Value, Failure> {
    let (tool, arguments) = match action {
        Action::ExecuteCapability => {
            (mcp::CAPABILITY_DETAILS, json!({ "capabilityCodes": [code] }))
        }
        Action::ExecuteObjectProperty => {
            (mcp::OBJECT_PROPERTY_DETAILS, json!({ "objectPropertyCodes": [code] }))
        }
    };
    let details: Vec<Value> = mcp::items(tool, arguments)?;
    Ok(details.into_iter().find(|detail| detail["code"] == code).unwrap_or_else(|| json!({})))
}

fn update(
    ontology: Ontology,
    decision: ExecutionDecision,
    resource: Brief,
    detail: Value,
) -> Update {
    let action = decision.action;
    let plan_state = PlanState { execution_decision: Some(decision), ..PlanState::default() };
    let update = Update {
        plan_state: Some(plan_state),
        current_ontology: Some(ontology),
        ..Update::default()
    };
    match action {
        Action::ExecuteCapability => Update {
            selected_capability: Some(resource),
            selected_capability_detail: Some(detail),
            ..update
        },
        Action::ExecuteObjectProperty => Update {
            selected_object_property: Some(resource),
            selected_object_property_detail: Some(detail),
            ..update
        },
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::node::Decision;
    use wattle_plugin::prelude::{Completion, Context, ToolOutput, Value, json};
    use wattle_plugin::testing::{FakeHost, assert_contains, run_node};

    use super::{PROMPT, inspect_ontology};
    use crate::mcp;
    use crate::testing::lists;

    fn run(choice: Value) -> (Decision, FakeHost) {
        let host = FakeHost::new().llm(move |_| Ok(Completion::of_json(choice.clone())));
        let host = host.tool(mcp::ONTOLOGY_DETAILS, |arguments| {
            let code = arguments["ontologyCodes"][0].clone();
            let item = match code.as_str() {
                Some("bare") => json!({"code": "bare", "name": "空"}),
                _ => json!({"code": code, "name": "客户", "attributes": [{"code": "phone"}],
                    "capabilities": [
                        {"code": "list", "name": "查询", "description": "d", "internal": "SECRET-A"},
                        {"code": "count", "name": "统计"}],
                    "object_properties": [{"code": "places", "name": "下单", "domain": "SECRET-B"}]}),
            };
            ToolOutput::json(&json!({"items": [item]}))
        });
        let capabilities = json!([{"code": "list", "steps": 1}, {"code": "count", "steps": 2}]);
        let host = lists(host, mcp::CAPABILITY_DETAILS, capabilities);
        let host =
            lists(host, mcp::OBJECT_PROPERTY_DETAILS, json!([{"code": "places", "range": ["o"]}]));
        let input = json!({"query": "查", "intent": {},
                           "plan_state": {"input_ontology_codes": ["bare", "customer"]}});
        let decision = host.run(|| run_node::<inspect_ontology>(&Context::default(), &input));
        (decision.unwrap(), host)
    }

    #[test]
    fn details_of_a_chosen_capability_are_loaded() {
        let (decision, host) = run(
            json!({"action": "execute_capability", "capability_code": "count", "reason": "数"}),
        );
        assert_eq!(decision.update("selected_capability").unwrap()["name"], "统计");
        assert_eq!(
            decision.update("selected_capability_detail"),
            Some(&json!({"code": "count", "steps": 2}))
        );
        assert_eq!(
            decision.update("plan_state"),
            Some(&json!({"execution_decision":
                {"action": "execute_capability", "code": "count", "reason": "数"}}))
        );
        assert_eq!(decision.update("selected_object_property"), None);
        assert_eq!(decision.update("current_ontology").unwrap()["code"], "customer");
        assert_eq!(host.emitted()[0].0, "task_planned");
    }

    #[test]
    fn details_of_a_chosen_object_property_are_loaded() {
        let (decision, host) =
            run(json!({"action": "execute_object_property", "object_property_code": "places"}));
        assert_eq!(decision.update("selected_object_property_detail").unwrap()["range"][0], "o");
        let tools: Vec<String> = host.tool_calls().into_iter().map(|call| call.tool).collect();
        let expected = [mcp::ONTOLOGY_DETAILS, mcp::ONTOLOGY_DETAILS, mcp::OBJECT_PROPERTY_DETAILS];
        assert_eq!(tools, expected);
    }

    #[test]
    fn request_of_the_choice_has_no_details() {
        let (_, host) = run(json!({"action": "execute_capability", "capability_code": "list"}));
        let asked = host.llm_requests()[0].text();
        assert!(asked.contains("统计") && asked.contains("下单"));
        assert!(!asked.contains("SECRET") && !asked.contains("\"phone\""), "{asked}");
    }

    #[test]
    fn s1_40_unknown_code_requests_a_clarification() {
        let (decision, host) =
            run(json!({"action": "execute_capability", "capability_code": "fly"}));
        let asked = decision.update("clarification").unwrap();
        assert_eq!(asked["reason"], "execution_target_missing");
        let question = asked["question"].as_str().unwrap();
        assert!(question.contains("查询、统计、下单"), "{question}");
        assert_eq!(decision.update("selected_capability"), None);
        assert_eq!(host.llm_requests().len(), 2, "the model was corrected once");
        let second = host.llm_requests()[1].text();
        assert!(second.contains("`fly` 不在 capabilities 或 object_properties 中"), "{second}");
    }

    #[test]
    fn s1_40_names_and_codes_in_the_other_field_are_accepted() {
        for choice in [
            json!({"action": "execute_capability", "capability_code": "统计"}),
            json!({"action": "execute_capability", "object_property_code": "places"}),
            json!({"action": "execute_object_property", "capability_code": "count"}),
        ] {
            let (decision, host) = run(choice.clone());
            assert_eq!(decision.update("clarification"), None, "{choice}");
            assert_eq!(host.llm_requests().len(), 1, "{choice}");
        }
    }

    #[test]
    fn missing_resources_request_a_clarification() {
        let host = lists(FakeHost::new(), mcp::ONTOLOGY_DETAILS, json!([{"code": "bare"}]));
        let input =
            json!({"query": "查", "intent": {}, "plan_state": {"input_ontology_codes": ["bare"]}});
        let decision =
            host.run(|| run_node::<inspect_ontology>(&Context::default(), &input)).unwrap();
        assert_eq!(decision.update("clarification").unwrap()["reason"], "no_executable_resource");
        assert!(host.llm_requests().is_empty());
    }

    #[test]
    fn s1_34_s1_36_inspection_prompt_requests_one_resource_and_no_plan() {
        assert_contains(PROMPT, &["execute_capability", "capability_code", "二选一"]);
        assert_contains(PROMPT, &["execute_object_property", "object_property_code", "reason"]);
        assert_contains(PROMPT, &["只能使用输入中出现的 code", "不规划执行细节", "correction"]);
    }
}
