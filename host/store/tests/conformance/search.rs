//! Searches of threads: order, conditions, positions while threads change, budgets, counts.

use serde_json::{Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, GraphName, ThreadId};
use wattle_run::limit::LIST_BYTES;
use wattle_run::ports::Store;
use wattle_run::ports::store::{
    Batch, SearchBudget, TenantFilter, ThreadCounts, ThreadCursor, ThreadFailure, ThreadQuery,
    ThreadRecord, ThreadSearch, ThreadStatus,
};

use crate::fixtures::{append, record, run_id, thread_id};

async fn write(store: &dyn Store, record: ThreadRecord) {
    let thread = record.id.clone();
    append(store, &thread, Batch { record: Some(record), ..Batch::default() }).await.unwrap();
}

async fn touch(store: &dyn Store, thread: &ThreadId, updated_ms: i64) {
    let record = store.thread(thread).await.unwrap().unwrap().record;
    write(store, ThreadRecord { updated_ms, ..record }).await;
}

/// Creates six threads with different fields. Their order by update is `fecdba`, where `c` and `d`
/// were updated at the same time.
async fn six_threads(store: &dyn Store) {
    let statuses = [
        ThreadStatus::Idle,
        ThreadStatus::Running,
        ThreadStatus::Interrupted,
        ThreadStatus::Error,
        ThreadStatus::Error,
        ThreadStatus::Idle,
    ];
    for ((name, updated_ms), status) in
        ["a", "b", "d", "c", "e", "f"].into_iter().zip([10, 20, 30, 30, 50, 60]).zip(statuses)
    {
        let mut record = record(&thread_id(name));
        (record.updated_ms, record.status) = (updated_ms, status);
        record.created_ms = updated_ms / 10;
        record.stopped = name == "f";
        record.app = AppName::new(if name < "c" { "shop" } else { "demo" }).unwrap();
        record.graph = GraphName::new(if name == "e" { "Other" } else { "main" }).unwrap();
        record.tenant = (name > "c").then(|| "acme".to_owned());
        record.run = Some(run_id(&format!("run-of-{name}")));
        let failure = |code: &str| ThreadFailure::from(&Failure::new(code, "Über uns"));
        record.failure = (status == ThreadStatus::Error)
            .then(|| failure(if name == "c" { "rude" } else { "trap" }));
        let metadata = [
            ("customer", json!({ "id": updated_ms, "names": ["Ada", format!("Line {name}")] })),
            ("nothing", json!(null)),
        ];
        record.metadata = metadata.map(|(key, value)| (key.to_owned(), value)).into();
        write(store, record).await;
    }
}

/// Returns the ids of all pages of a search, and the number of pages.
async fn pages(store: &dyn Store, mut search: ThreadSearch) -> (String, usize) {
    let (mut found, mut pages) = (String::new(), 0);
    loop {
        let page = store.search_threads(&search).await.unwrap();
        assert!(page.items.len() <= search.limit);
        found.extend(page.items.iter().map(|thread| thread.id.as_str()));
        pages += 1;
        match page.next {
            Some(next) => search.after = Some(next),
            None => return (found, pages),
        }
    }
}

async fn list(store: &dyn Store, search: ThreadSearch) -> String {
    pages(store, search).await.0
}

fn text(text: &str) -> ThreadSearch {
    ThreadSearch { text: Some(text.to_owned()), ..ThreadSearch::default() }
}

fn metadata(key: &str, value: Value) -> ThreadSearch {
    ThreadSearch { metadata: [(key.to_owned(), value)].into(), ..ThreadSearch::default() }
}

pub(crate) async fn threads_are_found_by_each_field(store: &dyn Store) {
    let all = ThreadSearch::default;
    assert_eq!(list(store, all()).await, "");
    six_threads(store).await;
    assert_eq!(list(store, all()).await, "fecdba");
    let app = Some(AppName::new("shop").unwrap());
    assert_eq!(list(store, ThreadSearch { app, ..all() }).await, "ba");
    let graph = Some(GraphName::new("Other").unwrap());
    assert_eq!(list(store, ThreadSearch { graph, ..all() }).await, "e");
    for (status, found) in [
        (ThreadStatus::Idle, "fa"),
        (ThreadStatus::Running, "b"),
        (ThreadStatus::Interrupted, "d"),
        (ThreadStatus::Error, "ec"),
    ] {
        let status = Some(status);
        assert_eq!(list(store, ThreadSearch { status, ..all() }).await, found, "{status:?}");
    }
    for (tenant, found) in [("acme", "fed"), ("ACME", ""), ("", "")] {
        let tenant = TenantFilter::Named(tenant.to_owned());
        assert_eq!(list(store, ThreadSearch { tenant, ..all() }).await, found);
    }
    let tenant = TenantFilter::None;
    assert_eq!(list(store, ThreadSearch { tenant, ..all() }).await, "cba");
    for (failure, found) in [("rude", "c"), ("trap", "e"), ("tra", "")] {
        let failure = Some(failure.to_owned());
        assert_eq!(list(store, ThreadSearch { failure, ..all() }).await, found);
    }
    assert_eq!(list(store, ThreadSearch { created_ms: 2..=3, ..all() }).await, "cdb");
    assert_eq!(list(store, ThreadSearch { updated_ms: 30..=50, ..all() }).await, "ecd");
    assert_eq!(list(store, ThreadSearch { updated_ms: 61..=i64::MAX, ..all() }).await, "");
}

