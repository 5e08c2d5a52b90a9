//! Stream formats and file projections of an app.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wattle::env::ReadEnv;
use wattle::load::Change;

use crate::fixture::{Fixture, GRAPH, options, write_app};
use crate::native_sandbox::LOGGED;
use crate::operations::{FLOOR, GIB, TestDisk};

const STREAM: &str = r#"
prelude = "greetings"
[constants.texts]
greet = "greeting"
ask = "asking"
[[messages]]
on = "checkpointed"
when = "event.source == 'input'"
event = "begin"
data = { thread = "=thread", color = "=settings.color", seq = "=seq", who = "=state.name" }
[[messages]]
on = ["task_started", "task_finished"]
event = "=event.type == 'task_started' ? 'step_start' : 'step_end'"
data = { text = "=constants.texts[event.node]", seq = "=seq", at = "=time" }
[[messages]]
on = "run_ended"
event = "end"
data = { status = "=event.status", "greeting?" = "=state.greeting", "failure?" = "=event.failure.message", seq = "=seq" }
"#;

const FILES: &str = r#"
[files.node_io]
event = "node_io"
dir = "local_logs/node_io"
path = "{session_id}/{stamp}-{status}.json"
[files.node_io.failed]
session_id = "=thread"
status = "failed"
step = "=event.node"
error_message = "=event.failure.message"
name = "=state.name"
timestamp = "=time"
"#;

const CLOCK: &str =
    "[clock]\ntime_zone = \"Asia/Shanghai\"\nfixed = \"2025-01-15T10:30:45+08:00\"\n";

/// Returns a folder with the greeter, a stream and files.
fn folder_of_greeter() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let app = folder.path().join("plugins/greeter");
    write_app(&folder.path().join("plugins"), "greeter");
    std::fs::create_dir(app.join("streams")).unwrap();
    std::fs::write(app.join("streams/own.toml"), STREAM).unwrap();
    let manifest = std::fs::read_to_string(app.join("app.toml")).unwrap();
    std::fs::write(app.join("app.toml"), format!("{manifest}{FILES}")).unwrap();
    folder
}

/// Starts a server with the greeter, a stream and files.
async fn start(toml: &str) -> Fixture {
    Fixture::start_in(folder_of_greeter(), &format!("{CLOCK}{toml}")).await
}

async fn run(fixture: &Fixture, thread: &str, name: &str) -> Value {
    let body = json!({ "input": { "name": name }, "thread_id": thread, "wait": true });
    fixture.post("/api/v1/apps/greeter/runs", &body).await.1
}

