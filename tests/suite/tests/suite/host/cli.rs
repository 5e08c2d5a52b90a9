//! The command line with the real binary: its output as text and JSON, and its exit codes.

use serde_json::{Value, json};
use wattle_kit::standin::{self, Handle};
use wattle_suite::binary::{self, CommandOutput};
use wattle_suite::workspace::{self, Workspace};

const SENTENCE: &str = r#"{"textInput": "昨天买入腾讯 100 股 320"}"#;

/// A folder with the asset application and the misdeeds guest, at a fixed time.
pub(super) struct Scene {
    pub(super) workspace: Workspace,
    standin: Handle,
}

impl Scene {
    pub(super) async fn new() -> Self {
        let standin = standin::Server::start(standin::Config::default()).await.unwrap();
        let workspace = Workspace::new();
        workspace.share_compiled_code();
        let clock = "[clock]\nfixed = \"2025-01-15T10:30:45+08:00\"\n";
        let toml = [
            workspace::base_toml(&standin).replace("[clock]\n", clock),
            workspace::asset_toml(&standin, "sqlite:asset.db"),
        ];
        workspace.write("wattle.toml", toml.concat());
        Self { workspace, standin }
    }

    pub(super) async fn run(&self, args: &[&str]) -> CommandOutput {
        binary::run(&self.workspace, args).await
    }

    /// Starts a run that is interrupted by a review, and returns its thread.
    async fn waiting(&self) -> String {
        let output = self.run(&["run", "asset", "--json", "--quiet", "--input", SENTENCE]).await;
        assert_eq!(output.code, 5, "{}", output.text());
        output.json()["thread"].as_str().unwrap().to_owned()
    }
}

