//! SQL transactions under crashes and retries, on a real SQLite file.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tempfile::TempDir;
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_run::caller_id::CallerId;
use wattle_run::engine::threads::NewThread;
use wattle_run::gate::unwind::CallError;
use wattle_run::grant::{Grants, SqlAccess};
use wattle_run::hostcall::runs::{OnFailure, RunOutcome, RunService};
use wattle_run::hostcall::sql::SqlValue;
use wattle_run::limit::{Limits, SqlLimits};
use wattle_run::ports::Sql;
use wattle_sql::{DatabaseConfig, Databases};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{Odd, OddSql, get, unavailable};
use wattle_suite::world::{World, failure};

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
retry = { attempts = 2, initial = "1ms" }
"#;

async fn database(folder: &TempDir) -> Arc<Databases> {
    let config = DatabaseConfig::new("sqlite:test.db");
    let databases = Databases::open(BTreeMap::from([("db".to_owned(), config)]), folder.path())
        .await
        .expect("the database opens");
    let mut transaction = databases
        .begin(CallerId::default(), "db", &SqlLimits::default())
        .await
        .expect("a transaction");
    transaction
        .execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)", &[])
        .await
        .expect("a table");
    transaction.commit(None).await.expect("a commit");
    Arc::new(databases)
}

fn world(plugin: NativePlugin, sql: Arc<Databases>, access: SqlAccess) -> World {
    let grants = Grants { sql: [("db".to_owned(), access.into())].into(), ..Grants::default() };
    World::with_sql(ONE, plugin, sql, grants)
}

fn may_write() -> Grants {
    let sql = [("db".to_owned(), SqlAccess::ReadWrite.into())].into();
    Grants { sql, ..Grants::default() }
}

fn text(value: &str) -> SqlValue {
    SqlValue::Text(value.to_owned())
}

async fn names(sql: &Databases) -> Vec<SqlValue> {
    let limits = SqlLimits::default();
    let query = "SELECT name FROM item ORDER BY id";
    let rule = SqlAccess::ReadOnly.into();
    let rows =
        sql.query(CallerId::default(), "db", &rule, &limits, query, &[]).await.expect("rows");
    rows.rows.into_iter().flatten().collect()
}

/// Returns a plugin whose node inserts `one`, then waits for a slow service.
fn writing_then_waiting() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let mut transaction = gate.begin("db").await?;
        let insert = "INSERT INTO item (name) VALUES ($1) RETURNING id";
        let executed = transaction.execute(insert, vec![SqlValue::Text("one".into())]).await?;
        transaction.commit().await?;
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "out": executed.returned.rows }))
    })
}

#[tokio::test]
async fn a_committed_transaction_is_not_repeated_after_a_crash() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let mut world = world(writing_then_waiting(), sql.clone(), SqlAccess::ReadWrite);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    world.engine.recover().await;
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["out"], json!([[{ "integer": 1 }]]));
    assert_eq!(names(&sql).await, [SqlValue::Text("one".into())]);
}

#[tokio::test]
async fn a_commit_without_a_recorded_result_is_found_by_its_marker() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let losing = Arc::new(OddSql::new(sql.clone(), Odd::Lost));
    let mut world = World::with_sql(ONE, writing_then_waiting(), losing.clone(), may_write());
    let run = world.begin(json!({})).await.unwrap();
    losing.lost().await;
    world.crash().await;
    world.engine.recover().await;
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.state["out"], json!([[{ "integer": 1 }]]), "from the commit marker");
    assert_eq!(names(&sql).await.len(), 1);
}

#[tokio::test]
async fn rollbacks_of_a_failed_attempt_are_not_replayed_after_a_crash() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let tried = Arc::new(AtomicBool::new(false));
    let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| {
        let tried = tried.clone();
        async move {
            if !tried.swap(true, Ordering::SeqCst) {
                for _ in 0..2 {
                    gate.begin("db").await?.rollback().await?;
                }
                return Err(unavailable().into());
            }
            let mut transaction = gate.begin("db").await?;
            transaction.execute("INSERT INTO item (name) VALUES ('one')", Vec::new()).await?;
            transaction.commit().await?;
            gate.call(get("https://example.com/slow")).await?;
            Ok(json!({ "out": "done" }))
        }
    });
    let mut world = world(plugin, sql.clone(), SqlAccess::ReadWrite);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    world.engine.recover().await;
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed, "the rollback is not part of this attempt");
    assert_eq!(names(&sql).await, [text("one")]);
}

