//! The memory of runs: the runs of one caller leave memory for those of another.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_graph::principal::Principal;
use wattle_run::caller_id::CallerId;
use wattle_run::engine::call_node::{CallNodeOnce, NodeCallResult};
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::CallError;
use wattle_run::grant::{Grants, MemoryAccess, MemoryRule};
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::memory::{GetDocument, PutDocument};
use wattle_run::hostcall::runs::{
    CreateRun, EndedRun, RunOutcome, RunRef, RunService, ThreadCreation,
};
use wattle_run::ports::memory::PutItem;
use wattle_run::ports::store::{LeaseHolder, RunKind, RunRecord};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{NoSql, prompt, said};
use wattle_suite::world::{World, failure};

use super::history::{TALK, user};

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.name]
[graphs.one.channels.reads]
[graphs.one.channels.asks]
[graphs.one.channels.data]
[graphs.one.nodes.work]
plugin = "p"
"#;

/// Memory of all runs. The runs of one caller hold at most half, of which an eighth is for small
/// runs.
const RUNS_MEMORY_BYTES: u64 = 8 << 20;

/// Size of the document that a node reads again and again.
const DOCUMENT_BYTES: usize = 200_000;

/// Number of reads whose results take more than half of what the runs of one caller hold.
const MANY_READS: u64 = 10;

/// Size of a message of a model call. The memory of two calls is more than the runs of one caller
/// hold.
const MESSAGE_BYTES: usize = 700_000;

/// Maximum number of runs of one caller that hold any memory.
const MOST_RUNS: usize = 16;

/// Reads a document several times. The journal of the task keeps each result.
async fn read(gate: &Gate, reads: u64) -> Result<(), CallError> {
    if reads == 0 {
        return Ok(());
    }
    let (namespace, key) = (vec!["large".to_owned()], "document".to_owned());
    let put = PutItem {
        namespace: namespace.clone(),
        key: key.clone(),
        value: json!("x".repeat(DOCUMENT_BYTES)),
        ttl_ms: None,
        refresh_on_read: false,
    };
    gate.call(PutDocument(put)).await?;
    for _ in 0..reads {
        gate.call(GetDocument { namespace: namespace.clone(), key: key.clone() }).await?;
    }
    Ok(())
}

/// Runs that fill their journals, and then wait until the test ends them by their names.
struct Runs {
    world: World,
    host: Engine,
    /// Names of the runs that have filled their journals.
    begun: watch::Sender<BTreeSet<String>>,
    /// Names of the runs that may end.
    ended: watch::Sender<BTreeSet<String>>,
}

impl Runs {
    fn new() -> Self {
        let begun = watch::Sender::<BTreeSet<String>>::default();
        let ended = watch::Sender::<BTreeSet<String>>::default();
        let (told, ends) = (begun.clone(), ended.clone());
        let plugin = NativePlugin::new("p", "1").node("work", move |call, gate| {
            let (told, mut ends) = (told.clone(), ends.subscribe());
            async move {
                let name = call.input.get("name").as_str().unwrap_or_default().to_owned();
                let reads = call.input.get("reads").as_u64().unwrap_or_default();
                read(&gate, reads).await?;
                if call.input.get("asks").as_bool().unwrap_or_default() {
                    let payload = json!("go on?");
                    gate.ask(InterruptRequest { payload, response_schema: None }).await?;
                }
                told.send_modify(|begun| {
                    begun.insert(name.clone());
                });
                drop(ends.wait_for(|ends| ends.contains(&name)).await);
                Ok(json!({}))
            }
        });
        let memory = vec![MemoryRule { namespace: Vec::new(), access: MemoryAccess::ReadWrite }];
        let grants = Grants { memory, ..Grants::default() };
        let world = World::with_sql(ONE, plugin, Arc::new(NoSql), grants);
        let host = host(&world);
        Self { world, host, begun, ended }
    }

    /// Stops the host, which cuts its runs, and starts another one on the same store.
    async fn restart(&mut self) {
        self.host.shutdown(Duration::ZERO).await;
        self.host = host(&self.world);
    }

    /// Returns the request for a run on a thread of its own. The name of the run begins with the
    /// key of the caller.
    fn request(&self, name: &str, mut input: Value) -> CreateRun {
        input["name"] = json!(name);
        let key = Some(name.chars().take(1).collect());
        let thread = ThreadId::new(format!("thread-{name}")).unwrap();
        let mut request = self.world.create_run(&thread, RunKind::Start { input });
        request.creation = ThreadCreation::IfMissing;
        // The record keeps the principal of a run that has data of its client.
        request.spec.client = json!({});
        request.spec.principal = Some(Principal { key, ..Principal::default() });
        request
    }

