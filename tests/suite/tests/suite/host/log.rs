//! The event log of a thread over HTTP: pages, selections, outlines, and lists of its runs.

use serde_json::{Value, json};
use wattle_suite::answer::Answer;
use wattle_suite::event_stream::{Message, messages};
use wattle_suite::server::{Setup, TestServer};

const GRAPHS: &str = r#"
[graphs.count]
entry = "counter"
[graphs.count.channels.number]
schema = { type = "integer" }
[graphs.count.nodes.counter]
[graphs.ask]
entry = "two_questions"
[graphs.ask.channels.route]
[graphs.ask.channels.url]
[graphs.ask.channels.status]
[graphs.ask.channels.text]
[graphs.ask.channels.answers]
[graphs.ask.nodes.two_questions]
"#;

const RUNS: &str = "/api/v1/apps/misdeeds/runs";

async fn server() -> TestServer {
    Setup::misdeeds(GRAPHS).await.start().await
}

/// Runs a graph with an HTTP request, a question that is answered, a model call and a question that
/// is open. Returns the thread.
async fn asking(server: &TestServer) -> String {
    let url = format!("{}/status/200", server.standin().base_url);
    let run = server.run("misdeeds", "ask", json!({ "url": url, "route": "chat" })).await;
    assert_eq!(run["status"], "interrupted", "{run}");
    let thread = run["thread"].as_str().unwrap();
    let path = format!("/api/v1/threads/{thread}/resume");
    let answers = json!({ "answers": { "": "yes" }, "wait": true });
    let run = server.post(&path, &answers).await.expect(200);
    assert_eq!(run["status"], "interrupted", "{run}");
    thread.to_owned()
}

fn counting(thread: &str, number: u32) -> Value {
    json!({ "graph": "count", "input": { "number": number }, "thread_id": thread, "wait": true })
}

/// Runs a graph twice on the thread `t`. Returns the ids of the runs.
async fn two_runs(server: &TestServer) -> [String; 2] {
    let mut ids = [String::new(), String::new()];
    for (id, number) in ids.iter_mut().zip(1..) {
        let run = server.post(RUNS, &counting("t", number)).await.expect(200);
        run["run"].as_str().unwrap().clone_into(id);
    }
    ids
}

fn log_path(thread: &str, query: &str) -> String {
    format!("/api/v1/threads/{thread}/log?{query}")
}

/// Reads the log page by page. Returns the items, and the number of pages.
async fn all_pages(server: &TestServer, thread: &str, query: &str) -> (Vec<Value>, usize) {
    let (mut items, mut pages, mut after) = (Vec::new(), 0, 0);
    loop {
        let path = log_path(thread, &format!("{query}&after={after}"));
        let page = server.get(&path).await.expect(200);
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        pages += 1;
        match page.get("next_after") {
            Some(next) => after = next.as_u64().unwrap(),
            None => return (items, pages),
        }
    }
}

fn documents(events: &[Message]) -> Vec<Value> {
    events.iter().map(|event| event.data.clone()).collect()
}

#[tokio::test]
async fn pages_of_the_log_have_every_event_once() {
    let server = server().await;
    let thread = asking(&server).await;
    let events = server.events(&thread).await;
    let (items, pages) = all_pages(&server, &thread, "limit=2").await;
    assert_eq!(items, documents(&events));
    assert_eq!(pages, events.len().div_ceil(2));
    let whole = server.get(&log_path(&thread, "")).await.expect(200);
    assert_eq!((&whole["items"], &whole["last_seq"]), (&json!(items), &json!(events.len())));
    assert_eq!(whole.get("next_after"), None);
    let past_the_end = server.get(&log_path(&thread, "after=9999")).await.expect(200);
    assert_eq!(past_the_end, json!({ "items": [], "last_seq": events.len() }));
}

#[tokio::test]
async fn pages_have_only_the_selected_run_and_types() {
    let server = server().await;
    let [first, second] = two_runs(&server).await;
    let events = server.events("t").await;
    for run in [&first, &second] {
        let of_run = events.iter().filter(|event| event.data["run"] == **run).cloned();
        let of_run: Vec<Message> = of_run.collect();
        let (items, _) = all_pages(&server, "t", &format!("run={run}")).await;
        assert_eq!(items, documents(&of_run), "{run}");
        let described = server.get(&format!("/api/v1/runs/{run}")).await.expect(200);
        assert_eq!(described["first_seq"], of_run[0].id, "the first page begins at the run");
        let page = server.get(&log_path("t", &format!("run={run}&limit=1"))).await.expect(200);
        assert_eq!(page["items"], json!([of_run[0].data]), "{run}");
    }
    let wanted = ["run_started", "run_ended"];
    let (items, _) = all_pages(&server, "t", "types=run_started,run_ended").await;
    let types: Vec<&str> = items.iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(types, [wanted, wanted].concat());
    let page = server.get(&log_path("t", "types=run_ended&limit=1")).await.expect(200);
    assert_eq!((&page["items"], &page["next_after"]), (&json!([]), &json!(1)));
}

