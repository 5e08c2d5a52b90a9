//! The Messages API of Anthropic.

use axum::{Json, http::StatusCode, response::IntoResponse as _};
use serde_json::{Value, json};

use super::{
    answer::Answer,
    anthropic_stream,
    call::{Call, is_key_accepted},
    engine,
    faults::{Fault, StreamQuirks, StreamVariant},
    image,
    question::{Ask, Offer, Question, Speaker, Turn},
    reply::Reply,
    shared::Shared,
    stream, tools,
};

/// Responds to `POST /v1/messages`.
pub(super) fn answer(shared: &Shared, call: &Call, fault: Option<&Fault>) -> Reply {
    if !is_key_accepted(call.header("x-api-key").or_else(|| call.bearer())) {
        return refuse(StatusCode::UNAUTHORIZED, "invalid x-api-key");
    }
    let Some(request) = &call.json else {
        return refuse(StatusCode::BAD_REQUEST, "the request body is not valid JSON");
    };
    let Some(question) = question(request) else {
        return refuse(StatusCode::BAD_REQUEST, "model, max_tokens and messages: field required");
    };
    if let Err(message) = tools::check(&question) {
        return refuse(StatusCode::BAD_REQUEST, &message);
    }
    let answer = engine::answer(&question, &shared.pictures, fault);
    let rule = answer.rule;
    let document = document(&question.model, &answer);
    let quirks = StreamQuirks::in_force(fault);
    let streams = request.get("stream") == Some(&json!(true));
    if streams && !quirks.is(StreamVariant::PlainJson) {
        let events = anthropic_stream::events(&document);
        return Reply { rule, response: stream::response(shared, call, events, &quirks) };
    }
    Reply { rule, response: Json(document).into_response() }
}

/// Returns an error in Anthropic's format.
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
        "content": said(answer),
        "stop_reason": stop_reason(answer),
        "stop_sequence": null,
        "usage": {"input_tokens": answer.prompt_tokens, "output_tokens": answer.completion_tokens},
    })
}

/// Returns text and tool calls as content blocks. A tool call whose arguments are not valid JSON
/// gets an empty input.
fn said(answer: &Answer) -> Vec<Value> {
    let call = |ask: &Ask| {
        let input = serde_json::from_str(&ask.arguments).unwrap_or_else(|_| json!({}));
        json!({"type": "tool_use", "id": ask.id, "name": ask.name, "input": input})
    };
    let text = (!answer.content.is_empty() || answer.asks.is_empty())
        .then(|| json!({"type": "text", "text": answer.content}));
    text.into_iter().chain(answer.asks.iter().map(call)).collect()
}

/// Returns the stop reason.
fn stop_reason(answer: &Answer) -> &'static str {
    if answer.asks.is_empty() { "end_turn" } else { "tool_use" }
}

fn question(request: &Value) -> Option<Question> {
    // The service requires `max_tokens`, so the stand-in rejects requests without it.
    request.get("max_tokens")?.as_u64()?;
    let schema = request
        .pointer("/output_config/format/schema")
        .or_else(|| request.pointer("/output_format/schema"));
    let mut question = Question {
        model: request.get("model")?.as_str()?.to_owned(),
        system: blocks(request.get("system")).0,
        schema: schema.cloned(),
        tools: offers(request),
        ..Question::default()
    };
    for message in request.get("messages")?.as_array()? {
        let (text, pictures) = blocks(message.get("content"));
        let answers = answers(message.get("content"));
        let is_empty = text.is_empty() && pictures.is_empty() && !answers.is_empty();
        question.turns.extend(answers);
        if message.get("role") == Some(&json!("assistant")) {
            let turn = Turn::new(Speaker::Assistant, text, pictures);
            question.turns.push(Turn { asks: asks(message.get("content")), ..turn });
        } else if !is_empty {
            question.turns.push(Turn::new(Speaker::User, text, pictures));
        }
    }
    Some(question)
}

fn offers(request: &Value) -> Vec<Offer> {
    if request.pointer("/tool_choice/type") == Some(&json!("none")) {
        return Vec::new();
    }
    let offer = |tool: &Value| {
        let name = tool.get("name")?.as_str()?.to_owned();
        Some(Offer { name, schema: tool.get("input_schema").cloned().unwrap_or_default() })
    };
    let tools = request.get("tools").and_then(Value::as_array);
    tools.into_iter().flatten().filter_map(offer).collect()
}

fn of_kind<'v>(content: Option<&'v Value>, kind: &'static str) -> impl Iterator<Item = &'v Value> {
    let blocks = content.and_then(Value::as_array).into_iter().flatten();
    blocks.filter(move |block| block.get("type") == Some(&json!(kind)))
}

fn asks(content: Option<&Value>) -> Vec<Ask> {
    let text = |block: &Value, key: &str| {
        block.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    of_kind(content, "tool_use")
        .map(|block| Ask {
            id: text(block, "id"),
            name: text(block, "name"),
            arguments: block.get("input").cloned().unwrap_or_default().to_string(),
        })
        .collect()
}

fn answers(content: Option<&Value>) -> Vec<Turn> {
    of_kind(content, "tool_result")
        .map(|block| {
            let id = block.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
            Turn::answer(id.to_owned(), blocks(block.get("content")).0)
        })
        .collect()
}

/// Returns text and images of a message's content, which is a string or an array of blocks.
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
