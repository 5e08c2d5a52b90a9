//! Forks from a host call: only the work after the overridden result is repeated.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use wattle_graph::event::{Called, EventKind};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ThreadId;
use wattle_graph::principal::Principal;
use wattle_graph::tool::ToolRequest;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::{Grants, SqlAccess};
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{EndedRun, OnFailure, ResumeRun, RunOutcome, RunService};
use wattle_run::limit::SqlLimits;
use wattle_run::ports::Sql;
use wattle_run::ports::store::{RunOptions, Store};
use wattle_run::ports::tool_server::NoToolServers;
use wattle_run::time_travel::{CallRef, ForkFrom, ForkInto, ForkThread};
use wattle_sql::{DatabaseConfig, Databases};
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said};
use wattle_suite::world::{World, questions};

use super::{LINE, TWO, forks, line};
use crate::engine::history;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
retry = { attempts = 2, initial = "1ms" }
"#;

pub(super) fn from(thread: &ThreadId, call: CallRef, result: Result<Value, Failure>) -> ForkThread {
    ForkThread {
        run: None,
        thread: thread.clone(),
        from: ForkFrom::Call { call, result },
        into: ForkInto::InPlace,
        app: None,
        tenant: None,
        options: RunOptions::default(),
        principal: None,
    }
}

pub(super) async fn calls(world: &World, thread: &ThreadId) -> Vec<(u64, Called)> {
    let events = world.events(thread).await.into_iter();
    let calls = events.filter_map(|event| match event.kind {
        EventKind::Called(called) => Some((event.seq, *called)),
        _ => None,
    });
    calls.collect()
}

/// Returns the newest journal entry of a function with this scope and call number.
pub(super) async fn entry(
    world: &World,
    thread: &ThreadId,
    function: &str,
    place: &[u32],
) -> CallRef {
    let calls = calls(world, thread).await.into_iter().rev();
    let at = |called: &Called| called.scope.iter().chain([&called.call]).eq(place);
    let mut found = calls.filter(|(_, called)| called.function == function && at(called));
    CallRef::Seq(found.next().expect("the call was made").0)
}

pub(super) async fn fork(
    world: &World,
    thread: &ThreadId,
    call: CallRef,
    result: Result<Value, Failure>,
) -> EndedRun {
    let run = world.engine.fork(from(thread, call, result)).await.expect("the fork starts");
    world.engine.wait(&run).await.expect("the run ends")
}

/// Returns the completion `answer 1` with another text.
pub(super) async fn reworded(world: &World, thread: &ThreadId, text: &str) -> Value {
    let calls = calls(world, thread).await;
    // The order of completions of concurrent models is not deterministic.
    let said = calls.iter().filter(|(_, it)| it.function == "llm.complete");
    let mut answers = said.map(|(_, it)| it.result.as_ref().expect("a result").to_string());
    let first = answers.find(|answer| answer.contains("answer 1")).expect("a call");
    serde_json::from_str(&first.replace("answer 1", text)).expect("valid JSON")
}

/// Returns a plugin whose node calls a model three times and a service in between.
fn three_times() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let one = said(&gate.call(prompt("one")).await?);
        gate.call(get("https://a.example/x")).await?;
        let two = said(&gate.call(prompt(&format!("two after {one}"))).await?);
        let three = said(&gate.call(prompt(&format!("three after {two}"))).await?);
        Ok(json!({ "out": [one, two, three] }))
    })
}

#[tokio::test]
async fn a_fork_from_a_call_repeats_only_later_calls() {
    let world = World::new(ONE, three_times());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    assert_eq!((world.model.calls(), world.net.calls()), (3, 1));
    let call = entry(&world, thread, "llm.complete", &[2]).await;
    let answer = reworded(&world, thread, "what if").await;
    let forked = fork(&world, thread, call, Ok(answer)).await;
    assert_eq!(forked.state["out"], json!(["answer 1", "what if", "answer 4"]));
    assert_eq!((world.model.calls(), world.net.calls()), (4, 1));
    let calls = calls(&world, thread).await;
    let again: Vec<_> = calls.iter().skip(4).collect();
    let reused: Vec<_> = again.iter().map(|(_, called)| called.reused).collect();
    assert_eq!(reused, [Some(calls[0].0), Some(calls[1].0), None, None]);
    assert!(again[..3].iter().all(|(_, called)| called.tokens.is_none()), "counted before");
    assert_ne!(again[0].1.task, calls[0].1.task, "tasks of a fork have other ids");
    let told = |kind: &EventKind| match kind {
        EventKind::Forked(forked) => forked.call.as_ref().is_some_and(|call| call.call == 2),
        _ => false,
    };
    assert_eq!(world.count(thread, told).await, 1);
}

