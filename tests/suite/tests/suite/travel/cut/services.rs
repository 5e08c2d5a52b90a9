//! Tests in which the services for videos, places and pictures fail in each way.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern, google_quota};
use wattle_suite::travel::{APIFY, IMAGEN, NOMINATIM, TOKYO, UNSPLASH};

use super::{GENERATED, SEARCHED, Stage, guide, status};

/// Returns a response of status 200 with this body.
fn answer(name: &str, body: Value) -> (String, Fault) {
    (name.to_owned(), Fault::Status { status: 200, retry_after: None, body: Some(body) })
}

/// Unreadable responses of any service.
fn broken() -> [(String, Fault); 2] {
    [("a cut answer".to_owned(), Fault::Cut), ("garbage".to_owned(), Fault::Garbage)]
}

fn cases<const N: usize>(statuses: [u16; N]) -> Vec<(String, Fault)> {
    statuses.into_iter().map(status).chain(broken()).collect()
}

fn fault(stage: &Stage, path: &str, fault: &Fault) {
    stage.server.standin().fault(FaultRule::new(Pattern::path(path), fault.clone()));
}

#[tokio::test]
async fn s3_67_s3_09_a_failed_crawl_succeeds_later() {
    let stage = Stage::new(SEARCHED).await;
    let mut cases = cases([400, 401, 402, 404, 408, 429, 500, 503]);
    cases.push(answer("an item with an error", json!([{"url": TOKYO, "error": "it is private"}])));
    cases.push(answer("no items", json!([])));
    stage.clear();
    let session = stage.server.travel().create().await;
    for (number, (case, ordered)) in cases.iter().enumerate() {
        fault(&stage, APIFY, ordered);
        stage.fail(&session, stage.wish, Some("crawl_youtube_videos"), case).await;
        let asked = stage.server.requests_on(APIFY).len();
        assert_eq!(asked, number + 1, "{case}: the request is not retried");
        stage.server.standin().clear_faults();
    }
    stage.go_on(&session, "after all of them").await;
}

#[tokio::test]
async fn s3_27_without_a_geocoder_the_page_has_no_coordinates() {
    let stage = Stage::new(SEARCHED).await;
    // `travel::places` has the refusals of a request.
    let mut cases = cases([500]);
    cases.push(answer("nothing found", json!([])));
    let mut last = String::new();
    for (case, ordered) in cases {
        stage.clear();
        fault(&stage, NOMINATIM, &ordered);
        let (session, _) = stage.server.travel().make(stage.wish).await;
        let made = guide(&stage.server, &session).await;
        assert!(!made.page.contains("mlat=") && made.page.contains("<h2>Tokyo Tower"), "{case}");
        last = session;
    }
    stays(&stage, &last).await;
}

#[tokio::test]
async fn s3_31_without_photographs_the_pictures_are_generated() {
    let stage = Stage::new(SEARCHED).await;
    let (session, _) = stage.server.travel().make(&format!("AI pictures for {TOKYO}")).await;
    let painted = guide(&stage.server, &session).await.page;
    let mut cases = cases([403, 500]);
    cases.push(answer("no photographs", json!({"total": 0, "total_pages": 0, "results": []})));
    let (session, _) = stage.server.travel().make(stage.wish).await;
    for (case, ordered) in cases {
        stage.clear();
        fault(&stage, UNSPLASH, &ordered);
        let said = stage.server.travel().chat(&session, "please make new pictures").await;
        assert_eq!(said.tools(), ["search_image", "generate_handbook_html"], "{case}");
        let made = guide(&stage.server, &session).await;
        assert!(made.page == painted, "{case}: {}", made.page);
    }
    stays(&stage, &session).await;
}

/// Checks that a completed guide does not change when its services are available again.
async fn stays(stage: &Stage, session: &str) {
    let before = guide(&stage.server, session).await;
    stage.server.standin().clear_faults();
    stage.server.travel().chat(session, super::CONTINUE).await;
    before.check(&guide(&stage.server, session).await, "services that are available again");
}

/// Returns a failure of models for pictures of each kind: a refusal, a temporary one, a quota,
/// content that is withheld, and a broken response. The tests of the routes of models have all.
fn unable() -> [(String, Fault); 5] {
    let withheld = Fault::Withheld { reason: Some("it shows a crowd".to_owned()) };
    [
        status(403),
        status(503),
        ("a quota".to_owned(), google_quota("3600s")),
        ("filtered".to_owned(), withheld),
        ("a cut answer".to_owned(), Fault::Cut),
    ]
}

#[tokio::test]
async fn s3_32_s3_47_the_fallback_model_generates_the_pictures() {
    let stage = Stage::new(GENERATED).await;
    let (session, _) = stage.server.travel().make(stage.wish).await;
    for (case, ordered) in unable() {
        stage.clear();
        fault(&stage, IMAGEN, &ordered);
        let said = stage.server.travel().chat(&session, "2 AI pictures again").await;
        assert_eq!(said.tools(), ["generate_image", "generate_handbook_html"], "{case}");
        let made = guide(&stage.server, &session).await;
        let credit = made.page.replace("gemini-2.5-flash-image", "imagen-4.0-fast-generate-001");
        assert!(credit == stage.whole.page && credit != made.page, "{case}: {}", made.page);
    }
    stays(&stage, &session).await;
}

#[tokio::test]
async fn s3_31_s3_67_pictures_that_all_models_fail_to_generate_are_generated_later() {
    let stage = Stage::new(GENERATED).await;
    stage.clear();
    let session = stage.server.travel().create().await;
    for (case, ordered) in unable() {
        fault(&stage, IMAGEN, &ordered);
        fault(&stage, "/v1beta/models/gemini-2.5-flash-image*", &ordered);
        stage.fail(&session, stage.wish, Some("generate_image"), &case).await;
        stage.server.standin().clear_faults();
    }
    stage.go_on(&session, "after all of them").await;
}
