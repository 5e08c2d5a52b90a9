//! Tools that nodes call. Their calls are journaled under the scope of the tool call, so that none
//! is repeated after a crash.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Barrier, Notify};
use tokio::time::timeout;
use wattle_graph::event::EventKind;
use wattle_graph::failure::{Failure, code};
use wattle_graph::tool::{ToolOutput, ToolRequest};
use wattle_run::caller_id::CallerId;
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::CallError;
use wattle_run::grant::{Grants, SqlAccess};
use wattle_run::hostcall::http::HttpRequest;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{OnFailure, RunOutcome, RunService};
use wattle_run::hostcall::sql::SqlValue;
use wattle_run::limit::{self, SqlLimits};
use wattle_run::ports::sandbox::{PluginToolCall, ToolHints, ToolInfo};
use wattle_run::ports::tool_server::{NoToolServers, ServerCall, ServerCallResult};
use wattle_run::ports::{Caller, Sql, ToolServers};
use wattle_sql::{DatabaseConfig, Databases};
use wattle_suite::native::{Answer, NativePlugin};
use wattle_suite::scripted::{NoSql, get, prompt, said, unavailable};
use wattle_suite::world::{World, failure, questions};

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
reducer = "append"
[graphs.one.nodes.work]
plugin = "p"
retry = { attempts = 2, initial = "1ms" }
"#;

fn request(tool: &str, arguments: Value) -> ToolRequest {
    ToolRequest {
        tool: tool.into(),
        call_id: String::new(),
        arguments,
        timeout_ms: None,
        state: None,
    }
}

fn question(payload: Value) -> InterruptRequest {
    InterruptRequest { payload, response_schema: None }
}

/// Returns a plugin whose node calls the tools of its input concurrently and writes their results.
fn caller() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |call, gate| async move {
        let wanted = call.input.get("out")[0].as_array().cloned().unwrap_or_default();
        let requests = wanted
            .iter()
            .map(|call| Ok(request(call[0].as_str().unwrap_or_default(), call[1].clone())));
        let answers = gate.call_tools(requests.collect()).await?;
        let texts: Vec<Value> = answers
            .into_iter()
            .map(|answer| match answer {
                Ok(output) => output.structured.unwrap_or_default(),
                Err(failure) => json!({ "code": failure.code, "message": failure.message }),
            })
            .collect();
        if texts.iter().any(|text| text["code"] == code::UNAVAILABLE) {
            return Err(unavailable().into());
        }
        Ok(json!({ "out": texts }))
    })
}

/// Returns a plugin with tools that call a model and HTTP, or raise an interrupt.
fn helper(name: &str) -> NativePlugin {
    NativePlugin::new(name, "1")
        .tool("think", |call, gate| async move {
            let thought = said(&gate.call(prompt(&call.arguments.to_string())).await?);
            gate.call(get(call.arguments["url"].as_str().unwrap_or("https://a.example/x"))).await?;
            Ok(json!({ "thought": thought, "id": call.call_id }))
        })
        .tool("confirm", |call, gate| async move {
            let draft = said(&gate.call(prompt("draft")).await?);
            let answer = gate.ask(question(call.arguments)).await?;
            gate.call(get("https://a.example/done")).await?;
            Ok(json!({ "draft": draft, "answer": answer }))
        })
}

fn input(calls: Value) -> Value {
    json!({ "out": calls })
}

fn world() -> World {
    World::with_tools(ONE, vec![caller(), helper("t")], Arc::new(NoToolServers))
}

/// Returns the input of the node: a list in a list, because the channel appends.
fn calls(calls: Value) -> Value {
    input(json!([calls]))
}

#[tokio::test]
async fn results_have_the_order_of_the_calls_and_invalid_calls_fail_separately() {
    let ended = world()
        .run(calls(json!([
            ["think", { "n": 1 }],
            ["nothing", {}],
            ["think", "no object"],
            ["t/think", { "n": 2 }],
            ["other/think", {}],
            ["thinc", {}],
            ["t/confrim", {}],
        ])))
        .await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    let out = &ended.state["out"];
    assert!(out[1]["thought"].is_string() && out[4]["thought"].is_string(), "{out}");
    assert_eq!(out[2]["code"], code::NOT_FOUND);
    let message = |index: usize| out[index]["message"].as_str().unwrap();
    assert!(message(2).contains("may call: `think`, `confirm`"), "{out}");
    assert_eq!(out[3]["code"], code::INVALID);
    assert_eq!(out[5]["code"], code::DENIED);
    assert_eq!((&out[6]["code"], &out[7]["code"]), (&out[2]["code"], &out[2]["code"]));
    assert!(message(6).contains("did you mean `think`?"), "{out}");
    assert!(message(7).contains("did you mean `t/confirm`?"), "{out}");
    // The caller may call every tool of this plugin.
    let needs = "a tool of a plugin that the app does not use yet needs `tools` under";
    assert!(message(6).contains(needs) && !message(7).contains(needs), "{out}");
}

