//! The message in the body of an error.

use serde_json::Value;
use wattle_run::json::lenient;

/// JSON pointers to the message of an error, one for each dialect.
const MESSAGE_POINTERS: [&str; 6] =
    ["/error/message", "/message", "/error", "/detail", "/msg", "/base_resp/status_msg"];

/// JSON pointer to the body, or the text, with which the service behind OpenRouter reported the
/// error. The message of OpenRouter is then only "Provider returned error".
const UPSTREAM_POINTER: &str = "/error/metadata/raw";

/// Returns the error message in a document, if the document has one.
pub(in crate::provider) fn error_message(body: &Value) -> Option<&str> {
    let mut texts = MESSAGE_POINTERS.iter().filter_map(|field| body.pointer(field)?.as_str());
    texts.find(|text| !text.is_empty())
}

/// Returns the error message in a body, followed by that of the service behind a gateway; `None` if
/// the body has neither.
pub(super) fn full_message(body: &Value) -> Option<String> {
    let own = error_message(body).map(str::to_owned);
    match (own, upstream_message(body)) {
        (Some(own), Some(upstream)) => Some(format!("{own}: {upstream}")),
        (own, upstream) => own.or(upstream),
    }
}

/// Returns the error of a body. Google's endpoint for OpenAI's format wraps the error in an array.
pub(super) fn first_error(body: Value) -> Value {
    match body {
        Value::Array(errors) => errors.into_iter().next().unwrap_or_default(),
        body => body,
    }
}

fn upstream_message(body: &Value) -> Option<String> {
    let raw = body.pointer(UPSTREAM_POINTER)?;
    let text = raw.as_str().map(str::trim).filter(|text| !text.is_empty());
    let document = match text {
        Some(text) => lenient::parse(text).map(lenient::join_surrogates_in).unwrap_or_default(),
        None => raw.clone(),
    };
    let document = first_error(document);
    error_message(&document).or(text).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn message_of_the_service_behind_a_gateway_follows() {
        let upstream = json!({ "error": { "message": "too many images", "code": 400 } });
        let error = |message: &str, raw: Value| {
            let metadata = json!({ "raw": raw });
            json!({ "error": { "message": message, "metadata": metadata } })
        };
        let own = "Provider returned error";
        for (body, message) in [
            (error(own, json!(upstream.to_string())), Some(format!("{own}: too many images"))),
            (error(own, json!([upstream])), Some(format!("{own}: too many images"))),
            (error(own, upstream), Some(format!("{own}: too many images"))),
            (error(own, json!("m is busy\n")), Some(format!("{own}: m is busy"))),
            (error("", json!("m is busy")), Some("m is busy".to_owned())),
            (error(own, json!("")), Some(own.to_owned())),
            (error(own, json!(null)), Some(own.to_owned())),
            (json!({ "error": { "code": 400 } }), None),
        ] {
            assert_eq!(full_message(&body), message, "{body}");
        }
    }
}
