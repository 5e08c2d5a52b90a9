//! Cancel, busy threads, budgets and events.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::FutureExt;
use serde_json::json;
use wattle_graph::event::{Event, EventKind, Log, RunStatus};
use wattle_graph::failure::code;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::engine::Engine;
use wattle_run::gate::unwind::CallError;
use wattle_run::grant::{GrantSides, Grants, MemoryAccess, MemoryRule, RequestPlace};
use wattle_run::hostcall::emit::Emission;
use wattle_run::hostcall::http::HttpRequest;
use wattle_run::hostcall::log::LogMessage;
use wattle_run::hostcall::memory::{GetDocument, PutDocument};
use wattle_run::hostcall::runs::{EndedRun, OnFailure, RunOutcome, RunRef, RunService, StartRun};
use wattle_run::limit::{self, Limits};
use wattle_run::ports::Store;
use wattle_run::ports::memory::PutItem;
use wattle_run::ports::store::{RunRecord, StoreError};
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{NoSql, get, prompt, said, unavailable};
use wattle_suite::world::{World, failure};

use super::{calling, enqueue_undue};

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

#[tokio::test]
async fn a_cancelled_run_ends_soon_and_the_thread_can_be_resumed() {
    let world = World::new(ONE, calling("1"));
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    let asked = Instant::now();
    world.engine.cancel(&run).await.unwrap();
    assert!(asked.elapsed() < Duration::from_secs(5), "a hang, not a measurement");
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Cancelled);
    let ended = world.resume(&run.thread, &[], OnFailure::Keep).await.unwrap();
    assert_eq!(ended.state, json!({ "out": "done" }));
}

#[tokio::test]
async fn a_delayed_request_is_not_sent_after_a_cancel() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let delay_ms = Some(limit::HTTP_DELAY_MS);
        gate.call(HttpRequest { delay_ms, ..get("https://example.com/later") }).await?;
        Ok(json!({ "out": "sent" }))
    });
    let world = World::new(ONE, plugin);
    let run = world.begin(json!({})).await.unwrap();
    let waits = |kind: &EventKind| matches!(kind, EventKind::CallStarted(_));
    for _ in 0..400 {
        if world.count(&run.thread, waits).await == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(world.count(&run.thread, waits).await, 1);
    world.engine.cancel(&run).await.unwrap();
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Cancelled);
    assert_eq!(world.net.calls(), 0);
}

#[tokio::test]
async fn a_cancel_prevents_the_next_attempt() {
    let graph = format!("{ONE}retry = {{ attempts = 2, initial = \"30s\" }}\n");
    let world = World::new(&graph, calling("1"));
    world.net.fail_next(unavailable());
    let run = world.begin(json!({})).await.unwrap();
    let mut newest = world.engine.watch(&run.thread);
    while world.count(&run.thread, |kind| matches!(kind, EventKind::TaskFailed(_))).await == 0 {
        newest.changed().await.unwrap();
    }
    let asked = Instant::now();
    world.engine.cancel(&run).await.unwrap();
    assert!(asked.elapsed() < Duration::from_secs(5), "a hang, not a measurement");
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Cancelled);
    assert_eq!(world.net.calls(), 1);
    let next = world.begin_on(Some(&run.thread), json!({})).await.unwrap();
    assert_eq!(world.engine.wait(&next).await.unwrap().state, json!({ "out": "done" }));
}

#[tokio::test]
async fn deltas_before_a_cancel_stay_in_the_log() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let answer = gate.call(prompt("talk")).await?;
        Ok(json!({ "out": said(&answer) }))
    });
    let world = World::new(ONE, plugin);
    world.model.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.model.hung().await;
    let streamed = |kind: &EventKind| matches!(kind, EventKind::Streamed(_));
    let mut newest = world.engine.watch(&run.thread);
    while world.count(&run.thread, streamed).await == 0 {
        newest.changed().await.unwrap();
    }
    world.engine.cancel(&run).await.unwrap();
    world.model.dropped().await;
    let events = world.events(&run.thread).await;
    let said = events.iter().position(|event| streamed(&event.kind)).unwrap();
    let ended = |event: &Event| matches!(event.kind, EventKind::RunEnded(_));
    assert!(said < events.iter().position(ended).unwrap());
}

