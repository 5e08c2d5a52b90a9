//! Searches of the runs of all threads: order, conditions, positions while runs change, budgets,
//! counts.

use serde_json::{Value, json};
use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, GraphName, ThreadId};
use wattle_run::limit::LIST_BYTES;
use wattle_run::ports::Store;
use wattle_run::ports::store::{
    Batch, FoundRun, RunCounts, RunRecord, RunSearch, SearchBudget, ThreadRecord, ThreadStatus,
};

use crate::fixtures::{append, create, record, run, run_id, thread_id};
use crate::pending::pending_run;

/// Creates a thread of a graph, whose metadata has its name.
async fn thread(store: &dyn Store, name: &str, of: (&str, &str), tenant: Option<&str>) -> ThreadId {
    let id = thread_id(name);
    let record = ThreadRecord {
        app: AppName::new(of.0).unwrap(),
        graph: GraphName::new(of.1).unwrap(),
        tenant: tenant.map(str::to_owned),
        metadata: [("of".to_owned(), json!({ "name": name, "level": 1 }))].into(),
        ..record(&id)
    };
    append(store, &id, Batch { record: Some(record), ..Batch::default() }).await.unwrap();
    id
}

async fn write(store: &dyn Store, run: RunRecord) {
    let thread = run.thread.clone();
    append(store, &thread, Batch { run: Some(run), ..Batch::default() }).await.unwrap();
}

/// Returns the record of a run that was requested at a time.
fn requested(thread: &ThreadId, name: &str, created_ms: i64, status: RunStatus) -> RunRecord {
    RunRecord {
        status,
        created_ms: Some(created_ms),
        started_ms: created_ms + 1,
        ..run(thread, name)
    }
}

/// Creates six runs of four threads. They are listed in the order `fedcba`, where `c` and `d` were
/// requested at the same time.
async fn six_runs(store: &dyn Store) {
    let rare = thread(store, "rare", ("shop", "main"), None).await;
    let one = thread(store, "one", ("shop", "main"), None).await;
    let two = thread(store, "two", ("demo", "Other"), Some("acme")).await;
    let three = thread(store, "three", ("demo", "main"), Some("acme")).await;
    let failed = |code: &str| Some(Failure::new(code, "Über uns"));
    write(store, requested(&rare, "a", 10, RunStatus::Completed)).await;
    let b = requested(&two, "b", 20, RunStatus::Failed);
    write(store, RunRecord { failure: failed("trap"), ..b }).await;
    let c = requested(&three, "c", 30, RunStatus::Failed);
    write(store, RunRecord { failure: failed("rude"), ..c }).await;
    write(store, requested(&one, "d", 30, RunStatus::Running)).await;
    let e = RunRecord { created_ms: Some(50), ..pending_run(&two, "e", 55) };
    assert!(store.enqueue(&e, None).await.unwrap());
    write(store, requested(&three, "f", 60, RunStatus::Cancelled)).await;
}

/// Returns the ids of all pages of a search, and the number of pages.
async fn pages(store: &dyn Store, mut search: RunSearch) -> (String, usize) {
    let (mut found, mut pages) = (String::new(), 0);
    loop {
        let page = store.search_runs(&search).await.unwrap();
        assert!(page.items.len() <= search.limit);
        found.extend(page.items.iter().map(|found| found.run.id.as_str()));
        pages += 1;
        match page.next {
            Some(next) => search.after = Some(next),
            None => return (found, pages),
        }
    }
}

async fn list(store: &dyn Store, search: RunSearch) -> String {
    pages(store, search).await.0
}

fn text(text: &str) -> RunSearch {
    RunSearch { text: Some(text.to_owned()), ..RunSearch::default() }
}

fn metadata(key: &str, value: Value) -> RunSearch {
    RunSearch { metadata: [(key.to_owned(), value)].into(), ..RunSearch::default() }
}

pub(crate) async fn runs_are_found_by_each_field(store: &dyn Store) {
    let all = RunSearch::default;
    assert_eq!(list(store, all()).await, "");
    six_runs(store).await;
    assert_eq!(list(store, all()).await, "fedcba");
    let app = Some(AppName::new("shop").unwrap());
    assert_eq!(list(store, RunSearch { app, ..all() }).await, "da");
    let graph = Some(GraphName::new("Other").unwrap());
    assert_eq!(list(store, RunSearch { graph, ..all() }).await, "eb");
    for (status, found) in [
        (RunStatus::Pending, "e"),
        (RunStatus::Running, "d"),
        (RunStatus::Completed, "a"),
        (RunStatus::Interrupted, ""),
        (RunStatus::Failed, "cb"),
        (RunStatus::Cancelled, "f"),
    ] {
        let status = Some(status);
        assert_eq!(list(store, RunSearch { status, ..all() }).await, found, "{status:?}");
    }
    for (tenant, found) in [("acme", "fecb"), ("ACME", ""), ("", "")] {
        let tenant = Some(tenant.to_owned());
        assert_eq!(list(store, RunSearch { tenant, ..all() }).await, found);
    }
    for (failure, found) in [("rude", "c"), ("trap", "b"), ("tra", "")] {
        let failure = Some(failure.to_owned());
        assert_eq!(list(store, RunSearch { failure, ..all() }).await, found);
    }
    assert_eq!(list(store, RunSearch { created_ms: 20..=30, ..all() }).await, "dcb");
    assert_eq!(list(store, RunSearch { created_ms: 61..=i64::MAX, ..all() }).await, "");
}

