//! The Anthropic messages wire.

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

/// Answers `POST /v1/messages`.
pub(super) fn answer(shared: &Shared, call: &Call, fault: Option<&Fault>) -> Reply {
    if !is_key_accepted(call.header("x-api-key").or_else(|| call.bearer())) {
        return refuse(StatusCode::UNAUTHORIZED, "invalid x-api-key");
    }
    let Some(request) = &call.json else {
        return refuse(StatusCode::BAD_REQUEST, "the request body is not valid JSON");
    };
    if request.get("stream") == Some(&json!(true)) {
        return refuse(
            StatusCode::BAD_REQUEST,
            "stream: this stand-in answers whole messages only",
        );
    }
    let Some(question) = question(request) else {
        return refuse(StatusCode::BAD_REQUEST, "model, max_tokens and messages: field required");
    };
    let answer = engine::answer(&question, &shared.pictures, fault);
    Reply { rule: answer.rule, response: Json(document(&question.model, &answer)).into_response() }
}

/// An error in Anthropic's shape.
pub(super) fn error_body(status: StatusCode, message: &str) -> Value {
    let kind = match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    let error = json!({"type": kind, "message": message});
    json!({"type": "error", "error": error, "request_id": "req_standin"})
}

fn refuse(status: StatusCode, message: &str) -> Reply {
    let response = (status, Json(error_body(status, message))).into_response();
    Reply { rule: "refuse", response }
}

fn document(model: &str, answer: &Answer) -> Value {
    json!({
        "id": format!("msg_{}", &blake3::hash(answer.content.as_bytes()).to_hex()[..24]),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": answer.content}],
        "stop_reason": "end_turn",
        "stop_sequence": null,
        "usage": {"input_tokens": answer.prompt_tokens, "output_tokens": answer.completion_tokens},
    })
}

fn question(request: &Value) -> Option<Question> {
    // The limit is required by the service; a client that forgets it should find out here.
    request.get("max_tokens")?.as_u64()?;
    let schema = request
        .pointer("/output_config/format/schema")
        .or_else(|| request.pointer("/output_format/schema"));
    let mut question = Question {
        model: request.get("model")?.as_str()?.to_owned(),
        system: blocks(request.get("system")).0,
        turns: Vec::new(),
        schema: schema.cloned(),
    };
    for message in request.get("messages")?.as_array()? {
        let (text, pictures) = blocks(message.get("content"));
        let is_assistant = message.get("role") == Some(&json!("assistant"));
        let speaker = if is_assistant { Speaker::Assistant } else { Speaker::User };
        question.turns.push(Turn { speaker, text, pictures });
    }
    Some(question)
}

/// Text and pictures of a content that is a string or a list of blocks.
fn blocks(content: Option<&Value>) -> (String, Vec<Vec<u8>>) {
    let blocks = match content {
        Some(Value::String(text)) => return (text.clone(), Vec::new()),
        Some(Value::Array(blocks)) => blocks.as_slice(),
        _ => &[],
    };
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
    let pictures = blocks.iter().filter_map(|block| block.pointer("/source/data")?.as_str());
    (texts.join("\n"), pictures.map(image::decode).collect())
}