/// Runs a node that cancels its own run directly before it returns.
async fn cancelled_at_its_end(graph: &str) -> EndedRun {
    let engine = Arc::new(OnceLock::<Engine>::new());
    let known = engine.clone();
    let plugin = NativePlugin::new("p", "1").node("work", move |call, _| {
        let engine = known.get().cloned();
        async move {
            let run = RunRef { thread: call.thread, run: call.run };
            // The first poll sets the flag, so the cancel comes directly before the result.
            let _waits = engine.expect("a run has an engine").cancel(&run).now_or_never();
            Ok(json!({ "out": "done" }))
        }
    });
    let world = World::new(graph, plugin);
    assert!(engine.set(world.engine.clone()).is_ok());
    world.run(json!({})).await
}

#[tokio::test]
async fn a_superstep_that_has_finished_before_the_cancel_is_kept() {
    let ended = cancelled_at_its_end(ONE).await;
    assert_eq!((ended.outcome, ended.state), (RunOutcome::Cancelled, json!({ "out": "done" })));
}

#[tokio::test]
async fn a_cancelled_run_does_not_stop_at_a_breakpoint() {
    let more = "[graphs.one.nodes.more]\nplugin = \"p\"\nnode = \"work\"\n\
                [[graphs.one.edges]]\nfrom = \"work\"\nto = \"more\"\n";
    let stops = ONE.replace("entry = \"work\"", "entry = \"work\"\ninterrupt_after = [\"work\"]");
    let ended = cancelled_at_its_end(&format!("{stops}{more}")).await;
    assert_eq!((ended.outcome, ended.state), (RunOutcome::Cancelled, json!({ "out": "done" })));
}

#[tokio::test]
async fn a_thread_has_one_run_at_a_time() {
    let world = World::new(ONE, calling("1"));
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    let second = world.begin_on(Some(&run.thread), json!({})).await.unwrap_err();
    assert_eq!(second.code, code::BUSY);
    assert_eq!(second.details.unwrap()["run_id"], run.run.as_str());
    world.engine.cancel(&run).await.unwrap();
}

#[tokio::test]
async fn a_route_without_a_grant_is_denied_with_the_setting_to_add() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let mut request = prompt("hello");
        request.route = "vision".into();
        gate.call(request).await?;
        Ok(json!({}))
    });
    let world = World::new(ONE, plugin);
    let denied = failure(&world.run(json!({})).await);
    assert_eq!(denied.code, code::DENIED);
    let parts = ["`vision`", "`[grants.\"test/p\"]`"];
    assert!(parts.iter().all(|part| denied.message.contains(part)), "{denied}");
    assert_eq!(world.model.calls(), 0);
}

#[tokio::test]
async fn a_node_with_endless_host_calls_ends_at_its_limit() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        loop {
            gate.now_ms()?;
        }
    });
    let limits = Limits { host_calls: 50, ..Limits::default() };
    let request = Some((RequestPlace::App, Grants::default()));
    let sides = Some(Arc::new(GrantSides { request, granted: None }));
    let grants = Grants { limits, sides, ..Grants::default() };
    let world = World::with_sql(ONE, plugin, Arc::new(NoSql), grants);
    let ended = world.run(json!({})).await;
    let exceeded = failure(&ended);
    let line = "; raise `limits.host_calls` under `[needs]` in app.toml if that is right";
    assert!(exceeded.message.ends_with(line), "{exceeded}");
    assert_eq!(exceeded.details.unwrap()["limit"], "host_calls");
}

/// The gate itself makes these calls, and refuses the first two of them.
#[tokio::test]
async fn bytes_of_calls_that_do_not_wait_count_towards_the_limit_of_host_calls() {
    for function in ["route", "zone", "random"] {
        let made = Arc::new(AtomicU32::new(0));
        let counted = made.clone();
        let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| {
            let made = counted.clone();
            async move {
                for _ in 0..100 {
                    let name = "x".repeat(1_000);
                    let ended = match function {
                        "route" => gate.route(&name).map(drop),
                        "zone" => gate.to_zone(0, Some(&name)).map(drop),
                        _ => gate.random(1_000).map(drop).map_err(CallError::Unwind),
                    };
                    if let Err(CallError::Unwind(unwind)) = ended {
                        return Err(CallError::Unwind(unwind));
                    }
                    made.fetch_add(1, Ordering::Relaxed);
                }
                Ok(json!({}))
            }
        });
        let limits = Limits { host_call_bytes: 20_000, ..Limits::default() };
        let grants = Grants { limits, ..Grants::default() };
        let world = World::with_sql(ONE, plugin, Arc::new(NoSql), grants);
        let details = failure(&world.run(json!({})).await).details.unwrap();
        assert_eq!(details["limit"], "host_call_bytes", "{function}");
        let made = made.load(Ordering::Relaxed);
        assert!((1..20).contains(&made), "{function}: {made}");
    }
}

