//! The data folder of a host from before types and fields were renamed: the current host reads it
//! and continues all of its runs. [`wattle_suite::before`] describes the folder.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use futures::stream;
use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};
use wattle_graph::id::Digest;
use wattle_kit::replay::Replays;
use wattle_kit::standin::{Entry, Outcome};
use wattle_suite::answer::Answer;
use wattle_suite::before::{
    self, CACHED, CRON_THREAD, GATED, HELD, HOOK, MORE, NAMES, RUNS, VISITS, WEBHOOK_THREAD,
    errand, lacking, url,
};
use wattle_suite::binary;
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::workspace::Workspace;

/// The threads without an active run: one of each kind.
const KINDS: [&str; 28] = [
    WEBHOOK_THREAD,
    CRON_THREAD,
    "asked-again",
    "breakpoint",
    "cached",
    "cancelled",
    "copied",
    "edited",
    "elicited",
    "errand",
    "failed",
    "finished",
    "forked",
    "forked-call",
    "handled",
    "nested",
    "parallel",
    "partly",
    "pending",
    "pruned",
    "reopened",
    "retried",
    "reused",
    "settled",
    "settled-call",
    "started",
    "stateless",
    "unpersisted",
];

/// The threads whose runs were cut, in an effect and in a model call.
const CUT: [&str; 2] = ["cut-call", "cut-model"];

/// The recorded requests, by the beginnings of their paths.
const DOCUMENTS: [&str; 12] = [
    "/api/v1/memory/items",
    "/api/v1/memory/items",
    "/api/v1/memory/namespaces",
    "/api/v1/memory/search",
    "/api/v1/tenants",
    "/assistants",
    "/assistants",
    "/threads",
    "/threads",
    "/threads",
    "/runs/crons",
    "/runs/crons/search",
];

/// Types of events in the logs.
const EVENTS: [&str; 15] = [
    "answered",
    "asked",
    "call_started",
    "called",
    "checkpointed",
    "custom",
    "forked",
    "reopened",
    "run_ended",
    "run_started",
    "settled",
    "streamed",
    "task_failed",
    "task_finished",
    "task_started",
];

