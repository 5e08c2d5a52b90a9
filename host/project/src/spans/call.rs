//! Attributes of host calls.

use serde_json::{Map, Value, json};
use wattle_graph::call::CallKind;
use wattle_graph::event::Called;
use wattle_graph::llm::{CompletionRequest, Usage};

use crate::spans::attribute::Attributes;
use crate::spans::content;
use crate::spans::view::View;

/// Returns Langfuse's observation type for a kind of call. Returns `None` for a read of a stream,
/// which has no span.
pub(super) fn observation(kind: CallKind) -> Option<&'static str> {
    match kind {
        CallKind::Complete | CallKind::Stream | CallKind::GenerateImages => Some("generation"),
        CallKind::CallTool => Some("tool"),
        CallKind::SendHttp | CallKind::QuerySql | CallKind::SqlTransaction => Some("span"),
        CallKind::StreamNext => None,
    }
}

/// Adds the attributes of a call and returns the name of its span; `None` if the call has no span.
pub(super) fn describe(
    called: &Called,
    view: &View<'_>,
    attributes: &mut Attributes,
) -> Option<String> {
    let kind = called.kind()?;
    let observation = observation(kind)?;
    // A reused result is a plain span, because Langfuse would count the cost of a generation again.
    let observation = if called.reused.is_some() { "span" } else { observation };
    attributes.text("langfuse.observation.type", observation);
    attributes.text("wattle.function", &called.function);
    let name = match kind {
        CallKind::Complete | CallKind::Stream | CallKind::StreamNext => {
            add_model_call(called, view, attributes)
        }
        CallKind::GenerateImages => add_image_call(called, view, attributes),
        CallKind::CallTool => add_tool_call(called, view, attributes),
        CallKind::SendHttp => add_http_call(called, attributes),
        CallKind::QuerySql | CallKind::SqlTransaction => add_sql_call(called, view, attributes),
    };
    let message = called.result.as_ref().err().map(|failure| view.failure(failure));
    attributes.failed(message.as_deref());
    if let Err(failure) = &called.result {
        attributes.text("error.type", &failure.code);
    }
    Some(name)
}

/// Adds the attributes of a model call and returns the name of its span.
fn add_model_call(called: &Called, view: &View<'_>, attributes: &mut Attributes) -> String {
    let (request, answer) = (called.completion_request(), called.completion());
    let route = called.route().unwrap_or_default();
    let behind = (view.route)(route);
    let answered = answer.as_ref().map(|answer| answer.model.clone());
    let asked = behind.as_ref().map(|info| info.model.clone()).or_else(|| answered.clone());
    attributes.text("gen_ai.operation.name", "chat");
    attributes.text("wattle.route", route);
    if let Some(info) = &behind {
        attributes.text("gen_ai.provider.name", &info.provider);
        attributes.text("gen_ai.system", &info.provider);
    }
    attributes.optional_text("gen_ai.request.model", asked.clone());
    attributes.optional_text("gen_ai.response.model", answered.clone());
    attributes.optional_text("langfuse.observation.model.name", answered.clone().or(asked.clone()));
    if let Some(request) = &request {
        parameters(request, attributes);
    }
    if let Some(answer) = &answer {
        if called.reused.is_none() {
            usage(&answer.usage, attributes);
        }
        attributes.texts("gen_ai.response.finish_reasons", Some(answer.finish_reason.name()));
    }
    if view.content {
        // The messages of a request with a history are only a part of what the model got.
        let whole = request.filter(|request| request.history.is_none());
        let given = whole.map_or_else(|| called.request.clone(), |it| json!(it.messages));
        attributes.text("langfuse.observation.input", content::json(&given));
        if let Some(answer) = answer {
            let said = answer.structured.unwrap_or_else(|| json!(answer.parts));
            attributes.text("langfuse.observation.output", content::json(&said));
        }
    }
    format!("chat {}", answered.or(asked).unwrap_or_else(|| route.to_owned()))
}

