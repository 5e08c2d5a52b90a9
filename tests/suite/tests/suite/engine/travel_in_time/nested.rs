//! Forks from a host call inside of a subgraph: earlier work in the subgraph is carried over, at
//! any depth.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use tempfile::TempDir;
use wattle_graph::checkpoint::TakenCase;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{Namespace, ThreadId};
use wattle_kit::layer::{Layer, Layered};
use wattle_run::gate::Gate;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{RunOutcome, RunService};
use wattle_run::ports::store::{Batch, Durability, RunOptions, Store, StoreError, Ticket};
use wattle_run::time_travel::{CallRef, ForkInto, ForkThread};
use wattle_store::{InMemoryStore, RedbStore};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said};
use wattle_suite::world::{World, questions};

use super::call::{calls, entry, fork, from, reworded};
use super::replays;

const MAIN: &str = r#"
[graphs.main]
entry = ["side", "sub"]
[graphs.main.channels.text]
[graphs.main.channels.log]
reducer = "append"
[graphs.main.nodes.side]
plugin = "p"
[graphs.main.nodes.sub]
graph = "inner"
STATE
[graphs.main.nodes.after]
plugin = "p"
[[graphs.main.edges]]
from = ["side", "sub"]
to = "after"
[graphs.inner]
entry = "one"
[graphs.inner.channels.log]
reducer = "append"
[graphs.inner.nodes.one]
plugin = "p"
[graphs.inner.nodes.two]
plugin = "p"
[graphs.inner.nodes.beside]
plugin = "p"
[[graphs.inner.edges]]
from = "one"
to = "two"
[[graphs.inner.edges]]
from = "one"
to = "beside"
"#;

fn graphs(state: &str) -> String {
    let line = if state.is_empty() { String::new() } else { format!("state = \"{state}\"") };
    MAIN.replace("STATE", &line)
}

/// Returns a plugin: `one` and `two` call a model; `beside`, `side` and `two` call a service.
pub(super) fn paying() -> NativePlugin {
    let tells = |name: &'static str| {
        move |_, gate: Arc<Gate>| async move {
            gate.call(get("https://a.example/tell")).await?;
            Ok(json!({ "log": name }))
        }
    };
    NativePlugin::new("p", "1")
        .node("side", tells("side"))
        .node("beside", tells("beside"))
        .node("after", |_, _| async { Ok(json!({ "log": "after" })) })
        .node("one", |_, gate| async move {
            Ok(json!({ "log": said(&gate.call(prompt("one")).await?) }))
        })
        .node("two", |_, gate| async move {
            let said = said(&gate.call(prompt("two")).await?);
            gate.call(get("https://a.example/slow")).await?;
            Ok(json!({ "log": said }))
        })
}

#[tokio::test]
async fn work_of_a_subgraph_before_the_call_is_carried_over() {
    for state in ["", "own", "none"] {
        for durability in [Durability::Commit, Durability::Exit] {
            let world = World::new(&graphs(state), paying());
            let options = RunOptions { durability, ..RunOptions::default() };
            let ended = world.run_as(json!({}), options.clone()).await;
            let thread = &ended.run.thread;
            let before = json!(["side", "answer 1", "beside", "answer 2", "after"]);
            assert_eq!(ended.state["log"], before, "{state}");
            assert_eq!((world.model.calls(), world.net.calls()), (2, 3));
            let call = entry(&world, thread, "llm.complete", &[0]).await;
            let answer = reworded(&world, thread, "what if").await;
            let request = ForkThread { options, ..from(thread, call, Ok(answer)) };
            let run = world.engine.fork(request).await.unwrap();
            let forked = world.engine.wait(&run).await.unwrap();
            assert_eq!(forked.outcome, RunOutcome::Completed, "{state} {durability:?}");
            let after = json!(["side", "answer 1", "beside", "what if", "after"]);
            assert_eq!(forked.state["log"], after, "{state} {durability:?}");
            let paid = (world.model.calls(), world.net.calls());
            assert_eq!(paid, (2, 4), "{state} {durability:?}: only `two` calls the service again");
            replays(&world, thread).await;
        }
    }
}

