//! Tests of the audit trail and of the tables of the application.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wattle_kit::standin::Entry;
use wattle_suite::reasoning::{SESSIONS, calling, data, deciding, pairs, rows_of, types};
use wattle_suite::server::Setup;

const QUESTION: &str = "查询手机号13800138000的客户";

#[tokio::test]
async fn s1_04_s1_62_s1_63_s1_65_s1_77_the_trail_contains_all_events_in_order() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask(QUESTION).await;
    let ran = app.run(&session).await;
    let trace = app.trace(&session).await;
    assert_eq!(pairs(&trace), (5, 10), "{:?}", types(&trace));
    let story: Vec<&str> = types(&trace)
        .into_iter()
        .filter(|name| !name.starts_with("mcp_call") && !name.starts_with("llm_"))
        .collect();
    assert_eq!(
        story,
        [
            "session_created",
            "intent_parsed",
            "attributes_matched",
            "ontologies_located",
            "ontology_selected",
            "task_planned",
            "plan_generated",
            "task_executed",
            "session_completed"
        ]
    );
    let steps: BTreeSet<&str> = trace.iter().filter_map(|row| row["step"].as_str()).collect();
    assert_eq!(
        steps,
        BTreeSet::from([
            "session_create",
            "understanding",
            "planning",
            "discovery",
            "locating",
            "attributes",
            "executing",
            "llm",
            "completed"
        ])
    );
    for row in &trace {
        let keys: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["id", "seq", "turn_id", "step", "event_type", "payload", "created_at"]);
        assert_eq!(row["turn_id"], ran["turn"]["turn_id"], "{row}");
        assert!(row["created_at"].as_str().unwrap().starts_with("2025-01-15T"), "{row}");
    }
    let methods: BTreeSet<&str> = rows_of(&trace, "mcp_call_requested")
        .iter()
        .filter_map(|row| row["payload"]["method"].as_str())
        .collect();
    assert!(methods.contains("mcp.data.query") && methods.contains("graph.list_ontologies"));
    let prompts = rows_of(&trace, "llm_prompt_sent");
    let purposes: Vec<&Value> = prompts.iter().map(|row| &row["payload"]["purpose"]).collect();
    assert_eq!(
        purposes,
        [
            "reasoning_intent",
            "reasoning_anchor",
            "reasoning_inspect",
            "reasoning_plan",
            "reasoning_summary"
        ]
    );
    assert!(prompts[0]["payload"]["messages"].to_string().contains("13800138000"));
    let answers = rows_of(&trace, "llm_response_received");
    assert_eq!(answers[0]["payload"]["content"]["keywords"], json!(["手机号", "客户"]));
}

#[tokio::test]
async fn s1_64_s1_67_reading_changes_nothing_and_pages_are_contiguous() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask(QUESTION).await;
    app.run(&session).await;
    let trace = app.trace(&session).await;
    let path = format!("{SESSIONS}/{session}/trace");
    let (one, two) = tokio::join!(app.send("GET", &path, None), app.send("GET", &path, None));
    assert_eq!(data(one)["events"], json!(trace));
    assert_eq!(data(two)["events"], json!(trace));
    let mut pages: Vec<Value> = Vec::new();
    let mut after = 0;
    loop {
        let path = format!("{path}?after={after}&limit=7");
        let page = data(app.send("GET", &path, None).await);
        pages.extend(page["events"].as_array().cloned().unwrap());
        match page["next_after"].as_i64() {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(pages, trace);
    let rows = server.reasoning_rows("reasoning_trace_event").await;
    assert_eq!(rows.len(), trace.len());
    let refused = app.send("GET", &format!("{path}?after=x"), None).await;
    assert_eq!(refused.status, 400);
}

#[tokio::test]
async fn s1_67_the_trail_grows_during_a_run() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask(QUESTION).await;
    let gate = server.standin().gate(deciding("reasoning_inspect"));
    let empty = json!({});
    let meanwhile = async {
        let inspects = |it: &Entry| {
            it.body.as_ref().is_some_and(|body| body.to_string().contains("reasoning_inspect"))
        };
        server.standin().wait_for_request(inspects).await.unwrap();
        let trace = app.trace(&session).await;
        gate.open();
        trace
    };
    let (ran, early) = tokio::join!(app.on(&session, "run", &empty), meanwhile);
    assert_eq!(data(ran)["status"], "completed");
    assert_eq!(pairs(&early).0, 2, "{:?}", types(&early));
    assert!(types(&early).contains(&"ontology_selected"));
    let whole = app.trace(&session).await;
    assert_eq!(whole[..early.len()], early[..], "existing events do not change");
    assert_eq!(pairs(&whole).0, 5);
}

#[tokio::test]
async fn s1_68_every_table_has_its_rows() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask("火星天气").await;
    app.run(&session).await;
    let answer = json!({ "answer": { "type": "clarification", "text": "统计各区域的客户数量" } });
    app.on(&session, "clarify", &answer).await.expect(200);
    app.run(&session).await;
    for (table, rows) in [
        ("reasoning_session", 1),
        ("reasoning_turn", 1),
        ("reasoning_task", 1),
        ("reasoning_context", 2),
        ("reasoning_clarification", 1),
    ] {
        assert_eq!(server.reasoning_rows(table).await.len(), rows, "{table}");
    }
    let sessions = server.reasoning_rows("reasoning_session").await;
    assert_eq!(
        (&sessions[0]["id"], &sessions[0]["status"]),
        (&json!(session), &json!("completed"))
    );
    let asked = server.reasoning_rows("reasoning_clarification").await;
    assert_eq!(
        (&asked[0]["status"], &asked[0]["reason"]),
        (&json!("answered"), &json!("no_attribute_match"))
    );
    let contexts = server.reasoning_rows("reasoning_context").await;
    let inputs: BTreeSet<&str> = contexts.iter().filter_map(|row| row["input"].as_str()).collect();
    assert!(inputs.contains("火星天气"), "{inputs:?}");
    assert!(contexts.iter().any(|row| row["context_json"].to_string().contains("executor")));
    let trail = server.reasoning_rows("reasoning_trace_event").await;
    assert_eq!(trail.len(), app.trace(&session).await.len());
}

#[tokio::test]
async fn s1_66_a_cancelled_call_also_has_a_result() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask(QUESTION).await;
    let gate = server.standin().gate(calling("mcp.data.query"));
    let empty = json!({});
    let cancel = async {
        let calls = |it: &Entry| {
            it.body.as_ref().is_some_and(|body| body["params"]["name"] == "mcp.data.query")
        };
        server.standin().wait_for_request(calls).await.unwrap();
        app.on(&session, "cancel", &json!({})).await
    };
    let (_, cancelled) = tokio::join!(app.on(&session, "run", &empty), cancel);
    gate.open();
    assert_eq!(data(cancelled)["status"], "cancelled");
    let trace = app.trace(&session).await;
    pairs(&trace);
    let completed = rows_of(&trace, "mcp_call_completed");
    let tasks = server.reasoning_rows("reasoning_task").await;
    assert_eq!((tasks.len(), &tasks[0]["status"]), (1, &json!("failed")));
    assert_eq!(completed.last().unwrap()["payload"]["error"]["code"], "lost", "{trace:#?}");
}
