//! A PostgreSQL store with lost replies, locked rows and dead hosts.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use sqlx::{Connection as _, Executor as _, PgConnection};
use wattle_graph::failure::code;
use wattle_graph::id::{RunId, ThreadId};
use wattle_kit::link::Link;
use wattle_kit::need;
use wattle_run::ports::memory::MemoryScope;
use wattle_run::ports::store::{Batch, LeaseHolder, PruneStrategy, StoreError};
use wattle_run::ports::{BlobStore as _, Memory as _, Store as _};
use wattle_store::{PostgresBlobs, PostgresConfig, PostgresStore};

use crate::fixtures::{
    append, batch, checkpoint, create, event, events, record, run_id, seqs, thread_id,
};
use crate::postgres::Server;
use crate::proxy::{CommitFault, Proxy};

#[tokio::test]
async fn in_doubt_rewrite_is_applied_once() {
    let server = need!(Server::start());
    let proxy = Proxy::start(server.postgres.port()).await;
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port);
    let store = PostgresStore::open(&PostgresConfig::new(url)).await.unwrap();
    let from = create(&store, "from").await;
    for number in [1, 2] {
        let next = checkpoint(number, None, &[("x", json!(number))], &[]);
        append(&store, &from, Batch { events: events(number, number).events, ..batch(next) })
            .await
            .unwrap();
    }
    for (place, fault) in [CommitFault::ReplyLost, CommitFault::CommitLost].into_iter().enumerate()
    {
        let to = thread_id(&format!("to-{place}"));
        let rename = move |run: &RunId| run_id(&format!("{run}-{place}"));
        proxy.next(fault);
        store.copy_thread(&from, &to, &run_id("incarnation"), &rename).await.unwrap();
        assert_eq!(seqs(&store.events(&to, 0, 9).await.unwrap()), [1, 2]);
        proxy.next(fault);
        store.prune(&to, PruneStrategy::KeepLatest).await.unwrap();
        store.verify(&to).await.unwrap().unwrap();
        proxy.next(fault);
        store.delete_thread(&to).await.unwrap();
        assert!(store.thread(&to).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn connections_that_a_proxy_closes_are_retried() {
    let server = need!(Server::start());
    let proxy = Proxy::start(server.postgres.port()).await;
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port);
    let store = PostgresStore::open(&PostgresConfig::new(url)).await.unwrap();
    let thread = create(&store, "t").await;
    // The pool reuses open connections, so it opens further connections only for many concurrent
    // reads.
    proxy.close_next(3);
    let reads = (0..32).map(|_| store.thread(&thread));
    for read in futures::future::join_all(reads).await {
        assert!(read.unwrap().is_some());
    }
    assert_eq!(proxy.to_close(), 0);
}

/// A lease duration far longer than the time for which the server is unavailable.
const LEASE: Duration = Duration::from_mins(5);

#[tokio::test]
async fn append_retries_for_the_lease_duration() {
    let server = need!(Server::start());
    let link = Link::to(server.postgres.port()).await.unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", link.port());
    let config = PostgresConfig::new(url).with_lease(LEASE);
    let store = PostgresStore::open(&config).await.unwrap();
    let (known, unknown) = (create(&store, "known").await, create(&store, "unknown").await);
    let epoch = Some(store.acquire_lease(&known, &LeaseHolder("a".into())).await.unwrap());
    append(&store, &known, Batch { epoch, ..events(1, 1) }).await.unwrap();
    link.turn_away();
    let tickets = [
        // The first batch takes the fast path, the second batch takes the slow path.
        store.append(&known, Batch { epoch, ..events(2, 2) }).await,
        store.append(&unknown, events(1, 1)).await,
    ];
    // Reads fail early, since they do not retry for the lease duration.
    for _ in 0..2 {
        let error = store.thread(&known).await.unwrap_err();
        assert!(matches!(error, StoreError::Backend { .. }), "{error}");
    }
    link.admit();
    for ticket in tickets {
        ticket.await.unwrap();
    }
    assert_eq!(seqs(&store.events(&known, 0, 9).await.unwrap()), [1, 2]);
    assert_eq!(seqs(&store.events(&unknown, 0, 9).await.unwrap()), [1]);
}

#[tokio::test]
async fn errors_of_an_unavailable_server_are_retryable() {
    let server = need!(Server::start());
    let store = server.store("away").await;
    let (blobs, memory) = (store.blobs(), store.memory());
    let blob = blobs.put(Bytes::from_static(b"kept"), "text/plain").await.unwrap();
    server.postgres.crash().unwrap();
    let (thread, scope) = (thread_id("t"), MemoryScope::Tenant(None));
    let (document, bytes, thread) = tokio::join!(
        memory.get(&scope, &[], "key", 0),
        blobs.get(blob, 0, None),
        store.thread(&thread),
    );
    let failures = [document.unwrap_err(), bytes.unwrap_err(), thread.unwrap_err().into()];
    for failure in failures {
        let code_and_retryable = (failure.code.as_str(), failure.retryable);
        assert_eq!(code_and_retryable, (code::UNAVAILABLE, true), "{failure}");
    }
}

#[tokio::test]
async fn locks_and_dead_hosts_do_not_block_appends() {
    let server = need!(Server::start());
    locked_thread_does_not_block_others(&server).await;
    large_batches_are_split_into_several_transactions(&server).await;
    leases_of_dead_hosts_are_deleted(&server).await;
    read_only_open_creates_nothing(&server).await;
}

async fn locked_thread_does_not_block_others(server: &Server) {
    let store = server.store("locked").await;
    let mut threads = Vec::new();
    for number in 0..24 {
        threads.push(create(&store, &format!("t{number}")).await);
    }
    let mut other = PgConnection::connect(&server.postgres.url()).await.unwrap();
    other.execute("BEGIN").await.unwrap();
    other.execute("SELECT id FROM locked.threads WHERE id = 't7' FOR UPDATE").await.unwrap();
    let mut tickets = Vec::new();
    for thread in &threads {
        tickets.push(store.append(thread, events(1, 1)).await);
    }
    let held = tickets.remove(7);
    for ticket in tickets {
        ticket.await.unwrap();
    }
    other.execute("ROLLBACK").await.unwrap();
    held.await.unwrap();
    assert_eq!(seqs(&store.events(&threads[7], 0, 9).await.unwrap()), [1]);
}

async fn large_batches_are_split_into_several_transactions(server: &Server) {
    const LARGE: usize = 3 << 20;
    let store = server.store("large").await;
    let threads: Vec<ThreadId> = (0..16).map(|n| thread_id(&format!("t{n}"))).collect();
    let mut tickets = Vec::new();
    for thread in &threads {
        let large = vec![event(1, json!("x".repeat(LARGE)))].into();
        let batch = Batch { record: Some(record(thread)), events: large, ..Batch::default() };
        tickets.push(store.append(thread, batch).await);
        tickets.push(store.append(thread, events(2, 2)).await);
    }
    for ticket in tickets {
        ticket.await.unwrap();
    }
    for thread in &threads {
        assert_eq!(store.thread(thread).await.unwrap().unwrap().last_seq, 2);
    }
}

async fn leases_of_dead_hosts_are_deleted(server: &Server) {
    let store = server.store("dead").await;
    create(&store, "begun").await;
    for (thread, holder) in [("a", "dead"), ("begun", "dead")] {
        store.acquire_lease(&thread_id(thread), &LeaseHolder(holder.into())).await.unwrap();
    }
    server.execute_as_admin("dead", "UPDATE holders SET beat = beat - interval '16 s'").await;
    let live = store.acquire_lease(&thread_id("b"), &LeaseHolder("live".into())).await.unwrap();
    let again = server.store("dead").await;
    server
        .execute_as_admin(
            "dead",
            "DO $$ BEGIN ASSERT (SELECT array_agg(convert_from(id, 'UTF8') ORDER BY id) \
             FROM threads) = '{b,begun}'; END $$",
        )
        .await;
    let thread = thread_id("b");
    let begun = Batch { epoch: Some(live), record: Some(record(&thread)), ..events(1, 1) };
    append(&again, &thread, begun).await.unwrap();
}

async fn read_only_open_creates_nothing(server: &Server) {
    let config = server.config("looked_at");
    for _ in 0..2 {
        assert!(!PostgresStore::check(&config).await.unwrap());
        let error = PostgresBlobs::connect(&config).await.unwrap_err().to_string();
        assert!(error.contains("schema `looked_at`"), "{error}");
    }
    let store = PostgresStore::open(&config).await.unwrap();
    let blob = store.blobs().put(Bytes::from_static(b"kept"), "text/plain").await.unwrap();
    assert!(PostgresStore::check(&config).await.unwrap());
    let outside = PostgresBlobs::connect(&config).await.unwrap();
    assert_eq!(outside.get(blob, 0, None).await.unwrap(), Bytes::from_static(b"kept"));
}
