//! Requests to the geocoder, and the cache of their results.

use std::cell::Cell;
use std::rc::Rc;

use wattle_plugin::http::{Request, Response};
use wattle_plugin::prelude::Failure;
use wattle_plugin::testing::FakeHost;

use super::Geocoder;
use crate::block::Location;
use crate::testing::geocode_tables;

const TOWER: Location = Location { lat: 35.5, lng: 139.5 };

/// Response of the service for the tower.
const KNOWN: &str = r#"[{"lat":"35.5","lon":"139.5"}]"#;

#[expect(clippy::unnecessary_wraps, reason = "the return type of a fake service")]
fn answer(status: u16, body: &str) -> Result<Response, Failure> {
    Ok(Response::new(status, body))
}

/// Returns a host with a service that knows only the tower.
fn host() -> FakeHost {
    geocode_tables(FakeHost::new())
        .http(|request| answer(200, if request.url.contains("q=Tower&") { KNOWN } else { "[]" }))
}

fn locate(host: &FakeHost, queries: &[&str]) -> Vec<Option<Location>> {
    host.run(|| {
        let mut geocoder = Geocoder::of_settings().unwrap();
        queries.iter().map(|query| geocoder.locate(query).unwrap()).collect()
    })
}

fn delays(host: &FakeHost) -> Vec<u32> {
    host.http_requests().iter().map(Request::delay).collect()
}

#[test]
fn s3_26_requests_follow_the_documentation_of_the_service() {
    let host = host().setting("nominatim_base_url", "http://osm.test/");
    assert_eq!(locate(&host, &["Tower"]), [Some(TOWER)]);
    let request = &host.http_requests()[0];
    assert_eq!(
        request.url,
        "http://osm.test/search?q=Tower&format=jsonv2&limit=1&accept-language=en"
    );
    assert_eq!(request.timeout_ms, Some(15_000));
    let agent = ("user-agent".to_owned(), "wattle-travel/0.1.0".to_owned());
    assert!(request.headers.contains(&agent));
}

#[test]
fn s3_27_requests_are_more_than_a_second_apart() {
    let host = host();
    locate(&host, &["Tower", "Temple", "Market"]);
    assert_eq!(delays(&host), [0, 1_100, 2_200]);
    host.advance_ms(2_500);
    locate(&host, &["Garden"]);
    host.advance_ms(60_000);
    locate(&host, &["Lake"]);
    assert_eq!(delays(&host)[3..], [800, 0]);
}

/// Hosts apply the setting of `app.toml`, not the default.
#[test]
fn s3_27_shipped_interval_is_more_than_a_second() {
    let mut lines = include_str!("../../app.toml").lines();
    let shipped = lines.find_map(|line| line.strip_prefix("nominatim_interval_ms = ")).unwrap();
    let host = host().setting("nominatim_interval_ms", shipped.parse::<u32>().unwrap());
    locate(&host, &["Tower", "Temple"]);
    assert!(delays(&host)[1] > 1_000, "{shipped}");
}

#[test]
fn s3_27_all_runs_share_the_turns_up_to_the_longest_wait() {
    let host = host();
    let queries: Vec<String> = (0..14).map(|n| format!("Place {n}")).collect();
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    locate(&host, &queries);
    assert_eq!(delays(&host).len(), 10);
    assert_eq!(delays(&host).last(), Some(&9_900));
    assert!(host.logged()[0].message.contains("too many other requests"));
    assert_eq!(locate(&host, &["Tower"]), [None], "another run cannot push in");
    host.advance_ms(9_900);
    assert_eq!(locate(&host, &["Tower"]), [Some(TOWER)]);
}

#[test]
fn s3_27_equal_queries_are_sent_once() {
    let host = host();
    let found = locate(&host, &["Tower", "  tower ", "TOWER", "Nowhere", "nowhere", ""]);
    assert_eq!(found, [Some(TOWER), Some(TOWER), Some(TOWER), None, None, None]);
    assert_eq!(host.http_requests().len(), 2);
    assert_eq!(locate(&host, &["Tower", "Nowhere"]), [Some(TOWER), None]);
    assert_eq!(host.http_requests().len(), 2);
}

#[test]
fn cached_results_expire() {
    let host = host();
    locate(&host, &["Tower", "Nowhere"]);
    host.advance_ms(2 * 86_400_000);
    locate(&host, &["Tower", "Nowhere"]);
    assert_eq!(host.http_requests().len(), 3, "a place may be on the map by now");
    for _ in 0..3 {
        host.advance_ms(40 * 86_400_000);
    }
    locate(&host, &["Tower"]);
    assert_eq!(host.http_requests().len(), 4);
}

#[test]
fn s3_27_failures_are_not_cached() {
    type Fail = fn() -> Result<Response, Failure>;
    let failures: [(&str, Fail); 4] = [
        ("a failure", || answer(503, "busy")),
        ("a refusal", || answer(429, "blocked")),
        ("garbage", || answer(200, "<html>")),
        ("no response", || Err(Failure::timeout("silent"))),
    ];
    for (case, fail) in failures {
        let is_up = Rc::new(Cell::new(false));
        let up = Rc::clone(&is_up);
        let host = geocode_tables(FakeHost::new())
            .http(move |_| if up.get() { answer(200, KNOWN) } else { fail() });
        assert_eq!(locate(&host, &["Tower", "tower"]), [None, None], "{case}");
        assert_eq!(host.http_requests().len(), 1, "{case}: not twice in one call");
        is_up.set(true);
        assert_eq!(locate(&host, &["Tower"]), [Some(TOWER)], "{case}");
    }
}

#[test]
fn unavailable_service_gets_no_further_requests() {
    let host = geocode_tables(FakeHost::new()).http(|_| Err(Failure::timeout("silent")));
    assert_eq!(locate(&host, &["a1", "b2", "c3", "d4", "e5"]), [None; 5]);
    assert_eq!(host.http_requests().len(), 3);
}

#[test]
fn s3_27_after_a_refusal_only_the_cache_is_used() {
    for status in [403, 429] {
        let host = geocode_tables(FakeHost::new()).http(move |request| {
            if request.url.contains("Tower") {
                answer(200, KNOWN)
            } else {
                answer(status, "blocked")
            }
        });
        locate(&host, &["Tower"]);
        assert_eq!(locate(&host, &["a1", "b2", "Tower"]), [None, None, Some(TOWER)]);
        assert_eq!(host.http_requests().len(), 2);
    }
}

#[test]
fn missing_grant_and_cancelled_run_are_failures() {
    for code in ["denied", "cancelled"] {
        let host = geocode_tables(FakeHost::new()).http(move |_| Err(Failure::new(code, "no")));
        let failure = host.run(|| Geocoder::of_settings()?.locate("Tower")).unwrap_err();
        assert_eq!((failure.code.as_str(), host.http_requests().len()), (code, 1));
    }
}

#[test]
fn interval_is_configurable() {
    let host = host().setting("nominatim_interval_ms", 0);
    locate(&host, &["Tower", "Temple"]);
    assert_eq!(delays(&host), [0, 0]);
}
