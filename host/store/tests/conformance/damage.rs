//! Damaged files: each damage either is reported and sets threads aside, or is harmless. All other
//! threads work.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tempfile::TempDir;
use wattle_graph::id::ThreadId;
use wattle_kit::damage::change;
use wattle_kit::needs::setting;
use wattle_run::ports::BlobStore as _;
use wattle_run::ports::Store as _;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{Batch, DamageReport, PendingQuery, StoreError, ThreadQuery};
use wattle_store::sweep::sweep_blobs;
use wattle_store::{FileBlobs, RedbStore};

use crate::fixtures::{
    append, checkpoint, create, event, events, id, list_delta, record, run, thread_id,
};
use crate::pending::{names, pending_run};

/// Name of the variable with the number of damages to try; see `host/docs/testing.md`.
pub(crate) const DAMAGES: &str = "WATTLE_DAMAGES";

/// Default numbers of damages and of threads.
const ORDINARY: (u64, u64) = (40, 60);

/// Name of the variable with the number of threads of the store.
const THREADS: &str = "WATTLE_DAMAGED_THREADS";

/// Number of threads if only the number of damages is set.
const MANY_THREADS: u64 = 1000;

/// Size of a redb page, in bytes.
const PAGE: u64 = 4096;

fn name(number: u64) -> ThreadId {
    thread_id(&format!("thread-{number}"))
}

/// Returns the name of the pending run of a thread.
fn pending(number: u64) -> String {
    format!("pending-{number}")
}

/// Returns true if a pending run belongs to a thread.
fn is_of(run: &str, thread: &ThreadId) -> bool {
    run.strip_prefix("pending-") == thread.as_str().strip_prefix("thread-")
}

/// Returns all pending runs of a store in their order.
async fn all_pending(store: &RedbStore) -> Vec<String> {
    names(store, PendingQuery { limit: usize::MAX, ..PendingQuery::default() }).await
}

/// Creates a store of many threads with runs, events, checkpoints, lists and blobs, and returns its
/// blobs. Every third thread has a pending run. The pending runs of the last threads are enqueued
/// first.
async fn fill(path: &Path, blobs: &FileBlobs, threads: u64) -> Vec<BlobRef> {
    let store = RedbStore::open(path).unwrap();
    let mut tickets = Vec::new();
    let mut put = Vec::new();
    for number in 0..threads {
        let thread = name(number);
        let text = format!("blob of {thread}");
        let blob = blobs.put(Bytes::from(text), "text/plain").await.unwrap();
        put.push(blob);
        let mut run = run(&thread, &format!("run-{number}"));
        run.ended_ms = Some(number.cast_signed());
        let first = checkpoint(1, None, &[("a", json!(number)), ("list", json!([1, 2]))], &[]);
        let mut second = checkpoint(2, Some(1), &[("list", json!([1, 2, number]))], &[("a", 1)]);
        second.list_deltas.extend([list_delta("list", 1, 2)]);
        let large = "text ".repeat((number % 7 * 400) as usize);
        for batch in [
            Batch { record: Some(record(&thread)), run: Some(run), ..events(1, 2) },
            Batch { checkpoint: Some(first), ..Batch::default() },
            Batch {
                base: Some(id(1)),
                checkpoint: Some(second),
                events: vec![event(3, json!({ "blob": blob, "large": large }))].into(),
                ..Batch::default()
            },
        ] {
            tickets.push(store.append(&thread, batch).await);
        }
    }
    // This thread is long enough for marks.
    for seq in 4..=200 {
        tickets.push(store.append(&name(0), events(seq, seq)).await);
    }
    for ticket in tickets {
        ticket.await.unwrap();
    }
    for (number, at_ms) in (0..threads).rev().step_by(3).zip(1..) {
        let mut pending_run = pending_run(&name(number), &pending(number), 0);
        pending_run.created_ms = Some(at_ms);
        assert!(store.enqueue(&pending_run, None).await.unwrap());
    }
    put
}

