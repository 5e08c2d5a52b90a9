//! Pictures in the formats of several clients: the model sees them, and clients get back the blocks
//! that they sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wattle_kit::picture::png_with_text;
use wattle_suite::answer::Answer;
use wattle_suite::desk::MODEL_PATH;
use wattle_suite::server::TestServer;

use super::{setup, thread};

/// Sends a message to the agent and waits for the response.
async fn say(server: &TestServer, thread: &str, content: &Value) -> Answer {
    let input = json!({ "messages": [{ "role": "user", "content": content }] });
    let run = json!({ "assistant_id": "talking_agent", "input": input });
    server.post(&format!("/threads/{thread}/runs/wait"), &run).await
}

/// Returns the messages of the last model request.
fn shown(server: &TestServer) -> Value {
    let requests = server.standin().requests();
    let last = requests.into_iter().rfind(|entry| entry.path == MODEL_PATH).unwrap();
    last.body.unwrap()["messages"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_sees_the_pictures_of_clients() {
    let server = setup().await.start().await;
    let id = thread(&server).await;
    let data = STANDARD.encode(png_with_text("two cats", 0));
    let url = format!("data:image/png;base64,{data}");
    let blocks = json!([
        { "type": "text", "text": "What do they show?", "cache_control": { "type": "ephemeral" } },
        { "type": "image", "source_type": "base64", "mime_type": "image/png", "data": data },
        { "type": "image",
            "source": { "type": "base64", "media_type": "image/png", "data": data } },
        { "type": "input_image", "image_url": url },
        { "type": "input_audio", "input_audio": { "data": "aGVsbG8=", "format": "wav" } },
    ]);
    let picture = json!({ "type": "image_url", "image_url": { "url": url } });
    let seen = json!([
        { "type": "text", "text": "What do they show?" },
        picture,
        picture,
        picture,
        { "type": "text", "text": "[audio audio/wav, 5 bytes, not shown]" },
    ]);

    let said = say(&server, &id, &blocks).await.expect(200);
    assert!(said.get("__error__").is_none(), "{said:#}");
    assert_eq!(said["messages"][0]["content"], blocks);
    assert_eq!(shown(&server)[0]["content"], seen);

    let said = say(&server, &id, &json!("And now?")).await.expect(200);
    assert!(said.get("__error__").is_none(), "{said:#}");
    assert_eq!(shown(&server)[0]["content"], seen);
    assert_eq!(shown(&server)[2]["content"], "And now?");
    let state = server.get(&format!("/threads/{id}/state")).await.expect(200);
    assert_eq!(state["values"]["messages"][0]["content"], blocks);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_picture_is_refused_with_its_position() {
    let server = setup().await.start().await;
    let id = thread(&server).await;
    let wrong = json!([
        { "type": "text", "text": "look" },
        { "type": "image", "mimeType": "image/png", "data": "no base64!" },
    ]);
    let refused = say(&server, &id, &wrong).await.expect(422);
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("`messages`: message at index 0: content[1] (`image`): "), "{detail}");
    let said = say(&server, &id, &json!("hello")).await.expect(200);
    assert_eq!(said["messages"].as_array().map(Vec::len), Some(2), "{said:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_part_is_named_and_the_thread_continues() {
    let server = setup().await.start().await;
    let say = async |thread: &Value, content: Value| {
        let input = json!({ "messages": [{ "role": "user", "content": content }] });
        let mut start = json!({ "graph": "talking_agent", "input": input, "wait": true });
        if thread.is_string() {
            start["thread_id"] = thread.clone();
        }
        server.post("/api/v1/apps/talker/runs", &start).await.expect(200)
    };
    let failed = say(&Value::Null, json!([{ "text": "look" }, { "video": 1 }])).await;
    let message = failed["failure"]["message"].as_str().unwrap_or_default();
    let place = "message 0 of channel `messages` cannot be read: part 1 of `content` (`video`)";
    assert!(message.contains(place), "{failed:#}");
    let next = say(&failed["thread"], json!("And now?")).await;
    assert_eq!(next["status"], "completed", "{next:#}");
    let seen = shown(&server)[0]["content"].to_string();
    assert!(seen.contains("[video, 11 bytes, not shown]"), "{seen}");
}
