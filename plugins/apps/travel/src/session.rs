//! Sessions: one guide each, with its messages, steps and snapshot.
//!
//! A session is a thread of the host, with the same id. [`sync()`] reads the output of its runs
//! from the thread's event log whenever a session is read, so the tables are correct also after a
//! crash.

mod outcome;
pub(crate) mod snapshot;
pub(crate) mod step;
mod step_table;
pub(crate) mod stored_output;
mod sync;
mod table;
#[cfg(test)]
pub(crate) mod testing;

use serde::Deserializer;
use wattle_plugin::prelude::{Deserialize, Failure, JsonSchema, Serialize, clock};
use wattle_plugin::sql::Rows;

pub(crate) use self::snapshot::{Snapshot, StateView};
pub(crate) use self::step_table::{StepView, list as steps};
pub(crate) use self::sync::sync;
pub(crate) use self::table::{create, delete, find, list, lock, set_title};
use crate::session::step::Step;

/// Title of a session without another one.
pub(crate) const UNTITLED: &str = "Untitled Guide";

/// Maximum number of characters of a title. YouTube allows 100.
pub(crate) const TITLE_CHARS: usize = 200;

/// Tenant of requests that name none.
const DEFAULT_TENANT: &str = "default";

/// The status of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Status {
    /// No run has started.
    #[default]
    Idle,
    /// A run is active.
    Running,
    /// The last run ended without a remaining failure.
    Completed,
    /// The last run failed, or a failure remains.
    Error,
    /// The last run was cancelled.
    Cancelled,
}

impl Status {
    /// Returns the name in the database and in responses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Idle => "IDLE",
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Error => "ERROR",
            Self::Cancelled => "CANCELLED",
        }
    }
}

/// A session, as its row.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct Session {
    /// Also the id of its thread.
    pub(crate) id: String,
    pub(crate) tenant: String,
    pub(crate) title: String,
    pub(crate) status: Status,
    /// The tool that is running.
    pub(crate) current_step: Option<String>,
    /// The tool that failed last.
    pub(crate) failed_step: Option<String>,
    /// Error message of the last failure.
    pub(crate) last_error: Option<String>,
    /// The newest run.
    pub(crate) run_id: Option<String>,
    /// Sequence number before the first event of the active run.
    run_cursor: u64,
    /// Sequence number of the last event that is in the tables.
    event_cursor: u64,
    /// Start of the first run.
    pub(crate) started_ms: Option<i64>,
    /// End of the last run, if it completed.
    pub(crate) completed_ms: Option<i64>,
    /// End of the last run, if it was cancelled.
    pub(crate) cancelled_ms: Option<i64>,
    pub(crate) created_ms: i64,
    pub(crate) updated_ms: i64,
}

/// A session as the endpoints show it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionView {
    id: String,
    title: String,
    status: Status,
    /// The tool that is running.
    current_step: Option<String>,
    /// The tool that failed last.
    failed_step: Option<String>,
    /// Error message of the last failure.
    last_error: Option<String>,
    /// The newest run.
    run_id: Option<String>,
    /// Start of the first run.
    started_at: Option<String>,
    completed_at: Option<String>,
    cancelled_at: Option<String>,
    created_at: String,
    updated_at: String,
    /// The time for a summary: the start of the first run, or else the creation.
    final_time: String,
}

impl Session {
    /// Returns true if a run is active.
    pub(crate) fn is_running(&self) -> bool {
        self.status == Status::Running
    }

    fn begin(&mut self, run: &str, at_ms: i64) {
        self.status = Status::Running;
        self.run_id = Some(run.to_owned());
        self.started_ms.get_or_insert(at_ms);
        (self.current_step, self.failed_step, self.last_error) = (None, None, None);
        (self.completed_ms, self.cancelled_ms) = (None, None);
    }

    fn complete(&mut self, at_ms: i64) {
        self.status = Status::Completed;
        self.completed_ms = Some(at_ms);
        (self.failed_step, self.last_error) = (None, None);
    }

    /// Records a failed step.
    fn fail(&mut self, step: &Step) {
        self.failed_step = Some(step.tool.clone());
        self.last_error.clone_from(&step.error);
    }

    /// Returns the time for a summary: the start of the first run, or else the creation of the
    /// session.
    fn final_time(&self) -> String {
        clock::utc(self.started_ms.unwrap_or(self.created_ms))
    }

    /// Returns the session as the endpoints show it.
    pub(crate) fn view(&self) -> SessionView {
        SessionView {
            id: self.id.clone(),
            title: self.title.clone(),
            status: self.status,
            current_step: self.current_step.clone(),
            failed_step: self.failed_step.clone(),
            last_error: self.last_error.clone(),
            run_id: self.run_id.clone(),
            started_at: self.started_ms.map(clock::utc),
            completed_at: self.completed_ms.map(clock::utc),
            cancelled_at: self.cancelled_ms.map(clock::utc),
            created_at: clock::utc(self.created_ms),
            updated_at: clock::utc(self.updated_ms),
            final_time: self.final_time(),
        }
    }
}

/// Returns the tenant of a request.
pub(crate) fn owner(tenant: Option<&str>) -> &str {
    tenant.unwrap_or(DEFAULT_TENANT)
}

/// Removes NUL characters, which PostgreSQL does not store in texts.
pub(crate) fn plain(text: &str) -> String {
    text.replace('\0', "")
}

/// Returns rows that are complete. Truncated rows are an error, because they would be taken for the
/// whole result.
pub(crate) fn whole(rows: Rows) -> Result<Rows, Failure> {
    rows.whole().map_err(|_| {
        let message =
            "the database has more than it gives at once; begin a new session, or ask for fewer";
        Failure::internal(message)
    })
}

/// Deserializes a time in milliseconds since 1970 as the text that the endpoints show.
pub(crate) fn utc<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    i64::deserialize(deserializer).map(clock::utc)
}

/// Deserializes a time that may be absent, as [`utc`].
fn utc_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<i64>::deserialize(deserializer)?.map(clock::utc))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json};

    use super::Session;

    fn view(session: &Session) -> Value {
        json!(session.view())
    }

    #[test]
    fn s3_68_the_final_time_is_that_of_the_first_run_or_of_the_creation() {
        let mut session = Session { created_ms: 1_000, ..Session::default() };
        assert_eq!(view(&session)["finalTime"], "1970-01-01T00:00:01.000Z");
        session.begin("run-1", 5_000);
        session.complete(9_000);
        session.begin("run-2", 60_000);
        let view = view(&session);
        assert_eq!(view["finalTime"], "1970-01-01T00:00:05.000Z");
        assert_eq!(view["finalTime"], view["startedAt"]);
    }
}
