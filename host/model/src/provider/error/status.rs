//! The HTTP status that an error in a response represents.

use serde_json::Value;

/// JSON pointers to the HTTP status of an error, one for each dialect.
const STATUS_POINTERS: [&str; 8] = [
    "/error/code",
    "/error/status",
    "/error/status_code",
    "/code",
    "/status",
    "/statusCode",
    "/status_code",
    "/error_code",
];

/// JSON pointers to the kind of an error. A code is more specific than a type.
pub(super) const KIND_POINTERS: [&str; 3] = ["/error/code", "/error/type", "/code"];

/// Kinds of the error for an account without credit: those of OpenAI, Moonshot, Alibaba Cloud and
/// Zhipu, with the status of a rate limit or of an invalid request.
pub(super) const NO_CREDIT_KINDS: [&str; 4] =
    ["insufficient_quota", "exceeded_current_quota_error", "Arrearage", "1113"];

/// Returns the HTTP status that an error within a response with a success status represents.
pub(in crate::provider) fn status_of(body: &Value) -> Option<u16> {
    let status = |place: &&str| body.pointer(place).and_then(parse_status);
    let mut statuses = STATUS_POINTERS.iter().filter_map(status);
    let kind = |place: &&str| status_of_kind(body.pointer(place)?.as_str()?);
    statuses
        .find(|status| (400..600).contains(status))
        .or_else(|| KIND_POINTERS.iter().find_map(kind))
        .or_else(|| status_of_minimax(body))
}

/// Returns the HTTP status that the kind of an error represents.
fn status_of_kind(word: &str) -> Option<u16> {
    Some(match word {
        "invalid_request_error" => 400,
        // `InvalidApiKey` and `Throttling...` are codes of Alibaba Cloud.
        "authentication_error" | "invalid_api_key" | "InvalidApiKey" => 401,
        "billing_error" => 402,
        word if NO_CREDIT_KINDS.contains(&word) => 402,
        "permission_error" => 403,
        "not_found_error" | "model_not_found" => 404,
        "rate_limit_error" | "rate_limit_exceeded" => 429,
        word if word.starts_with("Throttling") => 429,
        "overloaded_error" => 529,
        _ => return None,
    })
}

/// Returns the HTTP status that an error code of MiniMax represents. Source: "Error codes" of
/// MiniMax's documentation.
fn status_of_minimax(body: &Value) -> Option<u16> {
    match body.pointer("/base_resp/status_code")?.as_u64()? {
        1002 => Some(429),
        1004 => Some(401),
        1008 => Some(402),
        _ => None,
    }
}

/// Returns the number in a status field, which some gateways write as a string.
fn parse_status(value: &Value) -> Option<u16> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64().and_then(|number| number.try_into().ok()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn status_of_an_error_in_a_response_is_found() {
        for (body, status) in [
            (json!({ "error": { "code": 503 } }), Some(503)),
            (json!({ "error": { "code": "429" } }), Some(429)),
            (json!({ "error": "bad key", "code": 401 }), Some(401)),
            (json!({ "status": 401, "message": "?" }), Some(401)),
            (json!({ "statusCode": 429, "message": "?" }), Some(429)),
            (json!({ "code": "InvalidApiKey", "message": "?" }), Some(401)),
            (json!({ "code": "Throttling.RateQuota", "message": "?" }), Some(429)),
            (json!({ "base_resp": { "status_code": 1008, "status_msg": "?" } }), Some(402)),
            (json!({ "base_resp": { "status_code": 0, "status_msg": "success" } }), None),
            (json!({ "code": 0, "msg": "success" }), None),
            (json!({ "code": 200, "status": "failed" }), None),
            (json!({ "type": "error", "error": { "type": "billing_error" } }), Some(402)),
            (json!({ "error": { "code": "1113", "message": "?" } }), Some(402)),
            (json!({ "code": "Arrearage", "message": "?" }), Some(402)),
            (
                json!({ "error": { "type": "invalid_request_error", "code": "invalid_api_key" } }),
                Some(401),
            ),
        ] {
            assert_eq!(status_of(&body), status, "{body}");
        }
    }
}
