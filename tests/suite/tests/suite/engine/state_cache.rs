//! States in memory: which reads they save, and that they never differ from the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Notify;
use wattle_graph::failure::code;
use wattle_graph::id::{Namespace, RunId, ThreadId};
use wattle_graph::migrate::MigrateOptions;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::engine::migrate::MigrateThread;
use wattle_run::engine::threads::NewThread;
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{
    EndedRun, OnFailure, ResumeRun, RunOutcome, RunService, StartRun,
};
use wattle_run::ports::Store;
use wattle_run::ports::store::{LeaseHolder, PruneStrategy, RunOptions};
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::world::{World, questions};

/// A store that counts the checkpoints that are read, with and without their values.
struct Counting {
    below: Arc<dyn Store>,
    reads: AtomicUsize,
    outlines: AtomicUsize,
}

#[async_trait]
impl Layer for Counting {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, reads: AtomicUsize::new(0), outlines: AtomicUsize::new(0) }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    fn seen(&self, read: &'static str, _records: usize) {
        let count = match read {
            "checkpoint" | "checkpoints" => &self.reads,
            "checkpoint_outline" => &self.outlines,
            _ => return,
        };
        count.fetch_add(1, Ordering::SeqCst);
    }
}

const CHAT: &str = r#"
[graphs.chat]
entry = "talk"
recursion_limit = 1000
[graphs.chat.channels.log]
reducer = "append"
[graphs.chat.channels.until]
[graphs.chat.nodes.talk]
plugin = "p"
goto = ["talk", "ask"]
[graphs.chat.nodes.ask]
plugin = "p"
"#;

/// Returns a plugin that writes to the log until it has a number of messages, and then waits for an
/// answer.
fn chat() -> NativePlugin {
    chat_of(Value::from)
}

/// Returns the plugin with the message for each number.
fn chat_of(message: fn(u64) -> Value) -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("talk", move |call, _| async move {
            let said = call.input.get("log").as_array().map_or(0, Vec::len) as u64 + 1;
            let is_over = Some(said) >= call.input.get("until").as_u64();
            Ok(json!({ "log": message(said), "$goto": [if is_over { "ask" } else { "talk" }] }))
        })
        .node("ask", |_, gate| async move {
            let question = InterruptRequest { payload: json!("go on?"), response_schema: None };
            let answer = gate.ask(question).await?;
            Ok(json!({ "log": answer }))
        })
}

/// A world whose store counts reads.
struct Scene {
    world: World,
    memory: Arc<InMemoryStore>,
    store: Arc<Layered<Counting>>,
}

impl Scene {
    fn new() -> Self {
        Self::with(CHAT, chat())
    }

    fn with(graph: &str, plugin: NativePlugin) -> Self {
        let memory = Arc::new(InMemoryStore::new());
        let store = Arc::new(Layered::<Counting>::over(memory.clone()));
        Self { world: World::with_store(graph, plugin, store.clone()), memory, store }
    }

    /// Runs a thread until its log has a number of messages, and then on until the end.
    async fn turn(&self, thread: Option<&ThreadId>, until: usize) -> ThreadId {
        let run = self.world.begin_on(thread, json!({ "until": until })).await.unwrap();
        let waiting = self.world.engine.wait(&run).await.unwrap();
        assert_eq!(questions(&waiting).len(), 1);
        self.shown(&run.thread).await;
        let ended = self.world.answer(&run.thread, json!("yes")).await;
        assert_eq!(ended.outcome, RunOutcome::Completed);
        self.shown(&run.thread).await;
        run.thread
    }

    /// Returns the log of a thread as the engine shows it, which is that of the store.
    async fn shown(&self, thread: &ThreadId) -> Value {
        let engine = &self.world.engine;
        let stored = self.memory.thread_snapshot(thread).await.unwrap().unwrap();
        let stored = stored.tuple.unwrap().checkpoint.state();
        let view = engine.thread(thread).await.unwrap().unwrap();
        assert_eq!(view.state, stored);
        let state = engine.state(thread, &Namespace::root(), None).await.unwrap();
        assert_eq!(state.values, stored);
        stored["log"].clone()
    }

    /// Runs a turn with one message and one answer. Returns the bytes that it appended.
    async fn appended(&self, thread: &ThreadId) -> u64 {
        let before = self.memory.stored_bytes(thread).await.unwrap();
        self.turn(Some(thread), 0).await;
        self.memory.stored_bytes(thread).await.unwrap() - before
    }

    /// Returns the number of reads with values since the last call.
    fn reads(&self) -> usize {
        self.store.reads.swap(0, Ordering::SeqCst)
    }

