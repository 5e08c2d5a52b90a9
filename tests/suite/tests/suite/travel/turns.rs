//! Tests of several tools in one turn of the model: each uses the results of the previous one.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::travel::{CHAT_MODEL, KITCHEN, OSAKA, TOKYO, Talk, UNSPLASH};

const CRAWL: &str = "crawl_youtube_videos";
const BUILD: &str = "build_travel_blocks";
const SEARCH: &str = "search_image";
const PAGE: &str = "generate_handbook_html";

/// Makes the model call all these tools at once and then finish. Returns the stream.
async fn said(server: &TestServer, session: &str, calls: &[(&str, Value)]) -> Talk {
    let call = |(tool, arguments): &(&str, Value)| json!({"name": tool, "arguments": arguments});
    let calls: Vec<Value> = calls.iter().map(call).collect();
    let contents = [json!({ "tool_calls": calls }), json!("done")].into();
    let rule = FaultRule::new(Pattern::path(CHAT_MODEL), Fault::Script { contents });
    server.standin().fault(rule);
    server.travel().chat(session, "go").await
}

fn crawl(url: &str) -> (&'static str, Value) {
    (CRAWL, json!({ "videoUrls": [url] }))
}

#[tokio::test]
async fn s3_12_one_turn_can_contain_all_steps_of_a_guide() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    let pictures = (SEARCH, json!({"count": 2}));
    let calls = [crawl(TOKYO), (BUILD, json!({})), pictures, (PAGE, json!({}))];
    let said = said(&server, &session, &calls).await;
    let made = said.output(PAGE);
    assert_eq!((&made["matched_image_count"], &made["block_count"]), (&json!(2), &json!(6)));
    let shown = travel.session(&session).await;
    assert_eq!(shown["status"], "COMPLETED", "{shown}");
    for step in [CRAWL, BUILD, SEARCH, PAGE] {
        assert!(!shown["state"]["toolOutputs"][step].is_null(), "{step}: {shown}");
    }
}

#[tokio::test]
async fn s3_12_pictures_belong_to_the_blocks_of_the_same_turn() {
    let server = Setup::travel().await.start().await;
    let session = server.travel().create().await;
    said(&server, &session, &[crawl(TOKYO), (BUILD, json!({}))]).await;
    let pictures = (SEARCH, json!({"count": 1}));
    let said = said(&server, &session, &[crawl(KITCHEN), (BUILD, json!({})), pictures]).await;
    let built = said.output(BUILD);
    let blocks = built["blocks"].as_array().unwrap();
    let pictured = &said.output(SEARCH)["images"][0]["block_id"];
    assert!(blocks.iter().any(|block| block["block_id"] == *pictured), "{pictured} of {built}");
}

#[tokio::test]
async fn s3_12_blocks_of_another_video_get_no_pictures() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    said(&server, &session, &[crawl(TOKYO), (BUILD, json!({}))]).await;
    let said = said(&server, &session, &[crawl(OSAKA), (SEARCH, json!({"count": 1}))]).await;
    assert!(said.tool_error(SEARCH).contains("call `build_travel_blocks`"), "{:#?}", said.chunks);
    assert!(server.requests_for("handbook_image_query_planning").is_empty());
    assert!(server.requests_on(UNSPLASH).is_empty());
    let outputs = travel.session(&session).await["state"]["toolOutputs"].clone();
    assert!(outputs[BUILD].is_null() && !outputs[CRAWL].is_null(), "{outputs}");
}
