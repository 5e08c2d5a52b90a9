//! Calls a tool of a plugin and converts its output.

use wattle_graph::tool::ToolOutput;
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::caller_id::CallerId;
use wattle_run::ports::sandbox::{GuestError, PluginToolCall};

use crate::bindings::exports::wattle::plugin::tool;
use crate::export::output_json::OutputJson;
use crate::export::{GuestCall, check_output_size, missing_export, write};
use crate::import::message::{into_part, part_bytes, part_json_bytes};
use crate::json::{extra_bytes, to_text};

/// Calls a tool. Errors of wasmtime and invalid outputs become errors of the guest call. Long work
/// on the output counts for `owner`.
pub(crate) async fn run(
    call: GuestCall<'_>,
    request: PluginToolCall,
    owner: CallerId,
) -> Result<ToolOutput, GuestError> {
    let (callee, limits) = (call.callee, call.limits);
    let Some(export) = &call.code.exports.tool else {
        return Err(missing_export(callee, "tool"));
    };
    let mut live = call.instantiate().await?;
    // The host makes no texts for a guest that waits for its place or for memory.
    let arguments = to_text(&request.arguments);
    let context = tool::CallContext {
        tool: request.tool,
        call_id: request.call_id,
        thread_id: request.thread.map(Into::into),
        task_id: request.task.map(Into::into),
        tenant: request.tenant,
        violations: request.violations,
        extra: request.state.iter().map(|state| ("state".to_owned(), to_text(state))).collect(),
    };
    if let Err(refused) = live.hold_texts(arguments.len() + extra_bytes(&context.extra)) {
        return Err(live.refuse(refused).await);
    }
    let done = live.call(&export.call, (context, arguments)).await;
    let output = live.finish_fallible(done).await?;
    check_output_size(output_size(&output), limits, callee)?;
    let is_long = is_long_parse(json_bytes(&output));
    let convert = || into_output(output, &OutputJson::new(limits, callee));
    block_in_place_in_turn(owner, is_long, convert).await
}

fn into_output(output: tool::ToolOutput, json: &OutputJson<'_>) -> Result<ToolOutput, GuestError> {
    let structured = output.structured.as_deref();
    let structured = structured.map(|text| json.parse(text, "structured data")).transpose()?;
    let parts = output.content.into_iter().map(|part| {
        into_part(part, json.as_call("content"))
            .map_err(|failure| json.refused("invalid content", failure))
    });
    let updates = output.updates.into_iter().map(|update| write::into_write(update, json));
    Ok(ToolOutput {
        content: parts.collect::<Result<_, _>>()?,
        structured,
        is_error: output.is_error,
        updates: updates.collect::<Result<_, _>>()?,
    })
}

/// Returns the length of the JSON texts of an output, in bytes.
fn json_bytes(output: &tool::ToolOutput) -> usize {
    let content: usize = output.content.iter().map(part_json_bytes).sum();
    let updates: usize = output.updates.iter().map(|update| update.value.len()).sum();
    content + updates + output.structured.as_ref().map_or(0, String::len)
}

fn output_size(output: &tool::ToolOutput) -> usize {
    let content: usize = output.content.iter().map(part_bytes).sum();
    let updates: usize = output.updates.iter().map(write::update_size).sum();
    content + updates + output.structured.as_ref().map_or(0, String::len)
}
