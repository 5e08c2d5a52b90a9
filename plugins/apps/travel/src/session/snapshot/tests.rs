//! What steps and editors add to a snapshot.

use wattle_plugin::prelude::{Value, json};

use super::{Snapshot, patch};
use crate::session::step::{Step, steps};
use crate::session::testing::{Log, good};

fn step(tool: &str, output: Value, updates: Value) -> Step {
    let mut log = Log::of_run("r");
    log.answers("", &[("c", tool, json!({}))]);
    log.calls(tool, 0);
    log.returns(tool, 0, good(output, updates));
    steps(&log.run().events).remove(0)
}

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
    snapshot.apply("s", &step("crawl_youtube_videos", json!({}), crawled));
    let built = json!([
        {"channel": "blocks", "value": [block("a", "spot")]},
        {"channel": "spot_blocks", "value": [block("a", "spot")]},
        {"channel": "images", "value": []},
        {"channel": "image_mode", "value": null},
        {"channel": "tool_outputs", "value": {"build_travel_blocks": {"blockCount": 1}}},
    ]);
    snapshot.apply("s", &step("build_travel_blocks", json!({}), built));
    let view = snapshot.for_run();
    let context = json!({"videos": [{"id": "v"}], "video": {"videoId": "v",
        "videoUrl": "https://v", "thumbnailUrl": "https://t"}, "images": [], "imageMode": null});
    assert_eq!(view["context"], context);
    assert_eq!(view["spotBlocks"][0]["block_id"], "a");
    assert_eq!(
        (snapshot.thumbnail(), snapshot.video_url()),
        (Some("https://t"), Some("https://v"))
    );
    assert_eq!(
        Snapshot::finished(&view["toolOutputs"]),
        ["crawl_youtube_videos", "build_travel_blocks"]
    );
}

#[test]
fn s3_37_a_page_is_a_version_with_a_path() {
    let mut snapshot = Snapshot::default();
    let updates = json!([{"channel": "html", "value": "<html>"},
        {"channel": "tool_outputs", "value": {"generate_handbook_html": {}}}]);
    let made = step("generate_handbook_html", json!({"html": "<html>"}), updates);
    snapshot.apply("s", &made);
    assert_eq!((snapshot.html.as_deref(), snapshot.version), (Some("<html>"), 1));
    assert_eq!(snapshot.preview_path.as_deref(), Some("/api/guide/s"));
    snapshot.apply("s", &made);
    assert_eq!(snapshot.version, 2);
}

#[test]
fn outputs_that_no_longer_hold_are_no_finished_steps() {
    let outputs = json!({"search_image": {}, "parse_youtube_input": {}});
    let mut snapshot = Snapshot { tool_outputs: outputs, ..Snapshot::default() };
    let updates = json!([{"channel": "tool_outputs", "value": {"search_image": null, "x": 1}}]);
    snapshot.apply("s", &step("build_travel_blocks", json!({}), updates));
    assert_eq!(snapshot.tool_outputs, json!({"parse_youtube_input": {}, "x": 1}));
    assert_eq!(Snapshot::finished(&snapshot.tool_outputs), ["parse_youtube_input"]);
}

#[test]
fn s3_09_after_new_pictures_the_page_is_to_be_made_again() {
    let outputs = json!({"search_image": {}, "generate_handbook_html": {}});
    let html = Some("old".to_owned());
    let mut snapshot = Snapshot { tool_outputs: outputs, html, ..Snapshot::default() };
    snapshot.apply("s", &step("generate_image", json!({}), json!([])));
    assert_eq!(Snapshot::finished(&snapshot.tool_outputs), ["search_image"]);
    assert_eq!(snapshot.html.as_deref(), Some("old"), "it can be looked at until then");
}

#[test]
fn s3_52_the_editor_writes_columns_and_no_version() {
    let mut snapshot = Snapshot { version: 3, html: Some("old".to_owned()), ..Snapshot::default() };
    let blocks = json!([block("a", "spot"), block("b", "food")]);
    patch(&mut snapshot, &json!({"blocks": blocks})).unwrap();
    assert_eq!(snapshot.spot_blocks, json!([block("a", "spot")]), "they follow the blocks");
    patch(&mut snapshot, &json!({"spotBlocks": [], "previewPath": "/api/guide/s"})).unwrap();
    assert_eq!((&snapshot.blocks, &snapshot.spot_blocks), (&blocks, &json!([])));
    patch(&mut snapshot, &json!({"toolOutputs": {"search_image": {"mode": "imagen"}}})).unwrap();
    assert_eq!(snapshot.tool_outputs["search_image"]["mode"], "imagen");
    assert_eq!((snapshot.version, snapshot.html.as_deref()), (3, Some("old")));
}

#[test]
fn s3_39_an_edited_page_is_processed_like_a_made_one() {
    let context = json!({"video": {"thumbnailUrl": "https://i.example/t.jpg",
        "videoUrl": "https://www.youtube.com/watch?v=abcdef"}});
    let mut snapshot = Snapshot { context, ..Snapshot::default() };
    let page =
        "<!DOCTYPE html><html><head></head><body><script>x()</script><p>hi</p></body></html>";
    patch(&mut snapshot, &json!({"handbookHtml": page})).unwrap();
    let once = snapshot.html.clone().unwrap();
    assert!(!once.contains("<script") && once.contains("data-video-thumbnail-header"), "{once}");
    patch(&mut snapshot, &json!({"handbookHtml": once})).unwrap();
    assert_eq!(snapshot.html, Some(once));
}

#[test]
fn s3_52_what_is_wrong_is_refused() {
    for (document, why) in [
        (json!([]), "a JSON object"),
        (json!({"title": "x"}), "unknown key `title`"),
        (json!({"handbookVersion": 7}), "unknown key `handbookVersion`"),
        (json!({"blocks": [{"block_id": 7}]}), "`blocks`"),
        (json!({"spotBlocks": {}}), "`spotBlocks`"),
        (json!({"toolOutputs": []}), "`toolOutputs`"),
        (json!({"toolOutputs": {"fly": {}}}), "Expected SessionToolName"),
        (json!({"handbookHtml": 7}), "`handbookHtml`"),
        (json!({"handbookHtml": "no page"}), "`handbookHtml`"),
        (json!({"previewPath": "//evil.example"}), "`previewPath`"),
        (json!({"previewPath": "https://evil.example"}), "`previewPath`"),
    ] {
        let refused = patch(&mut Snapshot::default(), &document).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
}
