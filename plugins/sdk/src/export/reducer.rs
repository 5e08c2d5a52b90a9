//! The entry of a reducer.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::json;

/// What the host wants to know of a reducer, and how to call it.
#[derive(Debug, Clone, Copy)]
pub struct ReducerEntry {
    /// Its name.
    pub name: &'static str,
    /// Its documentation.
    pub doc: &'static str,
    /// Combines documents.
    pub reduce: fn(Option<&str>, &[String]) -> Result<String, Failure>,
}

/// Implemented by `#[reducer]` on a type with the name of the function.
pub trait Reducer {
    /// The entry.
    const ENTRY: ReducerEntry;
}

/// Reads the documents, reduces them, writes the result.
pub fn reduce<C: DeserializeOwned, U: DeserializeOwned, R: Serialize>(
    reducer: fn(Option<C>, Vec<U>) -> Result<R, Failure>,
    current: Option<&str>,
    updates: &[String],
) -> Result<String, Failure> {
    let current = current.map(|text| json::read("the current value", text)).transpose()?;
    let updates = updates
        .iter()
        .enumerate()
        .map(|(index, text)| json::read(&format!("update {index}"), text))
        .collect::<Result<_, _>>()?;
    Ok(json::to_value("the reduced value", reducer(current, updates)?)?.to_string())
}