#[tokio::test]
async fn a_fork_can_have_another_durability_than_its_source() {
    for (first, second) in
        [(Durability::Commit, Durability::Exit), (Durability::Exit, Durability::Commit)]
    {
        let world = World::new(&graphs(""), paying());
        let as_durable = |durability| RunOptions { durability, ..RunOptions::default() };
        let ended = world.run_as(json!({}), as_durable(first)).await;
        let thread = &ended.run.thread;
        let call = entry(&world, thread, "llm.complete", &[0]).await;
        let answer = reworded(&world, thread, "what if").await;
        let request = ForkThread { options: as_durable(second), ..from(thread, call, Ok(answer)) };
        let run = world.engine.fork(request).await.unwrap();
        let forked = world.engine.wait(&run).await.unwrap();
        assert_eq!(forked.state["log"][3], "what if");
        assert_eq!((world.model.calls(), world.net.calls()), (2, 4));
    }
}

#[tokio::test]
async fn a_fork_has_a_new_namespace_for_the_subgraph() {
    let world = World::new(&graphs(""), paying());
    let thread = &world.run(json!({})).await.run.thread;
    let before = world.events(thread).await.len();
    let call = entry(&world, thread, "llm.complete", &[0]).await;
    let answer = reworded(&world, thread, "what if").await;
    fork(&world, thread, call, Ok(answer)).await;
    let events = world.events(thread).await;
    let inside: Vec<_> =
        events[before..].iter().filter(|event| !event.namespace.is_root()).collect();
    let places: Vec<&Namespace> = inside.iter().map(|event| &event.namespace).collect();
    assert!(places.windows(2).all(|pair| pair[0] == pair[1]), "one invocation: {places:?}");
    assert!(
        events[..before].iter().all(|event| event.namespace != *places[0]),
        "the fork has another namespace"
    );
    let copied = inside.iter().find_map(|event| match &event.kind {
        EventKind::Checkpointed(made) => Some(made.checkpoint),
        _ => None,
    });
    let view = world.engine.state(thread, places[0], copied).await.unwrap();
    assert_eq!(view.values["log"], json!(["answer 1"]));
    let finished = inside.iter().filter(|it| matches!(it.kind, EventKind::TaskFinished(_)));
    assert_eq!(finished.count(), 2, "`beside` is carried over, `two` runs again");
}

const BRANCH: &str = r#"
[graphs.main]
entry = "sub"
[graphs.main.channels.log]
reducer = "append"
[graphs.main.nodes.sub]
graph = "inner"
[graphs.inner]
entry = "one"
[graphs.inner.channels.log]
reducer = "append"
[graphs.inner.nodes.one]
plugin = "p"
[graphs.inner.nodes.two]
plugin = "p"
[[graphs.inner.branches]]
name = "route"
from = "one"
cases = [{ when = "size(state.log) > 1", to = "END" }, { to = "two" }]
"#;

#[tokio::test]
async fn a_copied_checkpoint_has_the_taken_cases_of_its_original() {
    let world = World::new(BRANCH, paying());
    let thread = &world.run(json!({})).await.run.thread;
    let taken = |events: &[Event]| -> Vec<TakenCase> {
        let cases = events.iter().filter_map(|event| match &event.kind {
            EventKind::Checkpointed(made) => Some(made.taken.clone()),
            _ => None,
        });
        cases.flatten().collect()
    };
    let expected = [TakenCase { branch: "route".to_owned(), case: 1 }];
    assert_eq!(taken(&world.events(thread).await), expected);
    for text in ["once", "twice"] {
        let before = world.events(thread).await.len();
        let call = entry(&world, thread, "llm.complete", &[0]).await;
        let answer = reworded(&world, thread, text).await;
        fork(&world, thread, call, Ok(answer)).await;
        assert_eq!(taken(&world.events(thread).await[before..]), expected, "{text}");
    }
    replays(&world, thread).await;
}

#[tokio::test]
async fn a_fork_of_a_fork_and_one_into_a_copy_continue_in_the_subgraph() {
    for state in ["", "own", "none"] {
        let world = World::new(&graphs(state), paying());
        let thread = &world.run(json!({})).await.run.thread;
        for (count, text) in [(4, "once"), (5, "twice")] {
            let call = entry(&world, thread, "llm.complete", &[0]).await;
            let answer = reworded(&world, thread, text).await;
            let forked = fork(&world, thread, call, Ok(answer)).await;
            assert_eq!(forked.state["log"][3], text, "{state}");
            assert_eq!((world.model.calls(), world.net.calls()), (2, count), "{state}");
        }
        let call = entry(&world, thread, "llm.complete", &[0]).await;
        let answer = reworded(&world, thread, "elsewhere").await;
        let into = ForkInto::Copy { thread: None };
        let request = ForkThread { into, ..from(thread, call, Ok(answer)) };
        let run = world.engine.fork(request).await.unwrap();
        let forked = world.engine.wait(&run).await.unwrap();
        assert_eq!(forked.state["log"][3], "elsewhere", "{state}");
        assert_eq!((world.model.calls(), world.net.calls()), (2, 6), "{state}");
    }
}

