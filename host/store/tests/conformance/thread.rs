//! Threads and runs: records, lists, deletion.

use serde_json::json;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, Digest, ThreadId};
use wattle_run::limit::{LIST_BYTES, ORPHANED_PAGE, WALK_RUN_RECORDS};
use wattle_run::metadata::STATELESS_MARKER;
use wattle_run::ports::Store;
use wattle_run::ports::store::{
    Batch, LeaseHolder, ListPage, PinnedVersions, RunSummary, StoreError, ThreadKey, ThreadOrder,
    ThreadQuery, ThreadRecord, ThreadStatus, ThreadSummary,
};
use wattle_run::run_walk::RunWalk;
use wattle_run::thread_walk::ThreadWalk;

use crate::fixtures::{
    all_runs, append, batch, checkpoint, create, events, from_json, incompressible_text, read,
    record, run, run_id, thread_id,
};

async fn write(store: &dyn Store, record: ThreadRecord) {
    let thread = record.id.clone();
    append(store, &thread, Batch { record: Some(record), ..Batch::default() }).await.unwrap();
}

pub(crate) async fn records_are_replaced(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, events(1, 1)).await.unwrap();
    let mut changed = record(&thread);
    changed.status = ThreadStatus::Interrupted;
    changed.run = Some(run_id("r"));
    changed.expires_ms = Some(9);
    changed.tenant = Some("acme".into());
    changed.metadata.insert("k".into(), json!({ "线": null }));
    write(store, changed.clone()).await;
    let head = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!((head.record, head.last_seq), (changed, 1));
}

/// A store that reads the pinned versions in pages needs more than one page for these threads.
pub(crate) async fn pinned_versions_are_listed_once(store: &dyn Store) {
    let none = PinnedVersions { is_complete: true, ..PinnedVersions::default() };
    assert_eq!(store.pinned_versions().await.unwrap(), none);
    let version = |number: usize| Digest::of(format!("version {}", number % 3).as_bytes());
    let mut tickets = Vec::new();
    for number in 0..300 {
        let thread = thread_id(&format!("t{number}"));
        let record = ThreadRecord { version: version(number), ..record(&thread) };
        let batch = Batch { record: Some(record), ..Batch::default() };
        tickets.push(store.append(&thread, batch).await);
    }
    for ticket in tickets {
        ticket.await.unwrap();
    }
    let app = || AppName::new("demo").unwrap();
    let versions = (0..3).map(|number| (app(), version(number))).collect();
    assert_eq!(
        store.pinned_versions().await.unwrap(),
        PinnedVersions { versions, is_complete: true }
    );
}

pub(crate) async fn threads_are_listed_in_order_of_their_updates(store: &dyn Store) {
    for (name, updated_ms) in [("a", 5), ("b", 9), ("c", 5), ("d", 7)] {
        let mut record = record(&thread_id(name));
        record.updated_ms = updated_ms;
        record.tenant = (name == "d").then(|| "acme".into());
        record.app = AppName::new(if name == "a" { "x" } else { "y" }).unwrap();
        record.status = if name == "b" { ThreadStatus::Running } else { ThreadStatus::Interrupted };
        record.expires_ms = (name < "c").then_some(updated_ms * 10);
        write(store, record).await;
    }
    let list = async |query: ThreadQuery| {
        let threads = store.threads(&query).await.unwrap().items;
        threads.iter().map(|thread| thread.id.to_string()).collect::<Vec<_>>().concat()
    };
    let all = ThreadQuery::default;
    assert_eq!(list(all()).await, "bdac");
    assert_eq!(list(ThreadQuery { limit: Some(2), offset: 1, ..all() }).await, "da");
    assert_eq!(list(ThreadQuery { offset: 9, ..all() }).await, "");
    assert_eq!(list(ThreadQuery { app: Some(AppName::new("y").unwrap()), ..all() }).await, "bdc");
    assert_eq!(list(ThreadQuery { status: Some(ThreadStatus::Running), ..all() }).await, "b");
    assert_eq!(list(ThreadQuery { tenant: Some("acme".into()), ..all() }).await, "d");
    assert_eq!(list(ThreadQuery { expires_by_ms: Some(50), ..all() }).await, "a");
    assert_eq!(list(ThreadQuery { expires_by_ms: Some(49), ..all() }).await, "");
    let by_id = || ThreadQuery { order: ThreadOrder::Id, ..all() };
    assert_eq!(list(by_id()).await, "abcd");
    assert_eq!(list(ThreadQuery { after: Some(thread_id("b")), ..by_id() }).await, "cd");
    assert_eq!(list(ThreadQuery { after: Some(thread_id("d")), ..by_id() }).await, "");
    assert_eq!(list(ThreadQuery { offset: 1, limit: Some(2), ..by_id() }).await, "bc");
    for (limit, is_last) in [(3, false), (4, true), (5, true)] {
        for query in [all(), by_id()] {
            let page = store.threads(&ThreadQuery { limit: Some(limit), ..query }).await.unwrap();
            assert_eq!(page.is_last, is_last, "{limit} of 4");
        }
    }
}

