//! Truncation of untrusted text.

/// Returns the first characters of a text.
pub(crate) fn head(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::head;

    #[test]
    fn s3_20_texts_are_cut_between_characters() {
        assert_eq!(head("\u{6771}\u{4eac}\u{1f35c}x", 3), "\u{6771}\u{4eac}\u{1f35c}");
        assert_eq!(head("ab", 2), "ab");
        assert_eq!(head("ab", 0), "");
    }
}
