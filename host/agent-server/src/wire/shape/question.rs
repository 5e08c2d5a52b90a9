//! The JSON body of a pending interrupt.

use wattle_project::agent_server::document::Interrupt;
use wattle_run::hostcall::runs::InterruptView;

/// Converts a pending interrupt to its JSON body.
pub(super) fn interrupt(question: &InterruptView) -> Interrupt {
    Interrupt {
        value: question.payload.clone(),
        id: question.id.clone(),
        response_schema: question.response_schema.clone(),
    }
}
