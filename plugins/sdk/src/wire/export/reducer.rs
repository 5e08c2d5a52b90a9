//! The export `reducer`.

use crate::bindings::imports::wattle::plugin::types;
use crate::bindings::reducer::exports::wattle::plugin::reducer as raw;
use crate::export::ReducerEntry;
use crate::failure::Failure;
use crate::wire::panic::report_panics;

/// Returns the descriptions of all reducers.
pub fn list_reducers(entries: &[ReducerEntry]) -> Vec<raw::ReducerInfo> {
    report_panics();
    let info = |entry: &ReducerEntry| raw::ReducerInfo {
        name: entry.name.to_owned(),
        doc: entry.doc.to_owned(),
        extra: Vec::new(),
    };
    entries.iter().map(info).collect()
}

/// Calls the reducer with a name. Fails with `not-found` if it does not exist.
pub fn reduce_named(
    entries: &[ReducerEntry],
    name: &str,
    current: Option<&str>,
    updates: &[String],
) -> Result<String, types::Failure> {
    report_panics();
    let entry = entries
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| Failure::not_found(format!("the plugin has no reducer `{name}`")))?;
    Ok((entry.reduce)(current, updates)?)
}
