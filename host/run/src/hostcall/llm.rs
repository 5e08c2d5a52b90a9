//! Model calls.

use wattle_graph::call::CallKind;
use wattle_graph::event::Tokens;
use wattle_graph::failure::Failure;
use wattle_graph::llm::{Completion, CompletionRequest, Delta};

use crate::grant::Grants;
use crate::hostcall::HostCall;
use crate::ports::Caller;

/// Function that returns the model behind a route.
pub const ROUTE: &str = "llm.route";

/// Checks that the grants allow a model route.
///
/// # Errors
///
/// `denied` without a grant, with the line to add and its place.
pub(crate) fn check_route_grant(
    grants: &Grants,
    caller: &Caller,
    route: &str,
) -> Result<(), Failure> {
    let allows = |grants: &Grants| grants.llm.contains(route);
    if allows(grants) {
        return Ok(());
    }
    let what = format!("may not use the model route `{route}`");
    let change = format!("add `llm = [\"{route}\"]`");
    Err(grants.denial(caller, &what, &change, allows))
}

impl HostCall for CompletionRequest {
    type Output = Completion;
    const FUNCTION: &'static str = CallKind::Complete.name();
    const LOGS_START: bool = true;

    fn summary(&self) -> String {
        match &self.response_schema {
            Some(schema) => format!("{} -> {}", self.route, schema.name),
            None => self.route.clone(),
        }
    }

    fn check_allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        check_route_grant(grants, caller, &self.route)
    }

    fn is_structured_output(&self) -> bool {
        self.response_schema.is_some()
    }

    fn tokens(answer: &Completion) -> Option<Tokens> {
        Some(Tokens {
            input: answer.usage.input_tokens.unwrap_or(0),
            output: answer.usage.output_tokens.unwrap_or(0),
        })
    }

    fn set_message_id(answer: &mut Completion, id: String) {
        answer.id = Some(id);
    }

    fn deltas(answer: &Completion) -> Vec<Delta> {
        answer.deltas()
    }
}
