//! The content of a page, the request to the model, and the output of the tool.

use std::cell::Cell;

use serde_json::{Value, json};
use wattle_plugin::prelude::{Completion, ToolContext, ToolOutput};
use wattle_plugin::testing::{self, FakeHost};

use super::{TASK, generate_handbook_html};
use crate::block::BlockType;
use crate::image::plan::tests::block;
use crate::testing::{route, update};

const PAGE: &str = "```html\n<html><head><title>T</title></head><body><h1>Tokyo</h1>\
                    <script>x()</script></body></html>\n```";

fn image(block_id: &str, source: &str) -> Value {
    json!({"block_id": block_id, "block_title": "t", "query": "q", "alt": "a",
        "image_url": format!("https://images.unsplash.com/{block_id}"), "source": source})
}

/// Returns the state of a guide that has everything but its page.
fn state() -> Value {
    let mut spot = block("s", BlockType::Spot);
    spot.location = Some(crate::block::Location { lat: 35.5, lng: 139.5 });
    json!({
        "blocks": [spot, block("f", BlockType::Food)],
        "images": [image("s", "imagen"), image("old", "unsplash")],
        "image_mode": "imagen",
        "context": {"videoId": "abcdef", "videoUrl": "https://www.youtube.com/watch?v=abcdef",
            "title": "Tokyo walk", "thumbnailUrl": "https://i.ytimg.com/vi/abcdef/hq.jpg"},
    })
}

/// Returns a host whose model returns these texts in turn, and repeats the last one.
fn host(answers: &'static [&str]) -> FakeHost {
    let at = Cell::new(0);
    route(FakeHost::new(), TASK).now_ms(1_772_404_200_000).llm(move |_| {
        let answer = answers[at.get().min(answers.len() - 1)];
        at.set(at.get() + 1);
        Ok(Completion::of_text(answer))
    })
}

fn call(host: &FakeHost, state: Value, input: Value) -> ToolOutput {
    let context = ToolContext {
        tool: "generate_handbook_html".to_owned(),
        thread_id: Some("session-1".to_owned()),
        ..Default::default()
    };
    let context = context.with_state(state);
    host.run(|| testing::call_tool::<generate_handbook_html>(&context, &input)).unwrap()
}

fn check_error(state: Value, input: Value, expected: &str) {
    let output = call(&FakeHost::new(), state, input);
    assert!(output.is_error && output.updates.is_empty());
    assert!(output.text_content().contains(expected), "{}", output.text_content());
}

#[test]
fn s3_34_to_s3_37_a_page_is_made_reported_and_stored() {
    let host = host(&[PAGE]);
    let output = call(&host, state(), json!({"blocks": [], "title": " "}));
    let mut told = output.structured.clone().unwrap();
    let html = told.as_object_mut().unwrap().remove("html").unwrap();
    let expected = json!({
        "title": "Tokyo walk",
        "videoId": "abcdef",
        "videoUrl": "https://www.youtube.com/watch?v=abcdef",
        "thumbnailUrl": "https://i.ytimg.com/vi/abcdef/hq.jpg",
        "block_count": 2,
        "spot_count": 1,
        "image_count": 2,
        "matched_image_count": 1,
        "image_mode": "imagen",
        "handbook_style": {"desktop_width": 720, "mobile_width": 375},
        "generator_model": "google:handbook_html_generation-0 (attempts=1)",
        "generated_at": "2026-03-01T22:30:00.000Z",
        "html_length": html.as_str().unwrap().len(),
        "preview_url": "/api/guide/session-1",
    });
    assert_eq!(told, expected);
    let html = html.as_str().unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && !html.contains("script"), "{html}");
    for part in ["data-video-thumbnail-header", "data-origin-video-link", "<h1>Tokyo</h1>"] {
        assert_eq!(html.matches(part).count(), 1, "{part}: {html}");
    }
    assert_eq!(update(&output, "html"), html);
    assert_eq!(update(&output, "image_mode"), "imagen");
    assert_eq!(update(&output, "tool_outputs"), &json!({"generate_handbook_html": told}));
    assert!(!output.text_content().contains("<h1>"), "the model does not read its page again");
}

