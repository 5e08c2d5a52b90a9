//! Documents that expire.

use futures::future::join_all;
use serde_json::json;
use wattle_run::ports::Memory;
use wattle_run::ports::memory::{MemorySearch, PutItem};

use crate::fixtures::{NOW_MS, empty, item, list, no_tenant, parts, put, under};

fn expiring(key: &str, ttl_ms: u64) -> PutItem {
    PutItem { ttl_ms: Some(ttl_ms), ..item(&["a"], key, json!({ "n": 1 })) }
}

/// Returns which documents of namespace `a` are visible at a time: whether a read by key finds
/// `key`, and the numbers of documents and namespaces that a search and a listing find.
async fn visible(memory: &dyn Memory, key: &str, now_ms: i64) -> (bool, usize, usize) {
    let found = memory.get(&no_tenant(), &parts(&["a"]), key, now_ms).await.unwrap();
    let items = memory.search(&no_tenant(), &under(&["a"]), now_ms).await.unwrap();
    let namespaces = memory.namespaces(&no_tenant(), &list(&["a"], &[]), now_ms).await.unwrap();
    (found.is_some(), items.len(), namespaces.len())
}

pub(crate) async fn expired_documents_are_hidden(memory: &dyn Memory) {
    memory.put(&no_tenant(), expiring("k", 100), NOW_MS).await.unwrap();
    assert_eq!(visible(memory, "k", NOW_MS + 99).await, (true, 1, 1));
    assert_eq!(visible(memory, "k", NOW_MS + 100).await, (false, 0, 0));
    memory.put(&no_tenant(), expiring("never", u64::MAX), NOW_MS).await.unwrap();
    assert_eq!(visible(memory, "never", i64::MAX - 1).await, (true, 1, 1));
    memory.put(&no_tenant(), expiring("nothing", 0), NOW_MS).await.unwrap();
    assert_eq!(visible(memory, "nothing", NOW_MS).await, (false, 2, 1));
}

pub(crate) async fn put_replaces_the_expiry(memory: &dyn Memory) {
    memory.put(&no_tenant(), expiring("k", 100), NOW_MS).await.unwrap();
    memory.put(&no_tenant(), expiring("k", 100), NOW_MS + 50).await.unwrap();
    assert_eq!(visible(memory, "k", NOW_MS + 149).await, (true, 1, 1));
    memory.put(&no_tenant(), item(&["a"], "k", empty()), NOW_MS + 60).await.unwrap();
    assert_eq!(memory.sweep(NOW_MS + 1_000).await.unwrap(), 0);
    assert_eq!(visible(memory, "k", NOW_MS + 1_000).await, (true, 1, 1));
    memory.put(&no_tenant(), expiring("late", 100), NOW_MS).await.unwrap();
    memory.put(&no_tenant(), expiring("late", 100), NOW_MS + 100).await.unwrap();
    let late =
        memory.get(&no_tenant(), &parts(&["a"]), "late", NOW_MS + 100).await.unwrap().unwrap();
    assert_eq!(late.created_ms, NOW_MS + 100);
}

pub(crate) async fn sweep_deletes_expired_documents(memory: &dyn Memory) {
    put(memory, &["a"], "stays", empty()).await;
    memory.put(&no_tenant(), expiring("soon", 100), NOW_MS).await.unwrap();
    memory.put(&no_tenant(), expiring("later", 200), NOW_MS).await.unwrap();
    memory.put(&no_tenant(), expiring("deleted", 100), NOW_MS).await.unwrap();
    memory.delete(&no_tenant(), &parts(&["a"]), "deleted").await.unwrap();
    assert_eq!(memory.sweep(NOW_MS + 99).await.unwrap(), 0);
    assert_eq!(memory.sweep(NOW_MS + 100).await.unwrap(), 1);
    assert_eq!(memory.sweep(NOW_MS + 100).await.unwrap(), 0);
    assert_eq!(visible(memory, "later", NOW_MS + 100).await, (true, 2, 1));
    // The count of `clear` shows that the sweep deleted the expired document.
    assert_eq!(memory.clear(&no_tenant(), &[]).await.unwrap(), 2);
}

pub(crate) async fn sweep_spans_several_transactions(memory: &dyn Memory) {
    let no_tenant = no_tenant();
    let puts = (0..1_100).map(|n| memory.put(&no_tenant, expiring(&n.to_string(), 1), NOW_MS));
    assert!(join_all(puts).await.iter().all(Result::is_ok));
    assert_eq!(memory.sweep(NOW_MS + 1).await.unwrap(), 1_100);
}

pub(crate) async fn read_extends_a_sliding_expiry(memory: &dyn Memory) {
    let refreshed = |key: &str| PutItem { refresh_on_read: true, ..expiring(key, 1_600) };
    memory.put(&no_tenant(), refreshed("k"), NOW_MS).await.unwrap();
    memory.put(&no_tenant(), expiring("plain", 1_600), NOW_MS).await.unwrap();
    for step in 1..=4 {
        // A search and a read by key extend the expiry in turn.
        let now_ms = NOW_MS + step * 1_000;
        let search = under(&["a"]);
        let found = memory.search(&no_tenant(), &search, now_ms).await.unwrap();
        assert_eq!(found.len(), if step == 1 { 2 } else { 1 });
        let found = memory.get(&no_tenant(), &parts(&["a"]), "k", now_ms + 500).await.unwrap();
        assert_eq!(found.unwrap().updated_ms, NOW_MS);
    }
    assert_eq!(memory.sweep(NOW_MS + 5_000).await.unwrap(), 1);
    assert_eq!(memory.sweep(NOW_MS + 4_500 + 1_600).await.unwrap(), 1);
}

pub(crate) async fn peek_does_not_extend_expiry(memory: &dyn Memory) {
    let item = PutItem { refresh_on_read: true, ..expiring("k", 1_000) };
    memory.put(&no_tenant(), item, NOW_MS).await.unwrap();
    let search = MemorySearch { peek: true, ..under(&["a"]) };
    for (at_ms, is_visible) in [(500, true), (999, true), (1_000, false)] {
        let now_ms = NOW_MS + at_ms;
        let found = memory.peek(&no_tenant(), &parts(&["a"]), "k", now_ms).await.unwrap();
        assert_eq!(found.is_some(), is_visible, "{at_ms}");
        let found = memory.search(&no_tenant(), &search, now_ms).await.unwrap();
        assert_eq!(found.len(), usize::from(is_visible), "{at_ms}");
    }
}
