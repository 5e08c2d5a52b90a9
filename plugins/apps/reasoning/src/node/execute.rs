//! `execute`: gets the data with an executor, and records the execution as a task.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, Value, emit, json, node,
};

use crate::executor::{
    self, CapabilityExecutor as _, Execution, LlmCapabilityExecutor, LlmObjectPropertyExecutor,
    ObjectPropertyExecutor as _, Order,
};
use crate::node::clarify;
use crate::ontology::Ontology;
use crate::plan::{Mode, UNKNOWN_WORD, UNSUPPORTED};
use crate::result::DataExecution;
use crate::state::{Brief, Clarification, Intent, PlanState, SelectedTask, Turn};
use crate::task::{RunningTask, TaskType};

const NO_FIELDS: &str = "相关的业务对象没有可查询的数据字段，请换一个业务对象。";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Input {
    query: String,
    intent: Intent,
    current_ontology: Ontology,
    selected_capability: Option<Brief>,
    selected_capability_detail: Option<Value>,
    selected_object_property: Option<Brief>,
    selected_object_property_detail: Option<Value>,
    turn: Option<Turn>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Update {
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_state: Option<PlanState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selected_task: Option<SelectedTask>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_execution_mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_execution: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clarification: Option<Clarification>,
}

/// Executes the chosen capability or object property.
#[node]
pub(crate) fn execute(context: &Context, input: Input) -> Result<Update, Failure> {
    let (task_type, resource, detail) = chosen(&input)?;
    let order = Order {
        query: &input.query,
        intent: &input.intent,
        ontology: &input.current_ontology,
        resource,
        detail,
        services: executor::SERVICES,
    };
    let turn = Turn::of(input.turn.clone(), context);
    let task = RunningTask::begin(&turn, task_type, &input.current_ontology.code, resource)?;
    let executed = match task_type {
        TaskType::Capability => LlmCapabilityExecutor.execute(&order),
        TaskType::ObjectProperty => LlmObjectPropertyExecutor.execute(&order),
    };
    executed.map_or_else(|failure| give_up(&task, failure), |execution| finish(&task, execution))
}

/// Returns the chosen resource, with its details.
fn chosen(input: &Input) -> Result<(TaskType, &Brief, &Value), Failure> {
    const NOTHING: &Value = &Value::Null;
    let capability = input.selected_capability.as_ref();
    let property = input.selected_object_property.as_ref();
    match (capability, property) {
        (Some(capability), _) => {
            let detail = input.selected_capability_detail.as_ref().unwrap_or(NOTHING);
            Ok((TaskType::Capability, capability, detail))
        }
        (None, Some(property)) => {
            let detail = input.selected_object_property_detail.as_ref().unwrap_or(NOTHING);
            Ok((TaskType::ObjectProperty, property, detail))
        }
        (None, None) => Err(Failure::invalid("nothing was selected to execute")),
    }
}

/// Records the failure of the task. Requests a clarification if the user can resolve the failure;
/// otherwise the run fails.
fn give_up(task: &RunningTask<'_>, failure: Failure) -> Result<Update, Failure> {
    task.fail(&failure.message)?;
    let Some((reason, question)) = question(&failure) else {
        return Err(failure);
    };
    let clarification = Some(clarify(reason, &question)?);
    Ok(Update { clarification, ..Update::default() })
}

/// Returns the reason and the question of a clarification, if the user can resolve the failure.
fn question(failure: &Failure) -> Option<(&'static str, String)> {
    let detail = |name: &str| failure.details.as_ref()?.get(name);
    let text = |name: &str| detail(name).and_then(Value::as_str).unwrap_or_default();
    match failure.code.as_str() {
        executor::NO_FIELDS => Some(("no_data_fields", NO_FIELDS.to_owned())),
        executor::NO_TARGET => {
            let targets = detail("targets").and_then(Value::as_array).into_iter().flatten();
            let names = targets.filter_map(Value::as_str).collect::<Vec<_>>().join("、");
            Some(("target_ontology_missing", format!("您要查的是哪一类数据？可以是：{names}。")))
        }
        UNSUPPORTED => {
            let condition = text("condition");
            Some((
                "unsupported_condition",
                format!("数据服务无法执行条件“{condition}”，请换一种条件。"),
            ))
        }
        UNKNOWN_WORD => {
            let (part, words) = (text("part"), text("words"));
            Some(("unsupported_plan", format!("数据服务无法执行{part}“{words}”，请换一种{part}。")))
        }
        _ => None,
    }
}

fn finish(task: &RunningTask<'_>, execution: Execution) -> Result<Update, Failure> {
    let Execution { executor, mode, plan, ontology, class_id, labels, data } = execution;
    emit::custom("plan_generated", json!({ "executor": executor, "mode": mode, "plan": plan }))?;
    let data_execution = serde_json::to_value(DataExecution {
        mode,
        method: mode.tool().to_owned(),
        ontology,
        class_id,
        plan,
        labels,
        total: data.get("total").cloned(),
        items: data.get("items").cloned(),
    })?;
    task.complete(executor, &data_execution)?;
    emit::custom(
        "task_executed",
        json!({ "task_id": task.id, "executor": executor, "mode": mode, "total": data.get("total") }),
    )?;
    Ok(Update {
        plan_state: Some(PlanState { executor: Some(executor.to_owned()), ..PlanState::default() }),
        selected_task: Some(task.selected("completed")),
        data_execution_mode: Some(mode),
        data_execution: Some(data_execution),
        clarification: None,
    })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::node::Decision;
    use wattle_plugin::prelude::{Completion, Context, Failure, ToolOutput, Value, json};
    use wattle_plugin::testing::{FakeHost, SqlAnswer, run_node};
    use wattle_plugin::tool::ToolInfo;

    use super::execute;
    use crate::mcp;
    use crate::testing::{attributes, host, lists};

    fn services(plan: Value) -> FakeHost {
        host()
            .llm(move |_| Ok(Completion::of_json(plan.clone())))
            .sql(|_| Ok(SqlAnswer::affected(1)))
            .tool("mcp.data.query", |_| ToolOutput::json(&json!({"total": 1, "items": [{"a": 1}]})))
    }

    /// Returns services whose data service has these operators. The model writes these plans, one
    /// after the other.
    fn planned(operators: &[&str], plans: Vec<Value>) -> FakeHost {
        let op = json!({"enum": operators});
        let filters = json!({"items": {"properties": {"op": op}}});
        let query = ToolInfo {
            name: "mcp.data.query".to_owned(),
            arguments_schema: json!({"properties": {"filters": filters}}),
            ..ToolInfo::default()
        };
        let mut plans = plans.into_iter();
        host()
            .llm(move |_| {
                let plan = plans.next().map(Completion::of_json);
                plan.ok_or_else(|| Failure::unavailable("there is no further plan"))
            })
            .sql(|_| Ok(SqlAnswer::affected(1)))
            .described_tool(query, |_| ToolOutput::json(&json!({"total": 1, "items": [{"a": 1}]})))
    }

    /// Returns a plan with one condition on the phone number.
    fn plan_with(op: &str, value: &Value) -> Value {
        json!({"mode": "query", "filters": [{"field": "phone", "op": op, "value": value}]})
    }

    /// Returns a plan that groups by region, with one metric.
    fn groups_with(agg: &str, field: &str) -> Value {
        json!({"mode": "group-analysis", "filters": [], "group_by": ["region"],
               "metrics": [{"agg": agg, "field": field}]})
    }

    /// Returns services like those of [`planned`] that also group.
    fn grouping(plans: Vec<Value>) -> FakeHost {
        planned(&["eq"], plans).tool("mcp.data.group-analysis", |_| {
            ToolOutput::json(&json!({"total": 1, "items": [{"a": 1}]}))
        })
    }

    fn input(kind: &str, detail: Value, ontology: &str) -> Value {
        json!({"query": "手机号 13800138000", "intent": {},
            "current_ontology": {"code": ontology, "name": "客户", "attributes": attributes()},
            format!("selected_{kind}"): {"code": "c", "name": "能力"},
            format!("selected_{kind}_detail"): detail,
            "turn": {"session_id": "s", "turn_id": "t", "turn_no": 1}})
    }

    fn run(host: &FakeHost, input: &Value) -> Result<Decision, Failure> {
        host.run(|| run_node::<execute>(&Context::default(), input))
    }

    fn statements(host: &FakeHost) -> Vec<(String, Vec<Value>)> {
        let statements = host.statements().into_iter();
        statements
            .map(|statement| {
                let first = statement.text.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
                let parameters = statement.parameters.iter();
                (first, parameters.map(wattle_plugin::sql::Value::to_json).collect())
            })
            .collect()
    }

    #[test]
    fn capability_is_executed_as_a_task() {
        let filters = json!([{"field": "联系电话", "op": "eq", "value": "13800138000"}]);
        let host = services(json!({"mode": "query", "filters": filters}));
        let decision = run(&host, &input("capability", json!({"code": "c"}), "customer")).unwrap();
        assert_eq!(decision.update("data_execution_mode"), Some(&json!("query")));
        let data = decision.update("data_execution").unwrap();
        assert_eq!((&data["total"], &data["items"]), (&json!(1), &json!([{"a": 1}])));
        let expected = json!([{"field": "phone", "op": "eq", "value": "13800138000"}]);
        assert_eq!(data["plan"]["filters"], expected);
        assert_eq!(
            decision.update("plan_state"),
            Some(&json!({"executor": "LLMCapabilityExecutor"}))
        );
        assert_eq!(decision.update("selected_task").unwrap()["status"], "completed");
        let statements = statements(&host);
        assert_eq!(statements[0].0, "INSERT INTO");
        assert_eq!(statements[0].1[1..4], [json!("s"), json!("t"), json!("capability")]);
        assert_eq!(statements[1].1[0], "completed");
        let names: Vec<String> = host.emitted().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["plan_generated", "task_executed"]);
    }

    #[test]
    fn object_property_gets_the_data_of_its_target() {
        let host = services(json!({"target_ontology_code": "fleet", "mode": "query"}));
        let target = json!([{"code": "order", "name": "订单", "classId": "T_ORDER",
                             "attributes": [{"code": "amount", "fieldName": "amt"}]}]);
        let host = lists(host, mcp::ONTOLOGY_DETAILS, target);
        let detail = json!({"domain": ["customer"], "range": ["order"]});
        let decision = run(&host, &input("object_property", detail, "customer")).unwrap();
        let data = decision.update("data_execution").unwrap();
        assert_eq!(data["ontology"]["code"], "order");
        assert_eq!(data["class_id"], "T_ORDER");
        let call = host.tool_calls().pop().unwrap();
        assert_eq!(call.tool.as_str(), "mcp.data.query");
        assert_eq!(call.arguments["class_id"], "T_ORDER");
        assert_eq!(statements(&host)[0].1[3], "object_property");
    }

    #[test]
    fn s1_51_undecided_target_requests_a_clarification() {
        let host = services(json!({"target_ontology_code": "fleet", "mode": "query"}));
        let target = |code: &str, name: &str| json!({"code": code, "name": name, "attributes": [{"code": "amount"}]});
        let targets = json!([target("order", "订单"), target("contract", "合同")]);
        let host = lists(host, mcp::ONTOLOGY_DETAILS, targets);
        let detail = json!({"domain": ["customer"], "range": ["order", "contract"]});
        let decision = run(&host, &input("object_property", detail, "customer")).unwrap();
        let asked = decision.update("clarification").unwrap();
        assert_eq!(asked["reason"], "target_ontology_missing");
        assert!(asked["question"].as_str().unwrap().contains("订单、合同"), "{asked}");
        assert!(host.tool_calls().iter().all(|call| call.tool != "mcp.data.query"));
        assert_eq!(statements(&host)[1].1[0], "failed");
    }

    #[test]
    fn unsupported_condition_requests_a_clarification() {
        let filters = json!([{"field": "phone", "op": "ne", "value": "13800138000"}]);
        let host = services(json!({"mode": "query", "filters": filters}));
        let decision = run(&host, &input("capability", json!({}), "customer")).unwrap();
        let asked = decision.update("clarification").unwrap();
        assert_eq!(asked["reason"], "unsupported_condition");
        let question = asked["question"].as_str().unwrap();
        assert!(question.contains("联系电话 不等于 13800138000"), "{question}");
        assert!(host.tool_calls().is_empty(), "the opposite is not asked for");
    }

    #[test]
    fn s1_48_unknown_operator_is_corrected_once() {
        let phone = json!("13800138000");
        let plans = vec![plan_with("exclude", &phone), plan_with("ne", &phone)];
        let host = planned(&["eq", "ne"], plans);
        let decision = run(&host, &input("capability", json!({}), "customer")).unwrap();
        let data = decision.update("data_execution").unwrap();
        let expected = json!([{"field": "phone", "op": "ne", "value": phone}]);
        assert_eq!(data["plan"]["filters"], expected);
        let requests = host.llm_requests();
        assert_eq!(requests.len(), 2);
        let corrected = requests[1].text();
        assert!(
            corrected.contains("op exclude 无法识别，请按原意改用 eq、ne、like"),
            "{corrected}"
        );
    }

    #[test]
    fn s1_48_operator_that_stays_unknown_requests_a_clarification() {
        for (op, value, condition) in [
            ("exclude", json!("13800138000"), "联系电话 exclude 13800138000"),
            ("between", json!([1, 5]), "联系电话 between 1、5"),
        ] {
            let plan = plan_with(op, &value);
            let host = planned(&["eq", "like", "in"], vec![plan.clone(), plan]);
            let decision = run(&host, &input("capability", json!({}), "customer")).unwrap();
            let asked = decision.update("clarification").unwrap();
            assert_eq!(asked["reason"], "unsupported_condition");
            let question = asked["question"].as_str().unwrap();
            assert!(question.contains(&format!("“{condition}”")), "{question}");
            assert!(host.tool_calls().is_empty(), "neither the opposite nor a choice is asked for");
            assert_eq!(statements(&host)[1].1[0], "failed");
        }
    }

    #[test]
    fn s1_50_unknown_aggregation_is_corrected_once() {
        let plans = ["median", "avg"].map(|agg| groups_with(agg, "amount"));
        let host = grouping(plans.into());
        let decision = run(&host, &input("capability", json!({}), "customer")).unwrap();
        let data = decision.update("data_execution").unwrap();
        let expected = json!([{"agg": "avg", "field": "amount", "alias": "avg_amount"}]);
        assert_eq!(data["plan"]["metrics"], expected);
        let requests = host.llm_requests();
        assert_eq!(requests.len(), 2);
        let corrected = requests[1].text();
        let correction = "metrics 中的 累计金额 median 无法识别，agg 请按原意改用 count、sum、avg";
        assert!(corrected.contains(correction), "{corrected}");
    }

    #[test]
    fn s1_50_word_that_stays_unknown_requests_a_clarification() {
        for (plan, expected) in [
            (groups_with("median", "amount"), "指标“累计金额 median”"),
            (groups_with("sum", "color"), "指标“color sum”"),
            (json!({"mode": "pivot", "filters": []}), "查询方式“pivot”"),
            (json!({"mode": "query", "filters": [], "sort_field": "color"}), "排序“color”"),
        ] {
            let host = grouping(vec![plan.clone(), plan]);
            let decision = run(&host, &input("capability", json!({}), "customer")).unwrap();
            let asked = decision.update("clarification").unwrap();
            assert_eq!(asked["reason"], "unsupported_plan");
            let question = asked["question"].as_str().unwrap();
            assert!(question.contains(expected), "{question}");
            assert_eq!(host.llm_requests().len(), 2, "{expected}");
            assert!(host.tool_calls().is_empty(), "nothing else is counted in its place");
            assert_eq!(statements(&host)[1].1[0], "failed");
        }
    }

    #[test]
    fn failed_call_fails_the_task() {
        let broken =
            services(json!({})).tool("mcp.data.group-analysis", |_| Ok(ToolOutput::error("no")));
        let host = broken.llm(|_| Ok(Completion::of_json(json!({"mode": "group-analysis"}))));
        let failure = run(&host, &input("capability", json!({}), "customer")).unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("mcp", false));
        let statements = statements(&host);
        assert_eq!(statements[1].1[0], "failed");
        assert!(statements[1].1[3].as_str().unwrap().contains("mcp.data.group-analysis"));
    }

    #[test]
    fn error_of_a_failed_task_has_no_secrets() {
        let host = services(json!({}))
            .llm(|_| Err(Failure::unavailable("Incorrect API key: sk-abc123456")));
        assert!(run(&host, &input("capability", json!({}), "customer")).is_err());
        let error = statements(&host)[1].1[3].clone();
        let is_redacted = |it: &str| it.ends_with("Incorrect API key: [redacted]");
        assert!(error.as_str().is_some_and(is_redacted), "{error}");
    }

    #[test]
    fn object_property_without_a_target_fails() {
        let host = services(json!({}));
        let failure = run(&host, &input("object_property", json!({}), "customer")).unwrap_err();
        assert!(failure.message.contains("leads to no other ontology"), "{failure}");
        assert_eq!(statements(&host)[1].1[0], "failed");
    }
}
