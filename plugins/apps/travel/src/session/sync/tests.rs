//! Event logs, and what is written to the tables.

use wattle_plugin::prelude::{Failure, json};
use wattle_plugin::sql::{Rows, Value};
use wattle_plugin::testing::{FakeHost, SqlAnswer, Statement};

use super::sync;
use crate::session::testing::{Log, good};
use crate::session::{Session, Status};

/// Returns a host with a database whose cursor can be advanced.
fn host(log: &Log) -> FakeHost {
    let answer = |statement: &Statement| -> Result<SqlAnswer, Failure> {
        if statement.text.starts_with("UPDATE sessions SET event_cursor") {
            return Ok(SqlAnswer::affected(1));
        }
        if statement.text.contains("FROM sessions") {
            return Err(Failure::not_found("looked again"));
        }
        Ok(Rows::default().into())
    };
    let host = FakeHost::new().sql(answer);
    log.events.iter().fold(host, |host, event| host.event("s", event.clone()))
}

fn session(event_cursor: u64, run_cursor: u64) -> Session {
    Session { id: "s".to_owned(), event_cursor, run_cursor, ..Session::default() }
}

fn log() -> Log {
    let mut log = Log::of_run("r");
    log.answers("Let me see.", &[("c", "crawl_youtube_videos", json!({}))]);
    log.calls("crawl_youtube_videos", 0);
    let updates = json!([{"channel": "videos", "value": [{"id": "v"}]}]);
    let output = json!({"videos": [{"title": "Tokyo"}]});
    log.returns("crawl_youtube_videos", 0, good(output, updates));
    log
}

/// Returns the statements that write to a table.
fn writes(host: &FakeHost, table: &str) -> Vec<Statement> {
    let start = format!("INSERT INTO {table}");
    host.statements().into_iter().filter(|it| it.text.starts_with(&start)).collect()
}

#[test]
fn new_events_are_written_in_one_transaction_with_the_cursor() {
    let mut log = log();
    log.ends("completed");
    let host = host(&log);
    let looked = host.run(|| sync(session(0, 0))).unwrap_err();
    assert_eq!(looked.message, "looked again", "at what stands now");
    let statements = host.statements();
    assert!(statements.iter().all(|it| it.in_transaction || it.text.starts_with("SELECT")));
    assert_eq!(statements[1].parameters[0], Value::Integer(7), "the last event");
    assert_eq!(statements[2].parameters[0], Value::Text("COMPLETED".to_owned()));
    assert_eq!(writes(&host, "session_steps").len(), 1);
    assert_eq!(writes(&host, "session_state").len(), 1);
    let said = writes(&host, "chat_messages").remove(0);
    assert_eq!(said.parameters[1], Value::Text("msg_r".to_owned()));
    let named = statements.iter().find(|it| it.text.contains("title_source <> 'user'")).unwrap();
    assert_eq!(named.parameters[0], Value::Text("Tokyo".to_owned()));
}

#[test]
fn s3_51_written_events_are_not_written_again() {
    let mut log = log();
    log.ends("completed");
    let host = host(&log);
    // The step ended with the sixth event, the run began with the first.
    host.run(|| sync(session(6, 0))).unwrap_err();
    assert!(writes(&host, "session_steps").is_empty());
    assert!(writes(&host, "session_state").is_empty());
    assert_eq!(writes(&host, "chat_messages").len(), 1, "made from the whole run");
}

#[test]
fn text_deltas_cause_no_write() {
    let mut log = Log::of_run("r");
    log.says("Hel");
    log.says("lo");
    let host = host(&log);
    let known = Session { status: Status::Running, ..session(1, 0) };
    assert_eq!(host.run(|| sync(known.clone())).unwrap(), known);
    assert!(host.statements().is_empty());
}

#[test]
fn deleted_thread_ends_the_run_of_its_session() {
    let host = host(&Log::default());
    host.run(|| sync(session(7, 0))).unwrap_err();
    let forgot = host.statements().remove(2);
    assert!(forgot.text.contains("run_cursor = 0"), "{forgot:?}");
    assert!(forgot.text.contains("'RUNNING' THEN 'CANCELLED'"), "{forgot:?}");
}

#[test]
fn stored_text_has_no_nul_character() {
    let mut log = Log::of_run("r");
    log.answers("", &[("c\0", "search_image", json!({}))]);
    log.calls("search_image", 0);
    let host = host(&log);
    host.run(|| sync(session(0, 0))).unwrap_err();
    assert_eq!(writes(&host, "session_steps")[0].parameters[5], Value::Text("c".to_owned()));
}
