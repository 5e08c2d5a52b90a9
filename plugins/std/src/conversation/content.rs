//! Content of messages in the format of the state: a string, or an array of parts.

use serde::{Deserialize, Deserializer, Serialize};
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

impl<'de> Deserialize<'de> for Content {
    /// Keeps an invalid part unchanged, so that a conversation can always continue. [`check`]
    /// reports it.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(text) => Self::Text(text),
            Value::Array(parts) => Self::Parts(parts.into_iter().map(kept).collect()),
            other => Self::Parts(vec![Part::Other(other)]),
        })
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

fn kept(part: Value) -> Part {
    read(&part).unwrap_or(Part::Other(part))
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
    use serde_json::{Value, json};
    use wattle_plugin::message::{Image, Part};

    use super::{Content, check};

    fn read(content: Value) -> Content {
        serde_json::from_value(content).unwrap()
    }

    #[test]
    fn texts_and_parts_round_trip() {
        let picture = json!({"image": {"source": {"url": "https://a/b"}, "media_type": "image/*"}});
        let image = Part::Image(Image::url("https://a/b", "image/*"));
        let content = json!([{"text": "a"}, picture]);
        assert_eq!(read(json!("a")), Content::Text("a".to_owned()));
        assert_eq!(read(content.clone()), Content::Parts(vec!["a".into(), image]));
        assert_eq!(serde_json::to_value(read(content.clone())).unwrap(), content);
        assert_eq!(read(json!(["a"])), Content::Parts(vec!["a".into()]));
    }

    #[test]
    fn invalid_parts_are_kept_and_named() {
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
            let Content::Parts(parts) = read(content.clone()) else { panic!("{content}") };
            let last = content.as_array().map_or(&content, |parts| &parts[parts.len() - 1]);
            assert_eq!(parts.last(), Some(&Part::Other(last.clone())));
        }
        for content in [json!(null), json!("a"), json!([]), json!(["a", {"text": "b"}])] {
            assert_eq!(check(&content), Ok(()));
        }
    }
}
