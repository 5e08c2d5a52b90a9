//! Tools that exceed their grants or limits. Each is refused or ended with a message of its own for
//! the model and for the operator, and the conversation continues.

use serde_json::{Value, json};
use wattle_kit::standin::Pattern;
use wattle_suite::desk::{Desk, last_words, tool_messages};
use wattle_suite::server::{Setup, TestServer};

/// Returns code and message of each failed tool call, from the event log.
async fn failures(server: &TestServer, thread: &str) -> Vec<(String, String)> {
    let events = server.events(thread).await;
    let called = events.iter().filter(|event| event.event == "called");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    called
        .filter(|event| event.data["function"] == "tools.call")
        .filter_map(|event| {
            let failure = event.data["result"].get("Err")?;
            Some((text(&failure["code"]), text(&failure["message"])))
        })
        .collect()
}

#[tokio::test]
async fn each_misdeed_has_its_own_message_and_the_conversation_continues() {
    let server = Setup::desk(&Desk::default()).await.start().await;
    let other = format!("http://localhost:{}/echo", server.standin().addr.port());
    let misdeeds = [
        ("fail", json!({}), "misdeed", "the tool failed as asked"),
        ("trap", json!({}), "trap", ""),
        ("spin", json!({}), "limit", "cpu"),
        ("hog", json!({}), "limit", "memory"),
        ("huge", json!({ "mib": 2 }), "limit", ""),
        ("deep", json!({ "depth": 500 }), "invalid", ""),
        ("net", json!({ "url": other }), "denied", "[grants.tools]"),
        (
            "net",
            json!({ "url": "http://169.254.169.254/latest/" }),
            "denied",
            "no plugin is allowed to reach",
        ),
        ("net", json!({ "url": "https://example.com/" }), "denied", "[grants.tools]"),
        (
            "other_db",
            json!({ "database": "ledger", "statement": "SELECT 1" }),
            "denied",
            "[grants.tools]",
        ),
    ];
    let mut thread: Option<String> = None;
    for (count, (tool, arguments, code, part)) in misdeeds.iter().enumerate() {
        let run = server.say(thread.as_deref(), &format!("call {tool} {arguments}")).await;
        assert_eq!(run["status"], "completed", "{tool}: {run}");
        let told = tool_messages(&run).pop().unwrap();
        let content = told["content"].as_str().unwrap();
        assert!(content.starts_with(&format!("{code}: ")), "{tool}: {content}");
        assert!(content.contains(part), "{tool}: {content}");
        assert_eq!(told["status"], "error", "{tool}");
        assert!(last_words(&run).contains(content), "the model reads it: {run}");
        let id = run["thread"].as_str().unwrap().to_owned();
        let seen = failures(&server, &id).await;
        assert_eq!(seen.len(), count + 1, "{tool}: {seen:?}");
        assert_eq!(seen[count].0, *code, "{tool}");
        thread = Some(id);
    }
    let run = server.say(thread.as_deref(), "call echo {\"text\":\"still here\"}").await;
    assert_eq!(tool_messages(&run).pop().unwrap()["content"], "still here");
    let reached: Vec<String> = server.standin().requests().into_iter().map(|it| it.path).collect();
    assert!(reached.iter().all(|path| path.starts_with("/v1/")), "{reached:?}");
}

#[tokio::test]
async fn tools_cannot_read_files_environment_or_secrets() {
    let server = Setup::desk(&Desk::default()).await.start().await;
    let config = server.setup.workspace.config().display().to_string();
    let run = server
        .chat(&format!(
            "call files {{\"path\":\"{config}\"}}\n\
             call env {{\"name\":\"SUITE_MODEL_KEY\"}}\n\
             call secret_peek"
        ))
        .await;
    let answers = tool_messages(&run);
    assert_eq!((&answers[0]["status"], &answers[1]["status"]), (&json!("error"), &json!("error")));
    assert_eq!(answers[2]["structured"], json!({ "greeting": "hello" }), "settings, no secrets");
    let all = run.to_string();
    assert!(!all.contains("suite-model-key") && !all.contains("base_url"), "{all}");
}

