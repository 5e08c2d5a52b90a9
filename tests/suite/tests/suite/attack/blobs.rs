//! Tasks that store many blobs.

use serde_json::json;

use super::calm;

const GRAPHS: &str = r#"
[graphs.hoard]
entry = "hoard"
[graphs.hoard.channels.blobs]
[graphs.hoard.channels.bytes]
[graphs.hoard.channels.kept]
[graphs.hoard.nodes.hoard]
"#;

#[tokio::test]
async fn blobs_of_a_task_are_limited() {
    let server = calm::start(GRAPHS).await;
    let some = json!({ "blobs": 3, "bytes": 1_000 });
    let run = server.run("misdeeds", "hoard", some).await;
    assert_eq!(run["status"], "completed", "{run}");
    // The grant allows 100 calls, so the limit of bytes applies first.
    let input = json!({ "blobs": 90, "bytes": 3 << 20 });
    calm::fails_at(&server, "hoard", input, "task_blob_bytes").await;
    calm::check(server).await;
}
