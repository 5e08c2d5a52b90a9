//! The endpoints: response fields, refusals, concurrent messages, the stream and the trace.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::answer::Answer;
use wattle_suite::event_stream::messages;
use wattle_suite::expense::{CHAT, MODEL_PATH, Reply, STREAM};
use wattle_suite::server::Setup;

#[tokio::test]
async fn s2_41_a_reply_has_its_thread_and_steps() {
    let server = Setup::expense().await.start().await;
    let body = server.post(CHAT, &json!({ "message": "打车20元" })).await.expect(200);
    let fields: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["threadId", "reply", "steps"]);
    let steps = body["steps"].as_array().unwrap();
    assert_eq!(steps[0]["toolCalls"][0]["name"], "saveExpenseToLark");
    assert_eq!(steps[1]["arguments"]["amount"], 20);
    assert_eq!(steps[1]["result"]["status"], "success");
    assert_eq!(steps[2]["content"], body["reply"]);
    // The next response has only the steps of its own message.
    let next = server.tell_on(body["threadId"].as_str().unwrap(), "你好").await;
    assert_eq!(next.steps.len(), 1);
}

#[tokio::test]
async fn s2_41_an_invalid_message_is_refused() {
    let server = Setup::expense().await.start().await;
    for path in [CHAT, STREAM] {
        for (body, status) in [
            (json!({}), 400),
            (json!({ "message": "  " }), 400),
            (json!({ "message": 7 }), 400),
            (json!({ "message": "长".repeat(4_001) }), 413),
        ] {
            let answer = server.post(path, &body).await;
            assert_eq!(answer.status, status, "{path} {}", answer.body);
            assert!(answer.body["error"].is_string(), "{}", answer.body);
        }
    }
    assert!(server.requests_to(MODEL_PATH).is_empty());
}

#[tokio::test]
async fn s2_41_concurrent_messages_of_a_thread_are_refused() {
    let server = Setup::expense().await.start().await;
    let first = server.tell("你好").await;
    let gate = server.standin().gate(Pattern::path(MODEL_PATH));
    let body = json!({ "threadId": first.thread, "message": "打车20元" });
    let slow = Answer::of(server.request("POST", CHAT).json(&body));
    let slow = tokio::spawn(slow);
    gate.arrived(1).await.unwrap();
    let busy = json!({ "threadId": first.thread, "message": "午饭30元" });
    for path in [CHAT, STREAM] {
        let refused = server.post(path, &busy).await;
        assert_eq!(refused.status, 409, "{}", refused.body);
        assert!(refused.body["error"].as_str().unwrap().contains("处理中"), "{}", refused.body);
    }
    gate.open();
    assert!(Reply::of(slow.await.unwrap()).text.contains("✅"));
    assert_eq!(server.booked().len(), 1);
}

#[tokio::test]
async fn s2_41_the_stream_has_deltas_and_tool_calls_and_ends_with_the_run() {
    let server = Setup::expense().await.start().await;
    let answer = server.post(STREAM, &json!({ "message": "昨天打车20元" })).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.header("content-type").starts_with("text/event-stream"));
    let thread = answer.header("x-thread-id").to_owned();
    assert!(!thread.is_empty());
    let events = messages(answer.body.as_str().unwrap());
    let kinds: Vec<&str> = events.iter().map(|event| event.event.as_str()).collect();
    assert!(kinds.contains(&"streamed"), "{kinds:?}");
    let tools: Vec<&Value> = events
        .iter()
        .filter(|it| it.event == "called" && it.data["function"] == "tools.call")
        .map(|it| &it.data["summary"])
        .collect();
    assert_eq!(tools, ["date/parseDateExpression", "lark/saveExpenseToLark"]);
    assert_eq!(events.last().unwrap().event, "run_ended");
    let reply = server.tell_on(&thread, "你好").await;
    assert_eq!(reply.thread, thread);
}

#[tokio::test]
async fn s2_41_a_model_failure_is_reported_and_the_thread_continues() {
    let server = Setup::expense().await.start().await;
    let down = Fault::Status { status: 401, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::path(MODEL_PATH), down));
    let answer = server.post(CHAT, &json!({ "message": "打车20元" })).await;
    assert_eq!(answer.status, 502, "{}", answer.body);
    assert!(answer.body["error"].as_str().unwrap().contains("AI 服务"), "{}", answer.body);
    server.standin().clear_faults();
    let thread = answer.body["threadId"].as_str().unwrap();
    let reply = server.tell_on(thread, "打车20元").await;
    assert!(reply.text.contains("✅"), "{}", reply.text);
    assert_eq!(server.booked().len(), 1);
}

#[tokio::test]
async fn s2_40_every_tool_step_is_in_the_trace() {
    let server = Setup::expense().await.start().await;
    let reply = server.tell("昨天打车20元").await;
    let trace = server.get(&format!("/api/v1/threads/{}/trace", reply.thread)).await.expect(200);
    let text = trace.to_string();
    for part in ["llm.complete", "parseDateExpression", "saveExpenseToLark", "POST http://"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Arguments and result of a tool are in the events from which the trace is made.
    let events = server.events(&reply.thread).await;
    let mut calls = events
        .iter()
        .filter(|it| it.event == "called" && it.data["function"] == "tools.call")
        .map(|it| (&it.data["request"]["arguments"], &it.data["result"]["Ok"]["structured"]));
    let (arguments, answer) = calls.next().unwrap();
    assert_eq!(
        (&arguments["offset"], &answer["timestamp"]),
        (&json!(-1), &json!(1_736_784_000_000_i64))
    );
    let (arguments, answer) = calls.next().unwrap();
    assert_eq!((&arguments["amount"], &answer["status"]), (&json!(20), &json!("success")));
    assert!(calls.next().is_none());
}
