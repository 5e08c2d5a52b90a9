//! Data in addition to threads: documents of the long-term memory, of the Agent Server and of
//! tenants.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::answer::Answer;
use wattle_suite::before::{ASSISTANT, CRON_THREAD, HOOK, WEBHOOK_THREAD, get, post, url};
use wattle_suite::server::TestServer;

/// The path of a tenant's model route.
const ROUTE: &str = "/api/v1/tenants/acme/routes/chat";

/// Creates all documents. Returns the requests that read them.
pub(crate) async fn make(server: &TestServer) -> Vec<Value> {
    let coffee = json!({ "namespace": ["users", "7"], "key": "coffee",
        "value": { "text": "black coffee" }, "ttl_ms": 86_400_000, "refresh_on_read": true });
    put(server, "/api/v1/memory/items", &coffee).await.expect(204);
    let route = json!({ "provider": "standin", "model": "light", "api_key": "key-of-acme" });
    put(server, ROUTE, &route).await.expect(200);
    assistant(server).await;
    webhook(server).await;
    let cron = cron(server).await;
    vec![
        get("/api/v1/memory/items?namespace=users&namespace=42&key=tea"),
        get("/api/v1/memory/items?namespace=users&namespace=7&key=coffee"),
        get("/api/v1/memory/namespaces"),
        post("/api/v1/memory/search", &json!({ "query": "green" })),
        get(ROUTE),
        get(&format!("/assistants/{ASSISTANT}")),
        post(&format!("/assistants/{ASSISTANT}/versions"), &json!({})),
        get(&format!("/threads/{WEBHOOK_THREAD}/runs")),
        get(&format!("/threads/{WEBHOOK_THREAD}/state")),
        get(&format!("/threads/{CRON_THREAD}")),
        get(&format!("/runs/crons/{cron}")),
        post("/runs/crons/search", &json!({})),
    ]
}

async fn put(server: &TestServer, path: &str, document: &Value) -> Answer {
    Answer::of(server.request("PUT", path).json(document)).await
}

/// Creates an assistant and changes it once, so that it has two versions.
async fn assistant(server: &TestServer) {
    let made = json!({ "graph_id": "row", "assistant_id": ASSISTANT, "name": "first",
        "metadata": { "team": "a" } });
    server.post("/assistants", &made).await.expect(200);
    let change = json!({ "name": "second", "context": { "language": "en" } });
    let path = format!("/assistants/{ASSISTANT}");
    let changed = Answer::of(server.request("PATCH", &path).json(&change)).await.expect(200);
    assert_eq!(changed["version"], 2, "{changed}");
}

/// Runs an assistant with a webhook whose receiver refuses the delivery.
async fn webhook(server: &TestServer) {
    let refusal = Fault::Status { status: 503, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::path(HOOK), refusal));
    let made = json!({ "thread_id": WEBHOOK_THREAD, "metadata": { "made": "by hand" } });
    server.post("/threads", &made).await.expect(200);
    let run = json!({ "assistant_id": ASSISTANT, "input": { "number": 1 }, "webhook": url(HOOK) });
    server.post(&format!("/threads/{WEBHOOK_THREAD}/runs/wait"), &run).await.expect(200);
    let attempt = server.standin().wait_for_request(|it| it.path == HOOK);
    attempt.await.expect("an attempt to deliver it");
}

/// Creates a cron on a thread with an earlier run, and returns its id.
async fn cron(server: &TestServer) -> String {
    server.post("/threads", &json!({ "thread_id": CRON_THREAD })).await.expect(200);
    let run = json!({ "assistant_id": "row", "input": { "number": 1 } });
    server.post(&format!("/threads/{CRON_THREAD}/runs/wait"), &run).await.expect(200);
    let cron = json!({ "assistant_id": "row", "schedule": "0 * * * *", "timezone": "Asia/Shanghai",
        "input": { "number": 5 }, "metadata": { "made": "by hand" } });
    let made = server.post(&format!("/threads/{CRON_THREAD}/runs/crons"), &cron).await.expect(200);
    made["cron_id"].as_str().unwrap_or_default().to_owned()
}
