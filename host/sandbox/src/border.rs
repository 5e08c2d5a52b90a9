//! What a guest says of its own failure, made fit for logs, terminals, headers and metric labels.
//!
//! A failure is kept whatever it looks like, since it must not be hidden by another. So a code or a
//! message that breaks the rule is cleaned, not refused.

use serde_json::json;
use wattle_graph::failure::Failure;
use wattle_run::ports::sandbox::Ended;

use crate::load::text;

/// Characters of a code: a word for programs.
const CODE_CHARS: usize = 64;

/// Characters of a message: some sentences, or a short trace.
const MESSAGE_CHARS: usize = 8_000;

/// Bytes of details as JSON. A failure is a part of events, which everybody who follows a run gets.
const DETAILS_BYTES: usize = 256 << 10;

/// In place of a code that has no character of a word.
const NO_CODE: &str = "failed";

/// Why a call ended, with the guest's words cleaned.
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

/// A code of ASCII letters, digits, `_`, `-`, `.` and `:`; what else there is becomes `-`.
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
    fn codes_are_words() {
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