/// Returns all data of a thread as text, or the error of reading it.
async fn content(store: &RedbStore, thread: &ThreadId) -> Result<String, StoreError> {
    let latest = store.thread_snapshot(thread).await?;
    let events = store.events(thread, 0, usize::MAX).await?;
    let past = store.events(thread, 100, 5).await?;
    let runs = store.newest_runs(thread, 0, usize::MAX).await?;
    let checkpoints = store.checkpoints(thread, &Default::default()).await?;
    Ok(format!("{latest:?} {events:?} {past:?} {runs:?} {checkpoints:?}"))
}

async fn contents(
    store: &RedbStore,
    threads: u64,
) -> BTreeMap<ThreadId, Result<String, StoreError>> {
    let mut all = BTreeMap::new();
    for number in 0..threads {
        all.insert(name(number), content(store, &name(number)).await);
    }
    all
}

/// Pseudorandom numbers that are the same in every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// Damages a file at random, and returns a description.
pub(crate) fn damage(bytes: &mut Vec<u8>, numbers: &mut Numbers) -> String {
    let length = bytes.len() as u64;
    match numbers.below(5) {
        0 | 1 => {
            let (at, bit) = (numbers.below(length), numbers.below(8));
            bytes[at as usize] ^= 1 << bit;
            format!("bit {bit} of byte {at} is changed")
        }
        2 | 3 => {
            let page = numbers.below(length.div_ceil(PAGE));
            let end = ((page + 1) * PAGE).min(length) as usize;
            bytes[(page * PAGE) as usize..end].fill(0);
            format!("page {page} is zeroed")
        }
        _ => {
            let length = numbers.below(length);
            bytes.truncate(length as usize);
            format!("the file is cut to {length} bytes")
        }
    }
}

/// Counts of the outcomes of damages.
#[derive(Debug, Default)]
struct Outcomes {
    harmless: u64,
    set_aside: u64,
    threads_set_aside: u64,
    repaired: u64,
    threads_lost_by_name: u64,
    only_from_a_backup: u64,
    blobs: u64,
}

struct Trial {
    path: PathBuf,
    whole: Vec<u8>,
    contents: BTreeMap<ThreadId, String>,
    /// Pending runs in their order.
    pending: Vec<String>,
}

impl Trial {
    /// Damages the file and checks the outcome.
    async fn of_the_file(&self, numbers: &mut Numbers, outcomes: &mut Outcomes) {
        let mut bytes = self.whole.clone();
        let how = damage(&mut bytes, numbers);
        clear_beside(&self.path);
        fs::write(&self.path, &bytes).unwrap();
        let survey = RedbStore::survey_file(&self.path);
        let is_found = survey.as_ref().map_or(true, |survey| !survey.damaged.is_empty());
        assert!(fs::read(&self.path).unwrap() == bytes, "{how}: the survey changed the file");
        match RedbStore::open(&self.path) {
            Ok(store) => {
                let damaged = self.compare(&store, &how, survey.as_ref().ok()).await;
                assert!(
                    damaged == 0 || is_found,
                    "{how}: {damaged} threads are damaged, and the survey found no damage"
                );
                outcomes.threads_set_aside += damaged;
                *(if damaged > 0 { &mut outcomes.set_aside } else { &mut outcomes.harmless }) += 1;
            }
            Err(error) => {
                assert!(
                    is_found,
                    "{how}: the file is refused, and the survey found no damage: {error}"
                );
                assert!(matches!(error, StoreError::Corrupt { .. }), "{how}: {error}");
                assert!(error.to_string().contains("backup"), "{how}: {error}");
                self.repair(&how, outcomes).await;
            }
        }
    }

