//! The native API: responses, failures, and refused callers.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use serde_json::{Value, json};
use wattle::error::Error;
use wattle::server::Server;
use wattle_kit::standin::Pattern;
use wattle_suite::answer::Answer;
use wattle_suite::event_stream::messages;
use wattle_suite::guests::root;
use wattle_suite::server::{Setup, TestServer};

const GRAPHS: &str = r#"
[graphs.count]
entry = "counter"
[graphs.count.channels.number]
schema = { type = "integer" }
[graphs.count.nodes.counter]
[graphs.errand]
entry = "call_then_wait"
[graphs.errand.channels.route]
[graphs.errand.channels.url]
[graphs.errand.channels.text]
[graphs.errand.channels.body]
[graphs.errand.nodes.call_then_wait]
[graphs.ask]
entry = "two_questions"
[graphs.ask.channels.route]
[graphs.ask.channels.url]
[graphs.ask.channels.status]
[graphs.ask.channels.text]
[graphs.ask.channels.answers]
[graphs.ask.nodes.two_questions]
"#;

async fn server() -> TestServer {
    Setup::misdeeds(GRAPHS).await.start().await
}

/// Starts a run that is interrupted by its first question.
async fn asking(server: &TestServer) -> String {
    let url = format!("{}/status/200", server.standin().base_url);
    let run = server.run("misdeeds", "ask", json!({ "url": url, "route": "chat" })).await;
    assert_eq!(run["status"], "interrupted", "{run}");
    run["thread"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn health_apps_graphs_and_plugins_are_described() {
    let server = server().await;
    let health = server.get("/api/v1/health").await.expect(200);
    assert_eq!(health["status"], "ok");
    assert_eq!(server.get("/healthz").await.status, 200);
    let apps = server.get("/api/v1/apps").await.expect(200);
    assert_eq!(apps[0]["name"], "misdeeds");
    assert_eq!(apps[0]["graphs"], json!(["ask", "count", "errand"]));
    let app = server.get("/api/v1/apps/misdeeds").await.expect(200);
    assert_eq!(app, apps[0]);
    let graph = server.get("/api/v1/apps/misdeeds/graphs/count").await.expect(200);
    assert_eq!(graph["definition"]["entry"], json!(["counter"]));
    let plugin = server.get("/api/v1/plugins/misdeeds").await.expect(200);
    let exports = ["wattle:plugin/node", "wattle:plugin/tool", "wattle:plugin/web"];
    assert_eq!(plugin[0]["exports"], json!(exports));
    assert_eq!(plugin[0]["grants"]["llm"], json!(["chat"]));
    assert_eq!(plugin[0]["grants"]["limits"]["cpu_ms"], 300);
    let imports = plugin[0]["imports"].as_array().unwrap();
    assert!(imports.contains(&json!("wattle:plugin/http")), "{imports:?}");
    assert!(!imports.iter().any(|it| it.as_str().unwrap().starts_with("wasi:")), "{imports:?}");
}

#[tokio::test]
async fn threads_are_listed_read_and_deleted() {
    let server = server().await;
    let waiting = asking(&server).await;
    server.clock().advance_ms(10);
    let run = server.run("misdeeds", "count", json!({ "number": 4 })).await;
    let done = run["thread"].as_str().unwrap();
    let ids = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["thread"].as_str().unwrap().to_owned()).collect()
    };
    let all = server.get("/api/v1/threads").await.expect(200);
    assert_eq!(ids(&all), [done, &waiting], "newest first");
    let open = server.get("/api/v1/threads?status=interrupted&app=misdeeds").await.expect(200);
    assert_eq!(ids(&open), [waiting.as_str()]);
    assert!(ids(&server.get("/api/v1/threads?app=other").await.expect(200)).is_empty());
    let page = server.get("/api/v1/threads?limit=1").await.expect(200);
    assert_eq!((ids(&page), &page["next_offset"]), (vec![done.to_owned()], &json!(1)));
    let next = server.get("/api/v1/threads?limit=1&offset=1").await.expect(200);
    assert_eq!(ids(&next), [waiting.as_str()]);

    let thread = server.get(&format!("/api/v1/threads/{done}")).await.expect(200);
    assert_eq!((&thread["status"], &thread["state"]), (&json!("idle"), &json!({ "number": 5 })));
    let history =
        server.get(&format!("/api/v1/threads/{done}/history?state=true")).await.expect(200);
    let states: Vec<&Value> =
        history.as_array().unwrap().iter().map(|it| &it["state"]["number"]).collect();
    assert_eq!(states, [5, 4]);

    for thread in [done, &waiting] {
        let path = format!("/api/v1/threads/{thread}");
        assert_eq!(server.delete(&path).await.status, 204);
        assert_eq!(server.get(&path).await.status, 404);
        assert_eq!(server.delete(&path).await.status, 404);
        assert_eq!(server.get(&format!("{path}/events")).await.status, 404);
    }
    assert_eq!(server.get("/api/v1/threads").await.body["items"], json!([]));
}

