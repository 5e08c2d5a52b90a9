//! Limits of requests and of the size of threads.

use serde_json::json;
use wattle_run::ports::store::CheckpointQuery;
use wattle_suite::asset::picture;
use wattle_suite::server::Setup;

/// Size of the picture.
const PICTURE_BYTES: usize = 8 << 20;

/// Maximum size of the thread in the store, for any size of its picture.
const THREAD_BYTES: u64 = 64 << 10;

#[tokio::test]
async fn a_picture_of_8_mib_is_a_blob_and_not_in_checkpoints_or_events() {
    let server = Setup::asset().await.start().await;
    let image = picture("买入腾讯 100 股 320", PICTURE_BYTES);
    let review = server.invoke(&json!({ "imageData": image })).await;
    assert_eq!(review.payload["rows"][0]["ticker"], "0700.HK", "{}", review.payload);

    let state = server.get(&format!("/api/v1/threads/{}/state", review.thread)).await.expect(200);
    let reference = state["imageData"].as_str().unwrap();
    let digest = reference.strip_prefix("blob:").expect("a reference to a blob");
    let blob = server.request("GET", &format!("/api/v1/blobs/{digest}")).send().await.unwrap();
    assert_eq!(blob.headers()["content-type"], "image/png");
    assert!(blob.bytes().await.unwrap().len() >= PICTURE_BYTES);

    let thread = review.thread.parse().unwrap();
    let store = &server.running.engine.ports().store;
    let stored = store.stored_bytes(&thread).await.unwrap();
    assert!(stored < THREAD_BYTES, "{stored} bytes");
    // A part from the middle of the picture, which every copy of it contains.
    let piece = &image[1_000_000..1_000_200];
    let events = serde_json::to_string(&store.events(&thread, 0, usize::MAX).await.unwrap());
    assert!(!events.unwrap().contains(piece));
    for tuple in store.checkpoints(&thread, &CheckpointQuery::default()).await.unwrap().items {
        assert!(!format!("{tuple:?}").contains(piece));
    }
    let requests = server.model_requests("vision");
    assert_eq!(requests.len(), 2, "the model sees the picture itself, twice");
    assert!(requests.iter().all(|request| request.body_bytes > PICTURE_BYTES));

    let portfolio = server.portfolio("大图").await;
    let stored = server.resume(&review.thread, &review.rows(), portfolio).await.expect(200);
    assert_eq!(stored["storeResult"]["success"], true);
}

#[tokio::test]
async fn the_host_refuses_bodies_above_its_own_limit() {
    let setup = Setup::asset().await;
    let server = setup.replace("[server]\n", "[server]\nbody_limit = \"64KiB\"\n").start().await;
    let large = json!({ "textInput": "买".repeat(40_000) });
    let refused = server.post(wattle_suite::asset::INVOKE, &large).await;
    assert_eq!((refused.status, refused.body["code"].as_str()), (413, Some("too-large")));
    let start = json!({ "input": large });
    let refused = server.post("/api/v1/apps/asset/runs", &start).await;
    assert_eq!((refused.status, refused.header("content-type")), (413, "application/problem+json"));
    assert!(server.standin().requests().is_empty());
}