/// Compares a text with a snapshot, without the values that differ from run to run.
fn snapshot(name: &str, scene: &Scene, text: &str) {
    let folder = scene.workspace.root().canonicalize().unwrap();
    let mut text = text.replace(&folder.display().to_string(), "[FOLDER]");
    text = text.replace(&scene.workspace.root().display().to_string(), "[FOLDER]");
    text = text.replace(&scene.standin.addr.to_string(), "[STANDIN]");
    text = text.replace(&format!("port\":{}", scene.standin.addr.port()), "port\":[PORT]");
    insta::with_settings!({
        filters => vec![
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[ID]"),
            (r"\b[0-9a-f]{64}\b", "[DIGEST]"),
            (r"\b[0-9a-f]{12}\b", "[HEX]"),
            (r"\b[0-9a-f]{16,32}\b", "[HEX]"),
            // Whether a component is compiled depends on the tests that have shared its code.
            (r"(?m)^(compiling|still compiling|compiled) `.*\n", ""),
            (r"\b\d+(\.\d)?(us|ms|s)\b", "[TIME]"),
            (r#""duration_us": \d+"#, r#""duration_us": [TIME]"#),
            (r#""(size_bytes|request_bytes|answer_bytes|written_bytes|input_tokens|output_tokens)": \d+"#, r#""$1": [NUMBER]"#),
            (r"\b\d+(\.\d+)? ?[KMG]iB\b", "[SIZE]"),
            (r"\b\d+ ?B\b", "[SIZE]"),
            (r"has \S+ free, and nothing begins below \S+", "has [SIZE] free, and nothing begins below [SIZE]"),
            (r"\d+ \+ \d+ tokens", "[NUMBER] + [NUMBER] tokens"),
            (r"\d+ tokens in, \d+ out", "[NUMBER] tokens in, [NUMBER] out"),
            (r"\buid:\d+", "uid:[UID]"),
            (r"and \d+ more\b", "and [NUMBER] more"),
            (r"vm.max_map_count = \d+", "vm.max_map_count = [NUMBER]"),
            // Whether the connection pool or the doctor times out first depends on milliseconds.
            (r"fail  database asset: .*", "fail  database asset: [REASON]"),
        ],
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, text);
    });
}

fn confirmed(thread: &Value, portfolio: i64) -> String {
    let rows = &thread["interrupts"][0]["payload"]["rows"];
    json!({ "rows": rows, "riskCategory": "aggressive", "portfolioId": portfolio }).to_string()
}

/// Inserts a portfolio. The command line has no verb for data of the application.
async fn portfolio(scene: &Scene) {
    let file = scene.workspace.data().join("asset.db");
    let mut database = wattle_suite::asset::open_sqlite(&file).await;
    let insert = "INSERT INTO \"Portfolio\" (\"name\") VALUES ('长期')";
    sqlx::query(insert).execute(&mut database).await.unwrap();
}

#[tokio::test]
async fn an_interrupted_run_shows_how_to_resume_it() {
    let scene = Scene::new().await;
    let output = scene.run(&["run", "asset", "--input", SENTENCE]).await;
    assert_eq!(output.code, 5, "{}", output.text());
    assert!(output.stderr.contains("wattle thread resume "), "{}", output.stderr);
    snapshot("run", &scene, &output.text());
}

#[tokio::test]
async fn inputs_can_come_from_files_and_stdin() {
    let scene = Scene::new().await;
    scene.workspace.write("input.json", SENTENCE);
    let of_file = scene.run(&["run", "asset", "--json", "--input", "@input.json"]).await;
    let piped = ["run", "asset/AssetGraph", "--json", "--quiet", "--input", "-"];
    let of_stdin = binary::run_with_stdin(&scene.workspace, &piped, SENTENCE).await;
    for output in [&of_file, &of_stdin] {
        assert_eq!(output.code, 5, "{}", output.text());
        let row = output.json()["interrupts"][0]["payload"]["rows"][0].clone();
        assert_eq!(row["ticker"], "0700.HK");
    }
    assert!(of_file.stderr.contains("text_classify done"), "progress: {}", of_file.stderr);
    assert!(of_stdin.stderr.is_empty(), "quiet: {}", of_stdin.stderr);
    let wrong = scene.run(&["run", "asset", "--input", "{"]).await;
    assert_eq!(wrong.code, 2, "{}", wrong.text());
}

#[tokio::test]
async fn a_resume_finishes_the_run_and_a_second_one_is_refused() {
    let scene = Scene::new().await;
    let thread = scene.waiting().await;
    portfolio(&scene).await;
    let view = scene.run(&["thread", "show", &thread, "--json"]).await.json();
    let answer = confirmed(&view, 1);
    let output = scene.run(&["thread", "resume", &thread, "--answer", &answer]).await;
    assert_eq!(output.code, 0, "{}", output.text());
    snapshot("resume", &scene, &output.text());
    let again = scene.run(&["thread", "resume", &thread, "--answer", &answer]).await;
    assert_eq!(again.code, 1, "{}", again.text());
    let again = scene.run(&["thread", "resume", &thread, "--answer", &answer, "--json"]).await;
    assert_eq!((again.code, &again.json()["code"]), (1, &json!("conflict")));
}

#[tokio::test]
async fn a_failed_run_has_its_own_exit_code() {
    let scene = Scene::new().await;
    let thread = scene.waiting().await;
    let view = scene.run(&["thread", "show", &thread, "--json"]).await.json();
    // There is no such portfolio.
    let args =
        ["thread", "resume", &thread, "--answer", &confirmed(&view, 9), "--reopen", "--json"];
    let output = scene.run(&args).await;
    assert_eq!(output.code, 6, "{}", output.text());
    assert_eq!(output.json()["failure"]["code"], "validation");
    let view = scene.run(&["thread", "show", &thread, "--json"]).await.json();
    assert_eq!(view["status"], "interrupted", "the interrupt is reopened");
}

#[tokio::test]
async fn threads_are_listed_shown_and_deleted() {
    let scene = Scene::new().await;
    let thread = scene.waiting().await;
    for (name, args) in [
        ("thread_list", &["thread", "list"][..]),
        ("thread_list_json", &["thread", "list", "--json"]),
        ("thread_show", &["thread", "show", &thread]),
        ("thread_show_json", &["thread", "show", &thread, "--json"]),
        ("thread_history", &["thread", "history", &thread]),
        ("thread_history_json", &["thread", "history", &thread, "--json"]),
        ("thread_delete", &["thread", "delete", &thread]),
        ("thread_list_empty", &["thread", "list", "--status", "interrupted"]),
        ("thread_show_none", &["thread", "show", &thread]),
        ("thread_show_none_json", &["thread", "show", &thread, "--json"]),
    ] {
        snapshot(name, &scene, &scene.run(args).await.text());
    }
    let gone = scene.run(&["thread", "delete", &thread, "--json"]).await;
    assert_eq!((gone.code, &gone.json()["code"]), (4, &json!("not-found")));
}

#[tokio::test]
async fn a_trace_is_a_tree_of_nodes_and_calls() {
    let scene = Scene::new().await;
    let thread = scene.waiting().await;
    snapshot("trace", &scene, &scene.run(&["trace", &thread]).await.text());
    let trace = scene.run(&["trace", &thread, "--json"]).await.json();
    assert_eq!((&trace["thread"], &trace["totals"]["model_calls"]), (&json!(thread), &json!(2)));
    let missing = scene.run(&["trace", "none"]).await;
    assert_eq!(missing.code, 4, "{}", missing.text());
}

#[tokio::test]
async fn graphs_are_shown_and_checked() {
    let scene = Scene::new().await;
    snapshot("graph_show", &scene, &scene.run(&["graph", "show", "asset"]).await.text());
    let shown = scene.run(&["graph", "show", "asset/AssetGraph", "--json"]).await.json();
    assert_eq!(shown[0]["graph"], "AssetGraph");
    let checked = scene.run(&["graph", "check", "asset"]).await;
    assert_eq!((checked.code, checked.stdout.as_str()), (0, "no problems in AssetGraph\n"));
    let checked = scene.run(&["graph", "check", "asset", "--json"]).await.json();
    assert_eq!(checked, json!({ "graphs": ["AssetGraph"], "problems": [] }));
}

/// A graph with several problems.
const BAD: &str = r#"[graphs.bad]
entry = "first"
[graphs.bad.channels.number]
schema = { type = "nonsense" }
[graphs.bad.nodes.counter]
[graphs.bad.nodes.dreamer]
[[graphs.bad.edges]]
from = "counter"
to = "nowhere"
[[graphs.bad.branches]]
name = "choose"
from = "counter"
cases = [{ when = "state.number >", to = "counter" }]
"#;

#[tokio::test]
async fn a_bad_graph_shows_all_problems_with_their_lines() {
    let scene = Scene::new().await;
    scene.workspace.add_misdeeds(BAD);
    let folder = "plugins/misdeeds";
    let checked = scene.run(&["graph", "check", folder]).await;
    assert_eq!(checked.code, 1);
    snapshot("graph_check_bad", &scene, &checked.text());
    let checked = scene.run(&["graph", "check", folder, "--json"]).await;
    assert_eq!(checked.code, 1);
    let problems = checked.json()["problems"].clone();
    let problems = problems.as_array().unwrap();
    assert!(problems.len() >= 5, "{problems:?}");
    assert!(problems.iter().all(|problem| problem["line"].is_u64()), "{problems:?}");
}

#[tokio::test]
async fn plugins_are_listed_and_inspected() {
    let scene = Scene::new().await;
    scene.workspace.add_misdeeds(super::sandbox::graphs().as_str());
    let listed = scene.run(&["plugin", "list", "--json"]).await.json();
    let names: Vec<&Value> = listed.as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["asset", "misdeeds"]);
    let listed = scene.run(&["plugin", "list"]).await;
    let line = r#"add `http = [{ host = "127.0.0.1", scheme = "http", methods = ["GET"], private = true }]`"#;
    assert!(listed.stderr.contains(line), "missing grants: {}", listed.stderr);
    let table = listed.stdout;
    // The width of columns depends on sizes, which change with every build of a guest.
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["plugin", "app", "contract", "size", "nodes", "digest"]);
    assert_eq!(rows[1][..3], ["asset", "asset", "0.1.0"]);
    let words = scene.run(&["plugin", "inspect", "asset"]).await;
    snapshot("plugin_inspect", &scene, &words.stdout);
    let asset = scene.run(&["plugin", "inspect", "asset", "--json"]).await.json();
    assert_eq!(asset[0]["nodes"].as_array().map(Vec::len), Some(9));
    assert_eq!(asset[0]["grants"]["sql"], json!({ "asset": "read-write" }));
    let file = "plugins/misdeeds/misdeeds.wasm";
    let of_file = scene.run(&["plugin", "inspect", file, "--json"]).await.json();
    let nodes = of_file[0]["nodes"].as_array().unwrap();
    assert!(nodes.iter().any(|node| node["name"] == "counter"), "{nodes:?}");
    assert_eq!(scene.run(&["plugin", "inspect", "nobody"]).await.code, 4);
}

