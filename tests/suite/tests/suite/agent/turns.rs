//! Model turns and tool calls, sequential and concurrent.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wattle_graph::event::EventKind;
use wattle_graph::id::ThreadId;
use wattle_kit::standin::{Fault, FaultRule, Outcome, Pattern};
use wattle_run::hostcall::runs::RunService;
use wattle_suite::desk::{Desk, MODEL_PATH, last_words, message, messages, tool_messages};
use wattle_suite::guests;
use wattle_suite::server::{Setup, TestServer};

async fn server() -> TestServer {
    Setup::desk(&Desk::default()).await.start().await
}

fn roles(run: &Value) -> Vec<String> {
    let roles = messages(run).into_iter().map(|it| it["role"].as_str().unwrap().to_owned());
    roles.collect()
}

fn contents(run: &Value) -> Vec<Value> {
    tool_messages(run).into_iter().map(|message| message["content"].clone()).collect()
}

#[tokio::test]
async fn s2_40_turns_and_tool_calls_run_as_separate_tasks() {
    let server = server().await;
    let run = server.chat("call echo {\"text\":\"a\"}\nthen\ncall add {\"a\":1,\"b\":2}").await;
    assert_eq!(roles(&run), ["user", "assistant", "tool", "assistant", "tool", "assistant"]);
    assert_eq!(contents(&run), ["a", "{\"sum\":3}"]);
    assert_eq!(tool_messages(&run)[1]["structured"], json!({ "sum": 3 }));
    assert_eq!(last_words(&run), "The tools answered:\necho: a\nadd: {\"sum\":3}");
    let thread = run["thread"].as_str().unwrap();
    let trace = server.get(&format!("/api/v1/threads/{thread}/trace")).await.expect(200);
    let steps = trace["runs"][0]["steps"].as_array().unwrap();
    let nodes: Vec<&Value> = steps.iter().map(|step| &step["tasks"][0]["node"]).collect();
    assert_eq!(nodes, ["agent", "tools", "agent", "tools", "agent"]);
    let calls = steps[1]["tasks"][0]["attempts"][0]["calls"].as_array().unwrap();
    let echo = calls.iter().find(|call| call["function"] == "tools.call");
    assert_eq!(echo.map(|call| &call["summary"]), Some(&json!("tools/echo")), "{calls:?}");
    assert!(calls.iter().all(|call| call["function"] != "tools.list"), "listed before: {calls:?}");
    let history = server.get(&format!("/api/v1/threads/{thread}/history")).await.expect(200);
    assert!(history.as_array().is_some_and(|it| it.len() >= 6), "one checkpoint per task");
}

#[tokio::test]
async fn messages_keep_the_ids_of_their_stream() {
    let server = server().await;
    let run = server.chat("call echo {\"text\":\"a\"}").await;
    let thread = ThreadId::new(run["thread"].as_str().unwrap()).unwrap();
    let events = server.running.engine.events(&thread, 0, usize::MAX).await.unwrap();
    let told = events.iter().filter_map(|event| match &event.kind {
        EventKind::CallStarted(started) if started.function == "llm.complete" => {
            Some(json!(started.message_id(0)))
        }
        _ => None,
    });
    let messages = messages(&run);
    let said = messages.iter().filter(|message| message["role"] == "assistant");
    let kept: Vec<Value> = said.map(|message| message["id"].clone()).collect();
    assert_eq!(kept, told.collect::<Vec<Value>>());
    assert_eq!(kept.len(), 2);
    let begun = events.iter().find_map(|event| match &event.kind {
        EventKind::CallStarted(started) => started.request.clone(),
        _ => None,
    });
    let call = &messages[1]["tool_calls"][0];
    assert_eq!(begun.map(|request| request["call_id"].clone()), Some(call["id"].clone()));
}

#[tokio::test]
async fn the_graph_of_the_documentation_runs() {
    let setup = Setup::desk(&Desk::default()).await;
    let readme = std::fs::read_to_string(guests::root().join("plugins/std/README.md")).unwrap();
    let graph = readme.split("```toml").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    setup.workspace.write("plugins/apps/desk/graph.toml", graph);
    let server = setup.start().await;
    let run = server.chat("call echo {\"text\":\"a\"}").await;
    assert_eq!(contents(&run), ["a"]);
}

