//! Single documents: keys, values, scopes.

use futures::future::join_all;
use serde_json::json;
use wattle_run::limit::MEMORY_ROW_BYTES;
use wattle_run::ports::Memory;
use wattle_run::ports::memory::{Item, MemoryScope, PutItem};

use crate::fixtures::{NOW_MS, empty, get, item, keys, list, no_tenant, parts, put, tenant, under};

pub(crate) async fn document_round_trips(memory: &dyn Memory) {
    assert_eq!(get(memory, &["users", "42"], "language").await, None);
    put(memory, &["users", "42"], "language", json!({ "code": "de" })).await;
    let expected = Item {
        namespace: parts(&["users", "42"]),
        key: "language".into(),
        value: json!({ "code": "de" }),
        created_ms: NOW_MS,
        updated_ms: NOW_MS,
        score: None,
    };
    assert_eq!(get(memory, &["users", "42"], "language").await, Some(expected));
}

pub(crate) async fn documents_of_every_kind_round_trip(memory: &dyn Memory) {
    for (place, value) in [
        json!({ "z": 1, "a": { "deep": [1, 2.5, -0.0, 1e300, u64::MAX, i64::MIN] } }),
        json!("text with \0 and \u{1f980} and \" and \\u0000"),
        json!([]),
        json!(null),
        json!(false),
        json!({ "": { "\0": "" } }),
        json!("x".repeat(200_000)),
    ]
    .into_iter()
    .enumerate()
    {
        let key = place.to_string();
        put(memory, &["kinds"], &key, value.clone()).await;
        let found = get(memory, &["kinds"], &key).await.unwrap().value;
        assert_eq!(found.to_string(), value.to_string());
    }
}

pub(crate) async fn any_text_is_a_valid_key(memory: &dyn Memory) {
    let texts =
        ["a", "A", "\0", "\0\0", "a\0b", "\u{e9}", "e\u{301}", "\u{10ffff}", "%", "a/b", "' --"];
    for namespace in texts {
        for key in texts {
            put(memory, &[namespace], key, json!([namespace, key])).await;
        }
    }
    for namespace in texts {
        for key in texts {
            let found = get(memory, &[namespace], key).await.unwrap();
            assert_eq!((found.namespace, found.key.as_str()), (parts(&[namespace]), key));
            assert_eq!(found.value, json!([namespace, key]));
        }
        assert_eq!(keys(memory, &under(&[namespace])).await.len(), texts.len());
    }
    let long = ["n".repeat(512), "m".repeat(512), "\u{10ffff}".repeat(128)];
    put(memory, &[&long[0], &long[1]], &long[2], empty()).await;
    assert!(get(memory, &[&long[0], &long[1]], &long[2]).await.is_some());
}

pub(crate) async fn similar_keys_are_distinct(memory: &dyn Memory) {
    put(memory, &["a", "b"], "c", json!(1)).await;
    put(memory, &["a"], "b", json!(2)).await;
    put(memory, &["ab"], "c", json!(3)).await;
    assert_eq!(get(memory, &["a"], "bc").await, None);
    assert_eq!(get(memory, &["a", "b", "c"], "c").await, None);
    for (namespace, key, value) in
        [(&["a", "b"][..], "c", json!(1)), (&["a"], "b", json!(2)), (&["ab"], "c", json!(3))]
    {
        assert_eq!(get(memory, namespace, key).await.unwrap().value, value);
    }
}

pub(crate) async fn second_put_keeps_the_creation_time(memory: &dyn Memory) {
    put(memory, &["a"], "k", json!(1)).await;
    memory.put(&no_tenant(), item(&["a"], "k", json!(2)), NOW_MS + 5).await.unwrap();
    let found = get(memory, &["a"], "k").await.unwrap();
    assert_eq!((found.value, found.created_ms, found.updated_ms), (json!(2), NOW_MS, NOW_MS + 5));
}

pub(crate) async fn deletion_is_idempotent(memory: &dyn Memory) {
    put(memory, &["a"], "k", json!(1)).await;
    put(memory, &["a"], "other", json!(1)).await;
    for _ in 0..2 {
        memory.delete(&no_tenant(), &parts(&["a"]), "k").await.unwrap();
        assert_eq!(keys(memory, &under(&[])).await, ["other"]);
    }
}

pub(crate) async fn tenants_are_isolated(memory: &dyn Memory) {
    let scopes = [no_tenant(), tenant("acme"), tenant("acm"), tenant("acme2")];
    for (place, scope) in scopes.iter().enumerate() {
        let key = place.to_string();
        memory.put(scope, item(&["a"], &key, json!(place)), NOW_MS).await.unwrap();
        memory.put(scope, item(&["a"], "same", json!(place)), NOW_MS).await.unwrap();
    }
    for (place, scope) in scopes.iter().enumerate() {
        let same = memory.get(scope, &parts(&["a"]), "same", NOW_MS).await.unwrap().unwrap();
        assert_eq!(same.value, json!(place));
        let found = memory.search(scope, &under(&[]), NOW_MS).await.unwrap();
        let found: Vec<_> = found.into_iter().map(|item| item.key).collect();
        assert_eq!(found, [place.to_string(), "same".into()]);
    }
    memory.delete(&tenant("acme"), &parts(&["a"]), "same").await.unwrap();
    assert_eq!(memory.clear(&tenant("acm"), &[]).await.unwrap(), 2);
    let left = memory.search(&tenant("acme"), &under(&[]), NOW_MS).await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(keys(memory, &under(&[])).await.len(), 2);
    // The name of a tenant must not act as a namespace of requests without a tenant.
    assert_eq!(keys(memory, &under(&["acme"])).await, Vec::<String>::new());
}

