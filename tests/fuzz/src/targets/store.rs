//! Pages of a store's file. The input selects bytes of an intact file to change. The store rejects
//! the file as damaged or opens it. If it opens, each thread is unchanged or reported as damaged,
//! and the store accepts writes.

use std::fs;
use std::sync::OnceLock;

use serde_json::{Value, json};
use wattle_graph::event::Event;
use wattle_graph::id::ThreadId;
use wattle_run::ports::Store as _;
use wattle_run::ports::store::{Batch, StoreError};
use wattle_store::RedbStore;

use super::{edited, folder};

/// The name of the file.
const FILE: &str = "wattle.redb";

/// Number of threads in the file.
const THREADS: usize = 4;

/// A file without damage.
struct Sound {
    bytes: Vec<u8>,
    /// The content of each thread.
    contents: Vec<String>,
}

/// Opens a file with changed bytes.
pub fn run(bytes: &[u8]) {
    static SOUND: OnceLock<Sound> = OnceLock::new();
    let sound = SOUND.get_or_init(|| crate::wait(make()));
    let folder = folder();
    let path = folder.path().join(FILE);
    fs::write(&path, edited(&sound.bytes, bytes)).expect("there is room");
    let survey = RedbStore::survey_file(&path);
    let is_found = survey.as_ref().map_or(true, |survey| !survey.damaged.is_empty());
    match RedbStore::open(&path) {
        Ok(store) => {
            let damaged = crate::wait(compare(&store, &sound.contents));
            assert!(
                damaged == 0 || is_found,
                "{damaged} threads are damaged, and the survey reports none"
            );
        }
        Err(error) => {
            assert!(
                matches!(error, StoreError::Corrupt { .. } | StoreError::NewerFormat { .. }),
                "{error}"
            );
            assert!(is_found, "the file is rejected, and the survey reports no damage: {error}");
        }
    }
}

fn thread(number: usize) -> ThreadId {
    ThreadId::new(format!("thread-{number}")).expect("the name is valid")
}

/// Compares all threads with their original content. Returns the number of damaged threads.
async fn compare(store: &RedbStore, contents: &[String]) -> usize {
    let mut damaged = 0;
    for (number, before) in contents.iter().enumerate() {
        match content(store, &thread(number)).await {
            Ok(now) => assert_eq!(now, *before, "thread {number} has changed without an error"),
            Err(StoreError::Corrupt { .. } | StoreError::Broken { .. }) => damaged += 1,
            Err(error) => panic!("expected an error of damage: {error}"),
        }
    }
    let fresh = ThreadId::new("fresh").expect("the name is valid");
    // A write may need a damaged page.
    if damaged == 0 {
        append(store, &fresh, 1).await.expect("a sound store can be written");
    }
    damaged
}

/// Returns all content of a thread.
async fn content(store: &RedbStore, thread: &ThreadId) -> Result<String, StoreError> {
    let latest = store.thread_snapshot(thread).await?;
    let events = store.events(thread, 0, usize::MAX).await?;
    let runs = store.newest_runs(thread, 0, usize::MAX).await?;
    let checkpoints = store.checkpoints(thread, &Default::default()).await?;
    store.verify(thread).await?;
    Ok(format!("{latest:?} {events:?} {runs:?} {checkpoints:?}"))
}

async fn make() -> Sound {
    let folder = folder();
    let path = folder.path().join(FILE);
    let store = RedbStore::open(&path).expect("the file can be created");
    let mut contents = Vec::new();
    for number in 0..THREADS {
        let thread = thread(number);
        for seq in 1..=3 {
            append(&store, &thread, seq).await.expect("an intact store can be written");
        }
        contents.push(content(&store, &thread).await.expect("an intact store can be read"));
    }
    drop(store);
    let bytes = fs::read(&path).expect("the file can be read");
    Sound { bytes, contents }
}

async fn append(store: &RedbStore, thread: &ThreadId, seq: u64) -> Result<(), StoreError> {
    let event = json!({
        "seq": seq, "at_ms": 1, "run": "run", "type": "custom",
        "task": "task", "node": "node", "name": "note", "data": "text ".repeat(seq as usize * 50),
    });
    let meta = json!({
        "id": seq, "parent": Some(seq - 1).filter(|parent| *parent > 0), "step": seq,
        "source": if seq > 1 { "loop" } else { "input" }, "run": "run", "at_ms": 1, "next": [],
        "versions": { "a": seq },
    });
    let checkpoint = wattle_graph::checkpoint::Checkpoint::new(
        from(meta),
        [("a".parse().expect("it is a name"), json!([seq, "value"]).into())].into(),
    );
    let first = (seq == 1).then(|| {
        let record = json!({
            "id": thread, "app": "demo", "graph": "main",
            "version": wattle_graph::id::Digest::of(b"version"), "status": "idle",
            "created_ms": 1, "updated_ms": 1, "context": {},
        });
        let run = json!({
            "id": format!("run-{thread}"), "thread": thread, "first_seq": 1, "status": "running",
            "started_ms": 1,
        });
        (from(record), from(run))
    });
    let (record, run) = first.unzip();
    let events = vec![from::<Event>(event)].into();
    let base = checkpoint.meta.parent;
    let batch =
        Batch { base, checkpoint: Some(checkpoint), events, record, run, ..Batch::default() };
    store.append(thread, batch).await.await
}

fn from<T: serde::de::DeserializeOwned>(document: Value) -> T {
    serde_json::from_value(document).expect("the document is valid")
}
