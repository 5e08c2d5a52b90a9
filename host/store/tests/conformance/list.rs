//! Lists of checkpoints: order, limits, filters.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::id::{Namespace, ThreadId};
use wattle_graph::weight::{SHARED_ITEM_BYTES, VALUE_BYTES};
use wattle_run::limit::HISTORY_BYTES;
use wattle_run::ports::Store;
use wattle_run::ports::store::{
    Batch, CheckpointParts, CheckpointQuery, CheckpointTuple, ListPage,
};

use crate::fixtures::{append, batch, checkpoint, create, events, id, run_id, seqs, thread_id};

/// Creates eight checkpoints, two of them of a subgraph.
async fn history(store: &dyn Store) -> ThreadId {
    let thread = create(store, "t").await;
    create(store, "other").await;
    for number in 1..=8 {
        let mut next = checkpoint(number, None, &[("n", json!(number))], &[]);
        next.meta.source =
            if number == 1 { CheckpointSource::Input } else { CheckpointSource::Loop };
        next.meta.run = run_id(if number < 5 { "first" } else { "second" });
        let namespace = if number % 4 == 0 { "child" } else { "" };
        next.meta.namespace = Namespace::new(namespace);
        next.meta.metadata = BTreeMap::from([
            ("parity".into(), json!(if number % 2 == 0 { "even" } else { "odd" })),
            ("nothing".into(), json!(null)),
            ("nested".into(), json!({ "deep": [number] })),
        ]);
        append(store, &thread, batch(next)).await.unwrap();
    }
    thread
}

async fn list(store: &dyn Store, query: CheckpointQuery) -> Vec<u64> {
    let page = store.checkpoints(&thread_id("t"), &query).await.unwrap();
    page.items.iter().map(|tuple| tuple.checkpoint.meta.id.0).collect()
}

fn filter<const N: usize>(facts: [(&str, Value); N]) -> CheckpointQuery {
    let filter = facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    CheckpointQuery { filter, ..CheckpointQuery::default() }
}

pub(crate) async fn newest_checkpoints_come_first(store: &dyn Store) {
    history(store).await;
    assert_eq!(list(store, CheckpointQuery::default()).await, [8, 7, 6, 5, 4, 3, 2, 1]);
    for empty in ["other", "missing"] {
        let query = CheckpointQuery::default();
        let page = store.checkpoints(&thread_id(empty), &query).await.unwrap();
        assert_eq!(page, ListPage::empty());
    }
}

pub(crate) async fn namespace_position_and_limit_restrict_the_list(store: &dyn Store) {
    history(store).await;
    let all = CheckpointQuery::default;
    let root = Some(Namespace::root());
    let child = Some(Namespace::new("child"));
    assert_eq!(list(store, CheckpointQuery { namespace: child, ..all() }).await, [8, 4]);
    assert_eq!(list(store, CheckpointQuery { before: Some(id(3)), ..all() }).await, [2, 1]);
    assert_eq!(list(store, CheckpointQuery { before: Some(id(1)), ..all() }).await, [0; 0]);
    assert_eq!(list(store, CheckpointQuery { limit: Some(2), ..all() }).await, [8, 7]);
    assert_eq!(list(store, CheckpointQuery { limit: Some(0), ..all() }).await, [0; 0]);
    let page = CheckpointQuery { namespace: root, before: Some(id(7)), limit: Some(3), ..all() };
    assert_eq!(list(store, page).await, [6, 5, 3]);
}

pub(crate) async fn all_filters_must_match(store: &dyn Store) {
    history(store).await;
    assert_eq!(list(store, filter([("source", json!("input"))])).await, [1]);
    assert_eq!(list(store, filter([("step", json!(3))])).await, [3]);
    assert_eq!(list(store, filter([("run", json!("first"))])).await, [4, 3, 2, 1]);
    assert_eq!(list(store, filter([("parity", json!("odd"))])).await, [7, 5, 3, 1]);
    assert_eq!(list(store, filter([("nested", json!({ "deep": [6] }))])).await, [6]);
    let both = filter([("run", json!("second")), ("parity", json!("even"))]);
    assert_eq!(list(store, both).await, [8, 6]);
    let neither = filter([("run", json!("second")), ("source", json!("input"))]);
    assert_eq!(list(store, neither).await, [0; 0]);
}

