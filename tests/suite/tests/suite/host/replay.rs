//! Exports of a real application's thread, which the real binary replays without any of its
//! services.

use serde_json::{Value, json};
use wattle_kit::standin;
use wattle_suite::binary::{self, CommandOutput};
use wattle_suite::workspace::{self, Workspace};

const SENTENCE: &str = r#"{"textInput": "昨天买入腾讯 100 股 320"}"#;

async fn run(workspace: &Workspace, args: &[&str]) -> CommandOutput {
    binary::run(workspace, args).await
}

/// Creates a folder with a finished thread of the asset application, whose services are stopped.
async fn finished() -> (Workspace, String) {
    let standin = standin::Server::start(standin::Config::default()).await.unwrap();
    let workspace = Workspace::new();
    workspace.share_compiled_code();
    let toml = [workspace::base_toml(&standin), workspace::asset_toml(&standin, "sqlite:asset.db")]
        .concat();
    workspace.write("wattle.toml", toml);
    let waiting =
        run(&workspace, &["run", "asset", "--json", "--quiet", "--input", SENTENCE]).await;
    assert_eq!(waiting.code, 5, "{}", waiting.text());
    let thread = waiting.json()["thread"].as_str().unwrap().to_owned();
    let mut database = wattle_suite::asset::open_sqlite(&workspace.data().join("asset.db")).await;
    sqlx::query("INSERT INTO \"Portfolio\" (\"name\") VALUES ('长期')")
        .execute(&mut database)
        .await
        .unwrap();
    let view = run(&workspace, &["thread", "show", &thread, "--json"]).await.json();
    let rows = &view["interrupts"][0]["payload"]["rows"];
    let answer =
        json!({ "rows": rows, "riskCategory": "aggressive", "portfolioId": 1 }).to_string();
    let output =
        run(&workspace, &["thread", "resume", &thread, "--quiet", "--answer", &answer]).await;
    assert_eq!(output.code, 0, "{}", output.text());
    (workspace, thread)
}

#[tokio::test]
async fn a_finished_thread_replays_without_its_services() {
    let (workspace, thread) = finished().await;
    let replayed = run(&workspace, &["replay", &thread, "--json"]).await;
    assert_eq!(replayed.code, 0, "{}", replayed.text());
    let report = replayed.json();
    assert_eq!(report["divergences"], json!([]));
    assert!(report["tasks"].as_u64() >= Some(3), "{report}");
    assert!(report["calls"].as_u64() >= Some(2), "{report}");
    let exported = run(&workspace, &["thread", "export", &thread, "--file", "thread.jsonl"]).await;
    assert_eq!(exported.code, 0, "{}", exported.text());
    let of_file = run(&workspace, &["replay", "thread.jsonl", "--json"]).await;
    assert_eq!(of_file.json(), report, "{}", of_file.text());
    let verified = run(&workspace, &["trace", &thread, "--verify", "--json"]).await.json();
    let text = std::fs::read_to_string(workspace.root().join("thread.jsonl")).unwrap();
    let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(verified["seal"], header["seal"]);
    assert_eq!(verified["sealed_after"], 0);
}

/// Creates a folder like on another machine: without plugins and with an empty configuration.
fn elsewhere() -> Workspace {
    let workspace = Workspace::new();
    workspace.share_compiled_code();
    workspace.write("wattle.toml", "");
    assert_eq!(std::fs::read_dir(workspace.plugins()).map_or(0, Iterator::count), 0);
    workspace
}

#[tokio::test]
async fn an_export_is_self_contained() {
    let (workspace, thread) = finished().await;
    let here = run(&workspace, &["replay", &thread, "--json"]).await.json();
    let exported = run(&workspace, &["thread", "export", &thread, "--file", "thread.jsonl"]).await;
    assert_eq!(exported.code, 0, "{}", exported.text());
    let text = std::fs::read_to_string(workspace.root().join("thread.jsonl")).unwrap();
    drop(workspace);
    let workspace = elsewhere();
    workspace.write("thread.jsonl", &text);
    let there = run(&workspace, &["replay", "thread.jsonl", "--json"]).await;
    assert_eq!((there.code, there.json()), (0, here), "{}", there.text());

    // Code that does not match its digest is not executed.
    let digest = "plugins\":{\"asset\":\"";
    let at = text.find(digest).unwrap() + digest.len();
    let other = if &text[at..=at] == "0" { "1" } else { "0" };
    let lie = format!("{}{other}{}", &text[..at], &text[at + 1..]);
    workspace.write("lie.jsonl", lie);
    let refused = run(&workspace, &["replay", "lie.jsonl"]).await;
    assert_eq!(refused.code, 2, "{}", refused.text());
    assert!(refused.stderr.contains("component `asset`"), "{}", refused.stderr);
    let kept = |line: &&str| !line.starts_with("{\"code\"") && !line.starts_with("{\"rules\"");
    let without: Vec<&str> = text.lines().filter(kept).collect();
    workspace.write("without.jsonl", without.join("\n"));
    let refused = run(&workspace, &["replay", "without.jsonl"]).await;
    assert_eq!(refused.code, 2, "{}", refused.text());
    assert!(refused.stderr.contains("export the thread with its code"), "{}", refused.stderr);
}

#[tokio::test]
async fn code_and_blobs_can_be_left_out() {
    let (workspace, thread) = finished().await;
    let args = ["thread", "export", &thread, "--no-code", "--no-blobs", "--file", "small.jsonl"];
    assert_eq!(run(&workspace, &args).await.code, 0);
    let text = std::fs::read_to_string(workspace.root().join("small.jsonl")).unwrap();
    for part in ["{\"code\"", "{\"rules\"", "{\"blob\""] {
        assert!(!text.lines().any(|line| line.starts_with(part)), "{part}");
    }
    let replayed = run(&workspace, &["replay", "small.jsonl"]).await;
    assert_eq!(replayed.code, 0, "{}", replayed.text());
    assert!(replayed.stdout.contains(" are the same, 0 differences"), "{}", replayed.stdout);
}

#[tokio::test]
async fn an_edited_export_is_refused_with_the_event() {
    let (workspace, thread) = finished().await;
    run(&workspace, &["thread", "export", &thread, "--file", "thread.jsonl"]).await;
    let file = workspace.root().join("thread.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let edited = text.replacen("aggressive", "moderate", 1);
    assert_ne!(edited, text);
    std::fs::write(&file, edited).unwrap();
    let refused = run(&workspace, &["replay", "thread.jsonl"]).await;
    assert_eq!(refused.code, 2, "{}", refused.text());
    assert!(refused.stderr.contains("was changed"), "{}", refused.stderr);
}

#[tokio::test]
async fn a_current_thread_has_no_migration_and_no_pending_calls() {
    let (workspace, thread) = finished().await;
    let report = run(&workspace, &["thread", "migrate", &thread, "--dry-run", "--json"]).await;
    assert_eq!(report.code, 0, "{}", report.text());
    assert_eq!(report.json()["from"], report.json()["to"]);
    let calls = run(&workspace, &["thread", "calls", &thread, "--json"]).await;
    assert_eq!(calls.json(), json!([]));
    let pruned = run(&workspace, &["thread", "prune", &thread]).await;
    assert_eq!(pruned.code, 0, "{}", pruned.text());
    let compacted = run(&workspace, &["store", "compact", "--json"]).await.json();
    assert!(compacted["after_bytes"].as_u64() <= compacted["before_bytes"].as_u64());
    let shown = run(&workspace, &["thread", "show", &thread, "--json"]).await;
    assert_eq!(shown.json()["status"], "idle", "{}", shown.text());
}