#[tokio::test]
async fn a_transaction_that_was_open_at_a_crash_runs_once() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let mut transaction = gate.begin("db").await?;
        let insert = "INSERT INTO item (name) VALUES ('one')";
        transaction.execute(insert, Vec::new()).await?;
        gate.call(get("https://example.com/slow")).await?;
        transaction.commit().await?;
        Ok(json!({ "out": "done" }))
    });
    let mut world = world(plugin, sql.clone(), SqlAccess::ReadWrite);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    assert!(names(&sql).await.is_empty(), "not committed yet");
    world.crash().await;
    world.engine.recover().await;
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
    assert_eq!(names(&sql).await.len(), 1);
}

#[tokio::test]
async fn a_failed_statement_rolls_its_transaction_back() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let insert = |name: &str| format!("INSERT INTO item (name) VALUES ('{name}')");
        let mut transaction = gate.begin("db").await?;
        transaction.execute(&insert("one"), Vec::new()).await?;
        let second = transaction.execute(&insert("one"), Vec::new()).await;
        drop(transaction);
        let Err(wattle_run::gate::unwind::CallError::Failure(failure)) = second else {
            return Ok(json!({ "out": "no conflict" }));
        };
        gate.execute("db", &insert("two"), Vec::new()).await?;
        Ok(json!({ "out": failure.code }))
    });
    let world = world(plugin, sql.clone(), SqlAccess::ReadWrite);
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state["out"], code::CONFLICT);
    assert_eq!(names(&sql).await, [SqlValue::Text("two".into())]);
}

#[tokio::test]
async fn a_retry_after_a_commit_does_not_commit_again() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let world = world(writing_then_waiting(), sql.clone(), SqlAccess::ReadWrite);
    world.net.fail_next(unavailable());
    assert_eq!(world.run(json!({})).await.outcome, RunOutcome::Completed);
    assert_eq!((names(&sql).await.len(), world.net.calls()), (1, 2));
}

#[tokio::test]
async fn a_read_only_grant_denies_transactions() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let world = world(writing_then_waiting(), sql.clone(), SqlAccess::ReadOnly);
    let denied = failure(&world.run(json!({})).await);
    assert_eq!(denied.code, code::DENIED);
    assert!(denied.message.contains("read-write"), "{denied}");
    assert!(names(&sql).await.is_empty());
}

#[tokio::test]
async fn only_the_failed_calls_of_a_batch_are_repeated() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let first_attempt = Arc::new(AtomicBool::new(true));
    let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| {
        let first_attempt = first_attempt.clone();
        async move {
            let calls = (0..3).map(|n| Ok(get(&format!("https://example.com/{n}")))).collect();
            let answers = gate.call_all(calls).await?;
            let failed = answers.iter().find_map(|answer| answer.as_ref().err().cloned());
            assert_eq!(failed.is_some(), first_attempt.swap(false, Ordering::SeqCst));
            match failed {
                Some(failure) => Err(failure.into()),
                None => Ok(json!({ "out": answers.len() })),
            }
        }
    });
    let world = world(plugin, sql, SqlAccess::ReadOnly);
    world.net.fail_next(unavailable());
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state["out"], 3);
    assert_eq!(world.net.calls(), 4, "three calls, and the failed one again");
}

#[tokio::test]
async fn a_reopened_interrupt_leaves_no_partial_rows() {
    const ASK: &str = r#"
[graphs.ask]
entry = "ask"
[graphs.ask.channels.name]
[graphs.ask.channels.out]
[graphs.ask.nodes.ask]
plugin = "p"
[graphs.ask.nodes.store]
plugin = "p"
[[graphs.ask.edges]]
from = "ask"
to = "store"
"#;
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let plugin = NativePlugin::new("p", "1")
        .node("ask", |_, gate| async move {
            let payload = json!("which names?");
            let ask = wattle_run::hostcall::interrupt::InterruptRequest {
                payload,
                response_schema: None,
            };
            Ok(json!({ "name": gate.ask(ask).await? }))
        })
        .node("store", |call, gate| async move {
            let mut transaction = gate.begin("db").await?;
            for name in call.input.get("name").as_array().into_iter().flatten() {
                let name = SqlValue::Text(name.as_str().unwrap_or_default().into());
                transaction.execute("INSERT INTO item (name) VALUES ($1)", vec![name]).await?;
            }
            transaction.commit().await?;
            Ok(json!({ "out": "stored" }))
        });
    let world = World::with_sql(ASK, plugin, sql.clone(), may_write());
    let thread = world.run(json!({})).await.run.thread;
    let twice = [("", json!(["a", "b", "a"]))];
    let failed = world.resume(&thread, &twice, OnFailure::Reopen).await.unwrap();
    assert_eq!(failure(&failed).code, code::CONFLICT);
    assert!(names(&sql).await.is_empty());
    let ended = world.resume(&thread, &[("", json!(["a", "b"]))], OnFailure::Reopen).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(names(&sql).await.len(), 2);
}

