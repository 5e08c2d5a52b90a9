//! Requests to start and resume runs.

use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::json::Extra;
use crate::runs::{self, EndedRun, RunRef};

/// Key of `extra` for [`Start::reject_if_interrupted`].
pub(crate) const REJECT_IF_INTERRUPTED: &str = "reject_if_interrupted";

/// A request to start a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Name of the graph.
    pub graph: String,
    /// Input: an object of channel values.
    pub input: Value,
    /// Id of the thread; `None` creates a thread with a generated id.
    pub thread_id: Option<String>,
    /// Run context, which every node receives as [`Context::context`](crate::Context::context).
    pub context: Option<Value>,
    /// Metadata of the thread.
    pub metadata: Option<Value>,
    /// Extension fields.
    pub extra: Extra,
}

impl Start {
    /// Creates a request for a run of a graph on a new thread, with an empty input.
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

    /// Sets the input, an object of channel values.
    pub fn input(mut self, input: impl Into<Value>) -> Self {
        self.input = input.into();
        self
    }

    /// Sets the thread.
    pub fn thread_id(mut self, thread_id: impl Into<String>) -> Self {
        self.thread_id = Some(thread_id.into());
        self
    }

    /// Sets the run context.
    pub fn context(mut self, context: impl Into<Value>) -> Self {
        self.context = Some(context.into());
        self
    }

    /// Sets the metadata of the thread.
    pub fn metadata(mut self, metadata: impl Into<Value>) -> Self {
        self.metadata = Some(metadata.into());
        self
    }

    /// Adds an extension field.
    pub fn with_extra(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(key.into(), value.into());
        self
    }

    /// Rejects the start if the thread is interrupted and has pending interrupts: the start fails
    /// with `conflict`, and `reason` of its details is `interrupted`. Without this, the run gives
    /// the interrupts up. The host checks the thread while no other run can start, so an interrupt
    /// that is raised just before the start is not lost.
    ///
    /// ```
    /// use wattle_plugin::prelude::*;
    /// use wattle_plugin::runs::{Interrupt, Thread};
    /// use wattle_plugin::testing::FakeHost;
    ///
    /// let mut thread = Thread::new("thread-1", "orders", "interrupted", json!({}));
    /// thread.interrupts.push(Interrupt::new("q-1", "review", json!({"rows": 2})));
    /// let host = FakeHost::new().thread(thread);
    /// let start = runs::Start::graph("orders").thread_id("thread-1");
    /// let rejected = host.run(|| start.clone().reject_if_interrupted().start());
    /// assert_eq!(rejected.map_err(|failure| failure.code), Err(code::CONFLICT.to_owned()));
    /// assert!(host.run(|| start.start()).is_ok());
    /// ```
    pub fn reject_if_interrupted(self) -> Self {
        self.with_extra(REJECT_IF_INTERRUPTED, true)
    }

    /// Starts the run. Returns without waiting for its end.
    pub fn start(self) -> Result<RunRef, Failure> {
        runs::start(self)
    }

    /// Starts the run and waits until it has ended or is interrupted.
    pub fn start_and_wait(self) -> Result<EndedRun, Failure> {
        runs::wait(&self.start()?)
    }
}

/// The effect of a failed run on its resumed thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The thread keeps its progress. A later run continues with the failed task.
    #[default]
    Keep,
    /// The thread is reopened: the answered interrupts are pending again.
    Reopen,
    /// A choice unknown to this SDK version.
    Other(String),
}

/// Answers to pending interrupts.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    /// Id of the thread.
    pub thread_id: String,
    /// Answers by interrupt id. The empty id selects the only pending interrupt.
    pub answers: Vec<(String, Value)>,
    /// The effect of a failed run on the thread.
    pub on_failure: OnFailure,
    /// Extension fields.
    pub extra: Extra,
}

impl Resume {
    /// Creates a request to resume a thread.
    pub fn thread(thread_id: impl Into<String>) -> Self {
        Self {
            thread_id: thread_id.into(),
            answers: Vec::new(),
            on_failure: OnFailure::default(),
            extra: Extra::new(),
        }
    }

    /// Answers the only pending interrupt.
    pub fn answer(self, answer: impl Into<Value>) -> Self {
        self.answer_to("", answer)
    }

    /// Answers one of several pending interrupts.
    pub fn answer_to(mut self, interrupt: impl Into<String>, answer: impl Into<Value>) -> Self {
        self.answers.push((interrupt.into(), answer.into()));
        self
    }

    /// Sets the effect of a failed run on the thread.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// Resumes the thread. Returns without waiting for the end of the run.
    pub fn resume(self) -> Result<RunRef, Failure> {
        runs::resume(self)
    }

    /// Resumes the thread and waits until the run has ended or is interrupted.
    pub fn resume_and_wait(self) -> Result<EndedRun, Failure> {
        runs::wait(&self.resume()?)
    }
}
