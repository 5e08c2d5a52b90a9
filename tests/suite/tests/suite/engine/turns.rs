//! The places for runs of a host: pending runs of several callers begin in turn.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_graph::principal::Principal;
use wattle_run::engine::threads::NewThread;
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::hostcall::runs::{CreateRun, Multitask, ThreadCreation};
use wattle_run::ports::store::{LeaseHolder, RunKind, RunRecord};
use wattle_suite::native::NativePlugin;
use wattle_suite::world::World;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.name]
[graphs.one.nodes.work]
plugin = "p"
"#;

/// Runs that wait until the test ends them by their names.
struct Runs {
    world: World,
    /// Names of the runs that began, in order.
    begun: watch::Sender<Vec<String>>,
    /// Names of the runs that may end.
    ended: watch::Sender<BTreeSet<String>>,
}

impl Runs {
    fn new() -> Self {
        let begun = watch::Sender::<Vec<String>>::default();
        let ended = watch::Sender::<BTreeSet<String>>::default();
        let (told, ends) = (begun.clone(), ended.clone());
        let plugin = NativePlugin::new("p", "1").node("work", move |call, _| {
            let (told, mut ends) = (told.clone(), ends.subscribe());
            async move {
                let name = call.input.get("name").as_str().unwrap_or_default().to_owned();
                told.send_modify(|begun| begun.push(name.clone()));
                drop(ends.wait_for(|ends| ends.contains(&name)).await);
                Ok(json!({}))
            }
        });
        Self { world: World::new(ONE, plugin), begun, ended }
    }

    /// Starts a host with a number of places, on the store of the world.
    fn host(&self, places: usize) -> Engine {
        let config = EngineConfig {
            holder: Some(LeaseHolder("turns".to_owned())),
            max_runs: Some(places),
            ..EngineConfig::default()
        };
        let engine = &self.world.engine;
        Engine::new(engine.ports().clone(), engine.catalog().clone(), config)
    }

    /// Returns the request for a run on a thread of its own. The name of the run begins with the
    /// key of the caller.
    fn request(&self, name: &str) -> CreateRun {
        let key = Some(name.chars().take(1).collect());
        let thread = ThreadId::new(format!("thread-{name}")).unwrap();
        let kind = RunKind::Start { input: json!({ "name": name }) };
        let mut request = self.world.create_run(&thread, kind);
        request.creation = ThreadCreation::IfMissing;
        request.spec.principal = Some(Principal { key, ..Principal::default() });
        request
    }

    /// Requests runs, and returns their records.
    async fn ask(&self, host: &Engine, names: &[&str]) -> Vec<RunRecord> {
        let mut records = Vec::new();
        for name in names {
            records.push(host.create_run(self.request(name)).await.unwrap());
        }
        records
    }

    /// Ends a run.
    fn end(&self, name: &str) {
        self.ended.send_modify(|ended| {
            ended.insert(name.to_owned());
        });
    }

    /// Waits until `count` runs have begun, and returns the names of all that have.
    async fn begun(&self, count: usize) -> Vec<String> {
        let mut begun = self.begun.subscribe();
        begun.wait_for(|begun| begun.len() >= count).await.unwrap().clone()
    }

    /// Ends each run as soon as it has begun, until `count` have. Returns all names in order.
    async fn begun_in_turn(&self, count: usize) -> Vec<String> {
        for number in 1..count {
            let begun = self.begun(number).await;
            self.end(&begun[number - 1]);
        }
        self.begun(count).await
    }
}

fn is_running(record: &RunRecord) -> bool {
    record.status == RunStatus::Running
}

#[tokio::test]
async fn thousands_of_waiting_runs_of_one_caller_do_not_keep_another_from_beginning_next() {
    let runs = Runs::new();
    let host = runs.host(1);
    for number in 0..=2_000 {
        runs.ask(&host, &[&format!("a{number}")]).await;
    }
    runs.ask(&host, &["b"]).await;
    assert_eq!(runs.begun(1).await, ["a0"]);
    runs.end("a0");
    assert_eq!(runs.begun(2).await, ["a0", "b"]);
}

