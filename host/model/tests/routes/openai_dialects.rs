//! Dialects of OpenAI's format: reasoning of DeepSeek, provider-specific fields, malformed
//! arguments.

use serde_json::{Value, json};
use wattle_graph::llm::{CompletionRequest, Part, Role, ToolCall, ToolResult};
use wattle_kit::standin::{Config, Fault, FaultRule, Handle, Pattern, Server};
use wattle_model::Routes;

use crate::support::{ask_city, ask_tools, complete, message, routes, table};

async fn standin() -> Handle {
    Server::start(Config::default()).await.unwrap()
}

/// Returns a route to DeepSeek as an operator would configure it.
fn deepseek(server: &Handle, extra: Value) -> Routes {
    let provider = json!({ "structured": "json-object" });
    let route = json!({ "model": "deepseek-v4-flash", "extra": extra });
    routes(table("openai", &server.base_url, &provider, &route))
}

/// Returns the conversation after the tools that a model called have returned.
fn answered(request: CompletionRequest, said: Vec<Part>) -> CompletionRequest {
    let mut request = request;
    let results = said.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(Part::ToolResult(ToolResult {
            call_id: call.id.clone(),
            content: "done".into(),
            is_error: false,
        })),
        _ => None,
    });
    let results = results.collect();
    request.messages.push(message(Role::Assistant, said));
    request.messages.push(message(Role::Tool, results));
    request
}

#[tokio::test]
async fn deepseek_gets_its_reasoning_back_with_tool_calls() {
    let server = standin().await;
    let routes = deepseek(&server, json!({}));
    let request = ask_tools("call add {\"a\":1}");
    let first = complete(&routes, &request).await.unwrap();
    let [Part::Other(_), Part::Reasoning(thought), Part::ToolCall(_)] = first.parts.as_slice()
    else {
        panic!("{:?}", first.parts)
    };
    let next = answered(request, first.parts.clone());
    let last = complete(&routes, &next).await.unwrap();
    let entries = server.requests();
    let said = &entries[1].body.as_ref().unwrap()["messages"][2];
    assert_eq!(said["reasoning_content"].as_str(), Some(thought.as_str()));
    assert!(said["content"].is_null());

    // Text needs no reasoning, and other services do not know the field.
    let mut after = next;
    after.messages.push(message(Role::Assistant, last.parts));
    after.messages.push(message(Role::User, vec![Part::Text("and?".into())]));
    complete(&routes, &after).await.unwrap();
    let body = server.requests()[2].body.clone().unwrap();
    let words = body["messages"].as_array().unwrap().iter().rev().nth(1).unwrap();
    assert!(words.get("reasoning_content").is_none(), "{words}");
}

#[tokio::test]
async fn deepseek_gets_the_schema_in_a_message() {
    let server = standin().await;
    let routes = deepseek(&server, json!({ "thinking": { "type": "disabled" } }));
    let answer = complete(&routes, &ask_city()).await.unwrap();
    assert!(answer.structured.is_some());
    assert!(!answer.parts.iter().any(|part| matches!(part, Part::Reasoning(_))));
    let body = server.requests()[0].body.clone().unwrap();
    assert_eq!(body["thinking"], json!({ "type": "disabled" }));
    assert_eq!(body["response_format"], json!({ "type": "json_object" }));
    assert!(body["messages"][0]["content"].as_str().unwrap().contains("json"));
}

#[tokio::test]
async fn rejected_schema_is_sent_in_a_message() {
    let server = standin().await;
    let route = json!({ "model": "deepseek-v4-flash" });
    let routes = routes(table("openai", &server.base_url, &json!({}), &route));
    assert!(complete(&routes, &ask_city()).await.unwrap().structured.is_some());
    let kinds: Vec<Value> = server
        .requests()
        .iter()
        .map(|entry| entry.body.as_ref().unwrap()["response_format"]["type"].clone())
        .collect();
    assert_eq!(kinds, ["json_schema", "json_object"]);
}

#[tokio::test]
async fn extra_fields_of_a_provider_are_sent_to_its_models_only() {
    let server = standin().await;
    let provider = json!({ "extra": { "top_k": 5, "thinking": { "type": "enabled" } } });
    let route = json!({
        "retries": 0,
        "extra": { "thinking": { "type": "disabled" } },
        "fallbacks": [
            { "provider": "first", "model": "m-2", "extra": { "top_k": 6 } },
            { "provider": "second", "model": "m-3" },
        ],
    });
    let mut config = table("openai", &server.base_url, &provider, &route);
    config["providers"]["second"] = json!({ "kind": "openai", "base_url": server.base_url });
    let gone = Fault::Status { status: 503, retry_after: None, body: None };
    for model in ["m-1", "m-2", "m-3"] {
        server.fault(FaultRule::new(Pattern::model(model), gone.clone()));
    }
    complete(&routes(config), &ask_city()).await.unwrap_err();
    let sent: Vec<[Value; 2]> = server
        .requests()
        .iter()
        .map(|entry| {
            let body = entry.body.as_ref().unwrap();
            [body["top_k"].clone(), body["thinking"]["type"].clone()]
        })
        .collect();
    let expected =
        [[json!(5), json!("disabled")], [json!(6), json!("enabled")], [Value::Null, Value::Null]];
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn malformed_arguments_are_sent_back_as_text() {
    for (kind, path) in [("openai", "/v1"), ("gemini", "/v1beta"), ("anthropic", "/v1")] {
        let server = standin().await;
        let broken = json!({ "tool_calls": [{ "name": "add", "arguments": "{\"a\": oops" }] });
        let script = Fault::Script { contents: vec![broken].into() };
        server.fault(FaultRule::new(Pattern::any(), script));
        let base = format!("{}{path}", server.base_url);
        let routes = routes(table(kind, &base, &json!({ "stream": true }), &json!({})));
        let request = ask_tools("add it");
        let mut said = complete(&routes, &request).await.unwrap().parts;
        let last = said.len() - 1;
        let Part::ToolCall(ToolCall { arguments, .. }) = &mut said[last] else {
            panic!("{said:?}")
        };
        if kind == "openai" {
            assert_eq!(arguments, &json!("{\"a\": oops"));
        }
        // The formats of the other stand-ins cannot have malformed arguments.
        *arguments = json!("{\"a\": oops");
        complete(&routes, &answered(request, said)).await.unwrap();
        let sent = server.requests()[1].body.clone().unwrap().to_string();
        assert!(sent.contains("unreadable_arguments"), "{kind}: {sent}");
    }
}
