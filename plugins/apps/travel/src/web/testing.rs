//! Test support for the endpoints: a database with two sessions.

use wattle_plugin::params;
use wattle_plugin::sql::{Rows, Value};
use wattle_plugin::testing::{FakeHost, SqlAnswer, Statement};

/// A session without a run.
pub(super) const IDLE: &str = "idle";

/// A session with an active run, and a page of an earlier run.
pub(super) const RUNNING: &str = "running";

/// The active run of that session.
pub(super) const RUN: &str = "run-7";

/// Returns a host with both sessions. Statements that write have no effect.
pub(super) fn sessions() -> FakeHost {
    FakeHost::new().sql(|statement| Ok(answer(statement)))
}

fn answer(statement: &Statement) -> SqlAnswer {
    let id = match statement.parameters.first() {
        Some(Value::Text(id)) => id.as_str(),
        _ => "",
    };
    let text = &statement.text;
    if !text.starts_with("SELECT") {
        return SqlAnswer::affected(1);
    }
    if text.contains("FROM sessions WHERE id") {
        return rows(&[IDLE, RUNNING].map(|known| known == id).map(|is_it| is_it.then_some(id)));
    }
    if text.contains("FROM sessions WHERE tenant") {
        return rows(&[Some(IDLE)]);
    }
    if text.contains("FROM session_state") && id == RUNNING {
        return page();
    }
    SqlAnswer::default()
}

fn rows(ids: &[Option<&str>]) -> SqlAnswer {
    let none = None::<&str>;
    let row = |id: &str| {
        let (status, run) = if id == RUNNING { ("RUNNING", Some(RUN)) } else { ("IDLE", none) };
        params![id, "default", "Tokyo", status, none, none, none, run, 0, 0, none, none, none, 1, 1]
    };
    let columns = "id tenant title status current_step failed_step last_error run_id run_cursor \
        event_cursor started_ms completed_ms cancelled_ms created_ms updated_ms";
    let rows = ids.iter().copied().flatten().map(row).collect();
    Rows::new(columns.split(' '), rows).into()
}

fn page() -> SqlAnswer {
    let columns = "context blocks spot_blocks tool_outputs html page_video version preview_path \
        updated_ms";
    let (none, html) = (None::<&str>, "<!doctype html>");
    let row = params![none, none, none, none, html, none, 2, "/api/guide/running", 5];
    Rows::new(columns.split(' '), vec![row]).into()
}