#[tokio::test]
async fn a_tool_that_is_not_granted_is_denied_with_the_line_to_add() {
    async fn nothing(_: PluginToolCall, _: Arc<Gate>) -> Answer {
        Ok(Value::Null)
    }
    let nested = NativePlugin::new("t", "1").tool("shared", nothing).tool("nested", |_, gate| {
        // The plugin of this tool was granted no tools, not even its own ones.
        async move {
            match gate.call_tool(request("shared", json!({}))).await {
                Err(CallError::Failure(failure)) => {
                    Ok(json!({ "code": failure.code, "message": failure.message }))
                }
                other => Err(Failure::internal(format!("{other:?}")).into()),
            }
        }
    });
    let own = caller().tool("own", nothing).tool("shared", nothing);
    let world = World::with_tools(ONE, vec![own, nested], Arc::new(NoToolServers));
    let ended = world.run(calls(json!([["own", {}], ["nested", {}], ["shared", {}]]))).await;
    let denied = |tool: &str, lines: &str, plugin: &str| {
        json!({
            "code": code::DENIED,
            "message": format!(
                "plugin `{plugin}` may not call the tool `{tool}`; add {lines} under \
                 `[grants.\"test/{plugin}\"]` in wattle.toml"
            ),
        })
    };
    let either = "`tools = [\"p/shared\"]` or `tools = [\"t/shared\"]`";
    let out = &ended.state["out"];
    assert_eq!(out[1], denied("own", "`tools = [\"p/own\"]`", "p"));
    assert_eq!(out[2], denied("shared", either, "t"));
    assert_eq!(out[3], Value::Null, "a tool of one plugin was granted: {out}");
}

#[tokio::test]
async fn a_tool_sees_the_state_and_the_log_shows_the_call_without_it() {
    let caller = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let state = json!({ "text": "x".repeat(limit::JOURNAL_REQUEST_BYTES) });
        let request = request("measure", json!({ "n": 1 }));
        let answer = gate.call_tool(ToolRequest { state: Some(state), ..request }).await?;
        Ok(json!({ "out": [answer.structured] }))
    });
    let tool = NativePlugin::new("t", "1").tool("measure", |call, _| async move {
        let state = call.state.unwrap_or_default();
        Ok(json!(state["text"].as_str().map(str::len)))
    });
    let world = World::with_tools(ONE, vec![caller, tool], Arc::new(NoToolServers));
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state["out"], json!([limit::JOURNAL_REQUEST_BYTES]));
    let events = world.events(&ended.run.thread).await;
    let shown = events.iter().find_map(|event| match &event.kind {
        EventKind::Called(called) => Some(&called.request),
        _ => None,
    });
    assert_eq!(shown, Some(&json!({ "tool": "measure", "call_id": "", "arguments": { "n": 1 } })));
}

#[tokio::test]
async fn a_crash_inside_of_a_tool_repeats_no_finished_call() {
    let mut world = world();
    world.net.hang_next(1);
    let run = world.begin(calls(json!([["think", { "url": "https://a.example/slow" }]])));
    let run = run.await.unwrap();
    world.net.hung().await;
    world.crash().await;
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["out"][1]["thought"], "answer 1");
    assert_eq!(world.model.calls(), 1, "the tool's model call was journaled");
}

#[tokio::test]
async fn a_retried_node_repeats_no_finished_call_of_its_tools() {
    let world = world();
    world.net.fail_next(unavailable());
    let ended = world.run(calls(json!([["think", {}], ["think", { "other": 1 }]]))).await;
    assert_eq!(ended.outcome, RunOutcome::Completed, "{:?}", ended.outcome);
    assert_eq!(world.model.calls(), 2);
    assert_eq!(world.net.calls(), 3, "the failed call is repeated");
}

