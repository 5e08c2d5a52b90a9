//! Sanitizes failures of guests for logs, terminals, headers and metric labels.
//!
//! An error about a malformed failure would hide the failure. A code or a message that breaks the
//! rules is therefore cleaned, not rejected.

use serde_json::{Value, json};
use wattle_graph::failure::Failure;
use wattle_run::json::bounded::JsonBudget;
use wattle_run::json::check_depth;
use wattle_run::ports::sandbox::GuestError;

use crate::load::text;

/// Maximum length of a code, in characters. Programs compare codes, and metrics use them as labels.
const MAX_CODE_CHARS: usize = 64;

/// Maximum length of a message, in characters: some sentences, or a short trace.
const MAX_MESSAGE_CHARS: usize = 8_000;

/// Maximum size of details as JSON, in bytes. Events contain the failure, and every client that
/// reads the run receives them.
const MAX_DETAILS_BYTES: usize = 256 << 10;

/// The code that replaces a code without letters and digits.
const DEFAULT_CODE: &str = "failed";

/// Parses the details of a guest's failure. An error about the details would hide the failure.
/// Details that are not valid JSON, or that are nested too deeply for the event log, are therefore
/// kept as text. Details that are too large are replaced by their size.
pub(crate) fn parse_details(text: String) -> Value {
    if text.len() > MAX_DETAILS_BYTES {
        return omitted_details(text.len());
    }
    match JsonBudget::default().parse(&text) {
        Ok(details) if check_depth("the details", &details).is_ok() => details,
        _ => Value::String(text),
    }
}

fn omitted_details(bytes: usize) -> Value {
    json!({ "limit": "details", "bytes": bytes })
}

/// Returns the error of a guest call with the guest's failure sanitized.
pub(crate) fn sanitize_error(ended: GuestError) -> GuestError {
    match ended {
        GuestError::Failure(failure) => GuestError::Failure(sanitize_failure(failure)),
        GuestError::Trap(failure) => GuestError::Trap(sanitize_failure(failure)),
        GuestError::Limit(failure) => GuestError::Limit(sanitize_failure(failure)),
        GuestError::Host(failure) => GuestError::Host(sanitize_failure(failure)),
        GuestError::Unwound(unwind) => GuestError::Unwound(unwind),
    }
}

fn sanitize_failure(failure: Failure) -> Failure {
    let Failure { code, message, retryable, details } = failure;
    let details = details.map(|details| match details.to_string().len() {
        bytes if bytes > MAX_DETAILS_BYTES => omitted_details(bytes),
        _ => details,
    });
    Failure {
        code: sanitize_code(&code),
        message: text::sanitize(&message, MAX_MESSAGE_CHARS),
        retryable,
        details,
    }
}

/// Keeps ASCII letters, digits, `_`, `-`, `.` and `:` of a code, and replaces other characters by
/// `-`.
fn sanitize_code(code: &str) -> String {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    let word = |c| if is_good(c) { c } else { '-' };
    let cleaned: String = code.chars().take(MAX_CODE_CHARS).map(word).collect();
    if cleaned.chars().any(|c| c.is_ascii_alphanumeric()) {
        cleaned
    } else {
        DEFAULT_CODE.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use wattle_run::limit::JSON_DEPTH;

    use super::*;

    #[test]
    fn codes_are_sanitized() {
        for (code, expected) in [
            ("rate-limited", "rate-limited"),
            ("shop:no_stock.1", "shop:no_stock.1"),
            ("limit\r\nX", "limit--X"),
            ("l\u{456}mit", "l-mit"),
            ("", "failed"),
            ("\r\n", "failed"),
        ] {
            assert_eq!(sanitize_code(code), expected);
        }
        assert_eq!(sanitize_code(&"a".repeat(1_000)).len(), MAX_CODE_CHARS);
    }

    #[test]
    fn details_are_bounded_before_they_are_parsed() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(parse_details(r#"{"a":1}"#.to_owned()), json!({ "a": 1 }));
        // `serde_json` would parse the text in this field.
        let raw = r#"{"$serde_json::private::RawValue":"[1]"}"#;
        for kept in ["no json".to_owned(), nested(JSON_DEPTH + 1), raw.to_owned()] {
            assert_eq!(parse_details(kept.clone()), kept);
        }
        assert!(parse_details(nested(JSON_DEPTH)).is_array());
        let bytes = MAX_DETAILS_BYTES + 1;
        assert_eq!(parse_details(" ".repeat(bytes)), json!({ "limit": "details", "bytes": bytes }));
    }

    #[test]
    fn messages_and_details_are_bounded() {
        let failure = Failure::new("code", "\u{1b}[31mred\u{202e}\r\n".repeat(10_000))
            .with_details(json!("x".repeat(MAX_DETAILS_BYTES)));
        let cleaned = sanitize_failure(failure);
        assert_eq!(cleaned.message.chars().count(), MAX_MESSAGE_CHARS);
        assert!(cleaned.message.starts_with("[31mred\n[31mred\n"), "{}", &cleaned.message[..20]);
        assert_eq!(cleaned.details.unwrap()["limit"], "details");
    }
}