pub(crate) async fn found_run_has_the_fields_of_its_thread(store: &dyn Store) {
    six_runs(store).await;
    let page = store.search_runs(&RunSearch { limit: 2, ..RunSearch::default() }).await.unwrap();
    let facts = |FoundRun { run, app, graph, tenant }: &FoundRun| {
        let due_ms = (run.status == RunStatus::Pending).then_some(run.due_ms);
        let thread = [run.thread.as_str(), app.as_str(), graph.as_str()].join("/");
        (thread, tenant.clone(), run.created_ms, run.started_ms, due_ms)
    };
    let facts: Vec<_> = page.items.iter().map(facts).collect();
    let acme = || Some("acme".to_owned());
    assert_eq!(
        facts,
        [
            ("three/demo/main".to_owned(), acme(), 60, Some(61), None),
            ("two/demo/Other".to_owned(), acme(), 50, None, Some(55)),
        ]
    );
}

pub(crate) async fn run_text_search_ignores_case(store: &dyn Store) {
    six_runs(store).await;
    for (wanted, found) in [
        ("RARE", "a"),
        ("demo", "fecb"),
        ("oTHER", "eb"),
        ("über UNS", "cb"),
        ("RUDE", "c"),
        ("F", "f"),
        ("acme", ""),
        ("%", ""),
        ("_", ""),
        ("", "fedcba"),
    ] {
        assert_eq!(list(store, text(wanted)).await, found, "{wanted:?}");
    }
    let both = RunSearch { status: Some(RunStatus::Failed), ..text("two") };
    assert_eq!(list(store, both.clone()).await, "b");
    assert_eq!(list(store, RunSearch { failure: Some("rude".to_owned()), ..both }).await, "");
}

pub(crate) async fn runs_are_found_by_the_metadata_of_their_threads(store: &dyn Store) {
    six_runs(store).await;
    for (key, value, found) in [
        ("of", json!({ "name": "two" }), "eb"),
        ("of", json!({ "name": "two", "level": 1 }), "eb"),
        ("of", json!({ "level": "1" }), ""),
        ("of", json!({}), "fedcba"),
        ("of", json!("two"), ""),
        ("name", json!("two"), ""),
    ] {
        assert_eq!(list(store, metadata(key, value.clone())).await, found, "{key} {value}");
    }
    let failed = RunSearch { status: Some(RunStatus::Failed), ..metadata("of", json!({})) };
    assert_eq!(list(store, failed.clone()).await, "cb");
    assert_eq!(list(store, RunSearch { text: Some("three".to_owned()), ..failed }).await, "c");
    // The metadata of the thread are those of now, also for its earlier runs.
    let two = thread_id("two");
    let record = store.thread(&two).await.unwrap().unwrap().record;
    let record = ThreadRecord { metadata: [("late".to_owned(), json!(true))].into(), ..record };
    append(store, &two, Batch { record: Some(record), ..Batch::default() }).await.unwrap();
    assert_eq!(list(store, metadata("late", json!(true))).await, "eb");
}

pub(crate) async fn runs_of_expired_threads_are_left_out(store: &dyn Store) {
    six_runs(store).await;
    for (name, status) in [("two", ThreadStatus::Interrupted), ("three", ThreadStatus::Idle)] {
        let thread = thread_id(name);
        let record = store.thread(&thread).await.unwrap().unwrap().record;
        let record = ThreadRecord { status, expires_ms: Some(100), ..record };
        let batch = Batch { record: Some(record), ..Batch::default() };
        append(store, &thread, batch).await.unwrap();
    }
    for (unexpired_at_ms, found) in [(None, "fedcba"), (Some(99), "fedcba"), (Some(100), "fdca")] {
        // Each run has an `e` in its id, its thread or its app.
        for search in [RunSearch::default(), text("e"), metadata("of", json!({}))] {
            let search = RunSearch { unexpired_at_ms, limit: found.len(), ..search };
            assert_eq!(pages(store, search.clone()).await, (found.to_owned(), 1));
            let counts = store.count_runs(&search).await.unwrap();
            assert_eq!(counts.total(), found.len() as u64);
        }
    }
}

pub(crate) async fn run_search_continues_after_its_position(store: &dyn Store) {
    six_runs(store).await;
    for limit in 1..=7 {
        // Each run has an `e` in its id, its thread or its app.
        for search in [RunSearch::default(), text("e"), metadata("of", json!({}))] {
            let found = pages(store, RunSearch { limit, ..search }).await;
            assert_eq!(found, ("fedcba".to_owned(), 6_usize.div_ceil(limit)));
        }
    }
}