#[tokio::test]
async fn interrupts_of_three_tools_are_answered_in_any_order() {
    let mut world = world();
    let first = world
        .run(calls(
            json!([["confirm", { "n": 1 }], ["confirm", { "n": 2 }], ["confirm", { "n": 3 }]]),
        ))
        .await;
    let asked = questions(&first);
    assert_eq!(asked.len(), 3);
    let id = |n: i64| {
        asked.iter().find(|q| q.payload == json!({ "n": n })).map(|q| q.id.clone()).unwrap()
    };
    let thread = first.run.thread.clone();
    for (n, left) in [(3, 2), (1, 1)] {
        world.crash().await;
        let ended =
            world.resume(&thread, &[(&id(n), json!(n * 10))], OnFailure::Keep).await.unwrap();
        assert_eq!(questions(&ended).len(), left);
    }
    let ended = world.resume(&thread, &[(&id(2), json!(20))], OnFailure::Keep).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    let answers: Vec<&Value> =
        ended.state["out"].as_array().unwrap()[1..].iter().map(|out| &out["answer"]).collect();
    assert_eq!(answers, [10, 20, 30]);
    assert_eq!((world.model.calls(), world.net.calls()), (3, 3), "no call is repeated");
}

#[tokio::test]
async fn a_reopened_interrupt_of_a_tool_repeats_no_finished_call() {
    let world = world();
    let first = world.run(calls(json!([["confirm", {}]]))).await;
    let thread = first.run.thread.clone();
    for _ in 0..2 {
        world.net.fail_next(unavailable());
    }
    let failed = world.resume(&thread, &[("", json!(1))], OnFailure::Reopen).await.unwrap();
    assert_eq!(failure(&failed).code, code::UNAVAILABLE);
    let ended = world.answer(&thread, json!(2)).await;
    assert_eq!(ended.state["out"][1], json!({ "draft": "answer 1", "answer": 2 }));
    assert_eq!(world.model.calls(), 1);
}

#[tokio::test]
async fn calls_inside_of_a_tool_have_its_scope_in_the_log() {
    let world = world();
    let ended = world.run(calls(json!([["think", {}]]))).await;
    let called: Vec<(Vec<u32>, u32, String)> = world
        .events(&ended.run.thread)
        .await
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::Called(called) => Some((called.scope, called.call, called.function)),
            _ => None,
        })
        .collect();
    let expected = [
        (vec![0], 0, "llm.complete".to_owned()),
        (vec![0], 1, "http.send".to_owned()),
        (vec![], 0, "tools.call".to_owned()),
    ];
    assert_eq!(called, expected);
}

#[tokio::test]
async fn an_ambiguous_tool_name_calls_none_of_the_tools() {
    let plugins = vec![caller(), helper("t"), helper("u")];
    let world = World::with_tools(ONE, plugins, Arc::new(NoToolServers));
    let ended = world.run(calls(json!([["think", {}], ["u/think", {}]]))).await;
    let out = &ended.state["out"];
    assert_eq!(out[1]["code"], code::DENIED);
    let message = out[1]["message"].as_str().unwrap();
    assert!(message.contains("`t/think`") && message.contains("`u/think`"), "{message}");
    assert!(out[2]["thought"].is_string(), "{out}");
    let told = world.events(&ended.run.thread).await.into_iter().any(
        |event| matches!(event.kind, EventKind::Log(log) if log.message.contains("is ambiguous")),
    );
    assert!(told, "the ambiguity is logged");
}

fn tool(name: &str, read_only: bool) -> ToolInfo {
    ToolInfo {
        name: name.into(),
        description: String::new(),
        arguments_schema: json!({}),
        accepts_invalid: false,
        hints: ToolHints { read_only, idempotent: false },
        reference: None,
        unavailable: None,
    }
}

/// An MCP server with one tool, which is idempotent if `safe` is true.
struct Far {
    name: &'static str,
    safe: bool,
    calls: AtomicUsize,
    hangs: AtomicUsize,
    arrived: Notify,
}

impl Far {
    fn new(name: &'static str, safe: bool, hangs: usize) -> Arc<Self> {
        let (calls, hangs) = (AtomicUsize::new(0), AtomicUsize::new(hangs));
        Arc::new(Self { name, safe, calls, hangs, arrived: Notify::new() })
    }
}

#[async_trait]
impl ToolServers for Far {
    fn has_server(&self, server: &str) -> bool {
        server == "far"
    }

    async fn list(&self, _: &Caller, _: &str) -> Result<Vec<ToolInfo>, Failure> {
        Ok(vec![tool(self.name, self.safe)])
    }