#[tokio::test]
async fn an_app_streams_in_its_own_format() {
    let fixture = start("").await;
    run(&fixture, "t", "Ada").await;
    let read = |seen: Option<&str>| {
        let request = fixture.client.get(fixture.url("/apps/greeter/own/t"));
        let request = seen.into_iter().fold(request, |it, seen| it.header("last-event-id", seen));
        async { request.send().await.unwrap().text().await.unwrap() }
    };
    let text = read(None).await;
    insta::assert_snapshot!(text, @r#"
    : greetings

    id: 2
    event: begin
    data: {"color":"blue","seq":1,"thread":"t","who":"Ada"}

    id: 3
    event: step_start
    data: {"at":"2025-01-15T10:30:45+08:00","seq":2,"text":"greeting"}

    id: 4
    event: step_end
    data: {"at":"2025-01-15T10:30:45+08:00","seq":3,"text":"greeting"}

    id: 6
    event: step_start
    data: {"at":"2025-01-15T10:30:45+08:00","seq":4,"text":"asking"}

    id: 8
    event: end
    data: {"greeting":"hello Ada","seq":5,"status":"interrupted"}
    "#);
    // A client that reconnects receives the events after the last event that it has received.
    let messages: Vec<&str> = text.split_inclusive("\n\n").collect();
    let seen = messages[2].lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let rest = read(Some(seen)).await;
    assert_eq!(rest, format!("{}{}", messages[0], messages[3..].concat()));
    // Another run on the thread has its own stream.
    run(&fixture, "t", "Bob").await;
    let second = read(None).await;
    assert!(second.contains(r#""seq":1,"thread":"t","who":"Bob""#), "{second}");
    assert!(!second.contains("Ada"), "{second}");
}

#[tokio::test]
async fn a_stream_whose_messages_of_one_event_are_too_large_ends_with_an_error() {
    let folder = folder_of_greeter();
    let (list, text) = (vec![0; 1_000], "x".repeat(100 << 10));
    let stream = format!(
        "[constants]\nlist = {list:?}\ntext = {text:?}\n\
         [[messages]]\non = \"run_started\"\ntext = \"begin\"\n\
         [[messages]]\non = \"task_started\"\neach = \"constants.list\"\n\
         text = \"=constants.text\"\n"
    );
    std::fs::write(folder.path().join("plugins/greeter/streams/own.toml"), stream).unwrap();
    let fixture = Fixture::start_in(folder, CLOCK).await;
    run(&fixture, "t", "Ada").await;
    let response = fixture.client.get(fixture.url("/apps/greeter/own/t")).send().await.unwrap();
    let text = response.text().await.unwrap();
    let problem = text.strip_prefix("id: 1\ndata: begin\n\nevent: error\ndata: ").unwrap();
    let problem: Value = serde_json::from_str(problem).unwrap();
    assert_eq!(
        (&problem["code"], &problem["details"]["limit"]),
        (&json!("limit"), &json!("projection_bytes"))
    );
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.starts_with("app `greeter`: `streams/own.toml`: "), "{detail}");
}

#[tokio::test]
async fn an_app_with_invalid_streams_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let app = folder.path().join("plugins/greeter");
    write_app(&folder.path().join("plugins"), "greeter");
    std::fs::create_dir(app.join("streams")).unwrap();
    std::fs::write(app.join("streams/own.toml"), "[[messages]]\non = \"x\"\ntext = \"\"").unwrap();
    let fixture = Fixture::start_in(folder, "").await;
    let (_, problems) = fixture.get("/api/v1/problems").await;
    let unknown = "streams/own.toml: message 1: unknown kind of event `x`";
    assert!(problems.to_string().contains(unknown));
}

#[tokio::test]
async fn an_app_that_would_write_files_in_a_folder_of_the_host_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    let dirs = ["blobs", "Versions/x", "tenant-routes.json", "cache.key.part", "notes.db-wal"];
    for (number, dir) in dirs.iter().enumerate() {
        let name = format!("app{number}");
        write_app(&plugins, &name);
        let manifest = plugins.join(&name).join("app.toml");
        let text = std::fs::read_to_string(&manifest).unwrap();
        let files = FILES.replace("local_logs/node_io", dir);
        std::fs::write(manifest, format!("{text}{files}")).unwrap();
    }
    let toml = "[sql.notes]\nurl = \"sqlite:notes.db\"\n\
                [apps.app0.files.node_io]\ndir = \"backups/app0\"\n\
                [apps.app1.files.node_io]\ndir = \"logs\"\n";
    let fixture = Fixture::start_in(folder, toml).await;
    let (_, problems) = fixture.get("/api/v1/problems").await;
    let problem = |app: &str| {
        let all = problems.as_array().unwrap().iter();
        let mut all = all.filter(|it| it["path"].as_str().unwrap().ends_with(app));
        all.next().map(|it| it["message"].as_str().unwrap().to_owned())
    };
    // The folder of the operator takes precedence.
    let operator = problem("app0").unwrap();
    assert!(operator.contains("wattle.toml: `[apps.app0.files.node_io]` writes files to"));
    assert!(operator.contains("`backups/app0`, and the host keeps `backups`"), "{operator}");
    assert_eq!(problem("app1"), None);
    for (app, own) in [("app2", dirs[2]), ("app3", "cache.key"), ("app4", "notes.db")] {
        let message = problem(app).unwrap();
        assert!(message.starts_with("app.toml: `[files.node_io]` writes files to"), "{message}");
        assert!(message.contains(&format!("the host keeps `{own}`")), "{message}");
        assert!(message.contains(&format!("such as `files/{app}`")), "{message}");
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] })
        .collect();
    files.sort();
    files
}

