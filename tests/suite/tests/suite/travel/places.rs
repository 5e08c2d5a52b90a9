//! Tests of coordinates: how often the geocoder is called, and what happens when it fails.

use serde_json::json;
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::travel::{KYOTO, NOMINATIM, OSAKA, TOKYO};

const RESOLVE: &str = "resolve_spot_coordinates";

/// Returns the queries to the geocoder, in order.
fn queries(server: &TestServer) -> Vec<String> {
    let entries = server.requests_on(NOMINATIM);
    entries.into_iter().map(|entry| entry.query["q"].clone()).collect()
}

fn fault(server: &TestServer, fault: Fault, times: u32) {
    server.standin().fault(FaultRule::new(Pattern::path(NOMINATIM), fault).times(times));
}

fn status(status: u16) -> Fault {
    Fault::Status { status, retry_after: None, body: None }
}

/// The application's own tests have the default, which is more than a second.
#[tokio::test]
async fn s3_27_requests_are_apart_in_all_sessions_together() {
    let setup = Setup::travel().await;
    let fast = "nominatim_interval_ms = 20";
    let server = setup.replace(fast, "nominatim_interval_ms = 400").start().await;
    let travel = server.travel();
    let (tokyo, osaka) = tokio::join!(travel.make(TOKYO), travel.make(OSAKA));
    for (_, said) in [&tokyo, &osaka] {
        assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    }
    let entries = server.requests_on(NOMINATIM);
    assert_eq!(entries.len(), 6, "four for Tokyo, two for Osaka");
    let mut times: Vec<u64> = entries.iter().map(|entry| entry.at_ms).collect();
    times.sort_unstable();
    for pair in times.windows(2) {
        // A request can take longer to arrive than the next one.
        assert!(pair[1] - pair[0] >= 300, "{times:?}");
    }
    let agent = "wattle-suite/1.0 (+https://example.com/contact)";
    assert!(entries.iter().all(|entry| entry.headers["user-agent"] == agent), "{entries:?}");
    assert!(entries.iter().all(|entry| entry.query["limit"] == "1"), "{entries:?}");
}

#[tokio::test]
async fn s3_27_results_are_cached_for_all_sessions() {
    let server = Setup::travel().await.start().await;
    let (_, first) = server.travel().make(OSAKA).await;
    let (_, second) = server.travel().make(OSAKA).await;
    assert_eq!(first.output(RESOLVE), second.output(RESOLVE));
    assert_eq!(queries(&server), ["Dotonbori", "Hidden Lantern Alley"], "unknown places as well");
}

#[tokio::test]
async fn s3_27_a_guide_is_made_without_a_geocoder_that_rejects_requests() {
    for refusal in [403, 429] {
        let server = Setup::travel().await.start().await;
        fault(&server, status(refusal), 1);
        let (_, said) = server.travel().make(TOKYO).await;
        let resolved = said.output(RESOLVE);
        assert_eq!(resolved["unresolved_count"], 3, "{resolved}");
        assert_eq!(queries(&server).len(), 1);
        assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    }
}

#[tokio::test]
async fn s3_25_a_failed_search_is_repeated_with_the_place_of_the_video() {
    for failure in [status(500), Fault::Garbage, Fault::Cut] {
        let server = Setup::travel().await.start().await;
        fault(&server, failure, 1);
        let (_, said) = server.travel().make(KYOTO).await;
        let asked = queries(&server);
        assert_eq!(asked[..2], ["Fushimi Inari", "Fushimi Inari Kyoto"], "{asked:?}");
        let resolved = said.output(RESOLVE);
        assert_eq!(resolved["spots_with_coordinates"][0]["title"], "Kinkaku-ji", "{resolved}");
    }
}

#[tokio::test]
async fn s3_27_coordinates_out_of_range_are_ignored() {
    let server = Setup::travel().await.start().await;
    let nowhere = json!([{"lat": "-91.5", "lon": "10"}]);
    let fault = Fault::Status { status: 200, retry_after: None, body: Some(nowhere) };
    server.standin().fault(FaultRule::new(Pattern::path(NOMINATIM), fault));
    let (_, said) = server.travel().make(OSAKA).await;
    let resolved = said.output(RESOLVE);
    assert_eq!(
        (&resolved["resolved_count"], &resolved["unresolved_count"]),
        (&json!(0), &json!(2))
    );
}