    async fn call(
        &self,
        _: &Caller,
        _: &str,
        _: ServerCall<'_>,
    ) -> Result<ServerCallResult, Failure> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let hangs = self.hangs.load(Ordering::SeqCst);
        self.hangs.store(hangs.saturating_sub(1), Ordering::SeqCst);
        if hangs > 0 {
            self.arrived.notify_one();
            std::future::pending::<()>().await;
        }
        let output = ToolOutput { structured: Some(json!("there")), ..ToolOutput::default() };
        Ok(ServerCallResult::Returned(output))
    }
}

async fn crash_in_a_server_call(safe: bool) -> (Value, usize) {
    let far = Far::new("far.away", safe, 1);
    let mut world = World::with_tools(ONE, vec![caller()], far.clone());
    let run = world.begin(calls(json!([["far.away", {}]]))).await.unwrap();
    far.arrived.notified().await;
    world.crash().await;
    world.engine.recover().await;
    let ended = world.engine.wait(&run).await.unwrap();
    (ended.state["out"][1].clone(), far.calls.load(Ordering::SeqCst))
}

#[tokio::test]
async fn an_mcp_call_is_repeated_after_a_crash_only_if_it_is_idempotent() {
    let (answer, calls) = crash_in_a_server_call(true).await;
    assert_eq!((answer, calls), (json!("there"), 2));
    let (answer, calls) = crash_in_a_server_call(false).await;
    assert_eq!((answer["code"].as_str(), calls), (Some(code::IN_DOUBT), 1));
}

#[tokio::test]
async fn deltas_of_every_completion_are_in_the_log() {
    let world = world();
    let ended = world.run(calls(json!([["think", {}]]))).await;
    let text: String = world
        .events(&ended.run.thread)
        .await
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::Streamed(streamed) => Some(streamed),
            _ => None,
        })
        .flat_map(|streamed| {
            assert_eq!((streamed.scope.as_slice(), streamed.call), ([0].as_slice(), 0));
            streamed.deltas
        })
        .map(|delta| match delta {
            wattle_graph::llm::Delta::Text { text } => text,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(text, "answer 1");
}

fn looking() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let mut stream = gate.stream(prompt("look"))?;
        let mut looks = Vec::new();
        loop {
            let deltas = stream.next().await?;
            if deltas.is_empty() {
                break;
            }
            looks.push(json!(deltas));
        }
        let answer = said(&stream.finish().await?);
        gate.call(get("https://a.example/slow")).await?;
        Ok(json!({ "out": [looks, answer] }))
    })
}

#[tokio::test]
async fn a_re_executed_guest_reads_the_same_deltas() {
    let mut world = World::new(ONE, looking());
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    world.engine.recover().await;
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["out"][1], "answer 1");
    assert_eq!(world.model.calls(), 1);
}

#[tokio::test]
async fn a_tool_of_an_mcp_server_cannot_take_the_reference_of_another_tool() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let names: Vec<String> = gate.tools().await?.into_iter().map(|tool| tool.name).collect();
        let far = gate.call_tool(request("mcp:far/t/think", json!({}))).await?;
        Ok(json!({ "out": [names, far.structured] }))
    });
    let far = Far::new("t/think", true, 0);
    let world = World::with_tools(ONE, vec![plugin, helper("t")], far);
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state["out"][0], json!(["think", "confirm", "mcp:far/t/think"]));
    assert_eq!(ended.state["out"][1], "there");
}

/// MCP servers that return their lists only after all of them were requested.
struct Together(Barrier);

#[async_trait]
impl ToolServers for Together {
    fn has_server(&self, _: &str) -> bool {
        true
    }

    async fn list(&self, _: &Caller, server: &str) -> Result<Vec<ToolInfo>, Failure> {
        self.0.wait().await;
        Ok(vec![tool(server, true)])
    }

    async fn call(
        &self,
        _: &Caller,
        _: &str,
        _: ServerCall<'_>,
    ) -> Result<ServerCallResult, Failure> {
        Err(unavailable())
    }
}

#[tokio::test]
async fn tool_lists_of_mcp_servers_are_requested_concurrently() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let names: Vec<String> = gate.tools().await?.into_iter().map(|tool| tool.name).collect();
        Ok(json!({ "out": names }))
    });
    let tools = vec!["mcp:far/*".parse().unwrap(), "mcp:near/*".parse().unwrap()];
    let servers = Arc::new(Together(Barrier::new(tools.len())));
    let world = World::with_servers(ONE, plugin, servers, Grants { tools, ..Grants::default() });
    let ended = timeout(Duration::from_mins(1), world.run(json!({}))).await;
    assert_eq!(ended.expect("no server waits for another").state["out"], json!(["far", "near"]));
}