#[tokio::test]
async fn s2_36_a_thread_remembers_the_conversation() {
    let server = server().await;
    let run = server.chat("hello there").await;
    assert_eq!(roles(&run), ["user", "assistant"]);
    let thread = run["thread"].as_str().unwrap();
    let run = server.say(Some(thread), "call echo {\"text\":\"again\"}").await;
    assert_eq!(roles(&run), ["user", "assistant", "user", "assistant", "tool", "assistant"]);
    let last = server.standin().requests().pop().unwrap();
    let seen = last.body.unwrap_or_default().to_string();
    assert!(seen.contains("hello there"), "{seen}");
}

#[tokio::test]
async fn s2_37_calls_of_one_turn_run_concurrently_and_results_keep_their_order() {
    let server = server().await;
    let gate = server.standin().gate(Pattern::path("/count/held"));
    let url = format!("{}/count/held", server.standin().base_url);
    let script = format!(
        "call slow_then {{\"url\":\"{url}\",\"text\":\"slow\"}}\n\
         call echo {{\"text\":\"quick\"}}\n\
         call slow_then {{\"url\":\"{url}\",\"text\":\"slow too\"}}"
    );
    let run = server.post("/api/v1/apps/desk/runs", &message(None, &script)).await.expect(202);
    // Both slow calls are in progress at the same time.
    gate.arrived(2).await.unwrap();
    gate.open();
    let path = format!("/api/v1/runs/{}/wait", run["run"].as_str().unwrap());
    let run = server.get(&path).await.expect(200);
    assert_eq!(contents(&run), ["slow", "quick", "slow too"], "{run}");
    let ids: BTreeSet<String> =
        tool_messages(&run).iter().map(|it| it["tool_call_id"].to_string()).collect();
    assert_eq!(ids.len(), 3, "ids are unique");
}

#[tokio::test]
async fn a_call_of_an_unknown_tool_returns_the_known_tools() {
    let desk = Desk { granted: "[\"tools/echo\", \"tools/add\"]".to_owned(), ..Desk::default() };
    let server = Setup::desk(&desk).await.start().await;
    let run = server.chat("call fly\nthen\ncall echo {\"text\":\"on foot\"}").await;
    assert_eq!(contents(&run), ["there is no tool `fly`; the tools are `add`, `echo`", "on foot"]);
    assert_eq!(tool_messages(&run)[0]["status"], "error");
}

#[tokio::test]
async fn a_call_of_a_tool_that_is_not_granted_is_logged_with_the_line_to_add() {
    let desk = Desk { granted: "[\"tools/echo\"]".to_owned(), ..Desk::default() };
    let server = Setup::desk(&desk).await.start().await;
    let script = "call add {\"a\":1,\"b\":2}\ncall echo {\"text\":\"a\"}\ncall fly";
    let run = server.chat(script).await;
    let unknown = |name: &str| format!("there is no tool `{name}`; the tools are `echo`");
    assert_eq!(contents(&run), [unknown("add"), "a".to_owned(), unknown("fly")]);
    let thread = ThreadId::new(run["thread"].as_str().unwrap()).unwrap();
    let events = server.running.engine.events(&thread, 0, usize::MAX).await.unwrap();
    let logged = events.iter().filter_map(|event| match &event.kind {
        EventKind::Log(log) => Some(log.message.as_str()),
        _ => None,
    });
    let denied = "the model called a tool that it was not offered: plugin `std` may not call the \
                  tool `add`; add `tools = [\"tools/add\"]` under `[needs.plugins.std]` in \
                  app.toml, which does not request it";
    assert_eq!(logged.collect::<Vec<_>>(), [denied]);
}

#[tokio::test]
async fn s2_27_invalid_arguments_are_returned_to_the_model_or_passed_to_the_tool() {
    let server = server().await;
    let run = server
        .chat(
            "call add {\"a\":\"x\"}\ncall flagged {\"number\":\"x\"}\ncall flagged {\"number\":1}",
        )
        .await;
    let answers = tool_messages(&run);
    let refused = answers[0]["content"].as_str().unwrap();
    assert!(refused.starts_with("invalid: the arguments of `tools/add` do not match"), "{refused}");
    assert_eq!(answers[0]["status"], "error");
    assert_eq!(answers[1]["structured"]["raw"], json!({ "number": "x" }));
    let violations = answers[1]["structured"]["violations"].as_array().map(Vec::len);
    assert_eq!((violations, &answers[1]["status"]), (Some(1), &json!("success")));
    assert_eq!(answers[2]["structured"]["violations"], json!([]));
}

