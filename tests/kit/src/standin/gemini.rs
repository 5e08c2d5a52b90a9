//! The `generateContent` API of Gemini.

use axum::{Json, http::StatusCode, response::IntoResponse as _};
use serde_json::{Value, json};

use super::{
    answer::Answer,
    call::{Call, is_key_accepted},
    engine,
    faults::{Fault, StreamQuirks, StreamVariant},
    gemini_stream,
    google_error::refuse,
    google_image, image,
    question::{Ask, Offer, Question, Speaker, Turn},
    reply::Reply,
    shared::Shared,
    stream, tools,
};

/// Responds to `POST /v1beta/models/{model}:generateContent`. `action` is the last segment of the
/// path.
pub(super) fn answer(shared: &Shared, call: &Call, action: &str, fault: Option<&Fault>) -> Reply {
    let key = call.header("x-goog-api-key").or_else(|| call.parameter("key"));
    if !is_key_accepted(key) {
        return refuse(StatusCode::UNAUTHORIZED, "API key not valid. Please pass a valid API key.");
    }
    let (model, streams) = match action.split_once(':') {
        Some((model, "predict")) => return google_image::predict(call, model, fault),
        Some((model, "generateContent")) => (model, false),
        Some((model, "streamGenerateContent")) if call.parameter("alt") == Some("sse") => {
            (model, true)
        }
        _ => {
            let message = "only `{model}:generateContent`, `{model}:streamGenerateContent?alt=sse` and \
                           `imagen-...:predict` are served";
            return refuse(StatusCode::NOT_FOUND, message);
        }
    };
    if let Some(request) = call.json.as_ref().filter(|request| google_image::is_wanted(request)) {
        return google_image::generate(request, model, fault);
    }
    if matches!(fault, Some(Fault::Withheld { .. })) {
        let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": model});
        return Reply { rule: "blocked", response: Json(blocked).into_response() };
    }
    let Some(question) = call.json.as_ref().and_then(|request| question(request, model)) else {
        return refuse(StatusCode::BAD_REQUEST, "contents is not specified");
    };
    if let Err(message) = tools::check(&question) {
        return refuse(StatusCode::BAD_REQUEST, &message);
    }
    let answer = engine::answer(&question, &shared.pictures, fault);
    let rule = answer.rule;
    let document = document(model, &answer);
    let quirks = StreamQuirks::in_force(fault);
    if streams && !quirks.is(StreamVariant::PlainJson) {
        let events = gemini_stream::events(&document);
        return Reply { rule, response: stream::response(shared, call, events, &quirks) };
    }
    Reply { rule, response: Json(document).into_response() }
}

fn document(model: &str, answer: &Answer) -> Value {
    json!({
        "candidates": [{
            "content": {"role": "model", "parts": said(answer)},
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

/// Returns text and tool calls as parts. A tool call whose arguments are not valid JSON gets empty
/// arguments.
fn said(answer: &Answer) -> Value {
    let arguments = |ask: &Ask| serde_json::from_str(&ask.arguments).unwrap_or_else(|_| json!({}));
    let call = |ask: &Ask| json!({"functionCall": {"name": ask.name, "args": arguments(ask)}});
    let text = (!answer.content.is_empty() || answer.asks.is_empty())
        .then(|| json!({"text": answer.content}));
    text.into_iter().chain(answer.asks.iter().map(call)).collect()
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
        schema: schema.cloned(),
        tools: offers(request),
        ..Question::default()
    };
    if configured("responseMimeType") == Some(&json!("application/json")) {
        // With this word in the prompt, the rules detect the kind of response from the prompt.
        question.system.push_str("\njson");
    }
    for content in request.get("contents")?.as_array()? {
        let (text, pictures) = parts(content);
        let is_model = content.get("role") == Some(&json!("model"));
        let answers = answers(content, &question);
        let is_empty = text.is_empty() && pictures.is_empty() && !answers.is_empty();
        question.turns.extend(answers);
        if is_model {
            let turn = Turn::new(Speaker::Assistant, text, pictures);
            let asks = asks(content, &question);
            question.turns.push(Turn { asks, ..turn });
        } else if !is_empty {
            question.turns.push(Turn::new(Speaker::User, text, pictures));
        }
    }
    Some(question)
}

fn offers(request: &Value) -> Vec<Offer> {
    if request.pointer("/toolConfig/functionCallingConfig/mode") == Some(&json!("NONE")) {
        return Vec::new();
    }
    let sets = request.get("tools").and_then(Value::as_array).into_iter().flatten();
    let declared = sets.filter_map(|set| {
        set.get("functionDeclarations").or_else(|| set.get("function_declarations"))?.as_array()
    });
    let offer = |tool: &Value| {
        let schema = tool.get("parameters").or_else(|| tool.get("parametersJsonSchema"));
        let name = tool.get("name")?.as_str()?.to_owned();
        Some(Offer { name, schema: schema.cloned().unwrap_or_default() })
    };
    declared.flatten().filter_map(offer).collect()
}

/// Parses tool calls. Gemini's calls have no ids, so the n-th result of a tool belongs to its n-th
/// call.
fn asks(content: &Value, before: &Question) -> Vec<Ask> {
    let mut asks: Vec<Ask> = Vec::new();
    for call in values(content, "functionCall") {
        let name = call.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let known = before.turns.iter().flat_map(|turn| &turn.asks).chain(&asks);
        let number = known.filter(|ask| ask.name == name).count();
        let arguments = call.get("args").cloned().unwrap_or_default().to_string();
        asks.push(Ask { id: format!("{name}#{number}"), name, arguments });
    }
    asks
}

fn answers(content: &Value, before: &Question) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for answer in values(content, "functionResponse") {
        let name = answer.get("name").and_then(Value::as_str).unwrap_or_default();
        let known = before.turns.iter().chain(&turns);
        let number = known.filter(|turn| turn.answers.starts_with(&format!("{name}#"))).count();
        let response = answer.get("response").cloned().unwrap_or_default();
        turns.push(Turn::answer(format!("{name}#{number}"), response.to_string()));
    }
    turns
}

fn values<'v>(content: &'v Value, key: &'static str) -> impl Iterator<Item = &'v Value> {
    let parts = content.get("parts").and_then(Value::as_array);
    parts.into_iter().flatten().filter_map(move |part| part.get(key))
}

/// Returns text and images of the parts. Clients write `inlineData` or `inline_data`.
fn parts(content: &Value) -> (String, Vec<Vec<u8>>) {
    let parts = content.get("parts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
    let pictures = parts.iter().filter_map(|part| {
        let data = part.get("inlineData").or_else(|| part.get("inline_data"))?;
        data.get("data")?.as_str().map(image::decode)
    });
    (texts.join("\n"), pictures.collect())
}
