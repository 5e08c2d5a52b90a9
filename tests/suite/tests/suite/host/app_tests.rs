//! Tests of an app: cases that answer calls themselves, and threads that were exported as tests.

use std::fs;

use serde_json::{Value, json};
use wattle_suite::binary::{self, CommandOutput};
use wattle_suite::guests;
use wattle_suite::workspace::{HEAD_TOML, Workspace};

/// A graph of one node that sends a request, asks, calls a model, and asks again.
const QUESTIONS: &str = r#"
[graphs.main]
entry = "two_questions"
channels.url = {}
channels.route = {}
channels.status = {}
channels.text = {}
channels.answers = {}
nodes.two_questions = {}
"#;

/// Five cases, of which the first two pass.
const CASES: &str = r#"
{"name": "answered", "input": {"url": "http://127.0.0.1/quotes", "route": "chat"}, "answers": ["a", "b"], "calls": [{"llm": {"route": "chat", "messages": {"$contains": {"role": "user"}}}, "text": "fine"}, {"http": {"url": {"$matches": "/quotes$"}}, "status": 203}], "expect": {"/status": "completed", "/state/status": 203, "/state/text": "fine", "/state/answers": ["a", "b"]}}
{"name": "is-not-granted", "input": {"url": "https://example.com/", "route": "chat"}, "expect": {"/status": "failed", "/failure/code": "denied", "/failure/message": {"$contains": "is not allowed to send `GET`"}}}
{"name": "misses-a-call", "input": {"url": "http://127.0.0.1/quotes", "route": "chat"}, "answers": ["a"], "calls": [{"http": {}, "status": 203}], "expect": {"/interrupt/text": "fine"}}
{"name": "has-another-call", "input": {"url": "http://127.0.0.1/", "route": "chat"}, "calls": [{"http": {}}, {"llm": {}, "text": "a"}], "expect": {"/interrupt/question": 1}}
{"name": "fails-as-a-service-does", "input": {"url": "http://127.0.0.1/", "route": "chat"}, "calls": [{"http": {}, "failure": {"code": "timeout"}}], "expect": {"/state/status": 200}}
"#;

/// A graph of one node that counts.
const COUNT: &str = "[graphs.main]\nentry = \"counter\"\nchannels.number = {}\n\
                     nodes.counter = {}\n";

/// The graph with a second node that counts.
const COUNT_TWICE: &str = "nodes.again = { node = \"counter\" }\n\
                           [[graphs.main.edges]]\nfrom = \"counter\"\nto = \"again\"\n";

/// An app with one node that calls a tool.
const DESK: &str = "[app]\nname = \"desk\"\nversion = \"0.1.0\"\n\
                    [components]\ndesk = \"desk.wasm\"\n\
                    [needs]\ntools = [\"shop/*\"]\n";

const CALL: &str = "[graphs.main]\nentry = \"call_tool\"\nchannels.call = {}\n\
                    channels.results = {}\nnodes.call_tool = {}\n";

/// What the operator grants the app and a typed component.
const FOLDER: &str = r#"
[apps.desk]
[grants.desk]
tools = ["shop/*"]
[grants.shop]
environment = { REGION = "north" }
folders = [{ path = "reports", guest = "/reports", access = "read-write" }]
"#;

/// Three cases that pass. The second one reads what the first one has written.
const FILES: &str = r#"
{"name": "writes", "input": {"call": {"tool": "place_write", "arguments": {"path": "/reports/day.txt", "text": "done"}}}, "expect": {"/state/results/0/is_error": false}}
{"name": "reads", "input": {"call": {"tool": "place_read", "arguments": {"path": "/reports/day.txt"}}}, "expect": {"/state/results/0/text": "done"}}
{"name": "has-no-variable", "input": {"call": {"tool": "place_variable", "arguments": {"name": "REGION"}}}, "expect": {"/state/results/0/text": "null"}}
"#;

fn workspace(graph: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.share_compiled_code();
    workspace.add_misdeeds(graph);
    workspace.write("wattle.toml", format!("{HEAD_TOML}[apps.misdeeds]\n"));
    workspace
}

async fn run(workspace: &Workspace, args: &[&str]) -> CommandOutput {
    binary::run(workspace, args).await
}

