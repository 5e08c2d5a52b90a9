//! Interrupts: raised once, answered by id, with no call repeated.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use wattle_graph::event::EventKind;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, Namespace, ThreadId};
use wattle_kit::layer::{Layer, Layered};
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{
    InterruptView, OnFailure, RunOutcome, RunRef, RunService, StartRun,
};
use wattle_run::ports::Store;
use wattle_run::ports::store::{
    Batch, RunAnswers, RunKind, RunOptions, StoreError, ThreadStatus, Ticket,
};
use wattle_run::time_travel::{ForkFrom, ForkInto, ForkThread};
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said, unavailable};
use wattle_suite::world::{World, failure, questions};

const ONE: &str = r#"
[graphs.one]
entry = "ask"
interrupt_ttl = "30m"
[graphs.one.channels.out]
reducer = "append"
[graphs.one.channels.broken]
[graphs.one.nodes.ask]
plugin = "p"
[graphs.one.nodes.store]
plugin = "p"
[[graphs.one.edges]]
from = "ask"
to = "store"
"#;

fn question(payload: Value) -> InterruptRequest {
    InterruptRequest { payload, response_schema: None }
}

fn asking() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("ask", |_, gate| async move {
            let draft = said(&gate.call(prompt("draft")).await?);
            let now = gate.now_ms()?;
            let one = gate.ask(question(json!({ "draft": draft }))).await?;
            let second = said(&gate.call(prompt("again")).await?);
            let two = gate.ask(question(json!({ "second": second }))).await?;
            Ok(json!({ "out": [draft, now, one, second, two] }))
        })
        .node("store", |_, gate| async move {
            gate.call(get("https://example.com/store")).await?;
            Ok(json!({ "out": "stored" }))
        })
}

#[tokio::test]
async fn two_interrupts_in_one_node_repeat_no_model_call() {
    let mut world = World::new(ONE, asking());
    let first = world.run(json!({})).await;
    assert_eq!(questions(&first)[0].payload, json!({ "draft": "answer 1" }));
    world.clock.advance_ms(60_000);
    world.crash().await;
    let second = world.answer(&first.run.thread, json!("yes")).await;
    assert_eq!(questions(&second)[0].payload, json!({ "second": "answer 2" }));
    let ended = world.answer(&first.run.thread, json!("no")).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(world.model.calls(), 2);
    assert_eq!(
        ended.state["out"],
        json!(["answer 1", wattle_suite::world::START_MS, "yes", "answer 2", "no", "stored"])
    );
}

#[tokio::test]
async fn a_failed_resume_reopens_the_interrupt_and_repeats_no_model_call() {
    let world = World::new(ONE, asking());
    let first = world.run(json!({})).await;
    let thread = first.run.thread.clone();
    world.answer(&thread, json!("a")).await;
    world.net.fail_next(unavailable());
    let failed = world.resume(&thread, &[("", json!("b"))], OnFailure::Reopen).await.unwrap();
    assert_eq!(failure(&failed).code, code::UNAVAILABLE);
    let view = world.engine.thread(&thread).await.unwrap().unwrap();
    assert_eq!(view.status, ThreadStatus::Interrupted);
    assert_eq!(view.interrupts.len(), 1, "only the second interrupt is reopened");
    assert_eq!(view.interrupts[0].payload, json!({ "second": "answer 2" }));
    let ended = world.answer(&thread, json!("c")).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["out"][4], "c");
    assert_eq!(world.model.calls(), 2);
}

/// A store that can refuse the next batch that ends a run.
struct RefusesEnd {
    below: Arc<dyn Store>,
    is_armed: AtomicBool,
}

#[async_trait]
impl Layer for RefusesEnd {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, is_armed: AtomicBool::new(false) }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let is_end = batch.events.iter().any(|event| matches!(event.kind, EventKind::RunEnded(_)));
        if is_end && self.is_armed.swap(false, Ordering::SeqCst) {
            let message = "no space left".to_owned();
            return Ticket::ready(Err(StoreError::Backend { operation: "commit", message }));
        }
        self.below.append(thread, batch).await
    }
}

/// The recovered run retries only the failed task.
#[tokio::test]
async fn a_reopen_that_a_crash_prevents_repeats_no_model_call() {
    const TWO: &str = r#"
[graphs.two]
entry = "ask"
[graphs.two.channels.out]
reducer = "append"
[graphs.two.nodes.ask]
plugin = "p"
[graphs.two.nodes.pay]
plugin = "p"
[[graphs.two.edges]]
from = "ask"
to = "pay"
"#;
    let plugin = NativePlugin::new("p", "1")
        .node("ask", |_, gate| async move {
            let answer = gate.ask(question(json!("pay?"))).await?;
            Ok(json!({ "out": answer }))
        })
        .node("pay", |_, gate| async move {
            let receipt = said(&gate.call(prompt("pay")).await?);
            gate.call(get("https://example.com/pay")).await?;
            Ok(json!({ "out": receipt }))
        });
    let store = Arc::new(Layered::<RefusesEnd>::over(Arc::new(InMemoryStore::new())));
    let mut world = World::with_store(TWO, plugin, store.clone());
    let thread = world.run(json!({})).await.run.thread;
    store.is_armed.store(true, Ordering::SeqCst);
    world.net.fail_next(unavailable());
    world.resume(&thread, &[("", json!("yes"))], OnFailure::Reopen).await.unwrap_err();
    let run = store.thread(&thread).await.unwrap().unwrap().record.run.unwrap();
    world.crash().await;
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&RunRef { thread, run }).await.unwrap();
    assert_eq!(ended.state["out"], json!(["yes", "answer 1"]));
    assert_eq!(world.model.calls(), 1);
}