/// Adds the attributes of a call that generates images and returns the name of its span. The
/// attributes contain references to the images, never their bytes.
fn add_image_call(called: &Called, view: &View<'_>, attributes: &mut Attributes) -> String {
    let route = called.route().unwrap_or_default();
    let asked = (view.route)(route).map(|info| info.model);
    let images = called.images();
    let first = images.as_ref().and_then(|images| images.first());
    let made = first.map(|image| image.model.clone());
    attributes.text("gen_ai.operation.name", "generate_content");
    attributes.text("gen_ai.output.type", "image");
    attributes.text("wattle.route", route);
    attributes.optional_text("gen_ai.provider.name", first.map(|image| image.provider.clone()));
    attributes.optional_text("gen_ai.request.model", asked.clone());
    attributes.optional_text("gen_ai.response.model", made.clone());
    attributes.optional_text("langfuse.observation.model.name", made.clone().or(asked.clone()));
    if view.content {
        let given = called.image_request().map(|request| json!(request.prompt));
        let given = given.unwrap_or_else(|| called.request.clone());
        attributes.text("langfuse.observation.input", content::json(&given));
        if let Some(images) = &images {
            attributes.text("langfuse.observation.output", content::json(&json!(images)));
        }
    }
    format!("generate_content {}", made.or(asked).unwrap_or_else(|| route.to_owned()))
}

fn parameters(request: &CompletionRequest, attributes: &mut Attributes) {
    let mut shown = Map::new();
    let mut show = |name: &str, value: Value| {
        if !value.is_null() {
            shown.insert(name.to_owned(), value);
        }
    };
    show("temperature", json!(request.temperature));
    show("max_output_tokens", json!(request.max_output_tokens));
    show("seed", json!(request.seed));
    show("stop", if request.stop.is_empty() { Value::Null } else { json!(request.stop) });
    show("tool_choice", json!(request.tool_choice));
    if let Some(temperature) = request.temperature {
        attributes.float("gen_ai.request.temperature", temperature);
    }
    if let Some(tokens) = request.max_output_tokens {
        attributes.number("gen_ai.request.max_tokens", tokens.into());
    }
    if let Some(schema) = &request.response_schema {
        attributes.text("gen_ai.output.type", "json");
        show("response_schema", json!(schema.name));
    }
    let shown = Value::Object(shown).to_string();
    attributes.text("langfuse.observation.model.parameters", shown);
}

fn usage(usage: &Usage, attributes: &mut Attributes) {
    for (key, tokens) in [
        ("gen_ai.usage.input_tokens", usage.input_tokens),
        ("gen_ai.usage.output_tokens", usage.output_tokens),
        ("gen_ai.usage.cache_read.input_tokens", usage.cached_input_tokens),
        ("gen_ai.usage.reasoning.output_tokens", usage.reasoning_tokens),
    ] {
        if let Some(tokens) = tokens {
            attributes.number(key, tokens);
        }
    }
    // The counts of OpenTelemetry include their parts. Langfuse adds up its usage types and their
    // prices, so each token belongs to only one of them.
    let details = [
        ("input", without(usage.input_tokens, usage.cached_input_tokens)),
        ("output", without(usage.output_tokens, usage.reasoning_tokens)),
        ("input_cached_tokens", usage.cached_input_tokens),
        ("output_reasoning_tokens", usage.reasoning_tokens),
    ];
    let details = details.into_iter();
    let details: Map<String, Value> =
        details.filter_map(|(name, tokens)| Some((name.to_owned(), json!(tokens?)))).collect();
    if !details.is_empty() {
        let details = Value::Object(details).to_string();
        attributes.text("langfuse.observation.usage_details", details);
    }
}

/// Returns a count without one of its parts. A provider may report a part that exceeds the count.
fn without(whole: Option<u64>, part: Option<u64>) -> Option<u64> {
    whole.map(|tokens| tokens.saturating_sub(part.unwrap_or(0)))
}

/// Adds the attributes of a tool call and returns the name of its span.
fn add_tool_call(called: &Called, view: &View<'_>, attributes: &mut Attributes) -> String {
    let (request, output) = (called.tool_request(), called.tool_output());
    let name = request.as_ref().map_or(&called.summary, |request| &request.tool).clone();
    attributes.text("gen_ai.operation.name", "execute_tool");
    attributes.text("gen_ai.tool.name", &name);
    attributes.optional_text("gen_ai.tool.call.id", called.tool_call_id());
    if output.as_ref().is_some_and(|output| output.is_error) {
        attributes.text("langfuse.observation.level", "WARNING");
        attributes.text("langfuse.observation.status_message", "the tool returned an error");
    }
    if view.content {
        let given = request.map_or_else(|| called.request.clone(), |request| request.arguments);
        attributes.text("langfuse.observation.input", content::json(&given));
        if let Some(output) = output {
            let said = output.structured.unwrap_or_else(|| json!(output.content));
            attributes.text("langfuse.observation.output", content::json(&said));
        }
    }
    format!("execute_tool {name}")
}