/// An agent that uses the namespace and the key of a document of the host neither reads nor changes
/// that document.
pub(crate) async fn host_scope_is_isolated(memory: &dyn Memory) {
    for agents in [no_tenant(), tenant("acme")] {
        let host = MemoryScope::Host(agents.tenant().cloned());
        memory.put(&host, item(&["wattle", "cache"], "k", json!("kept")), NOW_MS).await.unwrap();
        let place = parts(&["wattle", "cache"]);
        assert_eq!(memory.get(&agents, &place, "k", NOW_MS).await, Ok(None));
        assert_eq!(memory.search(&agents, &under(&[]), NOW_MS).await, Ok(Vec::new()));
        let listed = memory.namespaces(&agents, &list(&[], &[]), NOW_MS).await;
        assert_eq!(listed, Ok(Vec::new()));
        memory
            .put(&agents, item(&["wattle", "cache"], "k", json!("forged")), NOW_MS)
            .await
            .unwrap();
        let kept = memory.get(&host, &place, "k", NOW_MS).await.unwrap().unwrap();
        assert_eq!(kept.value, json!("kept"));
        assert_eq!(memory.clear(&agents, &[]).await, Ok(1));
        memory.delete(&agents, &place, "k").await.unwrap();
        assert_eq!(memory.clear(&host, &place).await, Ok(1));
    }
}

pub(crate) async fn clear_deletes_only_documents_under_the_prefix(memory: &dyn Memory) {
    for namespace in [&["a"][..], &["a", "b"], &["a", "b", "c"], &["ab"], &["a\0"]] {
        put(memory, namespace, "k", empty()).await;
    }
    assert_eq!(memory.clear(&no_tenant(), &parts(&["a", "b"])).await.unwrap(), 2);
    assert_eq!(memory.clear(&no_tenant(), &parts(&["a", "b"])).await.unwrap(), 0);
    assert_eq!(keys(memory, &under(&["a"])).await.len(), 1);
    assert_eq!(memory.clear(&no_tenant(), &[]).await.unwrap(), 3);
}

pub(crate) async fn concurrent_puts_are_all_kept(memory: &dyn Memory) {
    let keys: Vec<String> = (0..200).map(|n| format!("{n:03}")).collect();
    join_all(keys.iter().map(|key| put(memory, &["many"], key, json!(key)))).await;
    let found = memory.search(&no_tenant(), &under(&["many"]), NOW_MS).await.unwrap();
    assert_eq!(found.iter().map(|item| item.key.clone()).collect::<Vec<_>>(), keys);
    assert!(found.iter().all(|item| item.value == json!(item.key)));
}

pub(crate) async fn usage_follows_every_change_under_a_prefix(memory: &dyn Memory) {
    let usage = async |scope: &MemoryScope, prefix: &[&str]| {
        memory.usage(scope, &parts(prefix)).await.unwrap()
    };
    let of = async |prefix: &[&str]| usage(&no_tenant(), prefix).await;
    assert_eq!((of(&[]).await, of(&["a", "b"]).await), (0, 0));
    put(memory, &["a", "b"], "k", json!("x".repeat(10_000))).await;
    let large = of(&["a", "b"]).await;
    assert!((10_000..10_000 + 2 * MEMORY_ROW_BYTES).contains(&large), "{large}");
    put(memory, &["a", "b"], "k", json!("x".repeat(100))).await;
    assert_eq!(of(&["a", "b"]).await, large - 9_900);
    put(memory, &["ab"], "k", json!(1)).await;
    assert_eq!(of(&[]).await, of(&["a"]).await + of(&["ab"]).await);
    assert_eq!(usage(&tenant("acme"), &[]).await, 0);
    memory.put(&tenant("acme"), item(&["a"], "k", json!(1)), NOW_MS).await.unwrap();
    assert!(usage(&tenant("acme"), &["a"]).await > MEMORY_ROW_BYTES);

    // The usage of a prefix does not depend on whether the usage was requested before.
    let keys: Vec<String> = (0..40).map(|key| key.to_string()).collect();
    join_all(keys.iter().map(|key| put(memory, &["a", "c", "d"], key, json!(key)))).await;
    let soon = PutItem { ttl_ms: Some(1), ..item(&["a", "c", "d"], "soon", json!(1)) };
    memory.put(&no_tenant(), soon, NOW_MS).await.unwrap();
    memory.delete(&no_tenant(), &parts(&["a", "c", "d"]), "0").await.unwrap();
    memory.delete(&no_tenant(), &parts(&["a", "c", "d"]), "none").await.unwrap();
    assert_eq!(memory.sweep(NOW_MS + 1).await.unwrap(), 1);
    assert_eq!(of(&["a"]).await, of(&["a", "b"]).await + of(&["a", "c", "d"]).await);
    assert_eq!(memory.clear(&no_tenant(), &parts(&["a", "c"])).await.unwrap(), 39);
    assert_eq!((of(&["a", "c", "d"]).await, of(&["a", "c"]).await), (0, 0));
    assert_eq!(of(&["a"]).await, large - 9_900);
}
