//! The program `wattle-standin`, started and ended as in a demo.

use serde_json::{Value, json};
use tokio::process::Command;
use wattle_kit::process::Program;

async fn start(arguments: &[&str]) -> (Program, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattle-standin"));
    command.args(["--port", "0", "--print-addr"]).args(arguments);
    let mut program = Program::start(command).unwrap();
    let line = program.ready(|line| line.starts_with('{')).await.unwrap();
    (program, serde_json::from_str(&line).unwrap())
}

#[tokio::test]
async fn the_program_prints_its_urls_and_exits_at_the_end_of_its_input() {
    let (mut program, addresses) = start(&[]).await;
    let url = format!("{}/count/a", addresses["base_url"].as_str().unwrap());
    let counted: Value = reqwest::get(&url).await.unwrap().json().await.unwrap();
    assert_eq!(counted["count"], 1);
    program.close_stdin();
    assert!(program.ended().await.unwrap().success());
    reqwest::get(&url).await.unwrap_err();
}

#[tokio::test]
async fn the_program_prints_base_urls_of_providers() {
    let (mut program, addresses) = start(&[]).await;
    let client = reqwest::Client::new();
    // The host appends these paths to `base_url` of a provider of the kind.
    for (kind, path) in [
        ("openai", "chat/completions"),
        ("gemini", "models/gemini-2.5-flash:generateContent"),
        ("anthropic", "messages"),
    ] {
        let url = format!("{}/{path}", addresses[kind].as_str().unwrap());
        let answer = client.post(&url).json(&json!({})).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 401, "{url} demands a key");
    }
    program.close_stdin();
    assert!(program.ended().await.unwrap().success());
}

#[tokio::test]
async fn the_program_prints_the_urls_of_its_mcp_servers() {
    let (mut program, addresses) = start(&[]).await;
    let client = reqwest::Client::new();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
    for name in ["mcp_graph", "mcp_data"] {
        let url = addresses[name].as_str().unwrap();
        let answer = client.post(url).json(&hello).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        assert!(answer["result"]["serverInfo"].is_object(), "{name}: {answer}");
    }
    program.close_stdin();
    assert!(program.ended().await.unwrap().success());
}

#[tokio::test]
async fn the_program_ends_on_a_signal_and_accepts_faults() {
    let fault = r#"{"path": "/echo", "fault": {"kind": "status", "status": 503}}"#;
    let (mut program, addresses) = start(&["--ignore-stdin", "--fault", fault]).await;
    let url = format!("{}/echo", addresses["base_url"].as_str().unwrap());
    assert_eq!(reqwest::get(&url).await.unwrap().status().as_u16(), 503);
    program.close_stdin();
    assert!(program.terminate().await.unwrap().success());
}