#[tokio::test]
async fn callers_take_turns_and_runs_of_one_begin_in_the_order_of_their_requests() {
    let runs = Runs::new();
    let host = runs.host(1);
    runs.ask(&host, &["a4", "a3", "a2", "a1", "b2", "b1", "c1"]).await;
    let begun = runs.begun_in_turn(7).await;
    assert_eq!(begun, ["a4", "b2", "c1", "a3", "b1", "a2", "a1"]);
}

#[tokio::test]
async fn one_caller_holds_at_most_half_of_the_places_while_another_waits() {
    let runs = Runs::new();
    let host = runs.host(4);
    // Nobody else waits yet.
    let records = runs.ask(&host, &["a1", "a2", "a3", "a4", "a5", "a6"]).await;
    assert_eq!(records.iter().filter(|record| is_running(record)).count(), 4);
    runs.ask(&host, &["b1", "b2", "b3", "b4"]).await;
    for (name, next) in [("a1", "b1"), ("a2", "b2"), ("b1", "b3"), ("b2", "b4"), ("b3", "a5")] {
        let before = runs.begun(4).await.len();
        runs.end(name);
        let begun = runs.begun(before + 1).await;
        assert_eq!(begun.last().map(String::as_str), Some(next), "after {name}");
    }
}

#[tokio::test]
async fn a_caller_leaves_places_free_for_others() {
    let runs = Runs::new();
    let host = runs.host(8);
    let names: Vec<String> = (0..9).map(|number| format!("a{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let records = runs.ask(&host, &names).await;
    assert_eq!(records.iter().filter(|record| is_running(record)).count(), 7);
    // It need not wait for the end of a run.
    runs.ask(&host, &["b"]).await;
    assert!(runs.begun(8).await.contains(&"b".to_owned()));
    for name in ["a0", "b"] {
        runs.end(name);
    }
    assert_eq!(runs.begun(9).await[8], "a7");
}

#[tokio::test]
async fn a_run_that_cancels_no_other_waits_for_a_place() {
    let runs = Runs::new();
    let host = runs.host(1);
    let first = runs.ask(&host, &["a1"]).await;
    let strategy = Multitask::Interrupt;
    let request = CreateRun { strategy, ..runs.request("a2") };
    assert!(!is_running(&host.create_run(request).await.unwrap()));
    let thread = Some(first[0].thread.clone());
    let request = CreateRun { strategy, thread, ..runs.request("a3") };
    assert!(is_running(&host.create_run(request).await.unwrap()), "it has the place of the other");
    assert_eq!(runs.begun(2).await, ["a1", "a3"]);
}

#[tokio::test]
async fn a_restart_keeps_the_order_of_waiting_runs() {
    let runs = Runs::new();
    let host = runs.host(1);
    runs.ask(&host, &["x", "a3", "a2", "a1", "b1"]).await;
    runs.begun(1).await;
    host.shutdown(Duration::ZERO).await;
    let host = runs.host(1);
    host.start_recovery();
    // The run that was cut continues.
    assert_eq!(runs.begun(2).await, ["x", "x"]);
    let begun = runs.begun_in_turn(6).await;
    assert_eq!(begun[2..], ["a3", "b1", "a2", "a1"]);
}

#[tokio::test]
async fn run_with_a_new_thread_starts_only_on_a_thread_that_no_one_uses() {
    let runs = Runs::new();
    let host = runs.host(2);
    let new = |name: &str, tenant: Option<&str>| {
        let (thread, tenant) = (runs.request(name).thread, tenant.map(str::to_owned));
        NewThread { thread, tenant, ..NewThread::default() }
    };
    let request = |name: &str, tenant: Option<&str>| {
        let record = host.unbound_thread(new(name, tenant));
        let tenant = record.tenant.clone();
        let creation = ThreadCreation::New(Box::new(record));
        CreateRun { creation, tenant, ..runs.request(name) }
    };
    let code_of =
        async |request: CreateRun| host.create_run(request).await.map_err(|failure| failure.code);
    let conflict = Err(code::CONFLICT.to_owned());
    assert!(code_of(request("a", None)).await.is_ok_and(|record| is_running(&record)));
    assert_eq!(code_of(request("a", None)).await, conflict, "the thread has a run");
    host.create_thread(new("b", None)).await.unwrap();
    assert_eq!(code_of(request("b", Some("t"))).await, conflict, "another tenant");
    assert!(code_of(request("b", None)).await.is_ok_and(|record| is_running(&record)));
    assert_eq!(runs.begun(2).await.len(), 2);
}
