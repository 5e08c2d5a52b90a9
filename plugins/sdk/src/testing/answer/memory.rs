//! Memory. A search knows equal fields and words that a document contains.

use serde_json::Value;

use crate::failure::Failure;
use crate::memory::{Item, Search};
use crate::testing::state::{State, with};

pub(crate) fn get(namespace: &[String], key: &str) -> Result<Option<Item>, Failure> {
    with(|state| {
        let place = (namespace.to_vec(), key.to_owned());
        state
            .memory
            .get(&place)
            .filter(|entry| is_alive(state, entry))
            .map(|(item, _)| item.clone())
    })
}

pub(crate) fn put(
    namespace: &[String],
    key: &str,
    value: Value,
    ttl_ms: Option<u64>,
) -> Result<(), Failure> {
    with(|state| {
        let place = (namespace.to_vec(), key.to_owned());
        let created_ms = state.memory.get(&place).map_or(state.now_ms, |(item, _)| item.created_ms);
        let item = Item {
            namespace: namespace.to_vec(),
            key: key.to_owned(),
            value,
            created_ms,
            updated_ms: state.now_ms,
            score: None,
        };
        let expires_ms = ttl_ms.map(|ttl_ms| state.now_ms.saturating_add_unsigned(ttl_ms));
        state.memory.insert(place, (item, expires_ms));
    })
}

pub(crate) fn delete(namespace: &[String], key: &str) -> Result<(), Failure> {
    with(|state| {
        state.memory.remove(&(namespace.to_vec(), key.to_owned()));
    })
}

pub(crate) fn search(search: Search) -> Result<Vec<Item>, Failure> {
    let Search { prefix, filter, query, limit, offset, extra: _ } = search;
    let matches = |item: &Item| {
        let equal = |(name, value): (&String, &Value)| item.value.get(name) == Some(value);
        let fields = filter.as_ref().and_then(Value::as_object);
        item.namespace.starts_with(&prefix)
            && fields.is_none_or(|fields| fields.iter().all(equal))
            && query.as_ref().is_none_or(|words| item.value.to_string().contains(words))
    };
    with(|state| {
        let alive = state.memory.values().filter(|entry| is_alive(state, entry));
        let found = alive.map(|(item, _)| item).filter(|item| matches(item));
        found.skip(offset as usize).take(limit as usize).cloned().collect()
    })
}

pub(crate) fn list_namespaces(
    prefix: &[String],
    max_depth: Option<u32>,
    limit: u32,
    offset: u32,
) -> Result<Vec<Vec<String>>, Failure> {
    let depth = max_depth.map_or(usize::MAX, |depth| depth as usize);
    with(|state| {
        let under = state.memory.keys().filter(|(namespace, _)| namespace.starts_with(prefix));
        let mut found: Vec<Vec<String>> =
            under.map(|(namespace, _)| namespace.iter().take(depth).cloned().collect()).collect();
        found.dedup();
        found.into_iter().skip(offset as usize).take(limit as usize).collect()
    })
}

fn is_alive(state: &State, (_, expires_ms): &(Item, Option<i64>)) -> bool {
    expires_ms.is_none_or(|expires_ms| expires_ms > state.now_ms)
}
