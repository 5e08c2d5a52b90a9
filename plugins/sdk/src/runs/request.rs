//! What to run and how to go on.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::json::Extra;
use crate::runs::{self, EndedRun};

/// A started run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunRef {
    /// Its thread.
    pub thread_id: String,
    /// The run.
    pub run_id: String,
}

/// What to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The graph.
    pub graph: String,
    /// Channel values as an object.
    pub input: Value,
    /// A new thread with a fresh id without it.
    pub thread_id: Option<String>,
    /// What every node sees as [`Context::context`](crate::Context::context).
    pub context: Option<Value>,
    /// Kept with the thread.
    pub metadata: Option<Value>,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl Start {
    /// A run of a graph on a new thread, without input.
    pub fn graph(graph: impl Into<String>) -> Self {
        Self {
            graph: graph.into(),
            input: Value::Object(Map::new()),
            thread_id: None,
            context: None,
            metadata: None,
            extra: Extra::new(),
        }
    }

    /// Channel values as an object.
    pub fn input(mut self, input: impl Into<Value>) -> Self {
        self.input = input.into();
        self
    }

    /// On this thread.
    pub fn thread_id(mut self, thread_id: impl Into<String>) -> Self {
        self.thread_id = Some(thread_id.into());
        self
    }

    /// What every node sees as its run's context.
    pub fn context(mut self, context: impl Into<Value>) -> Self {
        self.context = Some(context.into());
        self
    }

    /// Kept with the thread.
    pub fn metadata(mut self, metadata: impl Into<Value>) -> Self {
        self.metadata = Some(metadata.into());
        self
    }

    /// Adds a named value beside the fixed fields.
    pub fn with_extra(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(key.into(), value.into());
        self
    }

    /// Starts the run and returns at once.
    pub fn start(self) -> Result<RunRef, Failure> {
        runs::start(self)
    }

    /// Starts the run and waits until it ends or stands still.
    pub fn start_and_wait(self) -> Result<EndedRun, Failure> {
        runs::wait(&self.start()?)
    }
}

/// What becomes of a thread whose resumed run fails.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The thread stays where it failed; a later run starts from the failed task.
    #[default]
    Keep,
    /// The thread goes back to the question that was answered, which is open again.
    Reopen,
    /// A choice this version has no case for.
    Other(String),
}

/// Answers to open questions.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    /// The thread.
    pub thread_id: String,
    /// By interrupt id. The empty id means the only open question.
    pub answers: Vec<(String, Value)>,
    /// What becomes of the thread if the run fails.
    pub on_failure: OnFailure,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl Resume {
    /// Goes on with a thread.
    pub fn thread(thread_id: impl Into<String>) -> Self {
        Self {
            thread_id: thread_id.into(),
            answers: Vec::new(),
            on_failure: OnFailure::default(),
            extra: Extra::new(),
        }
    }

    /// Answers the only open question.
    pub fn answer(self, answer: impl Into<Value>) -> Self {
        self.answer_to("", answer)
    }

    /// Answers one of several open questions.
    pub fn answer_to(mut self, interrupt: impl Into<String>, answer: impl Into<Value>) -> Self {
        self.answers.push((interrupt.into(), answer.into()));
        self
    }

    /// What becomes of the thread if the run fails.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// Goes on and returns at once.
    pub fn resume(self) -> Result<RunRef, Failure> {
        runs::resume(self)
    }

    /// Goes on and waits until the run ends or stands still.
    pub fn resume_and_wait(self) -> Result<EndedRun, Failure> {
        runs::wait(&self.resume()?)
    }
}
