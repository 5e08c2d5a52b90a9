//! `wattle:plugin/interrupt`: requests for input from a person. Without an answer the gate unwinds
//! the guest.

use wattle_run::hostcall::interrupt::InterruptRequest;

use crate::bindings::wattle::plugin::interrupt;
use crate::host_state::HostState;
use crate::import_error::ImportError;
use crate::json;

impl interrupt::Host for HostState {
    async fn ask(&mut self, question: interrupt::Question) -> Result<String, ImportError> {
        let payload = json::parse(&question.payload, InterruptRequest::FUNCTION, "payload")?;
        let response_schema = json::parse_option(
            question.response_schema.as_deref(),
            InterruptRequest::FUNCTION,
            "response-schema",
        )?;
        let gate = self.gate(InterruptRequest::FUNCTION)?;
        let answer = self.off_cpu(gate.ask(InterruptRequest { payload, response_schema })).await?;
        Ok(json::to_text(&answer))
    }
}
