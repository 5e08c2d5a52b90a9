//! Implements `memory` with the semantics of the host, except that a word is a sequence of letters
//! and digits.

mod filter;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::failure::Failure;
use crate::memory::{Item, Search};
use crate::testing::state::{MemoryEntry, with};

/// Matches any single part of a namespace.
const ANY_PART: &str = "*";

pub(crate) fn get(namespace: &[String], key: &str) -> Result<Option<Item>, Failure> {
    with(|state| {
        let (entry_key, now_ms) = ((namespace.to_vec(), key.to_owned()), state.now_ms);
        let entry = state.memory.get_mut(&entry_key).filter(|entry| is_alive(now_ms, entry))?;
        Some(read(now_ms, entry))
    })
}

pub(crate) fn put(
    namespace: &[String],
    key: &str,
    value: Value,
    ttl_ms: Option<u64>,
) -> Result<(), Failure> {
    write(namespace, key, value, ttl_ms, None)
}

pub(crate) fn put_while_read(
    namespace: &[String],
    key: &str,
    value: Value,
    ttl_ms: u64,
) -> Result<(), Failure> {
    write(namespace, key, value, Some(ttl_ms), Some(ttl_ms))
}

fn write(
    namespace: &[String],
    key: &str,
    value: Value,
    ttl_ms: Option<u64>,
    refresh_ms: Option<u64>,
) -> Result<(), Failure> {
    with(|state| {
        let entry_key = (namespace.to_vec(), key.to_owned());
        let old = state.memory.get(&entry_key).filter(|entry| is_alive(state.now_ms, entry));
        let created_ms = old.map_or(state.now_ms, |entry| entry.item.created_ms);
        let item = Item {
            namespace: namespace.to_vec(),
            key: key.to_owned(),
            value,
            created_ms,
            updated_ms: state.now_ms,
            score: None,
        };
        let expires_ms = ttl_ms.map(|ttl_ms| state.now_ms.saturating_add_unsigned(ttl_ms));
        state.memory.insert(entry_key, MemoryEntry { item, expires_ms, refresh_ms });
    })
}

pub(crate) fn delete(namespace: &[String], key: &str) -> Result<(), Failure> {
    with(|state| {
        state.memory.remove(&(namespace.to_vec(), key.to_owned()));
    })
}

pub(crate) fn search(search: Search) -> Result<Vec<Item>, Failure> {
    let Search { prefix, filter, query, limit, offset, extra: _ } = search;
    let conditions = filter.as_ref().map(filter::read).transpose()?.unwrap_or_default();
    let wanted = query.map(|query| words(&query));
    let fits = |item: &Item| {
        item.namespace.starts_with(&prefix)
            && conditions.iter().all(|condition| condition.holds(&item.value))
    };
    let mut found: Vec<Item> = with(|state| {
        let now_ms = state.now_ms;
        let alive = state.memory.values_mut().filter(|entry| is_alive(now_ms, entry));
        alive.filter(|entry| fits(&entry.item)).map(|entry| read(now_ms, entry)).collect()
    })?;
    if let Some(wanted) = wanted {
        for item in &mut found {
            item.score = score(&wanted, item);
        }
        found.retain(|item| item.score.is_some());
    }
    found.sort_by_key(|item| Reverse(item.updated_ms));
    found.sort_by(|one, other| other.score.unwrap_or(0.0).total_cmp(&one.score.unwrap_or(0.0)));
    Ok(found.into_iter().skip(offset as usize).take(limit as usize).collect())
}

pub(crate) fn list_namespaces(
    prefix: &[String],
    max_depth: Option<u32>,
    limit: u32,
    offset: u32,
) -> Result<Vec<Vec<String>>, Failure> {
    let depth = max_depth.map_or(usize::MAX, |depth| depth as usize);
    let begins = |namespace: &[String]| {
        let fits = |(part, wanted): (&String, &String)| wanted == ANY_PART || wanted == part;
        namespace.len() >= prefix.len() && namespace.iter().zip(prefix).all(fits)
    };
    with(|state| {
        let alive = state.memory.values().filter(|entry| is_alive(state.now_ms, entry));
        let under = alive.map(|entry| &entry.item.namespace).filter(|namespace| begins(namespace));
        let found: BTreeSet<Vec<String>> =
            under.map(|namespace| namespace.iter().take(depth).cloned().collect()).collect();
        found.into_iter().skip(offset as usize).take(limit as usize).collect()
    })
}

fn is_alive(now_ms: i64, entry: &MemoryEntry) -> bool {
    entry.expires_ms.is_none_or(|expires_ms| expires_ms > now_ms)
}

/// Returns a document, and restarts its sliding expiry.
fn read(now_ms: i64, entry: &mut MemoryEntry) -> Item {
    if let Some(refresh_ms) = entry.refresh_ms {
        entry.expires_ms = Some(now_ms.saturating_add_unsigned(refresh_ms));
    }
    entry.item.clone()
}

/// Returns the fraction of the words that a document contains in its key, field names or values.
/// Returns `None` if it contains none of them.
fn score(wanted: &BTreeSet<String>, item: &Item) -> Option<f64> {
    let held = words(&format!("{} {}", item.key, item.value));
    let hits = wanted.intersection(&held).count();
    (hits > 0).then(|| hits as f64 / wanted.len() as f64)
}

fn words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::failure::Failure;
    use crate::memory::{self, Search};
    use crate::testing::FakeHost;

    #[test]
    fn searches_filter_and_rank() -> Result<(), Failure> {
        FakeHost::new().run(|| {
            memory::put(&["a", "1"], "tea", json!({ "text": "green tea", "n": 1 }))?;
            memory::put(&["a", "2"], "dog", json!({ "text": "a dog", "n": 2 }))?;
            memory::put(&["b", "1"], "cat", json!({ "text": "a cat" }))?;
            let keys = |search: Search| -> Result<Vec<String>, Failure> {
                Ok(search.run()?.into_iter().map(|item| item.key).collect())
            };
            assert_eq!(keys(Search::under(&["a"]).query("Tea dog GREEN"))?, ["tea", "dog"]);
            let filter = json!({ "n": { "$gt": 1, "$ne": 3 } });
            assert_eq!(keys(Search::under(&[]).filter(filter))?, ["dog"]);
            assert_eq!(keys(Search::under(&[]).filter(json!({ "n": null })))?, ["cat"]);
            let refused = keys(Search::under(&[]).filter(json!({ "n": { "$in": [1] } })));
            assert_eq!(refused.map_err(|failure| failure.code), Err("invalid".to_owned()));
            assert_eq!(memory::list_namespaces(&["*", "1"], Some(1), 9, 0)?, [["a"], ["b"]]);
            Ok(())
        })
    }
}