    /// Creates another engine on the same store and apps.
    fn beside(&self, holder: &str) -> Engine {
        let engine = &self.world.engine;
        let holder = Some(LeaseHolder(holder.to_owned()));
        let config = EngineConfig { holder, ..EngineConfig::default() };
        Engine::new(engine.ports().clone(), engine.catalog().clone(), config)
    }

    /// Returns a request with ids that the client chose.
    fn named(&self, text: &str) -> StartRun {
        let run = Some(RunId::new("run").unwrap());
        let thread = ThreadId::new("thread").unwrap();
        StartRun { run, ..self.world.request(Some(&thread), json!({ "log": text, "until": 0 })) }
    }
}

async fn start(engine: &Engine, request: StartRun) -> EndedRun {
    let run = engine.start(request).await.unwrap();
    engine.wait(&run).await.unwrap()
}

#[tokio::test]
async fn a_turn_on_a_long_thread_reads_no_state_that_the_host_wrote() {
    let scene = Scene::new();
    let thread = scene.turn(None, 400).await;
    for _ in 0..3 {
        scene.turn(Some(&thread), 0).await;
    }
    assert_eq!(scene.reads(), 0);
    let log = scene.shown(&thread).await;
    assert_eq!(log.as_array().unwrap().len(), 401 + 3 * 2);
}

/// The validation of a message counts as 130,000 steps, so the budget of an outcome or a superstep
/// is not enough for a list of 100 messages. Most of the steps are for the length of the message,
/// which the keyword `type` does not read, so they take little time.
#[tokio::test]
async fn a_turn_on_a_long_thread_appends_and_validates_no_more() {
    let part = vec!["{ type = \"string\" }"; 500].join(", ");
    let schema = format!("schema = {{ type = \"array\", items = {{ allOf = [{part}] }} }}\n");
    let log = "[graphs.chat.channels.log]\n";
    let graph = CHAT.replace(log, &format!("{log}{schema}"));
    let scene = Scene::with(&graph, chat_of(|said| format!("{said:016384}").into()));
    let thread = scene.turn(None, 10).await;
    let short = scene.appended(&thread).await;
    scene.turn(Some(&thread), 100).await;
    let long = scene.appended(&thread).await;
    assert!(short > 16_384 && long.abs_diff(short) < short / 5, "{short} and then {long} bytes");
}

#[tokio::test]
async fn a_state_that_was_read_is_not_read_again() {
    let mut scene = Scene::new();
    let thread = scene.turn(None, 3).await;
    scene.world.crash().await;
    scene.turn(Some(&thread), 0).await;
    assert_eq!(scene.reads(), 1, "only the first turn of the new engine reads one");
}

