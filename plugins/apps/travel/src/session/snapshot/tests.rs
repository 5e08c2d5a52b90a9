//! Changes of a snapshot by steps and editors.

use wattle_plugin::prelude::{Value, json};

use super::{Refused, Snapshot, patch};
use crate::html::Sources;
use crate::preview::Preview;
use crate::session::step::{Step, steps};
use crate::session::testing::{Log, good};

fn step(tool: &str, output: Value, updates: Value) -> Step {
    let mut log = Log::of_run("r");
    log.answers("", &[("c", tool, json!({}))]);
    log.calls(tool, 0);
    log.returns(tool, 0, good(output, updates));
    steps(&log.run().events).remove(0)
}

const PREVIEW: &str = "/api/guide/s";

fn preview() -> Preview {
    Preview { path: PREVIEW.to_owned(), sources: Sources::default() }
}

const PAGE: &str = "<!DOCTYPE html><html><head></head><body><p>hi</p></body></html>";

fn block(id: &str, kind: &str) -> Value {
    json!({"block_id": id, "type": kind, "title": "t", "description": "d", "location": null,
        "smart_tags": []})
}

#[test]
fn s3_51_every_step_adds_to_the_snapshot() {
    let mut snapshot = Snapshot::default();
    let crawled = json!([
        {"channel": "videos", "value": [{"id": "v"}]},
        {"channel": "context", "value": {"videoId": "v", "videoUrl": "https://v",
            "thumbnailUrl": "https://t"}},
        {"channel": "tool_outputs", "value": {"crawl_youtube_videos": {"count": 1}}},
    ]);
    snapshot.apply(&preview(), &step("crawl_youtube_videos", json!({}), crawled));
    let built = json!([
        {"channel": "blocks", "value": [block("a", "spot")]},
        {"channel": "spot_blocks", "value": [block("a", "spot")]},
        {"channel": "images", "value": []},
        {"channel": "image_mode", "value": null},
        {"channel": "tool_outputs", "value": {"build_travel_blocks": {"blockCount": 1}}},
    ]);
    snapshot.apply(&preview(), &step("build_travel_blocks", json!({}), built));
    let view = snapshot.for_run();
    let context = json!({"videos": [{"id": "v"}], "video": {"videoId": "v",
        "videoUrl": "https://v", "thumbnailUrl": "https://t"}, "images": [], "imageMode": null});
    assert_eq!(view["context"], context);
    assert_eq!(view["spotBlocks"][0]["block_id"], "a");
    assert_eq!(snapshot.thumbnail(), Some("https://t"));
    assert_eq!(snapshot.video_url(), Some("https://v"));
    let expected = ["crawl_youtube_videos", "build_travel_blocks"];
    assert_eq!(Snapshot::finished(&view["toolOutputs"]), expected);
}

/// Returns a step that made a page of a video.
fn page(html: &str, video: &str) -> Step {
    let output = json!({"html": html, "videoUrl": format!("https://www.youtube.com/watch?v={video}"),
        "thumbnailUrl": format!("https://i.example/{video}.jpg")});
    let updates = json!([{"channel": "html", "value": html},
        {"channel": "tool_outputs", "value": {"generate_handbook_html": {}}}]);
    step("generate_handbook_html", output, updates)
}

#[test]
fn s3_37_a_page_is_a_version_with_a_path() {
    let mut snapshot = Snapshot::default();
    let made = page(PAGE, "abcdef");
    snapshot.apply(&preview(), &made);
    assert_eq!(snapshot.version, 1);
    assert_eq!(snapshot.preview_path.as_deref(), Some(PREVIEW));
    let first = snapshot.html.clone().unwrap();
    snapshot.apply(&preview(), &made);
    assert_eq!(snapshot.version, 2);
    assert_eq!(snapshot.html, Some(first));
}

#[test]
fn s3_62_a_page_of_an_older_version_is_cleaned_again() {
    let mut snapshot = Snapshot::default();
    let evil = PAGE.replace("<p>", "<script>x()</script><p onclick=\"x()\">");
    snapshot.apply(&preview(), &page(&evil, "abcdef"));
    let kept = snapshot.html.clone().unwrap();
    assert!(kept.contains("hi") && !kept.contains("x()"), "{kept}");
    snapshot.apply(&preview(), &page("no page", "abcdef"));
    assert_eq!((snapshot.html, snapshot.version), (Some(kept), 1), "there is no better one");
}

