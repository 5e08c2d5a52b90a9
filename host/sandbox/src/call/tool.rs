//! Calls a tool of a plugin and converts its output.

use wattle_graph::tool::ToolOutput;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{Ended, ToolCall};

use crate::bindings::exports::wattle::plugin::tool;
use crate::bindings::wattle::plugin::types;
use crate::call::{Call, Live, bad_answer, not_exported, within_output, write};
use crate::ended::Place;
use crate::import::message::{into_part, part_bytes};
use crate::json;

/// Calls a tool. Errors of wasmtime and invalid outputs become errors of the guest call.
pub(crate) async fn run(call: Call<'_>, request: ToolCall) -> Result<ToolOutput, Ended> {
    let (place, limits) = (call.place, call.limits);
    let Some(indices) = &call.code.exports.tool else {
        return Err(not_exported(place, "tool"));
    };
    let arguments = json::text(&request.arguments);
    let context = tool::CallContext {
        tool: request.tool,
        call_id: request.call_id,
        thread_id: request.thread.map(Into::into),
        task_id: request.task.map(Into::into),
        tenant: request.tenant,
        violations: request.violations,
        extra: request.state.iter().map(|state| ("state".to_owned(), json::text(state))).collect(),
    };
    let mut live = call.start().await?;
    let done = invoke(&mut live, indices, &context, arguments).await;
    match live.settle(done)? {
        Ok(output) => into_output(output, limits, place),
        Err(failure) => Err(Ended::Failure(failure.into())),
    }
}

async fn invoke(
    live: &mut Live<'_>,
    indices: &tool::GuestIndices,
    context: &tool::CallContext,
    arguments: String,
) -> wasmtime::Result<Result<tool::ToolOutput, types::Failure>> {
    let guest = indices.load(&mut live.store, &live.instance)?;
    guest.call_call(&mut live.store, context, &arguments).await
}

fn into_output(
    output: tool::ToolOutput,
    limits: &Limits,
    place: Place<'_>,
) -> Result<ToolOutput, Ended> {
    within_output(size(&output), limits, place)?;
    let structured = output.structured.as_deref().map(json::read).transpose().map_err(|error| {
        bad_answer(place, "structured data that is not a valid JSON document", &error)
    })?;
    let parts = output.content.into_iter().map(|part| {
        into_part(part, "content").map_err(|failure| bad_answer(place, "invalid content", &failure))
    });
    let updates = output.updates.into_iter().map(|update| write::from_guest(update, place));
    Ok(ToolOutput {
        content: parts.collect::<Result<_, _>>()?,
        structured,
        is_error: output.is_error,
        updates: updates.collect::<Result<_, _>>()?,
    })
}

fn size(output: &tool::ToolOutput) -> usize {
    let content: usize = output.content.iter().map(part_bytes).sum();
    let updates: usize = output.updates.iter().map(write::bytes).sum();
    content + updates + output.structured.as_ref().map_or(0, String::len)
}