#[tokio::test]
async fn arguments_that_are_not_json_are_returned_to_the_model() {
    let server = server().await;
    let bent = FaultRule::new(Pattern::path(MODEL_PATH), Fault::InvalidJsonContent);
    // The agent requests the first completion again, so two completions are invalid.
    server.standin().fault(bent.times(2));
    let run = server.chat("call add {\"a\":1,\"b\":2}\nthen\ncall echo {\"text\":\"a\"}").await;
    let answers = tool_messages(&run);
    assert_eq!(answers[0]["status"], "error", "{run}");
    assert_eq!(answers[1]["content"], "a");
}

#[tokio::test]
async fn s2_38_an_agent_fails_at_its_turn_limit_and_the_thread_continues() {
    let desk = Desk::with("max_turns = 3");
    let server = Setup::desk(&desk).await.start().await;
    let run = server.say(None, "call echo {\"text\":\"a\"}\nagain").await;
    assert_eq!((&run["status"], &run["failure"]["code"]), (&json!("failed"), &json!("limit")));
    let words = run["failure"]["message"].as_str().unwrap();
    assert!(words.contains("3 turns") && words.contains("`max_turns`"), "{words}");
    assert_eq!(server.model_requests("chat").len(), 3);
    let thread = run["thread"].as_str().unwrap();
    let run = server.say(Some(thread), "that is enough").await;
    assert_eq!(run["status"], "completed", "{run}");
}

#[tokio::test]
async fn an_agent_can_end_at_its_turn_limit_with_a_result_for_every_call() {
    let desk = Desk::with("max_turns = 2\nat_limit = \"end\"");
    let server = Setup::desk(&desk).await.start().await;
    let run = server.chat("call echo {\"text\":\"a\"}\nagain").await;
    assert_eq!(roles(&run), ["user", "assistant", "tool", "assistant", "tool"]);
    assert_eq!(server.model_requests("chat").len(), 2);
    let thread = run["thread"].as_str().unwrap();
    let run = server.say(Some(thread), "that is enough").await;
    assert_eq!(run["status"], "completed", "{run}");
}

#[tokio::test]
async fn tools_see_the_configured_channels() {
    let desk = Desk::with("updates = [\"total\"]\nstate = [\"total\", \"result\"]");
    let server = Setup::desk(&desk).await.start().await;
    let script = "call add {\"a\":1,\"b\":2,\"channel\":\"total\"}\ncall whoami {}\n\
                  then\ncall whoami {}";
    let run = server.chat(script).await;
    let seen: Vec<Value> =
        tool_messages(&run).into_iter().map(|it| it["structured"]["state"].clone()).collect();
    let [_, before, after] = &seen[..] else { panic!("{run}") };
    assert_eq!(before, &json!({ "total": null, "result": null }), "as of the agent's turn");
    assert_eq!(after["total"], 3);
}

#[tokio::test]
async fn the_last_completion_is_also_a_document_if_a_schema_is_configured() {
    let desk = Desk::with(
        "answer = { name = \"verdict\", channel = \"result\", schema = { type = \"object\", \
         properties = { ok = { type = \"boolean\" } }, required = [\"ok\"], \
         additionalProperties = false } }",
    );
    let server = Setup::desk(&desk).await.start().await;
    let run = server.chat("call echo {\"text\":\"a\"}").await;
    assert_eq!(run["state"]["result"], json!({ "ok": false }), "{run}");
    assert_eq!(last_words(&run), "The tools answered:\necho: a");
    assert_eq!(server.model_requests("chat").len(), 3);
}

#[tokio::test]
async fn a_cancelled_call_gets_a_result_and_the_thread_continues() {
    let server = server().await;
    let gate = server.standin().gate(Pattern::path("/count/held"));
    let url = format!("{}/count/held", server.standin().base_url);
    let script = format!("call slow_then {{\"url\":\"{url}\",\"text\":\"slow\"}}");
    let run = server.post("/api/v1/apps/desk/runs", &message(None, &script)).await.expect(202);
    gate.arrived(1).await.unwrap();
    let path = format!("/api/v1/runs/{}", run["run"].as_str().unwrap());
    server.post(&format!("{path}/cancel"), &json!({})).await.expect(202);
    let ended = server.get(&format!("{path}/wait")).await.expect(200);
    assert_eq!(ended["status"], "cancelled", "{ended}");
    let gone = server.standin().wait_for_request(|it| it.outcome == Outcome::Abandoned);
    gone.await.unwrap();
    let run = server.say(run["thread"].as_str(), "are you still there?").await;
    assert_eq!(run["status"], "completed", "the model accepts the conversation: {run}");
    let answers = tool_messages(&run);
    assert_eq!(answers[0]["content"], "the call was cancelled before it returned a result");
    assert_eq!((answers.len(), &answers[0]["status"]), (1, &json!("error")));
}
