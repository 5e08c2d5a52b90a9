//! Reads of large threads of a PostgreSQL store.

use serde_json::json;
use wattle_kit::need;
use wattle_run::ports::Store as _;
use wattle_run::ports::store::Batch;
use wattle_store::{PostgresConfig, PostgresStore};

use crate::fixtures::{append, create, event, incompressible_text};
use crate::postgres::Server;
use crate::proxy::Proxy;

/// A page has at most 4 MiB of the log, and an export of one byte has one batch.
#[tokio::test]
async fn part_of_an_export_reads_only_a_part_of_a_long_log() {
    const BATCHES: u64 = 16;
    const MAX_SENT_BYTES: u64 = 6 << 20;
    let server = need!(Server::start());
    let proxy = Proxy::start(server.postgres.port()).await;
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port);
    let store = PostgresStore::open(&PostgresConfig::new(url)).await.unwrap();
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
