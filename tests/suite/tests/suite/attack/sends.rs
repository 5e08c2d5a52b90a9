//! Tasks that send many tasks.

use serde_json::json;

use super::calm;

const GRAPHS: &str = r#"
[graphs.multiply]
entry = "multiply"
[graphs.multiply.channels.sends]
[graphs.multiply.nodes.multiply]
"#;

#[tokio::test]
async fn sends_are_limited_per_task_and_per_superstep() {
    let server = calm::start(GRAPHS).await;
    for (sends, limit) in [(12_000, "task_sends"), (150, "step_tasks")] {
        let failure = calm::fails_at(&server, "multiply", json!({ "sends": sends }), limit).await;
        assert!(failure["message"].as_str().unwrap().contains("limit of 10000"), "{failure}");
    }
    // The failed thread does not slow the next start.
    let server = server.restart().await;
    calm::check(server).await;
}
