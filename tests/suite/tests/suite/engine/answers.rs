//! What the log has of calls in progress: the id of the message that a completion becomes, and the
//! request of a tool call.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::event::{CallStarted, Event, EventKind};
use wattle_graph::id::ThreadId;
use wattle_graph::llm::{Completion, Delta};
use wattle_graph::tool::ToolRequest;
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::CallError;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{EndedRun, RunOutcome, RunService};
use wattle_run::limit;
use wattle_run::ports::store::RunOptions;
use wattle_run::ports::tool_server::NoToolServers;
use wattle_run::time_travel::{CallRef, ForkFrom, ForkInto, ForkThread};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said};
use wattle_suite::world::World;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.messages]
reducer = "messages"
[graphs.one.nodes.work]
plugin = "p"
"#;

/// Returns a completion as a message of the conversation.
fn stored(answer: &Completion) -> Value {
    json!({ "id": answer.id, "role": "assistant", "content": said(answer) })
}

async fn ask(gate: &Gate, text: &str) -> Result<Value, CallError> {
    Ok(stored(&gate.call(prompt(text)).await?))
}

/// Returns a plugin whose node calls a model, then a service, then the model again.
fn twice() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let first = ask(&gate, "one").await?;
        gate.call(get("https://a.example/slow")).await?;
        let second = ask(&gate, &format!("two after {}", first["content"])).await?;
        Ok(json!({ "messages": [first, second] }))
    })
}

/// Returns the ids of the messages whose deltas were streamed, in order.
fn told<'e>(events: impl IntoIterator<Item = &'e Event>) -> Vec<String> {
    let mut begun: BTreeMap<_, (&CallStarted, u32)> = BTreeMap::new();
    let mut told = Vec::new();
    for event in events {
        match &event.kind {
            EventKind::CallStarted(started) => {
                begun.insert((&started.task, started.call), (started, 0));
            }
            EventKind::Streamed(streamed) => {
                let (started, restarts) = begun.get_mut(&(&streamed.task, streamed.call)).unwrap();
                let again = streamed.deltas.iter().filter(|delta| **delta == Delta::Restart);
                *restarts += u32::try_from(again.count()).unwrap();
                told.push(started.message_id(*restarts));
            }
            _ => {}
        }
    }
    told.dedup();
    told
}

fn ids(ended: &EndedRun) -> Vec<&str> {
    let messages = ended.state["messages"].as_array().unwrap();
    messages.iter().map(|message| message["id"].as_str().unwrap()).collect()
}

async fn begun(world: &World, thread: &ThreadId) -> Vec<CallStarted> {
    let events = world.events(thread).await.into_iter();
    let begun = events.filter_map(|event| match event.kind {
        EventKind::CallStarted(started) => Some(started),
        _ => None,
    });
    begun.collect()
}

#[tokio::test]
async fn a_message_keeps_the_id_of_its_stream() {
    let world = World::new(ONE, twice());
    let ended = world.run(json!({})).await;
    let events = world.events(&ended.run.thread).await;
    assert_eq!(told(&events), ids(&ended));
    let task = begun(&world, &ended.run.thread).await.remove(0).task;
    assert_eq!(ids(&ended), [format!("run--{task}-0"), format!("run--{task}-2")]);
}

#[tokio::test]
async fn a_replayed_completion_keeps_its_message_id() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let said = ask(&gate, "one").await?;
        gate.ask(InterruptRequest { payload: json!("sure?"), response_schema: None }).await?;
        Ok(json!({ "messages": [said] }))
    });
    let mut world = World::new(ONE, plugin);
    let thread = world.run(json!({})).await.run.thread;
    world.crash().await;
    let ended = world.answer(&thread, json!("yes")).await;
    assert_eq!(told(&world.events(&thread).await), ids(&ended));
    assert_eq!(begun(&world, &thread).await.len(), 1);
}

