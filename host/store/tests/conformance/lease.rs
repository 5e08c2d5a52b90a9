//! Leases: each thread has only one writer at a time, so the log of a thread never forks.

use serde_json::json;
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, LeaseHolder, PruneStrategy, StoreError};

use crate::fixtures::{
    append, batch, checkpoint, create, events, read, run, run_id, seqs, thread_id,
};

fn holder(name: &str) -> LeaseHolder {
    LeaseHolder(name.to_owned())
}

pub(crate) async fn lease_of_a_live_host_is_exclusive(store: &dyn Store) {
    let thread = thread_id("not there yet");
    store.heartbeat(&holder("a")).await.unwrap();
    let epoch = store.acquire_lease(&thread, &holder("a")).await.unwrap();
    store.heartbeat(&holder("b")).await.unwrap();
    let error = store.acquire_lease(&thread, &holder("b")).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Leased { thread: of, holder } if *of == thread && holder == "a"),
        "{error}"
    );
    store.acquire_lease(&thread_id("another"), &holder("b")).await.unwrap();
    store.release_lease(&thread, epoch).await.unwrap();
    store.release_lease(&thread, epoch).await.unwrap();
    assert!(store.acquire_lease(&thread, &holder("b")).await.unwrap() > epoch);
}

pub(crate) async fn concurrent_writers_do_not_fork_a_thread(store: &dyn Store) {
    let thread = create(store, "t").await;
    let old = store.acquire_lease(&thread, &holder("a")).await.unwrap();
    append(store, &thread, Batch { epoch: Some(old), ..events(1, 1) }).await.unwrap();
    // The host restarts under the same name and acquires the lease again.
    let new = store.acquire_lease(&thread, &holder("a")).await.unwrap();
    assert!(new > old, "{old:?} came before {new:?}");
    let late = Batch { epoch: Some(old), ..events(2, 2) };
    let error = append(store, &thread, late).await.unwrap_err();
    assert!(matches!(error, StoreError::Fenced { epoch, .. } if epoch == old.0), "{error}");
    let late = batch(checkpoint(1, None, &[("a", json!("old"))], &[]));
    let late = Batch { epoch: Some(old), ..late };
    assert!(matches!(append(store, &thread, late).await, Err(StoreError::Fenced { .. })));
    append(store, &thread, Batch { epoch: Some(new), ..events(2, 3) }).await.unwrap();
    assert_eq!(seqs(&store.events(&thread, 0, 9).await.unwrap()), [1, 2, 3]);
    assert_eq!(read(store, &thread, None).await, None);
}

pub(crate) async fn append_without_the_lease_is_fenced(store: &dyn Store) {
    let thread = create(store, "t").await;
    let epoch = store.acquire_lease(&thread, &holder("a")).await.unwrap();
    let error = append(store, &thread, events(1, 1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Fenced { epoch: 0, .. }), "{error}");
    store.release_lease(&thread, epoch).await.unwrap();
    let over = Batch { epoch: Some(epoch), ..events(1, 1) };
    assert!(matches!(append(store, &thread, over).await, Err(StoreError::Fenced { .. })));
    append(store, &thread, events(1, 1)).await.unwrap();
}

pub(crate) async fn batches_before_a_release_of_the_lease_are_written(store: &dyn Store) {
    let thread = create(store, "t").await;
    let epoch = store.acquire_lease(&thread, &holder("a")).await.unwrap();
    let mut tickets = Vec::new();
    for seq in 1..=20 {
        let batch = Batch { epoch: Some(epoch), ..events(seq, seq) };
        tickets.push(store.append(&thread, batch).await);
    }
    store.release_lease(&thread, epoch).await.unwrap();
    for ticket in tickets {
        ticket.await.unwrap();
    }
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().last_seq, 20);
    assert!(!store.is_lease_held(&thread, epoch).await.unwrap());
}

pub(crate) async fn batch_releases_its_lease_once_it_is_written(store: &dyn Store) {
    let thread = create(store, "t").await;
    let epoch = store.acquire_lease(&thread, &holder("a")).await.unwrap();
    let last = |batch| Batch { epoch: Some(epoch), releases_lease: true, ..batch };
    let refused = append(store, &thread, last(events(2, 2))).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
    let without_events = batch(checkpoint(1, None, &[], &[]));
    let unleased = Batch { epoch: None, ..last(events(1, 1)) };
    let unleased = append(store, &create(store, "unleased").await, unleased).await;
    for invalid in [append(store, &thread, last(without_events)).await, unleased] {
        assert!(matches!(invalid, Err(StoreError::InvalidBatch { .. })), "{invalid:?}");
    }
    assert!(store.is_lease_held(&thread, epoch).await.unwrap(), "no batch was written");
    append(store, &thread, last(events(1, 1))).await.unwrap();
    assert!(!store.is_lease_held(&thread, epoch).await.unwrap());
    let late = Batch { epoch: Some(epoch), ..events(2, 2) };
    assert!(matches!(append(store, &thread, late).await, Err(StoreError::Fenced { .. })));
    let next = store.acquire_lease(&thread, &holder("b")).await.unwrap();
    append(store, &thread, Batch { epoch: Some(next), ..events(2, 2) }).await.unwrap();
    assert_eq!(seqs(&store.events(&thread, 0, 9).await.unwrap()), [1, 2]);
}

pub(crate) async fn leased_thread_is_neither_pruned_nor_deleted(store: &dyn Store) {
    let thread = create(store, "t").await;
    let first = Batch { run: Some(run(&thread, "run")), ..events(1, 2) };
    append(store, &thread, first).await.unwrap();
    append(store, &thread, batch(checkpoint(1, None, &[], &[]))).await.unwrap();
    let epoch = store.acquire_lease(&thread, &holder("a")).await.unwrap();
    let head = store.thread(&thread).await.unwrap();
    let refusals = [
        store.prune(&thread, PruneStrategy::KeepLatest).await,
        store.prune(&thread, PruneStrategy::Delete).await,
        store.delete_runs(&[run_id("run")]).await,
    ];
    for refusal in refusals {
        assert!(matches!(refusal, Err(StoreError::Leased { .. })), "{refusal:?}");
    }
    assert_eq!(store.thread(&thread).await.unwrap(), head);
    store.release_lease(&thread, epoch).await.unwrap();
    store.delete_runs(&[run_id("run")]).await.unwrap();
    assert_eq!(store.thread(&thread).await.unwrap(), None);
}
