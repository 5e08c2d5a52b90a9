//! Maps by channel that checkpoints share.

use std::collections::{BTreeMap, btree_map};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::ChannelName;

/// A map by channel, which many checkpoints share. A clone copies a pointer. The first change of a
/// map that is shared copies its entries.
///
/// The serialized form is that of the [`BTreeMap`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChannelMap<V>(Arc<BTreeMap<ChannelName, V>>);

impl<V> ChannelMap<V> {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self(Arc::default())
    }
}

impl<V> Default for ChannelMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> Deref for ChannelMap<V> {
    type Target = BTreeMap<ChannelName, V>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<V: Clone> DerefMut for ChannelMap<V> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}

impl<V> FromIterator<(ChannelName, V)> for ChannelMap<V> {
    fn from_iter<I: IntoIterator<Item = (ChannelName, V)>>(entries: I) -> Self {
        Self(Arc::new(entries.into_iter().collect()))
    }
}

impl<V, const N: usize> From<[(ChannelName, V); N]> for ChannelMap<V> {
    fn from(entries: [(ChannelName, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<'m, V> IntoIterator for &'m ChannelMap<V> {
    type Item = (&'m ChannelName, &'m V);
    type IntoIter = btree_map::Iter<'m, ChannelName, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_shared_map_leaves_its_clones_unchanged() {
        let name = |text: &str| ChannelName::new(text).unwrap();
        let map = ChannelMap::from([(name("b"), 1), (name("a"), 2)]);
        let mut changed = map.clone();
        assert!(Arc::ptr_eq(&map.0, &changed.0));
        changed.insert(name("c"), 3);
        changed.remove("b");
        assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"a":2,"b":1}"#);
        assert_eq!(serde_json::from_str::<ChannelMap<u32>>(r#"{"c":3,"a":2}"#).unwrap(), changed);
    }
}
