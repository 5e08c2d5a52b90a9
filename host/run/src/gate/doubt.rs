//! In-doubt calls: the host stopped before the call returned, or the server that held the call open
//! for an answer no longer does. The operator's policy or a person decides about them.

use serde_json::{Value, json};
use wattle_graph::event::{Decision, EventKind, Settled};
use wattle_graph::failure::{Failure, code};

use crate::gate::entry::Entry;
use crate::gate::task::log_lost;
use crate::gate::unwind::Unwind;
use crate::grant::InDoubt;
use crate::hostcall::interrupt::Ask;
use crate::hostcall::request::Request;

/// Value of `by` in a `settled` event for a decision by policy.
const BY_POLICY: &str = "policy";

/// Field of the interrupt's payload that describes the in-doubt call.
const IN_DOUBT: &str = "in_doubt";

impl Entry {
    /// Returns the failure that the caller receives if the decision is to fail the call.
    pub(crate) fn in_doubt(&self) -> Failure {
        let Request { function, summary, .. } = &self.request;
        let what = match self.last_round() {
            Some(_) => "it waited for the answer of a person and is no longer held open",
            None => "the host stopped before it returned",
        };
        let text = format!(
            "call `{function} {summary}` is in doubt: {what}, and it may have taken effect; it is \
             not repeated without a decision"
        );
        Failure::new(code::IN_DOUBT, text).with_details(json!({ "function": function }))
    }

    /// Decides about an in-doubt call. `begun` is the sequence number of its last start or of its
    /// last round, whichever is later.
    ///
    /// # Errors
    ///
    /// [`Unwind::Suspended`] until a person has decided; [`Unwind::Log`] if the decision cannot be
    /// logged.
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

    /// Raises an interrupt for the decision, so every client that answers interrupts can decide. An
    /// answer applies to one start of the call: a repeated call can be in doubt again.
    async fn ask_about(&self, begun: u64) -> Result<Decision, Unwind> {
        let mut interrupt = self.interrupt();
        let task = &self.task;
        while task.question(&interrupt).is_some_and(|known| known.asked_seq < begun) {
            interrupt = interrupt.reissued();
        }
        if let Some(known) = task.question(&interrupt) {
            if known.asked.payload.get(IN_DOUBT).is_none() {
                return Err(self.was_another(&known.asked));
            }
            let answer = known.answer.ok_or(Unwind::Suspended(interrupt))?;
            // The answer was validated by the schema below.
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

/// Returns the schema of a decision. Its form is that of [`Decision`].
fn response_schema() -> Value {
    json!({
        "type": "object",
        "required": ["kind"],
        "oneOf": [
            { "properties": { "kind": { "const": "retry" } }, "additionalProperties": false,
              "description": "make the call again" },
            { "properties": { "kind": { "const": "answer" }, "answer": {} },
              "required": ["answer"], "additionalProperties": false,
              "description": "the call took effect and returned this output" },
            { "properties": { "kind": { "const": "fail" } }, "additionalProperties": false,
              "description": "let the caller receive the `in-doubt` failure" },
        ],
    })
}