#[tokio::test]
async fn cases_answer_the_calls_of_their_runs() {
    let workspace = workspace(QUESTIONS);
    workspace.write("plugins/misdeeds/tests/cases.jsonl", CASES);
    let output = run(&workspace, &["test", "misdeeds", "--json"]).await;
    assert_eq!(output.code, 1, "{}", output.text());
    let report = output.json();
    assert_eq!((&report["passed"], &report["failed"]), (&json!(2), &json!(3)), "{report:#}");
    let test = |name: &str| -> &Value {
        let tests = report["tests"].as_array().unwrap();
        tests.iter().find(|test| test["name"] == name).unwrap()
    };
    assert_eq!(
        (&test("answered")["passed"], &test("answered")["kind"]),
        (&json!(true), &json!("case"))
    );
    assert_eq!(test("is-not-granted")["passed"], true);
    let missed = test("misses-a-call")["failure"]["message"].as_str().unwrap();
    assert!(missed.contains("no entry under `calls` of case `misses-a-call`"), "{missed}");
    let unused = &test("has-another-call")["checks"][1];
    assert_eq!(
        (&unused["pointer"], &unused["expected"]["text"]),
        (&json!("/calls/1"), &json!("a"))
    );
    assert_eq!(test("fails-as-a-service-does")["failure"]["code"], "timeout");
    let threads = run(&workspace, &["thread", "list", "--json"]).await.json();
    assert_eq!(threads["items"], json!([]), "tests leave no threads");

    let only = run(&workspace, &["test", "misdeeds", "--only", "answered"]).await;
    assert_eq!(only.code, 0, "{}", only.text());
    assert!(only.stdout.ends_with("1 passed, 0 failed\n"), "{}", only.text());
    let unknown = run(&workspace, &["test", "misdeeds", "--only", "answerd"]).await;
    assert_eq!(unknown.code, 4, "{}", unknown.text());
    assert!(unknown.stderr.contains("did you mean `answered`?"), "{}", unknown.text());
}

#[tokio::test]
async fn a_case_leaves_the_folders_of_typed_components_as_they_are() {
    let workspace = Workspace::new();
    workspace.share_compiled_code();
    workspace.write("plugins/shop.wasm", guests::bytes("wattle-guest-typed"));
    workspace.write("plugins/desk/desk.wasm", guests::bytes("wattle-guest-tools"));
    workspace.write("plugins/desk/app.toml", DESK);
    workspace.write("plugins/desk/graph.toml", CALL);
    workspace.write("plugins/desk/tests/cases.jsonl", FILES);
    workspace.write("wattle.toml", format!("{HEAD_TOML}{FOLDER}"));
    let reports = workspace.root().join("reports");
    fs::create_dir(&reports).unwrap();
    let output = run(&workspace, &["test", "desk"]).await;
    assert_eq!(output.code, 0, "{}", output.text());
    assert_eq!(fs::read_dir(&reports).unwrap().count(), 0);
}

#[tokio::test]
async fn a_thread_becomes_a_test_of_later_code() {
    let workspace = workspace(COUNT);
    let output = run(&workspace, &["run", "misdeeds", "--json", "--quiet"]).await;
    assert_eq!(output.code, 0, "{}", output.text());
    let thread = output.json()["thread"].as_str().unwrap().to_owned();
    let file = workspace.plugins().join("misdeeds/tests/count.thread");
    fs::create_dir(file.parent().unwrap()).unwrap();
    let path = file.to_str().unwrap();
    let args = ["thread", "export", &thread, "--as-test", "--file", path];
    let exported = run(&workspace, &args).await;
    assert_eq!(exported.code, 0, "{}", exported.text());
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("uid:") && !text.contains("\n{\"code\""), "{text}");

    let same = run(&workspace, &["test", "misdeeds", "--json"]).await;
    assert_eq!(same.code, 0, "{}", same.text());
    assert_eq!(same.json()["tests"][0]["replay"]["tasks"], 1);

    // A description changes the version of the graph, and nothing that its nodes do.
    let described = COUNT.replace("entry", "doc = \"counts\"\nentry");
    workspace.write("plugins/misdeeds/graph.toml", described);
    let same = run(&workspace, &["test", "misdeeds"]).await;
    assert_eq!(same.code, 0, "{}", same.text());

    workspace.write("plugins/misdeeds/graph.toml", format!("{COUNT}{COUNT_TWICE}"));
    let other = run(&workspace, &["test", "misdeeds"]).await;
    assert_eq!(other.code, 1, "{}", other.text());
    assert!(other.stdout.starts_with("failed  count ("), "{}", other.text());
    assert!(other.stdout.contains("the writes lead to another checkpoint"), "{}", other.text());
}

#[tokio::test]
async fn an_app_without_tests_and_a_thread_of_another_app_are_told() {
    let workspace = workspace(COUNT);
    let none = run(&workspace, &["test", "misdeeds"]).await;
    assert_eq!(none.code, 4, "{}", none.text());
    assert!(none.stderr.contains("has no tests") && none.stderr.contains("--as-test"));
    workspace.write("plugins/misdeeds/tests/broken.thread", "{}\n");
    let broken = run(&workspace, &["test", "misdeeds"]).await;
    assert_eq!(broken.code, 1, "{}", broken.text());
    assert!(broken.stdout.contains("is not a valid export record"), "{}", broken.text());
}