pub(crate) async fn stopped_threads_are_listed_as_idle_or_as_interrupted(store: &dyn Store) {
    for (name, status) in [
        ("idle", ThreadStatus::Idle),
        ("interrupted", ThreadStatus::Interrupted),
        ("stopped", ThreadStatus::Idle),
    ] {
        let mut record = record(&thread_id(name));
        (record.status, record.stopped) = (status, name == "stopped");
        write(store, record).await;
    }
    for (status, stopped_as_interrupted, names) in [
        (ThreadStatus::Idle, false, "idle stopped"),
        (ThreadStatus::Idle, true, "idle"),
        (ThreadStatus::Interrupted, false, "interrupted"),
        (ThreadStatus::Interrupted, true, "interrupted stopped"),
        (ThreadStatus::Running, true, ""),
    ] {
        let status = Some(status);
        let query = ThreadQuery { status, stopped_as_interrupted, ..ThreadQuery::default() };
        let threads = store.threads(&query).await.unwrap().items;
        let listed: Vec<&str> = threads.iter().map(|thread| thread.id.as_str()).collect();
        assert_eq!(listed.join(" "), names, "{query:?}");
        assert!(threads.iter().all(|it| it.stopped == (it.id.as_str() == "stopped")));
    }
}

pub(crate) async fn thread_keys_are_listed_in_the_order_of_ids(store: &dyn Store) {
    let (mut keys, mut stateless) = (Vec::new(), Vec::new());
    for (name, updated_ms) in ["d", "a", "c", "b"].into_iter().zip(1..) {
        let mut record = record(&thread_id(name));
        (record.created_ms, record.updated_ms) = (-updated_ms, updated_ms);
        record.stopped = name == "a";
        record.metadata.insert("note".into(), json!({ STATELESS_MARKER: true }));
        if name == "b" {
            record.status = ThreadStatus::Error;
            record.metadata.insert(STATELESS_MARKER.into(), json!(true));
        }
        keys.push(ThreadKey::from(&ThreadSummary::from(&record)));
        write(store, record).await;
    }
    keys.sort_by(|one, other| one.id.cmp(&other.id));
    for limit in 1..=5 {
        let (mut query, mut listed) = (ThreadQuery::default(), Vec::new());
        query.limit = Some(limit);
        loop {
            let page = store.thread_keys(&query).await.unwrap();
            assert!(page.items.len() <= limit);
            query.after = page.items.last().map(|thread| thread.id.clone());
            listed.extend(page.items);
            if page.is_last {
                break;
            }
        }
        assert_eq!(listed, keys, "{limit}");
    }
    let mut walk = ThreadWalk::new(store, ThreadQuery::default());
    while let Some(threads) = walk.next_keys().await.unwrap() {
        let marked = threads.into_iter().filter(|thread| thread.is_stateless);
        stateless.extend(marked.map(|thread| thread.id.to_string()));
    }
    assert_eq!(stateless, ["b"]);
    let status = Some(ThreadStatus::Error);
    let failed = store.thread_keys(&ThreadQuery { status, ..ThreadQuery::default() }).await;
    assert_eq!(failed.unwrap().items, std::slice::from_ref(&keys[1]));
}

