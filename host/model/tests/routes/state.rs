//! Provider state is sent back unchanged to its provider, and to no other.

use serde_json::{Value, json};
use wattle_graph::llm::{CompletionRequest, Message, Part, Role, ToolResult};
use wattle_model::Routes;
use wiremock::MockServer;

use crate::support::{
    ask_tools, bodies, chat, complete, json_response, message, routes, server, table,
};

/// Returns the conversation after a completion, with a result for each of its tool calls. The parts
/// are serialized and parsed, as when they are read from a journal.
fn after(said: Vec<Part>) -> CompletionRequest {
    let said = serde_json::to_value(message(Role::Assistant, said)).unwrap();
    let said: Message = serde_json::from_value(said).unwrap();
    let results = said.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(Part::ToolResult(ToolResult {
            call_id: call.id.clone(),
            content: "3".into(),
            is_error: false,
        })),
        _ => None,
    });
    let results = message(Role::Tool, results.collect());
    let mut request = ask_tools("add them");
    request.messages.extend([said, results]);
    request
}

fn routes_to(kind: &str, server: &MockServer, model: &str) -> Routes {
    routes(table(kind, &server.uri(), &json!({}), &json!({ "model": model })))
}

/// Makes a call and continues the conversation. Returns the body of the second request.
async fn second(kind: &str, model: &str, answer: &Value) -> Value {
    let server = server(vec![json_response(answer)]).await;
    let routes = routes_to(kind, &server, model);
    let first = complete(&routes, &ask_tools("add them")).await.unwrap();
    complete(&routes, &after(first.parts)).await.unwrap();
    bodies(&server).await.remove(1)
}

fn calls_of_openai() -> Value {
    let signature = json!({ "google": { "thought_signature": "s1" } });
    let mut answer = chat("unused");
    answer["choices"][0]["message"] = json!({
        "role": "assistant", "content": null, "reasoning_content": "hm",
        "reasoning_details": [{ "type": "reasoning.encrypted", "data": "abc", "index": 0 }],
        "tool_calls": [{ "id": "c1", "type": "function", "extra_content": signature,
            "function": { "name": "add", "arguments": "{\"a\":1}" } }],
    });
    answer
}

#[tokio::test]
async fn openai_gets_its_state_back() {
    let body = second("openai", "gemini-3-pro", &calls_of_openai()).await;
    let said = &body["messages"][2];
    let signature = json!({ "google": { "thought_signature": "s1" } });
    assert_eq!(said["tool_calls"][0]["extra_content"], signature);
    assert_eq!(said["reasoning_details"][0]["data"], "abc");
    assert_eq!(said["reasoning_content"], "hm");
}

#[tokio::test]
async fn openai_gets_reasoning_between_tags_back_in_the_text() {
    for (content, sent) in [
        ("<think>hm</think>\n\nhi", "<think>hm</think>hi"),
        ("<think>hm</think>", "<think>hm</think>"),
        ("<think>a</think>\n<think>b</think>hi", "<think>ab</think>hi"),
        ("[THINK]hm[/THINK]hi", "[THINK]hm[/THINK]hi"),
        ("hm.\n</think>\n\nhi", "hm.\n</think>hi"),
        ("<think></think>hi", "hi"),
        ("hi", "hi"),
    ] {
        let call = json!({ "id": "c1", "type": "function",
            "function": { "name": "add", "arguments": "{}" } });
        let mut answer = chat("unused");
        answer["choices"][0]["message"] =
            json!({ "role": "assistant", "content": content, "tool_calls": [call] });
        let body = second("openai", "qwen3", &answer).await;
        let said = &body["messages"][2];
        assert_eq!(said["content"], sent, "{content}");
        assert_eq!(said.get("reasoning_content"), None, "{content}");
        assert_eq!(said["tool_calls"][0]["id"], "c1", "{content}");
    }
}

#[tokio::test]
async fn gemini_gets_its_state_back() {
    let parts = json!([
        { "text": "hm", "thought": true },
        { "functionCall": { "name": "add", "args": { "a": 1 }, "id": "own" },
          "thoughtSignature": "s1" },
        { "functionCall": { "name": "add", "args": null } },
    ]);
    let content = json!({ "role": "model", "parts": parts });
    let answer = json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] });
    for model in ["gemini-3-flash-preview", "gemini-flash-latest"] {
        let body = second("gemini", model, &answer).await;
        let said = json!([
            { "functionCall": { "name": "add", "args": { "a": 1 }, "id": "own" },
              "thoughtSignature": "s1" },
            { "functionCall": { "name": "add", "args": {} } },
        ]);
        assert_eq!(body["contents"][1]["parts"], said, "{model}");
        let answers = &body["contents"][2]["parts"];
        assert_eq!(answers[0]["functionResponse"]["id"], "own", "{model}");
        assert_eq!(answers[1]["functionResponse"].get("id"), None, "{model}");
        assert_eq!(answers[1]["functionResponse"]["name"], "add", "{model}");
    }
}

