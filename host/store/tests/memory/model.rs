//! Applies random histories of changes to a memory and to a reference model, and compares all
//! reads.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use wattle_run::ports::Memory;
use wattle_run::ports::memory::{ListNamespaces, MemoryScope, MemorySearch, PutItem};

/// Number of changes of one history.
const CHANGES: usize = 120;

#[derive(Clone, Debug)]
enum Change {
    Put { scope: MemoryScope, item: PutItem },
    Delete { scope: MemoryScope, namespace: Vec<String>, key: String },
    Clear { scope: MemoryScope, prefix: Vec<String> },
    Sweep,
    Read { scope: MemoryScope, prefix: Vec<String>, offset: usize, limit: usize, depth: usize },
}

/// An item of the reference model: scope, namespace, key, value, created, updated, expires.
type ModelItem = (MemoryScope, Vec<String>, String, Value, i64, i64, Option<i64>);

#[derive(Default)]
struct ReferenceModel(Vec<ModelItem>);

impl ReferenceModel {
    fn put(&mut self, scope: &MemoryScope, item: &PutItem, now_ms: i64) {
        let matches = |stored: &ModelItem| {
            (&stored.0, &stored.1, &stored.2) == (scope, &item.namespace, &item.key)
        };
        let old = self.0.iter().find(|stored| matches(stored) && is_live(stored, now_ms));
        let created_ms = old.map_or(now_ms, |stored| stored.4);
        self.0.retain(|stored| !matches(stored));
        let expires_ms = item.ttl_ms.map(|ttl_ms| now_ms.saturating_add_unsigned(ttl_ms));
        let (namespace, key) = (item.namespace.clone(), item.key.clone());
        let value = item.value.clone();
        self.0.push((scope.clone(), namespace, key, value, created_ms, now_ms, expires_ms));
    }

    fn remove(&mut self, matches: impl Fn(&ModelItem) -> bool) -> usize {
        let before = self.0.len();
        self.0.retain(|stored| !matches(stored));
        before - self.0.len()
    }

    fn found(&self, scope: &MemoryScope, prefix: &[String], now_ms: i64) -> Vec<&ModelItem> {
        let is_under = |stored: &&ModelItem| stored.0 == *scope && stored.1.starts_with(prefix);
        let live = self.0.iter().filter(is_under).filter(|stored| is_live(stored, now_ms));
        let mut found: Vec<&ModelItem> = live.collect();
        found.sort_by_key(|stored| (-stored.5, stored.1.clone(), stored.2.clone()));
        found
    }
}

fn is_live(stored: &ModelItem, now_ms: i64) -> bool {
    stored.6.is_none_or(|expires_ms| expires_ms > now_ms)
}

fn change() -> impl Strategy<Value = Change> {
    let scope =
        || prop_oneof![Just(None), Just(Some("t".to_owned()))].prop_map(MemoryScope::Tenant);
    let namespace = |least| proptest::collection::vec("[ab\0]", least..3);
    let put = (scope(), namespace(1), "[kl]", 0..9, proptest::option::of(0..40_u64)).prop_map(
        |(scope, namespace, key, n, ttl_ms)| {
            let value = json!({ "n": n });
            let item = PutItem { namespace, key, value, ttl_ms, refresh_on_read: false };
            Change::Put { scope, item }
        },
    );
    let delete = (scope(), namespace(1), "[kl]")
        .prop_map(|(scope, namespace, key)| Change::Delete { scope, namespace, key });
    let clear = (scope(), namespace(1)).prop_map(|(scope, prefix)| Change::Clear { scope, prefix });
    let read = (scope(), namespace(0), 0..3_usize, 0..9_usize, 1..3_usize).prop_map(
        |(scope, prefix, offset, limit, depth)| Change::Read {
            scope,
            prefix,
            offset,
            limit,
            depth,
        },
    );
    prop_oneof![8 => put, 2 => delete, 1 => clear, 1 => Just(Change::Sweep), 6 => read]
}

pub(crate) async fn random_histories_match_the_reference_model(memory: &dyn Memory) {
    let mut runner = TestRunner::deterministic();
    let changes = proptest::collection::vec(change(), CHANGES);
    let (mut model, mut now_ms) = (ReferenceModel::default(), 1_000);
    for change in changes.new_tree(&mut runner).unwrap().current() {
        now_ms += 7;
        match change {
            Change::Put { scope, item } => {
                model.put(&scope, &item, now_ms);
                memory.put(&scope, item, now_ms).await.unwrap();
            }
            Change::Delete { scope, namespace, key } => {
                model.remove(|stored| {
                    (&stored.0, &stored.1, &stored.2) == (&scope, &namespace, &key)
                });
                memory.delete(&scope, &namespace, &key).await.unwrap();
            }
            Change::Clear { scope, prefix } => {
                let removed =
                    model.remove(|stored| stored.0 == scope && stored.1.starts_with(&prefix));
                assert_eq!(memory.clear(&scope, &prefix).await.unwrap(), removed);
            }
            Change::Sweep => {
                let removed = model.remove(|stored| !is_live(stored, now_ms));
                assert_eq!(memory.sweep(now_ms).await.unwrap(), removed);
            }
            Change::Read { scope, prefix, offset, limit, depth } => {
                let all = model.found(&scope, &prefix, now_ms);
                let page = all.iter().skip(offset).take(limit);
                let expected: Vec<_> =
                    page.map(|it| (it.1.clone(), it.2.clone(), it.3.clone(), it.4, it.5)).collect();
                let search = MemorySearch {
                    prefix: prefix.clone(),
                    offset,
                    limit,
                    ..MemorySearch::default()
                };
                let found = memory.search(&scope, &search, now_ms).await.unwrap();
                let found: Vec<_> = found
                    .into_iter()
                    .map(|it| (it.namespace, it.key, it.value, it.created_ms, it.updated_ms))
                    .collect();
                assert_eq!(found, expected);
                let cut = |it: &&ModelItem| it.1.iter().take(depth).cloned().collect::<Vec<_>>();
                let mut expected: Vec<_> = all.iter().map(cut).collect();
                expected.sort();
                expected.dedup();
                let expected: Vec<_> = expected.into_iter().skip(offset).take(limit).collect();
                let max_depth = Some(depth);
                let list = ListNamespaces {
                    prefix,
                    max_depth,
                    offset,
                    limit,
                    ..ListNamespaces::default()
                };
                assert_eq!(memory.namespaces(&scope, &list, now_ms).await.unwrap(), expected);
            }
        }
    }
}
