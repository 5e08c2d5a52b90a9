//! Runs a node of a plugin and converts its outcome.

use serde::de::DeserializeOwned;
use serde_json::Value;
use wattle_graph::event::Send as SendTask;
use wattle_graph::id::NodeName;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{Ended, NodeCall, NodeOutcome};

use crate::bindings::exports::wattle::plugin::node;
use crate::bindings::wattle::plugin::types;
use crate::call::write::{self, not_json};
use crate::call::{Call, Live, bad_answer, not_exported, within_output};
use crate::code::NodeExport;
use crate::ended::Place;
use crate::json;

/// Runs a node. Errors of wasmtime and invalid outcomes become errors of the guest call.
pub(crate) async fn run(call: Call<'_>, request: NodeCall) -> Result<NodeOutcome, Ended> {
    let (place, limits) = (call.place, call.limits);
    let Some(export) = &call.code.exports.node else {
        return Err(not_exported(place, "node"));
    };
    let input = json::text(&request.input);
    drop(request.input);
    let context = node::TaskContext {
        node: request.node,
        graph: request.graph.into(),
        thread_id: request.thread.into(),
        run_id: request.run.into(),
        task_id: request.task.into(),
        step: request.step,
        attempt: request.attempt,
        remaining_steps: request.remaining_steps,
        tenant: request.tenant,
        context: json::text(&request.context),
        extra: extra(&request.config, request.error.as_ref()),
    };
    let mut live = call.start().await?;
    let done = invoke(&mut live, export, context, input).await;
    match live.settle(done)? {
        Ok(outcome) => into_outcome(outcome, limits, place),
        Err(failure) => Err(Ended::Failure(failure.into())),
    }
}

/// Returns the extension fields of the task context (`extra`): the configuration of the node, and
/// for an error handler the failure that it handles.
fn extra(config: &Value, error: Option<&Value>) -> Vec<(String, String)> {
    let config = Some(config).filter(|config| !config.is_null()).map(|config| ("config", config));
    let error = error.map(|error| ("error", error));
    let entry = |(key, value): (&str, &Value)| (key.to_owned(), json::text(value));
    config.into_iter().chain(error).map(entry).collect()
}

async fn invoke(
    live: &mut Live<'_>,
    export: &NodeExport,
    context: node::TaskContext,
    input: String,
) -> wasmtime::Result<Result<node::Outcome, types::Failure>> {
    let run = export.run(&mut live.store, &live.instance)?;
    let (answer,) = run.call_async(&mut live.store, (context, input)).await?;
    Ok(answer)
}

fn into_outcome(
    outcome: node::Outcome,
    limits: &Limits,
    place: Place<'_>,
) -> Result<NodeOutcome, Ended> {
    within_output(size(&outcome), limits, place)?;
    let for_parent = flag(&outcome.extra, "parent", place)?;
    let writes = outcome.updates.into_iter().map(|update| write::from_guest(update, place));
    let sends = outcome.sends.into_iter().map(|send| into_send(send, place));
    Ok(NodeOutcome {
        writes: writes.collect::<Result<_, _>>()?,
        goto: outcome.goto,
        sends: sends.collect::<Result<_, _>>()?,
        for_parent,
    })
}

/// Parses a value of `extra`.
fn named<T: DeserializeOwned>(
    extra: &[(String, String)],
    key: &str,
    place: Place<'_>,
) -> Result<Option<T>, Ended> {
    let Some(text) = json::extra(extra, key) else { return Ok(None) };
    let wrong = |error: &dyn std::fmt::Display| {
        bad_answer(place, &format!("an invalid `extra.{key}`"), error)
    };
    let value = json::read(text).map_err(|error| wrong(&error))?;
    serde_json::from_value(value).map_err(|error| wrong(&error))
}

fn flag(extra: &[(String, String)], key: &str, place: Place<'_>) -> Result<bool, Ended> {
    Ok(named(extra, key, place)?.unwrap_or_default())
}

fn size(outcome: &node::Outcome) -> usize {
    let updates = outcome.updates.iter().map(write::bytes);
    let sends = outcome.sends.iter().map(|send| send.node.len() + send.input.len());
    let goto = outcome.goto.iter().map(String::len);
    updates.chain(sends).chain(goto).sum()
}

fn into_send(send: types::Send, place: Place<'_>) -> Result<SendTask, Ended> {
    let input = json::read(&send.input)
        .map_err(|error| bad_answer(place, &not_json("a send to", &send.node), &error))?;
    let node = NodeName::new(&send.node)
        .map_err(|error| bad_answer(place, "a send with an invalid node name", &error))?;
    let timeout_ms = named(&send.extra, "timeout_ms", place)?;
    Ok(SendTask { node, input, timeout_ms })
}
