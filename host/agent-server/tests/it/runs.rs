//! Runs: their results, interrupts and failures.

use serde_json::{Value, json};
use wattle_agent_server::UnknownKeys;
use wattle_api::ApiConfig;

use crate::host::{Host, HostOptions, request};

fn slow(word: &str) -> Value {
    json!({ "assistant_id": "slow", "input": { "word": word } })
}

#[tokio::test]
async fn wait_returns_the_values_of_a_run() {
    let host = Host::new();
    let id = host.thread().await;
    let ended = host.post(&format!("/threads/{id}/runs/wait"), slow("a")).await;
    assert_eq!(ended.ok(), json!({ "items": ["a"], "word": "a" }));
    let place = ended.header("content-location").to_owned();
    assert_eq!(ended.header("location"), format!("{place}/join"));
    let run = host.get(&place).await.ok();
    assert_eq!((&run["status"], &run["thread_id"]), (&json!("success"), &json!(id)));
    assert_eq!(run["assistant_id"], host.get("/assistants/slow").await.ok()["assistant_id"]);
    assert_eq!(run["kwargs"]["input"], json!({ "word": "a" }));
    assert_eq!(run["multitask_strategy"], "enqueue");
    assert_eq!(host.get(&format!("{place}/join")).await.ok(), ended.json());
    let thread = host.get(&format!("/threads/{id}")).await.ok();
    assert_eq!(
        (&thread["status"], &thread["metadata"]["graph_id"]),
        (&json!("idle"), &json!("slow"))
    );
}

#[tokio::test]
async fn interrupted_run_has_status_success() {
    let host = Host::new();
    let id = host.thread().await;
    let wait = format!("/threads/{id}/runs/wait");
    let input = json!({ "messages": [{ "role": "user", "content": "hi" }] });
    let asked = host.post(&wait, json!({ "assistant_id": "agent", "input": input })).await;
    let values = asked.ok();
    assert_eq!(values["__interrupt__"][0]["value"], "Are we good?");
    let kinds: Vec<_> =
        values["messages"].as_array().unwrap().iter().map(|it| &it["type"]).collect();
    assert_eq!(kinds, ["human", "ai"]);
    let run = host.get(asked.header("content-location")).await.ok();
    assert_eq!(run["status"], "success");
    let thread = host.get(&format!("/threads/{id}")).await.ok();
    assert_eq!(thread["status"], "interrupted");
    let open = thread["interrupts"].as_object().unwrap();
    assert_eq!(open.values().next().unwrap()[0]["value"], "Are we good?");
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    assert_eq!(state["next"], json!(["ask"]));
    assert_eq!(state["tasks"][0]["interrupts"][0]["value"], "Are we good?");

    let resume = json!({ "assistant_id": "agent", "command": { "resume": "yes" } });
    let ended = host.post(&wait, resume).await.ok();
    assert_eq!((&ended["value"], &ended["items"]), (&json!("yes"), &json!(["greeted", "asked"])));
    let runs = host.get(&format!("/threads/{id}/runs")).await.ok();
    assert_eq!(runs.as_array().unwrap().len(), 2);
    assert_eq!(runs[0]["kwargs"]["command"], json!({ "resume": "yes" }), "the newest run is first");
}

#[tokio::test]
async fn interrupts_are_answered_by_id() {
    let host = Host::new();
    let id = host.thread().await;
    let wait = format!("/threads/{id}/runs/wait");
    let start = json!({ "assistant_id": "agent", "input": { "value": 1 } });
    let asked = host.post(&wait, start).await.ok();
    let question = asked["__interrupt__"][0]["id"].as_str().unwrap();
    let answers = json!({ question: { "deep": true } });
    let resume = json!({ "assistant_id": "agent", "command": { "resume": answers } });
    assert_eq!(host.post(&wait, resume).await.ok()["value"], json!({ "deep": true }));
}

#[tokio::test]
async fn wait_returns_a_failure_with_status_200() {
    let host = Host::new();
    let id = host.thread().await;
    let wait = format!("/threads/{id}/runs/wait");
    let failed = host.post(&wait, json!({ "assistant_id": "broken", "input": {} })).await;
    let error = &failed.ok()["__error__"];
    let expected =
        json!({ "error": "invalid", "message": "no way", "node": "fail", "plugin": "p" });
    assert_eq!(*error, expected);
    assert_eq!(host.get(failed.header("content-location")).await.ok()["status"], "error");
    let thread = host.get(&format!("/threads/{id}")).await.ok();
    assert_eq!(thread["status"], "error");
    assert_eq!(thread["error"], expected);
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    assert_eq!(state["tasks"][0]["error"], "no way");
}

