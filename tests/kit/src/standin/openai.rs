//! The OpenAI chat completions wire, which many compatible services speak too.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use super::{
    call::{Call, is_key_accepted},
    engine::{self, Answer},
    faults::Fault,
    image,
    journal::now_ms,
    openai_stream,
    question::{Question, Speaker, Turn},
    server::{Reply, Shared},
};

/// Answers `POST .../chat/completions`.
pub(super) fn answer(shared: &Shared, call: &Call, fault: Option<&Fault>) -> Reply {
    if !is_key_accepted(call.bearer()) {
        return refuse(StatusCode::UNAUTHORIZED, "Incorrect API key provided.");
    }
    let Some(request) = &call.json else {
        return refuse(
            StatusCode::BAD_REQUEST,
            "We could not parse the JSON body of your request.",
        );
    };
    let Some(question) = question(request) else {
        return refuse(StatusCode::BAD_REQUEST, "you must provide `model` and `messages`");
    };
    let answer = engine::answer(&question, &shared.pictures, fault);
    let rule = answer.rule;
    let response = if request.get("stream") == Some(&json!(true)) {
        openai_stream::response(request, &question.model, &answer, fault)
    } else {
        completion(&question.model, &answer)
    };
    Reply { rule, response }
}

/// An error in OpenAI's shape.
pub(super) fn error_body(status: StatusCode, message: &str) -> Value {
    let (kind, code) = match status.as_u16() {
        401 => ("authentication_error", json!("invalid_api_key")),
        429 => ("rate_limit_error", json!("rate_limit_exceeded")),
        400..=499 => ("invalid_request_error", Value::Null),
        _ => ("server_error", Value::Null),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

/// The `usage` record of an answer.
pub(super) fn usage(answer: &Answer) -> Value {
    json!({
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    })
}

/// The same question has the same id: answers are a function of the question.
pub(super) fn completion_id(answer: &Answer) -> String {
    let digest = blake3::hash(answer.content.as_bytes()).to_hex();
    format!("chatcmpl-{}", &digest[..24])
}

fn refuse(status: StatusCode, message: &str) -> Reply {
    let response = (status, Json(error_body(status, message))).into_response();
    Reply { rule: "refuse", response }
}

fn completion(model: &str, answer: &Answer) -> Response {
    Json(json!({
        "id": completion_id(answer),
        "object": "chat.completion",
        "created": now_ms() / 1_000,
        "model": model,
        "system_fingerprint": "fp_standin",
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": answer.content, "refusal": null},
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": usage(answer),
    }))
    .into_response()
}

fn question(request: &Value) -> Option<Question> {
    let mut question = Question {
        model: request.get("model")?.as_str()?.to_owned(),
        schema: request.pointer("/response_format/json_schema/schema").cloned(),
        ..Question::default()
    };
    for message in request.get("messages")?.as_array()? {
        let (text, pictures) = content(message.get("content"));
        match message.get("role").and_then(Value::as_str) {
            Some("system" | "developer") => {
                question.system.push_str(&text);
                question.system.push('\n');
            }
            Some("user") => {
                question.turns.push(Turn { speaker: Speaker::User, text, pictures });
            }
            _ => question.turns.push(Turn { speaker: Speaker::Assistant, text, pictures }),
        }
    }
    if asks_for_json(request) {
        // The engine reads the wanted form off the prompt then.
        question.system.push_str("json");
    }
    Some(question)
}

fn asks_for_json(request: &Value) -> bool {
    request.pointer("/response_format/type") == Some(&json!("json_object"))
}

/// Text and pictures of a content that is a string or a list of parts.
fn content(content: Option<&Value>) -> (String, Vec<Vec<u8>>) {
    let parts = match content {
        Some(Value::String(text)) => return (text.clone(), Vec::new()),
        Some(Value::Array(parts)) => parts.as_slice(),
        _ => &[],
    };
    let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
    let pictures = parts.iter().filter_map(|part| part.get("image_url"));
    let urls = pictures.filter_map(|picture| picture.get("url").unwrap_or(picture).as_str());
    (texts.join("\n"), urls.map(image::decode).collect())
}
