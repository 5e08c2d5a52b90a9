//! Text of clients, models and plugins in ids and on the screens of the command line.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::id::{AppName, GraphName, ThreadId};
use wattle_run::ports::Store as _;
use wattle_run::ports::store::{Batch, ThreadRecord};
use wattle_store::InMemoryStore;

use crate::binary::said;
use crate::fixture::Fixture;
use crate::native_sandbox::FAILING;

/// A text that clears a terminal, and whose second line looks like one of the host.
const HOSTILE: &str = "a\u{1b}[2J\nERROR forged\u{9b}31m";

/// [`HOSTILE`] on one line.
const ESCAPED: &str = r"a\u{1b}[2J\nERROR forged\u{9b}31m";

/// Returns what a command prints that connects to the server of a fixture.
async fn printed(fixture: &Fixture, args: &'static [&'static str]) -> String {
    let folder = fixture.folder.path().to_owned();
    let (_, text) = tokio::task::spawn_blocking(move || said(&folder, args, None)).await.unwrap();
    let is_raw = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!text.contains(is_raw), "{args:?}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("ERROR")), "{args:?}: {text}");
    text
}

#[tokio::test]
async fn new_threads_and_runs_have_no_control_characters_in_their_ids() {
    let fixture = Fixture::start("").await;
    let start = json!({ "input": { "name": "Ada" }, "thread_id": "t", "wait": true });
    assert_eq!(fixture.post("/api/v1/apps/greeter/runs", &start).await.0, 200);
    let ag_ui = |thread: &str, run: &str| {
        json!({
            "threadId": thread, "runId": run, "protocolVersion": "1.0", "messages": [],
            "state": { "name": "Ada" }, "tools": [], "context": [], "forwardedProps": {},
        })
    };
    let edit = json!({ "app": "greeter", "supersteps": [[
        { "as_node": "__input__", "values": { "name": "Eve" } }
    ]] });
    let graph = "/api/v1/apps/greeter/graphs/Greet/ag-ui";
    for (path, body) in [
        ("/api/v1/apps/greeter/runs", json!({ "input": {}, "thread_id": HOSTILE })),
        ("/api/v1/threads/t/copy", json!({ "thread_id": HOSTILE })),
        (
            "/api/v1/threads/t/fork",
            json!({ "checkpoint": 1, "copy": true, "thread_id": HOSTILE, "wait": true }),
        ),
        ("/api/v1/threads/a%1B%5B2J%0AERROR%20forged%C2%9B31m/edits", edit),
        (graph, ag_ui(HOSTILE, "r1")),
        (graph, ag_ui("u", HOSTILE)),
    ] {
        let (status, problem) = fixture.post(path, &body).await;
        assert_eq!((status, &problem["code"]), (400, &json!("invalid")), "{path}: {problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("it has a control character"), "{path}: {detail}");
        assert!(detail.contains(ESCAPED), "{path}: {detail}");
    }
    let (_, listed) = fixture.get("/api/v1/threads").await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
}

#[tokio::test]
async fn threads_of_earlier_hosts_are_read_and_shown_escaped() {
    let store = Arc::new(InMemoryStore::new());
    let id = ThreadId::new(HOSTILE).unwrap();
    let record = ThreadRecord {
        app: AppName::new("greeter").unwrap(),
        graph: GraphName::new("Greet").unwrap(),
        ..ThreadRecord::unbound(id.clone(), 0)
    };
    let batch = Batch { record: Some(record), ..Batch::default() };
    store.append(&id, batch).await.await.unwrap();
    let fixture = Fixture::start_on(store).await;
    let listed = printed(&fixture, &["thread", "list"]).await;
    assert!(listed.lines().nth(1).unwrap().starts_with(ESCAPED), "{listed}");
    let listed: Value =
        serde_json::from_str(&printed(&fixture, &["thread", "list", "--json"]).await).unwrap();
    assert_eq!(listed["items"][0]["thread"], HOSTILE);
    let trace = printed(&fixture, &["trace", HOSTILE]).await;
    assert!(trace.contains(ESCAPED), "{trace}");
}

#[tokio::test]
async fn states_and_questions_are_shown_escaped() {
    let fixture = Fixture::start("").await;
    let start = json!({ "input": { "name": HOSTILE }, "thread_id": "t", "wait": true });
    let (_, run) = fixture.post("/api/v1/apps/greeter/runs", &start).await;
    assert_eq!(run["interrupts"][0]["payload"]["about"], format!("hello {HOSTILE}"), "{run}");
    let shown = printed(&fixture, &["thread", "show", "t"]).await;
    let json = r#""about": "hello a\u001b[2J\nERROR forged\u009b31m""#;
    assert!(shown.contains(json), "{shown}");
    printed(&fixture, &["trace", "t"]).await;
}

/// The argument of a run that fails with the message [`HOSTILE`].
const INPUT: &str = r#"--input={ "name": "fail: a\u001b[2J\nERROR forged\u009b31m" }"#;

#[tokio::test]
async fn a_message_of_a_failing_node_is_one_line() {
    let fixture = Fixture::start("").await;
    let name = format!("{FAILING}{HOSTILE}");
    let start = json!({ "input": { "name": name }, "thread_id": "t", "wait": true });
    let (_, run) = fixture.post("/api/v1/apps/greeter/runs", &start).await;
    assert!(run["failure"]["message"].as_str().unwrap().ends_with(HOSTILE), "{run}");
    let commands: [(&'static [&'static str], &str); 5] = [
        (&["thread", "show", "t"], "failure  rude: "),
        (&["thread", "state", "t"], "failed: rude: "),
        (&["trace", "t"], "failed"),
        (&["run", "greeter", INPUT], "greet failed: rude: "),
        (&["run", "greeter", INPUT, "--quiet"], "error: the run failed: rude: "),
    ];
    for (command, before) in commands {
        let shown = printed(&fixture, command).await;
        let is_shown = |line: &str| line.contains(before) && line.contains(ESCAPED);
        assert!(shown.lines().any(is_shown), "{command:?}: {shown}");
    }
}
