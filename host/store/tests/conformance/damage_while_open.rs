//! Pages that are damaged while the store is open affect only the threads that need them.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use wattle_graph::id::{Digest, ThreadId};
use wattle_run::ports::Store as _;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{Batch, StoreError};
use wattle_store::commit_delay::MAX_COMMIT_DELAY;
use wattle_store::{RedbConfig, RedbStore};

use crate::fixtures::{append, create, event, events, thread_id};

/// Size of a redb page, in bytes.
const PAGE: usize = 4096;

/// The first byte of a leaf page, which contains entries of a table.
const LEAF: u8 = 1;

/// Number of threads. Their heads and mentions take several pages.
const THREADS: u64 = 400;

fn name(number: u64) -> ThreadId {
    thread_id(&format!("thread-{number:04}"))
}

fn blob(number: u64) -> BlobRef {
    BlobRef(Digest::of(format!("blob {number}").as_bytes()))
}

/// Returns a batch that mentions a blob.
fn mention(seq: u64, number: u64) -> Batch {
    Batch { events: vec![event(seq, json!({ "blob": blob(number) }))].into(), ..Batch::default() }
}

/// Creates a file of threads, each of which mentions a blob. Returns the path and the folder of the
/// file.
async fn filled() -> (PathBuf, TempDir) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    let mut tickets = Vec::new();
    for number in 0..THREADS {
        let thread = create(&store, name(number).as_str()).await;
        tickets.push(store.append(&thread, mention(1, number)).await);
    }
    for ticket in tickets {
        ticket.await.unwrap();
    }
    (path, dir)
}

fn holds(page: &[u8], bytes: &[u8]) -> bool {
    page.windows(bytes.len()).any(|window| window == bytes)
}

/// Zeroes the leaf pages for which `is_hit` returns true, in a file that may be open.
fn wipe(path: &Path, is_hit: impl Fn(&[u8]) -> bool) {
    let whole = fs::read(path).unwrap();
    let mut file = fs::File::options().write(true).open(path).unwrap();
    let pages = whole.chunks(PAGE).enumerate();
    let hit: Vec<_> = pages.filter(|(_, page)| page[0] == LEAF && is_hit(page)).collect();
    assert!(!hit.is_empty());
    for (number, page) in hit {
        file.seek(SeekFrom::Start((number * PAGE) as u64)).unwrap();
        file.write_all(&vec![0; page.len()]).unwrap();
    }
}

fn is_damage(error: &StoreError) -> bool {
    matches!(error, StoreError::Corrupt { .. })
}

#[tokio::test]
async fn damaged_page_fails_only_batches_that_need_it() {
    let (path, _dir) = filled().await;
    // Batches that are appended together share a commit.
    let config = RedbConfig { commit_delay: MAX_COMMIT_DELAY, ..RedbConfig::default() };
    let store = RedbStore::open_with(&path, config).unwrap();
    let (broken, intact) = (name(7), name(THREADS - 1));
    wipe(&path, |page| holds(page, blob(7).0.as_bytes()));
    let before = store.append(&intact, mention(2, 1000)).await;
    let failed = store.append(&broken, mention(2, 1001)).await;
    let after = store.append(&intact, mention(3, 1002)).await;
    before.await.unwrap();
    let error = failed.await.unwrap_err();
    assert!(is_damage(&error), "{error}");
    after.await.unwrap();
    // A batch that follows the refused batch is refused for the same reason.
    let error = append(&store, &broken, events(3, 3)).await.unwrap_err();
    assert!(is_damage(&error) || error.to_string().contains("was not written"), "{error}");
    append(&store, &intact, events(4, 4)).await.unwrap();
    // The thread can be read, and accepts batches that do not need the damaged page.
    append(&store, &broken, events(2, 2)).await.unwrap();
    assert!(store.damaged_threads().await.unwrap().is_empty());
    drop(store);
    let store = RedbStore::open(&path).unwrap();
    assert_eq!(store.thread(&intact).await.unwrap().unwrap().last_seq, 4);
    assert_eq!(store.thread(&broken).await.unwrap().unwrap().last_seq, 2);
}

#[tokio::test]
async fn unreadable_thread_is_set_aside() {
    let (path, _dir) = filled().await;
    let store = RedbStore::open(&path).unwrap();
    let (broken, intact) = (name(7), name(THREADS - 1));
    let record = format!(r#""id":"{broken}""#);
    wipe(&path, |page| holds(page, broken.as_str().as_bytes()) && !holds(page, record.as_bytes()));
    let error = append(&store, &broken, events(2, 2)).await.unwrap_err();
    assert!(is_damage(&error), "{error}");
    assert_eq!(store.damaged_threads().await.unwrap(), std::slice::from_ref(&broken));
    append(&store, &intact, events(2, 2)).await.unwrap();
    append(&store, &broken, events(2, 2)).await.unwrap_err();
    assert_eq!(store.damaged_threads().await.unwrap(), std::slice::from_ref(&broken));
    drop(store);
    // The file is rebuilt without the threads of that page.
    let store = RedbStore::open(&path).unwrap();
    assert!(store.damaged_threads().await.unwrap().contains(&broken));
    assert_eq!(store.thread(&intact).await.unwrap().unwrap().last_seq, 2);
    store.delete_thread(&broken).await.unwrap();
    assert!(!store.damaged_threads().await.unwrap().contains(&broken));
    create(&store, broken.as_str()).await;
}
