//! Runs a reducer of a plugin. A reducer gets no gate, because it must be a pure function.

use serde_json::Value;
use wattle_run::ports::sandbox::Ended;

use crate::bindings::exports::wattle::plugin::reducer;
use crate::bindings::wattle::plugin::types;
use crate::call::{Call, Live, bad_answer, not_exported, within_output};
use crate::json;

/// Runs a reducer and parses its result.
pub(crate) async fn run(
    call: Call<'_>,
    reducer: &str,
    current: Option<Value>,
    updates: Vec<Value>,
) -> Result<Value, Ended> {
    let (place, limits) = (call.place, call.limits);
    let Some(indices) = &call.code.exports.reducer else {
        return Err(not_exported(place, "reducer"));
    };
    let current = current.map(|value| json::text(&value));
    let updates: Vec<String> = updates.iter().map(json::text).collect();
    let mut live = call.start().await?;
    let done = invoke(&mut live, indices, reducer, current.as_ref(), &updates).await;
    let answer = live.settle(done)?;
    let text = answer.map_err(|failure| Ended::Failure(failure.into()))?;
    within_output(text.len(), limits, place)?;
    serde_json::from_str(&text)
        .map_err(|error| bad_answer(place, "a value that is not a valid JSON document", &error))
}

async fn invoke(
    live: &mut Live<'_>,
    indices: &reducer::GuestIndices,
    name: &str,
    current: Option<&String>,
    updates: &[String],
) -> wasmtime::Result<Result<String, types::Failure>> {
    let guest = indices.load(&mut live.store, &live.instance)?;
    guest.call_reduce(&mut live.store, name, current, updates).await
}