pub(crate) async fn text_search_ignores_case(store: &dyn Store) {
    six_threads(store).await;
    for (wanted, found) in [
        ("RUN-OF-B", "b"),
        ("demo", "fecd"),
        ("oTHER", "e"),
        ("line ", "fecdba"),
        ("line c", "c"),
        ("über UNS", "ec"),
        ("RUDE", "c"),
        ("acme", ""),
        ("customer", ""),
        ("%", ""),
        ("_", ""),
        ("", "fecdba"),
    ] {
        assert_eq!(list(store, text(wanted)).await, found, "{wanted:?}");
    }
}

pub(crate) async fn metadata_condition_matches_a_part_of_the_metadata(store: &dyn Store) {
    six_threads(store).await;
    for (key, value, found) in [
        ("customer", json!({ "id": 30 }), "cd"),
        ("customer", json!({ "id": "30" }), ""),
        ("customer", json!({}), "fecdba"),
        ("customer", json!({ "names": ["Ada"] }), ""),
        ("nothing", json!(null), "fecdba"),
        ("missing", json!(null), ""),
    ] {
        assert_eq!(list(store, metadata(key, value.clone())).await, found, "{key} {value}");
    }
    for key in ["' or 1=1 --", "$.customer", "customer.id", "", "\0", "id", "a\"b", "%"] {
        assert_eq!(list(store, metadata(key, json!(null))).await, "", "{key:?}");
    }
}

pub(crate) async fn all_conditions_must_hold(store: &dyn Store) {
    six_threads(store).await;
    let both = ThreadSearch { status: Some(ThreadStatus::Error), ..text("line") };
    assert_eq!(list(store, both.clone()).await, "ec");
    let tenant = TenantFilter::Named("acme".to_owned());
    let all = ThreadSearch { tenant, created_ms: 0..=5, ..both };
    assert_eq!(list(store, all.clone()).await, "e");
    assert_eq!(list(store, ThreadSearch { failure: Some("rude".to_owned()), ..all }).await, "");
}

pub(crate) async fn expired_threads_are_left_out(store: &dyn Store) {
    six_threads(store).await;
    // Of these threads, only `d` is interrupted and expires.
    for name in ["b", "d", "e", "f"] {
        let record = store.thread(&thread_id(name)).await.unwrap().unwrap().record;
        write(store, ThreadRecord { expires_ms: Some(100), ..record }).await;
    }
    for (unexpired_at_ms, found) in [(None, "fecdba"), (Some(99), "fecdba"), (Some(100), "fecba")] {
        for search in [ThreadSearch::default(), text("line"), metadata("nothing", json!(null))] {
            let search = ThreadSearch { unexpired_at_ms, limit: found.len(), ..search };
            assert_eq!(pages(store, search.clone()).await, (found.to_owned(), 1));
            let counts = store.count_threads(&search).await.unwrap();
            assert_eq!(counts.total(), found.len() as u64);
        }
        let limit = Some(found.len());
        let query = ThreadQuery { unexpired_at_ms, limit, ..ThreadQuery::default() };
        let page = store.threads(&query).await.unwrap();
        let ids: Vec<&str> = page.items.iter().map(|thread| thread.id.as_str()).collect();
        assert_eq!((ids.concat().as_str(), page.is_last), (found, true));
    }
}

pub(crate) async fn search_continues_after_its_position(store: &dyn Store) {
    six_threads(store).await;
    for limit in 1..=7 {
        for search in [ThreadSearch::default(), text("line"), metadata("nothing", json!(null))] {
            let found = pages(store, ThreadSearch { limit, ..search }).await;
            assert_eq!(found, ("fecdba".to_owned(), 6_usize.div_ceil(limit)));
        }
    }
    // Pages of an app and a tenant have no thread of another one.
    let acme = || TenantFilter::Named("acme".to_owned());
    for (app, tenant, expected) in [
        ("demo", acme(), "fed"),
        ("demo", TenantFilter::None, "c"),
        ("shop", TenantFilter::None, "ba"),
        ("shop", acme(), ""),
    ] {
        let app = Some(AppName::new(app).unwrap());
        for limit in 1..=4 {
            let (app, tenant) = (app.clone(), tenant.clone());
            let (found, read) =
                pages(store, ThreadSearch { app, tenant, limit, ..ThreadSearch::default() }).await;
            assert_eq!((found.as_str(), read), (expected, expected.len().div_ceil(limit).max(1)));
        }
    }
    let search = |updated_ms, thread: &str, newest| ThreadSearch {
        after: Some(ThreadCursor { updated_ms, thread: thread_id(thread) }),
        updated_ms: i64::MIN..=newest,
        ..ThreadSearch::default()
    };
    // The thread that a position names need not exist.
    assert_eq!(list(store, search(30, "cc", i64::MAX)).await, "dba");
    assert_eq!(list(store, search(90, "x", 50)).await, "ecdba");
    assert_eq!(list(store, search(i64::MIN, "x", i64::MAX)).await, "");
}