    async fn repair(&self, how: &str, outcomes: &mut Outcomes) {
        match RedbStore::repair_file(&self.path) {
            Ok((survey, aside)) => {
                assert!(aside.exists(), "{how}");
                assert!(!survey.damaged.is_empty(), "{how}");
                let store = RedbStore::open(&self.path).unwrap();
                let damaged = self.compare(&store, how, Some(&survey)).await;
                outcomes.repaired += 1;
                outcomes.threads_lost_by_name += damaged;
            }
            Err(error) => {
                assert!(matches!(error, StoreError::Corrupt { .. }), "{how}: {error}");
                outcomes.only_from_a_backup += 1;
            }
        }
    }

    /// Compares all threads with their state before the damage, and returns the number of damaged
    /// threads. The survey must report each damaged thread, or the damage of the tables that
    /// contained the id of the thread.
    async fn compare(&self, store: &RedbStore, how: &str, survey: Option<&DamageReport>) -> u64 {
        let subjects: BTreeSet<&str> = survey
            .map(|survey| survey.damaged.iter().map(|damage| damage.subject.as_str()).collect())
            .unwrap_or_default();
        let lost_table = subjects.contains("table `heads`") && subjects.contains("table `records`");
        let (mut damaged, mut written) = (0, 0);
        let mut pending = self.pending.clone();
        for (thread, before) in &self.contents {
            let is_named = subjects.contains(format!("thread `{thread}`").as_str());
            match content(store, thread).await {
                Ok(now) if now == *before => {
                    assert!(!is_named, "{how}: {thread} is intact and was reported");
                    if written < 3 {
                        let next = store.thread(thread).await.unwrap().unwrap().last_seq + 1;
                        append(store, thread, events(next, next)).await.unwrap();
                        written += 1;
                    }
                }
                Ok(now) => {
                    assert!(lost_table, "{how}: {thread} is different: {before} -> {now}");
                    damaged += 1;
                    pending.retain(|run| !is_of(run, thread));
                }
                Err(error) => {
                    assert!(is_named, "{how}: {thread} was not reported: {error}");
                    assert!(error.to_string().contains(thread.as_str()), "{how}: {error}");
                    damaged += 1;
                    pending.retain(|run| !is_of(run, thread));
                }
            }
        }
        store.threads(&ThreadQuery::default()).await.unwrap();
        assert_eq!(all_pending(store).await, pending, "{how}");
        damaged
    }
}

