//! In-doubt calls: the host stopped before the call returned, or the server no longer holds the
//! call open for an answer. The operator's policy or a person decides about the call.

use serde_json::{Value, json};
use wattle_graph::event::{Decision, EventKind, InterruptRaised, Settled};
use wattle_graph::failure::{Failure, code};

use crate::gate::entry::CallEntry;
use crate::gate::task_gate::log_lost;
use crate::gate::unwind::Unwind;
use crate::grant::InDoubtPolicy;
use crate::hostcall::interrupt::InterruptRequest;
use crate::hostcall::request::CallRequest;
use crate::hostcall::result_override::check_settled;
use crate::text::Escaped;

/// Value of `by` in a `settled` event for a decision by policy.
const SETTLED_BY_POLICY: &str = "policy";

/// Field of the interrupt's payload that describes the in-doubt call.
const IN_DOUBT_FIELD: &str = "in_doubt";

/// Field of a [`Decision`] that contains the output of the in-doubt call.
const OUTPUT_FIELD: &str = "answer";

impl CallEntry {
    /// Returns the failure that the caller receives if the decision is to fail the call.
    pub(crate) fn in_doubt_failure(&self) -> Failure {
        let CallRequest { function, summary, .. } = &self.request;
        let what = match self.last_round() {
            Some(_) => "the call waited for the answer of a person and is no longer held open",
            None => "the host stopped before the call returned",
        };
        let text = format!(
            "call `{function} {summary}` is in doubt: {what}; the call may have taken effect and \
             is not repeated without a decision"
        );
        Failure::new(code::IN_DOUBT, text).with_details(json!({ "function": function }))
    }

    /// Decides about an in-doubt call. `begun` is the sequence number of its last start or of its
    /// last round, whichever is later.
    ///
    /// # Errors
    ///
    /// [`Unwind::Suspended`] until a person has decided; [`Unwind::LogLost`] if the decision cannot
    /// be logged.
    pub(crate) async fn settle(
        &self,
        policy: InDoubtPolicy,
        begun: u64,
    ) -> Result<Decision, Unwind> {
        let task = &self.task;
        match policy {
            InDoubtPolicy::Fail => {
                self.warn_in_doubt("fail");
                Ok(Decision::Fail)
            }
            InDoubtPolicy::Retry => {
                self.warn_in_doubt("retry");
                task.log.push(EventKind::Settled(Settled {
                    task: task.task.clone(),
                    scope: task.scope.clone(),
                    call: self.number,
                    decision: Decision::Retry,
                    by: SETTLED_BY_POLICY.to_owned(),
                    principal: None,
                }));
                task.log.wait_durable().await.map_err(log_lost)?;
                Ok(Decision::Retry)
            }
            InDoubtPolicy::Ask => self.settle_by_interrupt(begun).await,
        }
    }

    /// Raises an interrupt for the decision, so every client that answers interrupts can decide. An
    /// answer applies to one start of the call: a repeated call can be in doubt again.
    async fn settle_by_interrupt(&self, begun: u64) -> Result<Decision, Unwind> {
        let mut interrupt = self.interrupt_id();
        let task = &self.task;
        while task.interrupt(&interrupt).is_some_and(|known| known.raised_seq < begun) {
            interrupt = interrupt.reissued();
        }
        if let Some(known) = task.interrupt(&interrupt) {
            if known.raised.payload.get(IN_DOUBT_FIELD).is_none() {
                return Err(self.other_call_divergence(&known.raised));
            }
            let answer = known.answer.ok_or(Unwind::Suspended(interrupt))?;
            // The answer was validated by the schema below.
            return Ok(serde_json::from_value(answer).unwrap_or(Decision::Fail));
        }
        self.warn_in_doubt("ask");
        let payload = json!({ IN_DOUBT_FIELD: {
            "function": self.request.function,
            "summary": self.request.summary,
            "request": self.request.journaled(),
            "message": self.in_doubt_failure().message,
        } });
        let question = InterruptRequest { payload, response_schema: Some(decision_schema()) };
        Err(task.raise_interrupt(interrupt, self.number, question, None).await)
    }

    /// Writes the call and the policy that applies to it to the operator's log. The call has the
    /// form in which `wattle thread settle` takes it.
    fn warn_in_doubt(&self, policy: &str) {
        let (task, CallRequest { function, summary, .. }) = (&self.task, &self.request);
        let (thread, run, node) = (task.log.thread(), task.log.run(), &task.node);
        let call = format!("{}/{}", task.task, self.call_path());
        let summary = Escaped(summary);
        tracing::warn!(
            %thread, %run, %node, %call, %function, %summary, policy,
            "a call is in doubt: it may have taken effect"
        );
    }
}

/// Checks the output in the answer to an interrupt about an in-doubt call. The answer matches the
/// response schema of the interrupt. Answers to other interrupts pass.
///
/// # Errors
///
/// Those of [`check_settled`].
pub(crate) fn check_decision(raised: &InterruptRaised, answer: &Value) -> Result<(), Failure> {
    match (in_doubt_function(raised), answer.get(OUTPUT_FIELD)) {
        (Some(function), Some(output)) => check_settled(function, output),
        _ => Ok(()),
    }
}

/// Returns the function of the in-doubt call that an interrupt is about. Returns `None` for the
/// interrupt of a guest, whose payload may have the same form, but with another response schema.
fn in_doubt_function(raised: &InterruptRaised) -> Option<&str> {
    let function = raised.payload.get(IN_DOUBT_FIELD)?.get("function")?.as_str()?;
    (raised.response_schema.as_ref() == Some(&decision_schema())).then_some(function)
}

/// Returns the JSON Schema of a [`Decision`]. The schema accepts any output, because no output type
/// of a host call has a JSON Schema; [`check_decision`] checks the output.
fn decision_schema() -> Value {
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
              "description":
                  "do not make the call again; its caller gets the failure `in-doubt`" },
        ],
    })
}
