//! The options of one request, with what `genai` has no option for.

use genai::chat::{ChatOptions, JsonSpec};
use serde_json::{Map, Value, json};
use wattle_graph::llm::ResponseSchema;

use crate::config::ProviderKind;
use crate::message;
use crate::provider::Ask;
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
pub(super) fn chat_options(kind: ProviderKind, ask: &Ask<'_>) -> ChatOptions {
    let (request, route) = (ask.request, ask.route);
    let mut options = ChatOptions {
        temperature: request.temperature.or(route.temperature),
        max_tokens: request.max_output_tokens.or(route.max_output_tokens),
        seed: request.seed,
        stop_sequences: request.stop.clone(),
        tool_choice: message::tool_choice(request),
        // Blocked prompts are read from the answer itself.
        capture_raw_body: Some(true),
        // Of a stream the library keeps only what it is told to.
        capture_usage: Some(true),
        capture_content: Some(true),
        capture_reasoning_content: Some(true),
        capture_tool_calls: Some(true),
        ..ChatOptions::default()
    };
    match ask.format {
        Format::JsonObject if kind == ProviderKind::Gemini => {
            options.extra_body = Some(gemini_json_mode(&options));
        }
        // Anthropic has no JSON mode: the system message has to do.
        Format::Free | Format::JsonObject => {}
        Format::Schema(shape) => {
            let schema = strict::without_dialect(&shape.schema);
            options.response_format = Some(JsonSpec::new(&shape.name, schema).into());
        }
    }
    options
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
