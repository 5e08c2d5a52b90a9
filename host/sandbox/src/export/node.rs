//! Runs a node of a plugin and converts its outcome.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wattle_graph::event::Send as SendTask;
use wattle_graph::failure::Failure;
use wattle_graph::id::NodeName;
use wattle_graph::json_text::JsonWithText;
use wattle_graph::plan::CutInput;
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::caller_id::CallerId;
use wattle_run::ports::sandbox::{GuestError, InputConversation, NodeCall, NodeOutcome};

use crate::bindings::exports::wattle::plugin::node;
use crate::bindings::wattle::plugin::types;
use crate::export::output_json::OutputJson;
use crate::export::write::{self, NamedText};
use crate::export::{GuestCall, check_output_size, invalid_result, missing_export};
use crate::guest_error::Callee;
use crate::json::{extra_bytes, extra_field, to_text};

/// Runs a node. Errors of wasmtime and invalid outcomes become errors of the guest call.
/// Long work on the outcome counts for `owner`.
pub(crate) async fn run(
    call: GuestCall<'_>,
    request: NodeCall,
    owner: CallerId,
) -> Result<NodeOutcome, GuestError> {
    let (callee, limits) = (call.callee, call.limits);
    let Some(export) = &call.code.exports.node else {
        return Err(missing_export(callee, "node"));
    };
    let mut live = call.instantiate().await?;
    // The host makes no texts for a guest that waits for its place or for memory.
    let input = input_text(&request.guest_input(), callee)?;
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
        context: request.context.text().to_owned(),
        extra: context_extra(
            &request.config,
            request.error.as_ref(),
            request.conversation.as_ref(),
        ),
    };
    let bytes = input.len() + context.context.len() + extra_bytes(&context.extra);
    if let Err(refused) = live.hold_texts(bytes) {
        return Err(live.refuse(refused).await);
    }
    let done = live.call(&export.run, (context, input)).await;
    let outcome = live.finish_fallible(done).await?;
    let bytes = outcome_size(&outcome);
    check_output_size(bytes, limits, callee)?;
    let convert = || into_outcome(outcome, &OutputJson::new(limits, callee));
    block_in_place_in_turn(owner, is_long_parse(bytes), convert).await
}

/// Returns the input as JSON text.
fn input_text(input: &CutInput<'_>, callee: Callee<'_>) -> Result<String, GuestError> {
    input.text().map_err(|error| {
        GuestError::Host(Failure::internal(format!("cannot write the input of {callee}: {error}")))
    })
}

/// Returns the extension fields of the task context (`extra`): the configuration of the node, for an
/// error handler the failure that it handles, and which part of its conversation the input has.
fn context_extra(
    config: &JsonWithText,
    error: Option<&Value>,
    conversation: Option<&InputConversation>,
) -> Vec<(String, String)> {
    let config = (!config.is_null()).then(|| ("config".to_owned(), config.text().to_owned()));
    let error = error.map(|error| ("error".to_owned(), to_text(error)));
    let conversation = conversation.map(|InputConversation { channel, from, length }| {
        let text = to_text(&json!({ "channel": channel, "from": from, "length": length }));
        ("conversation".to_owned(), text)
    });
    config.into_iter().chain(error).chain(conversation).collect()
}

fn into_outcome(outcome: node::Outcome, json: &OutputJson<'_>) -> Result<NodeOutcome, GuestError> {
    let for_parent = extra_flag(&outcome.extra, "parent", json)?;
    let writes = outcome.updates.into_iter().map(|update| write::into_write(update, json));
    let sends = outcome.sends.into_iter().map(|send| into_send(send, json));
    Ok(NodeOutcome {
        writes: writes.collect::<Result<_, _>>()?,
        goto: outcome.goto,
        sends: sends.collect::<Result<_, _>>()?,
        for_parent,
    })
}

/// Parses a value of `extra`.
fn parse_extra_field<T: DeserializeOwned>(
    extra: &[(String, String)],
    key: &str,
    json: &OutputJson<'_>,
) -> Result<Option<T>, GuestError> {
    let Some(text) = extra_field(extra, key) else { return Ok(None) };
    let value = json.parse(text, format_args!("an `extra.{key}`"))?;
    serde_json::from_value(value).map_err(|error| {
        invalid_result(json.callee(), &format!("an invalid `extra.{key}`"), &error)
    })
}

fn extra_flag(
    extra: &[(String, String)],
    key: &str,
    json: &OutputJson<'_>,
) -> Result<bool, GuestError> {
    Ok(parse_extra_field(extra, key, json)?.unwrap_or_default())
}

fn outcome_size(outcome: &node::Outcome) -> usize {
    let updates = outcome.updates.iter().map(write::update_size);
    let send = |send: &types::Send| send.node.len() + send.input.len() + extra_bytes(&send.extra);
    let goto = outcome.goto.iter().map(String::len);
    let rest: usize = updates.chain(outcome.sends.iter().map(send)).chain(goto).sum();
    rest + extra_bytes(&outcome.extra)
}

fn into_send(send: types::Send, json: &OutputJson<'_>) -> Result<SendTask, GuestError> {
    let input = json.parse(&send.input, NamedText::new("a send to", &send.node))?;
    let node = NodeName::new(&send.node).map_err(|error| {
        invalid_result(json.callee(), "a send with an invalid node name", &error)
    })?;
    let timeout_ms = parse_extra_field(&send.extra, "timeout_ms", json)?;
    Ok(SendTask { node, input, timeout_ms })
}