#[tokio::test]
async fn outlines_have_sizes_in_place_of_requests_and_results() {
    let server = server().await;
    let thread = asking(&server).await;
    let events = server.events(&thread).await;
    let (outlines, _) = all_pages(&server, &thread, "outline=true&limit=3").await;
    assert_eq!(outlines.len(), events.len());
    let mut functions = Vec::new();
    for (outline, event) in outlines.iter().zip(&events) {
        let event = &event.data;
        for field in ["seq", "at_ms", "run", "type", "task", "node", "call"] {
            assert_eq!(outline.get(field), event.get(field), "{field} of {outline}");
        }
        if event["type"] == "called" {
            functions.push(event["function"].as_str().unwrap());
            assert!(outline.get("request").or(outline.get("result")).is_none(), "{outline}");
            assert_eq!(outline["request_bytes"], event["request"].to_string().len());
            assert_eq!(outline["result_bytes"], event["result"]["Ok"].to_string().len());
            assert_eq!(outline["digest"], event["digest"], "{outline}");
            assert!(outline["result_digest"].is_string(), "{outline}");
            assert_eq!(outline.get("tokens"), event.get("tokens"), "{outline}");
        }
    }
    let mut calls = outlines.iter().filter(|outline| outline["type"] == "called");
    let completion = calls.find(|outline| outline["function"] == "llm.complete");
    let completion = completion.unwrap_or_else(|| panic!("no model call: {functions:?}"));
    let source = (&completion["provider"], &completion["tries"]);
    assert_eq!(source, (&json!("standin"), &json!(1)), "{completion}");
    let asked = outlines.iter().find(|outline| outline["type"] == "asked").unwrap();
    let payload = &events.iter().find(|event| event.event == "asked").unwrap().data["payload"];
    assert_eq!(asked["payload"], json!({ "bytes": payload.to_string().len(), "value": payload }));
}

#[tokio::test]
async fn a_stream_of_selected_outlines_resumes() {
    let server = server().await;
    let thread = asking(&server).await;
    let (items, _) = all_pages(&server, &thread, "types=called,asked&outline=true").await;
    assert!(items.len() > 1, "{items:?}");
    let path =
        format!("/api/v1/threads/{thread}/events?until=idle&outline=true&types=called,asked");
    let text = server.get(&path).await.expect(200);
    let all = messages(text.as_str().unwrap());
    assert_eq!(documents(&all), items);
    for (seen, message) in all.iter().enumerate() {
        assert_eq!(
            (&message.data["seq"], &message.data["type"]),
            (&json!(message.id), &json!(message.event))
        );
        let request = server.request("GET", &path).header("last-event-id", message.id);
        let rest = Answer::of(request).await.expect(200);
        assert_eq!(messages(rest.as_str().unwrap()), all[seen + 1..], "after {}", message.id);
    }
}

#[tokio::test]
async fn another_tenant_reads_no_log() {
    let server = Setup::misdeeds(GRAPHS).await.with_tenants().start().await;
    let request = server.request_of(Some("red"), "POST", RUNS).json(&counting("t", 1));
    let run = Answer::of(request).await.expect(200);
    let run = run["run"].as_str().unwrap();
    for query in ["", "outline=true", &format!("run={run}")] {
        for (tenant, status) in [("red", 200), ("blue", 404)] {
            let request = server.request_of(Some(tenant), "GET", &log_path("t", query));
            assert_eq!(Answer::of(request).await.status, status, "{tenant}: {query}");
        }
    }
}

#[tokio::test]
async fn invalid_selections_are_refused() {
    let server = server().await;
    two_runs(&server).await;
    let other = asking(&server).await;
    let runs = server.get(&format!("/api/v1/threads/{other}/runs")).await.expect(200);
    let of_other = format!("run={}", runs[0]["run"].as_str().unwrap());
    for (query, status, code) in [
        ("types=called,nothing", 400, "invalid"),
        ("types=", 400, "invalid"),
        ("after=first", 400, "invalid"),
        ("outline=perhaps", 400, "invalid"),
        ("before=1", 400, "invalid"),
        ("run=unknown", 404, "not-found"),
        (of_other.as_str(), 404, "not-found"),
    ] {
        let refused = server.get(&log_path("t", query)).await;
        assert_eq!(
            (refused.status, refused.body["code"].as_str()),
            (status, Some(code)),
            "{query}"
        );
    }
    let refused = server.get("/api/v1/threads/t/events?types=nothing").await;
    assert_eq!(refused.status, 400);
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("`nothing`") && detail.contains("task_finished"), "{detail}");
    assert_eq!(server.get(&log_path("nobody", "")).await.status, 404);
}

#[tokio::test]
async fn runs_are_listed_in_both_orders() {
    let server = server().await;
    let [first, second] = two_runs(&server).await;
    let list = async |query: &str| {
        let runs = server.get(&format!("/api/v1/threads/t/runs?{query}")).await.expect(200);
        let runs = runs.as_array().unwrap().iter();
        runs.map(|run| run["run"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list("").await, [first.clone(), second.clone()]);
    assert_eq!(list("order=oldest").await, [first.clone(), second.clone()]);
    assert_eq!(list("order=newest").await, [second.clone(), first.clone()]);
    assert_eq!(list("order=newest&limit=1").await, [second]);
    assert_eq!(list("order=newest&limit=1&offset=1").await, [first]);
    assert_eq!(server.get("/api/v1/threads/t/runs?order=best").await.status, 400);
}
