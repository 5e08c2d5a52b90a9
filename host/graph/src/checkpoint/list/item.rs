//! The items of a list.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

/// An item, which the versions of a list share.
#[derive(Clone)]
pub(super) struct Item {
    /// Hash of the `id` of a message. The hash is stored beside the pointer, so that a search among
    /// many messages does not have to follow the pointers.
    pub(super) id_hash: u64,
    pub(super) value: Arc<Value>,
}

impl From<Arc<Value>> for Item {
    fn from(value: Arc<Value>) -> Self {
        let id = value.get("id").and_then(Value::as_str);
        Self { id_hash: id.map_or(0, id_hash), value }
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.value, &other.value) || self.value == other.value
    }
}

/// Returns the hash by which a list finds a message or a tool call with an id. Different ids can
/// have the same hash.
pub(crate) fn id_hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