/// The task of the fork has another id, which is in the message after each conversation.
#[tokio::test]
async fn a_call_with_a_history_is_not_repeated_in_a_fork() {
    let plugin = NativePlugin::new("p", "1").node("reply", |call, gate| async move {
        let request = |from| history::request(&gate, "messages", from, call.task.as_str());
        let one = said(&gate.call(request(0)?).await?);
        let two = said(&gate.call(request(1)?).await?);
        Ok(json!({ "out": [one, two] }))
    });
    let world = World::new(history::TALK, plugin);
    let ended = world.run(json!({ "messages": [history::user("m1", "hi")] })).await;
    let thread = &ended.run.thread;
    let call = entry(&world, thread, "llm.complete", &[1]).await;
    let completion = reworded(&world, thread, "what if").await;
    let forked = fork(&world, thread, call, Ok(completion)).await;
    assert_eq!(forked.state["out"], json!(["answer 1", "what if"]));
    assert_eq!(world.model.calls(), 2);
}

#[tokio::test]
async fn an_overridden_completion_has_call_ids_for_its_conversation() {
    let world = history::conversing().await;
    let input = history::conversation(json!({ "channel": "messages", "at": 1 }));
    let ended = world.run(input).await;
    let thread = &ended.run.thread;
    let call = entry(&world, thread, "llm.complete", &[0]).await;
    let mut completion = reworded(&world, thread, "what if").await;
    completion["parts"] = json!([{ "tool_call": { "id": "c", "name": "find", "arguments": {} } }]);
    let forked = fork(&world, thread, call, Ok(completion)).await;
    assert_eq!(forked.state["results"][0], json!({ "call_ids": ["c-2"] }));
}

#[tokio::test]
async fn a_fork_of_a_fork_refers_to_the_original_call() {
    let world = World::new(ONE, three_times());
    let thread = &world.run(json!({})).await.run.thread;
    let first = calls(&world, thread).await[0].0;
    for text in ["once", "twice"] {
        let call = entry(&world, thread, "llm.complete", &[2]).await;
        let answer = reworded(&world, thread, text).await;
        let forked = fork(&world, thread, call, Ok(answer)).await;
        assert_eq!(forked.state["out"][1], text);
    }
    assert_eq!(world.model.calls(), 5);
    let reused = calls(&world, thread).await.into_iter().filter_map(|(_, called)| called.reused);
    assert_eq!(reused.filter(|seq| *seq == first).count(), 2);
}

#[tokio::test]
async fn a_call_can_be_addressed_by_number_and_overridden_with_a_failure() {
    let world = World::new(ONE, three_times());
    let thread = &world.run(json!({})).await.run.thread;
    let task = calls(&world, thread).await[0].1.task.clone();
    let call = CallRef::Path { task: task.clone(), scope: Vec::new(), call: 1 };
    let away = Failure::new(code::UNAVAILABLE, "what if it is away");
    let forked = fork(&world, thread, call, Err(away)).await;
    let RunOutcome::Failed { failure } = forked.outcome else { panic!("{:?}", forked.outcome) };
    assert!(failure.message.contains("what if it is away"), "{failure}");
    assert_eq!(world.model.calls(), 3);
    let nowhere = CallRef::Path { task, scope: vec![0], call: 1 };
    let refused = world.engine.fork(from(thread, nowhere, Ok(json!(1)))).await.unwrap_err();
    assert_eq!(refused.code, code::NOT_FOUND);
}