const PARALLEL: &str = r#"
[graphs.parallel]
entry = ["a", "b"]
[graphs.parallel.channels.out]
reducer = "append"
[graphs.parallel.nodes.a]
plugin = "p"
node = "ask"
[graphs.parallel.nodes.b]
plugin = "p"
node = "ask"
"#;

fn number_asking() -> NativePlugin {
    NativePlugin::new("p", "1").node("ask", |call, gate| async move {
        let schema = json!({ "type": "integer" });
        let payload = json!({ "task": call.task });
        let answer = gate.ask(InterruptRequest { payload, response_schema: Some(schema) }).await?;
        Ok(json!({ "out": answer }))
    })
}

#[tokio::test]
async fn parallel_interrupts_have_unique_ids_and_can_be_answered_separately() {
    let world = World::new(PARALLEL, number_asking());
    let first = world.run(json!({})).await;
    let open = questions(&first);
    let ids: BTreeSet<&str> = open.iter().map(|question| question.id.as_str()).collect();
    assert_eq!(ids.len(), 2);
    let of = |node: &str| open.iter().find(|q| q.node.as_str() == node).unwrap().id.clone();
    let thread = &first.run.thread;
    let second = world.resume(thread, &[(&of("b"), json!(2))], OnFailure::Keep).await.unwrap();
    assert_eq!(questions(&second).len(), 1);
    let ended = world.resume(thread, &[(&of("a"), json!(1))], OnFailure::Keep).await.unwrap();
    assert_eq!(ended.state["out"], json!([1, 2]));
}

#[tokio::test]
async fn invalid_answers_are_refused_and_the_interrupts_stay_pending() {
    let world = World::new(PARALLEL, number_asking());
    let first = world.run(json!({})).await;
    let thread = &first.run.thread;
    let id = questions(&first)[0].id.clone();
    let refuse = async |answers: &[(&str, Value)]| -> Failure {
        world.resume(thread, answers, OnFailure::Keep).await.unwrap_err()
    };
    assert_eq!(refuse(&[("", json!(1))]).await.code, code::INVALID, "two are pending");
    assert_eq!(refuse(&[("unknown", json!(1))]).await.code, code::CONFLICT);
    assert_eq!(refuse(&[(&id, json!("text"))]).await.code, code::INVALID, "not an integer");
    assert_eq!(refuse(&[]).await.code, code::INVALID, "no answer at all");
    let view = world.engine.thread(thread).await.unwrap().unwrap();
    assert_eq!((view.status, view.interrupts.len()), (ThreadStatus::Interrupted, 2));
}

#[tokio::test]
async fn an_answered_interrupt_cannot_be_answered_again() {
    let world = World::new(ONE, asking());
    let first = world.run(json!({})).await;
    let id = questions(&first)[0].id.clone();
    world.answer(&first.run.thread, json!("x")).await;
    // Another interrupt is pending, and no answer for the first one may apply to it.
    for answers in [(id.as_str(), json!("y")), ("", json!({ &id: "y" }))] {
        let again = world.resume(&first.run.thread, &[answers], OnFailure::Keep).await;
        assert_eq!(again.unwrap_err().code, code::CONFLICT);
    }
    let view = world.engine.thread(&first.run.thread).await.unwrap().unwrap();
    assert_eq!(view.interrupts[0].payload, json!({ "second": "answer 2" }), "it is still pending");
}

#[tokio::test]
async fn a_start_can_reject_a_thread_that_waits_for_answers() {
    let world = World::new(PARALLEL, number_asking());
    let first = world.run(json!({})).await;
    let thread = &first.run.thread;
    let start = async |reject_if_interrupted: bool| {
        let request = StartRun { reject_if_interrupted, ..world.request(Some(thread), json!({})) };
        world.engine.start(request).await
    };
    let id_of = |question: &InterruptView| question.id.clone();
    let refused = start(true).await.unwrap_err();
    assert_eq!(refused.code, code::CONFLICT);
    assert_eq!(refused.details.unwrap()["reason"], "interrupted");
    let view = world.engine.thread(thread).await.unwrap().unwrap();
    assert_eq!((view.status, view.interrupts), (ThreadStatus::Interrupted, questions(&first)));
    let second = world.engine.wait(&start(false).await.unwrap()).await.unwrap();
    let given_up: BTreeSet<String> = questions(&first).iter().map(id_of).collect();
    let pending: BTreeSet<String> = questions(&second).iter().map(id_of).collect();
    assert_eq!((given_up.len(), pending.len()), (2, 2));
    assert!(given_up.is_disjoint(&pending));
}