pub(crate) async fn thread_pages_are_bounded_in_bytes(store: &dyn Store) {
    let part = LIST_BYTES as usize * 3 / 8;
    let notes = [part, part, part, LIST_BYTES as usize + 1, 1];
    for ((name, updated_ms), bytes) in ["a", "b", "c", "d", "e"].into_iter().zip(1..).zip(notes) {
        let mut record = record(&thread_id(name));
        (record.status, record.updated_ms) = (ThreadStatus::Running, -updated_ms);
        record.context = json!(incompressible_text(200_000));
        record.metadata.insert("note".into(), json!("x".repeat(bytes)));
        write(store, record).await;
    }
    let names = |threads: &[ThreadSummary]| {
        let bytes: u64 = threads.iter().map(ThreadSummary::memory_bytes).sum();
        assert!(bytes <= LIST_BYTES || threads.len() == 1, "{bytes} bytes");
        threads.iter().map(|thread| thread.id.to_string()).collect::<Vec<_>>().concat()
    };
    for order in [ThreadOrder::Update, ThreadOrder::Id] {
        let (mut query, mut pages) = (ThreadQuery { order, ..ThreadQuery::default() }, Vec::new());
        loop {
            let page = store.threads(&query).await.unwrap();
            query.offset += page.items.len();
            pages.push(names(&page.items));
            if page.is_last {
                break;
            }
        }
        assert_eq!(pages.concat(), "abcde", "{pages:?}");
        assert!(pages.contains(&"d".to_owned()), "{pages:?}");
    }
    let (mut walk, mut walked) = (ThreadWalk::new(store, ThreadQuery::default()), String::new());
    while let Some(threads) = walk.next().await.unwrap() {
        walked.push_str(&names(&threads));
    }
    let (mut orphaned, mut after) = (String::new(), None);
    loop {
        let page = store.orphaned_threads(&LeaseHolder("h".into()), after.as_ref()).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.thread.clone());
        orphaned.extend(page.iter().map(|it| it.thread.as_str()));
    }
    assert_eq!((walked.as_str(), orphaned.as_str()), ("abcde", "abcde"));
}

pub(crate) async fn runs_are_listed_oldest_first(store: &dyn Store) {
    let thread = create(store, "t").await;
    for name in ["z", "a", "m"] {
        let batch = Batch { run: Some(run(&thread, name)), ..Batch::default() };
        append(store, &thread, batch).await.unwrap();
    }
    let mut ended = run(&thread, "z");
    ended.status = RunStatus::Failed;
    ended.failure = Some(Failure::internal("broken"));
    ended.ended_ms = Some(8);
    append(store, &thread, Batch { run: Some(ended.clone()), ..Batch::default() }).await.unwrap();
    let expected = [ended.clone(), run(&thread, "a"), run(&thread, "m")];
    assert_eq!(all_runs(store, &thread).await, expected);
    let items = expected.iter().map(RunSummary::from).collect();
    assert_eq!(store.runs(&thread, 0, 9).await.unwrap(), ListPage { items, is_last: true });
    let page = store.runs(&thread, 1, 1).await.unwrap();
    assert_eq!((page.items[0].id.as_str(), page.items.len(), page.is_last), ("a", 1, false));
    assert_eq!(store.run(&run_id("z")).await.unwrap(), Some(ended));
    assert_eq!(store.run(&run_id("missing")).await.unwrap(), None);
    assert_eq!(store.runs(&thread_id("missing"), 0, 9).await.unwrap(), ListPage::empty());
}

pub(crate) async fn newest_runs_are_read_in_pages(store: &dyn Store) {
    let (thread, other) = (create(store, "t").await, create(store, "other").await);
    for name in ["z", "a", "m", "b"] {
        let run = Some(run(&thread, name));
        append(store, &thread, Batch { run, ..Batch::default() }).await.unwrap();
        let run = Some(self::run(&other, &format!("{name}-of-other")));
        append(store, &other, Batch { run, ..Batch::default() }).await.unwrap();
    }
    let newest = async |skip, limit| {
        let runs = store.newest_runs(&thread, skip, limit).await.unwrap();
        runs.items.into_iter().map(|run| run.id.to_string()).collect::<Vec<_>>().concat()
    };
    assert_eq!(newest(0, 2).await, "bm");
    assert_eq!(newest(1, 2).await, "ma");
    assert_eq!(newest(3, usize::MAX).await, "z");
    assert_eq!(newest(4, 1).await, "");
    assert_eq!(newest(0, 0).await, "");
    assert_eq!(store.newest_runs(&thread_id("missing"), 0, 9).await.unwrap(), ListPage::empty());
    for (limit, is_last) in [(3, false), (4, true), (5, true)] {
        assert_eq!(store.newest_runs(&thread, 0, limit).await.unwrap().is_last, is_last);
    }
}

