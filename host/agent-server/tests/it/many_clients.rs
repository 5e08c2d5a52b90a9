//! Many clients of one thread.

use std::sync::atomic::Ordering;

use axum::body::BodyDataStream;
use futures::future::join_all;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::json;
use wattle_api::ApiConfig;

use crate::gated_store::GatedStore;
use crate::host::{Host, HostOptions, request};

/// Number of clients that stream the thread.
const CLIENTS: usize = 200;

/// Reads a stream until a chunk contains `word`.
async fn until(stream: &mut BodyDataStream, word: &str) {
    loop {
        let piece = stream.next().await.unwrap().unwrap();
        if String::from_utf8_lossy(&piece).contains(word) {
            return;
        }
    }
}

#[tokio::test]
async fn streams_of_one_thread_share_reads() {
    let store = GatedStore::new();
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    let id = host.thread().await;
    let run = json!({ "assistant_id": "agent", "input": { "value": "v" } });
    host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    let path = format!("/api/v1/threads/{id}/events");
    let streams = (0..CLIENTS).map(|_| async {
        let response = host.raw(request("GET", &path, None)).await;
        assert_eq!(response.status(), 200);
        let mut stream = response.into_body().into_data_stream();
        until(&mut stream, "run_ended").await;
        // A client that reads on waits for the next event.
        assert!(stream.next().now_or_never().is_none());
        stream
    });
    let mut streams = join_all(streams).await;

    let before = store.event_reads.load(Ordering::SeqCst);
    let update = json!({ "values": { "items": ["x"] }, "as_node": "greet" });
    host.post(&format!("/threads/{id}/state"), update).await.ok();
    join_all(streams.iter_mut().map(|stream| until(stream, "checkpointed"))).await;
    let reads = store.event_reads.load(Ordering::SeqCst) - before;
    assert!(reads < CLIENTS / 4, "{reads} reads of the log for {CLIENTS} clients");
}
