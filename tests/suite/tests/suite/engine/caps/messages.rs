//! The limits of log messages of a task and of a web handler.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::event::{EventKind, Log};
use wattle_graph::id::{AppName, PluginName, ThreadId};
use wattle_kit::log::Log as Lines;
use wattle_run::caller_id::CallerId;
use wattle_run::gate::{Gate, GuestEnv};
use wattle_run::grant::Grants;
use wattle_run::hostcall::emit::Emission;
use wattle_run::hostcall::log::LogMessage;
use wattle_run::hostcall::runs::{RunOutcome, RunService};
use wattle_run::limit;
use wattle_run::ports::Caller;
use wattle_run::stop_flag::StopFlag;
use wattle_suite::native::NativePlugin;
use wattle_suite::world::World;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

/// Messages of the maximum size that fit into the budget.
const FITTING: usize = limit::LOG_MESSAGES_BYTES as usize / limit::EVENT_BYTES;

/// Returns a message of the maximum size.
fn large() -> LogMessage {
    LogMessage::new("info", "x".repeat(limit::EVENT_BYTES - "info".len()))
}

/// Returns a plugin whose node logs `count` messages of the maximum size.
fn logging(count: usize) -> NativePlugin {
    NativePlugin::new("p", "1").node("work", move |_, gate| async move {
        for _ in 0..count {
            gate.log(large()).await?;
        }
        Ok(json!({ "out": "done" }))
    })
}

/// Returns the log messages of a thread.
async fn logged(world: &World, thread: &ThreadId) -> Vec<Log> {
    let events = world.events(thread).await.into_iter();
    let logs = events.filter_map(|event| match event.kind {
        EventKind::Log(log) => Some(log),
        _ => None,
    });
    logs.collect()
}

/// Returns the gate of a web handler.
fn handler(world: &World) -> Gate {
    let setting = GuestEnv {
        ports: Arc::new(world.engine.ports().clone()),
        caller: Caller {
            app: AppName::new("test").unwrap(),
            plugin: PluginName::new("p").unwrap(),
            tenant: None,
            owner: CallerId::default(),
        },
        grants: Arc::default(),
        app: Arc::new(wattle_suite::world::app(
            ONE,
            vec![(Arc::new(logging(0)), Grants::default())],
        )),
        cancel: StopFlag::default(),
        quotas: Arc::default(),
        schemas: Arc::default(),
    };
    Gate::for_web(setting, Arc::new(world.engine.clone()))
}

#[tokio::test]
async fn a_task_with_endless_log_messages_is_limited() {
    let world = World::new(ONE, logging(FITTING + 50));
    let ended = world.run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed, "the messages fail nothing");
    let logs = logged(&world, &ended.run.thread).await;
    assert_eq!(logs.len(), FITTING + 1);
    let last = logs.last().unwrap();
    assert_eq!(last.level, "warn");
    assert!(last.message.starts_with("further log messages are dropped"), "{}", last.message);
}

#[tokio::test]
async fn large_fields_are_not_parsed() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let numbers = format!("[{}0]", "0,".repeat(1 << 20));
        let fields = vec![("small".to_owned(), "[1]".to_owned()), ("numbers".to_owned(), numbers)];
        gate.log(LogMessage { fields, ..LogMessage::new("x".repeat(100_000), "long") }).await?;
        let fields = vec![("small".to_owned(), "[1]".to_owned())];
        gate.log(LogMessage { fields, ..LogMessage::new("info", "short") }).await?;
        Ok(Value::Null)
    });
    let world = World::new(ONE, plugin);
    let ended = world.run(json!({})).await;
    let logs = logged(&world, &ended.run.thread).await;
    assert!(logs[0].level.len() + logs[0].message.len() < limit::EVENT_BYTES + 100);
    assert!(logs[0].message.contains("[truncated: "), "{}", logs[0].message);
    assert_eq!(logs[0].fields, Value::Null);
    assert_eq!((logs[1].message.as_str(), &logs[1].fields), ("short", &json!({ "small": [1] })));
}

#[tokio::test]
async fn many_log_messages_reach_the_store_before_the_task_ends() {
    let buffered = limit::LOG_BUFFER_BYTES as usize / limit::EVENT_BYTES;
    let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| async move {
        for _ in 0..=buffered {
            gate.log(large()).await?;
        }
        std::future::pending().await
    });
    let world = World::new(ONE, plugin);
    let run = world.begin(json!({})).await.unwrap();
    let mut newest = world.engine.watch(&run.thread);
    while logged(&world, &run.thread).await.len() < buffered {
        newest.changed().await.unwrap();
    }
    world.engine.cancel(&run).await.unwrap();
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Cancelled);
}

#[tokio::test]
async fn a_web_handler_has_a_budget_of_log_messages() {
    let world = World::new(ONE, logging(0));
    let (lines, _guard) = Lines::start();
    let handler = handler(&world);
    for _ in 1..FITTING {
        handler.log(large()).await.unwrap();
    }
    // An event of a handler goes to the same log.
    let data = json!("x".repeat(limit::EVENT_BYTES - 2));
    for _ in 0..10 {
        let event = Emission::Custom { name: "seen".into(), data: data.clone() };
        handler.emit(event).await.unwrap();
        handler.log(LogMessage::new("error", "too late")).await.unwrap();
    }
    drop(handler);
    let lines = lines.lines();
    let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!((count("xxx"), count("event of a web handler"), count("too late")), (FITTING, 1, 0));
    assert_eq!(count("further log messages are dropped"), 1);
    let reported = lines.last().unwrap();
    assert!(reported.contains("were dropped") && reported.contains("dropped=19"), "{reported}");
}

#[tokio::test]
async fn log_messages_do_not_forge_lines_of_the_operators_log() {
    let world = World::new(ONE, logging(0));
    let (lines, _guard) = Lines::start();
    let handler = handler(&world);
    let fields = vec![("f".to_owned(), "\"\u{9b}2J\"".to_owned())];
    let forged = LogMessage::new("warn", "a\nERROR wattle: forged\u{1b}[31m\u{202e}");
    handler.log(LogMessage { fields, ..forged }).await.unwrap();
    let lines = lines.lines();
    let line = lines.iter().find(|line| line.contains("forged")).unwrap();
    assert!(line.contains(r"a\nERROR wattle: forged\u{1b}[31m\u{202e}"), "{line}");
    assert!(line.contains(r"\u{9b}2J") && !line.contains(char::is_control), "{line}");
}
