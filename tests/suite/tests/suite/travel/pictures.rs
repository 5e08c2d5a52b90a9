//! Tests of the sources of pictures when a source is unavailable, and of what is stored.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::travel::{CHAT_MODEL, IMAGEN, TOKYO, UNSPLASH, working_on};

const SEARCH: &str = "search_image";

/// The path where the use of a photograph is reported to Unsplash.
const USED: &str = "/photos/*";

fn status(status: u16) -> Fault {
    Fault::Status { status, retry_after: None, body: None }
}

/// Returns the source of each picture.
fn sources(output: &Value) -> Vec<&str> {
    let images = output["images"].as_array().unwrap_or_else(|| panic!("{output}"));
    images.iter().map(|image| image["source"].as_str().unwrap()).collect()
}

/// Makes a guide with two pictures that are searched for.
async fn two_pictures(server: &TestServer) -> (String, wattle_suite::travel::Talk) {
    let travel = server.travel();
    let session = travel.create().await;
    let said = travel.chat(&session, &format!("2 pictures for {TOKYO}")).await;
    (session, said)
}

#[tokio::test]
async fn s3_30_requests_to_unsplash_follow_its_rules() {
    let server = Setup::travel().await.start().await;
    let (_, said) = two_pictures(&server).await;
    let found = said.output(SEARCH);
    assert_eq!(sources(&found), ["unsplash", "unsplash"]);
    let image = &found["images"][0];
    assert_eq!(image["credit"], "Photo by Jo Lens on Unsplash");
    assert!(image["source_page"].as_str().unwrap().starts_with("https://unsplash.com/photos/"));
    let asked = server.requests_on(UNSPLASH);
    assert_eq!(asked.len(), 2);
    for (name, value) in
        [("page", "1"), ("per_page", "1"), ("orientation", "landscape"), ("content_filter", "high")]
    {
        assert_eq!(asked[0].query[name], value);
    }
    assert_eq!(server.requests_on(USED).len(), 2, "the use of photographs is reported");
    assert!(server.requests_on(IMAGEN).is_empty());
}

#[tokio::test]
async fn s3_29_s3_31_pictures_are_generated_when_unsplash_fails() {
    let server = Setup::travel().await.start().await;
    let (session, _) = two_pictures(&server).await;
    for fault in [status(403), status(429), status(401), status(500), Fault::Garbage] {
        server.standin().clear_faults();
        server.standin().clear_requests();
        server.standin().fault(FaultRule::new(Pattern::path(UNSPLASH), fault.clone()));
        let said = server.travel().chat(&session, "please make 2 new pictures").await;
        let found = said.output(SEARCH);
        assert_eq!(found["mode"], "imagen", "{fault:?}");
        assert_eq!(sources(&found), ["imagen", "imagen"], "{fault:?}");
        assert_eq!(server.requests_on(UNSPLASH).len(), 2, "{fault:?}: no request is repeated");
        assert!(server.requests_on(USED).is_empty());
        assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    }
}

#[tokio::test]
async fn s3_31_unsplash_receives_no_requests_when_disabled() {
    let off = "disconnect_grace_ms = 0\nunsplash_enabled = false";
    let setup = Setup::travel().await.replace("disconnect_grace_ms = 0", off);
    let server = setup.start().await;
    let (_, said) = two_pictures(&server).await;
    assert_eq!(sources(&said.output(SEARCH)), ["imagen", "imagen"]);
    assert!(server.requests_on(UNSPLASH).is_empty());
}

#[tokio::test]
async fn s3_31_pictures_are_generated_without_a_key_for_unsplash() {
    let setup = Setup::travel_with(|config| {
        config.remove("secrets.UNSPLASH_ACCESS_KEY").unwrap();
    });
    let server = setup.await.start().await;
    let (_, said) = two_pictures(&server).await;
    assert_eq!(sources(&said.output(SEARCH)), ["imagen", "imagen"]);
    assert!(server.requests_on(UNSPLASH).is_empty());
}

#[tokio::test]
async fn s3_33_the_model_receives_no_picture_data_and_no_page() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    let said = travel.chat(&session, &format!("2 AI pictures for {TOKYO}")).await;
    assert_eq!(sources(&said.output("generate_image")).len(), 2);
    travel.chat(&session, "Thank you!").await;
    for entry in server.requests_on(CHAT_MODEL) {
        let body = entry.body.map(|body| body.to_string()).unwrap_or_default();
        for part in ["base64", "iVBOR", "<body", "<h2>"] {
            assert!(!body.contains(part), "{part} in {body}");
        }
    }
    let kept = travel.session(&session).await.to_string();
    assert!(!kept.contains("iVBOR") && !kept.contains("base64"));
}

#[tokio::test]
async fn s3_36_an_invalid_page_is_requested_again() {
    let server = Setup::travel().await.start().await;
    let none = Fault::Content { text: "Sorry, <p>no page</p> today".to_owned() };
    let rule = FaultRule::new(working_on("handbook_html_generation"), none);
    server.standin().fault(rule.times(1));
    let (session, said) = two_pictures(&server).await;
    let page = said.output("generate_handbook_html");
    assert!(page["generator_model"].as_str().unwrap().ends_with("(attempts=2)"), "{page}");
    assert_eq!(page["preview_url"], format!("/api/guide/{session}"));
    assert_eq!((&page["image_count"], &page["matched_image_count"]), (&json!(2), &json!(2)));
}