#[test]
fn s3_39_an_edited_page_keeps_its_own_video() {
    let mut snapshot = Snapshot::default();
    snapshot.apply(&preview(), &page(PAGE, "abcdef"));
    let made = snapshot.html.clone().unwrap();
    let crawled = json!([{"channel": "context", "value": {"videoId": "ghijkl",
        "videoUrl": "https://www.youtube.com/watch?v=ghijkl",
        "thumbnailUrl": "https://i.example/ghijkl.jpg"}}]);
    snapshot.apply(&preview(), &step("crawl_youtube_videos", json!({}), crawled));
    patch(&mut snapshot, &json!({"handbookHtml": made}), &preview()).unwrap();
    assert_eq!(snapshot.html, Some(made));
}

#[test]
fn s3_51_subtitles_are_stored_once() {
    let videos = json!([{"id": "v", "subtitles": "x".repeat(24_000)}]);
    let updates = json!([{"channel": "videos", "value": videos},
        {"channel": "tool_outputs", "value": {"crawl_youtube_videos": {"videos": videos}}}]);
    let mut snapshot = Snapshot::default();
    snapshot.apply(&preview(), &step("crawl_youtube_videos", json!({}), updates));
    assert_eq!(snapshot.context["videos"], videos);
    assert!(snapshot.tool_outputs.to_string().len() < 2_000);
    let outputs = json!({"toolOutputs": {"crawl_youtube_videos": {"videos": videos}}});
    patch(&mut snapshot, &outputs, &preview()).unwrap();
    assert!(snapshot.tool_outputs.to_string().len() < 2_000);
}

#[test]
fn s3_52_large_changes_are_refused() {
    let many = json!({"x": vec!["y".repeat(10_000); 150]});
    for (document, is_refused) in [
        (json!({"toolOutputs": {"search_image": many}}), false),
        (json!({"toolOutputs": {"search_image": many, "generate_image": many}}), true),
        (json!({"handbookHtml": "x".repeat((1 << 20) + 1)}), true),
    ] {
        let kept = patch(&mut Snapshot::default(), &document, &preview());
        assert_eq!(matches!(kept, Err(Refused::TooLarge(_))), is_refused);
    }
    let mut snapshot = Snapshot { context: many.clone(), ..Snapshot::default() };
    let outputs = json!({"toolOutputs": {"search_image": many}});
    assert!(patch(&mut snapshot, &outputs, &preview()).is_ok());
    snapshot.context = json!([many, many]);
    assert!(matches!(patch(&mut snapshot, &outputs, &preview()), Err(Refused::TooLarge(_))), "sum");
}

#[test]
fn invalidated_outputs_are_not_finished_steps() {
    let outputs = json!({"search_image": {}, "parse_youtube_input": {}});
    let mut snapshot = Snapshot { tool_outputs: outputs, ..Snapshot::default() };
    let updates = json!([{"channel": "tool_outputs", "value": {"search_image": null, "x": 1}}]);
    snapshot.apply(&preview(), &step("build_travel_blocks", json!({}), updates));
    assert_eq!(snapshot.tool_outputs, json!({"parse_youtube_input": {}, "x": 1}));
    assert_eq!(Snapshot::finished(&snapshot.tool_outputs), ["parse_youtube_input"]);
}

#[test]
fn s3_09_new_images_require_a_new_page() {
    let outputs = json!({"search_image": {}, "generate_handbook_html": {}});
    let html = Some("old".to_owned());
    let mut snapshot = Snapshot { tool_outputs: outputs, html, ..Snapshot::default() };
    snapshot.apply(&preview(), &step("generate_image", json!({}), json!([])));
    assert_eq!(Snapshot::finished(&snapshot.tool_outputs), ["search_image"]);
    assert_eq!(snapshot.html.as_deref(), Some("old"), "it can be looked at until then");
}