#[tokio::test]
async fn doctor_reports_problems_of_the_configuration() {
    let scene = Scene::new().await;
    let healthy = scene.run(&["doctor"]).await;
    assert_eq!(healthy.code, 0, "{}", healthy.text());
    snapshot("doctor", &scene, &healthy.text());
    let checks = scene.run(&["doctor", "--json"]).await.json();
    assert!(checks.as_array().unwrap().iter().all(|check| check["status"] == "ok"), "{checks}");

    let toml = std::fs::read_to_string(scene.workspace.config()).unwrap();
    let toml = toml
        .replace("127.0.0.1:0", "0.0.0.0:0")
        .replace("SUITE_MODEL_KEY", "NOT_SET")
        .replace("SUITE_MASSIVE_KEY", "NOT_SET_EITHER")
        .replace("model.routes.light", "model.routes.lihgt")
        .replace("sqlite:asset.db", "postgres://somebody:hunter2@127.0.0.1:1/asset");
    scene.workspace.write("wattle.toml", toml);
    let ill = scene.run(&["doctor"]).await;
    assert_eq!(ill.code, 1, "{}", ill.text());
    assert!(!ill.text().contains("hunter2"), "{}", ill.text());
    snapshot("doctor_ill", &scene, &ill.text());
}

#[tokio::test]
async fn commands_use_the_server_that_has_the_store_open() {
    let scene = Scene::new().await;
    let mut server = binary::serve(&scene.workspace).await;
    let thread = scene.waiting().await;
    let listed = scene.run(&["thread", "list", "--json"]).await.json();
    assert_eq!(listed["items"][0]["thread"], thread.as_str());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}/api/v1/threads/{thread}", server.url);
    assert_eq!(client.get(url).send().await.unwrap().status(), 200);
    let status = server.program.terminate().await.unwrap();
    assert_eq!(status.code(), Some(0), "the server stops cleanly: {}", server.program.output());
    let listed = scene.run(&["thread", "list", "--json"]).await.json();
    assert_eq!(listed["items"][0]["thread"], thread.as_str(), "from the store, without the server");
}

