//! The options of one request, with what `genai` has no option for.

use genai::chat::{ChatOptions, ChatResponseFormat, JsonSpec, ReasoningEffort};
use serde_json::{Map, Value, json};
use wattle_run::call::llm::{CompletionRequest, ResponseSchema};

use crate::config::{ProviderKind, RouteConfig};
use crate::message;
use crate::structured::strict;

/// What a provider is told about the form of its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Format<'a> {
    /// Nothing.
    Free,
    /// Any JSON object.
    JsonObject,
    /// A document under this schema.
    Schema(&'a ResponseSchema),
}

/// The options of a request: what the guest says, else what the route says.
pub(crate) fn chat_options(
    kind: ProviderKind,
    model: &str,
    request: &CompletionRequest,
    route: &RouteConfig,
    format: Format<'_>,
) -> ChatOptions {
    let mut options = ChatOptions {
        temperature: request.temperature.or(route.temperature),
        max_tokens: request.max_output_tokens.or(route.max_output_tokens),
        seed: request.seed,
        stop_sequences: request.stop.clone(),
        tool_choice: message::tool_choice(request),
        // Refusals and blocked prompts are read from the answer itself.
        capture_raw_body: Some(true),
        normalize_reasoning_content: Some(true),
        reasoning_effort: literal_name(kind, model),
        ..ChatOptions::default()
    };
    match (kind, format) {
        // Anthropic has no JSON mode: the system message has to do.
        (_, Format::Free) | (ProviderKind::Anthropic, Format::JsonObject) => {}
        (ProviderKind::Openai, Format::JsonObject) => {
            options.response_format = Some(ChatResponseFormat::JsonMode);
        }
        (ProviderKind::Gemini, Format::JsonObject) => {
            options.extra_body = Some(gemini_json_mode(&options));
        }
        (ProviderKind::Openai, Format::Schema(shape)) => {
            options.extra_body = Some(openai_schema(shape));
        }
        (ProviderKind::Gemini | ProviderKind::Anthropic, Format::Schema(shape)) => {
            let schema = strict::without_dialect(&shape.schema);
            options.response_format = Some(JsonSpec::new(&shape.name, schema).into());
        }
    }
    options
}

/// `genai` reads a last part of a model's name such as `-max` as an effort and cuts it off. Many
/// models that speak OpenAI's format really have such names; an effort given in tokens keeps
/// `genai` from looking, and is not sent in that format.
fn literal_name(kind: ProviderKind, model: &str) -> Option<ReasoningEffort> {
    let read_as_effort = ReasoningEffort::from_model_name(model).0.is_some();
    (kind == ProviderKind::Openai && read_as_effort).then_some(ReasoningEffort::Budget(0))
}

/// `genai` always asks OpenAI for strict decoding; some schemas cannot be expressed there.
fn openai_schema(shape: &ResponseSchema) -> Value {
    let (schema, strict) = match strict::adapt(&shape.schema) {
        Some(schema) => (schema, true),
        None => (strict::without_dialect(&shape.schema), false),
    };
    json!({
        "response_format": {
            "type": "json_schema",
            "json_schema": { "name": shape.name, "strict": strict, "schema": schema },
        }
    })
}

/// Gemini's JSON mode. An extra body replaces whole fields, so the others are repeated.
fn gemini_json_mode(options: &ChatOptions) -> Value {
    let mut config = Map::new();
    config.insert("responseMimeType".into(), json!("application/json"));
    let fields = [
        ("temperature", options.temperature.map(Value::from)),
        ("maxOutputTokens", options.max_tokens.map(Value::from)),
        ("seed", options.seed.map(Value::from)),
        (
            "stopSequences",
            (!options.stop_sequences.is_empty()).then(|| json!(options.stop_sequences)),
        ),
    ];
    for (name, value) in fields {
        config.extend(value.map(|value| (name.to_owned(), value)));
    }
    json!({ "generationConfig": config })
}
