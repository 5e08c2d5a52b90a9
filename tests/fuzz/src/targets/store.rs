//! Pages of a store's file: the input says which bytes of a sound file change. The file is refused as
//! damaged, or it opens, and then each thread is as it was or is said to be damaged, and the store
//! can be written.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;
use wattle_graph::event::Event;
use wattle_graph::id::ThreadId;
use wattle_run::ports::Store as _;
use wattle_run::ports::store::{Batch, StoreError};
use wattle_store::RedbStore;

/// The name of the file.
const FILE: &str = "wattle.redb";

/// Threads of the file.
const THREADS: usize = 4;

/// Bytes of one edit: four of the place, one that the byte there is changed by.
const EDIT_BYTES: usize = 5;

/// Edits of one input: a page that was torn has some more, but each is alike.
const EDITS: usize = 64;

/// A file without damage.
struct Sound {
    bytes: Vec<u8>,
    /// What can be read of each thread.
    contents: Vec<String>,
}

/// Opens a file with changes.
pub fn run(bytes: &[u8]) {
    static SOUND: OnceLock<Sound> = OnceLock::new();
    let sound = SOUND.get_or_init(|| crate::wait(make()));
    let mut file = sound.bytes.clone();
    for edit in bytes.chunks_exact(EDIT_BYTES).take(EDITS) {
        let place = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize;
        let length = file.len();
        file[place % length] ^= edit[4];
    }
    let folder = folder();
    let path = folder.path().join(FILE);
    fs::write(&path, &file).expect("there is room");
    let survey = RedbStore::survey_file(&path);
    let is_found = survey.as_ref().map_or(true, |survey| !survey.damaged.is_empty());
    match RedbStore::open(&path) {
        Ok(store) => {
            let damaged = crate::wait(compare(&store, &sound.contents));
            assert!(
                damaged == 0 || is_found,
                "{damaged} threads are damaged, and nothing is found"
            );
        }
        Err(error) => {
            assert!(
                matches!(error, StoreError::Corrupt { .. } | StoreError::NewerFormat { .. }),
                "{error}"
            );
            assert!(is_found, "it is refused, and nothing is found: {error}");
        }
    }
}

fn thread(number: usize) -> ThreadId {
    ThreadId::new(format!("thread-{number}")).expect("the name is valid")
}

/// Compares all threads with what they were; answers with how many cannot be read.
async fn compare(store: &RedbStore, contents: &[String]) -> usize {
    let mut damaged = 0;
    for (number, before) in contents.iter().enumerate() {
        match content(store, &thread(number)).await {
            Ok(now) => assert_eq!(now, *before, "thread {number} is another without a word"),
            Err(StoreError::Corrupt { .. } | StoreError::Broken { .. }) => damaged += 1,
            Err(error) => panic!("another error than of damage: {error}"),
        }
    }
    let fresh = ThreadId::new("fresh").expect("the name is valid");
    // What is written may need a page that is damaged.
    if damaged == 0 {
        append(store, &fresh, 1).await.expect("a sound store can be written");
    }
    damaged
}

/// All that can be read of a thread.
async fn content(store: &RedbStore, thread: &ThreadId) -> Result<String, StoreError> {
    let latest = store.latest(thread).await?;
    let events = store.events(thread, 0, usize::MAX).await?;
    let runs = store.runs(thread).await?;
    let checkpoints = store.checkpoints(thread, &Default::default()).await?;
    store.verify(thread).await?;
    Ok(format!("{latest:?} {events:?} {runs:?} {checkpoints:?}"))
}

/// A folder for one file; in memory where there is such a place.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    folder.expect("there is room")
}

async fn make() -> Sound {
    let folder = folder();
    let path = folder.path().join(FILE);
    let store = RedbStore::open(&path).expect("it can be made");
    let mut contents = Vec::new();
    for number in 0..THREADS {
        let thread = thread(number);
        for seq in 1..=3 {
            append(&store, &thread, seq).await.expect("it can be written");
        }
        contents.push(content(&store, &thread).await.expect("it can be read"));
    }
    drop(store);
    let bytes = fs::read(&path).expect("it is there");
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
    let checkpoint = wattle_graph::checkpoint::Checkpoint {
        meta: from(meta),
        values: [("a".parse().expect("it is a name"), json!([seq, "value"]).into())].into(),
        tails: [].into(),
    };
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
    let events: Vec<Event> = vec![from(event)];
    let base = checkpoint.meta.parent;
    let batch =
        Batch { base, checkpoint: Some(checkpoint), events, record, run, ..Batch::default() };
    store.append(thread, batch).await.await
}

fn from<T: serde::de::DeserializeOwned>(document: Value) -> T {
    serde_json::from_value(document).expect("the document is valid")
}