#[tokio::test]
async fn a_resume_reads_the_current_checkpoint_once() {
    let mut scene = Scene::new();
    let waiting = scene.world.run(json!({ "until": 2 })).await;
    scene.world.crash().await;
    let count = || (scene.reads(), scene.store.outlines.swap(0, Ordering::SeqCst));
    count();
    let request = ResumeRun {
        run: None,
        thread: waiting.run.thread,
        answers: [(String::new(), json!("yes"))].into(),
        on_failure: OnFailure::Keep,
        app: None,
        tenant: None,
        options: RunOptions::default(),
        principal: None,
    };
    let run = scene.world.engine.resume(request).await.unwrap();
    assert_eq!(count(), (1, 0));
    assert_eq!(scene.world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
}

#[tokio::test]
async fn writes_of_another_host_are_seen_at_once() {
    let scene = Scene::new();
    let thread = scene.turn(None, 3).await;
    let other = scene.beside("other");
    let waiting = start(&other, scene.world.request(Some(&thread), json!({ "until": 0 }))).await;
    assert_eq!(questions(&waiting).len(), 1);
    scene.reads();
    assert_eq!(scene.shown(&thread).await, json!([1, 2, 3, "yes", 5]));
    let ended = scene.world.answer(&thread, json!("from here")).await;
    assert_eq!(ended.state["log"], json!([1, 2, 3, "yes", 5, "from here"]));
    assert!(scene.reads() > 0);
    scene.turn(Some(&thread), 0).await;
    assert_eq!(scene.reads(), 0);
}

#[tokio::test]
async fn a_refused_checkpoint_is_not_shown() {
    const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.log]
reducer = "append"
[graphs.one.nodes.work]
plugin = "p"
"#;
    let runs = Arc::new(AtomicUsize::new(0));
    let (begun, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (began, released) = (begun.clone(), goes_on.clone());
    let plugin = NativePlugin::new("p", "1").node("work", move |_, _| {
        let (runs, began, goes_on) = (runs.clone(), began.clone(), goes_on.clone());
        async move {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            if run == 0 {
                began.notify_one();
                goes_on.notified().await;
            }
            Ok(json!({ "log": run }))
        }
    });
    let scene = Scene::with(ONE, plugin);
    let run = scene.world.begin(json!({})).await.unwrap();
    begun.notified().await;
    // The other engine has the same name, like one that takes over after an expired lease.
    let heir = scene.beside("world");
    assert_eq!(heir.recover().await, 1);
    assert_eq!(heir.wait(&run).await.unwrap().state["log"], json!([1]));
    // The store refuses the checkpoint of the first engine, which has the same id.
    released.notify_one();
    scene.world.engine.wait(&run).await.unwrap();
    assert_eq!(scene.shown(&run.thread).await, json!([1]));
}

#[tokio::test]
async fn a_deleted_thread_is_not_shown_in_a_new_one_with_its_id() {
    let scene = Scene::new();
    let own = &scene.world.engine;
    let other = scene.beside("other");
    // The clock is stopped, so all ids and times of the new checkpoints are those of the old ones.
    for (deletes, starts) in [(own, own), (&other, &other), (&other, own), (own, &other)] {
        let thread = start(own, scene.named("old")).await.run.thread;
        assert_eq!(scene.shown(&thread).await, json!(["old", 2]));
        deletes.delete_thread(&thread).await.unwrap();
        assert_eq!(own.thread(&thread).await.unwrap(), None);
        start(starts, scene.named("new")).await;
        assert_eq!(scene.shown(&thread).await, json!(["new", 2]));
        own.delete_thread(&thread).await.unwrap();
    }
}

#[tokio::test]
async fn a_deleted_copy_is_not_shown_in_a_new_one_with_its_id() {
    let scene = Scene::new();
    let own = &scene.world.engine;
    let other = scene.beside("other");
    // Copies have the time of creation of their original, which has no run.
    let original = own.create_thread(NewThread::default()).await.unwrap().id;
    let copy = ThreadId::new("thread").unwrap();
    for (engine, text) in [(own, "old"), (&other, "new")] {
        engine.copy_thread(&original, Some(copy.clone())).await.unwrap();
        start(engine, scene.named(text)).await;
        assert_eq!(scene.shown(&copy).await, json!([text, 2]));
        other.delete_thread(&copy).await.unwrap();
    }
}

#[tokio::test]
async fn states_that_were_pruned_or_deleted_are_not_shown() {
    let scene = Scene::new();
    let engine = &scene.world.engine;
    let thread = scene.turn(None, 2).await;
    let before = engine.state(&thread, &Namespace::root(), None).await.unwrap();
    let second = start(engine, scene.world.request(Some(&thread), json!({ "until": 0 }))).await;
    assert_eq!(scene.shown(&thread).await, json!([1, 2, "yes", 4]));
    engine.delete_runs(&thread, &[second.run.run]).await.unwrap();
    assert_eq!(scene.shown(&thread).await, json!([1, 2, "yes"]));
    scene.turn(Some(&thread), 0).await;
    engine.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    assert_eq!(scene.shown(&thread).await, json!([1, 2, "yes", 4, "yes"]));
    let pruned = engine.state(&thread, &Namespace::root(), Some(before.checkpoint)).await;
    assert_eq!(pruned.unwrap_err().code, code::NOT_FOUND);
}

#[tokio::test]
async fn a_migrated_state_is_shown() {
    let scene = Scene::new();
    let engine = &scene.world.engine;
    let thread = scene.turn(None, 2).await;
    let graph = CHAT.replace("[graphs.chat.channels.until]\n", "");
    scene.world.install(
        &graph,
        NativePlugin::new("p", "2")
            .node("talk", |_, _| async { Ok(json!({ "log": "migrated", "$goto": ["ask"] })) })
            .node("ask", |_, _| async { Ok(json!({})) }),
    );
    let options = MigrateOptions { drop: true, ..MigrateOptions::default() };
    let (app, tenant, principal) = (None, None, None);
    let migrate =
        MigrateThread { thread: thread.clone(), app, tenant, options, dry_run: false, principal };
    assert!(engine.migrate(&migrate).await.unwrap().applied);
    let view = engine.thread(&thread).await.unwrap().unwrap();
    assert_eq!(view.state, json!({ "log": [1, 2, "yes"] }));
    let run = scene.world.begin_on(Some(&thread), json!({})).await.unwrap();
    let ended = engine.wait(&run).await.unwrap();
    assert_eq!(ended.state, json!({ "log": [1, 2, "yes", "migrated"] }));
}
