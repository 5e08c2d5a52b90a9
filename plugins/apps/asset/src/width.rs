//! Full-width forms of ASCII characters, as Chinese input methods produce them.

/// Replaces full-width forms by ASCII characters.
pub(crate) fn narrow(text: &str) -> String {
    const OFFSET: u32 = 0xFEE0;
    let narrow = |c: char| match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - OFFSET).unwrap_or(c),
        '\u{3000}' => ' ',
        _ => c,
    };
    text.chars().map(narrow).collect()
}

#[cfg(test)]
mod tests {
    use super::narrow;

    #[test]
    fn only_the_character_width_changes() {
        assert_eq!(narrow("腾讯　ＡＢｃ：０７００．ＨＫ"), "腾讯 ABc:0700.HK");
        assert_eq!(narrow("BRK.B。"), "BRK.B。");
    }
}
