//! Client for Nominatim: finds one place by its name.

use serde::Deserialize;
use serde_json::Value;
use wattle_plugin::http::{Request, Response};
use wattle_plugin::prelude::{Failure, code, settings};
use wattle_plugin::prompt::head;

use crate::block::Location;

/// Default base URL.
const BASE_URL: &str = "https://nominatim.openstreetmap.org";

/// Default `User-Agent`. The service refuses the names of HTTP libraries.
const USER_AGENT: &str = concat!("wattle-travel/", env!("CARGO_PKG_VERSION"));

/// Default time between two requests, in milliseconds. The service permits one request per second;
/// the rest covers the delay between taking a turn and sending.
const INTERVAL_MS: u32 = 1_100;

/// Maximum interval. Without it, a typing error could block every request forever.
const LONGEST_INTERVAL_MS: u32 = 10_000;

/// Timeout of a request.
const TIMEOUT_MS: u32 = 15_000;

/// Maximum number of characters of the service's response in a message.
const QUOTED_CHARS: usize = 200;

/// The service with its settings.
pub(super) struct Nominatim {
    base_url: String,
    user_agent: String,
    /// Milliseconds between two requests.
    pub(super) interval_ms: u32,
}

/// The result of a query.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// The place.
    Found(Location),
    /// There is no such place.
    Nothing,
    /// The service refuses further requests.
    Refused(String),
    /// The request failed.
    Failed(String),
}

/// A place in a response. Numbers are texts.
#[derive(Deserialize)]
struct Hit {
    lat: Value,
    lon: Value,
}

impl Nominatim {
    /// Creates a client from the settings.
    pub(super) fn of_settings() -> Result<Self, Failure> {
        let base_url = settings::text_or("nominatim_base_url", BASE_URL)?;
        let interval_ms = settings::get::<u32>("nominatim_interval_ms")?.unwrap_or(INTERVAL_MS);
        Ok(Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            user_agent: settings::text_or("nominatim_user_agent", USER_AGENT)?,
            interval_ms: interval_ms.min(LONGEST_INTERVAL_MS),
        })
    }

    /// Sends a query once, after a delay.
    ///
    /// # Errors
    ///
    /// Returns only `cancelled` and `denied`, with which every other query would fail too.
    pub(super) fn ask(&self, query: &str, delay_ms: u32) -> Result<Answer, Failure> {
        let request = Request::get(format!("{}/search", self.base_url))
            .query("q", query)
            .query("format", "jsonv2")
            .query("limit", "1")
            .query("accept-language", "en")
            .header("user-agent", &self.user_agent)
            .timeout_ms(TIMEOUT_MS)
            .delay_ms(delay_ms);
        match request.send() {
            Ok(response) => Ok(read(&response)),
            Err(failure) if matches!(failure.code.as_str(), code::CANCELLED | code::DENIED) => {
                Err(failure.context("find coordinates"))
            }
            Err(failure) => Ok(Answer::Failed(failure.message)),
        }
    }
}

fn read(response: &Response) -> Answer {
    let text = response.text();
    let refusal = || {
        let words = head(text.trim(), QUOTED_CHARS);
        format!("the geocoder answered with status {}: {words}", response.status)
    };
    match response.status {
        200..300 => found(&text).unwrap_or_else(|reason| Answer::Failed(reason.to_owned())),
        403 | 429 => Answer::Refused(refusal()),
        _ => Answer::Failed(refusal()),
    }
}

fn found(text: &str) -> Result<Answer, &'static str> {
    let hits: Vec<Hit> =
        serde_json::from_str(text).map_err(|_| "the geocoder's answer is no list of places")?;
    let Some(hit) = hits.first() else { return Ok(Answer::Nothing) };
    let place = degrees(&hit.lat, 90.0).zip(degrees(&hit.lon, 180.0));
    let (lat, lng) = place.ok_or("the geocoder's answer has no coordinates of this world")?;
    Ok(Answer::Found(Location { lat, lng }))
}

/// Parses a number of degrees within its range.
fn degrees(value: &Value, most: f64) -> Option<f64> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        value => value.as_f64()?,
    };
    (-most..=most).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::http::Response;

    use super::{Answer, read};
    use crate::block::Location;

    #[test]
    fn s3_25_responses_are_parsed_and_checked() {
        let at = |lat, lng| Answer::Found(Location { lat, lng });
        for (body, expected) in [
            (
                r#"[{"lat":"35.6585805","lon":"139.7454329","name":"x"}]"#,
                at(35.658_580_5, 139.745_432_9),
            ),
            (r#"[{"lat":"-90","lon":180},{"lat":"1","lon":"1"}]"#, at(-90.0, 180.0)),
            ("[]", Answer::Nothing),
        ] {
            assert_eq!(read(&Response::new(200, body)), expected);
        }
        for body in [
            r#"[{"lat":"91","lon":"0"}]"#,
            r#"[{"lat":"0","lon":"-180.1"}]"#,
            r#"[{"lat":"NaN","lon":"0"}]"#,
            r#"[{"lat":"inf","lon":"0"}]"#,
            r#"[{"lat":"north","lon":"0"}]"#,
            r#"[{"lat":null,"lon":"0"}]"#,
            r#"[{"name":"x"}]"#,
            r#"{"error":"x"}"#,
            "<html>",
            "",
        ] {
            assert!(matches!(read(&Response::new(200, body)), Answer::Failed(_)), "{body}");
        }
    }

    #[test]
    fn s3_27_a_refusal_is_distinguished_from_a_failure() {
        for status in [403, 429] {
            let answer = read(&Response::new(status, "blocked"));
            let told = format!("the geocoder answered with status {status}: blocked");
            assert_eq!(answer, Answer::Refused(told));
        }
        for status in [400, 404, 500, 503] {
            assert!(matches!(read(&Response::new(status, "x")), Answer::Failed(_)));
        }
    }
}