#[tokio::test]
async fn a_tool_without_a_result_reaches_its_deadline() {
    let limits = "cpu = \"300ms\", call_deadline = \"300ms\"".to_owned();
    let server = Setup::desk(&Desk { limits, ..Desk::default() }).await.start().await;
    let gate = server.standin().gate(Pattern::path("/count/held"));
    let url = format!("{}/count/held", server.standin().base_url);
    let script = format!("call slow_then {{\"url\":\"{url}\",\"text\":\"slow\"}}");
    let run = server.chat(&format!("{script}\ncall echo {{\"text\":\"quick\"}}")).await;
    gate.open();
    let answers = tool_messages(&run);
    let content = answers[0]["content"].as_str().unwrap();
    assert!(content.starts_with("timeout: "), "{content}");
    assert_eq!(answers[1]["content"], "quick");
}

#[tokio::test]
async fn ambiguous_tool_name_calls_none_of_the_tools() {
    let granted = "[\"tools/echo\", \"shadow/*\"]".to_owned();
    let server = Setup::desk(&Desk { granted, ..Desk::default() }).await.start().await;
    let run = server.chat("call echo {\"text\":\"a\"}").await;
    let refused = tool_messages(&run).remove(0);
    let content = refused["content"].as_str().unwrap();
    assert!(content.contains("`tools/echo`") && content.contains("`shadow/echo`"), "{content}");
    assert_eq!(refused["status"], "error");
    let events = server.events(run["thread"].as_str().unwrap()).await;
    let logs = events.iter().filter(|event| event.event == "log");
    let told = logs.filter(|log| log.data.to_string().contains("`shadow/echo`")).count();
    assert!(told > 0, "it is logged");
    // The model is offered both tools under names that every provider accepts.
    let run =
        server.chat("call tools_echo {\"text\":\"a\"}\ncall shadow_echo {\"text\":\"b\"}").await;
    let contents: Vec<Value> = tool_messages(&run).iter().map(|it| it["content"].clone()).collect();
    assert_eq!(contents, ["a", "shadow: b"]);
    assert_eq!(tool_messages(&run)[0]["name"], "tools/echo");
}

/// Returns code and message of a failed run.
fn failure(run: &Value) -> (String, String) {
    assert_eq!(run["status"], "failed", "{run}");
    let text = |key: &str| run["failure"][key].as_str().unwrap_or_default().to_owned();
    (text("code"), text("message"))
}

#[tokio::test]
async fn a_second_tool_of_the_same_name_does_not_bypass_an_approval() {
    for rule in ["echo", "tools/echo"] {
        let desk = Desk {
            granted: "[\"tools/echo\", \"shadow/*\"]".to_owned(),
            ..Desk::with(&format!("approve = {{ tools = [\"{rule}\"] }}"))
        };
        let server = Setup::desk(&desk).await.start().await;
        let script = "call tools_echo {\"text\":\"a\"}\ncall shadow_echo {\"text\":\"b\"}";
        let run = server.say(None, script).await;
        assert_eq!(run["status"], "interrupted", "{rule}: {run}");
        let open = run["interrupts"].as_array().unwrap();
        let mut asked: Vec<&Value> = open.iter().map(|it| &it["payload"]["reference"]).collect();
        asked.sort_by_key(ToString::to_string);
        match rule {
            "echo" => assert_eq!(asked, ["shadow/echo", "tools/echo"], "{run}"),
            _ => assert_eq!(asked, ["tools/echo"], "{run}"),
        }
    }
    // A rule can name the tool by its reference while there is only one of its name.
    let desk = Desk::with("approve = { tools = [\"tools/echo\"] }");
    let server = Setup::desk(&desk).await.start().await;
    let run = server.say(None, "call echo {\"text\":\"a\"}").await;
    assert_eq!(run["interrupts"][0]["payload"]["tool"], "echo", "{run}");
}

