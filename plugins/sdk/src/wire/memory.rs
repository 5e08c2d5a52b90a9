//! Calls of `memory`.

use serde_json::Value;

use crate::bindings::imports::wattle::plugin::memory as raw;
use crate::failure::Failure;
use crate::json::Extra;
use crate::memory::{Item, Search};
use crate::wire::convert::{raw_extra, text, value};

/// Extension field that enables a sliding expiry.
const REFRESH_ON_READ: &str = "refresh_on_read";

pub(crate) fn get(namespace: &[String], key: &str) -> Result<Option<Item>, Failure> {
    Ok(raw::get(namespace, key)?.map(Into::into))
}

pub(crate) fn put(
    namespace: &[String],
    key: &str,
    value: Value,
    ttl_ms: Option<u64>,
) -> Result<(), Failure> {
    Ok(raw::put(namespace, key, &value.to_string(), ttl_ms)?)
}

pub(crate) fn put_while_read(
    namespace: &[String],
    key: &str,
    value: Value,
    ttl_ms: u64,
) -> Result<(), Failure> {
    let extra = Extra::from_iter([(REFRESH_ON_READ.to_owned(), Value::Bool(true))]);
    Ok(raw::put_with(namespace, key, &value.to_string(), Some(ttl_ms), &raw_extra(extra))?)
}

pub(crate) fn delete(namespace: &[String], key: &str) -> Result<(), Failure> {
    Ok(raw::delete(namespace, key)?)
}

pub(crate) fn search(search: Search) -> Result<Vec<Item>, Failure> {
    let request = raw::SearchRequest {
        prefix: search.prefix,
        filter: text(search.filter),
        query: search.query,
        limit: search.limit,
        offset: search.offset,
        extra: raw_extra(search.extra),
    };
    Ok(raw::search(&request)?.into_iter().map(Into::into).collect())
}

pub(crate) fn list_namespaces(
    prefix: &[String],
    max_depth: Option<u32>,
    limit: u32,
    offset: u32,
) -> Result<Vec<Vec<String>>, Failure> {
    Ok(raw::list_namespaces(prefix, max_depth, limit, offset)?)
}

impl From<raw::Item> for Item {
    fn from(item: raw::Item) -> Self {
        Self {
            namespace: item.namespace,
            key: item.key,
            value: value(&item.value),
            created_ms: item.created_ms,
            updated_ms: item.updated_ms,
            score: item.score,
        }
    }
}
