//! `wattle:plugin/interrupt`: requests for input from a person. If a request has no answer yet, the
//! gate unwinds the guest.

use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::limit;

use crate::bindings::wattle::plugin::interrupt;
use crate::host_state::HostState;
use crate::import_error::ImportError;
use crate::json;

const ASK: &str = InterruptRequest::FUNCTION;

impl interrupt::Host for HostState {
    async fn ask(&mut self, question: interrupt::Question) -> Result<String, ImportError> {
        let payload =
            json::parse(&question.payload, ASK, "payload", limit::INTERRUPT_PAYLOAD_BYTES)?;
        let schema = question.response_schema.as_deref();
        let response_schema =
            schema.map(|schema| json::parse_schema(schema, ASK, "response-schema")).transpose()?;
        let gate = self.gate(ASK)?;
        let answer = self.off_cpu(gate.ask(InterruptRequest { payload, response_schema })).await?;
        Ok(json::to_text(&answer))
    }
}
