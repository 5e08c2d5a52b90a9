//! Untrusted text that people read: which characters are escaped, and an escaped form.

use std::fmt::{self, Display, Formatter, Write};
use std::ops::RangeInclusive;

/// Invisible characters that change how other characters are displayed: they turn the direction of
/// text, or have no width.
const INVISIBLE: &[RangeInclusive<char>] = &[
    '\u{61c}'..='\u{61c}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{2069}',
    '\u{feff}'..='\u{feff}',
];

/// Returns true if a character is invisible and changes how other characters are displayed.
pub fn is_invisible(c: char) -> bool {
    INVISIBLE.iter().any(|range| range.contains(&c))
}

/// Displays a value on one line, with control characters and invisible characters escaped. A line
/// break in a log message could otherwise begin a line that looks like one of the host, and a
/// terminal executes control sequences.
pub struct Escaped<T>(pub T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(EscapingWriter(f), "{}", self.0)
    }
}

/// Escapes the text that is written through this writer.
struct EscapingWriter<'a, 'f>(&'a mut Formatter<'f>);

impl Write for EscapingWriter<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for piece in text.split_inclusive(is_escaped) {
            let plain = piece.trim_end_matches(is_escaped);
            self.0.write_str(plain)?;
            for c in piece[plain.len()..].chars() {
                write!(self.0, "{}", c.escape_default())?;
            }
        }
        Ok(())
    }
}

/// Returns true if [`Escaped`] escapes a character: a control character, or an invisible one.
pub fn is_escaped(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn control_and_invisible_characters_are_escaped() {
        let text = "a\r\n2025-01-01 WARN forged\u{1b}[2J\u{9b}\t\u{202e}b\u{61c}\u{feff}";
        let expected = r"a\r\n2025-01-01 WARN forged\u{1b}[2J\u{9b}\t\u{202e}b\u{61c}\u{feff}";
        assert_eq!(Escaped(text).to_string(), expected);
        let fields = json!({ "a\u{7f}": "\n\u{200b}ö" });
        assert_eq!(Escaped(&fields).to_string(), r#"{"a\u{7f}":"\n\u{200b}ö"}"#);
    }

    proptest! {
        #[test]
        fn escaped_text_is_one_visible_line(text in any::<String>()) {
            let escaped = Escaped(&text).to_string();
            assert!(!escaped.contains(is_escaped), "{escaped:?}");
            assert!(text.contains(is_escaped) || escaped == text, "{escaped:?}");
        }
    }
}