#[tokio::test]
async fn anthropic_gets_its_state_back() {
    let content = json!([
        { "type": "thinking", "thinking": "hm", "signature": "s1" },
        { "type": "redacted_thinking", "data": "abc" },
        { "type": "text", "text": "Let me see.", "citations": [{ "type": "page", "at": 1 }] },
        { "type": "thinking", "thinking": "and", "signature": "s2" },
        { "type": "tool_use", "id": "toolu_1", "name": "add", "input": { "a": 1 } },
    ]);
    let answer = json!({ "type": "message", "role": "assistant", "model": "claude-opus-5",
        "content": content, "stop_reason": "tool_use", "usage": { "output_tokens": 4 } });
    let body = second("anthropic", "claude-opus-5", &answer).await;
    assert_eq!(body["messages"][1]["content"], content);
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "toolu_1");
}

#[tokio::test]
async fn providers_do_not_get_state_and_reasoning_of_another_provider() {
    let first = server(vec![json_response(&calls_of_openai())]).await;
    let routes = routes_to("openai", &first, "gemini-3-pro");
    let said = complete(&routes, &ask_tools("add them")).await.unwrap().parts;
    for (kind, model) in [("openai", "gpt-5"), ("gemini", "gemini-3-pro"), ("anthropic", "claude")]
    {
        let other = server(vec![json_response(&calls_of_openai())]).await;
        let mut config = table(kind, &other.uri(), &json!({}), &json!({ "model": model }));
        let provider = config["providers"]["first"].take();
        config["providers"] = json!({ "second": provider });
        config["routes"]["chat"]["provider"] = json!("second");
        // The response is malformed in two of these formats; only the request matters.
        let _ = complete(&crate::support::routes(config), &after(said.clone())).await;
        let sent = bodies(&other).await.remove(0).to_string();
        for word in ["\"s1\"", "\"abc\"", "\"hm\"", "provider_state"] {
            assert!(!sent.contains(word), "{kind}: {word} in {sent}");
        }
        assert!(sent.contains("\"add\""), "{kind}: {sent}");
    }
}

#[tokio::test]
async fn tool_call_without_a_signature_gets_the_placeholder_signature() {
    let unsigned = json!([{ "functionCall": { "name": "add", "args": {} } },
        { "functionCall": { "name": "add", "args": {} } }]);
    let content = json!({ "role": "model", "parts": unsigned });
    let answer = json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] });
    let signatures = |body: &Value| {
        let parts = body["contents"][1]["parts"].as_array().unwrap();
        parts.iter().map(|part| part["thoughtSignature"].clone()).collect::<Vec<Value>>()
    };
    let body = second("gemini", "gemini-3-pro", &answer).await;
    assert_eq!(signatures(&body), [json!("skip_thought_signature_validator"), Value::Null]);
    let body = second("gemini", "gemini-2.5-flash", &answer).await;
    assert_eq!(signatures(&body), [Value::Null, Value::Null]);
}

#[tokio::test]
async fn unsigned_call_gets_the_placeholder_signature_in_the_openai_format() {
    let call = |own: Value| {
        let mut call = json!({ "id": "c1", "type": "function",
            "function": { "name": "add", "arguments": "{}" } });
        call.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        call
    };
    let signed = |signature: &str| json!({ "google": { "thought_signature": signature } });
    let placeholder = signed("skip_thought_signature_validator");
    let (none, own) = (json!({}), json!({ "extra_content": signed("s1") }));
    let thought = json!({ "extra_content": { "google": { "thought": true } } });
    let litellm = json!({ "provider_specific_fields": { "thought_signature": "s1" } });
    let envoy = json!({ "thinking_blocks": [{ "type": "thinking", "signature": "s1" }] });
    for (model, message, first, expected) in [
        ("google/gemini-3-pro-preview", &none, &none, &placeholder),
        ("gemini-flash-latest", &none, &none, &placeholder),
        ("gemini-3-pro", &thought, &none, &placeholder),
        ("gemini-3-pro", &none, &json!({ "extra_content": "odd" }), &json!("odd")),
        ("gemini-3-pro", &none, &own, &signed("s1")),
        ("gemini-3-pro", &none, &litellm, &Value::Null),
        ("gemini-3-pro", &envoy, &none, &Value::Null),
        ("gemini-2.5-flash", &none, &none, &Value::Null),
        ("gpt-5", &none, &none, &Value::Null),
    ] {
        let mut answer = chat("unused");
        let said = &mut answer["choices"][0]["message"];
        *said = message.clone();
        said["role"] = json!("assistant");
        said["tool_calls"] = json!([call(first.clone()), call(json!({ "id": "c2" }))]);
        let body = second("openai", model, &answer).await;
        let calls = &body["messages"][2]["tool_calls"];
        assert_eq!(&calls[0]["extra_content"], expected, "{model}: {message} {first}");
        assert_eq!(calls[1]["extra_content"], Value::Null, "{model}");
    }
}

#[tokio::test]
async fn only_reasoning_models_are_asked_for_reasoning() {
    let content = json!({ "role": "model", "parts": [{ "text": "hi" }] });
    let answer = json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] });
    for (model, thinks) in
        [("gemini-2.0-flash", false), ("gemma-3", false), ("gemini-2.5-pro", true)]
    {
        let body = second("gemini", model, &answer).await;
        let thoughts = &body["generationConfig"]["thinkingConfig"]["includeThoughts"];
        assert_eq!(thoughts.as_bool().unwrap_or(false), thinks, "{model}");
    }
}
