//! The real binary, killed after the record was created and before its response.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::binary::{self, Served};
use wattle_suite::expense::{self, CHAT, MODEL_PATH, RECORDS_PATH};
use wattle_suite::scene::Scene;
use wattle_suite::workspace;

async fn scene() -> Scene {
    Scene::new(|workspace, standin| {
        expense::put(workspace);
        [workspace::base_toml(standin), expense::configuration(standin).to_string()].concat()
    })
    .await
}

/// Sends a message whose response is lost when the server is killed.
fn tell_in_vain(scene: &Scene, server: &Served, message: &str) {
    scene.post_in_vain(server, CHAT, &json!({ "message": message }));
}

/// Waits until the only thread has its reply, and returns its state.
async fn reply(scene: &Scene, server: &Served) -> Value {
    let one = |list: &Value| list["items"].as_array().is_some_and(|it| it.len() == 1);
    let threads = scene.until(server, "/api/v1/threads?status=idle", one).await;
    let thread = threads["items"][0]["thread"].as_str().unwrap().to_owned();
    scene.get(server, &format!("/api/v1/threads/{thread}/state")).await
}

fn last_words(state: &Value) -> &str {
    let messages = state["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].as_str().unwrap()
}

#[tokio::test]
async fn s2_28_a_kill_between_a_record_and_its_response_creates_no_second_record() {
    let scene = scene().await;
    let hang = FaultRule::new(Pattern::path(RECORDS_PATH), Fault::HangAfter).times(1);
    scene.standin.fault(hang);
    let server = binary::serve(&scene.workspace).await;
    tell_in_vain(&scene, &server, "昨天打车花了20元");
    scene.until_so("the record", async || scene.standin.feishu_records().len() == 1).await;
    let server = scene.kill_and_restart(server, None).await;
    let state = reply(&scene, &server).await;
    assert!(last_words(&state).starts_with("✅ 记账成功！"), "{state}");
    assert_eq!(scene.standin.feishu_records().len(), 1, "saved once");
    let tokens: Vec<String> = scene
        .standin
        .requests()
        .into_iter()
        .filter(|it| it.path == RECORDS_PATH)
        .map(|it| it.query["client_token"].clone())
        .collect();
    assert_eq!(tokens.len(), 2, "sent again after the restart");
    assert_eq!(tokens[0], tokens[1]);
    assert_eq!(scene.answered(MODEL_PATH), 3, "each model turn is paid once");
}

#[tokio::test]
async fn s2_28_a_kill_before_the_reply_creates_no_second_record() {
    let scene = scene().await;
    let server = binary::serve(&scene.workspace).await;
    let last = Pattern { body_contains: Some("rec1".to_owned()), ..Pattern::path(MODEL_PATH) };
    let gate = scene.standin.gate(last);
    tell_in_vain(&scene, &server, "昨天打车花了20元");
    gate.arrived(1).await.unwrap();
    let server = scene.kill_and_restart(server, Some(&gate)).await;
    let state = reply(&scene, &server).await;
    assert!(last_words(&state).starts_with("✅ 记账成功！"), "{state}");
    assert_eq!(scene.answered(RECORDS_PATH), 1);
    assert_eq!(scene.answered(MODEL_PATH), 3);
}
