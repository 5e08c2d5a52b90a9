//! Free facts that clients give to threads, runs and checkpoints: how large they may be.
//!
//! Every door to the engine passes here, so no API can store more than another.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};

use crate::limit::METADATA_BYTES;

/// Facts that hosts say of a thread when it runs. They count for nothing as long as they are short,
/// so that a thread with as many facts as it may have can still run.
const OF_HOSTS: [&str; 2] = ["graph_id", "assistant_id"];

/// Bytes of a fact that is short: the longest name of an app and of a graph, and then some.
const SHORT_BYTES: usize = 512;

/// Refuses facts that are too large together.
///
/// # Errors
///
/// `limit`, with the name of the field, its size and the limit.
pub fn check(facts: &BTreeMap<String, Value>) -> Result<(), Failure> {
    let bytes = bytes(facts);
    if bytes <= METADATA_BYTES {
        return Ok(());
    }
    let text = format!(
        "`metadata` would have {bytes} bytes, more than the limit of {METADATA_BYTES}; put what is \
         large into the state or the memory"
    );
    let details = json!({
        "limit": "metadata_bytes", "field": "metadata", "bytes": bytes,
        "limit_bytes": METADATA_BYTES,
    });
    Err(Failure::new(code::LIMIT, text).with_details(details))
}

/// Refuses facts that are too large with those that they are added to. What was stored before there
/// was a limit may become smaller, and stay.
///
/// # Errors
///
/// As of [`check`].
pub(crate) fn check_added(
    known: &BTreeMap<String, Value>,
    added: &BTreeMap<String, Value>,
) -> Result<(), Failure> {
    if added.is_empty() {
        return Ok(());
    }
    let mut all = known.clone();
    all.extend(added.clone());
    if bytes(&all) <= bytes(known) { Ok(()) } else { check(&all) }
}

/// Bytes of facts as JSON.
fn bytes(facts: &BTreeMap<String, Value>) -> usize {
    let counted = facts.iter().filter(|(name, value)| !is_of_host(name, value));
    // Braces; quotes, a colon and a comma around each name.
    let each = counted.map(|(name, value)| name.len() + value.to_string().len() + 4);
    each.sum::<usize>() + 2
}

fn is_of_host(name: &str, value: &Value) -> bool {
    OF_HOSTS.contains(&name) && value.as_str().is_some_and(|text| text.len() <= SHORT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts<const N: usize>(facts: [(&str, usize); N]) -> BTreeMap<String, Value> {
        facts.into_iter().map(|(name, bytes)| (name.to_owned(), json!("x".repeat(bytes)))).collect()
    }

    /// What is left for a text under a name of one letter.
    const LARGEST: usize = METADATA_BYTES - 9;

    #[test]
    fn the_limit_itself_is_allowed() {
        check(&facts([("a", LARGEST)])).unwrap();
        let refused = check(&facts([("a", LARGEST + 1)])).unwrap_err();
        assert_eq!(refused.code, code::LIMIT);
        let told = json!({
            "limit": "metadata_bytes", "field": "metadata", "bytes": METADATA_BYTES + 1,
            "limit_bytes": METADATA_BYTES,
        });
        assert_eq!(refused.details, Some(told));
    }

    #[test]
    fn what_is_there_counts_and_may_only_become_smaller() {
        let (small, full) = (facts([("a", 9)]), facts([("a", LARGEST)]));
        let large = facts([("a", 2 * LARGEST)]);
        check_added(&small, &facts([("a", LARGEST)])).unwrap();
        check_added(&full, &facts([("b", 1)])).unwrap_err();
        check_added(&large, &BTreeMap::new()).unwrap();
        check_added(&large, &facts([("a", LARGEST + 9)])).unwrap();
        check_added(&large, &facts([("b", 1)])).unwrap_err();
    }

    #[test]
    fn short_facts_of_hosts_count_for_nothing() {
        let full = facts([("a", LARGEST)]);
        check_added(&full, &facts([("graph_id", 300), ("assistant_id", 36)])).unwrap();
        check_added(&full, &facts([("graph_id", SHORT_BYTES + 1)])).unwrap_err();
    }
}
