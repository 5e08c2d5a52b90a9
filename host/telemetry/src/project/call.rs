//! What is said of a host call.

use serde_json::{Map, Value, json};
use wattle_graph::event::Called;

use crate::project::attribute::Attributes;
use crate::project::{View, content, failed};

/// Functions that are spans; the others take no time and lead nowhere.
const SHOWN: [&str; 7] = [
    "llm.complete",
    "llm.stream",
    IMAGES,
    "tools.call",
    "http.send",
    "sql.query",
    "sql.transaction",
];

/// The function that makes pictures.
const IMAGES: &str = "llm.generate-images";

/// Langfuse's word for what a function is.
pub(super) fn kind(function: &str) -> &'static str {
    match function {
        "llm.complete" | "llm.stream" | IMAGES => "generation",
        "tools.call" => "tool",
        _ => "span",
    }
}

/// Fills in what is known of a call and gives its span a name; `None` if it is no span.
pub(super) fn describe(
    called: &Called,
    view: &View<'_>,
    attributes: &mut Attributes,
) -> Option<String> {
    if !SHOWN.contains(&called.function.as_str()) {
        return None;
    }
    // An answer of before is no generation: it would be paid again in Langfuse's sums.
    let kind = if called.reused.is_some() { "span" } else { kind(&called.function) };
    attributes.text("langfuse.observation.type", kind);
    attributes.text("wattle.function", &called.function);
    let answer = called.result.as_ref().ok();
    let name = match called.function.split('.').next() {
        Some("llm") if called.function == IMAGES => pictures(called, answer, view, attributes),
        Some("llm") => model(called, answer, view, attributes),
        Some("tools") => tool(called, answer, view, attributes),
        Some("http") => http(called, answer, attributes),
        _ => sql(called, view, attributes),
    };
    let message = called.result.as_ref().err().map(|failure| view.failure(failure));
    failed(attributes, message.as_deref());
    if let Err(failure) = &called.result {
        attributes.text("error.type", &failure.code);
    }
    Some(name)
}

fn model(
    called: &Called,
    answer: Option<&Value>,
    view: &View<'_>,
    attributes: &mut Attributes,
) -> String {
    let request = &called.request;
    let route = request["route"].as_str().unwrap_or_default();
    let behind = (view.route)(route);
    let answered = answer.and_then(|answer| answer["model"].as_str()).map(str::to_owned);
    let asked = behind.as_ref().map(|info| info.model.clone()).or_else(|| answered.clone());
    attributes.text("gen_ai.operation.name", "chat");
    attributes.text("wattle.route", route);
    if let Some(info) = &behind {
        attributes.text("gen_ai.provider.name", &info.provider);
        attributes.text("gen_ai.system", &info.provider);
    }
    attributes.some_text("gen_ai.request.model", asked.clone());
    attributes.some_text("gen_ai.response.model", answered.clone());
    attributes.some_text("langfuse.observation.model.name", answered.clone().or(asked.clone()));
    parameters(request, attributes);
    if let Some(answer) = answer {
        if called.reused.is_none() {
            usage(&answer["usage"], attributes);
        }
        let reason = &answer["finish_reason"];
        let reason = reason.as_str().or_else(|| reason["other"].as_str());
        attributes.texts("gen_ai.response.finish_reasons", reason);
    }
    if view.content {
        attributes.text("langfuse.observation.input", content::json(or_whole(request, "messages")));
        if let Some(answer) = answer {
            let said = Some(&answer["structured"]).filter(|it| !it.is_null());
            let said = said.unwrap_or_else(|| or_whole(answer, "parts"));
            attributes.text("langfuse.observation.output", content::json(said));
        }
    }
    format!("chat {}", answered.or(asked).unwrap_or_else(|| route.to_owned()))
}

/// Pictures that a model made; where they are, never their bytes.
fn pictures(
    called: &Called,
    answer: Option<&Value>,
    view: &View<'_>,
    attributes: &mut Attributes,
) -> String {
    let request = &called.request;
    let route = request["route"].as_str().unwrap_or_default();
    let asked = (view.route)(route).map(|info| info.model);
    let first = answer.map(|images| &images[0]);
    let told = |key: &str| first.and_then(|image| image[key].as_str()).map(str::to_owned);
    attributes.text("gen_ai.operation.name", "generate_content");
    attributes.text("gen_ai.output.type", "image");
    attributes.text("wattle.route", route);
    attributes.some_text("gen_ai.provider.name", told("provider"));
    attributes.some_text("gen_ai.request.model", asked.clone());
    let made = told("model");
    attributes.some_text("gen_ai.response.model", made.clone());
    attributes.some_text("langfuse.observation.model.name", made.clone().or(asked.clone()));
    if view.content {
        attributes.text("langfuse.observation.input", content::json(or_whole(request, "prompt")));
        if let Some(answer) = answer {
            attributes.text("langfuse.observation.output", content::json(answer));
        }
    }
    format!("generate_content {}", made.or(asked).unwrap_or_else(|| route.to_owned()))
}