#[tokio::test]
async fn run_above_the_recursion_limit_fails_with_graph_recursion_error() {
    let host = Host::new();
    let run = json!({ "assistant_id": "agent", "input": {}, "config": { "recursion_limit": 1 } });
    let error = host.post("/runs/wait", run).await.ok()["__error__"].clone();
    assert_eq!(error["error"], "GraphRecursionError");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("Recursion limit of 1 reached"), "{message}");
}

#[tokio::test]
async fn rejected_request_writes_nothing() {
    let host = Host::new();
    let id = host.thread().await;
    let wait = format!("/threads/{id}/runs/wait");
    let agent = |field: &str, value: Value| {
        let mut request = json!({ "assistant_id": "agent", "input": {} });
        request[field] = value;
        request
    };
    let both = json!({ "configurable": { "a": 1 } });
    let mut context_twice = agent("config", both);
    context_twice["context"] = json!({ "b": 1 });
    for (status, request) in [
        (422, agent("input", json!({ "messages": [{ "role": "nobody", "content": "x" }] }))),
        (422, agent("input", json!({ "messages": [{ "content": "x" }] }))),
        (422, agent("input", json!(7))),
        (422, agent("assistant_id", json!("nobody"))),
        (404, agent("assistant_id", json!("01a1ffdc-22ab-744e-a2fc-8bb051a654f8"))),
        (422, agent("stream_mode", json!("lifecycle"))),
        (422, agent("stream_mode", json!(["values", "tools"]))),
        (422, agent("webhook", json!("http://127.0.0.1:9/hook"))),
        (422, agent("multitask_strategy", json!("juggle"))),
        (422, agent("durability", json!("stone"))),
        (400, agent("input", Value::Null)),
        (400, context_twice),
        (400, json!({ "assistant_id": "agent", "command": { "resume": 1 } })),
        (422, json!({ "assistant_id": "agent", "command": { "goto": "nowhere" } })),
        (404, agent("checkpoint_id", json!("00000000-0001-8000-8000-000000000000"))),
        (422, json!({ "input": {} })),
    ] {
        let response = host.post(&wait, request.clone()).await;
        assert_eq!(response.status, status, "{request}: {}", response.text);
        let why = response.json()["detail"].as_str().unwrap().to_owned();
        let is_unknown =
            request["assistant_id"] != "agent" && request.get("assistant_id").is_some();
        assert_eq!(why.starts_with("Assistant not found"), is_unknown, "{why}");
    }
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    assert_eq!(state["values"], json!({}));
    assert_eq!(host.get(&format!("/threads/{id}/runs")).await.ok(), json!([]));
}

#[tokio::test]
async fn unknown_keys_are_ignored_and_named_in_the_metadata_of_the_run() {
    let host = Host::new();
    let id = host.thread().await;
    let wait = format!("/threads/{id}/runs/wait");
    let named = async |place: &str| host.get(place).await.ok()["metadata"]["ignored_keys"].clone();
    let input = json!({ "word": "a", "mood": 1, "a b": 2 });
    let ended = host.post(&wait, json!({ "assistant_id": "slow", "input": input })).await;
    assert_eq!(ended.ok(), json!({ "items": ["a"], "word": "a" }));
    let place = ended.header("content-location");
    assert_eq!(named(place).await, json!(["input.mood", "input.a b"]));
    assert_eq!(host.get(place).await.ok()["kwargs"]["input"], input, "as the client wrote it");
    // No node runs after the update, because the thread has ended. The second update writes no
    // channel.
    for update in [json!({ "items": ["b"], "mood": 1 }), json!({ "mood": 1 })] {
        let run = json!({ "assistant_id": "slow", "command": { "update": update } });
        let ended = host.post(&wait, run).await;
        assert_eq!(ended.ok(), json!({ "items": ["a", "b"], "word": "a" }));
        let place = ended.header("content-location");
        assert_eq!(named(place).await, json!(["command.update.mood"]));
    }
    let plain = host.post(&wait, slow("c")).await;
    assert_eq!(named(plain.header("content-location")).await, Value::Null);
}

