//! The number of log entries that reads of the history need.

use std::cell::Cell;

use serde_json::json;
use tempfile::TempDir;
use wattle_graph::checkpoint::{ListDelta, SharedList};
use wattle_graph::event::{Custom, EventKind};
use wattle_graph::id::{ChannelName, Digest, NodeName, RunId, TaskId};
use wattle_run::ports::store::{Batch, Store as _, ThreadRecord};

use super::*;
use crate::RedbStore;
use crate::disk::table::FRAMES_PER_MARK;

fn record(thread: &ThreadId) -> ThreadRecord {
    let record = json!({
        "id": thread, "app": "demo", "graph": "main", "version": Digest::of(b"version"),
        "status": "idle", "created_ms": 1, "updated_ms": 1,
    });
    serde_json::from_value(record).unwrap()
}

fn checkpoint_of(number: u64) -> Checkpoint {
    let meta = json!({
        "id": number, "parent": null, "step": 0, "source": "loop", "run": "r", "at_ms": 0,
        "next": [], "versions": {},
    });
    serde_json::from_value(json!({ "meta": meta, "values": {} })).unwrap()
}

fn event(seq: u64) -> Event {
    let kind = EventKind::Custom(Custom {
        task: TaskId::new("task").unwrap(),
        node: NodeName::new("node").unwrap(),
        name: "note".into(),
        data: json!(seq),
    });
    let (run, namespace) = (RunId::new("r").unwrap(), Namespace::root());
    Event { seq, at_ms: 1, run, namespace, kind }
}

/// Creates a thread with a frame for each batch. A long thread has marks.
async fn thread(store: &RedbStore, batches: impl IntoIterator<Item = Batch>) -> ThreadId {
    let thread = ThreadId::new("t").unwrap();
    let first = Batch { record: Some(record(&thread)), ..Batch::default() };
    let mut newest = store.append(&thread, first).await;
    for batch in batches {
        newest = store.append(&thread, batch).await;
    }
    newest.await.unwrap();
    thread
}

fn open(dir: &TempDir) -> RedbStore {
    RedbStore::open(dir.path().join("store.redb")).unwrap()
}

#[tokio::test]
async fn newer_checkpoints_are_not_loaded() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir);
    // The budget of an inline read is enough for the headers, and not for all frames.
    let batches =
        (1..=24).map(|n| Batch { checkpoint: Some(checkpoint_of(n)), ..Batch::default() });
    let thread = thread(&store, batches).await;
    let query = CheckpointQuery {
        before: Some(CheckpointId(4)),
        limit: Some(2),
        ..CheckpointQuery::default()
    };
    let snapshot = Snapshot::newest(&store.0.file).unwrap().with_inline_budget();
    let found = checkpoints(&snapshot, &thread, &query, &Cursors::default());
    let found = found.unwrap().items.into_iter().map(|tuple| tuple.checkpoint.meta.id.0);
    assert_eq!(found.collect::<Vec<_>>(), [3, 2]);
}

/// Returns a checkpoint with a version of a list. Each version has one item more than the previous
/// version.
fn with_appended_item(number: u64) -> Checkpoint {
    let (mut next, list) = (checkpoint_of(number), ChannelName::new("list").unwrap());
    next.meta.versions.insert(list.clone(), CheckpointId(number));
    next.values.insert(list.clone(), json!((1..=number).collect::<Vec<_>>()).into());
    if number > 1 {
        let prefix_len = u32::try_from(number - 1).unwrap();
        next.list_deltas.insert(list, ListDelta { base: CheckpointId(number - 1), prefix_len });
    }
    next
}