const INSERT: &str = "INSERT INTO item (name) VALUES ($1) RETURNING id";

/// Returns a plugin whose node inserts the name of its input.
fn writing() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |call, gate| async move {
        let name = text(call.input.get("name").as_str().unwrap_or_default());
        let executed = gate.execute("db", INSERT, vec![name]).await?;
        Ok(json!({ "out": executed.returned.rows }))
    })
}

const NAMED: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.name]
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

#[tokio::test]
async fn a_transaction_after_a_reopened_interrupt_is_executed_again() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let ask = wattle_run::hostcall::interrupt::InterruptRequest {
            payload: json!("?"),
            response_schema: None,
        };
        let name = gate.ask(ask).await?;
        let name = text(name.as_str().unwrap_or_default());
        let executed = gate.execute("db", INSERT, vec![name]).await?;
        gate.call(get("https://example.com/tell")).await?;
        Ok(json!({ "out": executed.returned.rows }))
    });
    let world = World::with_sql(NAMED, plugin, sql.clone(), may_write());
    let thread = world.run(json!({})).await.run.thread;
    for name in ["first", "second"] {
        world.net.fail_next(unavailable());
        let failed = world.resume(&thread, &[("", json!(name))], OnFailure::Reopen).await.unwrap();
        assert_eq!(failure(&failed).code, code::UNAVAILABLE, "{:?}", failed.outcome);
    }
    let ended = world.resume(&thread, &[("", json!("third"))], OnFailure::Reopen).await.unwrap();
    assert_eq!(ended.state["out"], json!([[{ "integer": 3 }]]));
    assert_eq!(names(&sql).await, ["first", "second", "third"].map(text));
}

#[tokio::test]
async fn a_copied_thread_has_separate_transactions() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let world = World::with_sql(NAMED, writing(), sql.clone(), may_write());
    let first = world.run(json!({ "name": "before" })).await.run.thread;
    let copy = ThreadId::new("copy").unwrap();
    world.engine.copy_thread(&first, Some(copy.clone())).await.unwrap();
    for (number, thread) in (2..).zip([&first, &copy]) {
        let input = json!({ "name": thread.as_str() });
        let run = world.begin_on(Some(thread), input).await.unwrap();
        let ended = world.engine.wait(&run).await.unwrap();
        assert_eq!(ended.state["out"], json!([[{ "integer": number }]]));
    }
    assert_eq!(names(&sql).await, ["before", first.as_str(), "copy"].map(text));
}

#[tokio::test]
async fn a_thread_under_the_id_of_a_deleted_one_has_separate_transactions() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let world = World::with_sql(NAMED, writing(), sql.clone(), may_write());
    let thread = ThreadId::new("again").unwrap();
    for name in ["first", "second"] {
        let run = world.begin_on(Some(&thread), json!({ "name": name })).await.unwrap();
        assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
        world.engine.delete_thread(&thread).await.unwrap();
    }
    assert_eq!(names(&sql).await, ["first", "second"].map(text));
}

#[tokio::test]
async fn a_copy_under_the_id_of_a_deleted_one_has_separate_transactions() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let world = World::with_sql(NAMED, writing(), sql.clone(), may_write());
    // Copies have the time of creation of their original, which has no run.
    let original = world.engine.create_thread(NewThread::default()).await.unwrap().id;
    let copy = ThreadId::new("again").unwrap();
    for name in ["first", "second"] {
        world.engine.copy_thread(&original, Some(copy.clone())).await.unwrap();
        let run = world.begin_on(Some(&copy), json!({ "name": name })).await.unwrap();
        assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
        world.engine.delete_thread(&copy).await.unwrap();
    }
    assert_eq!(names(&sql).await, ["first", "second"].map(text));
}

#[tokio::test]
async fn a_late_commit_of_an_abandoned_attempt_counts_once() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let late = Arc::new(OddSql::new(sql.clone(), Odd::Late));
    // The timeout is long enough for the second attempt.
    let graph = NAMED.replace(
        "plugin = \"p\"",
        "plugin = \"p\"\ntimeout = \"2s\"\nretry = { attempts = 2, initial = \"1ms\" }",
    );
    let world = World::with_sql(&graph, writing(), late, may_write());
    let ended = world.run(json!({ "name": "once" })).await;
    assert_eq!(ended.state["out"], json!([[{ "integer": 1 }]]), "{:?}", ended.outcome);
    assert_eq!(names(&sql).await, [text("once")]);
}

#[tokio::test]
async fn a_re_executed_node_replays_the_failure_of_a_transaction_to_begin() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let away = Arc::new(OddSql::new(sql.clone(), Odd::Away));
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let written = gate.execute("db", INSERT, vec![text("one")]).await;
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "out": written.is_ok() }))
    });
    let mut world = World::with_sql(NAMED, plugin, away, may_write());
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    world.engine.recover().await;
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.state["out"], json!(false), "{:?}", ended.outcome);
    assert!(names(&sql).await.is_empty());
}

