//! Sanitizes text of guests, which people and models read.

use wattle_run::text::is_invisible;

/// Truncates a string, and removes invisible characters and control characters other than line
/// breaks and tabs.
pub(crate) fn sanitize(text: &str, max_chars: usize) -> String {
    let allowed = |c: &char| matches!(c, '\n' | '\t') || !c.is_control() && !is_invisible(*c);
    text.chars().filter(allowed).take(max_chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_removed_and_long_texts_are_truncated() {
        assert_eq!(sanitize("a\x1b[31m\u{7}b\n\tc", 100), "a[31mb\n\tc");
        assert_eq!(sanitize("abcdef", 3), "abc");
        assert_eq!(sanitize("a\u{202e}b\u{200b}c\u{feff}", 100), "abc");
    }
}
