//! Interrupts as documents.

use wattle_project::agent_server::document::Interrupt;
use wattle_run::hostcall::runs::OpenQuestion;

/// Returns a pending interrupt as a document.
pub(super) fn interrupt(question: &OpenQuestion) -> Interrupt {
    Interrupt {
        value: question.payload.clone(),
        id: question.id.clone(),
        response_schema: question.response_schema.clone(),
    }
}
