//! Backups of a store that is in use.

use std::fs;

use bytes::Bytes;
use tempfile::TempDir;
use wattle_run::ports::BlobStore as _;
use wattle_run::ports::Store as _;
use wattle_run::ports::store::ThreadQuery;
use wattle_store::{FileBlobs, RedbStore};

use crate::fixtures::{append, create, events, seqs, thread_id};

#[tokio::test]
async fn backup_during_appends_is_consistent() {
    let dir = TempDir::new().unwrap();
    let store = RedbStore::open(dir.path().join("wattle.redb")).unwrap();
    let mut before = Vec::new();
    for number in 0..30 {
        let thread = create(&store, &format!("t{number}")).await;
        append(&store, &thread, events(1, 20)).await.unwrap();
        before.push(thread);
    }
    let gone = create(&store, "gone").await;
    store.delete_thread(&gone).await.unwrap();
    let folder = dir.path().join("copy");
    fs::create_dir(&folder).unwrap();
    let busy = async {
        for seq in 21..=60 {
            for thread in &before {
                append(&store, thread, events(seq, seq)).await.unwrap();
            }
        }
    };
    let (copied, ()) = tokio::join!(store.backup(&folder), busy);
    copied.unwrap();
    let survey = RedbStore::survey_file(folder.join("wattle.redb")).unwrap();
    assert_eq!((survey.threads, survey.damaged.len()), (30, 0), "{:?}", survey.damaged);
    let copy = RedbStore::open(folder.join("wattle.redb")).unwrap();
    assert_eq!(copy.threads(&ThreadQuery::default()).await.unwrap().items.len(), 30);
    for thread in &before {
        let newest = copy.thread(thread).await.unwrap().unwrap().last_seq;
        assert!((20..=60).contains(&newest), "{newest}");
        let all = copy.events(thread, 0, usize::MAX).await.unwrap();
        assert_eq!(seqs(&all), (1..=newest).collect::<Vec<_>>());
        append(&copy, thread, events(newest + 1, newest + 1)).await.unwrap();
    }
    assert!(copy.thread(&thread_id("gone")).await.unwrap().is_none());
    assert_eq!(store.thread(&before[0]).await.unwrap().unwrap().last_seq, 60);
    // A second backup into one folder would mix two states.
    store.backup(&folder).await.unwrap_err();
}

#[tokio::test]
async fn unfinished_backup_is_deleted_at_the_next_start() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    let (cut, whole) = (store.begin_backup().await.unwrap(), store.begin_backup().await.unwrap());
    for folder in [&cut, &whole] {
        store.backup(folder).await.unwrap();
    }
    let whole = store.finish_backup(&whole).await.unwrap();
    let dropped = store.begin_backup().await.unwrap();
    store.drop_backup(&dropped).await.unwrap();
    assert!(cut.exists() && whole.exists() && !dropped.exists());
    drop(store);
    let store = RedbStore::open(&path).unwrap();
    assert!(!cut.exists() && whole.join("wattle.redb").is_file());
    // Names of backups are not reused.
    let next = store.begin_backup().await.unwrap();
    assert_ne!(store.finish_backup(&next).await.unwrap(), whole);
}

#[tokio::test]
async fn backup_copies_intact_blobs() {
    let dir = TempDir::new().unwrap();
    let blobs = FileBlobs::open(dir.path().join("blobs")).unwrap();
    let mut put = Vec::new();
    for number in 0..10 {
        let text = format!("blob {number}");
        put.push(blobs.put(Bytes::from(text), "text/plain").await.unwrap());
    }
    let name = put[3].0.to_hex();
    fs::write(dir.path().join("blobs").join(&name[..2]).join(&name), "else").unwrap();
    let folder = dir.path().join("copy");
    fs::create_dir(&folder).unwrap();
    for round in 0..2 {
        let damaged = blobs.backup(&folder).await.unwrap();
        assert_eq!(damaged.len(), 1, "{round}: {damaged:?}");
        assert!(damaged[0].subject.contains(&name), "{damaged:?}");
    }
    let copy = FileBlobs::open(folder.join("blobs")).unwrap();
    for (number, blob) in put.iter().enumerate().filter(|(number, _)| *number != 3) {
        let bytes = copy.get(*blob, 0, None).await.unwrap();
        assert_eq!(bytes, format!("blob {number}"));
        assert_eq!(copy.stat(*blob).await.unwrap().media_type, "text/plain");
    }
    // The backup does not see later puts.
    blobs.put(Bytes::from("blob 3"), "text/plain").await.unwrap();
    assert!(copy.get(put[3], 0, None).await.is_err());
}
