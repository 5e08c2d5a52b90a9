//! Requests to each kind of provider, and their responses.

use serde_json::{Value, json};
use wattle_graph::llm::{
    CompletionRequest, FinishReason, Image, ImageSource, Part, Role, ToolCall, ToolChoice,
    ToolDefinition, ToolResult, Usage,
};
use wattle_run::ports::model::DiscardDeltas;
use wattle_run::ports::{BlobStore, Model};

use crate::support::{
    Blobs, KEY, ask, bodies, caller, chat, complete, json_response, message, routes, server,
    simple, table,
};

/// Returns a conversation with every kind of part.
fn rich() -> CompletionRequest {
    let mut request = ask("what is it?");
    let image = Image {
        source: ImageSource::Url("data:image/png;base64,iVBORw0=".into()),
        media_type: "image/png".into(),
    };
    request.messages[1].parts.push(Part::Image(image));
    let call = ToolCall { id: "c1".into(), name: "clock".into(), arguments: json!({"zone": "x"}) };
    let result = ToolResult { call_id: "c1".into(), content: "noon".into(), is_error: false };
    request.messages.push(message(Role::Assistant, vec![Part::ToolCall(call)]));
    request.messages.push(message(Role::Tool, vec![Part::ToolResult(result)]));
    request.tools = vec![ToolDefinition {
        name: "clock".into(),
        description: "tells the time".into(),
        arguments_schema: json!({ "type": "object", "properties": {} }),
    }];
    request.tool_choice = ToolChoice::Required;
    request.temperature = Some(0.5);
    request.max_output_tokens = Some(77);
    request.seed = Some(9);
    request.stop = vec!["END".into()];
    request
}

#[tokio::test]
async fn openai_uses_chat_completions() {
    let mut answer = chat("unused");
    answer["choices"][0]["finish_reason"] = json!("tool_calls");
    answer["choices"][0]["message"] = json!({
        "role": "assistant", "content": null,
        "tool_calls": [{ "id": "c2", "type": "function",
                         "function": { "name": "clock", "arguments": "{\"zone\":\"y\"}" } }],
    });
    let server = server(vec![json_response(&answer)]).await;
    let routes = simple("openai", &format!("{}/v1", server.uri()));
    let completion = complete(&routes, &rich()).await.unwrap();

    let call = ToolCall { id: "c2".into(), name: "clock".into(), arguments: json!({"zone": "y"}) };
    assert_eq!(completion.parts, [Part::ToolCall(call)]);
    assert_eq!(completion.finish_reason, FinishReason::ToolCalls);
    assert_eq!(completion.model, "m-1-dated");
    let usage = Usage {
        input_tokens: Some(12),
        output_tokens: Some(3),
        cached_input_tokens: Some(4),
        reasoning_tokens: Some(2),
    };
    assert_eq!(completion.usage, usage);

    let request = &server.received_requests().await.unwrap()[0];
    assert_eq!(request.url.path(), "/v1/chat/completions");
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    let body: Value = request.body_json().unwrap();
    assert_eq!(body["model"], "m-1");
    assert_eq!(body["messages"][0], json!({ "role": "system", "content": "be brief" }));
    let picture = &body["messages"][1]["content"][1]["image_url"]["url"];
    assert_eq!(picture, "data:image/png;base64,iVBORw0=");
    assert_eq!(body["messages"][2]["tool_calls"][0]["id"], "c1");
    let result = json!({ "role": "tool", "content": "noon", "tool_call_id": "c1" });
    assert_eq!(body["messages"][3], result);
    assert_eq!(body["tools"][0]["function"]["name"], "clock");
    assert_eq!(body["tool_choice"], "required");
    assert_eq!(
        (&body["temperature"], &body["max_tokens"], &body["seed"], &body["stop"]),
        (&json!(0.5), &json!(77), &json!(9), &json!(["END"]))
    );
}

