//! Test of the real binary, which is killed while a guide is made: paid requests are not repeated.

use serde_json::{Value, json};
use wattle_kit::standin::Outcome;
use wattle_suite::binary;
use wattle_suite::travel::{
    self, APIFY, CHAT, CHAT_MODEL, NOMINATIM, SESSIONS, TOKYO, UNSPLASH, working_on,
};

#[tokio::test]
async fn s3_09_a_guide_is_completed_after_a_kill_without_repeated_payments() {
    let scene = travel::scene().await;
    let server = binary::serve(&scene.workspace).await;
    let made = scene.post(&server, SESSIONS, &json!({})).await.expect(201);
    let session = made["id"].as_str().unwrap();
    let gate = scene.standin.gate(working_on("handbook_html_generation"));
    let parts = json!([{"type": "text", "text": TOKYO}]);
    let message = json!({"id": "u1", "role": "user", "parts": parts});
    scene.post_in_vain(&server, CHAT, &json!({"sessionId": session, "messages": [message]}));
    gate.arrived(1).await.unwrap();
    let server = scene.kill_and_restart(server, Some(&gate)).await;
    let path = format!("{SESSIONS}/{session}");
    let ended = |shown: &Value| !["IDLE", "RUNNING"].contains(&shown["status"].as_str().unwrap());
    let shown = scene.until(&server, &path, ended).await;
    assert_eq!(shown["status"], "COMPLETED", "{shown}");
    assert_eq!(
        shown["handbookVersion"].as_u64().or(shown["state"]["handbookVersion"].as_u64()),
        Some(1)
    );
    let steps: Vec<&Value> = shown["steps"].as_array().unwrap().iter().collect();
    assert_eq!(steps.len(), 6, "{steps:#?}");
    assert!(steps.iter().all(|step| step["status"] == "SUCCESS"), "{steps:#?}");
    for (path, times) in [(APIFY, 1), (CHAT_MODEL, 7), (NOMINATIM, 4), (UNSPLASH, 6)] {
        assert_eq!(scene.answered(path), times, "{path}");
    }
    let google = scene
        .standin
        .requests()
        .into_iter()
        .filter(|it| it.path.starts_with("/v1beta/") && it.outcome == Outcome::Answered);
    assert_eq!(google.count(), 4, "one completion for each task");
}