#[tokio::test]
async fn a_completion_after_a_crash_has_another_message_id() {
    let mut world = World::new(ONE, twice());
    world.model.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.model.hung().await;
    world.crash().await;
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&run).await.unwrap();
    let told = told(&world.events(&run.thread).await);
    assert_eq!(told[told.len() - 2..], ids(&ended), "deltas of the first may be streamed or not");
    let again: Vec<u64> =
        begun(&world, &run.thread).await.iter().map(|it| it.start_number).collect();
    assert_eq!(again, [0, 1, 0, 0]);
    assert!(ids(&ended)[0].ends_with("-0-1.0"), "{ended:?}");
}

#[tokio::test]
async fn a_reused_completion_has_a_message_id_of_the_next_run() {
    let world = World::new(ONE, twice());
    world.net.hang_next(1);
    let cut = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.engine.cancel(&cut).await.unwrap();
    let next = world.begin_on(Some(&cut.thread), json!({})).await.unwrap();
    let ended = world.engine.wait(&next).await.unwrap();
    let events = world.events(&cut.thread).await;
    let of = |run| told(events.iter().filter(move |event| event.run == run));
    assert_eq!(of(next.run), ids(&ended));
    assert!(!ids(&ended).contains(&of(cut.run)[0].as_str()), "its deltas have another id");
    assert_eq!(world.model.calls(), 2);
}

#[tokio::test]
async fn a_fork_keeps_message_ids_except_of_the_overridden_result() {
    let world = World::new(ONE, twice());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let events = world.events(thread).await;
    let (seq, mut answer) = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Called(called) if called.call == 2 => {
                Some((event.seq, called.result.clone().unwrap()))
            }
            _ => None,
        })
        .next_back()
        .unwrap();
    answer["parts"] = json!([{ "text": "what if" }]);
    let into = [ForkInto::InPlace, ForkInto::Copy { thread: None }];
    for into in into {
        let fork = ForkThread {
            run: None,
            thread: thread.clone(),
            from: ForkFrom::Call { call: CallRef::Seq(seq), result: Ok(answer.clone()) },
            into,
            app: None,
            tenant: None,
            options: RunOptions::default(),
            principal: None,
        };
        let run = world.engine.fork(fork).await.unwrap();
        let forked = world.engine.wait(&run).await.unwrap();
        assert_eq!(forked.outcome, RunOutcome::Completed);
        assert_eq!(forked.state["messages"][1]["content"], "what if");
        assert_eq!(ids(&forked)[0], ids(&ended)[0]);
        assert_ne!(ids(&forked)[1], ids(&ended)[1]);
        let events = world.events(&run.thread).await;
        let told = told(events.iter().filter(|event| event.run == run.run));
        assert_eq!(told, [ids(&forked)[1]], "the first one was streamed before");
    }
}

#[tokio::test]
async fn the_start_event_of_a_tool_call_has_its_request() {
    let caller = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        for text in ["short".to_owned(), "x".repeat(limit::JOURNAL_REQUEST_BYTES)] {
            let request = ToolRequest {
                tool: "t/find".into(),
                call_id: "call-1".into(),
                arguments: json!({ "text": text }),
                timeout_ms: None,
                state: Some(json!({ "secret": 1 })),
            };
            gate.call_tool(request).await?;
        }
        gate.call(prompt("one")).await?;
        Ok(json!({}))
    });
    let tool = NativePlugin::new("t", "1").tool("find", |_, _| async move { Ok(json!(1)) });
    let world = World::with_tools(ONE, vec![caller, tool], Arc::new(NoToolServers));
    let ended = world.run(json!({})).await;
    let begun = begun(&world, &ended.run.thread).await;
    let requests: Vec<_> = begun.into_iter().map(|started| started.request).collect();
    let short = json!({ "tool": "t/find", "call_id": "call-1", "arguments": { "text": "short" } });
    assert_eq!(requests[0], Some(short));
    let long = requests[1].as_ref().unwrap();
    assert_eq!((&long["call_id"], long.get("arguments")), (&json!("call-1"), None));
    assert_eq!(requests[2], None, "the conversation is in the state");
}
