//! Conditional puts and deletes, and lists in key order.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::{Value, json};
use wattle_run::ports::Memory;
use wattle_run::ports::memory::PutItem;

use crate::fixtures::{NOW_MS, empty, get, item, no_tenant, parts, put, tenant};

async fn put_if(memory: &dyn Memory, known: Option<&Value>, item: PutItem, now_ms: i64) -> bool {
    memory.compare_and_set(&no_tenant(), known, item, now_ms).await.unwrap()
}

async fn keys_after(memory: &dyn Memory, after: &str, limit: usize) -> Vec<String> {
    let found = memory.list(&no_tenant(), &parts(&["a"]), after, limit, NOW_MS).await.unwrap();
    found.into_iter().map(|item| item.key).collect()
}

pub(crate) async fn put_if_replaces_the_expected_document(memory: &dyn Memory) {
    let new = |value: Value| item(&["a"], "k", value);
    let (one, two) = (json!({ "n": 1, "f": 0.1 }), json!({ "n": 2 }));
    assert!(!put_if(memory, Some(&one), new(two.clone()), NOW_MS).await, "no document exists");
    assert!(put_if(memory, None, new(one.clone()), NOW_MS).await);
    assert!(!put_if(memory, None, new(two.clone()), NOW_MS).await, "a document exists");
    assert!(
        !put_if(memory, Some(&two), new(json!(3)), NOW_MS).await,
        "the stored document differs"
    );
    assert_eq!(get(memory, &["a"], "k").await.unwrap().value, one);
    assert!(put_if(memory, Some(&one), new(two.clone()), NOW_MS + 5).await);
    let found = get(memory, &["a"], "k").await.unwrap();
    assert_eq!((found.value, found.created_ms), (two.clone(), NOW_MS));
    assert_eq!(found.updated_ms, NOW_MS + 5);
    // Repeats the put, as a caller does after a lost reply.
    assert!(put_if(memory, Some(&one), new(two.clone()), NOW_MS + 9).await);
    assert_eq!(get(memory, &["a"], "k").await.unwrap().updated_ms, NOW_MS + 5);
    memory.delete(&no_tenant(), &parts(&["a"]), "k").await.unwrap();
    assert!(!put_if(memory, Some(&two), new(one), NOW_MS).await);
}

pub(crate) async fn delete_if_deletes_the_expected_document(memory: &dyn Memory) {
    let delete_if = async |known: &Value, now_ms| {
        memory.compare_and_delete(&no_tenant(), &parts(&["a"]), "k", known, now_ms).await.unwrap()
    };
    let one = json!({ "n": 1, "f": 0.1 });
    assert!(delete_if(&one, NOW_MS).await, "no document exists");
    put(memory, &["a"], "k", one.clone()).await;
    assert!(!delete_if(&json!({ "n": 2 }), NOW_MS).await, "the stored document differs");
    assert_eq!(get(memory, &["a"], "k").await.unwrap().value, one);
    assert!(delete_if(&one, NOW_MS).await);
    assert!(get(memory, &["a"], "k").await.is_none());
    assert!(delete_if(&one, NOW_MS).await, "a repetition after a lost reply");
    let kept = PutItem { ttl_ms: Some(100), ..item(&["a"], "k", json!(1)) };
    assert!(put_if(memory, None, kept, NOW_MS).await);
    assert!(delete_if(&one, NOW_MS + 100).await, "the document has expired");
}

pub(crate) async fn put_if_treats_expired_documents_as_absent(memory: &dyn Memory) {
    let kept = |value: Value| PutItem { ttl_ms: Some(100), ..item(&["a"], "k", value) };
    assert!(put_if(memory, None, kept(json!(1)), NOW_MS).await);
    let later_ms = NOW_MS + 100;
    assert!(!put_if(memory, Some(&json!(1)), kept(json!(2)), later_ms).await);
    assert!(put_if(memory, None, kept(json!(3)), later_ms).await);
    let found =
        memory.get(&no_tenant(), &parts(&["a"]), "k", later_ms + 99).await.unwrap().unwrap();
    assert_eq!((found.value, found.created_ms), (json!(3), later_ms));
    assert_eq!(memory.sweep(later_ms + 99).await.unwrap(), 0);
    assert_eq!(memory.sweep(later_ms + 100).await.unwrap(), 1);
}

pub(crate) async fn concurrent_put_if_has_one_winner(memory: &dyn Memory) {
    put(memory, &["a"], "k", json!({ "n": 0 })).await;
    for turn in 0..5 {
        let known = json!({ "n": turn });
        let writes = (0..8).map(|who| {
            let known = known.clone();
            async move {
                let new = json!({ "n": turn + 1, "who": who });
                put_if(memory, Some(&known), item(&["a"], "k", new), NOW_MS).await
            }
        });
        let done: Vec<bool> = join_all(writes).await;
        let winner = done.iter().position(|done| *done).unwrap();
        assert_eq!(done.iter().filter(|done| **done).count(), 1, "{done:?}");
        let found = get(memory, &["a"], "k").await.unwrap().value;
        assert_eq!(found, json!({ "n": turn + 1, "who": winner }));
        put(memory, &["a"], "k", json!({ "n": turn + 1 })).await;
    }
}

pub(crate) async fn listing_is_ordered_by_key(memory: &dyn Memory) {
    let mut keys: BTreeSet<String> = (0..230).map(|n| format!("{n:03}")).collect();
    keys.extend(["\0", "a", "a\0", "\u{e9}", "\u{10ffff}"].map(str::to_owned));
    join_all(keys.iter().map(|key| put(memory, &["a"], key, empty()))).await;
    for other in [&["a", "b"][..], &["ab"], &["a\0"]] {
        put(memory, other, "b", empty()).await;
    }
    memory.put(&tenant("t"), item(&["a"], "c", empty()), NOW_MS).await.unwrap();
    let gone = PutItem { ttl_ms: Some(1), ..item(&["a"], "005x", empty()) };
    memory.put(&no_tenant(), gone, NOW_MS - 1).await.unwrap();
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = keys_after(memory, &after, 70).await;
        assert!(page.len() <= 70);
        let Some(last) = page.last() else { break };
        after.clone_from(last);
        found.extend(page);
    }
    assert_eq!(found, keys.into_iter().collect::<Vec<_>>());
    assert_eq!(keys_after(memory, "005", 2).await, ["006", "007"]);
    assert_eq!(keys_after(memory, "0055", 1).await, ["006"], "the key `0055` need not exist");
}

pub(crate) async fn listing_is_bounded_by_bytes(memory: &dyn Memory) {
    let large = json!("x".repeat(200_000));
    for n in 10..60 {
        put(memory, &["a"], &n.to_string(), large.clone()).await;
    }
    let first = keys_after(memory, "", 1_000).await;
    assert!((1..50).contains(&first.len()), "{}", first.len());
    let next = keys_after(memory, first.last().unwrap(), 1_000).await;
    assert_eq!(first.len() + next.len(), 50);
}
