//! Calls of which nobody knows whether they had their effect, since the host stopped while they
//! were under way, or since the server that held one open for an answer does so no longer: the
//! operator's policy or a person says what becomes of them.

use serde_json::{Value, json};
use wattle_graph::event::{Decision, EventKind, Settled};
use wattle_graph::failure::{Failure, code};

use crate::gate::entry::Entry;
use crate::gate::task::log_lost;
use crate::gate::unwind::Unwind;
use crate::grant::InDoubt;
use crate::hostcall::interrupt::Ask;
use crate::hostcall::request::Request;

/// Who settles by a policy.
const BY_POLICY: &str = "policy";

/// What is asked, in the payload of a question about such a call.
const IN_DOUBT: &str = "in_doubt";

impl Entry {
    /// What the caller gets if the call counts as failed.
    pub(crate) fn in_doubt(&self) -> Failure {
        let Request { function, summary, .. } = &self.request;
        let what = match self.last_round() {
            Some(_) => format!(
                "`{function} {summary}` waited for the answer of a person, and the server does not \
                 hold it open any more"
            ),
            None => format!("the host stopped while `{function} {summary}` was under way"),
        };
        let text = format!(
            "{what}, so it may have had its effect; it is not made again without being told to"
        );
        Failure::new(code::IN_DOUBT, text).with_details(json!({ "function": function }))
    }

    /// What becomes of a call in doubt, which was begun or gone on with last at the place `begun` in
    /// the log.
    ///
    /// # Errors
    ///
    /// [`Unwind::Suspended`] as long as a person has not decided; [`Unwind::Log`] if the decision
    /// cannot be written down.
    pub(crate) async fn decide(&self, policy: InDoubt, begun: u64) -> Result<Decision, Unwind> {
        let task = &self.task;
        match policy {
            InDoubt::Fail => Ok(Decision::Fail),
            InDoubt::Retry => {
                task.log.push(EventKind::Settled(Settled {
                    task: task.task.clone(),
                    scope: task.scope.clone(),
                    call: self.number,
                    decision: Decision::Retry,
                    by: BY_POLICY.to_owned(),
                    principal: None,
                }));
                task.log.barrier().await.map_err(log_lost)?;
                Ok(Decision::Retry)
            }
            InDoubt::Ask => self.ask_about(begun).await,
        }
    }

    /// A person answers as to any question, so all clients that show and answer questions do it for
    /// these. Each answer is about one beginning of the call: made again, it is in doubt again.
    async fn ask_about(&self, begun: u64) -> Result<Decision, Unwind> {
        let mut interrupt = self.interrupt();
        let task = &self.task;
        while task.question(&interrupt).is_some_and(|known| known.asked_seq < begun) {
            interrupt = interrupt.once_more();
        }
        if let Some(known) = task.question(&interrupt) {
            if known.asked.payload.get(IN_DOUBT).is_none() {
                return Err(self.was_another(&known.asked));
            }
            let answer = known.answer.ok_or(Unwind::Suspended(interrupt))?;
            // The answer was checked by the schema below.
            return Ok(serde_json::from_value(answer).unwrap_or(Decision::Fail));
        }
        let payload = json!({ IN_DOUBT: {
            "function": self.request.function,
            "summary": self.request.summary,
            "request": self.request.shown(),
            "message": self.in_doubt().message,
        } });
        let question = Ask { payload, response_schema: Some(response_schema()) };
        Err(task.put(interrupt, self.number, question, None).await)
    }
}

/// The ways a person can decide; the form of [`Decision`].
fn response_schema() -> Value {
    json!({
        "type": "object",
        "required": ["kind"],
        "oneOf": [
            { "properties": { "kind": { "const": "retry" } }, "additionalProperties": false,
              "description": "make the call again" },
            { "properties": { "kind": { "const": "answer" }, "answer": {} },
              "required": ["answer"], "additionalProperties": false,
              "description": "it had its effect, and this was its answer" },
            { "properties": { "kind": { "const": "fail" } }, "additionalProperties": false,
              "description": "let the caller see that it is in doubt" },
        ],
    })
}
