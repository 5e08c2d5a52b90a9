//! The expense application: a conversation with a reply, one with a tool call without a result, and
//! one whose run failed.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::answer::Answer;
use wattle_suite::before::{get, post};
use wattle_suite::expense::{CHAT, MODEL_PATH, RECORDS_PATH};
use wattle_suite::server::TestServer;

use crate::requests::{Requests, pause};

/// The path of the stream in the format of `useChat`.
const STREAM: &str = "/api/chat/stream?format=ai-sdk";

/// Creates the conversations.
pub(crate) async fn make(server: &TestServer) -> Requests {
    let replied = server.tell("昨天打车花了20元").await.thread;
    pause(server);
    let open = open_call(server).await;
    pause(server);
    let failed = failed(server).await;

    let thread = |id: &str| get(&format!("/api/threads/{id}"));
    let stream = |id: &str| get(&format!("/api/threads/{id}/stream"));
    let ids = [replied.as_str(), open.as_str(), failed.as_str()];
    let retry = json!({ "threadId": failed, "retry": true });
    Requests {
        stored: ids.into_iter().map(thread).chain(ids.into_iter().map(stream)).collect(),
        continued: [
            post(CHAT, &json!({ "threadId": replied, "message": "午饭35元" })),
            post(STREAM, &json!({ "threadId": replied, "message": "收到工资8000元" })),
            post(CHAT, &json!({ "threadId": replied, "retry": true })),
            post(STREAM, &json!({ "threadId": open, "message": "打车30元" })),
            post(STREAM, &retry),
            post(CHAT, &json!({ "threadId": failed, "message": "早餐15元" })),
        ]
        .into_iter()
        .chain(ids.into_iter().map(thread))
        .collect(),
    }
}

/// Cancels a run during a tool call, and returns its thread.
async fn open_call(server: &TestServer) -> String {
    let gate = server.standin().gate(Pattern::path(RECORDS_PATH));
    let message = server.request("POST", CHAT).json(&json!({ "message": "打车花了20元" }));
    let reply = tokio::spawn(Answer::of(message));
    gate.arrived(1).await.expect("a request that is held");
    let running = server.get("/api/v1/threads?status=running").await.expect(200);
    let thread = text(&running["items"][0]["thread"]);
    let runs = server.get(&format!("/api/v1/threads/{thread}/runs")).await.expect(200);
    let cancel = format!("/api/v1/runs/{}/cancel", text(&runs[0]["run"]));
    server.post(&cancel, &json!({})).await.expect(202);
    reply.await.expect("a reply").expect(409);
    thread
}

/// Lets the model fail, and returns the thread of the run.
async fn failed(server: &TestServer) -> String {
    let refusal = Fault::Status { status: 401, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::path(MODEL_PATH), refusal));
    let failed = server.post(CHAT, &json!({ "message": "打车20元" })).await.expect(502);
    server.standin().clear_faults();
    text(&failed["threadId"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
