//! The table of executed tasks. Runs write it themselves.

use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Serialize, Value, params, random, sql,
};
use wattle_plugin::redact;

use crate::state::{Brief, SelectedTask, Turn};
use crate::{DATABASE, time};

const INSERT: &str = "INSERT INTO reasoning_task (id, session_id, turn_id, task_type, \
    ontology_code, resource_code, resource_name, status, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)";

const UPDATE: &str = "UPDATE reasoning_task SET status = $1, executor = $2, result_json = $3, \
    error = $4, updated_at = $5 WHERE id = $6";

const ABANDON: &str = "UPDATE reasoning_task SET status = 'failed', error = $1, updated_at = $2 \
    WHERE session_id = $3 AND turn_id = $4 AND status = 'running'";

const SELECT: &str = "SELECT id AS task_id, task_type, ontology_code, resource_code AS code, \
    resource_name AS name, status, executor, error, created_at, updated_at FROM reasoning_task \
    WHERE session_id = $1 AND turn_id = $2 ORDER BY created_at, id";

/// Kind of resource that a task executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskType {
    Capability,
    ObjectProperty,
}

impl TaskType {
    fn name(self) -> &'static str {
        match self {
            Self::Capability => "capability",
            Self::ObjectProperty => "object_property",
        }
    }
}

/// A task whose row has the status `running` until its result or its error is recorded.
pub(crate) struct RunningTask<'a> {
    pub(crate) id: String,
    task_type: TaskType,
    resource: &'a Brief,
}

impl<'a> RunningTask<'a> {
    /// Records the start of a task.
    pub(crate) fn begin(
        turn: &Turn,
        task_type: TaskType,
        ontology_code: &str,
        resource: &'a Brief,
    ) -> Result<Self, Failure> {
        let id = random::uuid();
        let row = params![
            &id,
            &turn.session_id,
            &turn.turn_id,
            task_type.name(),
            ontology_code,
            &resource.code,
            &resource.name,
            "running",
            time::now(),
        ];
        sql::database(DATABASE).execute(INSERT, row)?;
        Ok(Self { id, task_type, resource })
    }

    /// Records the result of the task.
    pub(crate) fn complete(&self, executor: &str, result: &Value) -> Result<(), Failure> {
        self.end("completed", Some(executor), Some(result.to_string()), None)
    }

    /// Records the error of the task, without the secrets that services repeat in their messages.
    pub(crate) fn fail(&self, error: &str) -> Result<(), Failure> {
        self.end("failed", None, None, Some(redact::text(error)))
    }

    fn end(
        &self,
        status: &str,
        executor: Option<&str>,
        result: Option<String>,
        error: Option<String>,
    ) -> Result<(), Failure> {
        let row = params![status, executor, result, error, time::now(), &self.id];
        sql::database(DATABASE).execute(UPDATE, row).map(|_| ())
    }

    /// Returns the task as a result shows it.
    pub(crate) fn selected(&self, status: &str) -> SelectedTask {
        SelectedTask {
            task_id: self.id.clone(),
            task_type: self.task_type.name().to_owned(),
            code: self.resource.code.clone(),
            name: self.resource.name.clone(),
            status: status.to_owned(),
        }
    }
}

/// Fails the tasks that are still running at the end of their run, because the run or its guest was
/// cancelled.
pub(crate) fn abandon(
    transaction: &sql::Transaction,
    session_id: &str,
    turn_id: &str,
) -> Result<(), Failure> {
    let row = params!["the run ended before the task", time::now(), session_id, turn_id];
    transaction.execute(ABANDON, row).map(|_| ())
}

/// A task as the endpoints show it.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct TaskView {
    task_id: String,
    task_type: String,
    ontology_code: String,
    code: String,
    name: String,
    status: String,
    executor: Option<String>,
    error: Option<String>,
    created_at: String,
    updated_at: String,
}

/// Returns the tasks of a turn, oldest first.
///
/// # Errors
///
/// `limit` if the host truncates them.
pub(crate) fn of_turn(session_id: &str, turn_id: &str) -> Result<Vec<TaskView>, Failure> {
    sql::database(DATABASE).query(SELECT, params![session_id, turn_id])?.whole()?.read_all()
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::sql;
    use wattle_plugin::testing::FakeHost;

    use super::of_turn;

    #[test]
    fn some_of_the_tasks_are_not_all() {
        let host = FakeHost::new()
            .sql(|_| Ok(sql::Rows { truncated: true, ..sql::Rows::default() }.into()));
        assert_eq!(host.run(|| of_turn("s", "t")).unwrap_err().code, "limit");
    }
}
