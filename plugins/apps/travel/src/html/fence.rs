//! Removes the code fence that models put around a page, with the text before and after it.

/// The marker of a fence.
const FENCE: &str = "```";

/// Returns the text inside of the first fence with a document; the whole text if there is none.
pub(super) fn inside(text: &str) -> &str {
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.starts_with('<') {
        return text;
    }
    let mut rest = text;
    while let Some(at) = rest.find(FENCE) {
        let after = rest[at + FENCE.len()..].trim_start_matches('`');
        let word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let opened = after.trim_start_matches(word).trim_start();
        if opened.starts_with('<') {
            // A page may quote a fence, so the last fence closes.
            let end = opened.rfind(FENCE).unwrap_or(opened.len());
            return opened[..end].trim_end_matches('`').trim_end();
        }
        rest = after;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::inside;

    #[test]
    fn s3_35_a_fence_is_removed_with_the_text_around_it() {
        for text in [
            "<p>a</p>",
            "```html\n<p>a</p>\n```",
            "```\n<p>a</p>\n```\n",
            "Here is `<html>`, as you wished:\n\n```HTML\n<p>a</p>\n```\nEnjoy!",
            "```js\nx\n```\nand\n````html\n<p>a</p>\n````",
            "```html\n<p>a</p>",
            "\u{feff}```html <p>a</p>```",
        ] {
            assert_eq!(inside(text), "<p>a</p>", "{text}");
        }
    }

    #[test]
    fn text_without_a_fence_is_unchanged() {
        assert_eq!(inside("sorry"), "sorry");
        assert_eq!(inside("```\nno page\n```"), "```\nno page\n```");
        assert_eq!(inside("<p>```</p>"), "<p>```</p>");
    }
}
