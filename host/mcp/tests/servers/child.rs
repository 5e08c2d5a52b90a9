//! Stdio servers, with the stand-in as the process.

#[cfg(unix)]
use std::{fs::File, io::Read as _};

use serde_json::json;
use tokio::time::timeout;

use crate::support::{SOON, as_program, call, list, names, program, servers, text};

#[tokio::test]
async fn process_gets_only_the_configured_environment() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&[][..], &["--legacy"][..]] {
        let servers = servers(as_program(program().to_str().unwrap(), arguments, folder.path()));
        let said = call(&servers, "surroundings", json!({})).await.unwrap();
        let said = said.structured.unwrap();
        let env: Vec<&String> = said["env"].as_object().unwrap().keys().collect();
        assert_eq!(env, ["PATH", "PROBE_TOKEN"]);
        let home = folder.path().canonicalize().unwrap();
        assert_eq!(said["folder"], json!(home));
        servers.close().await;
    }
}

#[tokio::test]
async fn exited_process_is_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let servers = servers(as_program(program().to_str().unwrap(), &[], folder.path()));
    names(&servers).await;
    let failure = call(&servers, "exit", json!({})).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
    let again = call(&servers, "echo", json!({ "text": "a" })).await.unwrap();
    assert_eq!(text(&again), r#"{"text":"a"}"#);
    servers.close().await;
}

/// A configured shell or package runner can start the actual server as a child process, which would
/// outlive the shell or the runner.
#[cfg(unix)]
#[tokio::test]
async fn close_kills_the_process_group() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let script = format!("sleep 1000 > fifo & exec '{}'", program().display());
    let servers = servers(as_program("sh", &["-c", &script], folder.path()));
    // The fifo opens once the background process has opened it for writing.
    let opening = tokio::task::spawn_blocking(move || File::open(fifo).unwrap());
    names(&servers).await;
    let mut fifo = timeout(SOON, opening).await.unwrap().unwrap();
    // The read ends when no process has the fifo open for writing.
    let reader = tokio::task::spawn_blocking(move || fifo.read(&mut [0]).unwrap());
    assert!(!reader.is_finished());
    servers.close().await;
    assert_eq!(timeout(SOON, reader).await.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn spawn_error_names_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let servers = servers(as_program("no-such-program", &[], folder.path()));
    let failure = list(&servers).await.unwrap_err();
    assert_eq!(failure.code, "unavailable");
    assert!(failure.message.contains("`no-such-program`"), "{failure}");
}
