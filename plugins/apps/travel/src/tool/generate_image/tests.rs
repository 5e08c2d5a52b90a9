//! Images for all blocks, from each model, and the output of the tool.

use serde_json::{Value, json};
use wattle_plugin::prelude::{Completion, Failure, ToolContext, ToolOutput};
use wattle_plugin::testing::{self, FakeHost};

use super::generate_image;
use crate::block::BlockType;
use crate::image::plan::TASK;
use crate::image::plan::tests::{block, planned};
use crate::testing::{image_route, route};

fn host() -> FakeHost {
    image_route(route(FakeHost::new(), TASK)).llm(|_| Ok(Completion::of_json(planned(&["s", "f"]))))
}

fn call(host: &FakeHost) -> Result<ToolOutput, Failure> {
    let state = json!({"blocks": [block("f", BlockType::Food), block("s", BlockType::Spot)]});
    let context = ToolContext { tool: "generate_image".to_owned(), ..Default::default() };
    let context = context.with_state(state);
    host.run(|| testing::call_tool::<generate_image>(&context, &json!({})))
}

fn picture() -> Vec<(String, Vec<u8>)> {
    vec![("image/png".to_owned(), b"png".to_vec())]
}

#[test]
fn s3_32_s3_33_every_block_gets_an_image_with_a_short_path() {
    let host = host().images(|_| Ok(picture()));
    let output = call(&host).unwrap();
    let told = output.structured.as_ref().unwrap();
    let keys: Vec<&String> = told.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["mode", "planner_model", "generation_models", "image_count", "images"]);
    assert_eq!((&told["mode"], &told["image_count"]), (&json!("imagen"), &json!(2)));
    assert_eq!(told["generation_models"], json!(["handbook_image"]), "each model once");
    let image = &told["images"][0];
    let expected = json!({
        "block_id": "s",
        "block_title": "Title of s",
        "query": "query s",
        "alt": "view of s",
        "image_url": image["image_url"],
        "source": "imagen",
        "credit": "Generated with handbook_image",
    });
    assert_eq!(image, &expected);
    assert!(image["image_url"].as_str().unwrap().starts_with("/blobs/~/"));
    assert_eq!(output.updates.len(), 3);
    assert_eq!(host.http_requests().len(), 0);
    assert_eq!(host.image_requests()[0].extra["timeout_ms"], 90_000);
}

#[test]
fn s3_31_a_withheld_image_is_skipped() {
    let host = host().images(|request| {
        let is_withheld = request.prompt.ends_with('s');
        Ok(if is_withheld { Vec::new() } else { picture() })
    });
    let told = call(&host).unwrap().structured.unwrap();
    assert_eq!((&told["image_count"], &told["images"][0]["block_id"]), (&json!(1), &json!("f")));
}

#[test]
fn s3_31_no_image_at_all_is_an_error_and_a_cancelled_run_ends() {
    let host = host().images(|_| Err(Failure::not_found("route `handbook_image`: no such model")));
    let output = call(&host).unwrap();
    assert!(output.is_error && output.text_content().contains("no such model"));
    let host = self::host().images(|_| Err(Failure::new("cancelled", "stopped")));
    assert_eq!(call(&host).unwrap_err().code, "cancelled");
    let asked: Vec<Value> = host.logged().into_iter().map(|logged| json!(logged.message)).collect();
    assert!(asked.is_empty(), "{asked:?}");
}