#[tokio::test]
async fn an_invalid_overridden_result_is_refused() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let now = gate.now_ms()?;
        let event = wattle_run::hostcall::emit::Emission::Progress {
            message: "here".into(),
            fraction: None,
        };
        gate.emit(event).await?;
        gate.call(prompt("x")).await?;
        Ok(json!({ "out": now }))
    });
    let world = World::new(ONE, plugin);
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let before = world.events(thread).await;
    let fork = |call, result| world.engine.fork(from(thread, call, result));
    let model = entry(&world, thread, "llm.complete", &[2]).await;
    let refused = fork(model, Ok(json!("words"))).await.unwrap_err();
    assert_eq!(refused.code, code::INVALID, "{refused}");
    let emitted = entry(&world, thread, "emit.progress", &[1]).await;
    assert_eq!(fork(emitted, Ok(json!(null))).await.unwrap_err().code, code::UNSUPPORTED);
    let clock = entry(&world, thread, "clock.now", &[0]).await;
    let away = Failure::new(code::UNAVAILABLE, "no time");
    assert_eq!(fork(clock.clone(), Err(away)).await.unwrap_err().code, code::INVALID);
    assert_eq!(fork(CallRef::Seq(1), Ok(json!(1))).await.unwrap_err().code, code::NOT_FOUND);
    let started = before.iter().find(|it| matches!(it.kind, EventKind::TaskStarted(_))).unwrap();
    let no_call = CallRef::Seq(started.seq);
    assert_eq!(fork(no_call, Ok(json!(1))).await.unwrap_err().code, code::INVALID);
    assert_eq!(world.events(thread).await, before, "nothing was written");
    let run = fork(clock, Ok(json!(17))).await.unwrap();
    assert_eq!(world.engine.wait(&run).await.unwrap().state["out"], 17);
}

#[tokio::test]
async fn other_tasks_of_the_superstep_are_carried_over() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let plugin = NativePlugin::new("p", "1")
        .node("left", |_, gate| async move {
            Ok(json!({ "trail": said(&gate.call(prompt("left")).await?) }))
        })
        .node("right", move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { Ok(json!({ "trail": "right" })) }
        })
        .node("last", |_, _| async move { Ok(json!({ "trail": "last" })) });
    let world = World::new(TWO, plugin);
    let thread = &world.run(json!({})).await.run.thread;
    let call = entry(&world, thread, "llm.complete", &[0]).await;
    let answer = reworded(&world, thread, "what if").await;
    let forked = fork(&world, thread, call, Ok(answer)).await;
    assert_eq!(forked.state["trail"], json!(["what if", "right", "last"]));
    assert_eq!((runs.load(Ordering::SeqCst), world.model.calls()), (1, 1));
}

#[tokio::test]
async fn answers_before_the_call_are_carried_over_and_later_ones_are_not() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let ask = |payload: Value| InterruptRequest { payload, response_schema: None };
        let one = gate.ask(ask(json!("first?"))).await?;
        let two = said(&gate.call(prompt("x")).await?);
        let three = gate.ask(ask(json!({ "after": two }))).await?;
        Ok(json!({ "out": [one, two, three] }))
    });
    let world = World::new(ONE, plugin);
    let thread = &world.run(json!({})).await.run.thread;
    let jane = Some(Principal { user: Some("jane".into()), ..Principal::default() });
    let first = ResumeRun {
        run: None,
        thread: thread.clone(),
        answers: [(String::new(), json!(1))].into(),
        on_failure: OnFailure::Keep,
        app: None,
        tenant: None,
        options: RunOptions::default(),
        principal: jane.clone(),
    };
    let run = world.engine.resume(first).await.unwrap();
    world.engine.wait(&run).await.unwrap();
    let ended = world.answer(thread, json!(3)).await;
    assert_eq!(ended.state["out"], json!([1, "answer 1", 3]));
    let call = entry(&world, thread, "llm.complete", &[1]).await;
    let answer = reworded(&world, thread, "what if").await;
    let forked = fork(&world, thread, call, Ok(answer)).await;
    assert_eq!(questions(&forked)[0].payload, json!({ "after": "what if" }));
    let events = world.events(thread).await;
    let answers = events.iter().filter_map(|event| match &event.kind {
        EventKind::Answered(answered) => Some((&answered.answer, &answered.principal)),
        _ => None,
    });
    let answers: Vec<_> = answers.collect();
    let (one, three) = (json!(1), json!(3));
    assert_eq!(
        answers,
        [(&one, &jane), (&three, &None), (&one, &jane)],
        "a fork keeps the principals"
    );
    let ended = world.answer(thread, json!(4)).await;
    assert_eq!(ended.state["out"], json!([1, "what if", 4]));
    assert_eq!(world.model.calls(), 1);
}