pub(crate) async fn hostile_filter_keys_match_nothing(store: &dyn Store) {
    history(store).await;
    let keys = ["' or 1=1 --", "$.parity", "nested.deep", "", "\0", "metadata", "id", "a\"b", "%"];
    for key in keys {
        for value in [json!("even"), json!(null), json!(1)] {
            assert_eq!(list(store, filter([(key, value)])).await, [0; 0], "{key:?}");
        }
    }
    assert_eq!(list(store, filter([("nothing", json!(null))])).await.len(), 8);
    assert_eq!(list(store, filter([("source", json!(null))])).await, [0; 0]);
}

pub(crate) async fn checkpoint_pages_are_bounded_in_bytes(store: &dyn Store) {
    let thread = create(store, "t").await;
    let text = json!("x".repeat(HISTORY_BYTES as usize / 5 * 2));
    // The values of two channels fit into a page, and the values of three channels do not.
    let channels = [
        (vec!["a"], vec![]),
        (vec!["b"], vec![("a", 1)]),
        (vec!["c"], vec![("a", 1), ("b", 2)]),
        (vec![], vec![("a", 1), ("b", 2)]),
        (vec![], vec![]),
    ];
    for (number, (changed, older)) in (1..).zip(channels) {
        let changed: Vec<_> = changed.into_iter().map(|name| (name, text.clone())).collect();
        append(store, &thread, batch(checkpoint(number, None, &changed, &older))).await.unwrap();
    }
    append(store, &thread, Batch { base: Some(id(5)), ..events(1, 2) }).await.unwrap();
    let ids = |page: &ListPage<CheckpointTuple>| {
        page.items.iter().map(|tuple| tuple.checkpoint.meta.id.0).collect::<Vec<_>>()
    };
    let (mut query, mut pages) = (CheckpointQuery::default(), Vec::new());
    loop {
        let page = store.checkpoints(&thread, &query).await.unwrap();
        query.before = page.items.last().map(|tuple| tuple.checkpoint.meta.id);
        pages.push(ids(&page));
        if page.is_last {
            break;
        }
    }
    assert_eq!(pages, [vec![5, 4], vec![3], vec![2], vec![1]]);
    for parts in [CheckpointParts::WithoutValues, CheckpointParts::Meta] {
        let query = CheckpointQuery { parts, ..CheckpointQuery::default() };
        let page = store.checkpoints(&thread, &query).await.unwrap();
        assert_eq!((ids(&page), page.is_last), (vec![5, 4, 3, 2, 1], true));
        assert!(page.items.iter().all(|tuple| tuple.checkpoint.values.is_empty()));
        let expected: &[u64] = if parts.has_events() { &[1, 2] } else { &[] };
        assert_eq!(seqs(&page.items[0].events), expected);
    }
}

/// Returns a list of empty lists, each with `item_bytes` bytes in memory. The list takes 2/5 of the
/// memory of a page, and far less as JSON.
fn dense_list(item_bytes: u64) -> Value {
    let items = HISTORY_BYTES / 5 * 2 / item_bytes;
    let list = json!(vec![json!([]); items as usize]);
    assert!(list.to_string().len() as u64 * 20 < HISTORY_BYTES);
    list
}

/// Reads the checkpoints of a thread, page by page.
async fn pages(store: &dyn Store, thread: &ThreadId) -> Vec<Vec<CheckpointTuple>> {
    let (mut query, mut pages) = (CheckpointQuery::default(), Vec::new());
    loop {
        let page = store.checkpoints(thread, &query).await.unwrap();
        query.before = page.items.last().map(|tuple| tuple.checkpoint.meta.id);
        pages.push(page.items);
        if page.is_last {
            return pages;
        }
    }
}

fn ids(pages: &[Vec<CheckpointTuple>]) -> Vec<Vec<u64>> {
    let of_page =
        |page: &Vec<CheckpointTuple>| page.iter().map(|tuple| tuple.checkpoint.meta.id.0).collect();
    pages.iter().map(of_page).collect()
}

pub(crate) async fn checkpoint_pages_are_bounded_in_memory(store: &dyn Store) {
    let thread = create(store, "t").await;
    let list = dense_list(VALUE_BYTES + SHARED_ITEM_BYTES);
    for number in 1..=4 {
        let next = checkpoint(number, None, &[("a", list.clone())], &[]);
        append(store, &thread, batch(next)).await.unwrap();
    }
    append(store, &thread, Batch { base: Some(id(2)), ..events(1, 2) }).await.unwrap();
    let pages = pages(store, &thread).await;
    assert!(pages.iter().flatten().all(|tuple| tuple.checkpoint.values.len() == 1));
    assert_eq!(ids(&pages), [vec![4, 3], vec![2, 1]]);
}

