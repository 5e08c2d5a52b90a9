//! Text that a guest says of itself: shown to people and to models, so it is cut and cleaned.

/// Cuts a text and strips control characters other than line breaks and tabs.
pub(crate) fn clean(text: &str, max_chars: usize) -> String {
    let allowed = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(allowed).take(max_chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_go_and_long_texts_are_cut() {
        assert_eq!(clean("a\x1b[31m\u{7}b\n\tc", 100), "a[31mb\n\tc");
        assert_eq!(clean("abcdef", 3), "abc");
    }
}