pub(crate) async fn positions_stay_valid_while_threads_change(store: &dyn Store) {
    six_threads(store).await;
    let first = ThreadSearch { limit: 2, ..ThreadSearch::default() };
    let page = store.search_threads(&first).await.unwrap();
    assert_eq!(page.next, page.items.last().map(ThreadCursor::from));
    // The last thread of the page moves to the front, a new thread is created, and a thread is
    // deleted.
    touch(store, &thread_id("e"), 70).await;
    write(store, ThreadRecord { updated_ms: 80, ..record(&thread_id("g")) }).await;
    store.delete_thread(&thread_id("d")).await.unwrap();
    let rest = ThreadSearch { after: page.next, ..ThreadSearch::default() };
    assert_eq!(list(store, rest).await, "cba");
    assert_eq!(list(store, ThreadSearch::default()).await, "gefcba");
}

pub(crate) async fn search_stops_at_its_budget(store: &dyn Store) {
    six_threads(store).await;
    let rare = |records, bytes| {
        let budget = SearchBudget { records, bytes };
        ThreadSearch { budget, ..text("line a") }
    };
    let page = store.search_threads(&rare(4, u64::MAX)).await.unwrap();
    assert!(page.items.is_empty());
    let at = ThreadCursor { updated_ms: 30, thread: thread_id("d") };
    assert_eq!(page.next, Some(at));
    assert_eq!(pages(store, rare(4, u64::MAX)).await, ("a".to_owned(), 2));
    assert_eq!(pages(store, rare(6, u64::MAX)).await, ("a".to_owned(), 1));
    // A search makes progress with any budget.
    assert_eq!(pages(store, rare(0, u64::MAX)).await, ("a".to_owned(), 6));
    assert_eq!(pages(store, rare(usize::MAX, 0)).await, ("a".to_owned(), 6));

    let counts = store.count_threads(&rare(4, u64::MAX)).await.unwrap();
    assert!(!counts.is_complete);
    let counts = store.count_threads(&rare(6, u64::MAX)).await.unwrap();
    assert_eq!((counts.total(), counts.is_complete), (1, true));
}

pub(crate) async fn search_pages_are_bounded_in_bytes(store: &dyn Store) {
    let part = LIST_BYTES as usize * 3 / 8;
    for ((name, updated_ms), bytes) in ["a", "b", "c", "d", "e"].into_iter().zip(1..).zip([
        1,
        LIST_BYTES as usize + 1,
        part,
        part,
        part,
    ]) {
        let mut record = ThreadRecord { updated_ms, ..record(&thread_id(name)) };
        record.metadata.insert("note".into(), json!("x".repeat(bytes)));
        write(store, record).await;
    }
    for search in [ThreadSearch::default(), text("XX"), metadata("note", json!("x"))] {
        let expected = match (&search.text, search.metadata.is_empty()) {
            (None, true) => ("edcba", 4),
            (Some(_), _) => ("edcb", 3),
            (None, false) => ("a", 1),
        };
        let (found, pages) = pages(store, search).await;
        assert_eq!(found, expected.0);
        assert!((expected.1..=5).contains(&pages), "{pages}");
    }
}

pub(crate) async fn counts_include_matching_threads_only(store: &dyn Store) {
    let count = async |search: ThreadSearch| store.count_threads(&search).await.unwrap();
    let all = ThreadSearch::default;
    assert_eq!(count(all()).await, ThreadCounts::default());
    six_threads(store).await;
    let by_status = |idle, running, interrupted, error| ThreadCounts {
        idle,
        running,
        interrupted,
        error,
        is_complete: true,
    };
    assert_eq!(count(all()).await, by_status(2, 1, 1, 2));
    assert_eq!(count(text("line")).await, by_status(2, 1, 1, 2));
    let tenant = TenantFilter::Named("acme".to_owned());
    assert_eq!(count(ThreadSearch { tenant, ..all() }).await, by_status(1, 0, 1, 1));
    let tenant = TenantFilter::None;
    assert_eq!(count(ThreadSearch { tenant, ..all() }).await, by_status(1, 1, 0, 1));
    let status = Some(ThreadStatus::Idle);
    assert_eq!(count(ThreadSearch { status, ..all() }).await, by_status(2, 0, 0, 0));
    assert_eq!(count(ThreadSearch { created_ms: 2..=3, ..all() }).await, by_status(0, 1, 1, 1));
    assert_eq!(count(metadata("customer", json!({ "id": 50 }))).await, by_status(0, 0, 0, 1));
    // The counts include all matching threads, whatever page the search requests.
    let after = Some(ThreadCursor { updated_ms: 30, thread: thread_id("c") });
    assert_eq!(count(ThreadSearch { after, limit: 1, ..all() }).await.total(), 6);
    let after = Some(ThreadCursor { updated_ms: 30, thread: thread_id("c") });
    assert_eq!(count(ThreadSearch { after, limit: 1, ..text("line") }).await.total(), 6);
}
