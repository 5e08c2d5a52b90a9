//! Validates requests to the long-term memory. The bounds are the same for guests and clients.

use wattle_graph::failure::{Failure, code};

use crate::json::{approx_bytes, check_depth};
use crate::limit::{
    MEMORY_CONDITIONS, MEMORY_DOCUMENT_BYTES, MEMORY_KEY_BYTES, MEMORY_NAMESPACE_BYTES,
    MEMORY_PARTS, MEMORY_QUERY_BYTES, MEMORY_RESULTS,
};
use crate::ports::memory::{ListNamespaces, MemorySearch, PutItem};

/// Checks the namespace and the key of a document.
///
/// # Errors
///
/// `invalid` for an empty namespace, part or key; `limit` for a namespace or key that is too long.
pub fn check_key(namespace: &[String], key: &str) -> Result<(), Failure> {
    if namespace.is_empty() {
        return Err(invalid("a document needs a namespace of at least one part"));
    }
    check_path(namespace)?;
    if key.is_empty() {
        return Err(invalid("a document needs a key that is not empty"));
    }
    check_bytes("memory_key_bytes", "the key", key.len(), MEMORY_KEY_BYTES)
}

/// Checks a namespace, or a prefix or suffix of one.
fn check_path(path: &[String]) -> Result<(), Failure> {
    if path.iter().any(String::is_empty) {
        return Err(invalid("a part of the document namespace is empty"));
    }
    if path.len() > MEMORY_PARTS {
        let found = path.len();
        let message =
            format!("the document namespace has {found} parts; at most {MEMORY_PARTS} are allowed");
        return Err(limit("memory_parts", message));
    }
    let bytes = path.iter().map(String::len).sum();
    check_bytes("memory_namespace_bytes", "the document namespace", bytes, MEMORY_NAMESPACE_BYTES)
}

impl PutItem {
    /// Checks a document before it is written.
    ///
    /// # Errors
    ///
    /// See [`check_key`]; also `invalid` for a document that is nested too deeply.
    pub fn check(&self) -> Result<(), Failure> {
        check_key(&self.namespace, &self.key)?;
        check_depth("the document", &self.value)?;
        let bytes = approx_bytes(&self.value) as usize;
        check_bytes("memory_document_bytes", "the document", bytes, MEMORY_DOCUMENT_BYTES)
    }
}

impl MemorySearch {
    /// Checks a search.
    ///
    /// # Errors
    ///
    /// `invalid` for an invalid prefix; `limit` for a query that is too long, or for too many
    /// conditions or results.
    pub fn check(&self) -> Result<(), Failure> {
        check_path(&self.prefix)?;
        check_results(self.limit)?;
        if self.filter.len() > MEMORY_CONDITIONS {
            let found = self.filter.len();
            let message = format!("a filter has {found} conditions, more than {MEMORY_CONDITIONS}");
            return Err(limit("memory_conditions", message));
        }
        let bytes = self.query.as_ref().map_or(0, String::len);
        check_bytes("memory_query_bytes", "the query", bytes, MEMORY_QUERY_BYTES)
    }
}

impl ListNamespaces {
    /// Checks a query for namespaces.
    ///
    /// # Errors
    ///
    /// See [`MemorySearch::check`]; also `invalid` for a depth of 0.
    pub fn check(&self) -> Result<(), Failure> {
        check_path(&self.prefix)?;
        check_path(&self.suffix)?;
        if self.max_depth == Some(0) {
            return Err(invalid("the depth of namespaces must be 1 or more"));
        }
        check_results(self.limit)
    }
}

fn check_results(wanted: usize) -> Result<(), Failure> {
    if wanted <= MEMORY_RESULTS {
        return Ok(());
    }
    let message = format!("{wanted} results are more than {MEMORY_RESULTS}; use pages");
    Err(limit("memory_results", message))
}

fn check_bytes(name: &str, what: &str, bytes: usize, most: usize) -> Result<(), Failure> {
    if bytes <= most {
        return Ok(());
    }
    Err(limit(name, format!("{what} has {bytes} bytes, more than the limit of {most}")))
}

fn invalid(message: &str) -> Failure {
    Failure::new(code::INVALID, message)
}

fn limit(name: &str, message: String) -> Failure {
    Failure::new(code::LIMIT, message).with_details(serde_json::json!({ "limit": name }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn path(parts: &[&str]) -> Vec<String> {
        parts.iter().map(|&part| part.to_owned()).collect()
    }

    fn put(namespace: &[&str], key: &str, value: Value) -> Result<(), String> {
        let (namespace, key) = (path(namespace), key.to_owned());
        let item = PutItem { namespace, key, value, ttl_ms: None, refresh_on_read: false };
        item.check().map_err(|failure| failure.code)
    }

    #[test]
    fn namespaces_and_keys_are_bounded() {
        assert_eq!(put(&["a\0", "\u{10ffff}"], "\0", json!("x")), Ok(()));
        for (namespace, key) in [(&[][..], "k"), (&["a", ""], "k"), (&["a"], "")] {
            assert_eq!(put(namespace, key, json!({})), Err("invalid".into()), "{namespace:?}");
        }
        let long = "x".repeat(MEMORY_NAMESPACE_BYTES);
        assert_eq!(put(&[&long], "k", json!({})), Ok(()));
        assert_eq!(put(&[&long, "y"], "k", json!({})), Err("limit".into()));
        assert_eq!(put(&["a"; MEMORY_PARTS + 1], "k", json!({})), Err("limit".into()));
        assert_eq!(put(&["a"], &"k".repeat(MEMORY_KEY_BYTES + 1), json!({})), Err("limit".into()));
    }

    #[test]
    fn documents_are_bounded_in_size_and_depth() {
        let large = "x".repeat(MEMORY_DOCUMENT_BYTES);
        assert_eq!(put(&["a"], "k", json!(large)), Err("limit".into()));
        let deep = (0..101).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(put(&["a"], "k", deep), Err("invalid".into()));
    }

    #[test]
    fn memory_queries_are_bounded_in_results_and_depth() {
        let search = MemorySearch { limit: MEMORY_RESULTS, ..MemorySearch::default() };
        assert_eq!(search.check(), Ok(()));
        let search = MemorySearch { limit: MEMORY_RESULTS + 1, ..MemorySearch::default() };
        assert_eq!(search.check().unwrap_err().code, "limit");
        let list = ListNamespaces { max_depth: Some(0), limit: 1, ..ListNamespaces::default() };
        assert_eq!(list.check().unwrap_err().code, "invalid");
    }
}
