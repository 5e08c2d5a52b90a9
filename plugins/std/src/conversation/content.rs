//! Content of messages in the format of the state: a string, or an array of parts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_plugin::message::Part;

/// Valid forms of a part, for error messages.
const FORMS: &str = r#"write `{"text": ...}` or `{"image": {"source": ..., "media_type": ...}}`"#;

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Content {
    /// Text.
    Text(String),
    /// Parts in order.
    Parts(Vec<Part>),
}

impl Content {
    /// Creates content from parts. Parts that are all text become one string, with line breaks
    /// between them.
    pub(crate) fn of(parts: Vec<Part>) -> Self {
        let text = |part: &Part| match part {
            Part::Text(text) => Some(text.clone()),
            _ => None,
        };
        match parts.iter().map(text).collect::<Option<Vec<String>>>() {
            Some(texts) => Self::Text(texts.join("\n")),
            None => Self::Parts(parts),
        }
    }
}

/// Checks that all parts of a content are valid.
///
/// # Errors
///
/// A message that names the position and the type of the invalid part.
pub(super) fn check(content: &Value) -> Result<(), String> {
    let parts = match content {
        Value::Null | Value::String(_) => return Ok(()),
        Value::Array(parts) => parts,
        _ => return Err("`content` must be a string or an array of parts".to_owned()),
    };
    for (index, part) in parts.iter().enumerate() {
        if let Err(error) = read(part) {
            let kind = kind(part);
            return Err(format!("part {index} of `content` ({kind}): {error}; {FORMS}"));
        }
    }
    Ok(())
}

fn read(part: &Value) -> Result<Part, serde_json::Error> {
    match part {
        Value::String(text) => Ok(Part::Text(text.clone())),
        part => Part::deserialize(part),
    }
}

/// Returns a phrase for the type of an invalid part.
fn kind(part: &Value) -> String {
    let named = part.get("type").and_then(Value::as_str);
    let first = || part.as_object()?.keys().next().map(String::as_str);
    match named.or_else(first) {
        Some(kind) => format!("`{kind:.40}`"),
        None => "neither a string nor a non-empty object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_plugin::message::{Image, Part};

    use super::{Content, check};

    #[test]
    fn parts_that_are_all_text_become_one_text() {
        let image = || Part::Image(Image::url("https://a/b", "image/*"));
        let content = Content::of(vec!["a".into(), "b".into()]);
        assert_eq!(serde_json::to_value(content).unwrap(), json!("a\nb"));
        let content = Content::of(vec!["a".into(), image()]);
        let picture = json!({"image": {"source": {"url": "https://a/b"}, "media_type": "image/*"}});
        assert_eq!(serde_json::to_value(content).unwrap(), json!([{"text": "a"}, picture]));
    }

    #[test]
    fn invalid_parts_are_named() {
        for (content, why) in [
            (json!([{"text": "a"}, {"video": 1}]), "part 1 of `content` (`video`): unknown"),
            (json!([{"type": "image", "data": "x"}]), "part 0 of `content` (`image`): "),
            (json!([{"image": {"source": 7}}]), "part 0 of `content` (`image`): "),
            (json!([{"text": 7}]), "part 0 of `content` (`text`): invalid type"),
            (json!(["a", 7]), "part 1 of `content` (neither a string"),
            (json!([{}]), "part 0 of `content` (neither a string"),
            (json!(7), "`content` must be a string or an array"),
        ] {
            let error = check(&content).unwrap_err();
            assert!(error.contains(why), "{content}: {error}");
            assert!(!error.contains("untagged"), "{error}");
        }
        for content in [json!(null), json!("a"), json!([]), json!(["a", {"text": "b"}])] {
            assert_eq!(check(&content), Ok(()));
        }
    }
}
