//! Exports over HTTP, with the code and after the code has changed.

use serde_json::{Value, json};

use crate::fixture::Fixture;

async fn export(fixture: &Fixture, query: &str) -> (u16, String) {
    let url = fixture.url(&format!("/api/v1/threads/t/export{query}"));
    let response = fixture.client.get(url).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// Returns whether the header of an export announces code, and whether the export contains code.
fn has_code(text: &str) -> (bool, bool) {
    let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let said = header["parts"]["code"].as_bool().unwrap();
    (said, text.lines().any(|line| line.starts_with("{\"code\"")))
}

#[tokio::test]
async fn missing_code_is_left_out_unless_it_is_requested() {
    let fixture = Fixture::start("").await;
    let start = json!({ "input": { "name": "Ada" }, "thread_id": "t", "wait": true });
    assert_eq!(fixture.post("/api/v1/apps/greeter/runs", &start).await.1["status"], "interrupted");
    let (status, text) = export(&fixture, "").await;
    assert_eq!((status, has_code(&text)), (200, (true, true)), "{text}");

    let component = fixture.folder.path().join("plugins/greeter/greeter.wasm");
    std::fs::write(component, "native but newer").unwrap();
    let (status, text) = export(&fixture, "").await;
    assert_eq!((status, has_code(&text)), (200, (false, false)), "{text}");
    let (status, text) = export(&fixture, "?code=true").await;
    assert!(status == 503 && text.contains("has changed since it was loaded"), "{status} {text}");
    fixture.server.shutdown().await;
}
