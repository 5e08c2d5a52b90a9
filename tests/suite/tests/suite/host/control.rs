//! Run options through the real binary: breakpoints, limits, durability, drains and caches.

use serde_json::json;
use wattle_kit::standin::{self, Handle};
use wattle_suite::binary::{self, CommandOutput};
use wattle_suite::workspace::{self, Workspace};

/// Three nodes in a row, two in parallel, one with a cache, and an endless one.
const GRAPHS: &str = r#"
[graphs.row]
entry = "one"
edges = [{ from = "one", to = "two" }, { from = "two", to = "three" }]
[graphs.row.channels.number]
[graphs.row.nodes.one]
node = "counter"
[graphs.row.nodes.two]
node = "counter"
[graphs.row.nodes.three]
node = "counter"

[graphs.wide]
entry = ["left", "right"]
[graphs.wide.channels.number]
reducer = "sum"
[graphs.wide.nodes.left]
node = "counter"
[graphs.wide.nodes.right]
node = "counter"

[graphs.cached]
entry = "ungranted_http"
[graphs.cached.channels.url]
[graphs.cached.channels.status]
[graphs.cached.nodes.ungranted_http]
cache = { key = "input.url" }

[graphs.endless]
entry = "again"
recursion_limit = 1000000
edges = [{ from = "again", to = "again" }]
[graphs.endless.channels.number]
[graphs.endless.nodes.again]
node = "counter"
goto = "END"
"#;

struct Scene {
    workspace: Workspace,
    standin: Handle,
}

impl Scene {
    async fn new() -> Self {
        let standin = standin::Server::start(standin::Config::default()).await.unwrap();
        let workspace = Workspace::new();
        workspace.share_compiled_code();
        workspace.add_misdeeds(GRAPHS);
        let toml = [workspace::base_toml(&standin), workspace::misdeeds_toml(&standin)].concat();
        workspace.write("wattle.toml", toml);
        Self { workspace, standin }
    }

    /// Runs a command with JSON output.
    async fn json(&self, args: &[&str]) -> CommandOutput {
        binary::run(&self.workspace, &[args, &["--json"]].concat()).await
    }

    /// Starts a run of a graph with further arguments.
    async fn start(&self, graph: &str, input: &str, more: &[&str]) -> CommandOutput {
        let target = format!("misdeeds/{graph}");
        let args = ["run", target.as_str(), "--quiet", "--input", input];
        self.json(&[&args, more].concat()).await
    }

    async fn resume(&self, thread: &str, more: &[&str]) -> CommandOutput {
        self.json(&[&["thread", "resume", thread, "--quiet"], more].concat()).await
    }

    /// Returns the number of checkpoints of a thread.
    async fn checkpoints(&self, thread: &str) -> usize {
        let history = self.json(&["thread", "history", thread]).await.json();
        history.as_array().map_or(0, Vec::len)
    }
}

fn thread(output: &CommandOutput) -> String {
    output.json()["thread"].as_str().unwrap().to_owned()
}

#[track_caller]
fn assert_stopped_before(output: &CommandOutput, number: i64, next: &str) {
    let run = output.json();
    assert_eq!(output.code, 5, "{}", output.text());
    assert_eq!((&run["state"]["number"], &run["next"]), (&json!(number), &json!([next])), "{run}");
}

#[tokio::test]
async fn a_run_stops_before_and_after_given_nodes() {
    let scene = Scene::new().await;
    let first = scene.start("row", "{}", &["--interrupt-before", "two"]).await;
    assert_stopped_before(&first, 1, "two");
    let thread = thread(&first);
    let second = scene.resume(&thread, &["--interrupt-after", "one,two"]).await;
    assert_stopped_before(&second, 2, "three");
    // A breakpoint applies only to its run.
    let output = scene.resume(&thread, &[]).await;
    assert_eq!(
        (output.code, &output.json()["state"]["number"]),
        (0, &json!(3)),
        "{}",
        output.text()
    );
    assert_stopped_before(&scene.start("row", "{}", &["--interrupt-after", "*"]).await, 1, "two");
    let refused = scene.start("row", "{}", &["--interrupt-before", "nobody"]).await;
    let problem = refused.json();
    assert_eq!((refused.code, &problem["code"]), (2, &json!("invalid")), "{}", refused.text());
    let refused = scene.start("row", "{}", &["--interrupt-before", ""]).await;
    assert_eq!(refused.code, 2, "{}", refused.text());
}

#[tokio::test]
async fn a_run_fails_at_a_given_recursion_limit() {
    let scene = Scene::new().await;
    let failed = scene.start("row", "{}", &["--recursion-limit", "2"]).await;
    assert_eq!((failed.code, &failed.json()["failure"]["code"]), (6, &json!("limit")));
    let resumed = scene.resume(&thread(&failed), &["--recursion-limit", "1"]).await;
    assert_eq!((resumed.code, &resumed.json()["state"]["number"]), (0, &json!(3)));
    let refused = scene.start("row", "{}", &["--recursion-limit", "0"]).await;
    assert_eq!(refused.code, 2, "{}", refused.text());
}

