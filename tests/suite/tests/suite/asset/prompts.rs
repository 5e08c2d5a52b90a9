//! Complete model requests, as the provider receives them.

use serde_json::{Value, json};
use wattle_kit::standin::Entry;
use wattle_suite::asset::picture;
use wattle_suite::server::{Setup, TestServer};

/// Returns a request as text: its other fields, then the messages, without the picture.
fn shown(entry: &Entry) -> String {
    let mut body = entry.body.clone().unwrap_or_default();
    let messages = body.as_object_mut().and_then(|body| body.remove("messages"));
    let mut text = serde_json::to_string_pretty(&body).unwrap();
    for message in messages.as_ref().and_then(Value::as_array).into_iter().flatten() {
        let (role, content) = (&message["role"], &message["content"]);
        let content = content.as_str().map_or_else(|| parts(content), str::to_owned);
        text.push_str(&format!("\n\n--- {}\n{content}", role.as_str().unwrap_or_default()));
    }
    text
}

fn parts(content: &Value) -> String {
    let mut content = content.clone();
    for part in content.as_array_mut().into_iter().flatten() {
        if let Some(url) = part.pointer_mut("/image_url/url") {
            let kind = url.as_str().unwrap_or_default().split(',').next().unwrap_or_default();
            *url = json!(format!("{kind},<picture>"));
        }
    }
    serde_json::to_string_pretty(&content).unwrap()
}

fn snapshot(server: &TestServer, names: &[&str]) {
    let mut entries = server.standin().requests();
    entries.retain(|entry| entry.path == "/v1/chat/completions");
    assert_eq!(entries.len(), names.len());
    for (entry, name) in entries.iter().zip(names) {
        insta::assert_snapshot!(format!("request_{name}"), shown(entry));
    }
}

#[tokio::test]
async fn s0_24_s0_32_s0_35_s0_36_s0_43_requests_for_texts_match_snapshots() {
    let server = Setup::asset().await.start().await;
    server.invoke_text("昨天买入栖岸科技 2 手 320").await;
    snapshot(&server, &["text_classify", "ext_op_text", "enrich"]);
    server.standin().clear_requests();
    server.invoke_text("持有腾讯 100 股，成本 320").await;
    snapshot(&server, &["text_classify_holding", "ext_hold_text"]);
}

#[tokio::test]
async fn s0_17_s0_22_s0_25_s0_35_s0_92_requests_for_pictures_match_snapshots() {
    let server = Setup::asset().await.start().await;
    let body =
        json!({ "imageData": picture("买入腾讯 100 股 320", 0), "textInput": "这是富途的截图" });
    server.invoke(&body).await;
    snapshot(&server, &["img_classify", "ext_op_image"]);
    server.standin().clear_requests();
    server.invoke_image("持有腾讯 100 股，成本 320").await;
    snapshot(&server, &["img_classify_alone", "ext_hold_image"]);
}