fn parameters(request: &Value, attributes: &mut Attributes) {
    let mut shown = Map::new();
    for key in ["temperature", "max_output_tokens", "seed", "stop", "tool_choice"] {
        if let Some(value) = request.get(key).filter(|value| !value.is_null()) {
            shown.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(temperature) = request["temperature"].as_f64() {
        attributes.float("gen_ai.request.temperature", temperature);
    }
    if let Some(tokens) = request["max_output_tokens"].as_u64() {
        attributes.number("gen_ai.request.max_tokens", tokens);
    }
    if let Some(name) = request["response_schema"]["name"].as_str() {
        attributes.text("gen_ai.output.type", "json");
        shown.insert("response_schema".to_owned(), json!(name));
    }
    if !shown.is_empty() {
        let shown = Value::Object(shown).to_string();
        attributes.text("langfuse.observation.model.parameters", shown);
    }
}

fn usage(usage: &Value, attributes: &mut Attributes) {
    let names = [
        ("input_tokens", "gen_ai.usage.input_tokens", "input"),
        ("output_tokens", "gen_ai.usage.output_tokens", "output"),
        ("cached_input_tokens", "gen_ai.usage.cache_read.input_tokens", "input_cached_tokens"),
        ("reasoning_tokens", "gen_ai.usage.reasoning.output_tokens", "output_reasoning_tokens"),
    ];
    let mut details = Map::new();
    for (field, semantic, langfuse) in names {
        if let Some(tokens) = usage[field].as_u64() {
            attributes.number(semantic, tokens);
            details.insert(langfuse.to_owned(), json!(tokens));
        }
    }
    if !details.is_empty() {
        let details = Value::Object(details).to_string();
        attributes.text("langfuse.observation.usage_details", details);
    }
}

fn tool(
    called: &Called,
    answer: Option<&Value>,
    view: &View<'_>,
    attributes: &mut Attributes,
) -> String {
    let request = &called.request;
    let name = request["tool"].as_str().unwrap_or(&called.summary);
    attributes.text("gen_ai.operation.name", "execute_tool");
    attributes.text("gen_ai.tool.name", name);
    attributes.some_text("gen_ai.tool.call.id", request["call_id"].as_str());
    if answer.is_some_and(|answer| answer["is_error"] == true) {
        attributes.text("langfuse.observation.level", "WARNING");
        attributes.text("langfuse.observation.status_message", "the tool answered with an error");
    }
    if view.content {
        let given = or_whole(request, "arguments");
        attributes.text("langfuse.observation.input", content::json(given));
        if let Some(answer) = answer {
            let said = Some(&answer["structured"]).filter(|it| !it.is_null());
            let said = said.unwrap_or_else(|| or_whole(answer, "content"));
            attributes.text("langfuse.observation.output", content::json(said));
        }
    }
    format!("execute_tool {name}")
}

fn http(called: &Called, answer: Option<&Value>, attributes: &mut Attributes) -> String {
    let method = called.request["method"].as_str().unwrap_or_default();
    attributes.text("http.request.method", method);
    let url = called.request["url"].as_str().and_then(|url| url.parse::<url::Url>().ok());
    if let Some(url) = url {
        attributes.some_text("server.address", url.host_str());
        attributes.text("url.path", url.path());
    }
    if let Some(status) = answer.and_then(|answer| answer["status"].as_u64()) {
        attributes.number("http.response.status_code", status);
    }
    format!("HTTP {method}")
}

fn sql(called: &Called, view: &View<'_>, attributes: &mut Attributes) -> String {
    attributes.some_text("db.namespace", called.request["database"].as_str());
    if let Some(statement) = called.request["statement"].as_str().filter(|_| view.content) {
        attributes.text("db.query.text", content::text(statement));
    }
    called.function.clone()
}

/// A part of a document; all of it where the journal kept only its head.
fn or_whole<'a>(document: &'a Value, key: &str) -> &'a Value {
    document.get(key).unwrap_or(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_of_models_are_generations() {
        for (function, expected) in [
            ("llm.complete", "generation"),
            ("llm.stream", "generation"),
            ("llm.generate-images", "generation"),
            ("llm.route", "span"),
            ("llm.stream.next", "span"),
            ("tools.call", "tool"),
            ("tools.list", "span"),
            ("http.send", "span"),
        ] {
            assert_eq!(kind(function), expected, "{function}");
        }
    }
}
