//! Tests of service failures: the session reports each failure, and the audit trail has a request
//! and a result for each call.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::reasoning::{calling, deciding, pairs, rows_of};
use wattle_suite::server::Setup;

const QUESTION: &str = "查询手机号13800138000的客户";

fn status(status: u16) -> Fault {
    Fault::Status { status, retry_after: None, body: None }
}

#[tokio::test]
async fn s1_62_s1_63_s1_66_requests_and_results_match_under_every_fault() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let models = ["intent", "anchor", "inspect", "plan", "summary"];
    let tools = [
        "graph.list_data_attributes",
        "graph.get_data_attribute_related_ontologies",
        "graph.list_ontologies",
        "graph.get_ontology_details",
        "graph.get_capability_details",
        "mcp.data.query",
    ];
    let faults = [status(500), status(401), Fault::Garbage, Fault::Cut];
    let on_models = models.iter().map(|purpose| deciding(&format!("reasoning_{purpose}")));
    let on_tools = tools.iter().map(|tool| calling(tool));
    for (number, on) in on_models.chain(on_tools).enumerate() {
        let fault = faults[number % faults.len()].clone();
        server.standin().clear_faults();
        server.standin().fault(FaultRule::new(on.clone(), fault.clone()));
        let session = app.ask(QUESTION).await;
        let failed = app.on(&session, "run", &json!({})).await;
        let is_model = number < models.len();
        let expected = if is_model { (400, json!(9000)) } else { (502, json!(9001)) };
        assert_eq!((failed.status, failed.body["code"].clone()), expected, "{on:?} {fault:?}");
        let trace = app.trace(&session).await;
        pairs(&trace);
        let answered = if is_model { "llm_response_received" } else { "mcp_call_completed" };
        let errors = rows_of(&trace, answered)
            .into_iter()
            .filter(|row| row["payload"]["error"]["message"].is_string());
        assert!(errors.count() > 0, "{on:?} {fault:?}: {trace:#?}");
        assert_eq!(rows_of(&trace, "session_failed").len(), 1);
        assert_eq!(app.session(&session).await["status"], "failed");
    }
    server.standin().clear_faults();
    assert_eq!(app.answer(QUESTION).await["status"], "completed");
}

#[tokio::test]
async fn s1_60_the_trail_records_completions_of_the_fallback_model() {
    let setup = Setup::reasoning().await.replace(
        "model = \"reasoning\"\nretries = 0\n",
        "model = \"reasoning\"\nretries = 0\n\
         fallbacks = [{ provider = \"standin\", model = \"second\" }]\n",
    );
    let server = setup.start().await;
    let app = server.reasoning();
    server.standin().fault(FaultRule::new(Pattern::model("reasoning"), status(503)));
    let session = app.ask(QUESTION).await;
    let ran = app.run(&session).await;
    assert_eq!(
        ran["result"]["llm_route"],
        json!({ "provider": "standin", "model": "reasoning", "has_fallback": true })
    );
    let models: Vec<String> =
        server.reasoning_calls().into_iter().filter_map(|call| call.model).collect();
    assert_eq!(models.len(), 10, "one attempt at each model for each call: {models:?}");
    let trace = app.trace(&session).await;
    let answers = rows_of(&trace, "llm_response_received");
    assert_eq!(answers.len(), 5);
    for row in answers {
        let payload = &row["payload"];
        assert_eq!((&payload["fallback"], &payload["model"]), (&json!(true), &json!("second")));
        let attempts = payload["attempts"].as_array().unwrap();
        assert_eq!(attempts[0]["model"], "reasoning");
        assert!(attempts[0]["error"].is_object(), "{payload}");
    }
    server.standin().fault(FaultRule::new(Pattern::model("second"), status(503)));
    let failed = app.on(&session, "run", &json!({ "user_input": "统计客户" })).await;
    assert_eq!((failed.status, &failed.body["code"]), (400, &json!(9000)), "both models fail");
}

#[tokio::test]
async fn s1_60_a_completion_of_the_first_model_is_not_a_fallback() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask(QUESTION).await;
    app.run(&session).await;
    let trace = app.trace(&session).await;
    let is_fallback = |row: &&Value| row["payload"]["fallback"] == json!(true);
    assert!(!rows_of(&trace, "llm_response_received").iter().any(is_fallback));
}
