//! The chat completions API of OpenAI and of compatible services.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use super::{
    answer::Answer,
    call::{Call, is_key_accepted},
    deepseek, engine,
    faults::{Fault, StreamQuirks, StreamVariant},
    image,
    journal::now_ms,
    openai_stream::{self, completion_id, finish_reason, usage},
    question::{Ask, Offer, Question, Speaker, Turn},
    reply::Reply,
    shared::Shared,
    stream, tools,
};

/// Responds to `POST .../chat/completions`.
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
    if let Err(message) = tools::check(&question) {
        return refuse(StatusCode::BAD_REQUEST, &message);
    }
    if let Err(message) = deepseek::check(request) {
        return refuse(StatusCode::BAD_REQUEST, message);
    }
    let quirks = StreamQuirks::in_force(fault);
    let mut answer = engine::answer(&question, &shared.pictures, fault);
    let thinks = deepseek::thinks(request) || quirks.is(StreamVariant::Reasoning);
    if thinks && answer.reasoning.is_empty() {
        answer.reasoning = deepseek::reasoning(&question);
    }
    let rule = answer.rule;
    let streams = request.get("stream") == Some(&json!(true));
    if streams && !quirks.is(StreamVariant::PlainJson) {
        let wants_usage = request.pointer("/stream_options/include_usage") == Some(&json!(true));
        let events = openai_stream::events(&question.model, &answer, &quirks, wants_usage);
        return Reply { rule, response: stream::response(shared, call, events, &quirks) };
    }
    Reply { rule, response: completion(&question.model, &answer) }
}

/// Returns an error in OpenAI's format.
pub(super) fn error_body(status: StatusCode, message: &str) -> Value {
    let (kind, code) = match status.as_u16() {
        401 => ("authentication_error", json!("invalid_api_key")),
        429 => ("rate_limit_error", json!("rate_limit_exceeded")),
        400..=499 => ("invalid_request_error", Value::Null),
        _ => ("server_error", Value::Null),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

fn message(answer: &Answer) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.content, "refusal": null});
    if !answer.reasoning.is_empty() {
        message["reasoning_content"] = json!(answer.reasoning);
    }
    if !answer.asks.is_empty() {
        if answer.content.is_empty() {
            message["content"] = Value::Null;
        }
        let call = |ask: &Ask| {
            let function = json!({"name": ask.name, "arguments": ask.arguments});
            json!({"id": ask.id, "type": "function", "function": function})
        };
        message["tool_calls"] = answer.asks.iter().map(call).collect();
    }
    message
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
            "message": message(answer),
            "logprobs": null,
            "finish_reason": finish_reason(answer),
        }],
        "usage": usage(answer),
    }))
    .into_response()
}

fn question(request: &Value) -> Option<Question> {
    let mut question = Question {
        model: request.get("model")?.as_str()?.to_owned(),
        schema: request.pointer("/response_format/json_schema/schema").cloned(),
        tools: offers(request),
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
                question.turns.push(Turn::new(Speaker::User, text, pictures));
            }
            Some("tool") => {
                let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
                question.turns.push(Turn::answer(id.to_owned(), text));
            }
            _ => {
                let turn = Turn::new(Speaker::Assistant, text, pictures);
                question.turns.push(Turn { asks: asks(message), ..turn });
            }
        }
    }
    if asks_for_json(request) {
        // With this word in the prompt, the rules detect the kind of response from the prompt.
        question.system.push_str("json");
    }
    Some(question)
}

fn offers(request: &Value) -> Vec<Offer> {
    if request.get("tool_choice") == Some(&json!("none")) {
        return Vec::new();
    }
    let offer = |tool: &Value| {
        let function = tool.get("function")?;
        let name = function.get("name")?.as_str()?.to_owned();
        let schema = function.get("parameters").cloned().unwrap_or_default();
        Some(Offer { name, schema })
    };
    let tools = request.get("tools").and_then(Value::as_array);
    tools.into_iter().flatten().filter_map(offer).collect()
}

fn asks(message: &Value) -> Vec<Ask> {
    let text = |call: &Value, place: &str| {
        call.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let calls = message.get("tool_calls").and_then(Value::as_array);
    calls
        .into_iter()
        .flatten()
        .map(|call| Ask {
            id: text(call, "/id"),
            name: text(call, "/function/name"),
            arguments: text(call, "/function/arguments"),
        })
        .collect()
}

fn asks_for_json(request: &Value) -> bool {
    request.pointer("/response_format/type") == Some(&json!("json_object"))
}

/// Returns text and images of a message's content, which is a string or an array of parts.
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
