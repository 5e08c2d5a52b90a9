//! What happens to an answer as a whole, whatever it says.

/// Sentences before and after.
pub(super) fn with_prose(content: &str) -> String {
    if content.is_empty() {
        return "Let me take care of that for you.".to_owned();
    }
    format!(
        "Sure! Here is what you asked for:\n\n{content}\n\nLet me know if you need anything else."
    )
}

/// In a fence of its language; words of a conversation have none.
pub(super) fn fenced(content: &str) -> String {
    let language = match content.trim_start().chars().next() {
        Some('{' | '[') => "json",
        Some('<') => "html",
        _ => return content.to_owned(),
    };
    format!("```{language}\n{content}\n```")
}

/// The first half of the characters.
pub(super) fn first_half(content: &str) -> &str {
    let half = content.chars().count() / 2;
    content.char_indices().nth(half).map_or("", |(end, _)| &content[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_wrapped_and_cut() {
        assert!(with_prose("{}").contains("\n{}\n"));
        assert_eq!(fenced("{\"a\":1}"), "```json\n{\"a\":1}\n```");
        assert_eq!(fenced("<!doctype html>"), "```html\n<!doctype html>\n```");
        assert_eq!(fenced("Hello"), "Hello");
        assert_eq!(first_half("中文四字"), "中文");
        assert_eq!(first_half(""), "");
    }
}
