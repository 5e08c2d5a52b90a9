//! Calls a function of a typed component as a tool.

use serde_json::{Value, json};
use wasmtime::component::Val;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::Part;
use wattle_graph::tool::ToolOutput;
use wattle_run::blocking::{are_large_values, block_in_place_in_turn};
use wattle_run::caller_id::CallerId;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::GuestError;

use crate::export::{GuestCall, check_output_size, invalid_result, output_exceeded};
use crate::guest_error::{Callee, guests_memory_exhausted};
use crate::typed::TypedFunction;
use crate::typed::from_val::to_json;
use crate::typed::to_val;
use crate::typed::value_error::{ValueError, ValueFault};
use crate::typed::wit_type::WitType;

/// Minimum number of values in a result whose conversion would delay other tasks on the same
/// thread.
const MANY_VALUES: usize = 1_000;

/// Memory that the engine takes for a flag of a result, in bytes: a `String`, and its place in a
/// list. The guest passes a flag as one bit, and the engine counts only the bytes of its name.
const FLAG_BYTES: usize = 64;

/// Calls a function. `owner` is the owner of the long work that converts large values.
pub(crate) async fn run(
    call: GuestCall<'_>,
    function: &TypedFunction,
    arguments: &Value,
    owner: CallerId,
) -> Result<ToolOutput, GuestError> {
    let limits = Limits { lift_bytes: lift_bytes(function, call.limits), ..call.limits.clone() };
    let call = GuestCall { limits: &limits, ..call };
    let (callee, limits) = (call.callee, call.limits);
    let of_all = call.code.guests_memory.total();
    let mut live = call.instantiate().await?;
    // The values are created after the wait for memory, so a call that waits holds no values.
    let mut memory = live.values_memory();
    let params = block_in_place_in_turn(owner, are_large_values([arguments]), || {
        to_val::arguments(&function.params, arguments, &mut memory)
    });
    let params = match params.await {
        Ok(params) => params,
        Err(error) => {
            let refused = match error.fault() {
                ValueFault::Mismatch => mismatched_arguments(&function.tool, &error),
                ValueFault::Limit => large_arguments(&function.tool, &error, memory.allowed()),
                ValueFault::GuestsMemory => {
                    GuestError::Host(guests_memory_exhausted(callee, of_all))
                }
            };
            return Err(live.refuse(refused).await);
        }
    };
    // The call replaces this value by the result.
    let mut results = vec![Val::Bool(false); usize::from(function.result.is_some())];
    let done = live.call_dynamic(function.index, &params, &mut results).await;
    drop(params);
    live.release_values();
    live.finish(done).await?;
    let Some(value) = results.pop() else { return Ok(ToolOutput::default()) };
    let is_long = has_many_values(&value);
    block_in_place_in_turn(owner, is_long, || into_output(function, value, limits, callee)).await
}

/// Returns the number of bytes that the function may pass to the host. If a list in the result has
/// flags, divides the limit by the ratio of the memory of a flag to the length of its name.
fn lift_bytes(function: &TypedFunction, limits: &Limits) -> u64 {
    let shortest = function.result.as_ref().and_then(WitType::shortest_listed_flag);
    match shortest {
        Some(bytes) => limits.lift_bytes / FLAG_BYTES.div_ceil(bytes.max(1)) as u64,
        None => limits.lift_bytes,
    }
}

fn mismatched_arguments(tool: &str, error: &ValueError) -> GuestError {
    let text = format!("the arguments of `{tool}` do not match its schema: {error}");
    let details = json!({ "violations": [error.to_string()] });
    GuestError::Failure(Failure::new(code::INVALID, text).with_details(details))
}

fn large_arguments(tool: &str, error: &ValueError, allowed: u64) -> GuestError {
    let text = format!("the tool `{tool}` was not called: {error}");
    let details = json!({ "limit": "values_bytes", "allowed": allowed });
    GuestError::Failure(Failure::new(code::LIMIT, text).with_details(details))
}

/// Returns true if a value consists of many values.
fn has_many_values(value: &Val) -> bool {
    let mut left = MANY_VALUES;
    exhausts(value, &mut left)
}

fn exhausts(value: &Val, left: &mut usize) -> bool {
    *left = left.saturating_sub(1);
    if *left == 0 {
        return true;
    }
    match value {
        Val::List(items) | Val::Tuple(items) => items.iter().any(|item| exhausts(item, left)),
        Val::Record(fields) => fields.iter().any(|(_, field)| exhausts(field, left)),
        Val::Variant(_, Some(inner))
        | Val::Option(Some(inner))
        | Val::Result(Ok(Some(inner)) | Err(Some(inner))) => exhausts(inner, left),
        _ => false,
    }
}

/// Converts the result of a function. The error of a WIT `result` becomes an output with
/// `is_error`.
fn into_output(
    function: &TypedFunction,
    value: Val,
    limits: &Limits,
    callee: Callee<'_>,
) -> Result<ToolOutput, GuestError> {
    let (ty, value, is_error) = match (function.result.as_ref(), value) {
        (Some(WitType::Result { ok, .. }), Val::Result(Ok(value))) => (ok.as_deref(), value, false),
        (Some(WitType::Result { err, .. }), Val::Result(Err(value))) => {
            (err.as_deref(), value, true)
        }
        (ty, value) => (ty, Some(Box::new(value)), false),
    };
    let (Some(ty), Some(value)) = (ty, value) else {
        return Ok(ToolOutput { is_error, ..ToolOutput::default() });
    };
    let value = to_json(ty, *value, limits.output_bytes).map_err(|error| {
        if error.fault() == ValueFault::Limit {
            return output_exceeded(limits, callee);
        }
        invalid_result(callee, "a value that JSON cannot represent", &error)
    })?;
    let text = match &value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    check_output_size(text.len(), limits, callee)?;
    // The journal reads `null` as no value, so a re-executed caller would get another output.
    let structured = Some(value).filter(|value| !value.is_null());
    Ok(ToolOutput { content: vec![Part::Text(text)], structured, is_error, updates: Vec::new() })
}
