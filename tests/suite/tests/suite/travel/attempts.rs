//! Tests of how often models are called for one task, for each kind of unusable completion.
//!
//! The video is short, because the stand-in records only a digest of long prompts.

use serde_json::{Value, json};
use wattle_kit::standin::{Entry, Fault, FaultRule, Pattern};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::travel::{OSAKA, working_on};

const BLOCKS: &str = "json_compilation_strict";

const FIRST: &str = "gemini-2.5-pro";

/// Blocks of which the first has an unknown type.
fn wrong_shape() -> Fault {
    let block = |number: u32| {
        let kind = if number == 0 { "museum" } else { "food" };
        json!({"block_id": format!("b{number}"), "type": kind, "title": "Soup",
            "description": "Hot.", "location": null, "smart_tags": []})
    };
    let blocks: Vec<Value> = (0..4).map(block).collect();
    Fault::Content { text: json!({"blocks": blocks, "spot_blocks": []}).to_string() }
}

/// A document of the requested shape that has too few blocks for a guide.
fn too_few() -> Fault {
    let block = json!({"block_id": "b", "type": "food", "title": "Soup", "description": "Hot.",
        "location": null, "smart_tags": []});
    Fault::Content { text: json!({"blocks": [block], "spot_blocks": []}).to_string() }
}

fn fault(server: &TestServer, fault: Fault, times: u32) {
    let on = Pattern { model: Some(FIRST.to_owned()), ..working_on(BLOCKS) };
    server.standin().fault(FaultRule::new(on, fault).times(times));
}

/// Returns the requests for blocks, in order.
fn asked(server: &TestServer) -> Vec<Entry> {
    server.requests_for(BLOCKS)
}

fn models(entries: &[Entry]) -> Vec<&str> {
    entries.iter().filter_map(|entry| entry.model.as_deref()).collect()
}

#[tokio::test]
async fn s3_45_s3_46_a_completion_of_the_wrong_shape_is_one_of_three_attempts() {
    let server = Setup::travel().await.start().await;
    fault(&server, wrong_shape(), 9);
    let (_, said) = server.travel().make(OSAKA).await;
    assert_eq!(said.output("build_travel_blocks")["blockCount"], 4);
    let entries = asked(&server);
    assert_eq!(models(&entries), [FIRST, FIRST, FIRST, "gemini-2.5-flash"]);
    let told = |entry: &Entry| entry.body.as_ref().unwrap().to_string();
    assert!(!told(&entries[0]).contains("refused for these reasons"));
    for entry in &entries[1..] {
        let prompt = told(entry);
        assert!(prompt.contains("refused for these reasons"), "{prompt}");
        assert!(prompt.contains("/blocks/0/type") && prompt.contains("museum"), "{prompt}");
    }
}

#[tokio::test]
async fn s3_46_failures_of_all_kinds_share_one_count_of_attempts() {
    let server = Setup::travel().await.start().await;
    let busy = Fault::Status { status: 503, retry_after: None, body: None };
    for wrong in [busy, wrong_shape(), too_few()] {
        fault(&server, wrong, 1);
    }
    let (_, said) = server.travel().make(OSAKA).await;
    assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    let entries = asked(&server);
    assert_eq!(models(&entries), [FIRST, FIRST, FIRST, "gemini-2.5-flash"]);
    let last = entries[3].body.as_ref().unwrap().to_string();
    assert!(last.contains("`blocks` has 1 blocks; give 4 to 16"), "{last}");
    assert!(!last.contains("museum"), "only the errors of the last completion are sent: {last}");
}

#[tokio::test]
async fn s3_46_each_model_attempts_a_page_twice() {
    let server = Setup::travel().await.start().await;
    let empty = Fault::Content { text: "I would rather not.".to_owned() };
    server.standin().fault(FaultRule::new(working_on("handbook_html_generation"), empty));
    let (_, said) = server.travel().make(OSAKA).await;
    let error = said.tool_error("generate_handbook_html");
    assert!(error.contains("`handbook_html_generation`"), "{error}");
    let pages = server.requests_for("handbook_html_generation");
    let models: Vec<&str> = pages.iter().filter_map(|entry| entry.model.as_deref()).collect();
    let (first, second) = ("gemini-3-pro-preview", "gemini-2.5-pro");
    assert_eq!(models[..4], [first, first, second, second]);
}