#[tokio::test]
async fn earlier_states_of_a_thread_are_shown_edited_and_forked() {
    let scene = Scene::new().await;
    let thread = scene.waiting().await;
    let first = ["thread", "state", &thread, "--checkpoint", "1", "--json"];
    let first = scene.run(&first).await.json();
    assert_eq!((&first["id"], &first["source"]), (&json!(1), &json!("input")));
    let words = scene.run(&["thread", "state", &thread]).await;
    assert!(words.stdout.contains("waits for "), "{}", words.text());
    let inputs = ["thread", "history", &thread, "--filter", "source=\"input\"", "--json"];
    assert_eq!(scene.run(&inputs).await.json().as_array().unwrap().len(), 1);
    let fork = ["thread", "fork", &thread, "--checkpoint", "1", "--copy", "--quiet", "--json"];
    let forked = scene.run(&fork).await;
    assert_eq!(forked.code, 5, "{}", forked.text());
    assert_ne!(forked.json()["thread"], thread.as_str(), "the fork is in a copy");
    let copy = scene.run(&["thread", "edit", &thread, "--as", "__copy__", "--json"]).await;
    assert_eq!((copy.code, &copy.json()["source"]), (0, &json!("update")), "{}", copy.text());
    let trace = scene.run(&["trace", &thread, "--json"]).await.json();
    let principal = &trace["changes"][0]["principal"];
    let user = principal["user"].as_str().unwrap_or_default();
    assert!(user.starts_with("uid:") && principal["local"] == true, "{trace}");
    let words = scene.run(&["trace", &thread]).await;
    let checkpoint = &copy.json()["id"];
    let line = format!("edited checkpoint {checkpoint} [by user {user}, local command]\n");
    assert!(words.stdout.contains(&line), "{}", words.text());
    let wrong = scene.run(&["thread", "edit", &thread, "--set", "nothing=1", "--json"]).await;
    assert_eq!((wrong.code, &wrong.json()["code"]), (2, &json!("invalid")), "{}", wrong.text());
    let call = scene.run(&["thread", "fork", &thread, "--call", "1"]).await;
    assert_eq!(call.code, 2, "a fork from a call needs a result: {}", call.text());
}
