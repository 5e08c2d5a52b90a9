//! The commit delay: what nobody waits for gathers, what somebody waits for does not.

use std::time::Duration;

use tempfile::TempDir;
use wattle_kit::need;
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, Holder, StoreError};
use wattle_store::urgency::COMMIT_DELAY_LIMIT;
use wattle_store::{PostgresStore, RedbStore};

use crate::postgres::Server;
use crate::sample::{append, create, events, seqs};

/// Batches that would take so many seconds if each waited for the longest delay.
const BATCHES: u64 = 120;

/// A third of that at most, even if each two shared a delay, and far above what a slow disk takes:
/// it only shows a wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// On a store with the longest delay.
async fn nobody_waits_for_the_delay(store: &dyn Store) {
    let thread = create(store, "waited for").await;
    let waits = async {
        for seq in 1..=BATCHES {
            // Nobody waits for the first of each two by itself.
            if seq % 2 == 1 {
                drop(store.append(&thread, events(seq, seq)).await);
            } else {
                append(store, &thread, events(seq, seq)).await.unwrap();
                let written = store.thread(&thread).await.unwrap().unwrap();
                assert_eq!(written.last_seq, seq, "a batch is durable with all before it");
            }
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.expect("each batch waited for the delay");
}

async fn what_nobody_waits_for_is_written(store: &dyn Store) {
    let thread = create(store, "left alone").await;
    for seq in 1..=3 {
        drop(store.append(&thread, events(seq, seq)).await);
    }
    // A watch would be somebody who waits.
    let written = async {
        while store.thread(&thread).await.unwrap().unwrap().last_seq < 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, written).await.expect("nothing is written unless asked for");
    assert_eq!(seqs(&store.events(&thread, 0, 9).await.unwrap()), [1, 2, 3]);
}

/// Also if the writer rests over what nobody waits for.
async fn who_watches_does_not_wait_for_the_delay(store: &dyn Store) {
    let (thread, other) = (create(store, "watched").await, create(store, "not watched").await);
    let mut newest = store.watch(&thread);
    let hears = async {
        for seq in 1..=BATCHES {
            drop(store.append(&other, events(seq, seq)).await);
            drop(store.append(&thread, events(seq, seq)).await);
            newest.wait_for(|newest| *newest == seq).await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, hears).await.expect("who watches waited for the delay");
}

/// Leases are asked for in the same queue.
async fn a_lease_does_not_wait_for_what_gathers(store: &dyn Store) {
    let thread = create(store, "leased").await;
    let holder = Holder("a".into());
    let waits = async {
        for seq in 1..=BATCHES {
            let epoch = store.lease(&thread, &holder).await.unwrap();
            let batch = Batch { epoch: Some(epoch), ..events(seq, seq) };
            drop(store.append(&thread, batch).await);
            store.release(&thread, epoch).await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.expect("each lease waited for the delay");
}

#[tokio::test]
async fn a_file_lets_batches_gather_for_which_nobody_waits() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("wattle.redb");
    let store = RedbStore::open_with(&file, COMMIT_DELAY_LIMIT).unwrap();
    nobody_waits_for_the_delay(&store).await;
    what_nobody_waits_for_is_written(&store).await;
    who_watches_does_not_wait_for_the_delay(&store).await;
    a_lease_does_not_wait_for_what_gathers(&store).await;
    let thread = create(&store, "closed").await;
    drop(store.append(&thread, events(1, 5)).await);
    drop(store);
    let store = RedbStore::open(&file).unwrap();
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().last_seq, 5);
}

#[tokio::test]
async fn without_a_delay_batches_are_committed_as_they_come() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("wattle.redb");
    let store = RedbStore::open_with(&file, Duration::ZERO).unwrap();
    nobody_waits_for_the_delay(&store).await;
    what_nobody_waits_for_is_written(&store).await;
}

#[tokio::test]
async fn a_database_lets_batches_gather_for_which_nobody_waits() {
    let server = need!(Server::start());
    let config = server.config("gathering").with_commit_delay(COMMIT_DELAY_LIMIT);
    let store = PostgresStore::open(&config).await.unwrap();
    nobody_waits_for_the_delay(&store).await;
    what_nobody_waits_for_is_written(&store).await;
    who_watches_does_not_wait_for_the_delay(&store).await;
    a_lease_does_not_wait_for_what_gathers(&store).await;
}

#[tokio::test]
async fn a_delay_that_is_too_long_is_refused() {
    let folder = TempDir::new().unwrap();
    let long = COMMIT_DELAY_LIMIT + Duration::from_millis(1);
    let refused = RedbStore::open_with(folder.path().join("wattle.redb"), long).unwrap_err();
    assert!(matches!(refused, StoreError::Backend { .. }), "{refused}");
    assert!(refused.to_string().contains("at most 1000 ms, not 1001 ms"), "{refused}");
    assert!(!folder.path().join("wattle.redb").exists());
}