/// The expected value at a path of the state, for each thread with unfinished work, after its run
/// has ended.
const ENDS: [(&str, &str, &str); 16] = [
    ("asked-again", "/answers", r#"["a", "b"]"#),
    ("breakpoint", "/number", "3"),
    ("copied", "/answers", r#"["a", "b"]"#),
    ("cut-call", "/results/0/structured/status", "201"),
    ("cut-model", "/url", r#""http://services.example/count/more""#),
    ("edited", "/number", "11"),
    ("elicited", "/results/0/text", r#""3""#),
    ("failed", "/url", r#""http://services.example/count/more""#),
    ("nested", "/answers", r#"["a", "b"]"#),
    ("parallel", "/answer", r#""x""#),
    ("parallel", "/answers", r#"["a", "b"]"#),
    ("partly", "/answers", r#"["a", "b"]"#),
    ("reopened", "/answers", r#"["a", "b"]"#),
    ("started", "/result/state/answers", r#"["a", "b"]"#),
    ("stateless", "/answers", r#"["a", "b"]"#),
    ("unpersisted", "/answers", r#"["a", "b"]"#),
];

/// Threads that are replayed.
const REPLAYED: [&str; 14] = [
    "cut-call",
    "edited",
    "elicited",
    "finished",
    "forked-call",
    "handled",
    "nested",
    "parallel",
    "retried",
    "reused",
    "settled",
    "settled-call",
    "started",
    "unpersisted",
];

/// Maximum number of resumes of a thread.
const ROUNDS: usize = 4;

/// Concurrent processes that replay.
const PROCESSES: usize = 4;

/// Time after which everything in the folder is due, in milliseconds.
const LATER_MS: u32 = 3_600_000;

/// Unpacks the folder into a test folder, and sets the clock to the time at which its host stopped.
async fn unpacked() -> (Setup, Replays, Value) {
    let (setup, replays) = before::setup().await;
    NAMES.unpack(&setup.workspace);
    let manifest = before::manifest();
    setup.clock.set_now_ms(manifest["clock_ms"].as_i64().unwrap());
    (setup, replays, manifest)
}

/// Makes the client use the API key of the recorded host.
fn with_key(mut server: TestServer, manifest: &Value) -> TestServer {
    let mut headers = HeaderMap::new();
    headers.insert("x-api-key", HeaderValue::from_str(text(&manifest["key"])).unwrap());
    server.client = Client::builder().no_proxy().default_headers(headers).build().unwrap();
    server
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn names(object: &Value) -> BTreeSet<&str> {
    object.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

/// Returns the answer to an interrupt of the folder.
fn answer(payload: &Value) -> Value {
    if payload.get("in_doubt").is_some() {
        return before::settled();
    }
    if payload["message"] == "Sure?" {
        return json!({ "action": "accept", "content": { "sure": true } });
    }
    let answers = [(json!(1), "a"), (json!(2), "b"), (json!("anything"), "x")];
    let found = answers.into_iter().find(|(question, _)| payload["question"] == *question);
    let (_, answer) = found.unwrap_or_else(|| panic!("an unknown question: {payload}"));
    json!(answer)
}

/// Resumes a thread with answers to all of its interrupts until its run has ended.
async fn ended(server: &TestServer, thread: &str) -> Value {
    let path = format!("/api/v1/threads/{thread}");
    for _ in 0..ROUNDS {
        let view = server.get(&path).await.expect(200);
        let open = view["interrupts"].as_array().into_iter().flatten();
        let answers = open.map(|it| (text(&it["id"]).to_owned(), answer(&it["payload"])));
        let answers: Map<String, Value> = answers.collect();
        let body = json!({ "answers": answers, "wait": true });
        let run = server.post(&format!("{path}/resume"), &body).await.expect(200);
        if run["status"] != "interrupted" {
            return run;
        }
    }
    panic!("thread `{thread}` has too many interrupts");
}

/// Waits for a run that the host recovers, and answers its interrupts.
async fn recovered(server: &TestServer, thread: &str, run: &str) -> Value {
    let run = server.get(&format!("/api/v1/runs/{run}/wait")).await.expect(200);
    if run["status"] == "interrupted" { ended(server, thread).await } else { run }
}

/// Returns the number of requests to a path of the services.
fn asked(server: &TestServer, path: &str) -> usize {
    server.standin().requests().iter().filter(|it| it.path == path).count()
}

/// Runs a command of the real binary that must succeed, and returns its output.
async fn command(workspace: &Workspace, args: &[&str]) -> Value {
    let output = binary::run(workspace, &[args, &["--json"]].concat()).await;
    assert_eq!(output.code, 0, "{args:?}: {}", output.text());
    output.json()
}

/// Replays a thread from a file, with the results of its journal only.
async fn replay(workspace: &Workspace, file: String) {
    let report = command(workspace, &["replay", &file]).await;
    assert_eq!(report["divergences"], json!([]), "{file}: {report}");
    assert!(report["tasks"].as_u64() > Some(0), "{file}: {report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_are_unchanged() {
    let (setup, _replays, manifest) = unpacked().await;
    let threads = &manifest["threads"];
    assert_eq!(names(threads), BTreeSet::from(KINDS));
    assert_eq!(names(&manifest["cut"]), BTreeSet::from(CUT));
    let server = with_key(setup.start().await, &manifest);
    let listed = server.get("/api/v1/threads?limit=500").await.expect(200);
    let listed = listed["items"].as_array().unwrap().iter().map(|it| text(&it["thread"]));
    let wanted: BTreeSet<&str> = KINDS.into_iter().chain(CUT).collect();
    assert_eq!(listed.collect::<BTreeSet<_>>(), wanted);

    let mut events = BTreeSet::new();
    for thread in KINDS {
        let found = before::record(&server, thread).await;
        let lacks = lacking(&found, &threads[thread]);
        assert!(lacks.is_empty(), "{thread}: {lacks:#?}");
        let trace = server.get(&format!("/api/v1/threads/{thread}/trace")).await.expect(200);
        assert_eq!(trace["thread"], thread);
        events.extend(server.events(thread).await.into_iter().map(|event| event.event));
    }
    let missing: Vec<_> = EVENTS.into_iter().filter(|name| !events.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?} are not in {events:?}");
}

/// The plugins folder is empty, so all code comes from the data folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_runs_continue_and_replay() {
    let (setup, _replays, manifest) = unpacked().await;
    let threads = &manifest["threads"];
    let is_waiting = |thread: &&str| threads[*thread]["thread"]["status"] != "idle";
    let waiting: BTreeSet<&str> = KINDS.into_iter().filter(is_waiting).chain(CUT).collect();
    assert_eq!(ENDS.map(|(thread, ..)| thread).into_iter().collect::<BTreeSet<_>>(), waiting);
    let server = with_key(setup.start().await, &manifest);
    for thread in waiting {
        let run = match manifest["cut"][thread].as_str() {
            Some(run) => recovered(&server, thread, run).await,
            None => ended(&server, thread).await,
        };
        assert_eq!(run["status"], "completed", "{thread}: {run}");
        for (_, place, wanted) in ENDS.into_iter().filter(|(name, ..)| *name == thread) {
            let wanted: Value = serde_json::from_str(wanted).unwrap();
            assert_eq!(run["state"].pointer(place), Some(&wanted), "{thread}: {run}");
        }
    }
    assert_eq!(asked(&server, VISITS), 0, "finished calls are not repeated");
    assert_eq!(asked(&server, HELD), 0, "an effect in doubt is not repeated");
    assert_eq!(asked(&server, MORE), 2, "unfinished runs make their calls");

    for thread in KINDS.into_iter().chain(CUT) {
        let path = format!("/api/v1/threads/{thread}");
        server.get(&format!("{path}/verify")).await.expect(200);
        let export = server.get(&format!("{path}/export?code=false")).await.expect(200);
        server.setup.workspace.write(&format!("{thread}.jsonl"), text(&export));
    }
    let TestServer { running, setup, .. } = server;
    running.shutdown().await;
    let workspace = &setup.workspace;
    workspace.share_compiled_code();
    assert_eq!(command(workspace, &["store", "verify"]).await["damaged"], json!([]));
    let replays = |thread: &str| replay(workspace, format!("{thread}.jsonl"));
    stream::iter(REPLAYED).for_each_concurrent(PROCESSES, replays).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_are_unchanged_and_due_work_starts() {
    let (setup, _replays, manifest) = unpacked().await;
    before::put_kept_app(&setup.workspace);
    let server = with_key(setup.start().await, &manifest);
    let requests = manifest["requests"].as_array().unwrap();
    assert_eq!(requests.len(), DOCUMENTS.len());
    for (request, path) in requests.iter().zip(DOCUMENTS) {
        assert!(text(&request["path"]).starts_with(path), "{path}: {request}");
        let found = before::ask(&server, request).await;
        let lacks = lacking(&found, &request["answer"]);
        assert!(lacks.is_empty(), "{}: {lacks:#?}", request["path"]);
    }
    let keys = server.get("/api/v1/keys").await.expect(200);
    assert_eq!((&keys[0]["name"], &keys[0]["scopes"]), (&json!("operator"), &json!(["admin"])));
    let stranger = Client::builder().no_proxy().build().unwrap();
    let refused = stranger.get(server.url("/api/v1/threads")).send().await.unwrap();
    assert_eq!(refused.status(), 401);
    let blob = text(&manifest["threads"]["finished"]["thread"]["state"]["kept"]);
    let path = format!("/api/v1/threads/finished/blobs/{blob}");
    let bytes = server.request("GET", &path).send().await.unwrap().bytes().await.unwrap();
    assert_eq!(format!("blob:{}", Digest::of(&bytes).to_hex()), blob);

    server.clock().advance_ms(LATER_MS);
    let server = with_key(server.restart().await, &manifest);
    let is_told = |it: &Entry| it.path == HOOK && it.outcome == Outcome::Answered;
    let told = server.standin().wait_for_request(is_told).await.unwrap();
    assert_eq!(told.body.unwrap()["thread_id"], WEBHOOK_THREAD);
    let pending = manifest["threads"]["pending"]["runs"].as_array().unwrap().last().unwrap();
    assert_eq!(pending["status"], "pending", "{pending}");
    let path = format!("/api/v1/runs/{}/wait", text(&pending["run"]));
    let begun = server.get(&path).await.expect(200);
    assert_eq!(begun["status"], "completed", "{begun}");
    let both_ran = |runs: &Answer| {
        let runs = runs.body.as_array().into_iter().flatten();
        runs.filter(|run| run["status"] == "success").count() == 2
    };
    server.until(&format!("/threads/{CRON_THREAD}/runs"), both_ran).await;
    let state = server.get(&format!("/threads/{CRON_THREAD}/state")).await.expect(200);
    assert_eq!(state["values"]["number"], 8, "{state}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cached_and_cancelled_results_are_reused() {
    let (setup, _replays, manifest) = unpacked().await;
    before::put_kept_app(&setup.workspace);
    let server = with_key(setup.start().await, &manifest);
    let run = async |thread: &str, graph: &str, input: Value| {
        let start = json!({ "graph": graph, "input": input, "thread_id": thread, "wait": true });
        let run = server.post(RUNS, &start).await.expect(200);
        assert_eq!(run["status"], "completed", "{run}");
        server.events(thread).await
    };
    let events = run("cached-again", "cached", json!({ "url": url(CACHED) })).await;
    assert!(events.iter().any(|it| it.data["cached"] == true), "{events:?}");
    assert_eq!(asked(&server, CACHED), 0);
    // The cancelled run had received its completion.
    let events = run("cancelled", "errand", errand(GATED)).await;
    assert!(events.iter().any(|it| it.data["reused"].is_u64()), "{events:?}");
    assert_eq!(asked(&server, GATED), 1);
}

#[tokio::test]
async fn the_store_is_intact_and_an_exported_thread_replays() {
    let (setup, _replays, _) = unpacked().await;
    setup.config();
    let workspace = &setup.workspace;
    workspace.share_compiled_code();
    let survey = command(workspace, &["store", "verify"]).await;
    let threads = json!(KINDS.len() + CUT.len());
    assert_eq!((&survey["threads"], &survey["damaged"]), (&threads, &json!([])), "{survey}");
    workspace.write("exported.jsonl", NAMES.read("exported.jsonl"));
    replay(workspace, "exported.jsonl".to_owned()).await;
}