#[tokio::test]
async fn a_thread_continues_with_another_input() {
    let server = server().await;
    let start =
        |input: Value| json!({ "graph": "count", "input": input, "thread_id": "t", "wait": true });
    let path = "/api/v1/apps/misdeeds/runs";
    let first = server.post(path, &start(json!({ "number": 1 }))).await.expect(200);
    assert_eq!(first["state"]["number"], 2);
    let second = server.post(path, &start(json!({ "number": 10 }))).await.expect(200);
    assert_eq!((&second["thread"], &second["state"]["number"]), (&json!("t"), &json!(11)));
    assert_ne!(first["run"], second["run"]);
}

#[tokio::test]
async fn an_event_stream_resumes_after_any_event() {
    let server = server().await;
    let thread = asking(&server).await;
    let all = server.events(&thread).await;
    let numbers: Vec<u64> = all.iter().map(|message| message.id).collect();
    assert_eq!(numbers, (1..=all.len() as u64).collect::<Vec<_>>(), "no gaps");
    for message in &all {
        assert_eq!(message.data["seq"], message.id);
        assert_eq!(message.data["type"], message.event);
    }
    let path = format!("/api/v1/threads/{thread}/events?until=idle");
    for (seen, message) in all.iter().enumerate() {
        let request = server.request("GET", &path).header("last-event-id", message.id);
        let rest = Answer::of(request).await.expect(200);
        assert_eq!(messages(rest.as_str().unwrap()), all[seen + 1..], "after {}", message.id);
        let after = server.get(&format!("{path}&after={}", message.id)).await.expect(200);
        assert_eq!(after, rest);
    }
}

#[tokio::test]
async fn an_event_stream_resumes_after_a_disconnect_during_a_run() {
    let server = server().await;
    let gate = server.standin().gate(Pattern::path("/count/held"));
    let url = format!("{}/count/held", server.standin().base_url);
    let start = json!({ "graph": "errand", "input": { "url": url, "route": "chat" } });
    let run = server.post("/api/v1/apps/misdeeds/runs", &start).await.expect(202);
    let thread = run["thread"].as_str().unwrap();
    let path = format!("/api/v1/threads/{thread}/events");
    // The first connection reads the beginning up to the completion, and is dropped.
    let mut stream = server.request("GET", &path).send().await.unwrap().bytes_stream();
    let mut text = String::new();
    while !text.contains("event: called\n") || !text.ends_with("\n\n") {
        let piece = stream.next().await.expect("the stream continues").unwrap();
        text.push_str(std::str::from_utf8(&piece).unwrap());
    }
    drop(stream);
    let mut seen = messages(&text);
    gate.arrived(1).await.unwrap();
    gate.open();
    let last = seen.last().unwrap().id;
    let request =
        server.request("GET", &format!("{path}?until=idle")).header("last-event-id", last);
    let rest = Answer::of(request).await.expect(200);
    seen.extend(messages(rest.as_str().unwrap()));
    assert_eq!(seen, server.events(thread).await);
    assert_eq!(seen.last().unwrap().event, "run_ended");
}