#[tokio::test]
async fn inline_read_ends_before_a_walk_or_a_list_that_is_too_long() {
    for (length, wanted, is_inline) in [(9, 9, true), (60, 60, false), (60, 9, false)] {
        let dir = TempDir::new().unwrap();
        let store = open(&dir);
        let batches = (1..=length)
            .map(|n| Batch { checkpoint: Some(with_appended_item(n)), ..Batch::default() });
        let thread = thread(&store, batches).await;
        let (root, wanted) = (Namespace::root(), Some(CheckpointId(wanted)));
        let inline = Snapshot::newest(&store.0.file).unwrap().with_inline_budget();
        let budget = inline.entries_left();
        let seen = checkpoint(&inline, &thread, &root, wanted);
        assert_eq!((seen.is_ok(), inline.budget_exceeded()), (is_inline, !is_inline));
        let entries = budget - inline.entries_left();
        assert!(is_inline || entries <= 3, "the aborted read loaded {entries} entries");
        let found = store.checkpoint(&thread, &root, wanted).await.unwrap().unwrap();
        let list = &found.checkpoint.values[&ChannelName::new("list").unwrap()];
        assert_eq!(list.list().map(SharedList::len), wanted.map(|id| id.0 as usize));
    }
}

#[tokio::test]
async fn log_entries_that_a_page_of_batches_reads_are_bounded() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir);
    let batches = (1..=20 * FRAMES_PER_MARK)
        .map(|n| Batch { events: vec![event(n)].into(), ..Batch::default() });
    let thread = thread(&store, batches).await;
    let (mut from, mut seqs, mut pages) = (None, Vec::new(), Vec::new());
    loop {
        let snapshot = Snapshot::newest(&store.0.file).unwrap().counting();
        let page = batches_of(&snapshot, &thread, from);
        seqs.extend(page.batches.iter().flat_map(|batch| &batch.events).map(|event| event.seq));
        pages.push((page.batches.len(), usize::MAX - snapshot.entries_left()));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(seqs, (1..=20 * FRAMES_PER_MARK).collect::<Vec<_>>());
    assert!(pages.len() >= 50, "{} pages", pages.len());
    for (batches, entries) in pages {
        // A page reads each of its batches once, and the headers of at most two parts of the chain.
        assert!(
            entries <= batches + 2 * FRAMES_PER_MARK as usize,
            "{entries} entries for {batches} batches"
        );
    }
}

#[test]
fn mark_of_a_frame_is_found_among_many_by_few_lookups() {
    const MARKS: u64 = 100_000;
    let all = (1..=MARKS).map(|n| (n * 3, n * FRAMES_PER_MARK));
    let all: BTreeMap<u64, u64> = all.collect();
    let last_seq = MARKS * 3 + 1;
    for frame in [0, 1, 64, 65, 6_400, 6_401, MARKS * FRAMES_PER_MARK, MARKS * FRAMES_PER_MARK + 1]
    {
        let lookups = Cell::new(0_u32);
        let found = mark_at_frame(frame, last_seq, |seq| {
            lookups.set(lookups.get() + 1);
            Ok(all.range(seq..).next().map(|(seq, frame)| Mark { seq: *seq, frame: *frame }))
        });
        let expected = all.iter().find(|(_, known)| **known >= frame);
        let expected = expected.map(|(seq, frame)| Mark { seq: *seq, frame: *frame });
        assert_eq!(found.unwrap(), expected, "{frame}");
        assert!(lookups.get() <= 20, "{frame}: {}", lookups.get());
    }
    let none = mark_at_frame(1, 9, |_| Ok(None));
    assert_eq!(none.unwrap(), None);
}

/// Reads a page of some batches.
fn batches_of(snapshot: &Snapshot, thread: &ThreadId, from: Option<u64>) -> BatchPage {
    batches(snapshot, thread, from, 2_000).unwrap()
}

