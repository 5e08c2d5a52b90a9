//! Tests from the decision to the data and the result.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule};
use wattle_suite::reasoning::{calling, deciding, mentioning, rows_of};
use wattle_suite::server::{Setup, TestServer};

const QUESTION: &str = "查询手机号13800138000的客户";

/// Makes the model return this decision.
fn decides(server: &TestServer, purpose: &str, content: &Value) {
    let fault = Fault::Content { text: content.to_string() };
    server.standin().fault(FaultRule::new(deciding(purpose), fault));
}

#[tokio::test]
async fn s1_48_only_conditions_of_the_model_are_used() {
    let server = Setup::reasoning().await.start().await;
    decides(&server, "reasoning_plan", &json!({ "mode": "query", "filters": [] }));
    let ran = server.reasoning().answer(QUESTION).await;
    assert_eq!(server.mcp_calls("mcp.data.query")[0]["filters"], json!([]));
    assert_eq!(ran["result"]["data_execution"]["total"], 40);
}

#[tokio::test]
async fn s1_48_a_condition_can_exclude_one_value() {
    let server = Setup::reasoning().await.start().await;
    let ran = server.reasoning().answer("查询除了手机号13800138000以外的客户").await;
    let expected = json!([{ "field": "phone", "op": "ne", "value": "13800138000" }]);
    assert_eq!(server.mcp_calls("mcp.data.query")[0]["filters"], expected);
    let execution = &ran["result"]["data_execution"];
    assert_eq!(execution["total"], 39, "{execution}");
    assert!(!execution["items"].to_string().contains("13800138000"));
}

#[tokio::test]
async fn s1_48_an_unsupported_condition_leads_to_a_question() {
    let server = Setup::reasoning().await.start().await;
    let filters = json!([{ "field": "客户名称", "op": "not_like", "value": "张" }]);
    decides(&server, "reasoning_plan", &json!({ "mode": "query", "filters": filters }));
    let waiting = server.reasoning().answer("查询名字不含张的客户").await;
    assert_eq!(waiting["status"], "waiting_clarification", "{waiting}");
    let asked = &waiting["clarification"];
    assert_eq!(asked["reason"], "unsupported_condition");
    assert!(asked["question"].as_str().unwrap().contains("客户名称 不包含 张"), "{asked}");
    assert!(server.mcp_calls("mcp.data.query").is_empty());
    assert_eq!(server.reasoning_rows("reasoning_task").await[0]["status"], "failed");
}

#[tokio::test]
async fn s1_48_last_month_is_relative_to_the_day_of_the_user() {
    let server = Setup::reasoning().await.start().await;
    let ran = server.reasoning().answer("查询上个月的订单").await;
    for purpose in ["reasoning_intent", "reasoning_plan", "reasoning_summary"] {
        let mut calls = server.reasoning_calls().into_iter().filter_map(|call| call.body);
        let name = "/response_format/json_schema/name";
        let body = calls.find(|body| body.pointer(name) == Some(&json!(purpose))).unwrap();
        let facts: Value =
            serde_json::from_str(body["messages"][1]["content"].as_str().unwrap()).unwrap();
        let today = json!({ "date": "2025-01-15", "weekday": "星期三",
                            "time_zone": "Asia/Shanghai" });
        assert_eq!(facts["today"], today, "{purpose}");
    }
    assert_eq!(
        server.mcp_calls("mcp.data.query")[0]["filters"],
        json!([{ "field": "ordered_on", "op": "like", "value": "2024-12" }])
    );
    let items = ran["result"]["data_execution"]["items"].as_array().unwrap();
    assert!(!items.is_empty());
    assert!(items.iter().all(|row| row["ordered_on"].as_str().unwrap().starts_with("2024-12")));
}