pub(crate) async fn run_positions_stay_valid_while_runs_change(store: &dyn Store) {
    six_runs(store).await;
    let first = RunSearch { limit: 2, ..RunSearch::default() };
    let page = store.search_runs(&first).await.unwrap();
    assert_eq!(page.next.as_ref().map(|next| next.run.as_str()), Some("e"));
    // A new run is requested, a run ends, and a thread is deleted with its runs.
    let one = thread_id("one");
    write(store, requested(&one, "g", 70, RunStatus::Running)).await;
    write(store, requested(&one, "d", 30, RunStatus::Completed)).await;
    store.delete_thread(&thread_id("two")).await.unwrap();
    let rest = RunSearch { after: page.next, ..RunSearch::default() };
    assert_eq!(list(store, rest).await, "dca");
    assert_eq!(list(store, RunSearch::default()).await, "gfdca");
}

pub(crate) async fn run_search_stops_at_its_budget(store: &dyn Store) {
    six_runs(store).await;
    let rare = |records, bytes| {
        let budget = SearchBudget { records, bytes };
        RunSearch { budget, ..text("rare") }
    };
    let page = store.search_runs(&rare(4, u64::MAX)).await.unwrap();
    assert!(page.items.is_empty());
    assert_eq!(page.next.map(|next| next.run), Some(run_id("c")));
    assert_eq!(pages(store, rare(4, u64::MAX)).await, ("a".to_owned(), 2));
    assert_eq!(pages(store, rare(6, u64::MAX)).await, ("a".to_owned(), 1));
    // A search makes progress with any budget.
    assert_eq!(pages(store, rare(0, u64::MAX)).await, ("a".to_owned(), 6));
    assert_eq!(pages(store, rare(usize::MAX, 0)).await, ("a".to_owned(), 6));

    let counts = store.count_runs(&rare(4, u64::MAX)).await.unwrap();
    assert!(!counts.is_complete);
    let counts = store.count_runs(&rare(6, u64::MAX)).await.unwrap();
    assert_eq!((counts.total(), counts.is_complete), (1, true));
}

pub(crate) async fn run_search_pages_are_bounded_in_bytes(store: &dyn Store) {
    let thread = create(store, "thread").await;
    let part = LIST_BYTES as usize * 3 / 8;
    for ((name, created_ms), bytes) in ["a", "b", "c", "d", "e"].into_iter().zip(1..).zip([
        1,
        LIST_BYTES as usize + 1,
        part,
        part,
        part,
    ]) {
        let failure = Failure::new("x", "x".repeat(bytes));
        let run = requested(&thread, name, created_ms, RunStatus::Failed);
        write(store, RunRecord { failure: Some(failure), ..run }).await;
    }
    for (search, expected) in [(RunSearch::default(), ("edcba", 4)), (text("XX"), ("edcb", 3))] {
        let (found, pages) = pages(store, search).await;
        assert_eq!(found, expected.0);
        assert!((expected.1..=5).contains(&pages), "{pages}");
    }
}

pub(crate) async fn run_counts_include_matching_runs_only(store: &dyn Store) {
    let count = async |search: RunSearch| store.count_runs(&search).await.unwrap();
    let all = RunSearch::default;
    let none = RunCounts::default();
    assert_eq!(count(all()).await, none);
    six_runs(store).await;
    let each = RunCounts { pending: 1, running: 1, completed: 1, failed: 2, cancelled: 1, ..none };
    assert_eq!(count(all()).await, each);
    // Each run has an `e` in its id, its thread or its app.
    assert_eq!(count(text("e")).await, each);
    assert_eq!(count(metadata("of", json!({}))).await, each);
    let acme = RunSearch { tenant: Some("acme".to_owned()), ..all() };
    let of_acme = RunCounts { pending: 1, failed: 2, cancelled: 1, ..none };
    assert_eq!(count(acme.clone()).await, of_acme);
    assert_eq!(count(RunSearch { status: Some(RunStatus::Running), ..acme }).await, none);
    let of_two = RunCounts { pending: 1, failed: 1, ..none };
    assert_eq!(count(metadata("of", json!({ "name": "two" }))).await, of_two);
    let rude = RunSearch { failure: Some("rude".to_owned()), ..all() };
    assert_eq!(count(rude).await, RunCounts { failed: 1, ..none });
    let running = RunCounts { failed: 2, running: 1, ..none };
    assert_eq!(count(RunSearch { created_ms: 20..=30, ..all() }).await, running);
    // The counts include all matching runs, whatever page the search requests.
    let page = store.search_runs(&RunSearch { limit: 3, ..all() }).await.unwrap();
    for search in [all(), text("e")] {
        let search = RunSearch { after: page.next.clone(), limit: 1, ..search };
        assert_eq!(count(search).await, each);
    }
}
