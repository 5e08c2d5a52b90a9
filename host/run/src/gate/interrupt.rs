//! Interrupts: raised by a guest, and answered from the log when the guest is executed again.

use serde_json::{Value, json};
use wattle_graph::elicitation::Elicited;
use wattle_graph::event::{Event, EventKind, InterruptRaised};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::InterruptId;
use wattle_graph::interrupt::Interrupt;
use wattle_graph::weight::weight;

use crate::gate::Gate;
use crate::gate::divergence::divergence;
use crate::gate::task_gate::TaskGate;
use crate::gate::unwind::{CallError, Unwind};
use crate::hostcall::interrupt::InterruptRequest;
use crate::hostcall::request::CallRequest;
use crate::json::check_depth;

impl Gate {
    /// Raises an interrupt, or returns its answer. A node that a client calls gets no answer: the
    /// client gets the question.
    ///
    /// # Errors
    ///
    /// [`Unwind::Suspended`] until the interrupt is answered; `unsupported` in a web handler, and in
    /// a tool that a client calls; `invalid` if the question is nested too deeply. These failures
    /// count as a call.
    pub async fn ask(&self, question: InterruptRequest) -> Result<Value, CallError> {
        let Some(task) = &self.task else { return Err(self.ask_client(question).await) };
        check_question_depth(&question).map_err(|failure| self.refuse(failure))?;
        let call = self.reserve_call_numbers(1)?;
        let interrupt = InterruptId::derive(&task.task, &task.scope, call);
        if let Some(known) = task.interrupt(&interrupt) {
            let same = known.raised.payload == question.payload
                && known.raised.response_schema == question.response_schema;
            if !same {
                let to_json = |payload: &Value| json!({ "function": InterruptRequest::FUNCTION, "request": payload });
                let (known, now) = (to_json(&known.raised.payload), to_json(&question.payload));
                return Err(divergence(call, known, now).into());
            }
            let answer = known.answer.ok_or(Unwind::Suspended(interrupt))?;
            self.count_journaled(weight(&known.raised.payload) + weight(&answer))?;
            return Ok(answer);
        }
        // A journal entry under this number means that an earlier execution made another call here.
        let request = CallRequest::small(InterruptRequest::FUNCTION, json!(question));
        task.look_up(call, call, request, self.limits())?;
        question.check_schema(self.caller().owner, &self.env.schemas).await?;
        task.check_log_size().await?;
        Err(task.raise_interrupt(interrupt, call, question, None).await.into())
    }

    /// Gives the question of a guest without a task to the client that called a node. Returns the
    /// unwind of the guest, or the failure that it receives.
    async fn ask_client(&self, question: InterruptRequest) -> CallError {
        let Some(node) = self.client_node() else { return self.refuse(interrupts_unsupported()) };
        if let Err(failure) = check_question_depth(&question) {
            return self.refuse(failure);
        }
        let counted =
            self.count_call().and_then(|()| self.count_text(InterruptRequest::FUNCTION, &question));
        if let Err(unwind) = counted {
            return unwind.into();
        }
        match question.check_schema(self.caller().owner, &self.env.schemas).await {
            Ok(()) => node.raise(question).into(),
            Err(failure) => failure.into(),
        }
    }
}

impl TaskGate {
    /// Logs an interrupt, unless too many or too large ones are pending. Returns the unwind that
    /// suspends the guest.
    pub(crate) async fn raise_interrupt(
        &self,
        interrupt: InterruptId,
        call: u32,
        question: InterruptRequest,
        elicited: Option<Box<Elicited>>,
    ) -> Unwind {
        let expires_ms =
            self.interrupt_ttl_ms.map(|ttl| self.clock.now_ms().saturating_add_unsigned(ttl));
        let raised = InterruptRaised {
            interrupt: interrupt.clone(),
            task: self.task.clone(),
            node: self.node.clone(),
            scope: self.scope.clone(),
            call,
            payload: question.payload,
            response_schema: question.response_schema,
            expires_ms,
            answered: false,
            elicited,
        };
        if let Err(full) = self.log.count_interrupt(&raised) {
            return Unwind::Limit(full);
        }
        let Event { at_ms: raised_ms, seq: raised_seq, run, .. } =
            self.log.push_and_copy(EventKind::InterruptRaised(raised.clone()));
        self.journal.record_interrupt(Interrupt {
            raised,
            raised_ms,
            raised_seq,
            run,
            answer: None,
        });
        self.log.flush().await;
        Unwind::Suspended(interrupt)
    }
}

fn check_question_depth(question: &InterruptRequest) -> Result<(), Failure> {
    check_depth("the question", &question.payload)?;
    check_depth("the response schema", &json!(question.response_schema))
}

fn interrupts_unsupported() -> Failure {
    Failure::new(
        code::UNSUPPORTED,
        "a web handler cannot ask a question; start a run whose node asks it",
    )
}