#[tokio::test]
async fn a_fork_in_a_subgraph_survives_a_crash() {
    for state in ["", "own", "none"] {
        let store: Arc<dyn Store> = Arc::new(InMemoryStore::new());
        let mut world = World::with_store(&graphs(state), paying(), store);
        let thread = &world.run(json!({})).await.run.thread;
        let call = entry(&world, thread, "llm.complete", &[0]).await;
        let answer = reworded(&world, thread, "what if").await;
        world.net.hang_next(1);
        let run = world.engine.fork(from(thread, call, Ok(answer))).await.unwrap();
        tokio::select! {
            () = world.net.hung() => {}
            ended = world.engine.wait(&run) => panic!("the run ended before its call: {ended:?}"),
        }
        world.crash().await;
        assert_eq!(world.engine.recover().await, 1);
        let ended = world.engine.wait(&run).await.unwrap();
        assert_eq!(ended.state["log"][3], "what if", "{state}");
        assert_eq!(world.model.calls(), 2, "{state}");
    }
}

const DEEP: &str = r#"
[graphs.main]
entry = "down"
[graphs.main.channels.log]
reducer = "append"
[graphs.main.nodes.down]
graph = "middle"
[graphs.middle]
entry = "first"
[graphs.middle.channels.log]
reducer = "append"
[graphs.middle.nodes.first]
plugin = "p"
[graphs.middle.nodes.down]
graph = "low"
STATE
[[graphs.middle.edges]]
from = "first"
to = "down"
[graphs.low]
entry = "one"
[graphs.low.channels.log]
reducer = "append"
[graphs.low.nodes.one]
plugin = "p"
[graphs.low.nodes.two]
plugin = "p"
[[graphs.low.edges]]
from = "one"
to = "two"
"#;

/// Returns the plugin of [`DEEP`], whose node `first` calls a model, too.
fn paying_deep() -> NativePlugin {
    paying().node("first", |_, gate| async move {
        Ok(json!({ "log": said(&gate.call(prompt("first")).await?) }))
    })
}

#[tokio::test]
async fn parent_graphs_of_the_subgraph_continue_at_their_checkpoints() {
    for state in ["", "state = \"own\"", "state = \"none\""] {
        let world = World::new(&DEEP.replace("STATE", state), paying_deep());
        let ended = world.run(json!({})).await;
        assert_eq!(ended.state["log"], json!(["answer 1", "answer 2", "answer 3"]));
        let thread = &ended.run.thread;
        let call = entry(&world, thread, "llm.complete", &[0]).await;
        let answer = reworded(&world, thread, "what if").await;
        let forked = fork(&world, thread, call, Ok(answer)).await;
        assert_eq!(forked.state["log"], json!(["answer 1", "answer 2", "what if"]), "{state}");
        assert_eq!((world.model.calls(), world.net.calls()), (3, 2), "{state}");
    }
}

/// A store that refuses the first batch with nothing but a checkpoint: the first copy of a fork.
struct RefusesCopy {
    below: Arc<dyn Store>,
    has_refused: AtomicBool,
}

#[async_trait]
impl Layer for RefusesCopy {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, has_refused: AtomicBool::new(false) }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let is_copy = batch.checkpoint.is_some() && batch.events.is_empty();
        if is_copy && !self.has_refused.swap(true, Ordering::SeqCst) {
            let message = "no space left".to_owned();
            return Ticket::ready(Err(StoreError::Backend { operation: "commit", message }));
        }
        self.below.append(thread, batch).await
    }
}