#[tokio::test]
async fn a_trace_shows_steps_nodes_and_calls_with_tokens() {
    let server = server().await;
    let thread = asking(&server).await;
    let resume = format!("/api/v1/threads/{thread}/resume");
    for answer in ["a", "b"] {
        server.post(&resume, &json!({ "answers": { "": answer }, "wait": true })).await.expect(200);
    }
    let trace = server.get(&format!("/api/v1/threads/{thread}/trace")).await.expect(200);
    let runs = trace["runs"].as_array().unwrap();
    let reasons: Vec<&Value> = runs.iter().map(|run| &run["reason"]).collect();
    assert_eq!(reasons, ["input", "resume", "resume"]);
    assert_eq!(
        (&trace["totals"]["calls"], &trace["totals"]["model_calls"]),
        (&json!(2), &json!(1))
    );
    assert!(trace["totals"]["input_tokens"].as_u64().unwrap() > 0);
    let attempts = trace.pointer("/runs/2/steps/0/tasks/0/attempts").unwrap();
    assert_eq!(attempts[0]["replayed"], 2, "{attempts}");
    assert_eq!(runs[2]["answers"][0]["answer"], "b");
}

/// Returns requests that must fail, with status and code of each.
fn failing() -> Vec<(&'static str, &'static str, Option<Value>, u16, &'static str)> {
    let runs = "/api/v1/apps/misdeeds/runs";
    vec![
        ("GET", "/api/v1/nothing", None, 404, "not-found"),
        ("GET", "/api/v1/apps/nobody", None, 404, "not-found"),
        ("GET", "/api/v1/apps/misdeeds/graphs/none", None, 404, "not-found"),
        ("GET", "/api/v1/plugins/none", None, 404, "not-found"),
        ("GET", "/api/v1/threads/none", None, 404, "not-found"),
        ("GET", "/api/v1/runs/none", None, 404, "not-found"),
        ("GET", "/api/v1/threads?status=bored", None, 400, "invalid"),
        ("PUT", runs, Some(json!({})), 405, "method-not-allowed"),
        ("POST", runs, Some(json!({})), 400, "invalid"),
        ("POST", runs, Some(json!({ "graph": "none", "input": {} })), 404, "not-found"),
        ("POST", runs, Some(json!({ "input": {} })), 400, "invalid"),
        ("POST", runs, Some(json!({ "graph": "count", "input": { "other": 1 } })), 400, "invalid"),
        (
            "POST",
            runs,
            Some(json!({ "graph": "count", "input": { "number": "x" } })),
            400,
            "invalid",
        ),
        ("POST", "/api/v1/apps/nobody/runs", Some(json!({ "input": {} })), 404, "not-found"),
        ("POST", "/api/v1/threads/none/resume", Some(json!({})), 404, "not-found"),
        ("GET", "/apps/misdeeds/anything", None, 404, "not-found"),
        ("GET", "/api/v1/blobs/zz", None, 400, "invalid"),
    ]
}

