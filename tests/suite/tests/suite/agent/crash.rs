//! The real binary, killed in the middle of a conversation.

use serde_json::{Value, json};
use wattle_kit::standin::Pattern;
use wattle_suite::binary::{self, Served};
use wattle_suite::desk::{Desk, MODEL_PATH, message, tool_messages};
use wattle_suite::scene::Scene;
use wattle_suite::workspace;

async fn scene() -> Scene {
    Scene::new(|workspace, standin| {
        let desk = Desk { nested: "[\"tools/*\"]".to_owned(), ..Desk::default() };
        desk.put(workspace);
        [workspace::base_toml(standin), desk.toml(standin.addr.port())].concat()
    })
    .await
}

/// Starts a run and returns the ids of run and thread.
async fn say(scene: &Scene, server: &Served, text: &str) -> (String, String) {
    let run = scene.post(server, "/api/v1/apps/desk/runs", &message(None, text)).await.expect(202);
    let id = |key: &str| run[key].as_str().unwrap().to_owned();
    (id("run"), id("thread"))
}

/// Waits until a recovered run ends, and returns the run with its state.
async fn end(scene: &Scene, server: &Served, run: &str, thread: &str) -> Value {
    let path = format!("/api/v1/runs/{run}");
    let mut ended = scene.until(server, &path, |run| run["status"] != "running").await;
    assert_eq!(ended["status"], "completed", "the run is recovered: {ended}");
    ended["state"] = scene.get(server, &format!("/api/v1/threads/{thread}/state")).await;
    ended
}

#[tokio::test]
async fn kill_between_model_turns_repeats_no_finished_turn() {
    let scene = scene().await;
    let second_turn =
        Pattern { body_contains: Some("tool_call_id".into()), ..Pattern::path(MODEL_PATH) };
    let gate = scene.standin.gate(second_turn);
    let server = binary::serve(&scene.workspace).await;
    let url = format!("{}/count/effect", scene.standin.base_url);
    let (run, thread) = say(&scene, &server, &format!("call effect {{\"url\":\"{url}\"}}")).await;
    gate.arrived(1).await.unwrap();
    let server = scene.kill_and_restart(server, Some(&gate)).await;
    let ended = end(&scene, &server, &run, &thread).await;
    assert_eq!(tool_messages(&ended)[0]["structured"], json!({ "status": 200 }));
    assert_eq!(scene.answered(MODEL_PATH), 2, "one per turn");
    assert_eq!(scene.answered("/count/effect"), 1);
}

#[tokio::test]
async fn kill_between_the_effect_and_the_result_of_a_tool_repeats_no_effect() {
    let scene = scene().await;
    let gate = scene.standin.gate(Pattern::path("/count/held"));
    let server = binary::serve(&scene.workspace).await;
    let base = &scene.standin.base_url;
    // The tool calls two others: one has had its effect, and one is in progress.
    let calls = json!({ "calls": [
        { "tool": "tools/effect", "arguments": { "url": format!("{base}/count/effect") } },
        { "tool": "tools/slow_then", "arguments": { "url": format!("{base}/count/held"), "text": "x" } },
    ] });
    let (run, thread) = say(&scene, &server, &format!("call nested {calls}")).await;
    gate.arrived(1).await.unwrap();
    let trace = format!("/api/v1/threads/{thread}/trace");
    scene.until(&server, &trace, |trace| was_answered(trace, "/count/effect")).await;
    let server = scene.kill_and_restart(server, Some(&gate)).await;
    let ended = end(&scene, &server, &run, &thread).await;
    let told = &tool_messages(&ended)[0]["structured"];
    assert_eq!(told[0]["structured"], json!({ "status": 200 }), "{told}");
    assert_eq!(told[1]["text"], "x", "{told}");
    assert_eq!(scene.answered("/count/effect"), 1);
    assert_eq!(scene.answered(MODEL_PATH), 2, "one per turn");
}

/// Returns whether a trace has a finished HTTP call to a path, at any depth.
fn was_answered(trace: &Value, path: &str) -> bool {
    match trace {
        Value::Object(fields) => {
            let is_it = fields.get("function").is_some_and(|it| it == "http.send")
                && fields.get("summary").is_some_and(|it| it.to_string().contains(path))
                && fields.get("duration_us").is_some_and(Value::is_u64);
            is_it || fields.values().any(|value| was_answered(value, path))
        }
        Value::Array(items) => items.iter().any(|item| was_answered(item, path)),
        _ => false,
    }
}
