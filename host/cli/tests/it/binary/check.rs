//! Checks of services: output and exit code.

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
            [model.providers.away]
            kind = "openai"
            base_url = "http://127.0.0.1:1/v1/"
            key_env = "KEY"
            [model.providers.astray]
            kind = "openai"
            base_url = "{base}/astray/"
            key_env = "KEY"
            [model.routes.chat]
            provider = "standin"
            model = "m"
            [model.routes.away]
            provider = "away"
            model = "m"
            retries = 0
            [model.routes.astray]
            provider = "astray"
            model = "m"
            retries = 0
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
async fn a_check_of_mcp_servers_prints_its_notes_once() {
    let bench = Bench::new().await;
    let found = bench.run(&["mcp", "check", "probe"]);
    let (said, logged) = (text(found.stdout), text(found.stderr));
    assert_eq!(found.status.code(), Some(0), "{said}{logged}");
    assert!(said.starts_with("probe: ok\n") && said.contains("    echo (read-only)"), "{said}");
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

    let unknown = bench.run(&["mcp", "check", "probe", "prob"]);
    assert_eq!(unknown.status.code(), Some(4));
    let said = "error: there is no MCP server `prob`\n  hint: did you mean `probe`? servers of the \
                configuration: `away`, `probe`\n";
    assert_eq!((text(unknown.stdout), text(unknown.stderr).as_str()), (String::new(), said));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_a_model_requests_every_kind_of_completion() {
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

    // The stand-in has no script now, so its model calls no tool.
    let found = bench.run(&["model", "check", "chat"]);
    let said = text(found.stdout);
    assert_eq!(found.status.code(), Some(1), "{said}");
    assert!(said.starts_with("chat: fail\n") && said.contains("called no tool"), "{said}");
    assert_eq!(bench.run(&["model", "check", "nothing"]).status.code(), Some(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_a_model_at_a_wrong_address_names_the_address_with_a_hint() {
    let bench = Bench::new().await;
    let found = bench.run(&["model", "check", "away"]);
    let said = text(found.stdout);
    assert_eq!(found.status.code(), Some(1), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!((lines.len(), lines[0]), (5, "away: fail"), "{said}");
    let words = "unavailable: model `m` of provider `away` (route `away`) cannot be reached at \
                 http://127.0.0.1:1/v1/: ";
    for line in &lines[1..] {
        assert!(line.contains(words), "{said}");
        assert!(line.ends_with("; check `base_url` of the provider"), "{said}");
    }

    let base = &bench.standin.base_url;
    let words = format!(
        "unavailable: model `m` of provider `astray` (route `astray`) does not exist at \
         {base}/astray/ (status 404); change "
    );
    let found = bench.run(&["model", "check", "astray", "--json"]);
    assert_eq!(found.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&found.stdout).unwrap();
    let steps = document[0]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 4, "{document}");
    for step in steps {
        let failure = &step["failure"];
        let message = failure["message"].as_str().unwrap();
        let said = format!("{}: {message}", failure["code"].as_str().unwrap());
        assert!(said.starts_with(&words), "{said}");
        assert!(said.contains("or `base_url` of the provider: "), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_a_model_shows_fields_that_the_service_rejects() {
    let bench = Bench::new().await;
    let error = json!({ "message": "Unsupported parameter: 'max_tokens' is not supported" });
    let body = Some(json!({ "error": error }));
    let fault = Fault::Status { status: 400, retry_after: None, body };
    bench.standin.fault(FaultRule::new(Pattern::path("/v1/chat/completions"), fault).times(1));
    let said = text(bench.run(&["model", "check", "chat"]).stdout);
    let note = "  note: model `m` of `standin`: requests have `max_completion_tokens` in place of \
                `max_tokens`, which the service rejects";
    assert!(said.lines().any(|line| line == note), "{said}");
}
