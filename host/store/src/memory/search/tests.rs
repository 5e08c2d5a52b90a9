//! Conditions, ranks and pages of searches, compared with a plain implementation.

use proptest::prelude::*;
use wattle_run::ports::memory::{MemoryScope, parse_filter};

use super::*;
use crate::memory::tokenize;

const NOW_MS: i64 = 1_000;

fn fits(filter: Value, document: Value) -> bool {
    parse_filter(&filter).unwrap().iter().all(|condition| matches(condition, &document))
}

#[test]
fn conditions_compare_fields() {
    let document = json!({ "n": 3, "f": 0.5, "t": "b", "list": [1, 2.0], "null": null });
    for filter in [
        json!({ "n": 3.0, "list": [1.0, 2], "missing": null, "null": null }),
        json!({ "n": { "$gt": 2, "$gte": 3, "$lt": 3.5, "$lte": 3, "$ne": 4 } }),
        json!({ "t": { "$gt": "a", "$lt": "c" }, "f": { "$lt": 1 } }),
        json!({ "missing": { "$ne": 1 } }),
        json!({}),
    ] {
        assert!(fits(filter.clone(), document.clone()), "{filter}");
    }
    for filter in [
        json!({ "n": { "$gt": "2" } }),
        json!({ "n": { "$lte": null } }),
        json!({ "t": { "$gte": 1 } }),
        json!({ "list": { "$gt": [0] } }),
        json!({ "list": [1] }),
        json!({ "missing": { "$lt": 1 } }),
        json!({ "n": 3, "t": "c" }),
    ] {
        assert!(!fits(filter.clone(), document.clone()), "{filter}");
    }
}

#[test]
fn large_whole_numbers_are_compared_exactly() {
    let document = json!({ "n": u64::MAX, "i": i64::MIN });
    assert!(fits(json!({ "n": { "$gt": u64::MAX - 1 }, "i": { "$lt": 0 } }), document.clone()));
    assert!(!fits(json!({ "n": { "$lt": u64::MAX } }), document));
}

#[test]
fn special_characters_in_filters_are_literal() {
    let name = "a' or 1=1; --\0\u{202e}${x}{{secret:KEY}}";
    let document = json!({ name: "%_\\\"" });
    assert!(fits(json!({ name: "%_\\\"" }), document.clone()));
    assert!(!fits(json!({ name: "%" }), document.clone()));
    assert!(!fits(json!({ "a": "x' or 'x'='x" }), document));
}

#[test]
fn only_objects_have_fields() {
    for document in [json!("a"), json!([{ "a": 1 }]), json!(null)] {
        assert!(!fits(json!({ "a": 1 }), document.clone()), "{document}");
        assert!(fits(json!({ "a": null }), document.clone()), "{document}");
    }
}

/// Generates a key, the time of the last write, a value and an expiry.
fn document() -> impl Strategy<Value = (u8, i64, Value, Option<i64>)> {
    let value = ("[abc ]{0,6}", 0..3_i64).prop_map(|(text, n)| json!({ "text": text, "n": n }));
    (0..8_u8, 0..4_i64, value, proptest::option::of(990..1_010_i64))
}

fn searches() -> impl Strategy<Value = MemorySearch> {
    (proptest::option::of("[abc ]{0,4}"), 0..4_i64, 0..6_usize, 0..6_usize).prop_map(
        |(query, n, limit, offset)| MemorySearch {
            prefix: Vec::new(),
            filter: parse_filter(&json!({ "n": { "$gte": n - 1 } })).unwrap(),
            query,
            limit,
            offset,
            peek: false,
        },
    )
}

proptest! {
    #[test]
    fn search_page_matches_sorted_reference(
        documents in proptest::collection::vec(document(), 0..24),
        search in searches(),
    ) {
        let path = path::encode(&MemoryScope::Tenant(None), &["a".to_owned()]);
        let mut collector = SearchCollector::new(&search, NOW_MS);
        let mut plain = Vec::new();
        for (index, (key, updated_ms, value, expires_ms)) in documents.iter().enumerate() {
            let key = format!("{key}-{index:02}");
            let stored = StoredDocument {
                created_ms: 0,
                updated_ms: *updated_ms,
                expires_ms: *expires_ms,
                refresh_ms: None,
                document: value.to_string(),
            };
            collector.collect((path.clone(), key.clone()), stored).unwrap();
            let score = search.query.as_ref().map(|query| {
                let held: Vec<&str> = value["text"].as_str().unwrap().split(' ').collect();
                let names = ["text", "n", &value["n"].to_string(), &key[..1], &key[2..]];
                let mut words: Vec<&str> = query.split(' ').filter(|it| !it.is_empty()).collect();
                words.sort_unstable();
                words.dedup();
                let hits = words.iter().filter(|word| held.contains(word) || names.contains(*word));
                hits.count() as f64 / words.len().max(1) as f64
            });
            let n = value["n"].as_i64().unwrap();
            let is_alive = expires_ms.is_none_or(|expires_ms| expires_ms > NOW_MS);
            let bound = search.filter[0].value.as_i64().unwrap();
            if is_alive && n >= bound && score.is_none_or(|score| score > 0.0) {
                plain.push((score, *updated_ms, key));
            }
        }
        plain.sort_by(|one, other| {
            let by_score = other.0.unwrap_or(0.0).total_cmp(&one.0.unwrap_or(0.0));
            by_score.then(other.1.cmp(&one.1)).then(one.2.cmp(&other.2))
        });
        let plain: Vec<_> = plain.into_iter().skip(search.offset).take(search.limit).collect();
        let found = collector.finish().unwrap().items;
        let found: Vec<_> =
            found.into_iter().map(|item| (item.score, item.updated_ms, item.key)).collect();
        prop_assert_eq!(found, plain);
    }
}

fn stored(bytes: usize) -> StoredDocument {
    let document = format!("\"{}\"", "x".repeat(bytes));
    StoredDocument { created_ms: 0, updated_ms: 0, expires_ms: None, refresh_ms: None, document }
}

#[test]
fn scan_over_budget_fails() {
    let search = MemorySearch { limit: 10, ..MemorySearch::default() };
    let mut collector = SearchCollector::new(&search, NOW_MS);
    let path = path::encode(&MemoryScope::Tenant(None), &["a".to_owned()]);
    for key in 0..MEMORY_SCANNED {
        collector.collect((path.clone(), format!("{key:06}")), stored(1)).unwrap();
    }
    let failure = collector.collect((path.clone(), "k".into()), stored(1)).unwrap_err();
    assert_eq!(failure.details, Some(json!({ "limit": "memory_scanned" })));
    assert_eq!(collector.finish().unwrap().items.len(), 10);
}

#[test]
fn too_large_page_reports_how_many_documents_fit() {
    let search = MemorySearch { limit: 100, ..MemorySearch::default() };
    let mut collector = SearchCollector::new(&search, NOW_MS);
    let path = path::encode(&MemoryScope::Tenant(None), &["a".to_owned()]);
    for key in 0..40 {
        collector.collect((path.clone(), format!("{key:02}")), stored(256 << 10)).unwrap();
    }
    let failure = collector.finish().err().unwrap();
    assert!(failure.message.contains("at most 31 of them"), "{failure}");
}

#[test]
fn equal_queries_have_equal_terms() {
    assert_eq!(tokenize::QueryTerms::new("A b a"), tokenize::QueryTerms::new("a B"));
}