#[tokio::test]
async fn pages_of_a_long_history_read_the_same_number_of_log_entries() {
    const PAGES: u64 = 60;
    let dir = TempDir::new().unwrap();
    let store = open(&dir);
    let batches = (1..=10 * PAGES).map(|n| Batch {
        base: (n > 1).then(|| CheckpointId(n - 1)),
        events: vec![event(n)].into(),
        checkpoint: Some(checkpoint_of(n)),
        ..Batch::default()
    });
    let thread = thread(&store, batches).await;
    let parts = [CheckpointParts::All, CheckpointParts::WithoutValues, CheckpointParts::Meta];
    for parts in parts {
        let cursors = Cursors::default();
        let limit = Some(10);
        let mut query = CheckpointQuery { limit, parts, ..CheckpointQuery::default() };
        let mut entries = Vec::new();
        for page in 0..PAGES {
            let snapshot = Snapshot::newest(&store.0.file).unwrap().counting();
            let found = checkpoints(&snapshot, &thread, &query, &cursors).unwrap();
            assert_eq!((found.items.len(), found.is_last), (10, page + 1 == PAGES));
            for (tuple, expected) in found.items.iter().zip((1..=10 * (PAGES - page)).rev()) {
                assert_eq!(tuple.checkpoint.meta.id.0, expected);
                let since = tuple.events.iter().map(|event| event.seq).collect::<Vec<_>>();
                let is_newest = expected == 10 * PAGES;
                let has_none = is_newest || !parts.has_events();
                assert_eq!(since, if has_none { vec![] } else { vec![expected + 1] });
            }
            query.before = found.items.last().map(|tuple| tuple.checkpoint.meta.id);
            entries.push(usize::MAX - snapshot.entries_left());
        }
        // The newest checkpoint has no events, and the oldest page ends with the chain.
        let inner = &entries[1..entries.len() - 1];
        assert!(inner.iter().all(|read| *read == inner[0]), "{parts:?}: {entries:?}");
        assert!(inner[0] <= 40, "{parts:?}: {entries:?}");
    }
}

#[tokio::test]
async fn older_snapshot_does_not_use_history_cursor_of_newer_snapshot() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir);
    let batches = (1..=9).map(|n| Batch { checkpoint: Some(checkpoint_of(n)), ..Batch::default() });
    let thread = thread(&store, batches).await;
    let old = Snapshot::newest(&store.0.file).unwrap();
    let late =
        Batch { base: Some(CheckpointId(2)), events: vec![event(1)].into(), ..Batch::default() };
    store.append(&thread, late).await.await.unwrap();
    let new = Snapshot::newest(&store.0.file).unwrap();
    let cursors = Cursors::default();
    let query = CheckpointQuery { limit: Some(5), ..CheckpointQuery::default() };
    let first = checkpoints(&new, &thread, &query, &cursors).unwrap();
    let before = first.items.last().map(|tuple| tuple.checkpoint.meta.id);
    let rest = CheckpointQuery { before, ..query };
    let events = |snapshot: &Snapshot| {
        let page = checkpoints(snapshot, &thread, &rest, &cursors).unwrap();
        page.items.iter().map(|tuple| tuple.events.len()).collect::<Vec<_>>()
    };
    assert_eq!(events(&old), [0, 0, 0, 0]);
    assert_eq!(events(&new), [0, 0, 1, 0]);
}

#[test]
fn least_recently_used_history_cursors_are_dropped() {
    let cursors = Cursors::default();
    let query = |before| CheckpointQuery { before: Some(before), ..CheckpointQuery::default() };
    let end = Cursor { newest: 9, next: 1, passed: Vec::new() };
    for number in 0..1_000 {
        cursors.insert(1, &query(CheckpointId(9)), CheckpointId(number), end.clone());
        assert!(cursors.find(1, 9, &query(CheckpointId(0))).is_some(), "it is in use");
    }
    let kept = (0..1_000).filter(|n| cursors.find(1, 9, &query(CheckpointId(*n))).is_some());
    assert_eq!(kept.count(), 256);
    assert!(cursors.find(2, 9, &query(CheckpointId(0))).is_none(), "another thread");
    let filter = [("run".to_owned(), json!("r"))].into();
    let filtered = CheckpointQuery { filter, ..query(CheckpointId(0)) };
    assert!(cursors.find(1, 9, &filtered).is_none(), "another list");
}
