//! Tests of crawled videos: the requests to Apify, and its error responses.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::travel::{APIFY, BROKEN, CHAT_MODEL, KYOTO, MISSING, SECRETS, TOKYO, Talk};

const CRAWL: &str = "crawl_youtube_videos";

/// Makes the model call these tools one after the other and then finish.
fn script(server: &TestServer, calls: &[(&str, Value)]) {
    let call = |(tool, arguments): &(&str, Value)| {
        let call = json!({"name": tool, "arguments": arguments});
        json!({ "tool_calls": [call] })
    };
    let contents = calls.iter().map(call).chain([json!("done")]).collect();
    let rule = FaultRule::new(Pattern::path(CHAT_MODEL), Fault::Script { contents });
    server.standin().fault(rule);
}

async fn said(server: &TestServer, calls: &[(&str, Value)]) -> (String, Talk) {
    script(server, calls);
    let travel = server.travel();
    let session = travel.create().await;
    let said = travel.chat(&session, "go").await;
    (session, said)
}

#[tokio::test]
async fn s3_17_the_actor_is_called_for_subtitles_with_a_secret_token() {
    let server = Setup::travel().await.start().await;
    let input = json!({"videoUrls": ["https://youtu.be/dQw4w9WgXcQ?t=1"], "userText": KYOTO});
    let (session, said) = said(&server, &[(CRAWL, input)]).await;
    let output = said.output(CRAWL);
    assert_eq!((&output["requestedUrls"], &output["count"]), (&json!([TOKYO, KYOTO]), &json!(2)));
    let entry = &server.requests_on(APIFY)[0];
    let asked = entry.body.as_ref().unwrap();
    assert_eq!(asked["startUrls"], json!([{"url": TOKYO}, {"url": KYOTO}]));
    assert_eq!((&asked["subtitlesLanguage"], &asked["maxResults"]), (&json!("en"), &json!(1)));
    assert_eq!(entry.query["token"], wattle_kit::standin::redact(SECRETS[0].1));
    let shown = [json!(said.chunks), server.travel().session(&session).await];
    let log = format!("{:?}", server.events(&session).await);
    assert!(shown.iter().all(|it| !it.to_string().contains(SECRETS[0].1)));
    assert!(!log.contains(SECRETS[0].1));
    assert!(output["videos"][1]["thumbnailUrl"].is_string(), "{output}");
}

#[tokio::test]
async fn s3_17_missing_videos_are_reported_to_the_model() {
    let server = Setup::travel().await.start().await;
    for (url, words) in [(MISSING, "no video found"), (BROKEN, "no video found; ")] {
        let (session, said) = said(&server, &[(CRAWL, json!({"videoUrls": [url]}))]).await;
        let error = said.tool_error(CRAWL);
        assert!(error.starts_with(words), "{error}");
        assert_eq!(said.text(), "done");
        let steps = server.travel().session(&session).await["steps"].clone();
        assert_eq!((&steps[0]["status"], steps.as_array().unwrap().len()), (&json!("ERROR"), 1));
    }
    let (_, said) = said(&server, &[(CRAWL, json!({"userText": "somewhere warm"}))]).await;
    assert!(said.tool_error(CRAWL).contains("no address"), "{:#?}", said.chunks);
    assert_eq!(server.requests_on(APIFY).len(), 2);
}

#[tokio::test]
async fn s3_17_errors_of_apify_are_reported_without_a_retry_or_the_token() {
    let server = Setup::travel().await.start().await;
    for status in [401, 402, 404, 408, 429, 500] {
        let fault = Fault::Status { status, retry_after: None, body: None };
        server.standin().fault(FaultRule::new(Pattern::path(APIFY), fault).times(1));
        let (_, said) = said(&server, &[(CRAWL, json!({"videoUrls": [TOKYO]}))]).await;
        let error = said.tool_error(CRAWL);
        assert!(error.contains(&format!("answered with status {status}")), "{error}");
        assert!(!error.contains("token="), "{error}");
    }
    for fault in [Fault::Garbage, Fault::Cut] {
        server.standin().fault(FaultRule::new(Pattern::path(APIFY), fault).times(1));
        let (_, said) = said(&server, &[(CRAWL, json!({"videoUrls": [TOKYO]}))]).await;
        assert!(!said.tool_error(CRAWL).is_empty(), "{:#?}", said.chunks);
    }
    assert_eq!(server.requests_on(APIFY).len(), 8, "no request is retried");
}

#[tokio::test]
async fn s3_12_steps_out_of_order_name_the_missing_step() {
    let server = Setup::travel().await.start().await;
    let calls = [("build_travel_blocks", json!({})), ("resolve_spot_coordinates", json!({}))];
    let (_, said) = said(&server, &calls).await;
    let error = said.tool_error("build_travel_blocks");
    assert!(error.contains("call `crawl_youtube_videos`"), "{error}");
    let error = said.tool_error("resolve_spot_coordinates");
    assert!(error.contains("call `build_travel_blocks`"), "{error}");
    assert_eq!(server.paid().len(), 3, "only the model of the conversation is called");
}

#[tokio::test]
async fn s3_24_a_guide_needs_a_crawled_video() {
    let server = Setup::travel().await.start().await;
    let calls = [
        (CRAWL, json!({"videoUrls": [TOKYO, KYOTO]})),
        ("build_travel_blocks", json!({"videoId": "unknown0000"})),
        ("build_travel_blocks", json!({"videoId": "kyotoTempl1"})),
        ("build_travel_blocks", json!({})),
    ];
    let (_, said) = said(&server, &calls).await;
    let error = said.tool_error("build_travel_blocks");
    assert!(error.contains("`unknown0000` was not crawled"), "{error}");
    let built: Vec<&Value> = said
        .of("tool-output-available")
        .into_iter()
        .map(|chunk| &chunk["output"])
        .filter(|output| output["blocks"].is_array())
        .collect();
    let titles: Vec<&Value> = built.iter().map(|output| &output["title"]).collect();
    assert_eq!(titles, [&json!("Kyoto temples in one day"), &json!("Tokyo food walk")]);
}