#[tokio::test]
async fn requests_and_results_count_by_their_weight_towards_the_limit_of_the_journal() {
    for (function, allowed, most) in [
        ("put", 40_000, 5),
        ("random", 40_000, 40),
        ("ask a model", 40_000, 40),
        // The journal has the beginning of such an input, and the task has all of it.
        ("start a subgraph", 1_000_000, 5),
    ] {
        let made = Arc::new(AtomicU32::new(0));
        let counted = made.clone();
        let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| {
            let made = counted.clone();
            let zeros = PutItem {
                namespace: vec!["numbers".to_owned()],
                key: "zeros".into(),
                value: json!(vec![0; 100]),
                ttl_ms: None,
                refresh_on_read: false,
            };
            async move {
                for _ in 0..100 {
                    match function {
                        "put" => gate.call(PutDocument(zeros.clone())).await?,
                        "random" => drop(gate.random(1_000)?),
                        "start a subgraph" => {
                            let input = json!({ "out": vec![0; 10_000] });
                            let start = StartRun::new("test".parse().unwrap(), input);
                            drop(gate.start_run(start).await?);
                        }
                        _ => drop(gate.call(prompt(&"x".repeat(1_000))).await?),
                    }
                    made.fetch_add(1, Ordering::Relaxed);
                }
                Ok(json!({}))
            }
        });
        let limits = Limits { task_journal_bytes: allowed, ..Limits::default() };
        let everything = MemoryRule { namespace: Vec::new(), access: MemoryAccess::ReadWrite };
        let (llm, memory) = (["chat".to_owned()].into(), vec![everything]);
        let grants = Grants { limits, llm, memory, ..Grants::default() };
        let world = World::with_sql(ONE, plugin, Arc::new(NoSql), grants);
        let details = failure(&world.run(json!({})).await).details.unwrap();
        let named = (&details["limit"], &details["allowed"]);
        assert_eq!(named, (&json!("task_journal_bytes"), &json!(allowed)), "{function}");
        let made = made.load(Ordering::Relaxed);
        assert!((1..=most).contains(&made), "{function}: {made}");
    }
}

/// The events are in the log, and not in the journal.
#[tokio::test]
async fn events_of_a_guest_do_not_count_towards_the_limit_of_the_journal() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        for _ in 0..100 {
            let data = json!(vec![0; 100]);
            gate.emit(Emission::Custom { name: "seen".into(), data }).await?;
        }
        Ok(json!({ "out": "done" }))
    });
    let limits = Limits { task_journal_bytes: 40_000, ..Limits::default() };
    let grants = Grants { limits, ..Grants::default() };
    let world = World::with_sql(ONE, plugin, Arc::new(NoSql), grants);
    assert_eq!(world.run(json!({})).await.outcome, RunOutcome::Completed);
}

/// A re-execution finds only the failure in the journal. So the first execution counts it as well.
#[tokio::test]
async fn an_output_that_is_nested_too_deeply_counts_as_its_failure() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let text = json!("x".repeat(10_000));
        let put = PutItem {
            namespace: vec!["deep".to_owned()],
            key: "document".into(),
            value: (0..limit::JSON_DEPTH).fold(text, |inner, _| json!([inner])),
            ttl_ms: None,
            refresh_on_read: false,
        };
        let get = GetDocument { namespace: put.namespace.clone(), key: put.key.clone() };
        gate.call(PutDocument(put)).await?;
        gate.call(get).await?;
        Ok(json!({}))
    });
    let limits = Limits { host_call_bytes: 15_000, ..Limits::default() };
    let memory = vec![MemoryRule { namespace: Vec::new(), access: MemoryAccess::ReadWrite }];
    let grants = Grants { limits, memory, ..Grants::default() };
    let world = World::with_sql(ONE, plugin, Arc::new(NoSql), grants);
    let refused = failure(&world.run(json!({})).await);
    assert_eq!(refused.code, code::INVALID, "{refused}");
}

