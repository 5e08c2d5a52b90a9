//! Checks of services: what they print, and how they end.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;
use wattle_kit::standin::{Config, Fault, FaultRule, Handle, Pattern, Server};

use super::wattle;

const NOTE: &str = "the tool `bad name` is left out: its name cannot be used";

/// Stand-ins, and a folder with a configuration that names them.
struct Bench {
    standin: Handle,
    folder: TempDir,
}

impl Bench {
    async fn new() -> Self {
        let standin = Server::start(Config::default()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let base = &standin.base_url;
        let toml = format!(
            r#"
            [mcp.probe]
            url = "{base}/mcp"
            private = true
            [mcp.away]
            url = "http://127.0.0.1:1/mcp"
            private = true
            [model.providers.standin]
            kind = "openai"
            base_url = "{base}/v1/"
            key_env = "KEY"
            [model.routes.chat]
            provider = "standin"
            model = "m"
        "#
        );
        fs::write(folder.path().join("wattle.toml"), toml).unwrap();
        Self { standin, folder }
    }

    fn run(&self, args: &[&str]) -> Output {
        wattle(self.folder.path(), args).env("KEY", "key").output().unwrap()
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_mcp_servers_says_its_notes_once() {
    let bench = Bench::new().await;
    let found = bench.run(&["mcp", "check", "probe"]);
    let (said, logged) = (text(found.stdout), text(found.stderr));
    assert_eq!(found.status.code(), Some(0), "{said}{logged}");
    assert!(said.starts_with("probe: ok\n") && said.contains("    echo (reads only)"), "{said}");
    assert_eq!(said.matches(NOTE).count(), 1, "{said}");
    assert_eq!(logged, "");

    let found = bench.run(&["mcp", "check", "probe", "--json"]);
    let document: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(document["probe"]["notes"], json!([NOTE]));
    assert_eq!(text(found.stderr), "");

    let all = bench.run(&["mcp", "check"]);
    let said = text(all.stdout);
    assert_eq!(all.status.code(), Some(1), "{said}");
    assert!(said.starts_with("away: fail\n") && said.contains("\nprobe: ok\n"), "{said}");
    assert_eq!(bench.run(&["mcp", "check", "nobody"]).status.code(), Some(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_a_model_asks_it_in_every_way() {
    let bench = Bench::new().await;
    let call = json!({ "name": "add", "arguments": { "a": 17, "b": 25 } });
    let contents = vec![
        json!("ready"),
        json!("ready"),
        json!({ "tool_calls": [call] }),
        json!("42"),
        json!({ "city": "Paris" }),
    ];
    let script = Fault::Script { contents: contents.into() };
    bench.standin.fault(FaultRule::new(Pattern::path("/v1/chat/completions"), script));
    let found = bench.run(&["model", "check", "chat", "--json"]);
    let (said, logged) = (text(found.stdout), text(found.stderr));
    assert_eq!(found.status.code(), Some(0), "{said}{logged}");
    let document: Value = serde_json::from_str(&said).unwrap();
    let steps = document[0]["steps"].as_array().unwrap();
    let answers: Vec<Value> =
        steps.iter().map(|step| json!([step["step"], step["answer"]["text"]])).collect();
    let expected = json!([
        ["whole", "ready"],
        ["streamed", "ready"],
        ["tool", "42"],
        ["shape", "{\"city\":\"Paris\"}"],
    ]);
    assert_eq!(json!(answers), expected);
    assert_eq!(logged, "");
    let asked = bench.standin.requests().into_iter().filter_map(|entry| entry.body);
    let streamed: Vec<Value> = asked.map(|body| body["stream"].clone()).collect();
    assert_eq!(streamed, [false, true, true, true, true]);

    // Without the script, the stand-in calls no tool.
    let found = bench.run(&["model", "check", "chat"]);
    let said = text(found.stdout);
    assert_eq!(found.status.code(), Some(1), "{said}");
    assert!(said.starts_with("chat: fail\n") && said.contains("calls no tool"), "{said}");
    assert_eq!(bench.run(&["model", "check", "nothing"]).status.code(), Some(4));
}