/// Creates a world with one plugin that may call its own tools.
fn alone(plugin: NativePlugin, sql: Arc<dyn Sql>) -> World {
    let tools = vec!["p/*".parse().unwrap()];
    let sql_rules = [("db".to_owned(), SqlAccess::ReadWrite.into())].into();
    World::with_sql(ONE, plugin, sql, Grants { tools, sql: sql_rules, ..Grants::default() })
}

#[tokio::test]
async fn calls_inside_of_tools_have_unique_ids_and_a_depth_limit() {
    let plugin = caller()
        .tool("outer", |_, gate| async move {
            let inner = gate.call_tool(request("inner", json!({}))).await?;
            Ok(inner.structured.unwrap_or_default())
        })
        .tool("inner", |call, _| async move { Ok(json!(call.call_id)) })
        .tool("down", |_, gate| async move {
            let below = gate.call_tool(request("down", json!({}))).await?;
            Ok(below.structured.unwrap_or_default())
        });
    let world = alone(plugin, Arc::new(NoSql));
    let ended = world.run(calls(json!([["outer", {}], ["outer", {}], ["down", {}]]))).await;
    let out = &ended.state["out"];
    assert!(out[1].is_string() && out[2].is_string(), "{out}");
    assert_ne!(out[1], out[2]);
    assert_eq!(out[3]["code"], code::LIMIT);
}

#[tokio::test]
async fn tools_of_one_turn_commit_separate_transactions() {
    let folder = TempDir::new().unwrap();
    let config = DatabaseConfig::new("sqlite:test.db");
    let databases = BTreeMap::from([("db".to_owned(), config)]);
    let sql = Arc::new(Databases::open(databases, folder.path()).await.unwrap());
    let limits = SqlLimits::default();
    let mut table = sql.begin(CallerId::default(), "db", &limits).await.unwrap();
    table.execute("CREATE TABLE item (name TEXT NOT NULL)", &[]).await.unwrap();
    table.commit(None).await.unwrap();
    let plugin = caller().tool("insert", |call, gate| async move {
        let name = call.arguments["name"].as_str().unwrap_or_default();
        let insert = "INSERT INTO item (name) VALUES ($1)";
        gate.execute("db", insert, vec![SqlValue::Text(name.into())]).await?;
        Ok(json!("written"))
    });
    let world = alone(plugin, sql.clone());
    let two = calls(json!([["insert", { "name": "a" }], ["insert", { "name": "b" }]]));
    let ended = world.run(two).await;
    assert_eq!(ended.state["out"].as_array().unwrap()[1..], ["written", "written"]);
    let names = "SELECT name FROM item ORDER BY name";
    let rows = sql
        .query(CallerId::default(), "db", &SqlAccess::ReadOnly.into(), &limits, names, &[])
        .await
        .unwrap();
    let text = |name: &str| SqlValue::Text(name.into());
    assert_eq!(rows.rows, [[text("a")], [text("b")]], "both, whose calls have the same number");
}

const TWO: &str = r#"
[graphs.two]
entry = ["a", "b"]
[graphs.two.channels.out]
reducer = "append"
[graphs.two.nodes.a]
plugin = "p"
node = "pay"
[graphs.two.nodes.b]
plugin = "p"
node = "pay"
"#;

#[tokio::test]
async fn a_call_that_a_reopen_discarded_is_not_in_doubt() {
    let plugin = NativePlugin::new("p", "1").node("pay", |_, gate| async move {
        let answer = gate.ask(question(json!("pay?"))).await?;
        if answer == "fail" {
            return Err(Failure::new(code::INVALID, "not like this").into());
        }
        gate.call(HttpRequest { method: "POST".into(), ..get("https://a.example/pay") }).await?;
        Ok(json!({ "out": answer }))
    });
    let world = World::new(TWO, plugin);
    let first = world.run(json!({})).await;
    let asked = questions(&first);
    let id = |node: &str| asked.iter().find(|q| q.node.as_str() == node).unwrap().id.clone();
    let (a, b) = (id("a"), id("b"));
    let thread = &first.run.thread;
    let answers = [(&*a, json!("yes")), (&*b, json!("fail"))];
    let failed = world.resume(thread, &answers, OnFailure::Reopen).await.unwrap();
    assert_eq!(failure(&failed).code, code::INVALID);
    let answers = [(&*a, json!("yes")), (&*b, json!("yes"))];
    let ended = world.resume(thread, &answers, OnFailure::Reopen).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed, "{:?}", ended.outcome);
    assert_eq!(world.net.calls(), 3, "the call of `a` after the discarded answer is repeated");
}