#[tokio::test]
async fn failures_are_problem_documents_with_stable_codes() {
    let server = server().await;
    for (method, path, body, status, code) in failing() {
        let request = server.request(method, path);
        let request = match &body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = Answer::of(request).await;
        assert_eq!(
            (answer.status, answer.body["code"].as_str()),
            (status, Some(code)),
            "{method} {path} {body:?}: {}",
            answer.body
        );
        assert_eq!(answer.header("content-type"), "application/problem+json", "{method} {path}");
        assert_eq!(answer.body["type"], format!("urn:wattle:problem:{code}"));
        assert_eq!(answer.body["status"], status);
        for field in ["title", "detail"] {
            assert!(answer.body[field].as_str().is_some_and(|text| !text.is_empty()), "{field}");
        }
    }
    let thread = asking(&server).await;
    let resume = format!("/api/v1/threads/{thread}/resume");
    let wrong = server.post(&resume, &json!({ "answers": { "unknown": 1 } })).await;
    assert_eq!((wrong.status, wrong.body["code"].as_str()), (409, Some("conflict")));
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let setup = Setup::misdeeds(GRAPHS).await;
    let server = setup
        .replace(
            "[server]\n",
            "[server]\nhosts = [\"wattle.test\"]\norigins = [\"https://ui.test\"]\n",
        )
        .start()
        .await;
    for (host, status) in [
        ("localhost:8700", 200),
        ("wattle.test", 200),
        ("evil.test", 421),
        ("localhost.evil.test", 421),
    ] {
        let answer = Answer::of(server.request("GET", "/api/v1/apps").header("host", host)).await;
        assert_eq!(answer.status, status, "{host}");
    }
    let run = json!({ "graph": "count", "input": { "number": 1 }, "wait": true });
    for (origin, status) in [("https://ui.test", 200), ("https://evil.test", 403), ("null", 403)] {
        let request = server.request("POST", "/api/v1/apps/misdeeds/runs").json(&run);
        let answer = Answer::of(request.header("origin", origin)).await;
        assert_eq!(answer.status, status, "{origin}: {}", answer.body);
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, if status == 200 { origin } else { "" });
    }
    let threads = server.get("/api/v1/threads").await.expect(200);
    assert_eq!(threads["items"].as_array().map(Vec::len), Some(1), "only one was allowed to run");
}

#[tokio::test]
async fn requests_without_a_configured_key_are_unauthorized() {
    let server = Setup::misdeeds(GRAPHS).await.with_keys("first, second").start().await;
    let apps = || server.request("GET", "/api/v1/apps");
    let refused = Answer::of(apps()).await;
    assert_eq!((refused.status, refused.body["code"].as_str()), (401, Some("unauthorized")));
    assert_eq!(refused.header("www-authenticate"), "Bearer");
    assert_eq!(Answer::of(apps().bearer_auth("third")).await.status, 401);
    assert_eq!(Answer::of(apps().bearer_auth("first")).await.status, 200);
    assert_eq!(Answer::of(apps().header("x-api-key", "second")).await.status, 200);
    assert_eq!(server.get("/apps/misdeeds/anything").await.status, 401);
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_public_address_without_keys_is_refused() {
    let setup = Setup::bare().await.replace("127.0.0.1:0", "0.0.0.0:0");
    let refused = Box::pin(Server::start(setup.config(), setup.options())).await;
    let error = refused.err().expect("an error at start");
    assert!(matches!(error, Error::PublicAddressWithoutKeys { .. }), "{error}");
    assert!(error.to_string().contains("keys_env"), "{error}");
}

#[tokio::test]
async fn the_openapi_document_lists_exactly_the_routes() {
    let server = server().await;
    let document = server.get("/openapi.json").await.expect(200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    // Those of apps are not in these files.
    let paths = document["paths"].as_object().unwrap();
    let documented = paths.keys().filter(|path| !path.starts_with("/apps/")).cloned();
    let documented: BTreeSet<String> = documented.collect();
    let mut declared = BTreeSet::new();
    let folders = [
        "host/api/src/native",
        "host/agent-server/src/route",
        "host/agent-server/src/route/assistants",
    ];
    let files = folders.into_iter().flat_map(|folder| root().join(folder).read_dir().unwrap());
    let files = files.map(|file| file.unwrap().path()).filter(|path| path.is_file());
    for file in files.chain([root().join("host/api/src/blob_link.rs")]) {
        let text = std::fs::read_to_string(file).unwrap();
        for piece in text.split("path = \"").skip(1) {
            declared.insert(piece.split('"').next().unwrap().to_owned());
        }
    }
    assert!(declared.len() > 10, "{declared:?}");
    assert_eq!(documented, declared);
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            let place = format!("{method} {path}");
            assert!(
                operation["summary"].is_string() || operation["description"].is_string(),
                "{place}"
            );
            assert!(operation["responses"].as_object().is_some_and(|it| !it.is_empty()), "{place}");
        }
    }
}
