//! The commit delay applies only to batches that no caller awaits.

use std::time::Duration;

use tempfile::TempDir;
use wattle_kit::need;
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, LeaseHolder, StoreError};
use wattle_store::commit_delay::MAX_COMMIT_DELAY;
use wattle_store::{PostgresStore, RedbConfig, RedbStore};

use crate::fixtures::{append, create, events, seqs};
use crate::postgres::Server;

/// Number of batches. If each batch waited for the maximum delay, which is one second, the batches
/// would take this many seconds.
const BATCHES: u64 = 120;

/// Timeout of a test. If each pair of batches waited for the maximum delay, the batches would take
/// three times as long. A slow disk needs far less time.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The test detects a batch that waits only if the store has the maximum commit delay.
async fn awaited_batches_skip_the_commit_delay(store: &dyn Store) {
    let thread = create(store, "waited for").await;
    let waits = async {
        for seq in 1..=BATCHES {
            // The test awaits only the second batch of each pair.
            if seq % 2 == 1 {
                drop(store.append(&thread, events(seq, seq)).await);
            } else {
                append(store, &thread, events(seq, seq)).await.unwrap();
                let written = store.thread(&thread).await.unwrap().unwrap();
                assert_eq!(written.last_seq, seq, "all earlier batches are durable too");
            }
        }
    };
    tokio::time::timeout(TIMEOUT, waits).await.expect("each batch waited for the delay");
}

async fn unawaited_batches_are_committed_after_the_delay(store: &dyn Store) {
    let thread = create(store, "left alone").await;
    for seq in 1..=3 {
        drop(store.append(&thread, events(seq, seq)).await);
    }
    // The test polls the thread, since a watch would request a flush.
    let written = async {
        while store.thread(&thread).await.unwrap().unwrap().last_seq < 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, written).await.expect("the batches were not written");
    assert_eq!(seqs(&store.events(&thread, 0, 9).await.unwrap()), [1, 2, 3]);
}

/// A watcher sees a batch of its thread at once, even while the writer holds a batch of another
/// thread.
async fn watched_threads_skip_the_commit_delay(store: &dyn Store) {
    let (thread, other) = (create(store, "watched").await, create(store, "not watched").await);
    let mut newest = store.watch(&thread);
    let notified = async {
        for seq in 1..=BATCHES {
            drop(store.append(&other, events(seq, seq)).await);
            drop(store.append(&thread, events(seq, seq)).await);
            newest.wait_for(|newest| *newest == seq).await.unwrap();
        }
    };
    tokio::time::timeout(TIMEOUT, notified).await.expect("the watcher waited for the delay");
}

/// The writer releases the lease after it has handled the batch that is queued before the release.
async fn lease_request_skips_the_commit_delay(store: &dyn Store) {
    let thread = create(store, "leased").await;
    let holder = LeaseHolder("a".into());
    let waits = async {
        for seq in 1..=BATCHES {
            let epoch = store.acquire_lease(&thread, &holder).await.unwrap();
            let batch = Batch { epoch: Some(epoch), ..events(seq, seq) };
            drop(store.append(&thread, batch).await);
            store.release_lease(&thread, epoch).await.unwrap();
        }
    };
    tokio::time::timeout(TIMEOUT, waits).await.expect("each lease waited for the delay");
}

/// A lease request that waited for the queued batch of the other thread would make the store commit
/// that batch at once. The test expects that a batch is still uncommitted after a lease request.
async fn lease_requests_do_not_wait_for_batches_of_other_threads(store: &dyn Store) {
    let (thread, other) = (create(store, "requested").await, create(store, "written").await);
    let holder = LeaseHolder("a".into());
    for seq in 1..=BATCHES {
        drop(store.append(&other, events(seq, seq)).await);
        let epoch = store.acquire_lease(&thread, &holder).await.unwrap();
        store.release_lease(&thread, epoch).await.unwrap();
        // On a busy machine, the delay may be over before this read, but hardly in every iteration.
        if store.thread(&other).await.unwrap().unwrap().last_seq < seq {
            return;
        }
    }
    panic!("each lease request waited for the batch of the other thread");
}

async fn lease_requests_wait_for_batches_of_their_thread(store: &dyn Store) {
    let thread = create(store, "taken again").await;
    let holder = LeaseHolder("a".into());
    let mut epoch = store.acquire_lease(&thread, &holder).await.unwrap();
    for seq in 1..=20 {
        let batch = Batch { epoch: Some(epoch), ..events(seq, seq) };
        let ticket = store.append(&thread, batch).await;
        epoch = store.acquire_lease(&thread, &holder).await.unwrap();
        assert_eq!(store.thread(&thread).await.unwrap().unwrap().last_seq, seq);
        ticket.await.unwrap();
    }
}

/// Returns the settings of a store with a commit delay.
fn delayed(commit_delay: Duration) -> RedbConfig {
    RedbConfig { commit_delay, ..RedbConfig::default() }
}

#[tokio::test]
async fn redb_groups_unawaited_batches() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("wattle.redb");
    let store = RedbStore::open_with(&file, delayed(MAX_COMMIT_DELAY)).unwrap();
    awaited_batches_skip_the_commit_delay(&store).await;
    unawaited_batches_are_committed_after_the_delay(&store).await;
    watched_threads_skip_the_commit_delay(&store).await;
    lease_request_skips_the_commit_delay(&store).await;
    lease_requests_do_not_wait_for_batches_of_other_threads(&store).await;
    lease_requests_wait_for_batches_of_their_thread(&store).await;
    let thread = create(&store, "closed").await;
    drop(store.append(&thread, events(1, 5)).await);
    drop(store);
    let store = RedbStore::open(&file).unwrap();
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().last_seq, 5);
}

#[tokio::test]
async fn batches_are_committed_with_a_commit_delay_of_zero() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("wattle.redb");
    let store = RedbStore::open_with(&file, delayed(Duration::ZERO)).unwrap();
    awaited_batches_skip_the_commit_delay(&store).await;
    unawaited_batches_are_committed_after_the_delay(&store).await;
}

#[tokio::test]
async fn postgres_groups_unawaited_batches() {
    let server = need!(Server::start());
    let config = server.config("gathering").with_commit_delay(MAX_COMMIT_DELAY);
    let store = PostgresStore::open(&config).await.unwrap();
    awaited_batches_skip_the_commit_delay(&store).await;
    unawaited_batches_are_committed_after_the_delay(&store).await;
    watched_threads_skip_the_commit_delay(&store).await;
    lease_request_skips_the_commit_delay(&store).await;
}

#[tokio::test]
async fn too_long_commit_delay_is_refused() {
    let folder = TempDir::new().unwrap();
    let long = delayed(MAX_COMMIT_DELAY + Duration::from_millis(1));
    let refused = RedbStore::open_with(folder.path().join("wattle.redb"), long).unwrap_err();
    assert!(matches!(refused, StoreError::Backend { .. }), "{refused}");
    assert!(refused.to_string().contains("at most 1000 ms, not 1001 ms"), "{refused}");
    assert!(!folder.path().join("wattle.redb").exists());
}