/// Deletes the files that other trials left in the folder.
pub(crate) fn clear_beside(path: &Path) {
    for entry in fs::read_dir(path.parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.contains(".damaged-") || name.ends_with(".rebuilt") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

#[tokio::test]
async fn random_damage_is_reported_or_harmless() {
    let (damages, threads) = match setting(DAMAGES) {
        Some(damages) => (damages, setting(THREADS).unwrap_or(MANY_THREADS)),
        None => ORDINARY,
    };
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let blobs = FileBlobs::open(dir.path().join("blobs")).unwrap();
    let put = fill(&path, &blobs, threads).await;
    let store = RedbStore::open(&path).unwrap();
    let contents = contents(&store, threads).await;
    let contents = contents.into_iter().map(|(thread, content)| (thread, content.unwrap()));
    let contents = contents.collect();
    let pending = all_pending(&store).await;
    drop(store);
    let survey = RedbStore::survey_file(&path).unwrap();
    assert_eq!((survey.threads, survey.damaged.len()), (threads, 0), "{:?}", survey.damaged);
    let trial = Trial { whole: fs::read(&path).unwrap(), path, contents, pending };
    let mut outcomes = Outcomes::default();
    let mut numbers = Numbers(7);
    for _ in 0..damages {
        if numbers.below(10) == 0 {
            let blob = put[numbers.below(threads) as usize];
            damage_of_a_blob(dir.path(), blob, &mut numbers).await;
            outcomes.blobs += 1;
        } else {
            trial.of_the_file(&mut numbers, &mut outcomes).await;
        }
    }
    println!("{damages} damages, {threads} threads, {} bytes: {outcomes:?}", trial.whole.len());
}

async fn damage_of_a_blob(dir: &Path, blob: BlobRef, numbers: &mut Numbers) {
    let blobs = FileBlobs::open(dir.join("blobs")).unwrap();
    let name = blob.0.to_hex();
    let path = dir.join("blobs").join(&name[..2]).join(&name);
    let whole = fs::read(&path).unwrap();
    let mut bytes = whole.clone();
    let how = damage(&mut bytes, numbers);
    fs::write(&path, &bytes).unwrap();
    let read = blobs.get(blob, 0, None).await;
    assert!(read.is_err_and(|failure| failure.message.contains(&blob.to_string())), "{how}");
    let found = blobs.find_damage().await.unwrap();
    assert_eq!(found.len(), 1, "{how}: {found:?}");
    blobs.put(Bytes::from(whole), "text/plain").await.unwrap();
    assert!(blobs.find_damage().await.unwrap().is_empty(), "{how}");
}

#[tokio::test]
async fn changed_byte_sets_one_thread_aside() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    for number in 0..20 {
        let thread = create(&store, &format!("t{number}")).await;
        let note = vec![event(1, json!(format!("note of {number:03}")))].into();
        append(&store, &thread, Batch { events: note, ..Batch::default() }).await.unwrap();
    }
    drop(store);
    change(&path, "note of 007").unwrap();
    let error = RedbStore::check(&path).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    let store = RedbStore::open(&path).unwrap();
    let broken = thread_id("t7");
    for number in 0..20 {
        let thread = thread_id(&format!("t{number}"));
        if thread != broken {
            assert_eq!(store.events(&thread, 0, 9).await.unwrap().len(), 1);
            append(&store, &thread, events(2, 2)).await.unwrap();
        }
    }
    let error = store.thread(&broken).await.unwrap_err();
    assert!(error.to_string().contains("thread `t7`") && error.to_string().contains("set aside"));
    let refused = append(&store, &broken, events(2, 2)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
    let listed = store.threads(&ThreadQuery::default()).await.unwrap();
    assert_eq!(listed.items.len(), 19);
    assert!(dir.path().join("wattle.redb.damaged-1").exists());
    let named = store.find_damage().await.unwrap().damaged;
    assert_eq!(named.len(), 1, "{named:?}");
    assert_eq!(named[0].subject, "thread `t7`");
    // The thread is still set aside after another start. Its deletion frees its id.
    drop(store);
    let store = RedbStore::open(&path).unwrap();
    store.thread(&broken).await.unwrap_err();
    store.delete_thread(&broken).await.unwrap();
    assert!(store.thread(&broken).await.unwrap().is_none());
    create(&store, "t7").await;
    assert!(store.find_damage().await.unwrap().damaged.is_empty());
}

/// The store cannot read the mentions of a damaged thread, and the thread may be restored.
#[tokio::test]
async fn no_blob_is_swept_while_a_thread_is_set_aside() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let blobs = FileBlobs::open(dir.path().join("blobs")).unwrap();
    let store = RedbStore::open(&path).unwrap();
    let mut put = Vec::new();
    for number in 0..2 {
        let text = format!("blob of {number}");
        let blob = blobs.put(Bytes::from(text), "text/plain").await.unwrap();
        let thread = create(&store, &format!("t{number}")).await;
        let note = json!({ "blob": blob, "text": format!("note of {number:03}") });
        let events = vec![event(1, note)].into();
        append(&store, &thread, Batch { events, ..Batch::default() }).await.unwrap();
        put.push(blob);
    }
    drop(store);
    change(&path, "note of 001").unwrap();
    let store = RedbStore::open(&path).unwrap();
    let broken = thread_id("t1");
    assert_eq!(store.damaged_threads().await.unwrap(), std::slice::from_ref(&broken));
    assert_eq!(sweep_blobs(&store, &blobs, Duration::ZERO).await.unwrap(), 0);
    blobs.stat(put[1]).await.unwrap();
    store.delete_thread(&broken).await.unwrap();
    assert!(store.damaged_threads().await.unwrap().is_empty());
    assert_eq!(sweep_blobs(&store, &blobs, Duration::ZERO).await.unwrap(), 1);
    blobs.stat(put[0]).await.unwrap();
    assert!(blobs.stat(put[1]).await.is_err());
}

/// After a failed read, redb refuses all further reads of a file. Such an error is not damage of a
/// thread.
#[tokio::test]
async fn survey_of_an_unreadable_file_fails() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    for number in 0..200 {
        create(&store, &format!("t{number}")).await;
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    let store = RedbStore::open(&path).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(2 * PAGE).unwrap();
    let error = store.find_damage().await.unwrap_err();
    assert!(matches!(error, StoreError::Backend { .. }), "{error}");
    drop(store);
    fs::write(&path, &whole).unwrap();
    let survey = RedbStore::survey_file(&path).unwrap();
    assert_eq!((survey.threads, survey.damaged.len()), (200, 0), "{:?}", survey.damaged);
}

#[tokio::test]
async fn lost_pending_runs_are_found_and_repaired() {
    const PENDING: redb::TableDefinition<'_, &[u8], u64> = redb::TableDefinition::new("pending");
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    for (number, at_ms) in [("3", 1), ("1", 2), ("2", 3)] {
        let thread = create(&store, &format!("thread-{number}")).await;
        let mut pending_run = pending_run(&thread, &format!("pending-{number}"), 0);
        pending_run.created_ms = Some(at_ms);
        assert!(store.enqueue(&pending_run, None).await.unwrap());
    }
    drop(store);
    let database = redb::Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut table = transaction.open_table(PENDING).unwrap();
    table.remove(b"pending-3".as_slice()).unwrap().unwrap();
    table.remove(b"pending-1".as_slice()).unwrap().unwrap();
    drop(table);
    transaction.commit().unwrap();
    drop(database);
    let named = RedbStore::survey_file(&path).unwrap().damaged;
    let named: Vec<&str> = named.iter().map(|damage| damage.subject.as_str()).collect();
    assert_eq!(named, ["run `pending-1`", "run `pending-3`"]);
    RedbStore::repair_file(&path).unwrap();
    assert!(RedbStore::survey_file(&path).unwrap().damaged.is_empty());
    let store = RedbStore::open(&path).unwrap();
    assert_eq!(all_pending(&store).await, ["pending-3", "pending-1", "pending-2"]);
}

#[test]
fn empty_or_missing_file_is_not_a_new_store() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    drop(RedbStore::open(&path).unwrap());
    let whole = fs::read(&path).unwrap();
    fs::write(&path, b"").unwrap();
    for what in ["empty", "missing"] {
        for refused in [
            RedbStore::open(&path).map(drop),
            RedbStore::check(&path),
            RedbStore::survey_file(&path).map(drop),
        ] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("wattle store restore"), "{error}");
        }
        let _ = fs::remove_file(&path);
    }
    fs::write(&path, whole).unwrap();
    RedbStore::open(&path).unwrap();
    // Without the marker file of an earlier store, a new store is created.
    fs::remove_file(&path).unwrap();
    fs::remove_file(dir.path().join("wattle.redb.made")).unwrap();
    RedbStore::open(&path).unwrap();
}

#[tokio::test]
async fn empty_file_next_to_blobs_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let blobs = FileBlobs::open(dir.path().join("blobs")).unwrap();
    blobs.put(Bytes::from_static(b"x"), "text/plain").await.unwrap();
    fs::write(&path, b"").unwrap();
    let error = RedbStore::open(&path).unwrap_err().to_string();
    assert!(error.contains("its folder contains blobs"), "{error}");
}
