//! Runs with durability `exit`: the cost of reading them, and resumes with another durability.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;
use wattle_graph::event::Event;
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{EndedRun, OnFailure, ResumeRun, RunOutcome, RunService};
use wattle_run::ports::Store;
use wattle_run::ports::store::{Durability, RunOptions, StoreError};
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said};
use wattle_suite::world::{World, questions};

fn durably(durability: Durability) -> RunOptions {
    RunOptions { durability, ..RunOptions::default() }
}

/// A store that counts the events that are read.
struct Counting {
    below: Arc<dyn Store>,
    read: AtomicUsize,
}

#[async_trait]
impl Layer for Counting {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, read: AtomicUsize::new(0) }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let events = self.below.events(thread, after, limit).await?;
        self.read.fetch_add(events.len(), Ordering::SeqCst);
        Ok(events)
    }
}

const LOOP: &str = r#"
[graphs.main]
entry = "turn"
recursion_limit = 1000
[graphs.main.channels.turns]
reducer = "sum"
[graphs.main.channels.until]
[graphs.main.nodes.turn]
plugin = "p"
goto = ["turn", "ask"]
[graphs.main.nodes.ask]
plugin = "p"
"#;

fn turning() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("turn", |call, _| async move {
            let is_over = call.input.get("turns").as_u64() >= call.input.get("until").as_u64();
            Ok(json!({ "turns": 1, "$goto": [if is_over { "ask" } else { "turn" }] }))
        })
        .node("ask", |_, gate| async move {
            gate.ask(InterruptRequest { payload: json!("done?"), response_schema: None }).await?;
            Ok(json!({}))
        })
}

/// Returns the numbers of events that a read of the thread takes: at an interrupt after
/// `supersteps` supersteps, and at the end.
async fn events_read(supersteps: u64) -> (usize, usize) {
    let store = Arc::new(Layered::<Counting>::over(Arc::new(InMemoryStore::new())));
    let world = World::with_store(LOOP, turning(), store.clone());
    let input = json!({ "until": supersteps, "turns": 0 });
    let waiting = world.run_as(input, durably(Durability::Exit)).await;
    let thread = &waiting.run.thread;
    let count = async || {
        let before = store.read.load(Ordering::SeqCst);
        world.engine.thread(thread).await.unwrap().unwrap();
        store.read.load(Ordering::SeqCst) - before
    };
    let at_question = count().await;
    assert_eq!(questions(&waiting).len(), 1);
    assert_eq!(world.answer(thread, json!("yes")).await.outcome, RunOutcome::Completed);
    (at_question, count().await)
}

#[tokio::test]
async fn reading_a_run_with_durability_exit_does_not_read_its_whole_log() {
    let (short, at_end) = events_read(3).await;
    assert!((1..20).contains(&short), "{short} events");
    assert_eq!(at_end, 0);
    assert_eq!(events_read(60).await, (short, 0));
}

const NESTED: &str = r#"
[graphs.main]
entry = "sub"
edges = [{ from = "sub", to = "end" }]
[graphs.main.channels.out]
reducer = "append"
[graphs.main.nodes]
sub = { graph = "inner" }
end = { plugin = "p", node = "pay" }

[graphs.inner]
entry = "pay"
edges = [{ from = "pay", to = "ask" }]
[graphs.inner.channels.out]
reducer = "append"
[graphs.inner.nodes]
pay = { plugin = "p" }
ask = { plugin = "p" }
"#;

fn paying() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("pay", |_, gate| async move {
            Ok(json!({ "out": said(&gate.call(prompt("pay")).await?) }))
        })
        .node("ask", |_, gate| async move {
            let answer = gate
                .ask(InterruptRequest { payload: json!("sure?"), response_schema: None })
                .await?;
            gate.call(get("https://example.com/a")).await?;
            Ok(json!({ "out": answer }))
        })
}

async fn answer_as(world: &World, waiting: &EndedRun, durability: Durability) -> EndedRun {
    let request = ResumeRun {
        thread: waiting.run.thread.clone(),
        answers: [(String::new(), json!("yes"))].into(),
        on_failure: OnFailure::Keep,
        app: None,
        tenant: None,
        options: durably(durability),
        run: None,
        principal: None,
    };
    let run = world.engine.resume(request).await.unwrap();
    world.engine.wait(&run).await.unwrap()
}

#[tokio::test]
async fn a_subgraph_continues_after_a_change_of_durability() {
    use Durability::{Commit, Exit};
    for (first, second) in [(Exit, Commit), (Commit, Exit), (Exit, Exit)] {
        let mut world = World::new(NESTED, paying());
        let waiting = world.run_as(json!({}), durably(first)).await;
        assert_eq!(questions(&waiting).len(), 1);
        world.crash().await;
        let ended = answer_as(&world, &waiting, second).await;
        assert_eq!(ended.outcome, RunOutcome::Completed, "{first:?}, then {second:?}");
        assert_eq!(ended.state["out"], json!(["answer 1", "yes", "answer 2"]));
        assert_eq!(world.model.calls(), 2, "{first:?}, then {second:?}: no call is repeated");
    }
}
