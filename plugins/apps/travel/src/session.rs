//! Sessions: one guide each, with its messages, steps and snapshot.
//!
//! A session is a thread of the host, with the same id. What its runs did is read from the
//! thread's event log by [`sync()`], so the tables are right again whenever somebody looks, also
//! after a crash.

pub(crate) mod log;
mod newest;
mod outcome;
pub(crate) mod snapshot;
pub(crate) mod step;
mod step_table;
pub(crate) mod stored;
mod sync;
mod table;
#[cfg(test)]
pub(crate) mod testing;

use wattle_plugin::prelude::{Failure, Value, json};
use wattle_plugin::sql::Rows;

pub(crate) use self::newest::Newest;
pub(crate) use self::snapshot::Snapshot;
pub(crate) use self::step_table::list as steps;
pub(crate) use self::sync::sync;
pub(crate) use self::table::{create, delete, find, list, lock, set_title};
use crate::session::step::Step;
use crate::time;

/// The title of a session that has no other.
pub(crate) const UNTITLED: &str = "Untitled Guide";

/// Characters of a title. YouTube allows 100.
pub(crate) const TITLE_CHARS: usize = 200;

/// The tenant of requests that name none.
const DEFAULT_TENANT: &str = "default";

/// How a session stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Status {
    /// Nothing has run.
    #[default]
    Idle,
    /// A run is under way.
    Running,
    /// The last run ended well.
    Completed,
    /// Something was left undone.
    Error,
    /// The last run was stopped.
    Cancelled,
}

impl Status {
    const ALL: [Self; 5] =
        [Self::Idle, Self::Running, Self::Completed, Self::Error, Self::Cancelled];

    /// As the database and the endpoints have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Idle => "IDLE",
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Error => "ERROR",
            Self::Cancelled => "CANCELLED",
        }
    }

    fn of(name: &str) -> Self {
        Self::ALL.into_iter().find(|status| status.name() == name).unwrap_or_default()
    }
}

/// One session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Session {
    /// Also the id of its thread.
    pub(crate) id: String,
    /// Whose it is.
    pub(crate) tenant: String,
    /// What it is called.
    pub(crate) title: String,
    /// How it stands.
    pub(crate) status: Status,
    /// The tool that is at work.
    pub(crate) current_step: Option<String>,
    /// The tool that failed last.
    pub(crate) failed_step: Option<String>,
    /// Why.
    pub(crate) last_error: Option<String>,
    /// The newest run.
    pub(crate) run_id: Option<String>,
    /// The event before the run that is under way.
    run_cursor: u64,
    /// The last event that is in the tables.
    event_cursor: u64,
    /// When the first run began.
    pub(crate) started_ms: Option<i64>,
    /// When the last run ended well.
    pub(crate) completed_ms: Option<i64>,
    /// When the last run was stopped.
    pub(crate) cancelled_ms: Option<i64>,
    /// When it was made.
    pub(crate) created_ms: i64,
    /// When it last changed.
    pub(crate) updated_ms: i64,
}

impl Session {
    /// Whether a run is under way.
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

    /// A step did not work.
    fn fail(&mut self, step: &Step) {
        self.failed_step = Some(step.tool.clone());
        self.last_error.clone_from(&step.error);
    }

    /// The time that a summary shows: when the first run began, before that when it was made.
    fn final_time(&self) -> Result<String, Failure> {
        time::text(self.started_ms.unwrap_or(self.created_ms))
    }

    /// The session as the endpoints show it.
    pub(crate) fn view(&self) -> Result<Value, Failure> {
        Ok(json!({
            "id": self.id, "title": self.title, "status": self.status.name(),
            "currentStep": self.current_step, "failedStep": self.failed_step,
            "lastError": self.last_error, "runId": self.run_id,
            "startedAt": at(self.started_ms)?, "completedAt": at(self.completed_ms)?,
            "cancelledAt": at(self.cancelled_ms)?, "createdAt": time::text(self.created_ms)?,
            "updatedAt": time::text(self.updated_ms)?, "finalTime": self.final_time()?,
        }))
    }
}

/// A time that may not have come yet.
pub(crate) fn at(unix_ms: Option<i64>) -> Result<Option<String>, Failure> {
    unix_ms.map(time::text).transpose()
}

/// The tenant of a request.
pub(crate) fn owner(tenant: Option<&str>) -> &str {
    tenant.unwrap_or(DEFAULT_TENANT)
}

/// A text that every database takes: PostgreSQL has no NUL in texts.
pub(crate) fn plain(text: &str) -> String {
    text.replace('\0', "")
}

/// Rows that are all there: half of them would be taken for the whole.
pub(crate) fn whole(rows: Rows) -> Result<Rows, Failure> {
    if rows.truncated {
        let message =
            "the database has more than it gives at once; begin a new session, or ask for fewer";
        return Err(Failure::internal(message));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::Value;
    use wattle_plugin::testing::FakeHost;

    use super::Session;

    fn view(session: &Session) -> Value {
        FakeHost::new().run(|| session.view()).unwrap()
    }

    #[test]
    fn s3_68_the_final_time_is_that_of_the_first_run_or_of_the_making() {
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
