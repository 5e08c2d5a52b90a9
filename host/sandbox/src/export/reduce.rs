//! Runs a reducer of a plugin. A reducer gets no gate, because it must be a pure function.

use serde_json::Value;
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::ports::sandbox::GuestError;

use crate::export::output_json::OutputJson;
use crate::export::{GuestCall, check_output_size, missing_export};
use crate::json;

/// Runs a reducer and parses its result.
pub(crate) async fn run(
    call: GuestCall<'_>,
    reducer: &str,
    current: Option<Value>,
    updates: Vec<Value>,
) -> Result<Value, GuestError> {
    let (callee, limits, owner) = (call.callee, call.limits, call.work_owner());
    let Some(export) = &call.code.exports.reducer else {
        return Err(missing_export(callee, "reducer"));
    };
    let current = current.map(|value| json::to_text(&value));
    let updates: Vec<String> = updates.iter().map(json::to_text).collect();
    let mut live = call.instantiate().await?;
    let done = live.call(&export.reduce, (reducer.to_owned(), current, updates)).await;
    let text = live.finish_fallible(done).await?;
    check_output_size(text.len(), limits, callee)?;
    let parse = || OutputJson::new(limits, callee).parse(&text, "a value");
    block_in_place_in_turn(owner, is_long_parse(text.len()), parse).await
}