/// Returns a plugin whose node calls two tools and then a model, and a plugin with the tools. One
/// of them calls a model twice.
fn toolbox() -> Vec<NativePlugin> {
    let node = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let request = |tool: &str| {
            let (call_id, arguments) = (String::new(), json!({}));
            Ok(ToolRequest { tool: tool.into(), call_id, arguments, timeout_ms: None, state: None })
        };
        let answers = gate.call_tools(vec![request("think"), request("reach")]).await?;
        let mut out = Vec::new();
        for answer in answers {
            out.push(answer?.structured.unwrap_or_default());
        }
        out.push(json!(said(&gate.call(prompt("after all")).await?)));
        Ok(json!({ "out": out }))
    });
    let tools = NativePlugin::new("h", "1")
        .tool("think", |_, gate| async move {
            let one = said(&gate.call(prompt("deep")).await?);
            let two = said(&gate.call(prompt(&format!("deeper than {one}"))).await?);
            Ok(json!([one, two]))
        })
        .tool("reach", |_, gate| async move {
            let answer = gate.call(get("https://a.example/x")).await?;
            Ok(json!(answer.status))
        });
    vec![node, tools]
}

#[tokio::test]
async fn a_result_inside_of_a_tool_can_be_overridden() {
    let world = World::with_tools(ONE, toolbox(), Arc::new(NoToolServers));
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state["out"], json!([["answer 1", "answer 2"], 200, "answer 3"]));
    let thread = &ended.run.thread;
    let call = entry(&world, thread, "llm.complete", &[0, 0]).await;
    let answer = reworded(&world, thread, "what if").await;
    let forked = fork(&world, thread, call, Ok(answer)).await;
    assert_eq!(forked.state["out"], json!([["what if", "answer 4"], 200, "answer 5"]));
    assert_eq!(world.net.calls(), 1, "the other tool is not called again");
}

#[tokio::test]
async fn the_result_of_a_tool_can_be_overridden() {
    let world = World::with_tools(ONE, toolbox(), Arc::new(NoToolServers));
    let thread = &world.run(json!({})).await.run.thread;
    let call = entry(&world, thread, "tools.call", &[0]).await;
    let answer = json!({ "content": [], "structured": "what if" });
    let forked = fork(&world, thread, call, Ok(answer)).await;
    assert_eq!(forked.state["out"], json!(["what if", 200, "answer 4"]));
    assert_eq!((world.model.calls(), world.net.calls()), (4, 1), "no call of the tool is repeated");
}

#[tokio::test]
async fn a_fork_from_a_call_into_a_new_thread_does_not_change_the_old_one() {
    let world = World::new(ONE, three_times());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let before = world.events(thread).await;
    let call = entry(&world, thread, "llm.complete", &[2]).await;
    let answer = reworded(&world, thread, "what if").await;
    let into = ForkInto::Copy { thread: None };
    let request = ForkThread { into, ..from(thread, call, Ok(answer)) };
    let run = world.engine.fork(request).await.unwrap();
    let forked = world.engine.wait(&run).await.unwrap();
    assert_ne!(run.thread, *thread);
    assert_eq!(forked.state["out"], json!(["answer 1", "what if", "answer 4"]));
    assert_eq!(world.events(thread).await, before);
    assert_eq!((world.model.calls(), world.net.calls()), (4, 1));
}

#[tokio::test]
async fn a_fork_keeps_carried_over_results_after_a_crash() {
    let store: Arc<dyn Store> = Arc::new(InMemoryStore::new());
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let one = said(&gate.call(prompt("one")).await?);
        let two = said(&gate.call(prompt("two")).await?);
        gate.call(get("https://a.example/slow")).await?;
        Ok(json!({ "out": [one, two] }))
    });
    let mut world = World::with_store(ONE, plugin, store);
    let thread = &world.run(json!({})).await.run.thread;
    let call = entry(&world, thread, "llm.complete", &[1]).await;
    let answer = reworded(&world, thread, "what if").await;
    world.net.hang_next(1);
    let run = world.engine.fork(from(thread, call, Ok(answer))).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.state["out"], json!(["answer 1", "what if"]));
    assert_eq!(world.model.calls(), 2);
}

