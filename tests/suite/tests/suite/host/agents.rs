//! The official clients of LangGraph, unmodified, on a real server with the reference graphs.

mod load;
mod pictures;
mod react;
mod schema;
mod shapes;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::process::Command;
use wattle_kit::need;
use wattle_kit::needs::{self, LeftOut, clients};
use wattle_kit::standin::{Fault, FaultRule, Pattern, StreamQuirks};
use wattle_suite::guests;
use wattle_suite::server::{Setup, TestServer};

/// Maximum duration of all scenarios of a client.
const PATIENCE: Duration = Duration::from_mins(4);

/// The apps, and their folders below `tests/clients`.
const APPS: [(&str, &str); 2] = [("reference", "graphs"), ("talker", "talker")];

/// Scenarios of runs that pause or end before the client has opened its connections.
const SHORT_RUNS: [&str; 3] =
    ["short.a_run_behind_another", "short.a_run_that_ends", "short.a_run_that_pauses"];

/// Default number of times that each of [`SHORT_RUNS`] is read; [`READS`] overrides it.
const FEW: u32 = 3;

/// Environment variable with the number of reads for a long test.
const READS: &str = "WATTLE_SHORT_RUNS";

/// Maximum duration of one read of each of [`SHORT_RUNS`].
const PATIENCE_OF_READ: Duration = Duration::from_secs(30);

/// Scenarios about features that the older client for Python lacks.
const PYTHON_LACKS: [&str; 12] = [
    "crons.an_end_is_taken_back",
    "cut.a_run_at_work_is_found_again",
    "cut.a_wait_is_taken_up_behind_a_cut",
    "human.a_strict_answer_is_refused_later",
    "remote.typed_events",
    "short.a_run_behind_another",
    "short.a_run_that_ends",
    "short.a_run_that_pauses",
    "states.fields_are_selected",
    "typed.an_answer",
    "typed.messages_in_pieces",
    "typed.tools_and_custom_events",
];

/// Scenarios about features that the older client for JavaScript lacks.
const JAVASCRIPT_LACKS: [&str; 10] = [
    "behind_a_cut",
    "crons_that_change",
    "pages_of_assistants",
    "parts_of_threads",
    "several_are_cancelled",
    "short_runs",
    "short_runs_by_socket",
    "tool_calls",
    "typed_events",
    "typed_events_by_socket",
];

/// A text after which the model pauses for `PAUSE_MS` between its deltas.
const SLOWLY: &str = "take your time";

/// Longer than a cancel may take in the scenarios.
const PAUSE_MS: u64 = 4_000;

/// Creates a server with the reference graphs and a graph that calls a model.
pub(super) async fn setup() -> Setup {
    let mut setup = Setup::bare().await;
    setup.workspace.write("plugins/std/std.wasm", guests::bytes("wattle-std"));
    let clients = guests::root().join("tests/clients");
    for (app, folder) in APPS {
        for file in ["app.toml", "graph.toml"] {
            let content = std::fs::read(clients.join(folder).join(file)).unwrap();
            setup.workspace.write(&format!("apps/{app}/{file}"), content);
        }
        setup = setup.with(&format!("[apps.{app}]\npath = \"apps/{app}\"\n"));
    }
    setup.workspace.write("apps/reference/reference.wasm", guests::bytes("wattle-app-reference"));
    setup
}

/// Creates a thread.
async fn thread(server: &TestServer) -> String {
    let made = server.post("/threads", &json!({ "metadata": {} })).await.expect(200);
    made["thread_id"].as_str().unwrap().to_owned()
}

/// Pauses between the deltas of the completions of a text.
fn pauses(text: &str, pause_ms: u64) -> FaultRule {
    let on = Pattern { body_contains: Some(text.to_owned()), ..Pattern::model("chat") };
    FaultRule::new(on, Fault::Stream(StreamQuirks { pause_ms, ..StreamQuirks::default() }))
}

/// Runs scenarios of a client and returns their results. The client leaves out the scenarios in
/// `lacks`, and no others.
async fn all_pass(mut command: Command, patience: Duration, lacks: &[&str]) -> Map<String, Value> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(patience, command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    let mut report: Value = serde_json::from_slice(&ended.stdout).expect(&said);
    assert!(ended.status.success(), "{:#}\n{said}", report["failed"]);
    let left_out = report["left_out"].as_object().unwrap().keys().map(String::as_str);
    let left_out: BTreeSet<&str> = left_out.collect();
    let lacks: BTreeSet<&str> = lacks.iter().copied().collect();
    assert_eq!(left_out, lacks, "{:#}", report["left_out"]);
    let Value::Object(passed) = report["passed"].take() else { panic!("{report:#}") };
    passed
}

/// Prints the duration of cancels, as clients measured it.
#[expect(clippy::print_stdout, reason = "a number that depends on the machine is no condition")]
fn show_cancels(passed: &Map<String, Value>) {
    for (name, returned) in passed {
        if let Some(took_ms) = returned.get("cancel_ms") {
            println!("{name}: the run ended {took_ms} ms after the cancel was sent");
        }
    }
}

/// Returns the program with the scenarios for Python, to run with a Python of an installed client.
fn python_program(python: PathBuf) -> Command {
    let mut command = Command::new(python);
    command.arg("-B").arg(guests::root().join("tests/clients/langgraph-py/main.py"));
    command
}

/// Runs the scenarios for Python with the packages of an installed client.
async fn python(client: &str, lacks: &[&str]) -> Result<Map<String, Value>, LeftOut> {
    let mut command = python_program(clients::python(client, "python")?);
    let server = setup().await.start().await;
    // Once: the thread is used again, and its conversation still contains the text.
    server.standin().fault(pauses(SLOWLY, PAUSE_MS).times(1));
    command.arg(server.url(""));
    Ok(all_pass(command, PATIENCE, lacks).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_for_python_works_unmodified() {
    let passed = need!(python("langgraph-py", &[]).await);
    assert!(passed.len() >= 65, "{passed:#?}");
    show_cancels(&passed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_client_for_python_works_unmodified() {
    let passed = need!(python("langgraph-py-older", &PYTHON_LACKS).await);
    assert!(passed.len() >= 55, "{passed:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_for_python_reads_short_runs_of_guests() {
    let mut command = python_program(need!(clients::python("langgraph-py", "python")));
    let server = setup().await.start().await;
    let reads: u32 = needs::setting(READS).unwrap_or(FEW);
    command.args(["--times", &reads.to_string()]).arg(server.url("")).args(SHORT_RUNS);
    let passed = all_pass(command, PATIENCE_OF_READ * reads, &[]).await;
    assert_eq!(passed.len(), SHORT_RUNS.len(), "{passed:#?}");
}

/// Runs the scenarios for JavaScript with the packages of an installed client.
async fn javascript(client: &str, lacks: &[&str]) -> Result<Map<String, Value>, LeftOut> {
    let mut command = Command::new("node");
    // Node.js 20 has the class `WebSocket` only with this option; later versions accept it.
    command.arg("--experimental-websocket").arg(clients::node(client)?.join("main.mjs"));
    let server = setup().await.start().await;
    command.arg(server.url(""));
    Ok(all_pass(command, PATIENCE, lacks).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_for_javascript_works_unmodified() {
    let passed = need!(javascript("langgraph-js", &[]).await);
    assert!(passed.len() >= 25, "{passed:#?}");
    show_cancels(&passed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_client_for_javascript_works_unmodified() {
    let passed = need!(javascript("langgraph-js-older", &JAVASCRIPT_LACKS).await);
    assert!(passed.len() >= 15, "{passed:#?}");
}