#[test]
fn s3_52_the_editor_writes_columns_without_a_version() {
    let mut snapshot = Snapshot { version: 3, html: Some("old".to_owned()), ..Snapshot::default() };
    let blocks = json!([block("a", "spot"), block("b", "food")]);
    patch(&mut snapshot, &json!({"blocks": blocks}), &preview()).unwrap();
    assert_eq!(snapshot.spot_blocks, json!([block("a", "spot")]), "they follow the blocks");
    patch(&mut snapshot, &json!({"spotBlocks": [], "previewPath": "/api/guide/s"}), &preview())
        .unwrap();
    assert_eq!((&snapshot.blocks, &snapshot.spot_blocks), (&blocks, &json!([])));
    patch(&mut snapshot, &json!({"toolOutputs": {"search_image": {"mode": "imagen"}}}), &preview())
        .unwrap();
    assert_eq!(snapshot.tool_outputs["search_image"]["mode"], "imagen");
    assert_eq!((snapshot.version, snapshot.html.as_deref()), (3, Some("old")));
}

#[test]
fn s3_52_stored_blocks_have_the_fields_that_a_request_leaves_out() {
    let short = json!({"block_id": "a", "type": "spot", "title": "t", "description": "d"});
    for key in ["blocks", "spotBlocks"] {
        let mut snapshot = Snapshot::default();
        patch(&mut snapshot, &json!({ key: [short] }), &preview()).unwrap();
        let view = json!(snapshot.view());
        assert_eq!(view[key], json!([block("a", "spot")]));
        assert_eq!(view["spotBlocks"], json!([block("a", "spot")]));
    }
    let mut snapshot = Snapshot::default();
    patch(&mut snapshot, &json!({"blocks": null}), &preview()).unwrap();
    assert_eq!((&snapshot.blocks, &snapshot.spot_blocks), (&Value::Null, &Value::Null));
}

#[test]
fn s3_39_an_edited_page_is_cleaned_like_a_made_one() {
    let context = json!({"video": {"thumbnailUrl": "https://i.example/t.jpg",
        "videoUrl": "https://www.youtube.com/watch?v=abcdef"}});
    let mut snapshot = Snapshot { context, ..Snapshot::default() };
    let page =
        "<!DOCTYPE html><html><head></head><body><script>x()</script><p>hi</p></body></html>";
    patch(&mut snapshot, &json!({"handbookHtml": page}), &preview()).unwrap();
    let once = snapshot.html.clone().unwrap();
    assert!(!once.contains("<script") && once.contains("data-video-thumbnail-header"), "{once}");
    patch(&mut snapshot, &json!({"handbookHtml": once}), &preview()).unwrap();
    assert_eq!(snapshot.html, Some(once));
}

/// Returns a block with coordinates.
fn at(lat: f64, lng: f64) -> Value {
    let mut block = block("a", "spot");
    block["location"] = json!({"lat": lat, "lng": lng});
    block
}

#[test]
fn s3_52_invalid_changes_are_refused() {
    for (document, why) in [
        (json!([]), "a JSON object"),
        (json!({"title": "x"}), "unknown key `title`"),
        (json!({"handbookVersion": 7}), "unknown key `handbookVersion`"),
        (json!({"blocks": [{"block_id": 7}]}), "`blocks`"),
        (json!({"spotBlocks": {}}), "`spotBlocks`"),
        (json!({"blocks": [block("a", "spot"), block("a", "food")]}), "`blocks[1].block_id`"),
        (json!({"spotBlocks": [block(" ", "spot")]}), "`spotBlocks[0].block_id`"),
        (json!({"blocks": [at(90.5, 0.0)]}), "`blocks[0].location` is nowhere"),
        (json!({"blocks": [at(0.0, -180.5)]}), "`blocks[0].location` is nowhere"),
        (json!({"toolOutputs": []}), "`toolOutputs`"),
        (json!({"toolOutputs": {"fly": {}}}), "Expected SessionToolName"),
        (json!({"handbookHtml": 7}), "`handbookHtml`"),
        (json!({"handbookHtml": "no page"}), "`handbookHtml`"),
        (json!({"previewPath": "//evil.example"}), "`previewPath`"),
        (json!({"previewPath": "https://evil.example"}), "`previewPath`"),
        (json!({"previewPath": "/api/guide/another"}), "`previewPath`"),
    ] {
        let refused = patch(&mut Snapshot::default(), &document, &preview()).unwrap_err();
        assert!(matches!(&refused, Refused::Invalid(told) if told.contains(why)), "{refused:?}");
    }
}
