//! A misbehaving guest fails its own run, each in its own way, and nothing else.

use serde_json::{Value, json};
use wattle_suite::misdeeds::{self, Misdeed};
use wattle_suite::server::{Setup, TestServer};

/// Returns one graph for each misdeed of the guest `wattle-guest-misdeeds`.
pub(super) fn graphs() -> String {
    let mut text = String::new();
    for (node, channels) in [
        ("counter", &[("number", r#"{ type = "integer" }"#)][..]),
        ("spin", &[]),
        ("hog", &[]),
        ("recurse", &[("number", "{}")]),
        ("trap", &[]),
        ("typed_failure", &[("retryable", "{}"), ("succeed_on_attempt", "{}"), ("number", "{}")]),
        ("bad_output", &[("mode", "{}"), ("number", r#"{ type = "integer" }"#)]),
        ("huge_output", &[("size", "{}"), ("text", "{}")]),
        ("deep_json", &[("depth", "{}"), ("value", "{}")]),
        ("chatty", &[("count", "{}"), ("number", "{}")]),
        ("flood_emit", &[("count", "{}"), ("number", "{}")]),
        ("ungranted_http", &[("url", "{}"), ("status", "{}")]),
        (
            "two_questions",
            &[("url", "{}"), ("route", "{}"), ("status", "{}"), ("text", "{}"), ("answers", "{}")],
        ),
        ("call_then_wait", &[("route", "{}"), ("text", "{}"), ("url", "{}"), ("body", "{}")]),
    ] {
        text.push_str(&format!("[graphs.{node}]\nentry = \"{node}\"\n"));
        for (channel, schema) in channels {
            text.push_str(&format!("[graphs.{node}.channels.{channel}]\nschema = {schema}\n"));
        }
        text.push_str(&format!("[graphs.{node}.nodes.{node}]\n"));
        if node == "typed_failure" {
            text.push_str("retry = { attempts = 2, initial = \"1ms\" }\n");
        }
    }
    text
}

async fn server() -> TestServer {
    Setup::misdeeds(&graphs()).await.start().await
}

/// Returns the event of the failed task.
async fn fault(server: &TestServer, run: &Value) -> Value {
    let thread = run["thread"].as_str().unwrap();
    let mut events = server.events(thread).await;
    events.retain(|event| event.event == "task_failed");
    events.pop().map(|event| event.data).unwrap_or_default()
}

/// Runs a misdeed and an honest run concurrently, and returns the fault and the failure of the
/// misdeed.
async fn misbehave(server: &TestServer, node: &str, input: Value) -> (Value, Value) {
    let (run, honest) = tokio::join!(
        server.run("misdeeds", node, input),
        server.run("misdeeds", "counter", json!({ "number": 1 })),
    );
    assert_eq!((&honest["status"], &honest["state"]["number"]), (&json!("completed"), &json!(2)));
    assert_eq!(run["status"], "failed", "{run}");
    let message = run["failure"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("node `{node}` of plugin `misdeeds`")), "{message}");
    let fault = fault(server, &run).await;
    (fault["fault"].clone(), run["failure"].clone())
}

/// Runs a misdeed, which must end as every misdeed of its kind.
async fn ends(misdeed: &Misdeed) {
    let server = server().await;
    let (fault, failure) = misbehave(&server, misdeed.node, misdeed.input()).await;
    assert_eq!((fault, &failure["code"]), (json!(misdeed.fault()), &json!(misdeed.code)));
    assert_eq!(failure["details"]["limit"], json!(misdeed.limit), "{failure}");
    assert_eq!(failure["details"]["allowed"].is_u64(), misdeed.limit.is_some(), "{failure}");
}

#[tokio::test]
async fn an_endless_loop_reaches_the_cpu_limit_while_others_run() {
    ends(&misdeeds::SPIN).await;
}

#[tokio::test]
async fn endless_allocation_reaches_the_memory_limit() {
    ends(&misdeeds::HOG).await;
}

#[tokio::test]
async fn endless_recursion_is_a_trap_that_names_the_stack() {
    let server = server().await;
    let (fault, failure) = misbehave(&server, "recurse", json!({})).await;
    assert_eq!((fault, &failure["code"]), (json!("trap"), &json!("trap")));
    assert_eq!(failure["details"]["trap"], "stack-overflow", "{failure}");
}

#[tokio::test]
async fn a_panic_is_a_trap_with_its_text_and_place() {
    let server = server().await;
    let (fault, failure) = misbehave(&server, "trap", json!({})).await;
    assert_eq!((fault, &failure["code"]), (json!("trap"), &json!("trap")));
    let details = &failure["details"];
    assert_eq!(details["trap"], "unreachable", "{failure}");
    let cause = &details["cause"];
    assert_eq!(cause["text"], "a misdeed", "{failure}");
    let file = cause["file"].as_str().unwrap();
    assert!(file.ends_with("misdeeds/src/output.rs"), "{file}");
    assert!(cause["line"].is_u64() && cause["column"].is_u64(), "{cause}");
    let place = format!("trapped: a misdeed ({file}:{})", cause["line"]);
    assert!(failure["message"].as_str().unwrap().ends_with(&place), "{failure}");
}

#[tokio::test]
async fn a_typed_failure_keeps_its_code_and_is_retried_only_if_retryable() {
    let server = server().await;
    let (fault, failure) = misbehave(&server, "typed_failure", json!({ "retryable": false })).await;
    assert_eq!((fault, &failure["code"]), (json!("failure"), &json!("misdeed")));
    assert!(failure["message"].as_str().unwrap().ends_with("attempt 1 failed as asked"));
    let input = json!({ "retryable": true, "succeed_on_attempt": 2 });
    let run = server.run("misdeeds", "typed_failure", input).await;
    assert_eq!((&run["status"], &run["state"]["number"]), (&json!("completed"), &json!(2)));
    let (_, failure) = misbehave(&server, "typed_failure", json!({ "retryable": true })).await;
    assert!(failure["message"].as_str().unwrap().ends_with("attempt 2 failed as asked"));
}

#[tokio::test]
async fn huge_output_reaches_the_output_limit_and_large_output_does_not() {
    ends(&misdeeds::HUGE_OUTPUT).await;
    let server = server().await;
    let run = server.run("misdeeds", "huge_output", json!({ "size": 100_000 })).await;
    assert_eq!(run["status"], "completed");
    assert_eq!(run["state"]["text"].as_str().map(str::len), Some(100_000));
}

#[tokio::test]
async fn a_host_without_a_grant_is_denied_and_not_called() {
    let server = server().await;
    // The same machine by another name, another port, and an external host.
    let standin = server.standin().addr.port();
    for url in [
        format!("http://localhost:{standin}/echo"),
        "http://127.0.0.1:1/echo".to_owned(),
        "https://example.com/".to_owned(),
    ] {
        let (fault, failure) = misbehave(&server, "ungranted_http", json!({ "url": url })).await;
        assert_eq!((fault, &failure["code"]), (json!("failure"), &json!("denied")), "{failure}");
        let message = failure["message"].as_str().unwrap();
        assert!(
            message.contains("[grants.misdeeds]"),
            "the message does not name the setting to add: {message}"
        );
    }
    assert!(server.standin().requests().is_empty());
    let url = format!("{}/status/204", server.standin().base_url);
    let run = server.run("misdeeds", "ungranted_http", json!({ "url": url })).await;
    assert_eq!(run["state"]["status"], 204, "granted hosts are reachable: {run}");
}

#[tokio::test]
async fn a_redirect_leads_to_granted_hosts_only() {
    let server = server().await;
    let base = &server.standin().base_url;
    let url = format!("{base}/redirect?to=http://169.254.169.254/latest/meta-data/");
    let (_, failure) = misbehave(&server, "ungranted_http", json!({ "url": url })).await;
    assert_eq!(failure["code"], "denied", "{failure}");
    let url = format!("{base}/redirect?to={base}/status/200");
    let run = server.run("misdeeds", "ungranted_http", json!({ "url": url })).await;
    assert_eq!(run["state"]["status"], 200, "{run}");
}

#[tokio::test]
async fn too_many_host_calls_reach_their_limit() {
    ends(&Misdeed::at_limit("chatty", r#"{ "count": 101 }"#, "host_calls")).await;
    let server = server().await;
    let run = server.run("misdeeds", "chatty", json!({ "count": 100 })).await;
    assert_eq!(run["status"], "completed", "{run}");
}

#[tokio::test]
async fn a_flood_of_events_reaches_a_limit() {
    let setup = Setup::misdeeds(&graphs()).await;
    let setup = setup.replace("cpu = \"300ms\"", "cpu = \"20s\"");
    let server = setup.replace("host_calls = 100", "host_calls = 20000").start().await;
    let (fault, failure) = misbehave(&server, "flood_emit", json!({ "count": 10_001 })).await;
    assert_eq!((&fault, &failure["details"]["limit"]), (&json!("limit"), &json!("emitted_events")));
    let run = server.run("misdeeds", "flood_emit", json!({ "count": 20 })).await;
    let events = server.events(run["thread"].as_str().unwrap()).await;
    let floods = events.iter().filter(|event| event.event == "custom");
    let indexes: Vec<_> = floods.map(|event| event.data["data"]["index"].clone()).collect();
    assert_eq!(indexes, (0..20).map(Value::from).collect::<Vec<_>>());
}

#[tokio::test]
async fn invalid_writes_are_refused() {
    let server = server().await;
    for mode in ["unknown_channel", "wrong_type"] {
        let (fault, failure) = misbehave(&server, "bad_output", json!({ "mode": mode })).await;
        assert_eq!((&fault, &failure["code"]), (&json!("failure"), &json!("invalid")), "{failure}");
        let channel = if mode == "wrong_type" { "number" } else { "nowhere" };
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{channel}`")), "{message}");
    }
    let run = server.run("misdeeds", "bad_output", json!({ "mode": "none" })).await;
    assert_eq!(run["state"]["number"], 1, "{run}");
}

#[tokio::test]
async fn deep_documents_are_refused() {
    ends(&misdeeds::DEEP_JSON).await;
    let server = server().await;
    let run = server.run("misdeeds", "deep_json", json!({ "depth": 50 })).await;
    assert_eq!(run["status"], "completed", "{run}");
}

#[tokio::test]
async fn two_interrupts_in_one_node_repeat_no_call() {
    let server = server().await;
    let url = format!("{}/count/visits", server.standin().base_url);
    let run = server.run("misdeeds", "two_questions", json!({ "url": url, "route": "chat" })).await;
    assert_eq!(run["interrupts"][0]["payload"], json!({ "question": 1 }), "{run}");
    let resume = format!("/api/v1/threads/{}/resume", run["thread"].as_str().unwrap());
    let answer = |text: &str| json!({ "answers": { "": text }, "wait": true });
    let run = server.post(&resume, &answer("a")).await.expect(200);
    assert_eq!(run["interrupts"][0]["payload"]["question"], 2, "{run}");
    let run = server.post(&resume, &answer("b")).await.expect(200);
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run["state"]["answers"], json!(["a", "b"]));
    let paths: Vec<_> = server.standin().requests().into_iter().map(|entry| entry.path).collect();
    assert_eq!(paths, ["/count/visits", "/v1/chat/completions"], "each service is called once");
}

#[tokio::test]
async fn a_waiting_run_does_not_block_others_and_can_be_cancelled() {
    let server = server().await;
    let gate = server.standin().gate(wattle_kit::standin::Pattern::path("/count/held"));
    let url = format!("{}/count/held", server.standin().base_url);
    let input = json!({ "route": "chat", "url": url });
    let start = json!({ "graph": "call_then_wait", "input": input });
    let run = server.post("/api/v1/apps/misdeeds/runs", &start).await.expect(202);
    gate.arrived(1).await.unwrap();
    let honest = server.run("misdeeds", "counter", json!({ "number": 5 })).await;
    assert_eq!(honest["state"]["number"], 6);
    let path = format!("/api/v1/runs/{}", run["run"].as_str().unwrap());
    server.post(&format!("{path}/cancel"), &json!({})).await.expect(202);
    let ended = server.get(&format!("{path}/wait")).await.expect(200);
    assert_eq!(ended["status"], "cancelled", "{ended}");
}