pub(crate) async fn run_pages_are_bounded_in_bytes(store: &dyn Store) {
    let thread = create(store, "t").await;
    let part = LIST_BYTES as usize * 3 / 8;
    let sizes = [part, part, part, LIST_BYTES as usize + 1, 1];
    for (name, bytes) in ["e", "d", "c", "b", "a"].into_iter().zip(sizes) {
        let input = json!({ "text": "x".repeat(bytes) });
        let spec = json!({ "kind": { "kind": "start", "input": input }, "app": "x", "due_ms": 7 });
        let mut run = run(&thread, name);
        (run.status, run.spec) = (RunStatus::Pending, Some(from_json(spec)));
        run.failure = (name == "c").then(|| Failure::internal("x".repeat(LIST_BYTES as usize)));
        assert!(store.enqueue(&run, None).await.unwrap());
    }
    let mut pages: Vec<String> = Vec::new();
    loop {
        let skip = pages.concat().len();
        let page = store.newest_runs(&thread, skip, 9).await.unwrap();
        pages.push(page.items.iter().map(|run| run.id.to_string()).collect::<Vec<_>>().concat());
        if page.is_last {
            break;
        }
    }
    assert_eq!(pages, ["a", "b", "c", "de"]);
    // Run summaries have no inputs, but a failure may be large.
    let (mut pages, mut skip) = (Vec::new(), 0);
    loop {
        let page = store.runs(&thread, skip, 9).await.unwrap();
        assert!(page.items.iter().all(|run| run.due_ms == 7));
        skip += page.items.len();
        pages.push(page.items.iter().map(|run| run.id.to_string()).collect::<Vec<_>>().concat());
        if page.is_last {
            break;
        }
    }
    assert_eq!(pages, ["ed", "c", "ba"]);
    let (oldest_first, newest_first) = walk_runs(store, &thread).await;
    assert_eq!((oldest_first.concat(), newest_first.concat()), ("edcba".into(), "abcde".into()));
}

pub(crate) async fn run_walks_return_each_run_once(store: &dyn Store) {
    let thread = create(store, "t").await;
    // One more run than fits into the first page of the newest runs.
    let names: Vec<String> = (0..=WALK_RUN_RECORDS).map(|number| format!("r{number}")).collect();
    let mut tickets = Vec::new();
    for name in &names {
        let batch = Batch { run: Some(run(&thread, name)), ..Batch::default() };
        tickets.push(store.append(&thread, batch).await);
    }
    for ticket in tickets {
        ticket.await.unwrap();
    }
    let (oldest_first, mut newest_first) = walk_runs(store, &thread).await;
    newest_first.reverse();
    assert_eq!((&oldest_first, &newest_first), (&names, &names));
    let none = walk_runs(store, &thread_id("missing")).await;
    assert_eq!(none, (vec![], vec![]));
}

/// Returns the names of the runs of a thread, from the oldest run on and from the newest run on.
async fn walk_runs(store: &dyn Store, thread: &ThreadId) -> (Vec<String>, Vec<String>) {
    let (mut oldest_first, mut newest_first) = (Vec::new(), Vec::new());
    let mut walk = RunWalk::oldest_first(store, thread);
    while let Some(run) = walk.next().await.unwrap() {
        oldest_first.push(run.id.to_string());
    }
    assert_eq!(walk.next().await.unwrap(), None, "the walk is over");
    let mut walk = RunWalk::newest_first(store, thread);
    while let Some(run) = walk.next().await.unwrap() {
        newest_first.push(run.id.to_string());
    }
    assert_eq!(walk.next().await.unwrap(), None, "the walk is over");
    (oldest_first, newest_first)
}

pub(crate) async fn run_belongs_to_one_thread(store: &dyn Store) {
    let (thread, other) = (create(store, "t").await, create(store, "other").await);
    let mine = Batch { run: Some(run(&thread, "r")), ..Batch::default() };
    let theirs = Batch { run: Some(run(&other, "r")), ..events(1, 1) };
    let mine = store.append(&thread, mine).await;
    let theirs = store.append(&other, theirs).await;
    // Either batch may be written first, because only batches of the same thread have an order.
    let (owner, refused) = match (mine.await, theirs.await) {
        (Ok(()), Err(refused)) => (thread, refused),
        (Err(refused), Ok(())) => (other, refused),
        (mine, theirs) => panic!("{mine:?} and {theirs:?}"),
    };
    assert!(matches!(refused, StoreError::InvalidBatch { .. }), "{refused}");
    assert_eq!(store.run(&run_id("r")).await.unwrap().unwrap().thread, owner);
}

