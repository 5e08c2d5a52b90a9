//! What became of a run, and what is known of a thread.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::failure::{Failure, code};
use crate::json::{self, Extra};
use crate::runs::RunRef;

/// An open question.
#[derive(Debug, Clone, PartialEq)]
pub struct Interrupt {
    /// Its id.
    pub id: String,
    /// The node that asked.
    pub node: String,
    /// What the person needs to see.
    pub payload: Value,
    /// JSON Schema that an answer must satisfy.
    pub response_schema: Option<Value>,
    /// When it was asked.
    pub asked_ms: i64,
    /// When the thread expires without an answer.
    pub expires_ms: Option<i64>,
}

impl Interrupt {
    /// A question as tests make it.
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

/// How a run ended, or why it stands still.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It reached its end.
    Completed,
    /// It waits for answers.
    Interrupted(Vec<Interrupt>),
    /// It failed.
    Failed(Failure),
    /// Somebody stopped it.
    Cancelled,
    /// An end this version has no case for.
    Other(String),
}

/// A run that has ended or stands still.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedRun {
    /// The run.
    pub run: RunRef,
    /// How it ended.
    pub outcome: Outcome,
    /// The state as an object.
    pub state: Value,
}

impl EndedRun {
    /// The state of a run that reached its end.
    ///
    /// # Errors
    ///
    /// The run's failure; `cancelled` if somebody stopped it; `conflict` if it waits for answers.
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
            Outcome::Interrupted(_) => Err(Failure::conflict("the run waits for an answer")),
            outcome => Err(failure_of(outcome)),
        }
    }

    /// The first open question of a run that waits for answers.
    ///
    /// # Errors
    ///
    /// The run's failure; `cancelled` if somebody stopped it; `conflict` if it asked nothing.
    pub fn question(&self) -> Result<&Interrupt, Failure> {
        let nothing = || Failure::conflict("the run waits for no answer");
        match &self.outcome {
            Outcome::Interrupted(questions) => questions.first().ok_or_else(nothing),
            Outcome::Completed => Err(nothing()),
            outcome => Err(failure_of(outcome)),
        }
    }

    /// One channel of the state as a type; `None` if it was never written or is null.
    pub fn channel<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Failure> {
        channel(&self.state, name)
    }
}

/// What is known of a thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    /// Its id.
    pub thread_id: String,
    /// The graph.
    pub graph: String,
    /// `idle`, `running`, `interrupted` or `error`.
    pub status: String,
    /// The state as an object.
    pub state: Value,
    /// Open questions.
    pub interrupts: Vec<Interrupt>,
    /// The newest run.
    pub run_id: Option<String>,
    /// When it was made.
    pub created_ms: i64,
    /// When it last changed.
    pub updated_ms: i64,
    /// What was kept with it.
    pub metadata: Value,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl Thread {
    /// A thread as tests make it.
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

    /// One channel of the state as a type; `None` if it was never written or is null.
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
        other => Failure::internal(format!("the run ended in an unknown way: {other:?}")),
    }
}
