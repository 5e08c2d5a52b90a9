//! Cut by the death of the host: the real binary, killed at each request, goes on by itself.

use serde_json::{Value, json};
use wattle_kit::standin::{Entry, Fault, FaultRule, Outcome, Pattern};
use wattle_suite::binary::{self, Served};
use wattle_suite::place;
use wattle_suite::scene::Scene;
use wattle_suite::travel::{self, CHAT, NOMINATIM, SESSIONS};

use super::{GENERATED, Guide, SEARCHED, named, turns};

/// How often places of the video are looked up.
const LOOK_UPS: usize = 4;

async fn scene() -> Scene {
    Scene::new(|place, standin| {
        travel::put(place);
        let mut config = travel::config::configuration(standin);
        // The page comes back after the server does.
        config.replace("apps.travel.settings.disconnect_grace_ms", 60_000);
        [place::base_toml(standin), config.to_string()].concat()
    })
    .await
}

/// Asks for a guide in a new session, and gives the session.
async fn begin(scene: &Scene, server: &Served, wish: &str) -> String {
    let made = scene.post(server, SESSIONS, &json!({})).await.expect(201);
    let session = made["id"].as_str().unwrap();
    let parts = json!([{"type": "text", "text": wish}]);
    let message = json!({"id": "u1", "role": "user", "parts": parts});
    scene.post_in_vain(server, CHAT, &json!({"sessionId": session, "messages": [message]}));
    session.to_owned()
}

/// Waits for the end of a guide.
async fn end(scene: &Scene, server: &Served, session: &str, cut: &str) -> Guide {
    let path = format!("{SESSIONS}/{session}");
    let has_ended =
        |shown: &Value| !["IDLE", "RUNNING"].contains(&shown["status"].as_str().unwrap());
    let shown = scene.until(server, &path, has_ended).await;
    assert_eq!(shown["status"], "COMPLETED", "{cut}: {shown:#}");
    let page = scene.get(server, &format!("/api/guide/{session}")).await;
    Guide::of(&shown, &page, scene.standin.requests())
}

/// Holds the next request that fits, after so many.
fn hold(scene: &Scene, on: Pattern, skip: usize) {
    let skip = u32::try_from(skip).unwrap();
    scene.standin.fault(FaultRule::new(on, Fault::Hang).skip(skip).times(1));
}

/// Waits for the request that is held.
async fn held(scene: &Scene) -> Entry {
    let is_held =
        |it: &Entry| it.fault.as_deref() == Some("hang") && it.outcome == Outcome::Pending;
    scene.standin.wait_for_request(is_held).await.unwrap()
}

/// Makes a guide whose every look-up of a place is cut; later ones know the places.
async fn killed_at_each_place(scene: &Scene, mut server: Served, wish: &str) -> (Served, Guide) {
    hold(scene, Pattern::path(NOMINATIM), 0);
    let session = begin(scene, &server, wish).await;
    for later in (0..LOOK_UPS).rev() {
        held(scene).await;
        if later > 0 {
            // The one that was cut is sent again; the next one is held.
            hold(scene, Pattern::path(NOMINATIM), 1);
        }
        server = scene.kill_and_restart(server, None).await;
    }
    let guide = end(scene, &server, &session, "killed at each place").await;
    (server, guide)
}

async fn at_each_request(wish: &'static str, places: impl Fn(&Guide) -> Vec<usize>) {
    let scene = scene().await;
    let server = binary::serve(&scene.place).await;
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
        assert_eq!(asked, due, "{cut}: no turn is asked for again");
    }
}

#[tokio::test]
async fn s3_09_killed_at_any_request_a_guide_with_photographs_goes_on() {
    at_each_request(SEARCHED, Guide::places).await;
}

#[tokio::test]
async fn s3_09_killed_at_any_request_from_its_made_pictures_on_a_guide_goes_on() {
    at_each_request(GENERATED, Guide::places_of_pictures).await;
}
