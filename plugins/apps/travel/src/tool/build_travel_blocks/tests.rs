//! The choice of the video, the request to the model, and the blocks.

use std::cell::Cell;

use serde_json::{Value, json};
use wattle_plugin::prelude::{Completion, Failure, ToolContext, ToolOutput};
use wattle_plugin::testing::{self, FakeHost};

use super::{TASK, build_travel_blocks};
use crate::testing::{route, update};

fn videos() -> Value {
    json!([
        {"id": "aaaaaa", "url": "https://www.youtube.com/watch?v=aaaaaa", "title": "Old"},
        {"id": "bbbbbb", "url": "https://www.youtube.com/watch?v=bbbbbb", "title": "New",
         "thumbnailUrl": "https://i.ytimg.com/b.jpg", "location": "Tokyo", "subtitles": "words"},
    ])
}

fn draft(count: usize) -> Value {
    let block = |n: usize| {
        json!({"block_id": format!("m{n}"), "title": format!("Block {n}"),
        "type": if n < 2 { "spot" } else { "food" }, "description": "Words", "location": null,
        "smart_tags": []})
    };
    let blocks: Vec<Value> = (0..count).map(block).collect();
    json!({"blocks": blocks, "spot_blocks": blocks[..2]})
}

/// Returns a host whose model returns these numbers of blocks in turn, then five.
fn host(counts: &'static [usize]) -> FakeHost {
    let at = Cell::new(0);
    route(FakeHost::new(), TASK).llm(move |_| {
        let count = counts.get(at.replace(at.get() + 1)).copied().unwrap_or(5);
        Ok(Completion::of_json(draft(count)))
    })
}

fn call(host: &FakeHost, state: Value, input: Value) -> Result<ToolOutput, Failure> {
    let context = ToolContext { tool: "build_travel_blocks".to_owned(), ..Default::default() };
    let context = context.with_state(state);
    host.run(|| testing::call_tool::<build_travel_blocks>(&context, &input))
}

#[test]
fn s3_19_the_latest_video_becomes_blocks() {
    let host = host(&[]);
    let output = call(&host, json!({ "videos": videos() }), json!({})).unwrap();
    let told = output.structured.as_ref().unwrap();
    let keys: Vec<&String> = told.as_object().unwrap().keys().collect();
    let all = "videoId videoUrl title thumbnailUrl blockCount blocks spot_blocks spotCount";
    assert_eq!(keys, all.split(' ').collect::<Vec<_>>());
    assert_eq!((&told["videoId"], &told["title"]), (&json!("bbbbbb"), &json!("New")));
    assert_eq!(told["thumbnailUrl"], "https://i.ytimg.com/b.jpg");
    assert_eq!((&told["blockCount"], &told["spotCount"]), (&json!(5), &json!(2)));
    let keys: Vec<&String> = told["blocks"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["block_id", "type", "title", "description", "location", "smart_tags"]);
    assert_eq!(told["spot_blocks"][1], told["blocks"][1]);
    assert_ne!(told["blocks"][0]["block_id"], "m0");
    assert!(host.llm_requests()[0].text().contains("Title: New"));
}

#[test]
fn s3_08_s3_19_blocks_are_written_and_images_of_others_removed() {
    let output = call(&host(&[]), json!({ "videos": videos() }), json!({})).unwrap();
    let told = output.structured.as_ref().unwrap();
    assert_eq!(update(&output, "blocks"), &told["blocks"]);
    assert_eq!(update(&output, "spot_blocks"), &told["spot_blocks"]);
    assert_eq!(update(&output, "images"), &json!([]));
    assert_eq!(update(&output, "image_mode"), &json!(null));
    assert_eq!(update(&output, "context")["location"], "Tokyo");
    let mut noted = json!({ "build_travel_blocks": told });
    for later in super::LATER {
        noted[later] = Value::Null;
    }
    assert_eq!(update(&output, "tool_outputs"), &noted);
}

#[test]
fn s3_12_the_next_call_of_a_turn_sees_the_writes() {
    let output = call(&host(&[]), json!({ "videos": videos() }), json!({})).unwrap();
    let hidden = output.updates.iter().filter(|update| !update.overwrite);
    let hidden: Vec<&str> = hidden.map(|update| update.channel.as_str()).collect();
    assert_eq!(hidden, ["tool_outputs"]);
}

#[test]
fn s3_24_a_video_is_named_by_its_id() {
    for id in ["aaaaaa", "https://youtu.be/aaaaaa"] {
        let output = call(&host(&[]), json!({ "videos": videos() }), json!({ "videoId": id }));
        assert_eq!(output.unwrap().structured.unwrap()["title"], "Old");
    }
    let host = host(&[]);
    let output = call(&host, json!({ "videos": videos() }), json!({"videoId": "cccccc"})).unwrap();
    assert!(output.is_error && host.llm_requests().is_empty());
    assert_eq!(
        output.text_content(),
        "video `cccccc` was not crawled; call `crawl_youtube_videos` with it, or take one of \
         `aaaaaa`, `bbbbbb`"
    );
}

#[test]
fn s3_12_without_a_video_the_missing_step_is_named() {
    for state in [json!({}), json!({"videos": null}), json!({"videos": []})] {
        let output = call(&FakeHost::new(), state, json!({})).unwrap();
        assert!(output.is_error && output.updates.is_empty());
        assert!(output.text_content().contains("call `crawl_youtube_videos` before"));
    }
}

#[test]
fn s3_46_requests_have_the_limits_of_the_task() {
    let host = host(&[]);
    call(&host, json!({ "videos": videos() }), json!({})).unwrap();
    let request = &host.llm_requests()[0];
    assert_eq!((&*request.route, request.max_output_tokens), (TASK.name(), Some(8_192)));
    let limits = [&request.extra["timeout_ms"], &request.extra["retries"]];
    assert_eq!(limits, [60_000, 2]);
}

#[test]
fn s3_23_too_few_or_too_many_blocks_are_requested_again() {
    let host = host(&[3, 17]);
    let output = call(&host, json!({ "videos": videos() }), json!({})).unwrap();
    assert_eq!(output.structured.unwrap()["blockCount"], 5);
    let requests = host.llm_requests();
    assert!(requests[1].text().contains("`blocks` has 3 blocks; give 4 to 16"));
    assert!(requests[2].text().contains("`blocks` has 17 blocks"));
}

#[test]
fn log_has_the_model_and_its_attempts() {
    let host = host(&[3]);
    call(&host, json!({ "videos": videos() }), json!({})).unwrap();
    let expected = "task `json_compilation_strict`: google:json_compilation_strict-0 (attempts=2)";
    assert_eq!(host.logged()[0].message, expected);
}

#[test]
fn s3_23_after_the_retries_follow_the_fallback_and_a_failure() {
    let host = host(&[3, 3, 3, 3, 3, 3]);
    let failure = call(&host, json!({ "videos": videos() }), json!({})).unwrap_err();
    assert_eq!(host.llm_requests().len(), 6);
    assert!(failure.message.contains("`json_compilation_strict`"), "{}", failure.message);
    assert!(failure.message.contains("`blocks` has 3 blocks"), "{}", failure.message);
}

#[test]
fn repeated_step_gives_the_same_ids() {
    let blocks = || {
        let output = call(&host(&[]), json!({ "videos": videos() }), json!({})).unwrap();
        output.structured.unwrap()["blocks"].clone()
    };
    assert_eq!(blocks(), blocks());
}
