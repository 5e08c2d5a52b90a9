//! Questions to people.

use wattle_project::agent_server::document::Interrupt;
use wattle_run::hostcall::runs::OpenQuestion;

/// An open question as clients know it.
pub(super) fn interrupt(question: &OpenQuestion) -> Interrupt {
    Interrupt {
        value: question.payload.clone(),
        id: question.id.clone(),
        response_schema: question.response_schema.clone(),
    }
}
