//! The Gemini `generateContent` wire.

use axum::{Json, http::StatusCode, response::IntoResponse as _};
use serde_json::{Value, json};

use super::{
    call::{Call, is_key_accepted},
    engine::{self, Answer},
    faults::Fault,
    image,
    question::{Question, Speaker, Turn},
    server::{Reply, Shared},
};

/// Answers `POST /v1beta/models/{model}:generateContent`; `action` is the last segment.
pub(super) fn answer(shared: &Shared, call: &Call, action: &str, fault: Option<&Fault>) -> Reply {
    let key = call.header("x-goog-api-key").or_else(|| call.parameter("key"));
    if !is_key_accepted(key) {
        return refuse(StatusCode::UNAUTHORIZED, "API key not valid. Please pass a valid API key.");
    }
    let Some((model, "generateContent")) = action.split_once(':') else {
        return refuse(StatusCode::NOT_FOUND, "only `{model}:generateContent` is served");
    };
    let Some(question) = call.json.as_ref().and_then(|request| question(request, model)) else {
        return refuse(StatusCode::BAD_REQUEST, "contents is not specified");
    };
    let answer = engine::answer(&question, &shared.pictures, fault);
    Reply { rule: answer.rule, response: Json(document(model, &answer)).into_response() }
}

/// An error in Google's shape.
pub(super) fn error_body(status: StatusCode, message: &str) -> Value {
    let name = match status.as_u16() {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        400..=499 => "INVALID_ARGUMENT",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status.as_u16(), "message": message, "status": name}})
}

fn refuse(status: StatusCode, message: &str) -> Reply {
    let response = (status, Json(error_body(status, message))).into_response();
    Reply { rule: "refuse", response }
}

fn document(model: &str, answer: &Answer) -> Value {
    json!({
        "candidates": [{
            "content": {"role": "model", "parts": [{"text": answer.content}]},
            "finishReason": "STOP",
            "index": 0,
            "safetyRatings": [],
        }],
        "usageMetadata": {
            "promptTokenCount": answer.prompt_tokens,
            "candidatesTokenCount": answer.completion_tokens,
            "thoughtsTokenCount": 0,
            "totalTokenCount": answer.prompt_tokens + answer.completion_tokens,
        },
        "modelVersion": model,
        "responseId": blake3::hash(answer.content.as_bytes()).to_hex()[..16].to_owned(),
    })
}

fn question(request: &Value, model: &str) -> Option<Question> {
    let config = request.get("generationConfig");
    let configured = |name: &str| config.and_then(|config| config.get(name));
    let schema = configured("responseJsonSchema").or_else(|| configured("responseSchema"));
    let instruction =
        request.get("systemInstruction").or_else(|| request.get("system_instruction"));
    let mut question = Question {
        model: model.to_owned(),
        system: instruction.map(|content| parts(content).0).unwrap_or_default(),
        turns: Vec::new(),
        schema: schema.cloned(),
    };
    if configured("responseMimeType") == Some(&json!("application/json")) {
        // The engine reads the wanted form off the prompt then.
        question.system.push_str("\njson");
    }
    for content in request.get("contents")?.as_array()? {
        let (text, pictures) = parts(content);
        let is_model = content.get("role") == Some(&json!("model"));
        let speaker = if is_model { Speaker::Assistant } else { Speaker::User };
        question.turns.push(Turn { speaker, text, pictures });
    }
    Some(question)
}

/// Text and pictures of the parts; both spellings of inline data are in use.
fn parts(content: &Value) -> (String, Vec<Vec<u8>>) {
    let parts = content.get("parts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
    let pictures = parts.iter().filter_map(|part| {
        let data = part.get("inlineData").or_else(|| part.get("inline_data"))?;
        data.get("data")?.as_str().map(image::decode)
    });
    (texts.join("\n"), pictures.collect())
}
