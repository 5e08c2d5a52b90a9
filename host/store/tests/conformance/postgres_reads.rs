//! Reads of large threads of a PostgreSQL store.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::time::Duration;

use futures::future::{BoxFuture, join_all, select_all};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use wattle_graph::id::{Namespace, ThreadId};
use wattle_kit::need;
use wattle_run::caller_id::CallerId;
use wattle_run::ports::Store as _;
use wattle_run::ports::store::{Batch, CheckpointQuery, CheckpointTuple};
use wattle_run::reads::{ReadTurns, TurnSpan};
use wattle_store::{PostgresConfig, PostgresStore};

use crate::fixtures::{append, batch, checkpoint, create, event, id, incompressible_text, read};
use crate::postgres::Server;
use crate::proxy::Proxy;

/// Time limit for reads that wait for nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a value of 600 KB of JSON that has few bytes when it is compressed.
fn large_value() -> Value {
    json!(vec![json!([]); 200_000])
}

/// Creates a thread with a checkpoint and an event since the checkpoint.
async fn create_with_state(
    store: &PostgresStore,
    name: &str,
    [value, metadata, data]: [Value; 3],
) -> ThreadId {
    let thread = create(store, name).await;
    let mut first = checkpoint(1, None, &[("a", value)], &[]);
    first.meta.metadata = BTreeMap::from([("metadata".to_owned(), metadata)]);
    append(store, &thread, batch(first)).await.unwrap();
    let events = vec![event(1, data)].into();
    append(store, &thread, Batch { base: Some(id(1)), events, ..Batch::default() }).await.unwrap();
    thread
}

/// Returns the reads of the state of a thread, each for a request that takes turns. The last one
/// reads no values; it is left out without `has_outline`.
fn reads_in_turns<'a>(
    store: &'a PostgresStore,
    thread: &'a ThreadId,
    turns: &'a ReadTurns,
    has_outline: bool,
) -> Vec<BoxFuture<'a, CheckpointTuple>> {
    let newest =
        async move { store.thread_snapshot(thread).await.unwrap().unwrap().tuple.unwrap() };
    let by_id = move |number| async move { read(store, thread, number).await.unwrap() };
    let outline = async move {
        let outline = store.checkpoint_outline(thread, &Namespace::root(), id(1)).await;
        outline.unwrap().unwrap().tuple
    };
    let mut reads = vec![newest.boxed(), by_id(None).boxed(), by_id(Some(1)).boxed()];
    if has_outline {
        reads.push(outline.boxed());
    }
    let in_turn = |read: BoxFuture<'a, CheckpointTuple>| {
        turns.scope(CallerId::default(), TurnSpan::EachRead, read).boxed()
    };
    reads.into_iter().map(in_turn).collect()
}

#[tokio::test]
async fn only_large_states_wait_for_a_turn() {
    let server = need!(Server::start());
    let store = server.store("turns").await;
    let [no_turns, one_turn] = [0, 1].map(ReadTurns::new);
    let small = || json!("small");
    let small_thread = create_with_state(&store, "small", [small(), small(), small()]).await;
    let small_reads = || join_all(reads_in_turns(&store, &small_thread, &no_turns, true));
    let in_time = tokio::time::timeout(PATIENCE, small_reads()).await;
    in_time.expect("small states take no turn");
    for (name, state, has_outline) in [
        ("value", [large_value(), small(), small()], false),
        ("metadata", [small(), large_value(), small()], true),
        ("event", [small(), small(), large_value()], true),
    ] {
        let thread = create_with_state(&store, name, state).await;
        let large_reads = select_all(reads_in_turns(&store, &thread, &no_turns, has_outline));
        let other_reads = async {
            for _ in 0..20 {
                small_reads().await;
            }
        };
        tokio::select! {
            biased;
            _ = large_reads => panic!("a state with a large {name} is read without a turn"),
            () = other_reads => {}
        }
        let expected = read(&store, &thread, None).await.unwrap();
        for tuple in join_all(reads_in_turns(&store, &thread, &one_turn, has_outline)).await {
            assert!(tuple.checkpoint.meta == expected.checkpoint.meta, "{name}");
            assert!(tuple.events == expected.events, "{name}");
        }
    }
}