#[tokio::test]
async fn an_overridden_completion_is_streamed() {
    let world = World::new(LINE, line());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let call = entry(&world, thread, "llm.complete", &[0]).await;
    let answer = reworded(&world, thread, "what if").await;
    let forked = fork(&world, thread, call, Ok(answer)).await;
    assert_eq!(forks(&world, thread).await, 1);
    let events = world.events(thread).await;
    let words =
        events.iter().filter(|event| event.run == forked.run.run).filter_map(|event| match &event
            .kind
        {
            EventKind::Streamed(streamed) => Some(json!(streamed.deltas)),
            _ => None,
        });
    let words: Vec<Value> = words.collect();
    assert_eq!(words, [json!([{ "kind": "text", "text": "what if" }])]);
}

#[tokio::test]
async fn a_transaction_before_the_call_is_not_repeated() {
    let folder = TempDir::new().unwrap();
    let config = DatabaseConfig::new("sqlite:test.db");
    let databases = BTreeMap::from([("db".to_owned(), config)]);
    let sql = Arc::new(Databases::open(databases, folder.path()).await.unwrap());
    let mut setup = sql.begin(CallerId::default(), "db", &SqlLimits::default()).await.unwrap();
    setup.execute("CREATE TABLE item (id INTEGER PRIMARY KEY)", &[]).await.unwrap();
    setup.commit(None).await.unwrap();
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let mut transaction = gate.begin("db").await?;
        let insert = "INSERT INTO item DEFAULT VALUES RETURNING id";
        let id = transaction.execute(insert, Vec::new()).await?.returned.rows;
        transaction.commit().await?;
        Ok(json!({ "out": [id, said(&gate.call(prompt("x")).await?)] }))
    });
    let access = [("db".to_owned(), SqlAccess::ReadWrite.into())];
    let grants = Grants { sql: access.into(), ..Grants::default() };
    let world = World::with_sql(ONE, plugin, sql.clone(), grants);
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let call = entry(&world, thread, "llm.complete", &[1]).await;
    let answer = reworded(&world, thread, "what if").await;
    let forked = fork(&world, thread, call, Ok(answer)).await;
    assert_eq!(forked.state["out"], json!([ended.state["out"][0], "what if"]));
    let (rule, limits) = (SqlAccess::ReadOnly.into(), SqlLimits::default());
    let rows = sql
        .query(CallerId::default(), "db", &rule, &limits, "SELECT id FROM item", &[])
        .await
        .unwrap();
    assert_eq!(rows.rows.len(), 1);
    let transaction = entry(&world, thread, "sql.transaction", &[0]).await;
    let refused = world.engine.fork(from(thread, transaction, Ok(json!({})))).await.unwrap_err();
    assert_eq!(refused.code, code::UNSUPPORTED);
}

const HANDLED: &str = r#"
[graphs.handled]
entry = "work"
[graphs.handled.channels.out]
reducer = "append"
[graphs.handled.nodes.work]
plugin = "p"
on_error = "help"
[graphs.handled.nodes.help]
plugin = "p"
"#;

#[tokio::test]
async fn a_result_of_an_error_handler_can_be_overridden() {
    let plugin = NativePlugin::new("p", "1")
        .node("work", |_, gate| async move {
            let answer = said(&gate.call(prompt("work")).await?);
            match answer.as_str() {
                "fine" => Ok(json!({ "out": "worked" })),
                _ => Err(Failure::new("broken", answer).into()),
            }
        })
        .node("help", |_, gate| async move {
            Ok(json!({ "out": said(&gate.call(prompt("help")).await?) }))
        });
    let world = World::new(HANDLED, plugin);
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state["out"], json!(["answer 2"]));
    let thread = &ended.run.thread;
    let helped = entry(&world, thread, "llm.complete", &[0]).await;
    let answer = reworded(&world, thread, "what if").await;
    let forked = fork(&world, thread, helped, Ok(answer)).await;
    assert_eq!(forked.state["out"], json!(["what if"]));
    assert_eq!(world.model.calls(), 2, "the failure is carried over");
    let worked = CallRef::Seq(calls(&world, thread).await[0].0);
    let answer = reworded(&world, thread, "fine").await;
    let forked = fork(&world, thread, worked, Ok(answer)).await;
    assert_eq!(forked.state["out"], json!(["worked"]), "the node does not fail in the fork");
    assert_eq!(world.model.calls(), 2);
}
