//! The JSON body of a pending interrupt.

use wattle_project::agent_server::document::Interrupt;
use wattle_run::hostcall::runs::InterruptView;

/// Converts a pending interrupt to its JSON body.
pub(super) fn interrupt(view: &InterruptView) -> Interrupt {
    Interrupt {
        value: view.payload.clone(),
        id: view.id.clone(),
        response_schema: view.response_schema.clone(),
    }
}
