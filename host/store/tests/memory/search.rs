//! Searches: prefixes, filters, words, order, pages.

use futures::future::join_all;
use serde_json::json;
use wattle_run::limit::MEMORY_DOCUMENT_BYTES;
use wattle_run::ports::Memory;
use wattle_run::ports::memory::MemorySearch;

use crate::fixtures::{NOW_MS, empty, item, keys, no_tenant, put, under, with_filter};

pub(crate) async fn prefix_matches_whole_namespace_parts(memory: &dyn Memory) {
    for (namespace, key) in [
        (&["users"][..], "a"),
        (&["users", "4"], "b"),
        (&["users", "42"], "c"),
        (&["users", "42", "x"], "d"),
        (&["users2"], "e"),
    ] {
        put(memory, namespace, key, empty()).await;
    }
    assert_eq!(keys(memory, &under(&[])).await, ["a", "b", "c", "d", "e"]);
    assert_eq!(keys(memory, &under(&["users"])).await, ["a", "b", "c", "d"]);
    assert_eq!(keys(memory, &under(&["users", "4"])).await, ["b"]);
    assert_eq!(keys(memory, &under(&["users", "42"])).await, ["c", "d"]);
    assert_eq!(keys(memory, &under(&["use"])).await, Vec::<String>::new());
}

pub(crate) async fn newest_documents_come_first(memory: &dyn Memory) {
    for (key, at_ms) in [("a", 1), ("b", 3), ("c", 2), ("a", 4)] {
        memory.put(&no_tenant(), item(&["n"], key, empty()), NOW_MS + at_ms).await.unwrap();
    }
    assert_eq!(keys(memory, &under(&["n"])).await, ["a", "b", "c"]);
}

pub(crate) async fn all_conditions_must_match(memory: &dyn Memory) {
    for (key, kind, age) in
        [("a", "fact", json!(1)), ("b", "fact", json!(2.5)), ("c", "wish", json!("2"))]
    {
        put(memory, &["f"], key, json!({ "kind": kind, "age": age })).await;
    }
    for (filter, expected) in [
        (json!({ "kind": "fact" }), vec!["a", "b"]),
        (json!({ "kind": { "$ne": "fact" } }), vec!["c"]),
        (json!({ "age": { "$gte": 1, "$lt": 2.5 } }), vec!["a"]),
        (json!({ "age": { "$gt": 0 }, "kind": "fact" }), vec!["a", "b"]),
        (json!({ "age": { "$lte": "3" } }), vec!["c"]),
        (json!({ "missing": null }), vec!["a", "b", "c"]),
        (json!({ "missing": 1 }), vec![]),
    ] {
        assert_eq!(keys(memory, &with_filter(&filter)).await, expected, "{filter}");
    }
}

pub(crate) async fn special_characters_match_literally(memory: &dyn Memory) {
    let hostile = ["' or 1=1 --", "%", "_", "*", "\\", "a$1", "\0", "{{secret:KEY}}", "); drop"];
    for text in hostile {
        put(memory, &["h", text], text, json!({ text: text })).await;
    }
    for text in hostile {
        let filter = json!({ text: text });
        assert_eq!(keys(memory, &with_filter(&filter)).await, [text]);
        assert_eq!(keys(memory, &under(&["h", text])).await, [text]);
        let none = json!({ text: { "$gt": format!("{text}~") } });
        assert_eq!(keys(memory, &with_filter(&none)).await, Vec::<String>::new());
    }
}

pub(crate) async fn results_are_ranked_by_matching_words(memory: &dyn Memory) {
    put(memory, &["q"], "drinks", json!({ "text": "She likes green tea, not coffee" })).await;
    put(memory, &["q"], "tea", json!({ "text": "the kettle" })).await;
    put(memory, &["q"], "dog", json!({ "text": "a small dog" })).await;
    let query = |words: &str| MemorySearch { query: Some(words.into()), ..under(&["q"]) };
    let found = memory.search(&no_tenant(), &query("Green TEA"), NOW_MS).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|item| (item.key, item.score)).collect();
    assert_eq!(found, [("drinks".into(), Some(1.0)), ("tea".into(), Some(0.5))]);
    assert_eq!(keys(memory, &query("horse")).await, Vec::<String>::new());
    assert_eq!(keys(memory, &query("")).await, Vec::<String>::new());
}

pub(crate) async fn pages_of_a_search_are_contiguous(memory: &dyn Memory) {
    for n in 0..7 {
        put(memory, &["p"], &n.to_string(), empty()).await;
    }
    let page = |offset, limit| MemorySearch { offset, limit, ..under(&["p"]) };
    assert_eq!(keys(memory, &page(0, 3)).await, ["0", "1", "2"]);
    assert_eq!(keys(memory, &page(3, 3)).await, ["3", "4", "5"]);
    assert_eq!(keys(memory, &page(6, 3)).await, ["6"]);
    assert_eq!(keys(memory, &page(7, 3)).await, Vec::<String>::new());
    assert_eq!(keys(memory, &page(0, 0)).await, Vec::<String>::new());
    assert_eq!(keys(memory, &page(usize::MAX, 3)).await, Vec::<String>::new());
}

pub(crate) async fn search_over_the_scan_limit_fails(memory: &dyn Memory) {
    let large = "x".repeat(MEMORY_DOCUMENT_BYTES - 100);
    let keys: Vec<String> = (0..260).map(|n| n.to_string()).collect();
    let no_tenant = no_tenant();
    for some in keys.chunks(20) {
        let puts = some.iter().map(|key| {
            let item = item(&["large", key], key, json!(large));
            memory.put(&no_tenant, item, NOW_MS)
        });
        assert!(join_all(puts).await.iter().all(Result::is_ok));
    }
    let search = MemorySearch { limit: 1, ..under(&["large"]) };
    let failure = memory.search(&no_tenant, &search, NOW_MS).await.unwrap_err();
    assert_eq!(failure.code, "limit");
    assert!(failure.message.contains("`large`"), "{failure}");
    let search = MemorySearch { limit: 1, ..under(&["large", "7"]) };
    assert_eq!(memory.search(&no_tenant, &search, NOW_MS).await.unwrap().len(), 1);
}
