//! Implements `tools` with the script.

use crate::failure::Failure;
use crate::testing::state::with;
use crate::tool::{ToolInfo, ToolOutput};
use crate::tools::Call;

pub(crate) fn list() -> Result<Vec<ToolInfo>, Failure> {
    with(|state| state.tools.iter().map(|(info, _)| info.clone()).collect())
}

pub(crate) fn call(call: Call) -> Result<ToolOutput, Failure> {
    let script = with(|state| {
        state.notes.tools.push(call.clone());
        let mut tools = state.tools.iter();
        let is_meant = |info: &ToolInfo| {
            info.name == call.tool || info.reference() == Some(call.tool.as_str())
        };
        tools.find(|(info, _)| is_meant(info)).map(|(_, script)| script.clone())
    })?;
    let script = script.ok_or_else(|| {
        let message = format!("there is no tool `{}`; add it with `FakeHost::tool`", call.tool);
        Failure::not_found(message)
    })?;
    let mut script = script.borrow_mut();
    script(&call.arguments)
}

pub(crate) fn call_all(calls: Vec<Call>) -> Vec<Result<ToolOutput, Failure>> {
    calls.into_iter().map(call).collect()
}