    /// Requests a run that reads the document `reads` times.
    async fn ask(&self, name: &str, reads: u64) -> RunRecord {
        let request = self.request(name, json!({ "reads": reads }));
        self.host.create_run(request).await.unwrap()
    }

    /// Requests a run whose state takes more than half of what the runs of one caller hold.
    async fn ask_with_data(&self, name: &str) -> RunRecord {
        let data = "x".repeat(RUNS_MEMORY_BYTES as usize / 4 + DOCUMENT_BYTES);
        let request = self.request(name, json!({ "data": data }));
        self.host.create_run(request).await.unwrap()
    }

    /// Waits until a run has filled its journal.
    async fn begun(&self, name: &str) {
        self.begun.subscribe().wait_for(|begun| begun.contains(name)).await.unwrap();
    }

    /// Ends a run.
    fn end(&self, name: &str) {
        self.ended.send_modify(|ended| {
            ended.insert(name.to_owned());
        });
    }

    async fn wait(&self, record: &RunRecord) -> EndedRun {
        let run = RunRef { thread: record.thread.clone(), run: record.id.clone() };
        self.host.wait(&run).await.unwrap()
    }
}

/// Starts a host with a limit of the memory of runs, on the store of the world.
fn host(world: &World) -> Engine {
    let config = EngineConfig {
        holder: Some(LeaseHolder("memory".to_owned())),
        runs_memory_bytes: Some(RUNS_MEMORY_BYTES),
        ..EngineConfig::default()
    };
    Engine::new(world.engine.ports().clone(), world.engine.catalog().clone(), config)
}

fn is_running(record: &RunRecord) -> bool {
    record.status == RunStatus::Running
}

#[tokio::test]
async fn a_caller_without_memory_waits_while_the_run_of_another_completes() {
    let runs = Runs::new();
    assert!(is_running(&runs.ask("a", MANY_READS).await));
    runs.begun("a").await;
    let mut waiting = None;
    for number in 0..MOST_RUNS {
        let name = format!("a{number}");
        let record = runs.ask(&name, 0).await;
        if !is_running(&record) {
            waiting = Some((name, record));
            break;
        }
        runs.begun(&name).await;
    }
    let (name, record) = waiting.expect("the share of the caller is used");
    let other = runs.ask("b", 3).await;
    assert!(is_running(&other));
    runs.end("b");
    assert_eq!(runs.wait(&other).await.outcome, RunOutcome::Completed);
    assert!(!runs.begun.borrow().contains(&name));
    runs.end("a");
    runs.begun(&name).await;
    runs.end(&name);
    assert_eq!(runs.wait(&record).await.outcome, RunOutcome::Completed);
}

#[tokio::test]
async fn a_journal_beyond_the_share_of_the_caller_fails_its_task() {
    let runs = Runs::new();
    let first = runs.ask("a1", MANY_READS).await;
    runs.begun("a1").await;
    let second = runs.ask("a2", MANY_READS).await;
    let refused = failure(&runs.wait(&second).await);
    let details = refused.details.as_ref().unwrap();
    assert_eq!((&*refused.code, &details["limit"]), (code::LIMIT, &json!("runs_memory")));
    assert!(refused.retryable && refused.message.contains("`limits.runs_memory`"), "{refused}");
    runs.end("a1");
    assert_eq!(runs.wait(&first).await.outcome, RunOutcome::Completed);
    runs.end("a3");
    let third = runs.ask("a3", MANY_READS).await;
    assert_eq!(runs.wait(&third).await.outcome, RunOutcome::Completed);
}

#[tokio::test]
async fn a_run_that_waits_for_a_person_holds_no_memory() {
    let runs = Runs::new();
    let input = json!({ "reads": MANY_READS, "asks": true });
    let asking = runs.host.create_run(runs.request("a1", input)).await.unwrap();
    let ended = runs.wait(&asking).await;
    assert!(matches!(ended.outcome, RunOutcome::Interrupted { .. }), "{:?}", ended.outcome);
    runs.end("a2");
    let next = runs.ask("a2", MANY_READS).await;
    assert_eq!(runs.wait(&next).await.outcome, RunOutcome::Completed);
}