#[test]
fn s3_34_the_request_has_blocks_images_and_maps() {
    let host = host(&[PAGE]);
    call(&host, state(), json!({"title": "My Tokyo"}));
    let asked = host.llm_requests()[0].text();
    assert!(asked.starts_with("You make a travel handbook"), "{asked}");
    assert!(asked.contains("shown 720 pixels wide and on phones 375"), "{asked}");
    for part in [
        "\"title\": \"My Tokyo\"",
        "\"thumbnail_url\": \"https://i.ytimg.com/vi/abcdef/hq.jpg\"",
        "\"image_url\": \"https://images.unsplash.com/s\"",
        "https://www.openstreetmap.org/?mlat=35.5&mlon=139.5",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    assert!(!asked.contains("unsplash.com/old"), "a picture of another guide");
}

#[test]
fn s3_11_coordinates_of_the_model_are_ignored() {
    let host = host(&[PAGE]);
    let forged = json!({"block_id": "s", "type": "spot", "title": "Forged",
        "location": {"lat": 1.25, "lng": 2.25}});
    let output = call(&host, state(), json!({"blocks": [forged], "spot_blocks": [forged]}));
    let asked = host.llm_requests()[0].text();
    assert!(asked.contains("139.5") && !asked.contains("2.25") && !asked.contains("Forged"));
    assert_eq!(output.structured.unwrap()["block_count"], 1);
    let unknown = json!({"blocks": [{"block_id": "x"}]});
    check_error(state(), unknown, "there is no block `x` in this guide");
    let unknown = json!({"spot_blocks": [{"block_id": "y"}]});
    check_error(state(), unknown, "take some of `s`, `f`");
}

#[test]
fn s3_38_s3_69_images_are_required_and_belong_to_the_blocks() {
    let mut state = state();
    state["images"] = json!([image("old", "unsplash")]);
    check_error(state.clone(), json!({}), "Prepared images do not match current blocks");
    state["images"] = Value::Null;
    let expected = "No prepared images found. Call search_image or generate_image before \
                    generate_handbook_html.";
    check_error(state.clone(), json!({}), expected);
    check_error(state.clone(), json!({"images": []}), expected);
    let given = json!({"images": [image("other", "unsplash")]});
    check_error(state.clone(), given, "Prepared images do not match current blocks");
    for address in ["javascript:x", "https://evil.example/pixel.png"] {
        let given = json!({"images": [{"block_id": "s", "image_url": address}]});
        check_error(state.clone(), given, "none that was prepared");
    }
}

#[test]
fn s3_12_blocks_are_required() {
    check_error(json!({}), json!({}), "`build_travel_blocks` before `generate_handbook_html`");
}

#[test]
fn s3_34_images_in_the_arguments_are_used_as_prepared() {
    let host = host(&[PAGE]);
    let given = json!([{"block_id": "s", "image_url": "https://made.up/x.jpg"},
        {"block_id": "f", "image_url": "https://images.unsplash.com/f", "source": "unsplash"}]);
    let output = call(&host, state(), json!({ "images": given }));
    let asked = host.llm_requests()[0].text();
    assert!(asked.contains("unsplash.com/s\"") && !asked.contains("made.up"), "{asked}");
    let told = output.structured.unwrap();
    assert_eq!(told["matched_image_count"], 2);
    assert_eq!(told["image_mode"], "unsplash");
}

#[test]
fn images_that_were_not_prepared_are_not_shown() {
    let host = host(&["<html><body><img src=\"https://images.unsplash.com/s\">\
                       <img src=\"https://evil.example/pixel.png?who=1\"></body></html>"]);
    let mut state = state();
    state["context"]["thumbnailUrl"] = Value::Null;
    let input = json!({"thumbnailUrl": "https://evil.example/top.png"});
    let output = call(&host, state, input);
    let page = update(&output, "html").as_str().unwrap();
    assert!(page.contains("images.unsplash.com/s") && !page.contains("evil"), "{page}");
}

#[test]
fn s3_36_s3_45_an_invalid_page_is_requested_again() {
    let host = host(&["I cannot do that", "<html><p>no body</p></html>", PAGE]);
    let output = call(&host, state(), json!({}));
    let requests = host.llm_requests();
    assert_eq!(requests.len(), 3, "twice the first model, then the second");
    assert!(requests[1].text().contains("the page has no `<html>` tag"));
    assert!(requests[2].text().contains("the page has no `<body>` tag"));
    assert!(!output.is_error);
}

#[test]
fn unknown_video_is_taken_from_the_arguments() {
    let host = host(&[PAGE]);
    let mut state = state();
    state["context"] = Value::Null;
    let input = json!({"videoUrl": "https://youtu.be/zzzzzz?t=1", "thumbnailUrl": "http://plain/x",
        "title": "Mine"});
    let told = call(&host, state.clone(), input).structured.unwrap();
    assert_eq!(told["videoUrl"], "https://www.youtube.com/watch?v=zzzzzz");
    assert_eq!((&told["videoId"], &told["thumbnailUrl"]), (&json!("zzzzzz"), &Value::Null));
    let told = call(&host, state, json!({"videoUrl": "javascript:x"})).structured.unwrap();
    assert_eq!((&told["videoUrl"], &told["title"]), (&Value::Null, &json!("Travel guide")));
    assert!(!told["html"].as_str().unwrap().contains("data-origin-video-link"));
}
