//! All runs of a thread as one stream.

use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use wattle_api::ApiConfig;

use crate::gated_store::GatedStore;
use crate::host::{Host, HostOptions, request};
use crate::live_stream::{Frame, LiveStream};

/// Returns the request for the stream of a thread.
pub(crate) fn thread_stream_request(
    thread: &str,
    query: &str,
    after: Option<&str>,
) -> Request<Body> {
    let mut request = request("GET", &format!("/threads/{thread}/stream{query}"), None);
    if let Some(after) = after {
        request.headers_mut().insert("last-event-id", after.parse().unwrap());
    }
    request
}

fn slow(word: &str) -> Value {
    json!({ "assistant_id": "slow", "input": { "word": word }, "stream_mode": ["values", "updates"] })
}

fn is_done((kind, data, _): &Frame) -> bool {
    kind == "metadata" && data["status"] == "run_done"
}

fn kinds(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|(kind, ..)| kind.as_str()).collect()
}

#[tokio::test]
async fn thread_stream_has_the_frames_of_each_run() {
    let host = Host::new();
    let id = host.thread().await;
    let runs = format!("/threads/{id}/runs/stream");
    let mut live = LiveStream::open(&host, thread_stream_request(&id, "", None)).await;
    let mut all = Vec::new();
    for word in ["a", "b"] {
        let own = host.post(&runs, slow(word)).await.frames();
        let mut frames = live.until(is_done).await;
        let done = frames.pop().unwrap();
        assert_eq!(done.1["run_id"], frames[0].1["run_id"]);
        assert_eq!(frames, own);
        all.extend(frames);
        all.push(done);
    }
    assert_eq!(all.last().unwrap().1["status"], "run_done");
    for from in ["-1", "0", "-"] {
        let mut again = LiveStream::open(&host, thread_stream_request(&id, "", Some(from))).await;
        let mut frames = again.until(is_done).await;
        frames.extend(again.until(is_done).await);
        assert_eq!(frames, all);
    }
    for known in 0..all.len() - 1 {
        let mut live =
            LiveStream::open(&host, thread_stream_request(&id, "", Some(&all[known].2))).await;
        assert_eq!(live.next().await.unwrap(), all[known + 1]);
    }
}

#[tokio::test]
async fn event_id_of_a_deleted_thread_requests_all_frames() {
    let host = Host::new();
    let id = host.thread().await;
    host.post(&format!("/threads/{id}/runs/wait"), slow("a")).await.ok();
    let mut live =
        LiveStream::open(&host, thread_stream_request(&id, "", Some("1795293980000-999999999")))
            .await;
    let frames = live.until(is_done).await;
    assert_eq!(kinds(&frames), ["metadata", "values", "updates", "values", "metadata"]);
}

#[tokio::test]
async fn failed_read_ends_the_stream_and_loses_no_run() {
    let store = GatedStore::new();
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    let id = host.thread().await;
    host.post(&format!("/threads/{id}/runs/wait"), slow("a")).await.ok();
    let mut live = LiveStream::open(&host, thread_stream_request(&id, "", Some("-1"))).await;
    store.failing_runs.store(1, Ordering::SeqCst);
    let (kind, error, number) = live.next().await.unwrap();
    assert_eq!((kind.as_str(), number.as_str()), ("error", ""), "{error}");
    assert_eq!(live.next().await, None, "the stream ends, so that the client reconnects");
    let mut live = LiveStream::open(&host, thread_stream_request(&id, "", Some("-1"))).await;
    let frames = live.until(is_done).await;
    assert_eq!(kinds(&frames), ["metadata", "values", "updates", "values", "metadata"]);
}

#[tokio::test]
async fn thread_stream_starts_with_the_next_event_by_default() {
    let host = Host::new();
    let id = host.thread().await;
    let runs = format!("/threads/{id}/runs");
    host.post(&format!("{runs}/wait"), slow("a")).await.ok();
    host.hold();
    host.post(&runs, slow("b")).await.ok();
    host.wait_for_started(2).await;
    let mut live = LiveStream::open(&host, thread_stream_request(&id, "", None)).await;
    host.release.send_replace(true);
    let frames = live.until(is_done).await;
    assert_eq!(kinds(&frames), ["updates", "values", "metadata"]);
    assert_eq!(frames[1].1["items"], json!(["a", "b"]));
}

#[tokio::test]
async fn stream_modes_select_ends_of_runs_and_changes_of_the_state() {
    let host = Host::new();
    let id = host.thread().await;
    host.post(&format!("/threads/{id}/runs/wait"), slow("a")).await.ok();
    let change = json!({ "values": { "word": "z" } });
    host.post(&format!("/threads/{id}/state"), change).await.ok();
    host.post(&format!("/threads/{id}/runs/wait"), slow("b")).await.ok();
    let mut lifecycle =
        LiveStream::open(&host, thread_stream_request(&id, "?stream_modes=lifecycle", Some("-1")))
            .await;
    for _ in 0..2 {
        let frames = lifecycle.until(is_done).await;
        assert_eq!(kinds(&frames), ["metadata", "metadata"]);
        assert_eq!(frames[0].1["attempt"], 1);
    }
    let both = "?stream_modes=state_update&stream_modes=lifecycle";
    let mut both = LiveStream::open(&host, thread_stream_request(&id, both, Some("-1"))).await;
    both.until(is_done).await;
    let frames = both.until(is_done).await;
    assert_eq!(kinds(&frames), ["state_update", "metadata", "metadata"]);
    assert_eq!(frames[0].1["state"]["values"]["word"], "z");
    assert_eq!(frames[0].1["thread_id"], id);
    let sdk = thread_stream_request(&id, "?stream_mode=run_modes", Some("-1"));
    assert_eq!(LiveStream::open(&host, sdk).await.until(is_done).await.len(), 5);
}

#[tokio::test]
async fn invalid_request_is_rejected() {
    let host = Host::new();
    let id = host.thread().await;
    let nobody = "01a1ffdc-22ab-744e-a2fc-8bb051a654f8";
    for (request, status) in [
        (thread_stream_request(nobody, "", None), 404),
        (thread_stream_request(&id, "?stream_modes=values", None), 422),
        (thread_stream_request(&id, "", Some("x")), 422),
    ] {
        assert_eq!(host.send(request).await.status, status);
    }
}
