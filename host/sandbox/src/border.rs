//! Sanitizes failures of guests for logs, terminals, headers and metric labels.
//!
//! An error about a malformed failure would hide the failure. A code or a message that breaks the
//! rules is therefore cleaned, not rejected.

use serde_json::json;
use wattle_graph::failure::Failure;
use wattle_run::ports::sandbox::Ended;

use crate::load::text;

/// Maximum length of a code, in characters. Programs compare codes, and metrics use them as labels.
const CODE_CHARS: usize = 64;

/// Maximum length of a message, in characters: some sentences, or a short trace.
const MESSAGE_CHARS: usize = 8_000;

/// Maximum size of details as JSON, in bytes. Events contain the failure, and every client that
/// reads the run receives them.
const DETAILS_BYTES: usize = 256 << 10;

/// Replaces a code without letters and digits.
const NO_CODE: &str = "failed";

/// Returns the error of a guest call with the guest's failure sanitized.
pub(crate) fn cleaned(ended: Ended) -> Ended {
    match ended {
        Ended::Failure(failure) => Ended::Failure(clean(failure)),
        Ended::Trap(failure) => Ended::Trap(clean(failure)),
        Ended::Limit(failure) => Ended::Limit(clean(failure)),
        Ended::Host(failure) => Ended::Host(clean(failure)),
        Ended::Unwound(unwind) => Ended::Unwound(unwind),
    }
}

fn clean(failure: Failure) -> Failure {
    let Failure { code, message, retryable, details } = failure;
    let details = details.map(|details| match details.to_string().len() {
        bytes if bytes > DETAILS_BYTES => json!({ "limit": "details", "bytes": bytes }),
        _ => details,
    });
    Failure { code: word(&code), message: text::clean(&message, MESSAGE_CHARS), retryable, details }
}

/// Keeps ASCII letters, digits, `_`, `-`, `.` and `:` of a code, and replaces other characters by
/// `-`.
fn word(code: &str) -> String {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    let word = |c| if is_good(c) { c } else { '-' };
    let cleaned: String = code.chars().take(CODE_CHARS).map(word).collect();
    if cleaned.chars().any(|c| c.is_ascii_alphanumeric()) { cleaned } else { NO_CODE.to_owned() }
}

#[cfg(test)]
mod tests {
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
            assert_eq!(word(code), expected);
        }
        assert_eq!(word(&"a".repeat(1_000)).len(), CODE_CHARS);
    }

    #[test]
    fn messages_and_details_are_bounded() {
        let failure = Failure::new("code", "\u{1b}[31mred\u{202e}\r\n".repeat(10_000))
            .with_details(json!("x".repeat(DETAILS_BYTES)));
        let cleaned = clean(failure);
        assert_eq!(cleaned.message.chars().count(), MESSAGE_CHARS);
        assert!(cleaned.message.starts_with("[31mred\n[31mred\n"), "{}", &cleaned.message[..20]);
        assert_eq!(cleaned.details.unwrap()["limit"], "details");
    }
}
