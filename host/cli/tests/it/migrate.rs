//! Migrations of all threads of an app by the command line.

use serde_json::{Value, json};
use wattle::load::Change;

use crate::binary::said;
use crate::fixture::{BRIEF_STOP, Fixture, GRAPH};
use crate::native_sandbox::SLOW;

/// The number of threads whose run has failed. A page of the list that a migration reads has fewer.
const FAILED: usize = 101;

#[tokio::test]
async fn threads_of_an_app_are_migrated_and_those_that_cannot_be_are_named() {
    let fixture = Fixture::start(BRIEF_STOP).await;
    let start = async |thread: &str, name: &str, wait: bool| {
        let start = json!({ "input": { "name": name }, "thread_id": thread, "wait": wait });
        let (status, run) = fixture.post("/api/v1/apps/greeter/runs", &start).await;
        assert!(status < 300, "{run}");
    };
    for number in 0..FAILED {
        start(&format!("failed-{number}"), "fail: no", true).await;
    }
    start("waiting", "Ada", true).await;
    start("running", SLOW, false).await;
    let graph = GRAPH.replace("[graphs.Greet.channels.greeting]\n", "");
    std::fs::write(fixture.folder.path().join("plugins/greeter/graph.toml"), graph).unwrap();
    let changes = fixture.server.reload().await;
    assert!(matches!(changes[..], [Change::App { .. }]), "{changes:?}");
    start("new", SLOW, false).await;

    let migrate = async |args: &[&str]| {
        let folder = fixture.folder.path().to_owned();
        let all = [&["thread", "migrate", "--app", "greeter"][..], args].concat();
        let all: Vec<String> = all.into_iter().map(str::to_owned).collect();
        let migrate = move || {
            let args: Vec<&str> = all.iter().map(String::as_str).collect();
            said(&folder, &args, None)
        };
        tokio::task::spawn_blocking(migrate).await.unwrap()
    };
    let (_, dry) = migrate(&["--dry-run"]).await;
    assert!(dry.ends_with("would migrate 101, unchanged 1, not migrated 2\n"), "{dry}");
    let (all_migrated, text) = migrate(&[]).await;
    assert!(!all_migrated);
    assert!(text.ends_with("\nmigrated 101, unchanged 1, not migrated 2\n"), "{text}");
    let reason = |thread: &str| {
        let beginning = format!("thread `{thread}` cannot be migrated: ");
        text.lines().find_map(|line| line.strip_prefix(&beginning)).unwrap_or_default()
    };
    assert!(reason("waiting").contains("`greeting`") && !reason("running").is_empty(), "{text}");

    let (_, text) = migrate(&["--graph", "Greet", "--drop", "--json"]).await;
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["migrated"], &report["unchanged"]), (&json!(1), &json!(102)), "{report}");
    assert_eq!(report["not_migrated"][0]["thread"], "running", "{report}");
    let (is_found, text) = migrate(&["--graph", "Greeting"]).await;
    assert!(!is_found && text.contains("`Greeting`"), "{text}");
    fixture.server.shutdown().await;
}