#[tokio::test]
async fn a_second_tool_of_the_same_name_does_not_bypass_an_order() {
    let desk = Desk {
        granted: "[\"tools/*\", \"shadow/*\"]".to_owned(),
        ..Desk::with("order = [{ tool = \"echo\", after = [\"add\"] }]")
    };
    let server = Setup::desk(&desk).await.start().await;
    let echoes = "call tools_echo {\"text\":\"a\"}\ncall shadow_echo {\"text\":\"b\"}";
    let run = server.chat(&format!("{echoes}\nthen\ncall add {{\"a\":1,\"b\":2}}")).await;
    let statuses: Vec<Value> = tool_messages(&run).iter().map(|it| it["status"].clone()).collect();
    assert_eq!(statuses, ["error", "error", "success"], "{run}");
}

#[tokio::test]
async fn a_rule_for_an_unknown_tool_fails_with_its_name() {
    for (desk, name) in [
        (Desk::with("approve = { tools = [\"ecco\"] }"), "ecco"),
        (Desk::with("order = [{ tool = \"echo\", after = [\"ad\"] }]"), "ad"),
        (Desk::with("tools = [\"echo\", \"fly\"]"), "fly"),
    ] {
        let server = Setup::desk(&desk).await.start().await;
        let (code, message) = failure(&server.say(None, "call echo {\"text\":\"a\"}").await);
        assert_eq!(code, "not-found", "{message}");
        assert!(message.contains(&format!("`{name}`")), "{message}");
    }
}

#[tokio::test]
async fn tools_of_an_unavailable_server_are_reported_as_unavailable() {
    let desk = Desk {
        granted: "[\"tools/*\", \"mcp:gone/*\"]".to_owned(),
        ..Desk::with("tools = [\"echo\", \"search\"]")
    };
    let away = "[mcp.gone]\nurl = \"http://127.0.0.1:1/mcp\"\nprivate = true\n";
    let server = Setup::desk(&desk).await.with(away).start().await;
    let run = server.say(None, "call echo {\"text\":\"a\"}").await;
    let (code, message) = failure(&run);
    assert_eq!((&*code, &run["failure"]["retryable"]), ("unavailable", &json!(true)), "{message}");
    assert!(message.contains("`search`") && message.contains("`mcp:gone`"), "{message}");
}

#[tokio::test]
async fn an_unavailable_server_is_logged_and_the_run_continues() {
    let granted = "[\"tools/*\", \"mcp:gone/*\"]".to_owned();
    let away = "[mcp.gone]\nurl = \"http://127.0.0.1:1/mcp\"\nprivate = true\n";
    let desk = Desk { granted, ..Desk::default() };
    let server = Setup::desk(&desk).await.with(away).start().await;
    let run = server.chat("call echo {\"text\":\"a\"}").await;
    assert_eq!(tool_messages(&run)[0]["content"], "a");
    let events = server.events(run["thread"].as_str().unwrap()).await;
    let logs = events.iter().filter(|event| event.event == "log");
    let mut logs = logs.map(|log| log.data.to_string());
    let words = ["tools are missing", "`gone`", "check `url` under `[mcp.gone]`"];
    assert!(logs.any(|log| words.iter().all(|word| log.contains(word))), "{events:?}");
}

#[tokio::test]
async fn a_tool_has_only_the_grants_of_its_own_plugin() {
    let server = Setup::desk(&Desk::default()).await.start().await;
    let run = server
        .chat("call nested {\"calls\":[{\"tool\":\"echo\",\"arguments\":{\"text\":\"a\"}}]}")
        .await;
    let answer = &tool_messages(&run)[0]["structured"][0];
    assert_eq!(answer["failure"]["code"], "denied", "`tools` has no granted tools: {answer}");
}
