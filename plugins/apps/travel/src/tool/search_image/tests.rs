//! Photographs, generated images, and the output of the tool.

use serde_json::{Value, json};
use wattle_plugin::http::Response;
use wattle_plugin::prelude::{Completion, Failure, ToolContext, ToolOutput};
use wattle_plugin::testing::{self, FakeHost};

use super::search_image;
use crate::block::BlockType;
use crate::image::plan::TASK;
use crate::image::plan::tests::{block, planned};
use crate::testing::{image_route, route, update};

/// Returns the state of a guide with three blocks.
fn state() -> Value {
    json!({
        "blocks": [block("f", BlockType::Food), block("s", BlockType::Spot),
                   block("t", BlockType::Transport)],
        "context": {"videoId": "abcdef", "title": "Tokyo"},
        "tool_outputs": {"generate_handbook_html": {"title": "old"}},
    })
}

/// Returns a host that plans for these blocks and finds photographs for queries with these words.
fn host(ids: &'static [&str], with_photo: &'static [&str]) -> FakeHost {
    image_route(route(FakeHost::new(), TASK))
        .llm(|_| Ok(Completion::of_json(planned(ids))))
        .http(|request| {
            let is_found = with_photo.iter().any(|id| request.url.contains(&format!("%20{id}&")));
            let photo = json!({"urls": {"regular": "https://images.unsplash.com/p"},
                "user": {"name": "Jo"}});
            let photos = if is_found { vec![photo] } else { vec![] };
            Ok(Response::new(200, json!({ "results": photos }).to_string()))
        })
        .images(|_| Ok(vec![("image/png".to_owned(), b"png".to_vec())]))
}

fn call(host: &FakeHost, state: Value, input: Value) -> ToolOutput {
    let context = ToolContext { tool: "search_image".to_owned(), ..Default::default() };
    let context = context.with_state(state);
    host.run(|| testing::call_tool::<search_image>(&context, &input)).unwrap()
}

/// Returns blocks and sources of the images.
fn sources(output: &ToolOutput) -> Vec<(String, String)> {
    let images = output.structured.as_ref().unwrap()["images"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    images.iter().map(|image| (text(&image["block_id"]), text(&image["source"]))).collect()
}

#[test]
fn s3_28_photographs_are_found_for_the_blocks() {
    let host = host(&["s", "f", "t"], &["s", "f", "t"]);
    let output = call(&host, state(), json!({}));
    let told = output.structured.as_ref().unwrap();
    let keys: Vec<&String> = told.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["mode", "planner_model", "image_count", "images"]);
    assert_eq!((&told["mode"], &told["image_count"]), (&json!("unsplash"), &json!(3)));
    assert_eq!(told["planner_model"], "google:handbook_image_query_planning-0 (attempts=1)");
    assert_eq!(sources(&output)[0], ("s".to_owned(), "unsplash".to_owned()));
    assert_eq!(host.image_requests().len(), 0);
    assert_eq!(update(&output, "images"), &told["images"]);
    assert_eq!(update(&output, "image_mode"), "unsplash");
    let noted = update(&output, "tool_outputs");
    assert_eq!(&noted["search_image"], told);
    assert!(noted["generate_handbook_html"].is_null() && noted.as_object().unwrap().len() == 2);
}

#[test]
fn s3_29_s3_31_missing_photographs_are_generated_and_marked() {
    let host = host(&["s", "f", "t"], &["t"]);
    let output = call(&host, state(), json!({}));
    let pairs = [("s", "imagen"), ("f", "imagen"), ("t", "unsplash")];
    assert_eq!(sources(&output), pairs.map(|(id, source)| (id.to_owned(), source.to_owned())));
    let told = output.structured.unwrap();
    assert_eq!(told["mode"], "unsplash", "mixed: one photograph is enough");
    assert!(told["images"][0]["image_url"].as_str().unwrap().starts_with("/blobs/"));
    let requests = host.image_requests();
    assert_eq!(requests.len(), 2);
    assert_eq!((&*requests[0].route, requests[0].aspect_ratio.as_deref()), {
        ("handbook_image", Some("16:9"))
    });
    assert_eq!(requests[0].prompt, "a photograph of s");
}

#[test]
fn s3_31_without_a_key_all_images_are_generated() {
    let host = host(&["s", "f"], &[])
        .http(|_| Err(Failure::new("denied", "the secret `UNSPLASH_ACCESS_KEY` is not set")));
    let output = call(&host, state(), json!({"count": 2}));
    assert_eq!(output.structured.as_ref().unwrap()["mode"], "imagen");
    assert_eq!(sources(&output).len(), 2);
}

#[test]
fn s3_31_a_block_without_an_image_is_skipped_and_no_image_is_an_error() {
    let host = host(&["s", "f"], &["f"]).images(|_| Err(Failure::unavailable("withheld")));
    assert_eq!(sources(&call(&host, state(), json!({"count": 2}))).len(), 1);
    let host = self::host(&["s", "f"], &[]).images(|_| Err(Failure::unavailable("withheld")));
    let output = call(&host, state(), json!({"count": 2}));
    assert!(output.is_error && output.updates.len() == 1);
    assert!(output.text_content().contains("withheld"), "{}", output.text_content());
}

#[test]
fn s3_09_a_plan_without_images_is_used_again() {
    let host = host(&["s", "f"], &[]).images(|_| Err(Failure::unavailable("withheld")));
    let kept = update(&call(&host, state(), json!({"count": 2})), "image_plan").clone();
    let mut state = state();
    state["image_plan"] = kept.clone();
    let host = self::host(&[], &["s", "f"]);
    let output = call(&host, state.clone(), json!({"count": 2}));
    assert_eq!(sources(&output).len(), 2);
    assert!(update(&output, "image_plan").is_null() && !kept.is_null());
    assert_eq!(host.llm_requests().len(), 0);
    let host = self::host(&["s"], &["s"]);
    assert_eq!(sources(&call(&host, state, json!({"count": 1}))).len(), 1);
    assert_eq!(host.llm_requests().len(), 1, "a plan for other blocks is of no use");
}

#[test]
fn s3_12_blocks_are_required() {
    let output = call(&FakeHost::new(), json!({"blocks": null}), json!({}));
    assert!(output.is_error);
    assert!(output.text_content().contains("`build_travel_blocks` before `search_image`"));
}

#[test]
fn s3_28_the_schema_allows_one_to_six() {
    let schema = testing::tool_schema::<search_image>();
    let count = &schema["properties"]["count"];
    assert_eq!((&count["minimum"], &count["maximum"]), (&json!(1), &json!(6)), "{schema}");
}
