//! OpenAI's `images/generations`.

use serde_json::{Map, Value, json};
use wattle_run::json::bounded::JsonBudget;

use crate::provider::image::{ImageBytes, ImageError, ImageSpec};

/// Prefix of the models that return a URL unless the request has `response_format`. Other models do
/// not accept the field.
const NEEDS_RESPONSE_FORMAT: &str = "dall-e";

/// A model that generates one image per request; other models generate up to ten.
const SINGLE_IMAGE_MODEL: &str = "dall-e-3";

/// Error codes of withheld images.
const WITHHELD_CODES: [&str; 2] = ["moderation_blocked", "content_policy_violation"];

/// Returns the maximum images of one request.
pub(super) fn max_per_request(model: &str) -> u32 {
    if model == SINGLE_IMAGE_MODEL { 1 } else { 10 }
}

pub(super) fn body(model: &str, image_spec: ImageSpec<'_>) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), json!(model));
    body.insert("prompt".into(), json!(image_spec.prompt));
    body.insert("n".into(), json!(image_spec.count));
    let size = image_spec.aspect_ratio.map(|ratio| ("size".to_owned(), json!(size(model, ratio))));
    body.extend(size);
    if model.starts_with(NEEDS_RESPONSE_FORMAT) {
        body.insert("response_format".into(), json!("b64_json"));
    }
    Value::Object(body)
}

/// Returns the size that has the orientation of an aspect ratio. The API has only three sizes.
fn size(model: &str, ratio: &str) -> &'static str {
    let sides =
        ratio.split_once(':').map(|(width, height)| (ratio_side(width), ratio_side(height)));
    let (width, height) = sides.unwrap_or((1, 1));
    match (width.cmp(&height), model.starts_with(NEEDS_RESPONSE_FORMAT)) {
        (std::cmp::Ordering::Equal, _) => "1024x1024",
        (std::cmp::Ordering::Greater, true) => "1792x1024",
        (std::cmp::Ordering::Greater, false) => "1536x1024",
        (std::cmp::Ordering::Less, true) => "1024x1792",
        (std::cmp::Ordering::Less, false) => "1024x1536",
    }
}

fn ratio_side(text: &str) -> u32 {
    text.parse().unwrap_or(1)
}

pub(super) fn read(document: &Value) -> Result<Vec<ImageBytes>, ImageError> {
    let Some(data) = document.get("data").and_then(Value::as_array) else {
        return Err(ImageError::malformed("it has no `data`"));
    };
    let pictures: Vec<ImageBytes> = data
        .iter()
        .filter_map(|entry| entry.get("b64_json")?.as_str())
        .map(ImageBytes::decode)
        .collect::<Result<_, _>>()?;
    if pictures.is_empty() {
        return Err(ImageError::malformed("it has no image in base64"));
    }
    Ok(pictures)
}

/// Returns the provider's message, if an error says that the image was withheld.
pub(super) fn withheld(text: &str) -> Option<String> {
    let error: Value = JsonBudget::default().parse(text).ok()?;
    let word = |field: &str| error.pointer(field).and_then(Value::as_str);
    let code = word("/error/code").filter(|code| WITHHELD_CODES.contains(code))?;
    Some(word("/error/message").unwrap_or(code).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aspect_ratio_selects_the_size_with_its_orientation() {
        let cases = [
            ("gpt-image-1", "16:9", "1536x1024"),
            ("gpt-image-1", "3:4", "1024x1536"),
            ("gpt-image-1", "2:2", "1024x1024"),
            ("dall-e-3", "16:9", "1792x1024"),
            ("dall-e-3", "9:16", "1024x1792"),
        ];
        for (model, ratio, expected) in cases {
            assert_eq!(size(model, ratio), expected, "{model} {ratio}");
        }
    }

    #[test]
    fn image_urls_are_not_accepted() {
        let bytes = json!({ "data": [{ "b64_json": "iVBORw0KGgo=" }] });
        assert_eq!(read(&bytes).map(|pictures| pictures.len()), Ok(1));
        for other in [json!({}), json!({ "data": [{ "url": "https://example.com/a.png" }] })] {
            assert!(matches!(read(&other), Err(ImageError::Malformed(_))), "{other}");
        }
    }

    #[test]
    fn policy_errors_withhold_the_image() {
        let error = |code: &str| json!({ "error": { "code": code, "message": "no" } }).to_string();
        assert_eq!(withheld(&error("moderation_blocked")).as_deref(), Some("no"));
        assert_eq!(withheld(&error("invalid_size")), None);
        assert_eq!(withheld("busy"), None);
    }
}
