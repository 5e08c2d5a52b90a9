//! Tests of the responses of endpoints for sessions and turns.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::answer::Answer;
use wattle_suite::reasoning::{SESSIONS, data, types};
use wattle_suite::server::Setup;

#[tokio::test]
async fn s1_06_responses_have_an_envelope() {
    let server = Setup::reasoning().await.start().await;
    let request = server.request("POST", SESSIONS).header("x-trace-id", "trace-of-the-page");
    let made = Answer::of(request.json(&json!({ "user_input": "查客户" }))).await.expect(200);
    let keys: Vec<&str> = made.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["code", "message", "data", "trace_id"]);
    assert_eq!((&made["code"], &made["trace_id"]), (&json!(0), &json!("trace-of-the-page")));
}

#[tokio::test]
async fn s1_07_invalid_bodies_are_rejected_in_the_envelope() {
    let server = Setup::reasoning().await.start().await;
    let long = "长".repeat(10_001);
    for body in [
        json!({}),
        json!({ "user_input": "  " }),
        json!({ "user_input": 5 }),
        json!({ "user_input": long }),
        json!({ "user_input": "查", "metadata": [1] }),
        json!([1]),
    ] {
        let refused = server.post(SESSIONS, &body).await;
        assert_eq!((refused.status, &refused.body["code"]), (400, &json!(4000)), "{body}");
        assert!(refused.body["message"].as_str().is_some_and(|text| !text.is_empty()));
    }
    assert!(server.reasoning_rows("reasoning_session").await.is_empty());
}

#[tokio::test]
async fn s1_08_a_new_message_starts_a_new_turn_of_the_session() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask("查询手机号13800138000的客户").await;
    let first = app.run(&session).await;
    let calls = server.reasoning_calls().len();
    assert_eq!(app.run(&session).await, first, "without a new message nothing is done");
    assert_eq!(server.reasoning_calls().len(), calls);
    let body = json!({ "user_input": "统计各区域的客户数量" });
    let second = data(app.on(&session, "run", &body).await);
    assert_eq!(second["session_id"], session.as_str());
    assert_eq!((&second["turn"]["turn_no"], &second["status"]), (&json!(2), &json!("completed")));
    assert_eq!(second["result"]["data_execution_mode"], "group-analysis");
    assert_eq!(second["tasks"].as_array().map(Vec::len), Some(1), "the tasks belong to the turn");
    let shown = app.session(&session).await;
    assert_eq!(shown["turns"].as_array().map(Vec::len), Some(2));
    let trace = app.trace(&session).await;
    let turns: Vec<&Value> = trace.iter().map(|row| &row["turn_id"]).collect();
    assert_eq!(turns.first(), Some(&&first["turn"]["turn_id"]));
    assert_eq!(turns.last(), Some(&&second["turn"]["turn_id"]));
}

#[tokio::test]
async fn s1_13_unknown_sessions_are_not_found() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let none = format!("{SESSIONS}/3f1c0d1e-8b51-4a5e-9d0c-6a2f5f7b1c22");
    let answer = json!({ "answer": { "type": "clarification", "text": "客户" } });
    for (method, path, body) in [
        ("GET", none.clone(), None),
        ("GET", format!("{none}/trace"), None),
        ("POST", format!("{none}/run"), Some(json!({}))),
        ("POST", format!("{none}/clarify"), Some(answer)),
        ("POST", format!("{none}/cancel"), Some(json!({}))),
    ] {
        let refused = app.send(method, &path, body.as_ref()).await;
        assert_eq!((refused.status, &refused.body["code"]), (404, &json!(4040)), "{path}");
    }
}

#[tokio::test]
async fn s1_14_a_running_session_can_be_cancelled() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask("统计各区域的客户数量").await;
    let gate = server.standin().gate(Pattern::model("reasoning"));
    let empty = json!({});
    let cancel = async {
        server.standin().wait_for_request(|it| it.model.is_some()).await.unwrap();
        app.on(&session, "cancel", &json!({})).await
    };
    let (ran, cancelled) = tokio::join!(app.on(&session, "run", &empty), cancel);
    gate.open();
    assert_eq!(data(cancelled), json!({ "session_id": session, "status": "cancelled" }));
    assert_eq!(ran.status, 409, "{ran:?}");
    assert_eq!(app.session(&session).await["status"], "cancelled");
    let trace = app.trace(&session).await;
    wattle_suite::reasoning::pairs(&trace);
    assert_eq!(types(&trace).last(), Some(&"session_cancelled"));
    let again = app.on(&session, "cancel", &json!({})).await;
    assert_eq!(data(again)["status"], "cancelled");
    assert_eq!(app.trace(&session).await.len(), trace.len(), "cancelled once");
    assert_eq!(app.on(&session, "run", &json!({})).await.status, 409);
}