#[tokio::test]
async fn a_fork_fails_if_the_checkpoint_of_a_subgraph_cannot_be_copied() {
    let store = Arc::new(Layered::<RefusesCopy>::over(Arc::new(InMemoryStore::new())));
    let world = World::with_store(&DEEP.replace("STATE", ""), paying_deep(), store.clone());
    let thread = &world.run(json!({})).await.run.thread;
    let call = entry(&world, thread, "llm.complete", &[0]).await;
    let answer = reworded(&world, thread, "what if").await;
    let request = from(thread, call.clone(), Ok(answer.clone()));
    assert_eq!(world.engine.fork(request).await.unwrap_err().code, code::UNAVAILABLE);
    assert!(store.has_refused.load(Ordering::SeqCst));
    let forked = fork(&world, thread, call, Ok(answer)).await;
    assert_eq!(forked.state["log"], json!(["answer 1", "answer 2", "what if"]));
}

const LOOP: &str = r#"
[graphs.main]
entry = "down"
[graphs.main.channels.log]
reducer = "append"
[graphs.main.nodes.down]
graph = "middle"
[graphs.middle]
entry = "count"
[graphs.middle.channels.log]
reducer = "append"
[graphs.middle.channels.text]
[graphs.middle.nodes.count]
graph = "low"
state = "own"
[graphs.middle.nodes.decide]
plugin = "p"
goto = ["count"]
[[graphs.middle.edges]]
from = "count"
to = "decide"
[graphs.low]
entry = "add"
[graphs.low.channels.text]
[graphs.low.channels.total]
reducer = "sum"
[graphs.low.nodes.add]
plugin = "p"
[graphs.low.nodes.show]
plugin = "p"
[[graphs.low.edges]]
from = "add"
to = "show"
"#;

#[tokio::test]
async fn own_state_inside_of_a_subgraph_is_carried_over() {
    let plugin = || {
        NativePlugin::new("p", "1")
            .node("add", |_, gate| async move {
                gate.call(get("https://a.example/add")).await?;
                Ok(json!({ "total": 1 }))
            })
            .node("show", |call, _| async move { Ok(json!({ "text": call.input.get("total") })) })
            .node("decide", |call, gate| async move {
                let said = said(&gate.call(prompt(&call.input.get("text").to_string())).await?);
                let total = call.input.get("text").as_u64().unwrap_or_default();
                let goes_on = total < 2 || (total == 2 && said == "once more");
                let goto: Vec<&str> = if goes_on { vec!["count"] } else { vec!["END"] };
                Ok(json!({ "log": [total], "$goto": goto }))
            })
    };
    let folder = TempDir::new().unwrap();
    let disk: Arc<dyn Store> = Arc::new(RedbStore::open(folder.path().join("store")).unwrap());
    let stores: [Arc<dyn Store>; 2] = [Arc::new(InMemoryStore::new()), disk];
    for store in stores {
        let world = World::with_store(LOOP, plugin(), store);
        let ended = world.run(json!({})).await;
        assert_eq!(ended.state["log"], json!([1, 2]));
        let thread = &ended.run.thread;
        let call = entry(&world, thread, "llm.complete", &[0]).await;
        let answer = reworded(&world, thread, "once more").await;
        let forked = fork(&world, thread, call, Ok(answer)).await;
        assert_eq!(forked.state["log"], json!([1, 2, 3]));
        assert_eq!((world.model.calls(), world.net.calls()), (3, 3));
        world.engine.verify(thread).await.expect("the seals are valid");
    }
}

const FAN: &str = r#"
[graphs.main]
entry = "fan"
[graphs.main.channels.log]
reducer = "append"
[graphs.main.nodes.fan]
plugin = "p"
goto = ["sub"]
[graphs.main.nodes.sub]
graph = "inner"
STATE
[graphs.inner]
entry = "one"
[graphs.inner.channels.text]
[graphs.inner.channels.log]
reducer = "append"
[graphs.inner.nodes.one]
plugin = "p"
[graphs.inner.nodes.two]
plugin = "p"
[[graphs.inner.edges]]
from = "one"
to = "two"
"#;