#[tokio::test]
async fn gemini_uses_generate_content() {
    let answer = json!({
        "candidates": [{
            "content": { "role": "model", "parts": [
                { "text": "it is ", "thoughtSignature": "sig" }, { "text": "a cat" },
            ] },
            "finishReason": "MAX_TOKENS", "index": 0,
        }],
        "usageMetadata": {
            "promptTokenCount": 10, "candidatesTokenCount": 20, "thoughtsTokenCount": 5,
            "totalTokenCount": 35,
        },
        "modelVersion": "gemini-dated",
    });
    let server = server(vec![json_response(&answer)]).await;
    let routes = simple("gemini", &format!("{}/v1beta/", server.uri()));
    let completion = complete(&routes, &rich()).await.unwrap();
    assert!(completion.parts.contains(&Part::Text("it is a cat".into())));
    assert_eq!(completion.finish_reason, FinishReason::Length);
    assert_eq!(completion.usage.output_tokens, Some(25));
    assert_eq!(completion.usage.reasoning_tokens, Some(5));
    assert_eq!(completion.model, "gemini-dated");

    let request = &server.received_requests().await.unwrap()[0];
    assert_eq!(request.url.path(), "/v1beta/models/m-1:generateContent");
    assert_eq!(request.url.query(), None);
    assert_eq!(request.headers["x-goog-api-key"], KEY);
    let body: Value = request.body_json().unwrap();
    assert_eq!(body["systemInstruction"]["parts"][0]["text"], "be brief");
    let picture = &body["contents"][0]["parts"][1]["inline_data"];
    assert_eq!(picture, &json!({ "mime_type": "image/png", "data": "iVBORw0=" }));
    assert_eq!(body["contents"][2]["parts"][0]["functionResponse"]["name"], "clock");
    assert_eq!(body["generationConfig"]["maxOutputTokens"], 77);

    // Signed text is sent back.
    let mut next = ask("and now?");
    next.messages.insert(1, message(Role::Assistant, completion.parts));
    complete(&routes, &next).await.unwrap();
    let sent = bodies(&server).await.remove(1)["contents"].to_string();
    assert!(sent.contains(r#""thoughtSignature":"sig""#), "{sent}");
}

#[tokio::test]
async fn anthropic_uses_messages() {
    let answer = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-dated",
        "content": [
            { "type": "thinking", "thinking": "hm", "signature": "s1" },
            { "type": "text", "text": "a cat" },
        ],
        "stop_reason": "end_turn",
        "usage": { "input_tokens": 10, "output_tokens": 4, "cache_read_input_tokens": 3 },
    });
    let server = server(vec![json_response(&answer)]).await;
    let routes = simple("anthropic", &format!("{}/v1/", server.uri()));
    let mut request = rich();
    let address = Image {
        source: ImageSource::Url("https://example.com/cat.png".into()),
        media_type: "image/png".into(),
    };
    request.messages[1].parts.push(Part::Image(address));
    let completion = complete(&routes, &request).await.unwrap();
    assert!(completion.parts.contains(&Part::Reasoning("hm".into())));
    assert!(completion.parts.contains(&Part::Text("a cat".into())));
    assert_eq!(completion.finish_reason, FinishReason::Stop);
    assert_eq!(completion.usage.input_tokens, Some(13));
    assert_eq!(completion.usage.cached_input_tokens, Some(3));

    let request = &server.received_requests().await.unwrap()[0];
    assert_eq!(request.url.path(), "/v1/messages");
    assert_eq!(request.headers["x-api-key"], KEY);
    let body: Value = request.body_json().unwrap();
    assert_eq!((&body["system"], &body["max_tokens"]), (&json!("be brief"), &json!(77)));
    let content = &body["messages"][0]["content"];
    assert_eq!(content[1]["source"]["data"], "iVBORw0=");
    let by_address = json!({ "type": "url", "url": "https://example.com/cat.png" });
    assert_eq!(content[2]["source"], by_address);
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "c1");
    assert_eq!(body["tool_choice"], json!({ "type": "any" }));
}

#[tokio::test]
async fn anthropic_gets_no_text_of_white_space() {
    let answer = json!({
        "model": "m", "content": [{ "type": "text", "text": "hi" }], "stop_reason": "end_turn",
    });
    let server = server(vec![json_response(&answer)]).await;
    let mut request = ask(" \n");
    let parts = vec![Part::Text("hi".into()), Part::Text("\t".into())];
    request.messages.push(message(Role::User, parts));
    complete(&simple("anthropic", &server.uri()), &request).await.unwrap();
    let content = json!([{ "type": "text", "text": "hi" }]);
    let expected = json!([{ "role": "user", "content": content }]);
    assert_eq!(bodies(&server).await[0]["messages"], expected);
}

