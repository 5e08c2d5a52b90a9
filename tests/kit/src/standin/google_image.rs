//! Google's image models: `:predict` of Imagen, and Gemini with images as output. Equal prompts get
//! equal images, which contain the prompt as their text.

use axum::{Json, http::StatusCode, response::IntoResponse as _};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{call::Call, faults::Fault, google_error::refuse, reply::Reply};
use crate::picture;

/// Aspect ratios that both models accept.
const RATIOS: [&str; 5] = ["1:1", "3:4", "4:3", "9:16", "16:9"];

/// Parts of names, one of which the name of each Gemini model for images has.
const IMAGE_MODELS: [&str; 2] = ["image", "nano-banana"];

/// Maximum number of images in one request to Imagen.
const MAX_SAMPLES: u64 = 4;

/// Number of tokens per image.
const PICTURE_TOKENS: usize = 1_290;

/// Responds to `POST /v1beta/models/imagen-...:predict`. The caller has checked the key.
pub(super) fn predict(call: &Call, model: &str, fault: Option<&Fault>) -> Reply {
    let request = call.json.as_ref();
    let text = |place: &str| request.and_then(|request| request.pointer(place)?.as_str());
    if !model.starts_with("imagen-") {
        let message = format!("models/{model} is not supported for predict");
        return refuse(StatusCode::NOT_FOUND, &message);
    }
    let Some(prompt) = text("/instances/0/prompt").filter(|prompt| !prompt.trim().is_empty())
    else {
        return refuse(StatusCode::BAD_REQUEST, "instances[0].prompt is missing");
    };
    let samples = request.and_then(|request| request.pointer("/parameters/sampleCount"));
    let samples = samples.map_or(Some(1), Value::as_u64);
    let Some(samples) = samples.filter(|samples| (1..=MAX_SAMPLES).contains(samples)) else {
        return refuse(StatusCode::BAD_REQUEST, "sampleCount must be from 1 to 4");
    };
    if text("/parameters/aspectRatio").is_some_and(|ratio| !RATIOS.contains(&ratio)) {
        return refuse(StatusCode::BAD_REQUEST, "aspectRatio is not supported");
    }
    let document = match fault {
        Some(Fault::Withheld { reason: None }) => json!({}),
        Some(Fault::Withheld { reason: Some(reason) }) => {
            json!({"predictions": [{ "raiFilteredReason": reason }]})
        }
        _ => {
            let data = STANDARD.encode(picture::landscape(prompt));
            let made = json!({"mimeType": "image/png", "bytesBase64Encoded": data});
            let predictions: Vec<Value> = (0..samples).map(|_| made.clone()).collect();
            json!({ "predictions": predictions })
        }
    };
    Reply { rule: "imagen", response: Json(document).into_response() }
}

/// Returns true if a request to Gemini requests an image.
pub(super) fn is_wanted(request: &Value) -> bool {
    let wanted = request.pointer("/generationConfig/responseModalities");
    wanted.and_then(Value::as_array).is_some_and(|kinds| kinds.contains(&json!("IMAGE")))
}

/// Responds to `POST /v1beta/models/gemini-...-image:generateContent`, and the same for
/// `gemini-nano-banana-...`. The caller has checked the key.
pub(super) fn generate(request: &Value, model: &str, fault: Option<&Fault>) -> Reply {
    if !IMAGE_MODELS.iter().any(|part| model.contains(part)) {
        let message = format!("models/{model} does not support the response modality IMAGE");
        return refuse(StatusCode::BAD_REQUEST, &message);
    }
    let ratio = request.pointer("/generationConfig/imageConfig/aspectRatio");
    if ratio.is_some_and(|ratio| !ratio.as_str().is_some_and(|ratio| RATIOS.contains(&ratio))) {
        return refuse(StatusCode::BAD_REQUEST, "aspect_ratio is not supported");
    }
    let prompt = prompt(request);
    if prompt.trim().is_empty() {
        return refuse(StatusCode::BAD_REQUEST, "contents is not specified");
    }
    let (parts, reason) = match fault {
        Some(Fault::Withheld { .. }) => (json!([]), "IMAGE_SAFETY"),
        _ => {
            let data = STANDARD.encode(picture::landscape(&prompt));
            (json!([{"inlineData": {"mimeType": "image/png", "data": data}}]), "STOP")
        }
    };
    let document = json!({
        "candidates": [{
            "content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0,
        }],
        "usageMetadata": {
            "promptTokenCount": prompt.len() / 4 + 1,
            "candidatesTokenCount": PICTURE_TOKENS,
            "totalTokenCount": prompt.len() / 4 + 1 + PICTURE_TOKENS,
        },
        "modelVersion": model,
        "responseId": blake3::hash(prompt.as_bytes()).to_hex()[..16].to_owned(),
    });
    Reply { rule: "gemini image", response: Json(document).into_response() }
}

fn prompt(request: &Value) -> String {
    let contents = request.get("contents").and_then(Value::as_array);
    let parts = contents.into_iter().flatten().filter_map(|content| content["parts"].as_array());
    let texts = parts.flatten().filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{generate, is_wanted, predict};
    use crate::standin::{call::Call, faults::Fault, reply::Reply};

    const PATH: &str = "/v1beta/models/imagen-4.0-fast-generate-001:predict";

    async fn body(reply: Reply) -> (u16, Value) {
        let status = reply.response.status().as_u16();
        let bytes = axum::body::to_bytes(reply.response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    async fn imagen(request: Value, fault: Option<Fault>) -> (u16, Value) {
        let call = Call::sample("POST", PATH, &request);
        body(predict(&call, "imagen-4.0-fast-generate-001", fault.as_ref())).await
    }

    #[tokio::test]
    async fn imagen_returns_the_requested_number_of_images() {
        let request = json!({"instances": [{"prompt": "a tower"}],
            "parameters": {"sampleCount": 2, "aspectRatio": "16:9"}});
        let (status, made) = imagen(request.clone(), None).await;
        assert_eq!((status, made["predictions"].as_array().unwrap().len()), (200, 2));
        let reason = Some("unsafe".to_owned());
        let (_, kept) = imagen(request.clone(), Some(Fault::Withheld { reason })).await;
        assert_eq!(kept, json!({"predictions": [{"raiFilteredReason": "unsafe"}]}));
        let (_, kept) = imagen(request, Some(Fault::Withheld { reason: None })).await;
        assert_eq!(kept, json!({}));
        assert_eq!(imagen(json!({}), None).await.0, 400);
        let odd = json!({"instances": [{"prompt": "a"}], "parameters": {"aspectRatio": "2:1"}});
        assert_eq!(imagen(odd, None).await.0, 400);
    }

    #[tokio::test]
    async fn gemini_returns_an_image() {
        let request = json!({"contents": [{"role": "user", "parts": [{"text": "a tower"}]}],
            "generationConfig": {"responseModalities": ["IMAGE"]}});
        assert!(is_wanted(&request) && !is_wanted(&json!({})));
        for model in ["gemini-2.5-flash-image", "gemini-nano-banana-2.1"] {
            let (_, made) = body(generate(&request, model, None)).await;
            let part = &made["candidates"][0]["content"]["parts"][0];
            assert_eq!(part["inlineData"]["mimeType"], "image/png", "{model}");
        }
        let fault = Fault::Withheld { reason: None };
        let (_, kept) = body(generate(&request, "gemini-2.5-flash-image", Some(&fault))).await;
        assert_eq!(kept["candidates"][0]["finishReason"], "IMAGE_SAFETY");
        assert_eq!(body(generate(&request, "gemini-2.5-flash", None)).await.0, 400);
    }
}