pub(crate) async fn deletion_covers_all_data_of_one_thread_only(store: &dyn Store) {
    for name in ["keep", "gone"] {
        let thread = create(store, name).await;
        for number in 1..=100 {
            let whole = Batch {
                run: Some(run(&thread, &format!("{name}-{number}"))),
                checkpoint: Some(checkpoint(number, None, &[("a", json!(name))], &[])),
                ..events(number, number)
            };
            append(store, &thread, whole).await.unwrap();
        }
    }
    let (keep, gone) = (thread_id("keep"), thread_id("gone"));
    store.delete_thread(&gone).await.unwrap();
    assert_eq!(store.thread(&gone).await.unwrap(), None);
    assert_eq!(read(store, &gone, None).await, None);
    assert!(store.events(&gone, 0, 9).await.unwrap().is_empty());
    assert!(all_runs(store, &gone).await.is_empty());
    assert_eq!(store.run(&run_id("gone-1")).await.unwrap(), None);
    assert_eq!(store.stored_bytes(&gone).await.unwrap(), 0);
    let left = store.threads(&ThreadQuery::default()).await.unwrap();
    assert_eq!(left.items, [ThreadSummary::from(&record(&keep))]);
    assert_eq!(store.events(&keep, 0, 1000).await.unwrap().len(), 100);
    assert_eq!(all_runs(store, &keep).await.len(), 100);
    let oldest = read(store, &keep, Some(1)).await.unwrap();
    assert_eq!(oldest.checkpoint.state(), json!({ "a": "keep" }));
}

pub(crate) async fn deleting_a_missing_thread_changes_nothing(store: &dyn Store) {
    store.delete_thread(&thread_id("missing")).await.unwrap();
}

pub(crate) async fn deleted_thread_id_can_be_reused(store: &dyn Store) {
    let thread = create(store, "t").await;
    let first = Batch {
        run: Some(run(&thread, "r")),
        ..batch(checkpoint(7, None, &[("old", json!(1))], &[]))
    };
    append(store, &thread, Batch { events: events(1, 5).events, ..first }).await.unwrap();
    store.delete_thread(&thread).await.unwrap();
    assert!(append(store, &thread, events(6, 6)).await.is_err());
    create(store, "t").await;
    let whole = Batch { run: Some(run(&thread, "r")), ..events(1, 1) };
    append(store, &thread, whole).await.unwrap();
    append(store, &thread, batch(checkpoint(1, None, &[], &[]))).await.unwrap();
    let head = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!((head.last_seq, head.last_checkpoint.map(|id| id.0)), (1, Some(1)));
    assert_eq!(read(store, &thread, Some(7)).await, None);
    assert_eq!(all_runs(store, &thread).await.len(), 1);
}

pub(crate) async fn running_threads_are_listed_in_pages(store: &dyn Store) {
    let all: Vec<ThreadId> =
        (0..=2 * ORPHANED_PAGE).map(|it| thread_id(&format!("t{it:04}"))).collect();
    let mut tickets = Vec::new();
    for (place, thread) in all.iter().enumerate() {
        let status = if place == 3 { ThreadStatus::Idle } else { ThreadStatus::Running };
        let record = ThreadRecord { status, ..record(thread) };
        let batch = Batch { record: Some(record), ..Batch::default() };
        tickets.push(store.append(thread, batch).await);
    }
    for ticket in tickets {
        ticket.await.unwrap();
    }
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.orphaned_threads(&LeaseHolder("h".into()), after.as_ref()).await.unwrap();
        assert!(page.len() <= ORPHANED_PAGE);
        let Some(last) = page.last() else { break };
        after = Some(last.thread.clone());
        found.extend(page.into_iter().map(|orphaned| orphaned.thread));
    }
    let at_work: Vec<ThreadId> =
        all.iter().enumerate().filter(|(place, _)| *place != 3).map(|(_, id)| id.clone()).collect();
    assert_eq!(found, at_work);
}
