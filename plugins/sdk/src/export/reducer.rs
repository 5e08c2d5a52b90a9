//! The entry of a reducer.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::json;

/// The description of a reducer and the function that calls it.
#[derive(Debug, Clone, Copy)]
pub struct ReducerEntry {
    /// Name of the reducer.
    pub name: &'static str,
    /// Documentation of the reducer.
    pub doc: &'static str,
    /// Combines the current value with the updates. Both are JSON text, and so is the result.
    pub reduce: fn(Option<&str>, &[String]) -> Result<String, Failure>,
}

/// A reducer. `#[reducer]` implements it for a type with the name of the function.
pub trait Reducer {
    /// The entry of the reducer.
    const ENTRY: ReducerEntry;
}

/// Parses the JSON values, calls the reducer, and serializes its result.
pub fn reduce<C: DeserializeOwned, U: DeserializeOwned, R: Serialize>(
    reducer: fn(Option<C>, Vec<U>) -> Result<R, Failure>,
    current: Option<&str>,
    updates: &[String],
) -> Result<String, Failure> {
    let current = current.map(|text| json::read("the current value", text)).transpose()?;
    let updates = updates
        .iter()
        .enumerate()
        .map(|(index, text)| json::read(format_args!("update {index}"), text))
        .collect::<Result<_, _>>()?;
    Ok(json::to_text("the reduced value", &reducer(current, updates)?)?.into_string())
}