/// Waits until `count` files in a folder are complete. Files are written after the end of a run.
/// Each file is written as a draft before it gets its name.
async fn wait_for_files(folder: &Path, count: usize) {
    let is_whole = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
    for _ in 0..200 {
        if files_below(folder).iter().filter(|path| is_whole(path)).count() >= count {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the files in a folder when `count` of them are complete and the server has ended.
async fn files(fixture: Fixture, folder: &str, count: usize) -> Vec<(String, Value)> {
    let folder = &fixture.folder.path().join(folder);
    wait_for_files(folder, count).await;
    fixture.server.shutdown().await;
    let read = |path: &PathBuf| {
        let name = path.strip_prefix(folder).unwrap().display().to_string();
        (name, serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
    };
    files_below(folder).iter().map(read).collect()
}

#[tokio::test]
async fn events_of_an_app_become_files() {
    let fixture = start("").await;
    run(&fixture, "t", LOGGED).await;
    run(&fixture, "会话", "nobody").await;
    run(&fixture, "u", "Ada").await;
    let found = files(fixture, "data/local_logs/node_io", 2).await;
    insta::assert_json_snapshot!(found, @r#"
    [
      [
        "s_1/20250115-10-30-45-000004-success.json",
        {
          "session_id": "s/1",
          "status": "success",
          "name": "Logged"
        }
      ],
      [
        "会话/20250115-10-30-45-000004-failed.json",
        {
          "error_message": "node `greet` of plugin `greeter`: nobody is no name",
          "name": "nobody",
          "session_id": "会话",
          "status": "failed",
          "step": "greet",
          "timestamp": "2025-01-15T10:30:45+08:00"
        }
      ]
    ]
    "#);
}

#[tokio::test]
async fn the_operator_selects_the_folder_of_files() {
    let elsewhere = start("[apps.greeter.files.node_io]\ndir = \"else/where\"\n").await;
    run(&elsewhere, "t", LOGGED).await;
    assert_eq!(files(elsewhere, "data/else/where", 1).await.len(), 1);
    let nowhere = start("[apps.greeter.files.node_io]\nenabled = false\n").await;
    run(&nowhere, "t", LOGGED).await;
    let folder = nowhere.folder.path().join("data");
    nowhere.server.shutdown().await;
    assert!(!folder.join("local_logs").exists());
}

#[tokio::test]
async fn no_files_are_written_to_a_folder_to_which_a_reload_gives_a_component_access() {
    let folder = folder_of_greeter();
    let logs = folder.path().join("out/logs");
    let variable = logs.display().to_string();
    let env: ReadEnv =
        Arc::new(move |name: &str| (name == "NODE_IO_LOG_DIR").then(|| variable.clone()));
    let mut options = options();
    options.overrides.env = Some(env);
    let fixture = Fixture::start_as(folder, CLOCK, options).await;
    run(&fixture, "before", "nobody").await;
    wait_for_files(&logs, 1).await;
    let grant = "[grants.shop]\n\
                 folders = [{ path = \"out\", guest = \"/out\", access = \"read-write\" }]\n";
    let file = fixture.folder.path().join("wattle.toml");
    std::fs::write(file, format!("{CLOCK}{grant}")).unwrap();
    let changes = fixture.server.reload().await;
    assert!(matches!(changes[..], [Change::Unused(_)]), "{changes:?}");
    run(&fixture, "after", "nobody").await;
    let found = files(fixture, "out/logs", 1).await;
    assert!(found.len() == 1 && found[0].0.starts_with("before/"), "{found:?}");
}

#[tokio::test]
async fn files_of_a_run_that_ends_below_the_floor_of_free_disk_space_are_not_written() {
    for (free_bytes, count) in [(2 * GIB, 1), (GIB, 0)] {
        let folder = folder_of_greeter();
        // The run asks before it writes the file, and answers are taken down to half of the floor.
        let graph = GRAPH.replace("entry = \"greet\"", "entry = \"ask\"");
        let graph =
            graph.replace("from = \"greet\"\nto = \"ask\"", "from = \"ask\"\nto = \"greet\"");
        std::fs::write(folder.path().join("plugins/greeter/graph.toml"), graph).unwrap();
        let (disk, options) = TestDisk::with_options();
        let fixture = Fixture::start_as(folder, FLOOR, options).await;
        assert_eq!(run(&fixture, "t", LOGGED).await["status"], "interrupted");
        disk.set(free_bytes);
        let answer = json!({ "answers": { "": true }, "wait": true });
        let (_, ended) = fixture.post("/api/v1/threads/t/resume", &answer).await;
        assert_eq!(ended["status"], "completed", "{ended}");
        let folder = fixture.folder.path().join("data/local_logs");
        wait_for_files(&folder, count).await;
        fixture.server.shutdown().await;
        assert_eq!(files_below(&folder).len(), count, "{free_bytes}");
    }
}

#[tokio::test]
async fn files_beyond_the_limits_of_a_run_or_an_app_are_not_written() {
    for limit in ["run_file_bytes", "app_file_bytes"] {
        let fixture = start(&format!("[limits]\n{limit} = \"20B\"\n")).await;
        let ended = run(&fixture, "t", LOGGED).await;
        assert_ne!(ended["status"], "failed", "{ended}");
        let folder = fixture.folder.path().join("data/local_logs");
        fixture.server.shutdown().await;
        assert_eq!(files_below(&folder), Vec::<PathBuf>::new(), "{limit}");
    }
}
