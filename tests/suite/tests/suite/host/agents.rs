//! The official clients of LangGraph, unmodified, on a real server with the reference graphs.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use wattle_suite::guests;
use wattle_suite::server::{Setup, TestServer};

/// How long all scenarios of a client may take.
const PATIENCE: Duration = Duration::from_mins(3);

async fn server() -> TestServer {
    let setup = Setup::bare().await;
    setup.place.write("plugins/std/std.wasm", guests::bytes("wattle-std"));
    let graphs = guests::root().join("tests/clients/graphs");
    for file in ["app.toml", "graph.toml"] {
        let content = std::fs::read(graphs.join(file)).unwrap();
        setup.place.write(&format!("apps/reference/{file}"), content);
    }
    setup.place.write("apps/reference/reference.wasm", guests::bytes("wattle-app-reference"));
    setup.with("[apps.reference]\npath = \"apps/reference\"\n").start().await
}

/// Where a client is installed.
#[expect(clippy::print_stdout, reason = "says why it is left out")]
fn installed(folder: &str, sign: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().unwrap();
    let folder = own.ancestors().nth(3).unwrap().join("clients").join(folder);
    if folder.join(sign).exists() {
        return Some(folder);
    }
    println!("left out: {} is missing; `cargo xtask clients` installs it", folder.display());
    None
}

/// Lets a client go through all of its scenarios.
async fn all_pass(program: &Path, arguments: &[&str], server: &TestServer, least: usize) {
    let mut command = Command::new(program);
    command.args(arguments).arg(server.url("")).stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(PATIENCE, command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    let report: Value = serde_json::from_slice(&ended.stdout).expect(&said);
    assert!(ended.status.success(), "{:#}\n{said}", report["failed"]);
    assert!(report["passed"].as_object().unwrap().len() >= least, "{report:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_for_python_works_unmodified() {
    let Some(folder) = installed("langgraph-py", "bin/python") else { return };
    let main = guests::root().join("tests/clients/langgraph-py/main.py");
    let arguments = ["-B", main.to_str().unwrap()];
    all_pass(&folder.join("bin/python"), &arguments, &server().await, 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_for_javascript_works_unmodified() {
    let Some(folder) = installed("langgraph-js", "node_modules") else { return };
    let main = folder.join("main.mjs");
    all_pass(Path::new("node"), &[main.to_str().unwrap()], &server().await, 7).await;
}
