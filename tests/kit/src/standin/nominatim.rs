//! Nominatim: coordinates of places by name.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use super::{call::Call, reply::Reply};

/// Places by the words of the query, with latitude and longitude. A query finds a place only if it
/// has exactly these words: `Yanaka Ginza` alone is unknown. The last place has an invalid
/// latitude.
const PLACES: &[(&str, &str, &str)] = &[
    ("tokyo tower", "35.6585805", "139.7454329"),
    ("senso-ji temple", "35.7147651", "139.7966553"),
    ("yanaka ginza tokyo", "35.7275", "139.7648"),
    ("fushimi inari", "34.9671402", "135.7726717"),
    ("kinkaku-ji", "35.03937", "135.7292431"),
    ("dotonbori", "34.6686471", "135.5030983"),
    ("belem tower", "38.6915837", "-9.2159770"),
    ("fort eternity", "-91.5", "10.0"),
];

/// Default user agents of libraries, which the usage policy does not permit.
const LIBRARIES: [&str; 8] = [
    "reqwest",
    "python-requests",
    "curl",
    "axios",
    "node-fetch",
    "okhttp",
    "go-http-client",
    "undici",
];

/// Maximum number of results that may be requested.
const MAX_LIMIT: u32 = 50;

/// Responds to `GET /search`.
pub(super) fn answer(call: &Call) -> Reply {
    let agent = call.header("user-agent").unwrap_or_default().trim().to_lowercase();
    let is_library = LIBRARIES.iter().any(|library| agent.starts_with(library));
    if agent.is_empty() || is_library {
        return refuse(StatusCode::FORBIDDEN, "usage policy: send a User-Agent of your own");
    }
    if call.parameter("format").is_some_and(|format| format != "jsonv2" && format != "json") {
        return refuse(StatusCode::BAD_REQUEST, "Parameter 'format' must be one of: jsonv2, json");
    }
    let limit = call.parameter("limit").map_or(Ok(10), str::parse::<u32>);
    if !limit.is_ok_and(|limit| (1..=MAX_LIMIT).contains(&limit)) {
        return refuse(StatusCode::BAD_REQUEST, "Parameter 'limit' must be a number from 1 to 50.");
    }
    let query = call.parameter("q").unwrap_or_default();
    if query.trim().is_empty() {
        return refuse(StatusCode::BAD_REQUEST, "Nothing to search for.");
    }
    let wanted = words(query);
    let found = PLACES.iter().filter(|(name, ..)| *name == wanted);
    let places: Vec<Value> = found.map(|(_, lat, lon)| place(query, lat, lon)).collect();
    Reply { rule: "nominatim", response: Json(places).into_response() }
}

/// Returns an error in Nominatim's format.
pub(super) fn error_body(status: StatusCode, message: &str) -> Value {
    json!({"error": {"code": status.as_u16(), "message": message}})
}

fn refuse(status: StatusCode, message: &str) -> Reply {
    let response: Response = (status, Json(error_body(status, message))).into_response();
    Reply { rule: "refuse", response }
}

/// Normalizes a query: lower case, without commas.
fn words(query: &str) -> String {
    let plain = query.to_lowercase().replace(',', " ");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn place(query: &str, lat: &str, lon: &str) -> Value {
    json!({
        "place_id": 1,
        "licence": "Data © OpenStreetMap contributors, ODbL 1.0. http://osm.org/copyright",
        "osm_type": "way",
        "osm_id": 2,
        "lat": lat,
        "lon": lon,
        "category": "tourism",
        "type": "attraction",
        "place_rank": 30,
        "importance": 0.6,
        "addresstype": "tourism",
        "name": query,
        "display_name": format!("{query}, Stand-in"),
        "boundingbox": [lat, lat, lon, lon],
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::answer;
    use crate::standin::call::Call;

    fn status(agent: &str, query: &[(&str, &str)]) -> (u16, &'static str) {
        let mut call = Call::sample("GET", "/search", &json!(null));
        call.headers.insert("user-agent", agent.parse().unwrap());
        call.query.extend(query.iter().map(|(key, value)| ((*key).into(), (*value).into())));
        let reply = answer(&call);
        (reply.response.status().as_u16(), reply.rule)
    }

    #[test]
    fn the_usage_policy_is_enforced() {
        let query = [("q", "Tokyo Tower"), ("format", "jsonv2"), ("limit", "1")];
        assert_eq!(status("wattle-travel/0.1 (+me)", &query), (200, "nominatim"));
        assert_eq!(status("reqwest/0.12", &query).0, 403);
        assert_eq!(status("", &query).0, 403);
        assert_eq!(status("me", &[]).0, 400);
        assert_eq!(status("me", &[("q", "x"), ("limit", "51")]).0, 400);
        assert_eq!(status("me", &[("q", "x"), ("format", "pdf")]).0, 400);
    }
}