#[tokio::test]
async fn requests_without_a_key_have_no_key_header() {
    for (kind, path, answer) in [
        ("openai", "/chat/completions", chat("hi")),
        (
            "anthropic",
            "/messages",
            json!({
                "model": "m", "content": [{ "type": "text", "text": "hi" }], "stop_reason": "end_turn",
            }),
        ),
        (
            "gemini",
            "/models/m-1:generateContent",
            json!({
                "candidates": [{ "content": { "parts": [{ "text": "hi" }] }, "finishReason": "STOP" }],
            }),
        ),
    ] {
        let server = server(vec![json_response(&answer)]).await;
        let mut config = table(kind, &server.uri(), &json!({}), &json!({}));
        config["providers"]["first"]["key_env"] = Value::Null;
        let completion = complete(&routes(config), &ask("hi")).await.unwrap();
        assert_eq!(completion.parts, [Part::Text("hi".into())]);
        let request = &server.received_requests().await.unwrap()[0];
        assert_eq!(request.url.path(), path);
        for header in ["authorization", "x-api-key", "x-goog-api-key"] {
            assert!(!request.headers.contains_key(header), "{kind}");
        }
    }
}

#[tokio::test]
async fn instructions_in_several_parts_are_separated() {
    let server = server(vec![json_response(&chat("hi"))]).await;
    let mut request = ask("hi");
    request.messages[0].parts.push(Part::Text("speak French".into()));
    complete(&simple("openai", &server.uri()), &request).await.unwrap();
    let body = &bodies(&server).await[0];
    assert_eq!(body["messages"][0]["content"], "be brief\n\nspeak French");
}

#[tokio::test]
async fn images_are_read_from_the_blob_store() {
    let server = server(vec![json_response(&chat("a cat"))]).await;
    let blobs = Blobs::default();
    let blob = blobs.put(vec![1, 2, 3].into(), "image/png").await.unwrap();
    let mut request = ask("what is it?");
    let image = Image { source: ImageSource::Blob(blob), media_type: "image/png".into() };
    request.messages[1].parts.push(Part::Image(image));
    let routes = simple("openai", &server.uri());
    routes.complete(&caller(), &request, &blobs, &DiscardDeltas).await.unwrap();
    let picture = &bodies(&server).await[0]["messages"][1]["content"][1]["image_url"]["url"];
    assert_eq!(picture, "data:image/png;base64,AQID");

    let failure = complete(&simple("openai", &server.uri()), &request).await.unwrap_err();
    assert_eq!(failure.code, "not-found");
}

#[tokio::test]
async fn model_names_are_sent_unchanged() {
    let server = server(vec![json_response(&chat("hi"))]).await;
    let route = json!({ "model": "qwen3-max", "temperature": 0.25, "max_output_tokens": 5 });
    let routes = routes(table("openai", &server.uri(), &json!({}), &route));
    complete(&routes, &ask("hi")).await.unwrap();
    let body = &bodies(&server).await[0];
    assert_eq!(body["model"], "qwen3-max");
    assert_eq!(body.get("reasoning_effort"), None);
    assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(0.25), &json!(5)));
}

#[tokio::test]
async fn filtered_responses_are_completions() {
    let mut refusal = chat("");
    refusal["choices"][0]["message"] = json!({ "content": null, "refusal": "I will not" });
    let server_a = server(vec![json_response(&refusal)]).await;
    let refused = complete(&simple("openai", &server_a.uri()), &ask("?")).await.unwrap();
    assert_eq!(refused.finish_reason, FinishReason::ContentFilter);
    assert_eq!(refused.parts, [Part::Text("I will not".into())]);

    let blocked = json!({
        "promptFeedback": { "blockReason": "SAFETY" },
        "usageMetadata": { "promptTokenCount": 8 }, "modelVersion": "g",
    });
    let server_b = server(vec![json_response(&blocked)]).await;
    let blocked = complete(&simple("gemini", &server_b.uri()), &ask("?")).await.unwrap();
    assert_eq!(blocked.finish_reason, FinishReason::ContentFilter);
    assert_eq!((blocked.usage.input_tokens, blocked.model.as_str()), (Some(8), "g"));
}