#[tokio::test]
async fn a_recovery_without_memory_keeps_no_other_caller_from_its_recovery() {
    let mut runs = Runs::new();
    let (first, other) = (runs.ask_with_data("a1").await, runs.ask("b", 0).await);
    runs.begun("a1").await;
    runs.begun("b").await;
    runs.restart().await;
    let second = runs.ask_with_data("a2").await;
    runs.begun("a2").await;
    runs.host.start_recovery();
    let recovery = runs.host.wait_recovered().await;
    assert_eq!((recovery.found, recovery.recovered, recovery.set_aside), (2, 1, 1));
    let aside = runs.host.set_aside(&first.thread).unwrap();
    assert_eq!(aside.failure.details.unwrap()["limit"], json!("runs_memory"));
    runs.end("b");
    assert_eq!(runs.wait(&other).await.outcome, RunOutcome::Completed);
    runs.end("a2");
    assert_eq!(runs.wait(&second).await.outcome, RunOutcome::Completed);
    runs.world.clock.advance_ms(31_000);
    assert_eq!(runs.host.retry_set_aside().await, 1);
    runs.end("a1");
    assert_eq!(runs.wait(&first).await.outcome, RunOutcome::Completed);
}

#[tokio::test]
async fn a_run_whose_state_fits_no_share_does_not_start() {
    let runs = Runs::new();
    let data = "x".repeat(RUNS_MEMORY_BYTES as usize / 2);
    let request = runs.request("a", json!({ "data": data }));
    let refused = runs.host.create_run(request).await.err().unwrap();
    let details = refused.details.as_ref().unwrap();
    assert_eq!((&*refused.code, &details["limit"]), (code::LIMIT, &json!("runs_memory")));
    assert!(!refused.retryable, "no run can have as much: {refused}");
    assert!(is_running(&runs.ask("a", 0).await), "the thread is free");
}

/// Returns a plugin whose node appends a large message to the history of its input.
fn replying() -> NativePlugin {
    NativePlugin::new("p", "1").node("reply", |_, gate| async move {
        let message = json!({ "role": "user", "content": "x".repeat(MESSAGE_BYTES) });
        let history = json!({ "channel": "messages", "at": 0, "append": [message] });
        let reference = serde_json::from_value(history).unwrap();
        let request = gate.with_history(prompt("hi"), reference).expect("the budget has room")?;
        Ok(json!({ "out": said(&gate.call(request).await?) }))
    })
}

#[tokio::test]
async fn the_request_of_a_model_call_counts_until_the_call_ends() {
    let mut world = World::new(TALK, replying());
    world.engine = host(&world);
    let input = json!({ "messages": [user("m1", "hi")] });
    world.model.hold();
    let first = world.begin(input.clone()).await.unwrap();
    world.model.held(1).await;
    let refused = failure(&world.run(input.clone()).await);
    let details = refused.details.as_ref().unwrap();
    assert_eq!((&*refused.code, &details["limit"]), (code::LIMIT, &json!("runs_memory")));
    assert!(refused.retryable, "{refused}");
    assert_eq!(world.model.calls(), 1, "the model is not called");
    world.model.release();
    assert_eq!(world.engine.wait(&first).await.unwrap().outcome, RunOutcome::Completed);
    assert_eq!(world.run(input).await.outcome, RunOutcome::Completed);
}

#[tokio::test]
async fn a_node_that_a_client_calls_counts_as_a_run() {
    let mut world = World::new(TALK, replying());
    world.engine = host(&world);
    let name = world.request(None, Value::Null).app;
    let app = world.engine.catalog().app(&name).unwrap();
    let call = |input: Value| {
        let call = CallNodeOnce {
            node: "reply".to_owned(),
            input,
            config: None,
            may_configure: false,
            context: Value::Null,
            tenant: None,
            caller: CallerId::default(),
        };
        let (engine, app) = (world.engine.clone(), app.clone());
        async move { engine.call_node_once(&app, call).await }
    };
    let input = json!({ "messages": [user("m1", "hi")] });
    world.model.hold();
    let first = tokio::spawn(call(input.clone()));
    world.model.held(1).await;
    let NodeCallResult::Failed(refused) = call(input.clone()).await.unwrap().result else {
        panic!("the memory of two calls is more than one caller holds");
    };
    let details = refused.details.as_ref().unwrap();
    assert_eq!((&*refused.code, &details["limit"]), (code::LIMIT, &json!("runs_memory")));
    assert_eq!(world.model.calls(), 1, "the model is not called");
    world.model.release();
    let ended = [first.await.unwrap(), call(input).await];
    for end in ended {
        let result = end.unwrap().result;
        assert!(matches!(result, NodeCallResult::Finished(_)), "{result:?}");
    }
    let large = json!({ "messages": [], "data": "x".repeat(RUNS_MEMORY_BYTES as usize / 2) });
    let refused = call(large).await.unwrap_err();
    assert_eq!(refused.details.unwrap()["limit"], json!("runs_memory"));
}
