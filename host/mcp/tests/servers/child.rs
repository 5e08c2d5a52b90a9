//! Programs, against the stand-in.

use serde_json::json;
use tokio::time::timeout;

use crate::support::{SOON, as_program, call, list, names, program, servers, text};

#[tokio::test]
async fn a_program_gets_nothing_but_what_is_configured() {
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
async fn a_program_that_died_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let servers = servers(as_program(program().to_str().unwrap(), &[], folder.path()));
    names(&servers).await;
    let failure = call(&servers, "exit", json!({})).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
    let again = call(&servers, "echo", json!({ "text": "a" })).await.unwrap();
    assert_eq!(text(&again), r#"{"text":"a"}"#);
    servers.close().await;
}

/// A shell or a package runner may start the server proper, which outlives it.
#[cfg(unix)]
#[tokio::test]
async fn what_a_program_started_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let script = format!("sleep 1000 > fifo & exec '{}'", program().display());
    let servers = servers(as_program("sh", &["-c", &script], folder.path()));
    // It ends when no process can write to it any more.
    let reader = tokio::task::spawn_blocking(move || std::fs::read(fifo).unwrap());
    names(&servers).await;
    assert!(!reader.is_finished());
    servers.close().await;
    assert!(timeout(SOON, reader).await.unwrap().unwrap().is_empty());
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let servers = servers(as_program("no-such-program", &[], folder.path()));
    let failure = list(&servers).await.unwrap_err();
    assert_eq!(failure.code, "unavailable");
    assert!(failure.message.contains("`no-such-program`"), "{failure}");
}