#[tokio::test]
async fn s1_48_attribute_names_are_mapped_to_fields() {
    let server = Setup::reasoning().await.start().await;
    let filters = json!([{ "field": "客户电话", "op": "==", "value": "13800138000" },
                         { "field": "customer_level", "op": "in", "value": "金牌" },
                         { "field": "鞋码", "op": "eq", "value": 42 },
                         { "field": "尺码", "op": "is_null", "value": null }]);
    decides(&server, "reasoning_plan", &json!({ "mode": "query", "filters": filters }));
    let ran = server.reasoning().answer(QUESTION).await;
    assert_eq!(
        server.mcp_calls("mcp.data.query")[0]["filters"],
        json!([{ "field": "phone", "op": "eq", "value": "13800138000" },
               { "field": "level", "op": "in", "value": ["金牌"] }])
    );
    let ignored = &ran["result"]["data_execution"]["plan"]["ignored"];
    assert_eq!(ignored[0]["field"], "鞋码", "a dropped condition is reported");
    assert_eq!(ignored[1], json!({ "field": "尺码", "op": "is_null", "value": null }));
    let last = server.reasoning_calls().pop().unwrap().body.unwrap();
    assert!(last["messages"][1]["content"].as_str().unwrap().contains("鞋码"), "also to the model");
}

#[tokio::test]
async fn s1_48_missing_conditions_unknown_fields_and_unknown_operators_are_corrected_once() {
    let server = Setup::reasoning().await.start().await;
    let field = json!([{ "field": "shoe", "op": "eq", "value": "13800138000" }]);
    let operator = json!([{ "field": "phone", "op": "exclude", "value": "13800138000" }]);
    for wrong in [
        json!({ "mode": "query", "filters": field }),
        json!({ "mode": "query", "filters": operator }),
        json!({ "mode": "query" }),
    ] {
        server.standin().clear_requests();
        let fault = Fault::Content { text: wrong.to_string() };
        server.standin().fault(FaultRule::new(deciding("reasoning_plan"), fault).times(1));
        let ran = server.reasoning().answer(QUESTION).await;
        assert_eq!(ran["result"]["data_execution"]["total"], 1, "{wrong}: {ran}");
        assert!(ran["result"]["data_execution"]["plan"].get("ignored").is_none());
        assert_eq!(server.reasoning_calls().len(), 6, "{wrong}");
    }
}

#[tokio::test]
async fn s1_47_s1_50_missing_groups_are_added_and_counted() {
    let server = Setup::reasoning().await.start().await;
    decides(&server, "reasoning_plan", &json!({ "mode": "group_analysis" }));
    let ran = server.reasoning().answer("统计订单").await;
    assert_eq!(ran["result"]["data_execution_mode"], "group-analysis");
    assert_eq!(
        server.mcp_calls("mcp.data.group-analysis"),
        [json!({ "class_id": "order", "filters": [], "page": 1, "page_size": 20,
            "sort_order": "desc", "group_by": ["order_no"],
            "metrics": [{ "agg": "count", "alias": "count" }], "sort_by": "count" })]
    );
}

#[tokio::test]
async fn s1_47_amounts_are_summed_by_status() {
    let server = Setup::reasoning().await.start().await;
    let ran = server.reasoning().answer("按状态统计订单金额").await;
    let execution = &ran["result"]["data_execution"];
    assert_eq!(execution["method"], "mcp.data.group-analysis");
    let sums: Vec<i64> = execution["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|group| group["sum_amount"].as_i64())
        .collect();
    assert_eq!(sums.len(), 4, "{execution}");
    assert!(sums.is_sorted_by(|one, two| one >= two), "the largest sum is first: {sums:?}");
}

#[tokio::test]
async fn s1_53_page_sizes_are_limited_and_the_summary_receives_the_first_rows() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let plan = json!({ "mode": "query", "page_size": 5_000, "filters": [] });
    decides(&server, "reasoning_plan", &plan);
    let refuses = |order: &str| {
        let fault = Fault::Status { status: 500, retry_after: None, body: None };
        server.standin().fault(FaultRule::new(mentioning(order), fault));
    };

    let [last_sent, first_omitted] = ["SO-2024-0020", "SO-2024-0021"];
    refuses(first_omitted);
    let ran = app.answer("查询订单").await;
    assert_eq!(ran["status"], "completed", "the model gets no request with the 21st row: {ran}");
    assert_eq!(server.mcp_calls("mcp.data.query")[0]["page_size"], 200);
    let items = ran["result"]["data_execution"]["items"].as_array().unwrap();
    assert_eq!(items.len(), 120, "the result is complete");
    assert_eq!(items[19]["order_no"], last_sent);
    assert_eq!(items[20]["order_no"], first_omitted);

    refuses(last_sent);
    let session = app.ask("查询订单").await;
    let failed = app.on(&session, "run", &json!({})).await;
    assert_eq!((failed.status, &failed.body["code"]), (400, &json!(9000)), "{failed:?}");
    let message = failed.body["message"].as_str().unwrap();
    assert!(message.contains("llm summary failed"), "the summary gets the 20th row: {message}");
}

