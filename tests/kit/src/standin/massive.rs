//! The ticker search of Massive, with securities of the United States only.

use axum::{Json, http::StatusCode, response::IntoResponse as _};
use serde_json::{Value, json};

use super::{
    call::{Call, is_key_accepted},
    reply::Reply,
    securities::{SECURITIES, Security},
};

/// Default and maximum number of results.
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;

/// Responds to `GET /v3/reference/tickers`.
pub(super) fn answer(call: &Call) -> Reply {
    if !is_key_accepted(call.parameter("apiKey").or_else(|| call.bearer())) {
        let response = (StatusCode::UNAUTHORIZED, Json(error_body("Unknown API Key")));
        return Reply { rule: "refuse", response: response.into_response() };
    }
    let asked = call.parameter("limit").and_then(|limit| limit.parse().ok());
    let limit: usize = asked.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let cursor = call.parameter("cursor").and_then(|cursor| cursor.parse().ok());
    let offset: usize = cursor.unwrap_or(0);
    let search = call.parameter("search").unwrap_or_default();
    let found: Vec<&Security> = match call.parameter("active") {
        Some("false") => Vec::new(),
        _ => search_for(search),
    };
    let results: Vec<Value> = found.iter().skip(offset).take(limit).map(|s| record(s)).collect();
    let count = results.len();
    let mut document = json!({
        "results": results, "status": "OK", "request_id": "standin", "count": count,
    });
    if offset.saturating_add(limit) < found.len() {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("cursor", &(offset + limit).to_string())
            .append_pair("search", search)
            .append_pair("limit", &limit.to_string())
            .finish();
        document["next_url"] = json!(format!("{}{}?{query}", call.base_url(), call.path));
    }
    Reply { rule: "massive", response: Json(document).into_response() }
}

/// Returns an error in Massive's format.
pub(super) fn error_body(message: &str) -> Value {
    json!({"status": "ERROR", "request_id": "standin", "error": message})
}

/// Returns the securities whose ticker begins with `search` or whose name contains it, sorted by
/// ticker.
///
/// The service has English names only, so a Chinese search has no results.
fn search_for(search: &str) -> Vec<&'static Security> {
    let wanted = search.trim().to_lowercase();
    let mut found: Vec<&Security> = SECURITIES
        .iter()
        .filter(|security| {
            security.is_us()
                && (security.ticker.to_lowercase().starts_with(&wanted)
                    || security.name.to_lowercase().contains(&wanted))
        })
        .collect();
    // An exact match of the ticker comes first.
    found.sort_by_key(|security| (security.ticker.to_lowercase() != wanted, security.ticker));
    found
}

fn record(security: &Security) -> Value {
    json!({
        "ticker": security.ticker,
        "name": security.name,
        "market": "stocks",
        "locale": "us",
        "primary_exchange": security.exchange,
        "type": if security.name.contains("Depositary") { "ADRC" } else { "CS" },
        "active": true,
        "currency_name": security.currency,
        "last_updated_utc": "2025-01-01T00:00:00Z",
    })
}
