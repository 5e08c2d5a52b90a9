//! Ended runs of a conversation, as responses.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::chat::last_reply::{LastReply, Step};
use crate::chat::texts::Texts;
use crate::failure::Failure;
use crate::log;
use crate::runs::{EndedRun, Interrupt, Outcome};
use crate::web::{Response, status};

/// The reply to a message.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    thread_id: String,
    reply: String,
    steps: Vec<Step>,
}

/// A run that waits for approvals.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    thread_id: String,
    reply: String,
    questions: Vec<Question>,
    steps: Vec<Step>,
}

/// A tool call that waits for approval.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Question {
    id: String,
    payload: Value,
    /// JSON Schema for the answer; absent if the interrupt has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    response_schema: Option<Value>,
}

/// The reason of a refused request or a failed run, for users.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatError {
    /// The conversation of a failed run. Its next message continues it.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<String>,
    error: String,
    /// The steps of a failed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<Step>>,
}

/// A run of a conversation that has ended or is interrupted.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Id of the thread.
    pub thread_id: String,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Text of the last model turn; empty if it has none.
    pub reply: String,
    steps: Vec<Step>,
    /// Texts for runs that have no reply.
    texts: &'static Texts,
}

impl Ended {
    pub(super) fn new(run: EndedRun, last: LastReply, texts: &'static Texts) -> Self {
        let LastReply { text: reply, steps } = last;
        Self { thread_id: run.run.thread_id, outcome: run.outcome, reply, steps, texts }
    }

    /// Returns the response for the outcome, as [`Ended::respond`] does. For a failed run it has
    /// status 502 and the text [`Texts::failed`].
    pub fn into_response(self) -> Result<Response, Failure> {
        let failed = self.texts.failed;
        self.respond(|_| (status::BAD_GATEWAY, failed))
    }

    /// Returns the response for the outcome: [`Reply`] with status 200 for a completed run,
    /// [`Waiting`] with 202 for an interrupted one, and [`ChatError`] for any other. `describe`
    /// returns the status and the text for the failure of a failed run, which is logged. A
    /// cancelled run has the status 409.
    pub fn respond<T: Into<String>>(
        self,
        describe: impl FnOnce(&Failure) -> (u16, T),
    ) -> Result<Response, Failure> {
        let Self { thread_id, outcome, reply, steps, texts } = self;
        let (status, error) = match outcome {
            Outcome::Completed => return Response::json(200, &Reply { thread_id, reply, steps }),
            Outcome::Interrupted(questions) => {
                let questions = questions.into_iter().map(Question::from).collect();
                let body = Waiting { thread_id, reply, questions, steps };
                return Response::json(status::ACCEPTED, &body);
            }
            Outcome::Failed(failure) => {
                log::warn!("the run on thread `{thread_id}` failed: {failure}");
                let (status, text) = describe(&failure);
                (status, text.into())
            }
            Outcome::Cancelled | Outcome::Other(_) => {
                (status::CONFLICT, texts.cancelled.to_owned())
            }
        };
        let body = ChatError { thread_id: Some(thread_id), error, steps: Some(steps) };
        Response::json(status, &body)
    }
}

impl From<Interrupt> for Question {
    fn from(interrupt: Interrupt) -> Self {
        let Interrupt { id, payload, response_schema, .. } = interrupt;
        Self { id, payload, response_schema }
    }
}