#[tokio::test]
async fn s1_14_a_waiting_session_can_be_cancelled_with_its_question() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask("火星天气").await;
    app.run(&session).await;
    data(app.on(&session, "cancel", &json!({})).await);
    let answer = json!({ "answer": { "type": "clarification", "text": "客户" } });
    assert_eq!(app.on(&session, "clarify", &answer).await.status, 400);
    let asked = server.reasoning_rows("reasoning_clarification").await;
    assert_eq!(asked[0]["status"], "cancelled");
}

#[tokio::test]
async fn s1_16_a_second_run_at_the_same_time_is_rejected() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask("统计各区域的客户数量").await;
    let gate = server.standin().gate(Pattern::model("reasoning"));
    let (empty, other) = (json!({}), json!({ "user_input": "别的问题" }));
    let meanwhile = async {
        server.standin().wait_for_request(|it| it.model.is_some()).await.unwrap();
        let refused =
            [app.on(&session, "run", &empty).await, app.on(&session, "run", &other).await];
        let shown = app.session(&session).await;
        gate.open();
        (refused, shown)
    };
    let (ran, (refused, shown)) = tokio::join!(app.on(&session, "run", &empty), meanwhile);
    for refused in refused {
        assert_eq!((refused.status, &refused.body["code"]), (409, &json!(4090)), "{refused:?}");
    }
    assert_eq!(shown["status"], "running");
    assert_eq!(data(ran)["status"], "completed");
    assert_eq!(server.reasoning_rows("reasoning_turn").await.len(), 1, "a rejected run adds none");
    assert_eq!(server.reasoning_calls().len(), 5);
}

#[tokio::test]
async fn s1_02_the_applications_own_address_has_the_documented_paths() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let setup = Setup::reasoning().await;
    let setup =
        setup.replace("[apps.reasoning]\n", &format!("[apps.reasoning]\nlisten = \"{free}\"\n"));
    let server = setup.start().await;
    let url = format!("http://{free}/api/v1/reasoning/sessions");
    let request = server.client.post(url).json(&json!({ "user_input": "查客户" }));
    let made = data(Answer::of(request).await);
    assert_eq!(made["status"], "created");
    let id = made["session_id"].as_str().unwrap();
    assert_eq!(server.reasoning().session(id).await["status"], "created");
}

#[tokio::test]
async fn s1_08_a_session_continues_after_its_thread_is_deleted() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask("统计各区域的客户数量").await;
    app.run(&session).await;
    let before = app.trace(&session).await;
    assert!(server.delete(&format!("/api/v1/threads/{session}")).await.status < 300);
    assert_eq!(app.trace(&session).await, before, "the application stores the trail");
    let body = json!({ "user_input": "设备状态分布" });
    let second = data(app.on(&session, "run", &body).await);
    assert_eq!((&second["status"], &second["turn"]["turn_no"]), (&json!("completed"), &json!(2)));
    assert!(app.trace(&session).await.len() > before.len());
}

#[tokio::test]
async fn s1_14_a_session_shows_the_results_of_its_turns() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask("火星天气").await;
    app.run(&session).await;
    let answer = json!({ "answer": { "type": "clarification", "text": "统计各区域的客户数量" } });
    data(app.on(&session, "clarify", &answer).await);
    let ran = app.run(&session).await;
    let shown = app.session(&session).await;
    assert_eq!(shown["turns"][0]["result"], ran["result"]);
    assert_eq!(shown["turns"][0]["error"], Value::Null);
    let asked = &shown["clarifications"][0];
    assert_eq!(
        (&asked["status"], &asked["reason"]),
        (&json!("answered"), &json!("no_attribute_match"))
    );
    assert_eq!(asked["answer"], answer["answer"]);
    assert_eq!(asked["turn_id"], ran["turn"]["turn_id"]);
    let down = Fault::Status { status: 500, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::model("reasoning"), down));
    app.on(&session, "run", &json!({ "user_input": "统计客户" })).await;
    let shown = app.session(&session).await;
    assert_eq!(shown["turns"][1]["error"]["code"], "llm", "{shown}");
    assert_eq!(shown["turns"][1]["result"], Value::Null);
}
