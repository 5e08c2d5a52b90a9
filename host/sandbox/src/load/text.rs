//! Sanitizes text of guests, which people and models read.

/// Invisible characters that change how others are displayed: they turn the direction of text, or
/// have no width.
const INVISIBLE: &[std::ops::RangeInclusive<char>] = &[
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{2069}',
    '\u{feff}'..='\u{feff}',
];

/// Truncates a string, and removes invisible characters and control characters other than line
/// breaks and tabs.
pub(crate) fn sanitize(text: &str, max_chars: usize) -> String {
    let is_invisible = |c: &char| INVISIBLE.iter().any(|range| range.contains(c));
    let allowed = |c: &char| matches!(c, '\n' | '\t') || !c.is_control() && !is_invisible(c);
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