#[tokio::test]
async fn a_waiting_subgraph_of_the_superstep_is_carried_over() {
    for state in ["", "state = \"none\""] {
        let plugin = NativePlugin::new("p", "1")
            .node("fan", |_, _| async move {
                let sends: Vec<Value> =
                    (0..2).map(|n| json!({ "node": "sub", "input": { "text": n } })).collect();
                Ok(json!({ "$send": sends }))
            })
            .node("one", |_, gate| async move {
                gate.call(get("https://a.example/one")).await?;
                Ok(json!({ "log": ["one"] }))
            })
            .node("two", |call, gate| async move {
                if *call.input.get("text") == 0 {
                    return Ok(json!({ "log": said(&gate.call(prompt("two")).await?) }));
                }
                gate.call(get("https://a.example/two")).await?;
                let question = InterruptRequest { payload: json!("well?"), response_schema: None };
                Ok(json!({ "log": gate.ask(question).await? }))
            });
        let world = World::new(&FAN.replace("STATE", state), plugin);
        let ended = world.run(json!({})).await;
        let thread = &ended.run.thread;
        let first = questions(&ended);
        assert_eq!((first.len(), world.model.calls(), world.net.calls()), (1, 1, 3));
        let call = entry(&world, thread, "llm.complete", &[0]).await;
        let answer = reworded(&world, thread, "what if").await;
        let forked = fork(&world, thread, call, Ok(answer)).await;
        let again = questions(&forked);
        assert_eq!((again.len(), &again[0].payload), (1, &json!("well?")), "{state}");
        assert_ne!(again[0].id, first[0].id);
        let ended = world.answer(thread, json!("fine")).await;
        assert_eq!(ended.state["log"], json!(["one", "what if", "one", "fine"]), "{state}");
        assert_eq!((world.model.calls(), world.net.calls()), (1, 3), "{state}");
    }
}

const HANDLED: &str = r#"
[graphs.main]
entry = "sub"
[graphs.main.channels.log]
reducer = "append"
[graphs.main.nodes.sub]
graph = "inner"
STATE
[graphs.inner]
entry = "one"
[graphs.inner.channels.log]
reducer = "append"
[graphs.inner.nodes.one]
plugin = "p"
[graphs.inner.nodes.work]
plugin = "p"
on_error = "help"
[graphs.inner.nodes.help]
plugin = "p"
[[graphs.inner.edges]]
from = "one"
to = "work"
"#;

#[tokio::test]
async fn a_handled_failure_in_a_subgraph_is_carried_over() {
    for state in ["", "state = \"own\"", "state = \"none\""] {
        let plugin = paying()
            .node("work", |_, gate| async move {
                let answer = said(&gate.call(prompt("work")).await?);
                match answer.as_str() {
                    "fine" => Ok(json!({ "log": "worked" })),
                    _ => Err(Failure::new("broken", answer).into()),
                }
            })
            .node("help", |_, gate| async move {
                Ok(json!({ "log": said(&gate.call(prompt("help")).await?) }))
            });
        let world = World::new(&HANDLED.replace("STATE", state), plugin);
        let ended = world.run(json!({})).await;
        assert_eq!(ended.state["log"], json!(["answer 1", "answer 3"]), "{state}");
        let thread = &ended.run.thread;
        let worked = calls(&world, thread).await[1].0;
        let helped = entry(&world, thread, "llm.complete", &[0]).await;
        let answer = reworded(&world, thread, "what if").await;
        let forked = fork(&world, thread, helped, Ok(answer)).await;
        assert_eq!(forked.state["log"], json!(["answer 1", "what if"]), "{state}");
        let answer = reworded(&world, thread, "fine").await;
        let forked = fork(&world, thread, CallRef::Seq(worked), Ok(answer)).await;
        assert_eq!(forked.state["log"], json!(["answer 1", "worked"]), "{state}");
        assert_eq!(world.model.calls(), 3, "{state}");
    }
}

#[tokio::test]
async fn a_result_overridden_with_a_failure_fails_the_subgraph() {
    let world = World::new(&graphs(""), paying());
    let thread = &world.run(json!({})).await.run.thread;
    let call = entry(&world, thread, "llm.complete", &[0]).await;
    let away = Failure::new(code::UNAVAILABLE, "what if it is away");
    let forked = fork(&world, thread, call, Err(away)).await;
    let RunOutcome::Failed { failure } = forked.outcome else { panic!("{:?}", forked.outcome) };
    assert!(failure.message.contains("what if it is away"), "{failure}");
    let ended = world.resume(thread, &[], Default::default()).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed, "the call is repeated");
    assert_eq!(world.model.calls(), 3);
    let other = ThreadId::new("other").unwrap();
    let nowhere = entry(&world, thread, "llm.complete", &[0]).await;
    let refused = world.engine.fork(from(&other, nowhere, Ok(json!(1)))).await.unwrap_err();
    assert_eq!(refused.code, code::NOT_FOUND);
}
