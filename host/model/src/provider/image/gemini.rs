//! Google's `generateContent` for images, for models such as `gemini-2.5-flash-image`.

use serde_json::{Value, json};

use crate::provider::image::{ImageBytes, ImageError, ImageSpec};

/// Finish reasons of a withheld image.
const WITHHELD_REASONS: [&str; 8] = [
    "SAFETY",
    "IMAGE_SAFETY",
    "PROHIBITED_CONTENT",
    "IMAGE_PROHIBITED_CONTENT",
    "RECITATION",
    "IMAGE_RECITATION",
    "BLOCKLIST",
    "SPII",
];

pub(super) fn body(image_spec: ImageSpec<'_>) -> Value {
    let mut config = json!({ "responseModalities": ["IMAGE"] });
    if let Some(ratio) = image_spec.aspect_ratio {
        config["imageConfig"] = json!({ "aspectRatio": ratio });
    }
    json!({
        "contents": [{ "role": "user", "parts": [{ "text": image_spec.prompt }] }],
        "generationConfig": config,
    })
}

pub(super) fn read(document: &Value) -> Result<Vec<ImageBytes>, ImageError> {
    let text = |path: &str| document.pointer(path).and_then(Value::as_str);
    if let Some(reason) = text("/promptFeedback/blockReason") {
        let words = text("/promptFeedback/blockReasonMessage").unwrap_or(reason);
        return Err(ImageError::Withheld(words.to_owned()));
    }
    if document.pointer("/candidates/0").is_none() {
        return Err(ImageError::malformed("it has no `candidates`"));
    }
    let parts = document.pointer("/candidates/0/content/parts").and_then(Value::as_array);
    let parts = parts.map(Vec::as_slice).unwrap_or_default();
    let pictures: Vec<ImageBytes> =
        parts.iter().filter_map(inline_data).map(ImageBytes::decode).collect::<Result<_, _>>()?;
    if !pictures.is_empty() {
        return Ok(pictures);
    }
    let reason = text("/candidates/0/finishReason").unwrap_or("unknown");
    let words = text("/candidates/0/finishMessage")
        .or_else(|| parts.iter().find_map(|part| part.get("text")?.as_str()));
    if WITHHELD_REASONS.contains(&reason) {
        return Err(ImageError::Withheld(words.unwrap_or(reason).to_owned()));
    }
    let words = words.map(|words| format!(": {words}")).unwrap_or_default();
    Err(ImageError::Malformed(format!("it has no image (finish reason `{reason}`){words}")))
}

/// Returns the base64 of an image. Models that reason draw sketches first, which are not part of
/// the output.
fn inline_data(part: &Value) -> Option<&str> {
    if part.get("thought").and_then(Value::as_bool) == Some(true) {
        return None;
    }
    part.get("inlineData").or_else(|| part.get("inline_data"))?.get("data")?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &str = "iVBORw0KGgo=";

    fn answer(finish: &str, parts: &Value) -> Value {
        json!({ "candidates": [{ "content": { "parts": parts }, "finishReason": finish }] })
    }

    #[test]
    fn sketches_and_text_are_left_out() {
        let part = json!({ "inlineData": { "mimeType": "image/png", "data": PNG } });
        let mut sketch = part.clone();
        sketch["thought"] = json!(true);
        let parts = json!([{ "text": "Here it is." }, sketch, part]);
        assert_eq!(read(&answer("STOP", &parts)).map(|pictures| pictures.len()), Ok(1));
        let Err(ImageError::Malformed(reason)) = read(&answer("STOP", &json!([sketch]))) else {
            panic!("a sketch was taken");
        };
        assert!(reason.contains("`STOP`"), "{reason}");
    }

    #[test]
    fn filtered_images_are_withheld() {
        let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" } });
        assert_eq!(read(&blocked), Err(ImageError::Withheld("SAFETY".into())));
        for reason in WITHHELD_REASONS {
            let kept = read(&json!({ "candidates": [{ "finishReason": reason }] }));
            assert_eq!(kept, Err(ImageError::Withheld(reason.into())));
        }
    }

    #[test]
    fn response_without_an_image_is_malformed() {
        let words = answer("NO_IMAGE", &json!([{ "text": "I cannot draw" }]));
        assert!(
            matches!(read(&words), Err(ImageError::Malformed(reason)) if reason.contains("draw"))
        );
        for garbage in [json!({}), json!([]), json!({ "candidates": [] })] {
            assert!(matches!(read(&garbage), Err(ImageError::Malformed(_))), "{garbage}");
        }
    }
}
