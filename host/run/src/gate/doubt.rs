//! Calls of which nobody knows whether they had their effect, since the host stopped while they
//! were under way: the operator's policy or a person says what becomes of them.

use serde_json::{Value, json};
use wattle_graph::event::{Decision, EventKind, Settled};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::InterruptId;

use crate::call::interrupt::Ask;
use crate::gate::task::{TaskSide, log_lost};
use crate::gate::unwind::Unwind;
use crate::grant::InDoubt;

/// Who settles by a policy.
const BY_POLICY: &str = "policy";

/// A call in doubt, as people see it.
pub(crate) struct Doubt<'a> {
    pub number: u32,
    pub function: &'a str,
    pub summary: String,
    /// The request as the journal shows it.
    pub request: Value,
}

impl Doubt<'_> {
    /// What its caller gets if it counts as failed.
    pub(crate) fn failure(&self) -> Failure {
        Failure::new(
            code::IN_DOUBT,
            format!(
                "the host stopped while `{} {}` was under way, so it may have had its effect; it \
                 is not made again without being told to",
                self.function, self.summary
            ),
        )
        .with_details(json!({ "function": self.function }))
    }
}

impl TaskSide {
    /// What becomes of a call in doubt, which was begun last at the place `begun` in the log.
    ///
    /// # Errors
    ///
    /// [`Unwind::Suspended`] as long as a person has not decided; [`Unwind::Log`] if the decision
    /// cannot be written down.
    pub(crate) async fn decide(
        &self,
        policy: InDoubt,
        doubt: &Doubt<'_>,
        begun: u64,
    ) -> Result<Decision, Unwind> {
        match policy {
            InDoubt::Fail => Ok(Decision::Fail),
            InDoubt::Retry => {
                self.log.push(EventKind::Settled(Settled {
                    task: self.task.clone(),
                    scope: self.scope.clone(),
                    call: doubt.number,
                    decision: Decision::Retry,
                    by: BY_POLICY.to_owned(),
                }));
                self.log.barrier().await.map_err(log_lost)?;
                Ok(Decision::Retry)
            }
            InDoubt::Ask => self.ask_about(doubt, begun).await,
        }
    }

    /// A person answers as to any question, so whatever shows and answers questions does for these.
    /// Each answer is about one beginning of the call: made again, it is in doubt again.
    async fn ask_about(&self, doubt: &Doubt<'_>, begun: u64) -> Result<Decision, Unwind> {
        let mut interrupt = InterruptId::derive(&self.task, &self.scope, doubt.number);
        while self.questions.get(&interrupt).is_some_and(|known| known.asked_seq < begun) {
            interrupt = interrupt.once_more();
        }
        if let Some(known) = self.questions.get(&interrupt) {
            let answer = known.answer.clone().ok_or(Unwind::Suspended(interrupt))?;
            // The answer was checked by the schema below.
            return Ok(serde_json::from_value(answer).unwrap_or(Decision::Fail));
        }
        let payload = json!({ "in_doubt": {
            "function": doubt.function,
            "summary": doubt.summary,
            "request": doubt.request,
            "message": doubt.failure().message,
        } });
        let question = Ask { payload, response_schema: Some(response_schema()) };
        Err(self.put(interrupt, doubt.number, question).await)
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