#[tokio::test]
async fn unknown_keys_are_rejected_on_request_of_the_operator() {
    let options = HostOptions { unknown_keys: UnknownKeys::Reject, ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    let id = host.thread().await;
    let wait = format!("/threads/{id}/runs/wait");
    let mood = json!({ "mood": 1 });
    let update = json!({ "assistant_id": "slow", "command": { "update": mood } });
    let input = json!({ "assistant_id": "slow", "input": mood });
    for body in [update, input] {
        let refused = host.post(&wait, body).await;
        assert_eq!(refused.status, 422, "{}", refused.text);
        assert!(refused.text.contains("has no channel `mood`"), "{}", refused.text);
    }
    assert_eq!(host.get(&format!("/threads/{id}/runs")).await.ok(), json!([]));
    host.post(&wait, slow("a")).await.ok();
    let edit = json!({ "values": mood, "as_node": "hold" });
    let past = json!([{ "updates": [edit] }]);
    let lived = json!({ "metadata": { "graph_id": "slow" }, "supersteps": past });
    for (path, body) in [(format!("/threads/{id}/state"), edit), ("/threads".to_owned(), lived)] {
        let refused = host.post(&path, body).await;
        assert_eq!(refused.status, 422, "{path}: {}", refused.text);
        assert!(refused.text.contains("`mood`"), "{path}: {}", refused.text);
    }
}

#[tokio::test]
async fn fields_for_other_services_are_accepted() {
    let host = Host::new();
    let id = host.thread().await;
    let mut run = slow("a");
    run["feedback_keys"] = json!(["thumbs"]);
    run["langsmith_tracer"] = json!({ "project_name": "p" });
    run["stream_mode"] = json!("updates");
    let stream = host.post(&format!("/threads/{id}/runs/stream"), run).await;
    let kinds: Vec<String> = stream.frames().into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(kinds, ["metadata", "updates"], "feedback keys add no event");
    let runs = host.get(&format!("/threads/{id}/runs")).await.ok();
    assert_eq!(runs[0]["kwargs"]["feedback_keys"], json!(["thumbs"]));
}

#[tokio::test]
async fn if_not_exists_creates_a_missing_thread() {
    let host = Host::new();
    let wait = "/threads/01a1ffdc-22ab-744e-a2fc-8bb051a654f8/runs/wait";
    assert_eq!(host.post(wait, slow("a")).await.status, 404);
    let mut wish = slow("a");
    wish["if_not_exists"] = json!("create");
    assert_eq!(host.post(wait, wish).await.ok()["items"], json!(["a"]));
}

#[tokio::test]
async fn run_of_another_graph_on_a_thread_is_rejected() {
    let host = Host::new();
    let wait = format!("/threads/{}/runs/wait", host.thread().await);
    host.post(&wait, slow("a")).await.ok();
    let other = host.post(&wait, json!({ "assistant_id": "agent", "input": {} })).await;
    assert_eq!(other.status, 409);
    assert!(other.text.contains("`slow`"), "{}", other.text);
}

#[tokio::test]
async fn context_is_read_from_context_or_configurable() {
    let host = Host::new();
    for (field, value) in [
        ("context", json!({ "user": "u" })),
        ("config", json!({ "configurable": { "user": "u", "thread_id": "t" } })),
    ] {
        let mut run = json!({ "assistant_id": "context", "input": {} });
        run[field] = value;
        let ended = host.post("/runs/wait", run).await.ok();
        assert_eq!(ended["value"], json!({ "user": "u" }), "{field}");
    }
    let odd = json!({ "assistant_id": "context", "input": {}, "context": { "user": 1 } });
    let refused = host.post("/runs/wait", odd).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text.contains("`context_schema` of graph `context`"), "{}", refused.text);
}

#[tokio::test]
async fn interrupt_before_stops_a_run_and_a_run_without_an_input_continues() {
    let host = Host::new();
    let id = host.thread().await;
    let wait = format!("/threads/{id}/runs/wait");
    let mut run = slow("a");
    run["interrupt_before"] = json!(["hold"]);
    let still = host.post(&wait, run).await.ok();
    assert_eq!(still, json!({ "word": "a" }));
    let go_on = json!({ "assistant_id": "slow", "input": null });
    assert_eq!(host.post(&wait, go_on).await.ok()["items"], json!(["a"]));
}

#[tokio::test]
async fn breakpoint_at_an_unknown_node_is_ignored() {
    let host = Host::new();
    for names in [json!(["nowhere"]), json!(["a b"])] {
        let mut run = slow("a");
        run["interrupt_before"] = names.clone();
        run["interrupt_after"] = names;
        assert_eq!(host.post("/runs/wait", run).await.ok()["items"], json!(["a"]));
    }
    let mut run = slow("a");
    run["interrupt_before"] = json!(["nowhere", "hold"]);
    assert_eq!(host.post("/runs/wait", run).await.ok(), json!({ "word": "a" }));
}

