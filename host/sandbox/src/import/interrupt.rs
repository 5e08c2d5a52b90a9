//! `wattle:plugin/interrupt`: requests for input from a person. If a request has no answer yet, the
//! gate unwinds the guest.

use wattle_graph::failure::Failure;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::limit;

use crate::bindings::wattle::plugin::interrupt;
use crate::host_state::HostState;
use crate::import_error::ImportError;
use crate::json::{CallJson, to_text};

const ASK: &str = InterruptRequest::FUNCTION;

impl interrupt::Host for HostState {
    async fn ask(&mut self, question: interrupt::Question) -> Result<String, ImportError> {
        let gate = self.gate(ASK)?;
        let schema_bytes = question.response_schema.as_ref().map_or(0, String::len);
        let bytes = question.payload.len() + schema_bytes;
        let request = self.convert(&gate, ASK, bytes, |json| into_request(&question, json)).await?;
        let answer = self.off_cpu(gate.ask(request)).await?;
        Ok(to_text(&answer))
    }
}

fn into_request(
    question: &interrupt::Question,
    json: CallJson<'_>,
) -> Result<InterruptRequest, Failure> {
    let schema = question.response_schema.as_deref();
    Ok(InterruptRequest {
        payload: json.parse(&question.payload, "payload", limit::INTERRUPT_PAYLOAD_BYTES)?,
        response_schema: schema
            .map(|schema| json.parse_schema(schema, "response-schema"))
            .transpose()?,
    })
}
