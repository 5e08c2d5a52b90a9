//! The metadata that clients attach to threads, runs and checkpoints: its size limit, how a filter
//! matches it, and the key that marks threads of stateless runs.
//!
//! Every entry point of the engine uses these checks, so that the limit is the same for every API.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};

use crate::limit::METADATA_BYTES;

/// Metadata keys that hosts set when a thread runs. Short values under them do not count, so that a
/// thread whose metadata has the maximum size can still run.
const HOST_KEYS: [&str; 2] = ["graph_id", "assistant_id"];

/// Metadata key that marks the thread of a stateless run. Lists of clients omit such threads.
pub const STATELESS_MARKER: &str = "__temporary";

/// Maximum bytes of a value that does not count: more than the longest names of an app and a graph.
const HOST_VALUE_BYTES: usize = 512;

/// Checks the size of metadata.
///
/// # Errors
///
/// `limit`, with the name of the field, its size and the limit.
pub fn check_size(facts: &BTreeMap<String, Value>) -> Result<(), Failure> {
    let bytes = json_bytes(facts);
    if bytes <= METADATA_BYTES {
        return Ok(());
    }
    let text = format!(
        "`metadata` would have {bytes} bytes, more than the limit of {METADATA_BYTES}; move \
         large values to the state or the memory"
    );
    let details = json!({
        "limit": "metadata_bytes", "field": "metadata", "bytes": bytes,
        "limit_bytes": METADATA_BYTES,
    });
    Err(Failure::new(code::LIMIT, text).with_details(details))
}

/// Checks the size of metadata after a merge. Metadata that exceeds the limit already, since it was
/// stored before the limit existed, may stay or shrink.
///
/// # Errors
///
/// See [`check_size`].
pub(crate) fn check_merged_size(
    known: &BTreeMap<String, Value>,
    added: &BTreeMap<String, Value>,
) -> Result<(), Failure> {
    if added.is_empty() {
        return Ok(());
    }
    let mut all = known.clone();
    all.extend(added.clone());
    if json_bytes(&all) <= json_bytes(known) { Ok(()) } else { check_size(&all) }
}

/// Returns true if `known` contains `wanted`. Objects in `known` may have additional fields.
pub fn json_contains(known: &Value, wanted: &Value) -> bool {
    match (known, wanted) {
        (Value::Object(known), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, value)| known.get(name).is_some_and(|known| json_contains(known, value))),
        _ => known == wanted,
    }
}

/// Returns the size of metadata as JSON, in bytes.
fn json_bytes(facts: &BTreeMap<String, Value>) -> usize {
    let counted = facts.iter().filter(|(name, value)| !is_host_entry(name, value));
    // Braces count once; quotes, a colon and a comma count for each name.
    let each = counted.map(|(name, value)| name.len() + value.to_string().len() + 4);
    each.sum::<usize>() + 2
}

fn is_host_entry(name: &str, value: &Value) -> bool {
    HOST_KEYS.contains(&name) && value.as_str().is_some_and(|text| text.len() <= HOST_VALUE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts<const N: usize>(facts: [(&str, usize); N]) -> BTreeMap<String, Value> {
        facts.into_iter().map(|(name, bytes)| (name.to_owned(), json!("x".repeat(bytes)))).collect()
    }

    /// Length of the longest string under a key of one letter.
    const LARGEST: usize = METADATA_BYTES - 9;

    #[test]
    fn metadata_of_the_maximum_size_is_allowed() {
        check_size(&facts([("a", LARGEST)])).unwrap();
        let refused = check_size(&facts([("a", LARGEST + 1)])).unwrap_err();
        assert_eq!(refused.code, code::LIMIT);
        let told = json!({
            "limit": "metadata_bytes", "field": "metadata", "bytes": METADATA_BYTES + 1,
            "limit_bytes": METADATA_BYTES,
        });
        assert_eq!(refused.details, Some(told));
    }

    #[test]
    fn metadata_over_the_limit_can_only_shrink() {
        let (small, full) = (facts([("a", 9)]), facts([("a", LARGEST)]));
        let large = facts([("a", 2 * LARGEST)]);
        check_merged_size(&small, &facts([("a", LARGEST)])).unwrap();
        check_merged_size(&full, &facts([("b", 1)])).unwrap_err();
        check_merged_size(&large, &BTreeMap::new()).unwrap();
        check_merged_size(&large, &facts([("a", LARGEST + 9)])).unwrap();
        check_merged_size(&large, &facts([("b", 1)])).unwrap_err();
    }

    #[test]
    fn short_values_of_host_keys_do_not_count() {
        let full = facts([("a", LARGEST)]);
        check_merged_size(&full, &facts([("graph_id", 300), ("assistant_id", 36)])).unwrap();
        check_merged_size(&full, &facts([("graph_id", HOST_VALUE_BYTES + 1)])).unwrap_err();
    }
}