pub(crate) async fn metadata_counts_towards_the_memory_of_a_page(store: &dyn Store) {
    let thread = create(store, "t").await;
    let metadata = BTreeMap::from([("a".to_owned(), dense_list(VALUE_BYTES))]);
    for number in 1..=4 {
        let mut next = checkpoint(number, None, &[], &[]);
        next.meta.metadata = metadata.clone();
        append(store, &thread, batch(next)).await.unwrap();
    }
    assert_eq!(ids(&pages(store, &thread).await), [vec![4, 3], vec![2, 1]]);
}

pub(crate) async fn pending_events_are_listed_with_their_checkpoint(store: &dyn Store) {
    let thread = history(store).await;
    append(store, &thread, Batch { base: Some(id(8)), ..events(1, 2) }).await.unwrap();
    append(store, &thread, Batch { base: Some(id(3)), ..events(3, 3) }).await.unwrap();
    let page = store.checkpoints(&thread, &CheckpointQuery::default()).await.unwrap();
    for tuple in page.items {
        let expected: &[u64] = match tuple.checkpoint.meta.id.0 {
            8 => &[1, 2],
            3 => &[3],
            _ => &[],
        };
        assert_eq!(seqs(&tuple.events), expected);
    }
}

/// Events with earlier base checkpoints are appended while a client reads the history.
pub(crate) async fn events_appended_between_two_pages_are_listed(store: &dyn Store) {
    let thread = history(store).await;
    let mut query = CheckpointQuery { limit: Some(3), ..CheckpointQuery::default() };
    let mut listed = Vec::new();
    for (seq, base) in [(1, 8), (2, 3), (3, 1), (4, 5)] {
        append(store, &thread, Batch { base: Some(id(base)), ..events(seq, seq) }).await.unwrap();
        let page = store.checkpoints(&thread, &query).await.unwrap();
        let again = store.checkpoints(&thread, &query).await.unwrap();
        assert_eq!(page, again);
        query.before = page.items.last().map(|tuple| tuple.checkpoint.meta.id);
        let of = |tuple: &CheckpointTuple| (tuple.checkpoint.meta.id.0, seqs(&tuple.events));
        listed.extend(page.items.iter().map(of));
        if page.is_last {
            break;
        }
    }
    let expected = [8, 7, 6, 5, 4, 3, 2, 1].map(|number| {
        let events = match number {
            8 => vec![1],
            3 => vec![2],
            1 => vec![3],
            _ => vec![],
        };
        (number, events)
    });
    assert_eq!(listed, expected);
}

pub(crate) async fn filters_select_from_the_unfiltered_list(store: &dyn Store) {
    let thread = history(store).await;
    let plain = store.checkpoints(&thread, &CheckpointQuery::default()).await.unwrap().items;
    let namespaces = [None, Some(Namespace::root()), Some(Namespace::new("child"))];
    let filters = [None, Some(("parity", json!("even"))), Some(("run", json!("second")))];
    for namespace in &namespaces {
        for before in [None, Some(id(6)), Some(id(100))] {
            for limit in [None, Some(1), Some(3)] {
                for filter in &filters {
                    let filter =
                        filter.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
                    let query = CheckpointQuery {
                        namespace: namespace.clone(),
                        before,
                        filter: filter.collect(),
                        limit,
                        ..CheckpointQuery::default()
                    };
                    let page = store.checkpoints(&thread, &query).await.unwrap().items;
                    assert_eq!(page, expected(&plain, &query), "{query:?}");
                }
            }
        }
    }
}

fn expected(plain: &[CheckpointTuple], query: &CheckpointQuery) -> Vec<CheckpointTuple> {
    let matches = |tuple: &&CheckpointTuple| {
        let meta = &tuple.checkpoint.meta;
        let facts = |(key, value): (&String, &Value)| match key.as_str() {
            "run" => meta.run.as_str() == value,
            key => meta.metadata.get(key) == Some(value),
        };
        query.namespace.as_ref().is_none_or(|namespace| *namespace == meta.namespace)
            && query.before.is_none_or(|before| meta.id < before)
            && query.filter.iter().all(facts)
    };
    plain.iter().filter(matches).take(query.limit.unwrap_or(usize::MAX)).cloned().collect()
}