/// Checks that reads wait for the blocking pool, whose only thread is held, while short reads
/// complete. Returns their sorted results.
async fn wait_for_blocking_pool<const N: usize>(
    store: &PostgresStore,
    thread: &ThreadId,
    reads: [BoxFuture<'_, usize>; N],
) -> Vec<usize> {
    let (end, ended) = channel::<()>();
    let holder = tokio::task::spawn_blocking(move || ended.recv());
    let mut reads: FuturesUnordered<_> = reads.into_iter().collect();
    let short_reads = async {
        for _ in 0..50 {
            assert!(store.thread(thread).await.unwrap().is_some());
        }
    };
    tokio::select! {
        biased;
        _ = reads.next() => panic!("a long row is decoded on the task of its read"),
        () = short_reads => {}
    }
    drop(end);
    holder.await.unwrap().unwrap_err();
    let mut results: Vec<usize> = reads.collect().await;
    results.sort_unstable();
    results
}

#[test]
fn long_rows_are_decoded_on_the_blocking_pool() {
    let server = need!(Server::start());
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let store = server.store("decoded").await;
        let state = [json!("small"), large_value(), large_value()];
        let thread = create_with_state(&store, "t", state).await;
        let filter = BTreeMap::from([("run".to_owned(), json!("other"))]);
        let query = CheckpointQuery { filter, ..CheckpointQuery::default() };
        let history = async { store.checkpoints(&thread, &query).await.unwrap().items.len() };
        let export = async { store.batches(&thread, None, 1).await.unwrap().batches.len() };
        let events = async { store.events(&thread, 0, 9).await.unwrap().len() };
        let reads = [history.boxed(), export.boxed(), events.boxed()];
        let counts = wait_for_blocking_pool(&store, &thread, reads).await;
        assert_eq!(counts, [0, 1, 1]);
    });
}

/// Opens a store behind a proxy, which counts the bytes that the server sends.
async fn behind_proxy(server: &Server) -> (PostgresStore, Proxy) {
    let proxy = Proxy::start(server.postgres.port()).await;
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port);
    (PostgresStore::open(&PostgresConfig::new(url)).await.unwrap(), proxy)
}

/// A page has at most 4 MiB of the log, and an export of one byte has one batch.
#[tokio::test]
async fn part_of_an_export_reads_only_a_part_of_a_long_log() {
    const BATCHES: u64 = 16;
    const MAX_SENT_BYTES: u64 = 6 << 20;
    let server = need!(Server::start());
    let (store, proxy) = behind_proxy(&server).await;
    let thread = create(&store, "t").await;
    let text = incompressible_text((1 << 20) / 8);
    for seq in 1..=BATCHES {
        let events = vec![event(seq, json!(text))].into();
        append(&store, &thread, Batch { events, ..Batch::default() }).await.unwrap();
    }
    let sent_before = proxy.sent_bytes();
    let page = store.batches(&thread, None, 1).await.unwrap();
    let sent_bytes = proxy.sent_bytes() - sent_before;
    assert_eq!((page.batches.len(), page.next.is_some()), (1, true));
    assert!((1 << 20..MAX_SENT_BYTES).contains(&sent_bytes), "{sent_bytes}");
    let whole = store.batches(&thread, None, usize::MAX).await.unwrap();
    assert_eq!((whole.batches.len() as u64, whole.next), (BATCHES, None));
    assert_eq!(store.verify(&thread).await.unwrap().unwrap().last_seq, BATCHES);
}

/// Each checkpoint has more metadata than one statement reads together.
#[tokio::test]
async fn page_of_a_history_reads_only_the_metadata_that_it_needs() {
    const CHECKPOINTS: u64 = 8;
    const MAX_SENT_BYTES: u64 = 3 << 20;
    let server = need!(Server::start());
    let (store, proxy) = behind_proxy(&server).await;
    let thread = create(&store, "t").await;
    let text = json!(incompressible_text((1 << 20) / 8));
    let metadata = BTreeMap::from([("text".to_owned(), text)]);
    for number in 1..=CHECKPOINTS {
        let mut next = checkpoint(number, None, &[], &[]);
        next.meta.metadata = metadata.clone();
        append(&store, &thread, batch(next)).await.unwrap();
    }
    let sent_before = proxy.sent_bytes();
    let newest = CheckpointQuery { limit: Some(1), ..CheckpointQuery::default() };
    let page = store.checkpoints(&thread, &newest).await.unwrap();
    let sent_bytes = proxy.sent_bytes() - sent_before;
    assert_eq!((page.items.len(), page.is_last), (1, false));
    assert!((1 << 20..MAX_SENT_BYTES).contains(&sent_bytes), "{sent_bytes}");
    let whole = store.checkpoints(&thread, &CheckpointQuery::default()).await.unwrap();
    assert_eq!((whole.items.len() as u64, whole.is_last), (CHECKPOINTS, true));
}
