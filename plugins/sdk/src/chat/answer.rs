//! Answers to the questions of a conversation.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Chat, Ended};
use crate::failure::Failure;
use crate::log;
use crate::runs::{Resume, ResumeOutcome, Thread};
use crate::web::{Request, refuse, status};

/// The answer to a question of a conversation.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AnswerRequest {
    /// Id of the question.
    id: String,
    /// For an approval of the plugin `std` the decision, such as `{"decision": "approve"}`.
    answer: Value,
}

/// Answers.
impl Chat {
    /// Answers a pending question with the answer of an [`AnswerRequest`], and waits until the run
    /// has ended or is interrupted again. Further questions stay pending, and the run is
    /// interrupted for them.
    ///
    /// Of several requests with an answer to one question, such as those of a double click, one
    /// resumes the run.
    ///
    /// ```
    /// use wattle_plugin::chat::{AnswerRequest, Chat, ChatError, Reply, Waiting};
    /// use wattle_plugin::prelude::*;
    ///
    /// const CHAT: Chat = Chat::graph("notes");
    ///
    /// /// Answers a question and waits for the reply.
    /// #[handler(POST, "/api/threads/{id}/answers", body = AnswerRequest, returns = Reply,
    ///     returns(202) = Waiting, error = ChatError)]
    /// fn answer(request: &Request) -> Result<Response, Failure> {
    ///     web::respond::<web::ErrorDocument>(request, || {
    ///         CHAT.answer(&request.param::<String>("id")?, request)?.into_response()
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// A failure with status 400 for an answer that does not fit its question, which remains
    /// pending; `not-found` with status 404 if the graph has no such thread; `conflict` with status
    /// 409 if the question is not pending; `busy` with status 409 if other requests had active runs
    /// in all attempts.
    pub fn answer(&self, thread_id: &str, request: &Request) -> Result<Ended, Failure> {
        let invalid = || refuse(status::BAD_REQUEST, self.texts.answer);
        let AnswerRequest { id, answer } = request.json().map_err(|_| invalid())?;
        let resume = Resume::thread(thread_id).answer_to(id.as_str(), answer);
        // After a run for another question, this one is pending again.
        let is_over = |thread: &Thread| {
            let has_question = thread.interrupts.iter().any(|question| question.id == id);
            let is_pending = has_question && (thread.is_interrupted() || thread.is_running());
            Ok((!is_pending).then_some(()))
        };
        match resume.resume_once(self.graph, is_over)? {
            ResumeOutcome::Ended(run) => Ok(self.ended(run)),
            ResumeOutcome::Done(()) => Err(refuse(status::CONFLICT, self.texts.not_pending)),
            ResumeOutcome::Refused(failure) => {
                log::debug!("an answer on thread `{thread_id}` is refused: {failure}");
                Err(invalid())
            }
            // Any thread of the graph that is not interrupted is over.
            ResumeOutcome::NotInterrupted => Err(self.missing()),
            ResumeOutcome::Busy => Err(self.busy()),
        }
    }
}
