//! Tools, answered by the script.

use crate::failure::Failure;
use crate::json::{Extra, empty_object_schema};
use crate::testing::state::with;
use crate::tool::{ToolInfo, ToolOutput};
use crate::tools::Call;

pub(crate) fn list() -> Result<Vec<ToolInfo>, Failure> {
    let info = |name: &str| ToolInfo {
        name: name.to_owned(),
        description: String::new(),
        arguments_schema: empty_object_schema(),
        accepts_invalid: false,
        extra: Extra::new(),
    };
    with(|state| state.tools.iter().map(|(name, _)| info(name)).collect())
}

pub(crate) fn call(call: Call) -> Result<ToolOutput, Failure> {
    let script = with(|state| {
        let mut tools = state.tools.iter();
        tools.find(|(name, _)| *name == call.tool).map(|(_, script)| script.clone())
    })?;
    let script = script.ok_or_else(|| {
        Failure::not_found(format!("there is no tool `{}`; set `FakeHost::tool`", call.tool))
    })?;
    let mut script = script.borrow_mut();
    let answer = script(&call.arguments);
    with(|state| state.notes.tools.push(call))?;
    answer
}

pub(crate) fn call_all(calls: Vec<Call>) -> Vec<Result<ToolOutput, Failure>> {
    calls.into_iter().map(call).collect()
}
