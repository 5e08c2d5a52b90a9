//! Tests of guides whose host is killed: the real binary is killed at each request, and the guide
//! continues by itself.

use serde_json::{Value, json};
use wattle_kit::standin::{Entry, Fault, FaultRule, Outcome, Pattern};
use wattle_suite::binary::{self, Served};
use wattle_suite::scene::Scene;
use wattle_suite::travel::{self, CHAT, NOMINATIM, SESSIONS};

use super::{GENERATED, Guide, SEARCHED, named, turns};

/// The number of places of the video that are looked up.
const LOOK_UPS: usize = 4;

/// Requests a guide in a new session, and returns the session.
async fn begin(scene: &Scene, server: &Served, wish: &str) -> String {
    let made = scene.post(server, SESSIONS, &json!({})).await.expect(201);
    let session = made["id"].as_str().unwrap();
    let parts = json!([{"type": "text", "text": wish}]);
    let message = json!({"id": "u1", "role": "user", "parts": parts});
    scene.post_in_vain(server, CHAT, &json!({"sessionId": session, "messages": [message]}));
    session.to_owned()
}

/// Waits for the end of a guide and returns it.
async fn end(scene: &Scene, server: &Served, session: &str, cut: &str) -> Guide {
    let path = format!("{SESSIONS}/{session}");
    let has_ended =
        |shown: &Value| !["IDLE", "RUNNING"].contains(&shown["status"].as_str().unwrap());
    let shown = scene.until(server, &path, has_ended).await;
    assert_eq!(shown["status"], "COMPLETED", "{cut}: {shown:#}");
    let page = scene.get(server, &format!("/api/guide/{session}")).await;
    Guide::of(&shown, &page, scene.standin.requests())
}

/// Holds the next matching request after `skip` others.
fn hold(scene: &Scene, on: Pattern, skip: usize) {
    let skip = u32::try_from(skip).unwrap();
    scene.standin.fault(FaultRule::new(on, Fault::Hang).skip(skip).times(1));
}

/// Waits for the held request.
async fn held(scene: &Scene) -> Entry {
    let is_held =
        |it: &Entry| it.fault.as_deref() == Some("hang") && it.outcome == Outcome::Pending;
    scene.standin.wait_for_request(is_held).await.unwrap()
}

/// Makes a guide whose every geocoder request is interrupted. Later guides use the cached places.
async fn killed_at_each_place(scene: &Scene, mut server: Served, wish: &str) -> (Served, Guide) {
    hold(scene, Pattern::path(NOMINATIM), 0);
    let session = begin(scene, &server, wish).await;
    for later in (0..LOOK_UPS).rev() {
        held(scene).await;
        if later > 0 {
            // The interrupted request is sent again, and the next one is held.
            hold(scene, Pattern::path(NOMINATIM), 1);
        }
        server = scene.kill_and_restart(server, None).await;
    }
    let guide = end(scene, &server, &session, "killed at each place").await;
    (server, guide)
}

async fn at_each_request(wish: &'static str, places: impl Fn(&Guide) -> Vec<usize>) {
    let scene = travel::scene().await;
    let server = binary::serve(&scene.workspace).await;
    let (mut server, first) = killed_at_each_place(&scene, server, wish).await;
    scene.standin.clear_faults();
    scene.standin.clear_requests();
    let session = begin(&scene, &server, wish).await;
    let whole = end(&scene, &server, &session, "not cut").await;
    assert!(first.page == whole.page && first.steps == whole.steps, "{}", first.page);
    for number in places(&whole) {
        scene.standin.clear_requests();
        hold(&scene, Pattern::any(), number);
        let session = begin(&scene, &server, wish).await;
        let cut = named(number, &held(&scene).await);
        server = scene.kill_and_restart(server, None).await;
        let made = end(&scene, &server, &session, &cut).await;
        whole.check(&made, &cut);
        let (asked, due) = (turns(&made.requests).len(), turns(&whole.requests).len());
        assert_eq!(asked, due, "{cut}: no turn is requested again");
    }
}

#[tokio::test]
async fn s3_09_a_guide_with_photographs_killed_at_any_request_continues() {
    at_each_request(SEARCHED, Guide::places).await;
}

#[tokio::test]
async fn s3_09_a_guide_with_generated_pictures_killed_at_any_request_continues() {
    at_each_request(GENERATED, Guide::places_of_pictures).await;
}
