//! `wattle:plugin/interrupt`: requests for input from a person. Without an answer the gate unwinds
//! the guest.

use wattle_run::hostcall::interrupt::Ask;

use crate::bindings::wattle::plugin::interrupt;
use crate::guest::Guest;
use crate::halt::Halt;
use crate::json;

impl interrupt::Host for Guest {
    async fn ask(&mut self, question: interrupt::Question) -> Result<String, Halt> {
        let payload = json::parse(&question.payload, Ask::FUNCTION, "payload")?;
        let response_schema = json::parse_option(
            question.response_schema.as_deref(),
            Ask::FUNCTION,
            "response-schema",
        )?;
        let gate = self.gate(Ask::FUNCTION)?;
        let answer = self.outside(gate.ask(Ask { payload, response_schema })).await?;
        Ok(json::text(&answer))
    }
}
