//! Ended runs and threads.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::failure::{Failure, code};
use crate::json::{self, Extra};
use crate::runs::RunRef;

/// Status of a thread with an active run.
const RUNNING: &str = "running";

/// Status of a thread with pending interrupts, or at a breakpoint.
const INTERRUPTED: &str = "interrupted";

/// A pending interrupt.
#[derive(Debug, Clone, PartialEq)]
pub struct Interrupt {
    /// Id of the interrupt.
    pub id: String,
    /// Node that raised the interrupt.
    pub node: String,
    /// Payload to show to the person.
    pub payload: Value,
    /// JSON Schema for the answer.
    pub response_schema: Option<Value>,
    /// Time at which the interrupt was raised, in milliseconds since 1970.
    pub asked_ms: i64,
    /// Time at which the thread expires if the interrupt is still pending, in milliseconds since
    /// 1970.
    pub expires_ms: Option<i64>,
}

impl Interrupt {
    /// Builds an interrupt, for tests.
    pub fn new(id: &str, node: &str, payload: Value) -> Self {
        Self {
            id: id.to_owned(),
            node: node.to_owned(),
            payload,
            response_schema: None,
            asked_ms: 0,
            expires_ms: None,
        }
    }
}

/// The outcome of a run that has ended or is interrupted.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The run completed.
    Completed,
    /// The run is interrupted. Contains the pending interrupts.
    Interrupted(Vec<Interrupt>),
    /// The run failed.
    Failed(Failure),
    /// The run was cancelled.
    Cancelled,
    /// An outcome unknown to this SDK version.
    Other(String),
}

/// A run that has ended or is interrupted.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedRun {
    /// Reference to the run.
    pub run: RunRef,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// State of the thread, an object of channel values.
    pub state: Value,
}

impl EndedRun {
    /// Returns the state of a completed run.
    ///
    /// # Errors
    ///
    /// The failure of a failed run; `cancelled` if the run was cancelled; `conflict` if it is
    /// interrupted.
    ///
    /// ```
    /// use serde_json::json;
    /// use wattle_plugin::runs::{EndedRun, Outcome, RunRef};
    ///
    /// let run = RunRef { thread_id: "t".to_owned(), run_id: "r".to_owned() };
    /// let ended = EndedRun { run, outcome: Outcome::Completed, state: json!({"n": 1}) };
    /// assert_eq!(ended.completed()?["n"], 1);
    /// assert!(ended.question().is_err());
    /// # Ok::<_, wattle_plugin::Failure>(())
    /// ```
    pub fn completed(&self) -> Result<&Value, Failure> {
        match &self.outcome {
            Outcome::Completed => Ok(&self.state),
            Outcome::Interrupted(_) => Err(Failure::conflict("the run is interrupted")),
            outcome => Err(failure_of(outcome)),
        }
    }

    /// Returns the first pending interrupt of an interrupted run.
    ///
    /// # Errors
    ///
    /// The failure of a failed run; `cancelled` if the run was cancelled; `conflict` if no
    /// interrupt is pending.
    pub fn question(&self) -> Result<&Interrupt, Failure> {
        let nothing = || Failure::conflict("the run has no pending interrupt");
        match &self.outcome {
            Outcome::Interrupted(questions) => questions.first().ok_or_else(nothing),
            Outcome::Completed => Err(nothing()),
            outcome => Err(failure_of(outcome)),
        }
    }

    /// Returns a channel of the state as a type, or `None` if it is missing or null.
    pub fn channel<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Failure> {
        channel(&self.state, name)
    }
}

/// A thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    /// Id of the thread.
    pub thread_id: String,
    /// Name of the graph.
    pub graph: String,
    /// `idle`, `running`, `interrupted` or `error`.
    pub status: String,
    /// State, an object of channel values.
    pub state: Value,
    /// Pending interrupts.
    pub interrupts: Vec<Interrupt>,
    /// Id of the newest run.
    pub run_id: Option<String>,
    /// Time of creation, in milliseconds since 1970.
    pub created_ms: i64,
    /// Time of the last change, in milliseconds since 1970.
    pub updated_ms: i64,
    /// Metadata of the thread.
    pub metadata: Value,
    /// Extension fields.
    pub extra: Extra,
}

impl Thread {
    /// Builds a thread, for tests.
    pub fn new(thread_id: &str, graph: &str, status: &str, state: Value) -> Self {
        Self {
            thread_id: thread_id.to_owned(),
            graph: graph.to_owned(),
            status: status.to_owned(),
            state,
            interrupts: Vec::new(),
            run_id: None,
            created_ms: 0,
            updated_ms: 0,
            metadata: Value::Object(Map::new()),
            extra: Extra::new(),
        }
    }

    /// Returns true if a run of the thread is active.
    pub fn is_running(&self) -> bool {
        self.status == RUNNING
    }

    /// Returns true if the thread has pending interrupts, or is at a breakpoint.
    pub fn is_interrupted(&self) -> bool {
        self.status == INTERRUPTED
    }

    /// Returns the active run.
    pub fn active_run(&self) -> Option<RunRef> {
        let run_id = self.run_id.clone().filter(|_| self.is_running())?;
        Some(RunRef { thread_id: self.thread_id.clone(), run_id })
    }

    /// Returns a channel of the state as a type, or `None` if it is missing or null.
    pub fn channel<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Failure> {
        channel(&self.state, name)
    }
}

fn channel<T: DeserializeOwned>(state: &Value, name: &str) -> Result<Option<T>, Failure> {
    match state.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => json::from_value(&format!("channel `{name}`"), value).map(Some),
    }
}

fn failure_of(outcome: &Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure.clone(),
        Outcome::Cancelled => Failure::new(code::CANCELLED, "the run was cancelled"),
        other => Failure::internal(format!("the run has the unknown outcome {other:?}")),
    }
}
