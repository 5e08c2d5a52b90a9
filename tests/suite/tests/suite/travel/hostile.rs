//! Tests of the page of a guide in a real browser: a normal page, and a page that contains an
//! attack.

use serde_json::{Value, json};
use wattle_kit::need;
use wattle_suite::browser::at_a_browser;
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::travel::{SESSIONS, TOKYO};

/// The program that controls the browser.
const PROGRAM: &str = "hostile.js";

/// Known ways to run a script in a page, around a picture at `{{picture}}`. Each of them sets
/// `ran`.
const HOSTILE: &str = include_str!("hostile.html");

/// Makes a guide with generated pictures. Returns its session and the address of the first picture.
async fn made(server: &TestServer) -> (String, String) {
    let travel = server.travel();
    let session = travel.create().await;
    let said = travel.chat(&session, &format!("{TOKYO} with AI pictures")).await;
    let images = said.output("generate_image");
    let picture = images["images"][0]["image_url"].as_str();
    let picture = picture.unwrap_or_else(|| panic!("{images} of {:?}", said.tools())).to_owned();
    (session, picture)
}

/// Returns the address of a guide, with the address of the services whose pictures it shows.
fn address(server: &TestServer, session: &str) -> String {
    let standin = &server.standin().base_url;
    server.url(&format!("/api/guide/{session}?standin={standin}"))
}

/// Saves a page like the editor, and returns the stored page.
async fn save(server: &TestServer, session: &str, html: &str) -> String {
    let path = format!("{SESSIONS}/{session}/state");
    let body = json!({ "handbookHtml": html });
    let kept: Value = server.travel().send("PATCH", &path, Some(&body)).await.expect(200);
    assert!(kept["handbookHtml"].is_string(), "{kept}");
    let page = server.travel().guide(session).await.expect(200);
    page.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn s3_33_s3_61_a_guide_fits_both_widths_and_shows_its_pictures() {
    let server = Setup::travel().await.start().await;
    let (session, _) = made(&server).await;
    need!(at_a_browser(PROGRAM, "guide", &address(&server, &session)).await);
}

#[tokio::test]
async fn s3_62_a_page_with_an_attack_runs_no_script() {
    let server = Setup::travel().await.start().await;
    let (session, picture) = made(&server).await;
    let page = save(&server, &session, &HOSTILE.replace("{{picture}}", &picture)).await;
    assert!(page.contains("Watch Origin Video") && page.contains(&picture), "{page}");
    assert!(!page.contains("<script") && !page.contains("javascript:"), "{page}");
    need!(at_a_browser(PROGRAM, "hostile", &address(&server, &session)).await);
}

#[tokio::test]
async fn s3_39_saving_a_page_again_does_not_change_it() {
    let server = Setup::travel().await.start().await;
    let (session, picture) = made(&server).await;
    let travel = server.travel();
    let page = travel.guide(&session).await.expect(200);
    let page = page.as_str().unwrap();
    assert_eq!(save(&server, &session, page).await, page);
    let once = save(&server, &session, &HOSTILE.replace("{{picture}}", &picture)).await;
    assert_eq!(save(&server, &session, &once).await, once);
}