#[tokio::test]
async fn runs_are_listed_by_status_and_deleted() {
    let host = Host::new();
    let id = host.thread().await;
    for word in ["a", "b"] {
        host.post(&format!("/threads/{id}/runs/wait"), slow(word)).await.ok();
    }
    let runs = format!("/threads/{id}/runs");
    let all = host.get(&format!("{runs}?limit=1&select=run_id&select=status")).await.ok();
    assert_eq!(all[0].as_object().unwrap().len(), 2);
    assert_eq!(host.get(&format!("{runs}?status=pending")).await.ok(), json!([]));
    assert_eq!(host.get(&format!("{runs}?status=odd")).await.status, 422);
    let newest = all[0]["run_id"].as_str().unwrap();
    assert_eq!(host.call("DELETE", &format!("{runs}/{newest}"), None).await.status, 204);
    assert_eq!(host.get(&runs).await.ok().as_array().unwrap().len(), 1);
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    assert_eq!(state["values"]["items"], json!(["a"]), "the writes of the deleted run are gone");
}

#[tokio::test]
async fn threads_of_other_tenants_are_not_found() {
    let keys = [("k-a", "a"), ("k-b", "b")];
    let keys = keys.map(|(key, tenant)| (ApiConfig::key_digest(key), tenant.to_owned()));
    let host = Host::with_config(ApiConfig { tenant_keys: keys.into(), ..ApiConfig::default() });
    let with_key = async |key: &str, method: &str, path: &str, body: Option<Value>| {
        let mut request = request(method, path, body);
        request.headers_mut().insert("x-api-key", key.parse().unwrap());
        host.send(request).await
    };
    assert_eq!(host.get("/ok").await.ok()["ok"], true);
    assert_eq!(host.get("/threads").await.status, 401);
    let made = with_key("k-a", "POST", "/threads", Some(json!({}))).await.ok();
    let path = format!("/threads/{}", made["thread_id"].as_str().unwrap());
    assert_eq!(with_key("k-a", "GET", &path, None).await.status, 200);
    assert_eq!(with_key("k-b", "GET", &path, None).await.status, 404);
    let wait = format!("{path}/runs/wait");
    let ended = with_key("k-a", "POST", &wait, Some(slow("a"))).await;
    assert_eq!(ended.ok()["items"], json!(["a"]));
    let place = ended.header("content-location").to_owned();
    assert_eq!(with_key("k-a", "GET", &place, None).await.status, 200);
    assert_eq!(with_key("k-b", "GET", &place, None).await.status, 404);
    let found = with_key("k-b", "POST", "/threads/search", Some(json!({}))).await.ok();
    assert_eq!(found, json!([]));
}

#[tokio::test]
async fn list_merges_runs_of_both_apis_by_creation_time() {
    let host = Host::new();
    let id = host.thread().await;
    let path = format!("/threads/{id}/runs");
    let run = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    let mut later = run.clone();
    later["after_seconds"] = json!(3_600);
    let native = json!({
        "graph": "slow", "input": { "word": "b" }, "thread_id": id, "wait": true,
    });
    let text = |response: &Value, name: &str| response[name].as_str().unwrap().to_owned();
    let (mut asked, mut waiting) = (Vec::new(), Vec::new());
    // The runs fill more than one page of the store.
    for n in 0..100 {
        match n % 5 {
            0 => {
                let response = host.post("/api/v1/apps/test/runs", native.clone()).await.ok();
                asked.push(text(&response, "run"));
            }
            1 => {
                let run = text(&host.post(&path, later.clone()).await.ok(), "run_id");
                asked.push(run.clone());
                waiting.push(run);
            }
            2 => {
                let run = text(&host.post(&path, later.clone()).await.ok(), "run_id");
                host.post(&format!("{path}/{run}/cancel"), json!({})).await;
                asked.push(run);
            }
            _ => {
                let response = host.post(&format!("{path}/wait"), run.clone()).await;
                let place = response.header("content-location").to_owned();
                asked.push(place.rsplit('/').next().unwrap().to_owned());
            }
        }
    }
    asked.reverse();
    waiting.reverse();
    let listed = async |query: String| {
        let listed = host.get(&format!("{path}?{query}")).await.ok();
        let runs = listed.as_array().unwrap().iter();
        runs.map(|run| run["run_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed("limit=1000".to_owned()).await, asked);
    assert_eq!(listed("limit=3".to_owned()).await, asked[..3]);
    let mut pages = Vec::new();
    while pages.len() < asked.len() {
        pages.extend(listed(format!("limit=7&offset={}", pages.len())).await);
    }
    assert_eq!(pages, asked);
    assert_eq!(listed("status=pending&limit=1000".to_owned()).await, waiting);
    assert_eq!(listed("status=pending&limit=3&offset=2".to_owned()).await, waiting[2..5]);
    assert_eq!(listed("offset=100".to_owned()).await, [""; 0]);
}
