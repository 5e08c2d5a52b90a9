//! Applies random histories of changes to a memory and to a reference model, and compares all
//! reads.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use wattle_run::ports::Memory;
use wattle_run::ports::memory::{ListNamespaces, MemoryScope, MemorySearch, PutItem};

/// Changes of one history.
const CHANGES: usize = 120;

#[derive(Clone, Debug)]
enum Change {
    Put { scope: MemoryScope, item: PutItem },
    Delete { scope: MemoryScope, namespace: Vec<String>, key: String },
    Clear { scope: MemoryScope, prefix: Vec<String> },
    Sweep,
    Look { scope: MemoryScope, prefix: Vec<String>, offset: usize, limit: usize, depth: usize },
}

/// An item of the reference model: scope, namespace, key, value, created, updated, expires.
type Kept = (MemoryScope, Vec<String>, String, Value, i64, i64, Option<i64>);

#[derive(Default)]
struct Plain(Vec<Kept>);

impl Plain {
    fn put(&mut self, scope: &MemoryScope, item: &PutItem, now_ms: i64) {
        let is_it =
            |kept: &Kept| (&kept.0, &kept.1, &kept.2) == (scope, &item.namespace, &item.key);
        let old = self.0.iter().find(|kept| is_it(kept) && is_alive(kept, now_ms));
        let created_ms = old.map_or(now_ms, |kept| kept.4);
        self.0.retain(|kept| !is_it(kept));
        let expires_ms = item.ttl_ms.map(|ttl_ms| now_ms.saturating_add_unsigned(ttl_ms));
        let (namespace, key) = (item.namespace.clone(), item.key.clone());
        let value = item.value.clone();
        self.0.push((scope.clone(), namespace, key, value, created_ms, now_ms, expires_ms));
    }

    fn remove(&mut self, is_it: impl Fn(&Kept) -> bool) -> usize {
        let before = self.0.len();
        self.0.retain(|kept| !is_it(kept));
        before - self.0.len()
    }

    fn found(&self, scope: &MemoryScope, prefix: &[String], now_ms: i64) -> Vec<&Kept> {
        let fits = |kept: &&Kept| kept.0 == *scope && kept.1.starts_with(prefix);
        let alive = self.0.iter().filter(fits).filter(|kept| is_alive(kept, now_ms));
        let mut found: Vec<&Kept> = alive.collect();
        found.sort_by_key(|kept| (-kept.5, kept.1.clone(), kept.2.clone()));
        found
    }
}

fn is_alive(kept: &Kept, now_ms: i64) -> bool {
    kept.6.is_none_or(|expires_ms| expires_ms > now_ms)
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
    let look = (scope(), namespace(0), 0..3_usize, 0..9_usize, 1..3_usize).prop_map(
        |(scope, prefix, offset, limit, depth)| Change::Look {
            scope,
            prefix,
            offset,
            limit,
            depth,
        },
    );
    prop_oneof![8 => put, 2 => delete, 1 => clear, 1 => Just(Change::Sweep), 6 => look]
}

pub(crate) async fn random_histories_match_the_reference_model(memory: &dyn Memory) {
    let mut runner = TestRunner::deterministic();
    let changes = proptest::collection::vec(change(), CHANGES);
    let (mut plain, mut now_ms) = (Plain::default(), 1_000);
    for change in changes.new_tree(&mut runner).unwrap().current() {
        now_ms += 7;
        match change {
            Change::Put { scope, item } => {
                plain.put(&scope, &item, now_ms);
                memory.put(&scope, item, now_ms).await.unwrap();
            }
            Change::Delete { scope, namespace, key } => {
                plain.remove(|kept| (&kept.0, &kept.1, &kept.2) == (&scope, &namespace, &key));
                memory.delete(&scope, &namespace, &key).await.unwrap();
            }
            Change::Clear { scope, prefix } => {
                let gone = plain.remove(|kept| kept.0 == scope && kept.1.starts_with(&prefix));
                assert_eq!(memory.clear(&scope, &prefix).await.unwrap(), gone);
            }
            Change::Sweep => {
                let gone = plain.remove(|kept| !is_alive(kept, now_ms));
                assert_eq!(memory.sweep(now_ms).await.unwrap(), gone);
            }
            Change::Look { scope, prefix, offset, limit, depth } => {
                let all = plain.found(&scope, &prefix, now_ms);
                let page = all.iter().skip(offset).take(limit);
                let wanted: Vec<_> =
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
                assert_eq!(found, wanted);
                let cut = |it: &&Kept| it.1.iter().take(depth).cloned().collect::<Vec<_>>();
                let mut wanted: Vec<_> = all.iter().map(cut).collect();
                wanted.sort();
                wanted.dedup();
                let wanted: Vec<_> = wanted.into_iter().skip(offset).take(limit).collect();
                let max_depth = Some(depth);
                let list = ListNamespaces {
                    prefix,
                    max_depth,
                    offset,
                    limit,
                    ..ListNamespaces::default()
                };
                assert_eq!(memory.namespaces(&scope, &list, now_ms).await.unwrap(), wanted);
            }
        }
    }
}