#[tokio::test]
async fn a_node_with_endless_refused_events_ends_at_its_limit() {
    let refused = Arc::new(AtomicU32::new(0));
    let counted = refused.clone();
    let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| {
        let refused = counted.clone();
        async move {
            loop {
                let event = Emission::Custom { name: "no spaces".into(), data: json!(1) };
                match gate.emit(event).await {
                    Err(CallError::Failure(_)) => refused.fetch_add(1, Ordering::Relaxed),
                    ended => return ended.map(|()| json!({})),
                };
            }
        }
    });
    let limits = Limits { host_calls: 50, ..Limits::default() };
    let grants = Grants { limits, ..Grants::default() };
    let world = World::with_sql(ONE, plugin, Arc::new(NoSql), grants);
    let ended = world.run(json!({})).await;
    assert_eq!(failure(&ended).details.unwrap()["limit"], "host_calls");
    assert_eq!(refused.load(Ordering::Relaxed), 50);
}

#[tokio::test]
async fn the_log_has_no_gaps_and_has_the_events_of_the_guest() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        gate.emit(Emission::Custom { name: "seen".into(), data: json!({ "n": 1 }) }).await?;
        gate.emit(Emission::Progress { message: "half".into(), fraction: Some(0.5) }).await?;
        let fields = vec![("k".to_owned(), "\"v\"".to_owned())];
        gate.log(LogMessage { fields, ..LogMessage::new("warn", "careful") }).await?;
        Ok(json!({ "out": gate.settings()["color"] }))
    });
    let world = World::new(ONE, plugin);
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state, json!({ "out": "green" }));
    let events = world.events(&ended.run.thread).await;
    let sequence: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(sequence, (1..=events.len() as u64).collect::<Vec<_>>());
    let count =
        |matches: fn(&EventKind) -> bool| events.iter().filter(|e| matches(&e.kind)).count();
    assert_eq!(count(|kind| matches!(kind, EventKind::Custom(c) if c.name == "seen")), 1);
    assert_eq!(count(|kind| matches!(kind, EventKind::Progress(_))), 1);
    fn is_warning(log: &Log) -> bool {
        log.level == "warn" && log.fields == json!({ "k": "v" })
    }
    assert_eq!(count(|kind| matches!(kind, EventKind::Log(log) if is_warning(log))), 1);
}

#[tokio::test]
async fn an_invalid_event_name_is_a_failure_for_the_guest() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        gate.emit(Emission::Custom { name: "no spaces".into(), data: json!(1) }).await?;
        Ok(json!({}))
    });
    let ended = World::new(ONE, plugin).run(json!({})).await;
    assert_eq!(failure(&ended).code, code::INVALID);
}

#[tokio::test]
async fn a_deleted_thread_does_not_exist() {
    let world = World::new(ONE, calling("1"));
    let ended = world.run(json!({})).await;
    world.engine.delete_thread(&ended.run.thread).await.unwrap();
    assert!(world.engine.thread(&ended.run.thread).await.unwrap().is_none());
}

/// A store in which a run ends at the second read of its record.
struct Ending {
    below: Arc<dyn Store>,
    pending: OnceLock<RunRecord>,
    reads: AtomicU32,
}

#[async_trait]
impl Layer for Ending {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, pending: OnceLock::new(), reads: AtomicU32::new(0) }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn reading(&self, read: &'static str) -> Result<(), StoreError> {
        let Some(pending) = self.pending.get().filter(|_| read == "run") else { return Ok(()) };
        if self.reads.fetch_add(1, Ordering::SeqCst) != 1 {
            return Ok(());
        }
        let ended = RunRecord { status: RunStatus::Completed, ..pending.clone() };
        self.below.dequeue(&ended.id, Some(&ended)).await.map(drop)
    }
}

#[tokio::test]
async fn a_run_that_ends_during_its_cancellation_is_not_missing() {
    let store = Arc::new(Layered::<Ending>::over(Arc::new(InMemoryStore::new())));
    let world = World::with_store(ONE, calling("1"), store.clone());
    let thread = world.run(json!({})).await.run.thread;
    let pending = enqueue_undue(store.as_ref(), &thread, "a").await;
    let run = RunRef { thread, run: pending.id.clone() };
    store.pending.set(pending).unwrap();
    world.engine.cancel(&run).await.unwrap();
    let record = store.run(&run.run).await.unwrap().unwrap();
    assert_eq!(record.status, RunStatus::Completed);
    let failure = world.engine.cancel_run(&run, false, None).await.unwrap_err();
    assert_eq!(failure.code, code::NOT_FOUND);
}
