//! Distortions of a response as a whole.

/// Adds sentences before and after the content.
pub(super) fn with_prose(content: &str) -> String {
    if content.is_empty() {
        return "Let me take care of that for you.".to_owned();
    }
    format!(
        "Sure! Here is what you asked for:\n\n{content}\n\nLet me know if you need anything else."
    )
}

/// Wraps JSON or HTML in a code fence. Plain text is unchanged.
pub(super) fn fenced(content: &str) -> String {
    let language = match content.trim_start().chars().next() {
        Some('{' | '[') => "json",
        Some('<') => "html",
        _ => return content.to_owned(),
    };
    format!("```{language}\n{content}\n```")
}

/// Returns the first half of the characters.
pub(super) fn first_half(content: &str) -> &str {
    let half = content.chars().count() / 2;
    content.char_indices().nth(half).map_or("", |(end, _)| &content[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_wrapped_and_truncated() {
        assert!(with_prose("{}").contains("\n{}\n"));
        assert_eq!(fenced("{\"a\":1}"), "```json\n{\"a\":1}\n```");
        assert_eq!(fenced("<!doctype html>"), "```html\n<!doctype html>\n```");
        assert_eq!(fenced("Hello"), "Hello");
        assert_eq!(first_half("中文四字"), "中文");
        assert_eq!(first_half(""), "");
    }
}
