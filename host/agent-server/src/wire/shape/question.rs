//! The JSON body of a pending interrupt.

use wattle_project::agent_server::document::Interrupt;
use wattle_run::hostcall::runs::PendingInterrupt;

/// Converts a pending interrupt to its JSON body.
pub(super) fn interrupt(question: &PendingInterrupt) -> Interrupt {
    Interrupt {
        value: question.payload.clone(),
        id: question.id.clone(),
        response_schema: question.response_schema.clone(),
    }
}