#[tokio::test]
async fn a_concurrency_of_one_runs_tasks_sequentially() {
    let scene = Scene::new().await;
    let output = scene.start("wide", "{}", &["--max-concurrency", "1"]).await;
    assert_eq!(
        (output.code, &output.json()["state"]["number"]),
        (0, &json!(2)),
        "{}",
        output.text()
    );
    let thread = thread(&output);
    let exported = binary::run(&scene.workspace, &["thread", "export", "--no-code", &thread]).await;
    let words = exported.stdout.split("\"type\":\"").skip(1);
    let words = words.filter_map(|rest| rest.split('"').next());
    let tasks: Vec<&str> = words.filter(|word| word.starts_with("task_")).collect();
    let one = ["task_started", "task_finished"];
    assert_eq!(tasks, [one, one].concat(), "{}", exported.text());
}

#[tokio::test]
async fn durability_determines_the_stored_checkpoints() {
    let scene = Scene::new().await;
    // The checkpoint of the input is always stored first.
    for (mode, kept) in [("commit", 4), ("sync", 4), ("async", 4), ("exit", 2)] {
        let output = scene.start("row", "{}", &["--durability", mode]).await;
        assert_eq!((output.code, &output.json()["state"]["number"]), (0, &json!(3)), "{mode}");
        assert_eq!(scene.checkpoints(&thread(&output)).await, kept, "{mode}");
    }
    // The durability also applies to a resumed run.
    let first = scene.start("row", "{}", &["--interrupt-before", "two"]).await;
    let thread = thread(&first);
    let before = scene.checkpoints(&thread).await;
    let output = scene.resume(&thread, &["--durability", "exit"]).await;
    assert_eq!(
        (output.code, &output.json()["state"]["number"]),
        (0, &json!(3)),
        "{}",
        output.text()
    );
    assert_eq!(scene.checkpoints(&thread).await, before + 1);
    let refused = scene.start("row", "{}", &["--durability", "never"]).await;
    assert_eq!(refused.code, 2, "{}", refused.text());
}

#[tokio::test]
async fn a_run_of_a_server_is_drained_and_resumed() {
    let scene = Scene::new().await;
    let server = binary::serve(&scene.workspace).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let start = json!({ "graph": "endless", "input": {}, "thread_id": "t" });
    let url = format!("{}/api/v1/apps/misdeeds/runs", server.url);
    assert_eq!(client.post(url).json(&start).send().await.unwrap().status(), 202);
    let drained = scene.json(&["thread", "drain", "t"]).await;
    let run = drained.json();
    assert_eq!(drained.code, 0, "{}", drained.text());
    assert_eq!((&run["status"], &run["next"]), (&json!("interrupted"), &json!(["again"])));
    assert!(run["interrupts"].is_null(), "a drain has no interrupt: {run}");
    let shown = scene.json(&["thread", "show", "t"]).await.json();
    assert_eq!(shown["state"], run["state"], "the thread is unchanged");
    let words = binary::run(&scene.workspace, &["thread", "drain", "t"]).await;
    assert!(words.stdout.contains("continue with `wattle thread resume t`"), "{}", words.text());
    let output = scene.resume("t", &["--recursion-limit", "2"]).await;
    let number = run["state"]["number"].as_i64().unwrap();
    assert_eq!((output.code, &output.json()["failure"]["code"]), (6, &json!("limit")));
    assert_eq!(output.json()["state"]["number"], json!(number + 2), "{}", output.text());
    assert_eq!(scene.json(&["thread", "drain", "nobody"]).await.code, 4);
}

#[tokio::test]
async fn clearing_a_cache_deletes_the_entries_of_its_nodes() {
    let scene = Scene::new().await;
    let url = format!("{}/count/visits", scene.standin.base_url);
    let input = json!({ "url": url }).to_string();
    let visits = || scene.standin.requests().len();
    for _ in 0..2 {
        let output = scene.start("cached", &input, &[]).await;
        assert_eq!((output.code, &output.json()["state"]["status"]), (0, &json!(200)));
    }
    assert_eq!(visits(), 1, "the second one comes from the cache");
    for target in ["misdeeds/row", "misdeeds/cached/ungranted_http"] {
        let cleared = scene.json(&["graph", "clear-cache", target]).await;
        let entries = u8::from(target.contains("cached"));
        assert_eq!((cleared.code, &cleared.json()["cleared"]), (0, &json!(entries)), "{target}");
    }
    scene.start("cached", &input, &[]).await;
    assert_eq!(visits(), 2);
    let words = binary::run(&scene.workspace, &["graph", "clear-cache", "misdeeds"]).await;
    assert_eq!(words.stdout, "cleared 1 entries\n", "{}", words.text());
    assert_eq!(scene.json(&["graph", "clear-cache", "nobody"]).await.code, 4);
    assert_eq!(scene.json(&["graph", "clear-cache", "misdeeds/nowhere"]).await.code, 4);
}
