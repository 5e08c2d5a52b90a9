//! Fixtures: documents and requests.

use serde_json::{Value, json};
use wattle_run::ports::Memory;
use wattle_run::ports::memory::{
    Item, ListNamespaces, MemoryScope, MemorySearch, PutItem, parse_filter,
};

/// The current time of tests that do not depend on the time.
pub(crate) const NOW_MS: i64 = 1_700_000_000_000;

/// The scope of requests without a tenant.
pub(crate) fn no_tenant() -> MemoryScope {
    MemoryScope::Tenant(None)
}

/// The scope of a tenant.
pub(crate) fn tenant(name: &str) -> MemoryScope {
    MemoryScope::Tenant(Some(name.to_owned()))
}

pub(crate) fn parts(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|&part| part.to_owned()).collect()
}

pub(crate) fn item(namespace: &[&str], key: &str, value: Value) -> PutItem {
    let (namespace, key) = (parts(namespace), key.to_owned());
    PutItem { namespace, key, value, ttl_ms: None, refresh_on_read: false }
}

/// Puts a document without a tenant.
pub(crate) async fn put(memory: &dyn Memory, namespace: &[&str], key: &str, value: Value) {
    memory.put(&no_tenant(), item(namespace, key, value), NOW_MS).await.unwrap();
}

/// Reads a document without a tenant.
pub(crate) async fn get(memory: &dyn Memory, namespace: &[&str], key: &str) -> Option<Item> {
    memory.get(&no_tenant(), &parts(namespace), key, NOW_MS).await.unwrap()
}

/// Returns a search for all documents under a prefix.
pub(crate) fn under(prefix: &[&str]) -> MemorySearch {
    MemorySearch { prefix: parts(prefix), limit: 1_000, ..MemorySearch::default() }
}

pub(crate) fn with_filter(filter: &Value) -> MemorySearch {
    MemorySearch { filter: parse_filter(filter).unwrap(), ..under(&[]) }
}

/// Returns the keys that a search finds, in order.
pub(crate) async fn keys(memory: &dyn Memory, search: &MemorySearch) -> Vec<String> {
    let found = memory.search(&no_tenant(), search, NOW_MS).await.unwrap();
    found.into_iter().map(|item| item.key).collect()
}

/// Returns a listing of all namespaces with a prefix and a suffix.
pub(crate) fn list(prefix: &[&str], suffix: &[&str]) -> ListNamespaces {
    let (prefix, suffix) = (parts(prefix), parts(suffix));
    ListNamespaces { prefix, suffix, limit: 1_000, ..ListNamespaces::default() }
}

/// Returns namespaces as paths, in order.
pub(crate) async fn paths(memory: &dyn Memory, list: &ListNamespaces) -> Vec<String> {
    let found = memory.namespaces(&no_tenant(), list, NOW_MS).await.unwrap();
    found.iter().map(|namespace| namespace.join("/")).collect()
}

/// Returns a document without fields.
pub(crate) fn empty() -> Value {
    json!({})
}
