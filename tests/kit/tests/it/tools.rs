//! Tool calling of the stand-in models in the three formats: calls, results and the last text.

use reqwest::Client;
use serde_json::{Value, json};
use wattle_kit::standin::{Config, Handle, Server};

const SCRIPT: &str = "call echo {\"text\":\"a\"}\ncall fly";

async fn start() -> Handle {
    Server::start(Config::default()).await.unwrap()
}

async fn post(server: &Handle, path: &str, body: &Value) -> (u16, Value) {
    let request = Client::new().post(format!("{}{path}", server.base_url));
    let request = request.header("authorization", "Bearer sk-test").header("x-api-key", "sk-test");
    let request = request.header("x-goog-api-key", "sk-test");
    let response = request.json(body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"text": {"type": "string"}}})
}

#[tokio::test]
async fn openai_calls_tools_and_requires_all_results() {
    const PATH: &str = "/v1/chat/completions";
    let server = start().await;
    let function = json!({"name": "echo", "description": "d", "parameters": schema()});
    let mut request = json!({"model": "m", "messages": [{"role": "user", "content": SCRIPT}],
        "tools": [{"type": "function", "function": function}]});
    let (_, first) = post(&server, PATH, &request).await;
    let choice = &first["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    let calls = choice["message"]["tool_calls"].as_array().unwrap().clone();
    assert_eq!(calls[0]["function"], json!({"name": "echo", "arguments": "{\"text\":\"a\"}"}));

    let messages = request["messages"].as_array_mut().unwrap();
    messages.push(choice["message"].clone());
    messages.push(json!({"role": "tool", "tool_call_id": calls[0]["id"], "content": "a"}));
    let (status, refused) = post(&server, PATH, &request).await;
    assert_eq!(status, 400, "{refused}");
    let messages = request["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "tool", "tool_call_id": calls[1]["id"], "content": "no"}));
    let (_, last) = post(&server, PATH, &request).await;
    let choice = &last["choices"][0];
    assert_eq!(choice["message"]["content"], "The tools answered:\necho: a\nfly: no");
    assert_eq!(choice["finish_reason"], "stop");

    request["tools"][0]["function"]["name"] = "date/parse".into();
    assert_eq!(post(&server, PATH, &request).await.0, 400, "a name that services reject");
}

#[tokio::test]
async fn gemini_calls_tools() {
    const PATH: &str = "/v1beta/models/m:generateContent";
    let server = start().await;
    let declared = json!([{"name": "echo", "description": "d", "parameters": schema()}]);
    let mut request = json!({"contents": [{"role": "user", "parts": [{"text": SCRIPT}]}],
        "tools": [{"functionDeclarations": declared}]});
    let (_, first) = post(&server, PATH, &request).await;
    let said = first["candidates"][0]["content"].clone();
    assert_eq!(said["parts"][0]["functionCall"], json!({"name": "echo", "args": {"text": "a"}}));
    let answer = |name: &str, text: &str| json!({"functionResponse": {"name": name, "response": {"content": text}}});
    let contents = request["contents"].as_array_mut().unwrap();
    contents.push(said);
    contents.push(json!({"role": "user", "parts": [answer("echo", "a"), answer("fly", "no")]}));
    let (_, last) = post(&server, PATH, &request).await;
    let text = last["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("The tools answered:\necho: "), "{text}");
}

#[tokio::test]
async fn anthropic_calls_tools() {
    const PATH: &str = "/v1/messages";
    let server = start().await;
    let tool = json!({"name": "echo", "description": "d", "input_schema": schema()});
    let mut request = json!({"model": "m", "max_tokens": 100, "tools": [tool],
        "messages": [{"role": "user", "content": SCRIPT}]});
    let (_, first) = post(&server, PATH, &request).await;
    assert_eq!(first["stop_reason"], "tool_use");
    let said = first["content"].clone();
    assert_eq!((&said[0]["name"], &said[0]["input"]), (&json!("echo"), &json!({"text": "a"})));
    let answer = |call: &Value, text: &str| json!({"type": "tool_result", "tool_use_id": call["id"], "content": text});
    let answers = json!([answer(&said[0], "a"), answer(&said[1], "no")]);
    let messages = request["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": said}));
    messages.push(json!({"role": "user", "content": answers}));
    let (_, last) = post(&server, PATH, &request).await;
    assert_eq!(last["content"][0]["text"], "The tools answered:\necho: a\nfly: no");
    assert_eq!(last["stop_reason"], "end_turn");
}
