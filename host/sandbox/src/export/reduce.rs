//! Runs a reducer of a plugin. A reducer gets no gate, because it must be a pure function.

use serde_json::Value;
use wattle_graph::id::AppName;
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::ports::sandbox::GuestError;

use crate::export::output_json::OutputJson;
use crate::export::{GuestCall, check_output_size, missing_export};
use crate::json::to_text;

/// Runs a reducer of an app and parses its result.
pub(crate) async fn run(
    call: GuestCall<'_>,
    app: &AppName,
    reducer: &str,
    current: Option<Value>,
    updates: Vec<Value>,
) -> Result<Value, GuestError> {
    let (callee, limits) = (call.callee, call.limits);
    let Some(export) = &call.code.exports.reducer else {
        return Err(missing_export(callee, "reducer"));
    };
    let mut live = call.instantiate().await?;
    // The host makes no texts for a guest that waits for its place or for memory.
    let current = current.map(|value| to_text(&value));
    let updates: Vec<String> = updates.into_iter().map(|value| to_text(&value)).collect();
    let bytes = current.iter().chain(&updates).map(String::len).sum();
    if let Err(refused) = live.hold_texts(bytes) {
        return Err(live.refuse(refused).await);
    }
    let done = live.call(&export.reduce, (reducer.to_owned(), current, updates)).await;
    let text = live.finish_fallible(done).await?;
    check_output_size(text.len(), limits, callee)?;
    let parse = || OutputJson::new(limits, callee).parse(&text, "a value");
    block_in_place_in_turn(app, is_long_parse(text.len()), parse).await
}