#[tokio::test]
async fn a_breakpoint_waits_for_no_answer() {
    let plugin = NativePlugin::new("p", "1")
        .node("say", |call, _| async move { Ok(json!({ "out": call.step })) });
    let world = World::new(STATIC, plugin);
    let paused = world.run(json!({})).await;
    assert!(questions(&paused).is_empty());
    let request = world.request(Some(&paused.run.thread), json!({}));
    let request = StartRun { reject_if_interrupted: true, ..request };
    assert!(world.engine.start(request).await.is_ok());
}

#[tokio::test]
async fn an_interrupt_expires_exactly_at_its_time_even_after_a_restart() {
    let mut world = World::new(ONE, asking());
    let first = world.run(json!({})).await;
    let thread = first.run.thread.clone();
    world.clock.advance_ms(30 * 60_000 - 1);
    world.crash().await;
    assert_eq!(world.engine.sweep().await, 0);
    let view = world.engine.thread(&thread).await.unwrap().unwrap();
    assert_eq!(view.interrupts[0].expires_ms, view.expires_ms);
    assert_eq!(world.pending_interrupts().await, [(thread.clone(), view.interrupts)]);
    world.clock.advance_ms(1);
    assert!(world.pending_interrupts().await.is_empty(), "it is not listed any more");
    let late = world.resume(&thread, &[("", json!(1))], OnFailure::Keep).await.unwrap_err();
    assert_eq!(late.code, code::NOT_FOUND);
    assert!(world.events(&thread).await.is_empty(), "all events are deleted");
}

/// Such a request could delete a thread that another request has created with the same id.
#[tokio::test]
async fn a_request_without_a_claim_does_not_delete_an_expired_thread() {
    let world = World::new(ONE, asking());
    let thread = world.run(json!({})).await.run.thread;
    world.clock.advance_ms(30 * 60_000);
    assert_eq!(world.engine.thread(&thread).await.unwrap(), None);
    let state = world.engine.state(&thread, &Namespace::root(), None).await;
    assert_eq!(state.unwrap_err().code, code::NOT_FOUND);
    let answer = RunKind::Answer { answer: RunAnswers::Matched(Value::Null) };
    assert_eq!(world.run_on(&thread, answer).await.unwrap_err().code, code::NOT_FOUND);
    let fork = ForkThread {
        thread: thread.clone(),
        run: None,
        from: ForkFrom::Checkpoint { checkpoint: CheckpointId(1), input: None },
        into: ForkInto::InPlace,
        app: None,
        tenant: None,
        options: RunOptions::default(),
        principal: None,
    };
    assert_eq!(world.engine.fork(fork).await.unwrap_err().code, code::NOT_FOUND);
    let retried = world.engine.retry_recovery(&thread).await;
    assert_eq!(retried.unwrap_err().code, code::NOT_FOUND);
    assert!(world.engine.ports().store.thread(&thread).await.unwrap().is_some());
    assert_eq!(world.engine.sweep().await, 1);
}

#[tokio::test]
async fn the_sweep_deletes_expired_threads() {
    let world = World::new(ONE, asking());
    world.run(json!({})).await;
    world.clock.advance_ms(30 * 60_000);
    assert_eq!((world.engine.sweep().await, world.engine.sweep().await), (1, 0));
}

const STATIC: &str = r#"
[graphs.static]
entry = "a"
interrupt_before = ["b"]
interrupt_after = ["b"]
[graphs.static.channels.out]
reducer = "append"
[graphs.static.nodes.a]
plugin = "p"
node = "say"
[graphs.static.nodes.b]
plugin = "p"
node = "say"
[graphs.static.nodes.c]
plugin = "p"
node = "say"
[[graphs.static.edges]]
from = "a"
to = "b"
[[graphs.static.edges]]
from = "b"
to = "c"
"#;

#[tokio::test]
async fn breakpoints_stop_before_and_after_a_node() {
    let plugin = NativePlugin::new("p", "1")
        .node("say", |call, _| async move { Ok(json!({ "out": call.step })) });
    let world = World::new(STATIC, plugin);
    let before = world.run(json!({})).await;
    assert_eq!(before.state["out"], json!([0]));
    let thread = &before.run.thread;
    let after = world.resume(thread, &[], OnFailure::Keep).await.unwrap();
    assert!(questions(&after).is_empty());
    assert_eq!(after.state["out"], json!([0, 1]));
    let ended = world.resume(thread, &[], OnFailure::Keep).await.unwrap();
    assert_eq!(
        (ended.outcome, ended.state["out"].clone()),
        (RunOutcome::Completed, json!([0, 1, 2]))
    );
    let nothing = world.resume(thread, &[], OnFailure::Keep).await.unwrap_err();
    assert_eq!(nothing.code, code::CONFLICT);
}
