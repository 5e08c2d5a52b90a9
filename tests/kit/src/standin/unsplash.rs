//! Unsplash: search for photographs.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use super::{
    call::{Call, is_key_accepted},
    reply::Reply,
};

/// A word of queries that have no results.
const NOTHING: &str = "hidden";

/// The message of the service when the hourly quota is exceeded.
const RATE_LIMIT: &str = "Rate Limit Exceeded";

/// Responds to a request of the API.
pub(super) fn answer(call: &Call, segments: &[&str]) -> Reply {
    let key = call.header("authorization").and_then(|text| text.strip_prefix("Client-ID "));
    if !is_key_accepted(key) {
        return refuse(StatusCode::UNAUTHORIZED, "OAuth error: The access token is invalid");
    }
    if call.header("accept-version").is_some_and(|version| version != "v1") {
        return refuse(StatusCode::BAD_REQUEST, "this version of the API does not exist");
    }
    let (rule, document) = match segments {
        ["search", "photos"] => match search(call) {
            Ok(found) => ("unsplash", found),
            Err(message) => return refuse(StatusCode::BAD_REQUEST, message),
        },
        ["photos", id, "download"] => {
            ("unsplash download", json!({"url": picture(call, id, "full")}))
        }
        _ => return refuse(StatusCode::NOT_FOUND, "Couldn't find Photo"),
    };
    let mut response = Json(document).into_response();
    let headers = response.headers_mut();
    headers.insert("x-ratelimit-limit", HeaderValue::from_static("50"));
    headers.insert("x-ratelimit-remaining", HeaderValue::from_static("49"));
    let link = format!("<{}{}?page=1>; rel=\"last\"", call.base_url(), call.path);
    if let Ok(link) = HeaderValue::from_str(&link) {
        headers.insert(header::LINK, link);
    }
    Reply { rule, response }
}

/// Returns an error in Unsplash's format. A rate limit is an error in plain text.
pub(super) fn error_response(status: StatusCode, message: &str) -> Response {
    if status == StatusCode::FORBIDDEN {
        return (status, RATE_LIMIT).into_response();
    }
    (status, Json(json!({ "errors": [message] }))).into_response()
}

fn refuse(status: StatusCode, message: &str) -> Reply {
    Reply { rule: "refuse", response: error_response(status, message) }
}

fn search(call: &Call) -> Result<Value, &'static str> {
    let query = call.parameter("query").unwrap_or_default().trim().to_lowercase();
    if query.is_empty() {
        return Err("query is missing");
    }
    let orientations = ["landscape", "portrait", "squarish"];
    if call.parameter("orientation").is_some_and(|wanted| !orientations.contains(&wanted)) {
        return Err("orientation is invalid");
    }
    if call.parameter("content_filter").is_some_and(|it| it != "low" && it != "high") {
        return Err("content_filter is invalid");
    }
    let results: Vec<Value> =
        if query.contains(NOTHING) { Vec::new() } else { vec![photo(call, &query)] };
    let count = results.len();
    Ok(json!({"total": count, "total_pages": count, "results": results}))
}

fn photo(call: &Call, query: &str) -> Value {
    let id = blake3::hash(query.as_bytes()).to_hex()[..11].to_owned();
    json!({
        "id": id,
        "width": 4000,
        "height": 3000,
        "color": "#c0a080",
        "blur_hash": "LEHV6nWB2yk8pyo0adR*.7kCMdnj",
        "description": null,
        "alt_description": query,
        "urls": {
            "raw": picture(call, &id, "raw"),
            "full": picture(call, &id, "full"),
            "regular": picture(call, &id, "regular"),
            "small": picture(call, &id, "small"),
            "thumb": picture(call, &id, "thumb"),
        },
        "links": {
            "self": format!("{}/photos/{id}", call.base_url()),
            "html": format!("https://unsplash.com/photos/{id}"),
            "download": format!("https://unsplash.com/photos/{id}/download"),
            "download_location": format!("{}/photos/{id}/download?ixid=standin", call.base_url()),
        },
        "user": {
            "id": "u1",
            "username": "jo",
            "name": "Jo Lens",
            "links": {"html": "https://unsplash.com/@jo"},
        },
    })
}

/// Returns the URL of an image at the stand-in. The real service has a separate host for images.
fn picture(call: &Call, id: &str, size: &str) -> String {
    format!("{}/photo-{id}?ixid=standin&fm=jpg&w={size}", call.base_url())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{answer, search};
    use crate::standin::call::Call;

    fn call(query: &[(&str, &str)]) -> Call {
        let mut call = Call::sample("GET", "/search/photos", &json!(null));
        call.query.extend(query.iter().map(|(key, value)| ((*key).into(), (*value).into())));
        call
    }

    #[test]
    fn photographs_match_their_query() {
        let found = search(&call(&[("query", "Tokyo Tower"), ("orientation", "landscape")]));
        let photo = &found.unwrap()["results"][0];
        assert_eq!(photo["alt_description"], "tokyo tower");
        assert!(photo["urls"]["regular"].as_str().unwrap().contains("/photo-"));
        assert_eq!(search(&call(&[("query", "Hidden Harbor")])).unwrap()["total"], 0);
        assert!(search(&call(&[])).is_err());
        assert!(search(&call(&[("query", "x"), ("orientation", "round")])).is_err());
    }

    #[test]
    fn keys_and_versions_are_checked() {
        let status = |key: &str, version: &'static str| {
            let mut call = call(&[("query", "x")]);
            call.headers.insert("authorization", key.parse().unwrap());
            call.headers.insert("accept-version", version.parse().unwrap());
            answer(&call, &["search", "photos"]).response.status().as_u16()
        };
        assert_eq!(status("Client-ID k", "v1"), 200);
        assert_eq!(status("Client-ID bad-key", "v1"), 401);
        assert_eq!(status("Bearer k", "v1"), 401);
        assert_eq!(status("Client-ID k", "v2"), 400);
    }
}
