//! Google's `predict`, for models such as `imagen-4.0-generate-001`.

use serde_json::{Map, Value, json};

use crate::provider::image::{ImageBytes, ImageError, ImageSpec};

/// Maximum images of one request.
pub(super) const MAX_PER_REQUEST: u32 = 4;

pub(super) fn body(image_spec: ImageSpec<'_>) -> Value {
    let mut parameters = Map::new();
    parameters.insert("sampleCount".into(), json!(image_spec.count));
    parameters
        .extend(image_spec.aspect_ratio.map(|ratio| ("aspectRatio".to_owned(), json!(ratio))));
    json!({ "instances": [{ "prompt": image_spec.prompt }], "parameters": parameters })
}

/// Reads the images of a response. If the content filter removes every image, the response is
/// empty.
pub(super) fn read(document: &Value) -> Result<Vec<ImageBytes>, ImageError> {
    let predictions = match document.get("predictions") {
        Some(Value::Array(predictions)) => predictions.as_slice(),
        None if document.as_object().is_some_and(Map::is_empty) => &[],
        _ => return Err(ImageError::malformed("it has no `predictions`")),
    };
    let text = |prediction: &Value, name: &str| {
        prediction.get(name).and_then(Value::as_str).map(str::to_owned)
    };
    let mut pictures = Vec::new();
    let mut reason = None;
    for prediction in predictions {
        if let Some(data) = prediction.get("bytesBase64Encoded").and_then(Value::as_str) {
            pictures.push(ImageBytes::decode(data)?);
        } else if let Some(told) = text(prediction, "raiFilteredReason") {
            reason = Some(told);
        } else {
            return Err(ImageError::malformed("a prediction in it has no image"));
        }
    }
    if pictures.is_empty() {
        let reason = reason.unwrap_or_else(|| "no reason was given".to_owned());
        return Err(ImageError::Withheld(reason));
    }
    Ok(pictures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_pass_the_content_filter_are_returned() {
        let picture = json!({ "mimeType": "image/png", "bytesBase64Encoded": "iVBORw0KGgo=" });
        let filtered = json!({ "raiFilteredReason": "people" });
        let some = read(&json!({ "predictions": [filtered, picture] })).unwrap();
        assert_eq!((some.len(), some[0].media_type), (1, "image/png"));
        let all = read(&json!({ "predictions": [filtered, filtered] }));
        assert_eq!(all, Err(ImageError::Withheld("people".into())));
        for none in [json!({}), json!({ "predictions": [] })] {
            assert!(matches!(read(&none), Err(ImageError::Withheld(_))), "{none}");
        }
        for garbage in [json!([]), json!({ "x": 1 }), json!({ "predictions": [{}] })] {
            assert!(matches!(read(&garbage), Err(ImageError::Malformed(_))), "{garbage}");
        }
    }
}