#[tokio::test]
async fn a_re_executed_node_that_runs_fewer_statements_diverges() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let first = Arc::new(AtomicBool::new(true));
    let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| {
        let first = first.clone();
        async move {
            let mut transaction = gate.begin("db").await?;
            transaction.execute(INSERT, vec![text("one")]).await?;
            if first.swap(false, Ordering::SeqCst) {
                transaction.execute(INSERT, vec![text("two")]).await?;
            }
            transaction.commit().await?;
            gate.call(get("https://example.com/slow")).await?;
            Ok(json!({ "out": "done" }))
        }
    });
    let mut world = World::with_sql(NAMED, plugin, sql.clone(), may_write());
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    world.engine.recover().await;
    let failed = failure(&world.engine.wait(&run).await.unwrap());
    assert_eq!(failed.code, code::DIVERGENCE, "{failed}");
    assert_eq!(names(&sql).await.len(), 2);
}

/// Bytes of statements count like those of other calls, even if the journal has the results.
#[tokio::test]
async fn bytes_of_statements_count_towards_the_limit_of_host_calls() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let mut transaction = gate.begin("db").await?;
        loop {
            transaction.query("SELECT $1", vec![text(&"x".repeat(100))]).await?;
        }
    });
    let limits = Limits { host_call_bytes: 10_000, ..Limits::default() };
    let world = World::with_sql(ONE, plugin, sql, Grants { limits, ..may_write() });
    let details = failure(&world.run(json!({})).await).details.unwrap();
    assert_eq!(
        (&details["limit"], &details["allowed"]),
        (&json!("host_call_bytes"), &json!(10_000))
    );
}

/// A transaction refuses all statements after one that failed.
#[tokio::test]
async fn statements_of_a_transaction_count_towards_the_limit_of_host_calls() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    for statement in ["SELECT 1", "SELECT missing"] {
        let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| async move {
            let mut transaction = gate.begin("db").await?;
            for _ in 0..100 {
                let ended = transaction.query(statement, Vec::new()).await;
                if let Err(CallError::Unwind(unwind)) = ended {
                    return Err(CallError::Unwind(unwind));
                }
            }
            Ok(json!({ "out": "done" }))
        });
        let limits = Limits { host_calls: 50, ..Limits::default() };
        let world = World::with_sql(ONE, plugin, sql.clone(), Grants { limits, ..may_write() });
        let details = failure(&world.run(json!({})).await).details.unwrap();
        assert_eq!(details["limit"], "host_calls", "{statement}");
    }
}

#[tokio::test]
async fn a_statement_in_a_transaction_of_its_own_counts_as_one_call() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        for _ in 0..10 {
            gate.execute("db", "DELETE FROM item", Vec::new()).await?;
        }
        Ok(json!({ "out": "done" }))
    });
    let limits = Limits { host_calls: 10, ..Limits::default() };
    let world = World::with_sql(ONE, plugin, sql, Grants { limits, ..may_write() });
    assert_eq!(world.run(json!({})).await.outcome, RunOutcome::Completed);
}

#[tokio::test]
async fn a_failed_call_inside_of_a_transaction_repeats_call_and_transaction() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let mut transaction = gate.begin("db").await?;
        transaction.execute(INSERT, vec![text("one")]).await?;
        gate.call(get("https://example.com/between")).await?;
        transaction.commit().await?;
        Ok(json!({ "out": "done" }))
    });
    let world = world(plugin, sql.clone(), SqlAccess::ReadWrite);
    world.net.fail_next(unavailable());
    let ended = world.run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!((names(&sql).await.len(), world.net.calls()), (1, 2));
}

#[tokio::test]
async fn a_transaction_with_an_interrupt_restarts_with_the_answer() {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let mut transaction = gate.begin("db").await?;
        transaction.execute(INSERT, vec![text("one")]).await?;
        let ask = wattle_run::hostcall::interrupt::InterruptRequest {
            payload: json!("?"),
            response_schema: None,
        };
        let name = gate.ask(ask).await?;
        let name = text(name.as_str().unwrap_or_default());
        transaction.execute(INSERT, vec![name]).await?;
        transaction.commit().await?;
        Ok(json!({ "out": "done" }))
    });
    let world = world(plugin, sql.clone(), SqlAccess::ReadWrite);
    let thread = world.run(json!({})).await.run.thread;
    assert!(names(&sql).await.is_empty());
    let ended = world.answer(&thread, json!("two")).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(names(&sql).await, ["one", "two"].map(text));
}