#[tokio::test]
async fn s1_51_the_only_target_needs_no_choice() {
    let server = Setup::reasoning().await.start().await;
    decides(
        &server,
        "reasoning_target_plan",
        &json!({ "target_ontology_code": "device", "mode": "query" }),
    );
    let ran = server.reasoning().answer("客户张伟的合同").await;
    assert_eq!(ran["result"]["data_execution"]["ontology"]["code"], "contract");
}

#[tokio::test]
async fn s1_44_s1_46_a_task_records_what_was_executed() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask(QUESTION).await;
    let ran = app.run(&session).await;
    let tasks = server.reasoning_rows("reasoning_task").await;
    assert_eq!(tasks.len(), 1);
    let task = &tasks[0];
    assert_eq!((&task["session_id"], &task["turn_id"]), (&json!(session), &ran["turn"]["turn_id"]));
    assert_eq!((&task["task_type"], &task["status"]), (&json!("capability"), &json!("completed")));
    assert_eq!(task["executor"], "LLMCapabilityExecutor");
    let result: Value = serde_json::from_str(task["result_json"].as_str().unwrap()).unwrap();
    assert_eq!(result, ran["result"]["data_execution"]);
    let trace = app.trace(&session).await;
    assert_eq!(rows_of(&trace, "task_executed")[0]["payload"]["data"]["task_id"], task["id"]);
}

#[tokio::test]
async fn s1_52_a_failed_data_call_fails_the_task_and_the_session() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let down = Fault::Status { status: 500, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(calling("mcp.data.query"), down));
    let session = app.ask(QUESTION).await;
    let failed = app.on(&session, "run", &json!({})).await;
    assert_eq!((failed.status, &failed.body["code"]), (502, &json!(9001)), "{failed:?}");
    let message = failed.body["message"].as_str().unwrap();
    assert!(message.contains("mcp call failed (mcp.data.query)"), "{message}");
    let tasks = server.reasoning_rows("reasoning_task").await;
    assert_eq!(tasks[0]["status"], "failed");
    assert!(tasks[0]["error"].as_str().unwrap().contains("mcp.data.query"));
    assert_eq!(app.session(&session).await["status"], "failed");
    let trace = app.trace(&session).await;
    assert_eq!(rows_of(&trace, "session_failed").len(), 1);
    server.standin().clear_faults();
    assert_eq!(app.run(&session).await["status"], "completed");
}

#[tokio::test]
async fn s1_52_a_failed_plan_fails_the_task() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let down = Fault::Status { status: 503, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(deciding("reasoning_plan"), down));
    let session = app.ask(QUESTION).await;
    let failed = app.on(&session, "run", &json!({})).await;
    assert_eq!((failed.status, &failed.body["code"]), (400, &json!(9000)));
    assert_eq!(server.reasoning_rows("reasoning_task").await[0]["status"], "failed");
}

#[tokio::test]
async fn s1_57_framework_names_are_settings() {
    let setup = Setup::reasoning().await.with(
        "[apps.reasoning.settings]\norchestration_framework = \"langgraph\"\n\
         llm_framework = \"langchain\"\n",
    );
    let server = setup.start().await;
    let result = server.reasoning().answer(QUESTION).await["result"].clone();
    assert_eq!(
        (&result["orchestration_framework"], &result["llm_framework"]),
        (&json!("langgraph"), &json!("langchain"))
    );
}
