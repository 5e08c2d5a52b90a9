//! Text that a terminal displays without executing it.

use serde::Serialize;
use wattle_run::text::is_escaped;

/// Returns a text with control characters and invisible characters escaped, other than line breaks
/// and tabs. Such characters are written as `\u{1b}`.
pub fn printable(text: &str) -> String {
    let is_kept = |c: char| matches!(c, '\n' | '\t') || !is_escaped(c);
    replace(text, is_kept, |c| c.escape_default().to_string())
}

/// Returns a value as indented JSON that a terminal displays without executing it. JSON writes
/// only the control characters below U+0020 as escapes; the other characters that [`printable`]
/// escapes are `\u009b` here, so the text means the same value.
pub fn pretty_json(value: &impl Serialize) -> String {
    escape_json(&serde_json::to_string_pretty(value).unwrap_or_default())
}

/// Escapes JSON. A line break in JSON text is outside of its strings, and any other character to
/// escape is inside of one.
pub(super) fn escape_json(json: &str) -> String {
    let is_kept = |c: char| c == '\n' || !is_escaped(c);
    // None of the characters is above U+FFFF, where JSON needs two escapes.
    replace(json, is_kept, |c| format!("\\u{:04x}", u32::from(c)))
}

/// Replaces the characters of a text that are not kept.
fn replace(text: &str, is_kept: impl Fn(char) -> bool, escape: impl Fn(char) -> String) -> String {
    let mut replaced = String::with_capacity(text.len());
    for c in text.chars() {
        if is_kept(c) {
            replaced.push(c);
        } else {
            replaced.push_str(&escape(c));
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HOSTILE: &str = "a\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\r\u{200b}ö\n\tb";

    #[test]
    fn text_keeps_only_line_breaks_and_tabs() {
        let expected = "a\\u{1b}[2J\\u{9b}31m\\u{7f}\\u{202e}\\r\\u{200b}ö\n\tb";
        assert_eq!(printable(HOSTILE), expected);
    }

    #[test]
    fn json_is_the_same_value_without_control_characters() {
        let value = json!({ HOSTILE: [HOSTILE] });
        let text = pretty_json(&value);
        assert!(!text.contains(|c: char| c != '\n' && is_escaped(c)), "{text:?}");
        assert!(text.contains(r"\u009b31m\u007f\u202e"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