/// Adds the attributes of an HTTP request and returns the name of its span.
fn add_http_call(called: &Called, attributes: &mut Attributes) -> String {
    let method = called.request["method"].as_str().unwrap_or_default();
    attributes.text("http.request.method", method);
    let url = called.request["url"].as_str().and_then(|url| url.parse::<url::Url>().ok());
    if let Some(url) = url {
        attributes.optional_text("server.address", url.host_str());
        attributes.text("url.path", url.path());
    }
    if let Some(status) = called.result.as_ref().ok().and_then(|answer| answer["status"].as_u64()) {
        attributes.number("http.response.status_code", status);
    }
    format!("HTTP {method}")
}

/// Adds the attributes of an SQL statement or transaction and returns the name of its span.
fn add_sql_call(called: &Called, view: &View<'_>, attributes: &mut Attributes) -> String {
    attributes.optional_text("db.namespace", called.request["database"].as_str());
    if let Some(statement) = called.request["statement"].as_str().filter(|_| view.content) {
        attributes.text("db.query.text", content::text(statement));
    }
    called.function.clone()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wattle_graph::id::Digest;

    use super::*;
    use crate::spans::attribute::Attribute;
    use crate::spans::view::Route;

    #[test]
    fn usage_types_of_langfuse_have_no_tokens_in_common() {
        for (cached, uncached) in [(30, 70), (101, 0)] {
            let reported = Usage {
                input_tokens: Some(100),
                output_tokens: Some(50),
                cached_input_tokens: Some(cached),
                reasoning_tokens: Some(20),
            };
            let mut attributes = Attributes::default();
            usage(&reported, &mut attributes);
            let attributes: BTreeMap<String, Attribute> = attributes.into_iter().collect();
            assert_eq!(attributes["gen_ai.usage.input_tokens"], Attribute::Number(100));
            assert_eq!(attributes["gen_ai.usage.output_tokens"], Attribute::Number(50));
            let Attribute::Text(details) = &attributes["langfuse.observation.usage_details"] else {
                panic!("the usage types are a JSON text")
            };
            let details: Value = serde_json::from_str(details).unwrap();
            let expected = json!({ "input": uncached, "input_cached_tokens": cached,
                                   "output": 30, "output_reasoning_tokens": 20 });
            assert_eq!(details, expected);
        }
    }

    /// Returns the attribute with the input of a model call.
    fn input(request: &Value) -> Value {
        let digest = Digest::of(b"");
        let called = json!({
            "task": "t", "node": "n", "call": 0, "batch": 0, "function": "llm.complete",
            "digest": digest, "request": request, "started_ms": 0, "duration_us": 0,
            "result": { "Err": { "code": "unavailable", "message": "gone", "retryable": true } },
        });
        let called: Called = serde_json::from_value(called).unwrap();
        let route = |_: &str| -> Option<Route> { None };
        let mut attributes = Attributes::default();
        describe(&called, &View { content: true, route: &route }, &mut attributes).unwrap();
        let attributes: BTreeMap<String, Attribute> = attributes.into_iter().collect();
        let Attribute::Text(input) = &attributes["langfuse.observation.input"] else {
            panic!("the input is a JSON text")
        };
        serde_json::from_str(input).unwrap()
    }

    #[test]
    fn the_input_of_a_model_call_is_its_messages_or_the_request_with_its_history() {
        let messages = json!([{ "role": "user", "parts": [{ "text": "and?" }] }]);
        let mut request = json!({ "route": "chat", "messages": messages });
        assert_eq!(input(&request), messages);
        request["history"] = json!({
            "channel": "messages", "at": 0, "from": 0, "to": 2, "length": 2, "bytes": 70_000,
            "digest": Digest::of(b""),
        });
        assert_eq!(input(&request), request);
        let head = json!({ "route": "chat", "head": r#"{"route":"chat","#, "bytes": 70_000 });
        assert_eq!(input(&head), head);
    }

    #[test]
    fn only_model_calls_are_generations() {
        for (kind, expected) in [
            (CallKind::Complete, Some("generation")),
            (CallKind::Stream, Some("generation")),
            (CallKind::GenerateImages, Some("generation")),
            (CallKind::StreamNext, None),
            (CallKind::CallTool, Some("tool")),
            (CallKind::SendHttp, Some("span")),
        ] {
            assert_eq!(observation(kind), expected, "{kind:?}");
        }
    }
}
