//! The stand-in servers over real sockets: formats, authentication, faults, gates and request log.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use wattle_kit::{
    picture::png_with_text,
    standin::{Config, Fault, FaultRule, Handle, Outcome, Pattern, Server, StreamQuirks, redact},
};

const CHAT: &str = "/v1/chat/completions";

async fn start() -> Handle {
    Server::start(Config::default()).await.unwrap()
}

/// Returns a chat request with one user message.
fn chat(model: &str, text: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": text}]})
}

async fn post(server: &Handle, path: &str, body: &Value) -> reqwest::Response {
    send(server, path, body).await.unwrap()
}

async fn send(server: &Handle, path: &str, body: &Value) -> reqwest::Result<reqwest::Response> {
    let request = Client::new().post(format!("{}{path}", server.base_url));
    request.header("authorization", "Bearer sk-test").json(body).send().await
}

async fn get(server: &Handle, path: &str) -> Value {
    let response = reqwest::get(format!("{}{path}", server.base_url)).await.unwrap();
    response.json().await.unwrap()
}

fn content(answer: &Value) -> Value {
    let text = answer.pointer("/choices/0/message/content").unwrap().as_str().unwrap();
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

fn classify_schema() -> Value {
    json!({"type": "object", "required": ["type", "confidence", "reason"],
        "properties": {"type": {"type": "string", "enum": ["operation", "holding", "unknown"]},
            "confidence": {"type": "number"}, "reason": {"type": "string"}}})
}

#[tokio::test]
async fn openai_completions_match_the_response_schema() {
    let server = start().await;
    let mut request = chat("gpt-4o", "昨天买入腾讯 100 股 320");
    request["response_format"] = json!({"type": "json_schema",
        "json_schema": {"name": "classify", "strict": true, "schema": classify_schema()}});
    let answer: Value = post(&server, CHAT, &request).await.json().await.unwrap();
    assert_eq!(content(&answer)["type"], "operation");
    assert_eq!(answer["model"], "gpt-4o");
    let usage = |name: &str| answer["usage"][name].as_u64().unwrap();
    assert_eq!(usage("total_tokens"), usage("prompt_tokens") + usage("completion_tokens"));
    assert_eq!(server.requests()[0].rule.as_deref(), Some("classify"));
}

#[tokio::test]
async fn openai_reads_large_images() {
    let server = start().await;
    let png = png_with_text("卖出苹果 10 股 190", 8 * 1024 * 1024);
    let url = format!("data:image/png;base64,{}", STANDARD.encode(&png));
    let request = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": [
            {"type": "text", "text": "Which is it?"},
            {"type": "image_url", "image_url": {"url": url}}]}],
        "response_format": {"type": "json_schema",
            "json_schema": {"name": "classify", "schema": classify_schema()}}});
    let answer: Value = post(&server, CHAT, &request).await.json().await.unwrap();
    assert_eq!(content(&answer)["type"], "operation");
    let entry = &server.requests()[0];
    assert!(entry.body_bytes > png.len());
    assert!(serde_json::to_string(entry).unwrap().len() < 4_096, "the log stays small");
}

#[tokio::test]
async fn openai_streams_with_usage_and_quirks() {
    let server = start().await;
    let mut request = chat("gpt-4o", "Hello");
    request["stream"] = json!(true);
    request["stream_options"] = json!({"include_usage": true});
    let body = post(&server, CHAT, &request).await.text().await.unwrap();
    assert!(body.ends_with("data: [DONE]\n\n"), "{body}");
    assert!(body.contains("\"total_tokens\""));
    let quirks = StreamQuirks { crlf: true, no_usage: true, no_done: true, ..Default::default() };
    server.fault(FaultRule::new(Pattern::any(), Fault::Stream(quirks)).times(1));
    let body = post(&server, CHAT, &request).await.text().await.unwrap();
    assert!(body.ends_with("\"finish_reason\":\"stop\"}]}\r\n\r\n"), "{body}");
}

#[tokio::test]
async fn gemini_and_anthropic_respond_in_their_formats() {
    let server = start().await;
    let gemini = Client::new()
        .post(format!("{}/v1beta/models/gemini-2.5-flash:generateContent", server.base_url))
        .header("x-goog-api-key", "k")
        .json(&json!({"contents": [{"role": "user", "parts": [{"text": "我持有腾讯"}]}],
            "generationConfig": {"responseMimeType": "application/json",
                "responseJsonSchema": classify_schema()}}));
    let answer: Value = gemini.send().await.unwrap().json().await.unwrap();
    let text = answer.pointer("/candidates/0/content/parts/0/text").unwrap().as_str().unwrap();
    assert!(text.contains("\"holding\""), "{text}");
    assert_eq!(server.requests()[0].model.as_deref(), Some("gemini-2.5-flash"));
    let anthropic = Client::new()
        .post(format!("{}/v1/messages", server.base_url))
        .header("x-api-key", "k")
        .json(&json!({"model": "claude", "max_tokens": 100,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "猫"}]}],
            "output_config": {"format": {"type": "json_schema", "schema": classify_schema()}}}));
    let answer: Value = anthropic.send().await.unwrap().json().await.unwrap();
    let text = answer.pointer("/content/0/text").unwrap().as_str().unwrap();
    assert!(text.contains("\"unknown\""), "{text}");
    assert_eq!(answer["stop_reason"], "end_turn");
}

#[tokio::test]
async fn all_services_check_keys() {
    let server = start().await;
    let client = Client::new();
    let url = |path: &str| format!("{}{path}", server.base_url);
    let requests = [
        (client.post(url(CHAT)).json(&chat("m", "Hi")), "/error/type", "authentication_error"),
        (
            client.post(url(CHAT)).bearer_auth("bad-key").json(&chat("m", "Hi")),
            "/error/code",
            "invalid_api_key",
        ),
        (
            client.post(url("/v1beta/models/m:generateContent")).json(&json!({})),
            "/error/status",
            "UNAUTHENTICATED",
        ),
        (client.post(url("/v1/messages")).json(&json!({})), "/error/type", "authentication_error"),
        (client.get(url("/v3/reference/tickers?search=apple")), "/status", "ERROR"),
    ];
    for (request, pointer, expected) in requests {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        let body: Value = response.json().await.unwrap();
        assert_eq!(body.pointer(pointer).unwrap(), expected, "{body}");
    }
}

#[tokio::test]
async fn massive_searches_american_tickers() {
    let server = start().await;
    let found =
        get(&server, "/v3/reference/tickers?search=apple&active=true&limit=3&apiKey=k").await;
    assert_eq!(found["results"][0]["ticker"], "AAPL");
    assert_eq!(found["results"][0]["currency_name"], "usd");
    assert_eq!(found["count"], 1);
    let first = get(&server, "/v3/reference/tickers?search=inc&limit=2&apiKey=k").await;
    let next = reqwest::Url::parse(first["next_url"].as_str().unwrap()).unwrap();
    let second = get(&server, &format!("{}?{}&apiKey=k", next.path(), next.query().unwrap())).await;
    assert_ne!(first["results"][0]["ticker"], second["results"][0]["ticker"]);
    for absent in ["Tencent", "%E8%85%BE%E8%AE%AF", "Moutai"] {
        let path = format!("/v3/reference/tickers?search={absent}&limit=3&apiKey=k");
        assert_eq!(get(&server, &path).await["count"], 0, "{absent}");
    }
}

#[tokio::test]
async fn a_status_fault_applies_to_the_model_the_given_number_of_times() {
    let server = start().await;
    let rule = json!({"path": CHAT, "model": "gpt-4o-mini", "times": 2,
        "fault": {"kind": "status", "status": 429, "retry_after": "1"}});
    let ordered = post(&server, "/__faults", &rule).await;
    assert_eq!(ordered.status(), StatusCode::NO_CONTENT);
    assert_eq!(post(&server, CHAT, &chat("gpt-4o", "Hi")).await.status(), StatusCode::OK);
    for _ in 0..2 {
        let response = post(&server, CHAT, &chat("gpt-4o-mini", "Hi")).await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()["retry-after"], "1");
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["error"]["type"], "rate_limit_error");
    }
    assert_eq!(post(&server, CHAT, &chat("gpt-4o-mini", "Hi")).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_fault_that_cannot_be_is_refused_with_what_can_be() {
    let server = start().await;
    for (fault, allowed) in [
        (json!({"kind": "magic"}), "expected one of `status`, `cut`, `slow`"),
        (json!({"kind": "cut", "after": 3}), "there are no fields"),
        (json!({"kind": "script", "content": ["Hi"]}), "expected `contents`"),
        (
            json!({"kind": "script", "contents": [{"tool_calls": [{"tool": "add"}]}]}),
            "expected one of `id`, `name`, `arguments`",
        ),
    ] {
        let refused = post(&server, "/__faults", &json!({ "fault": fault })).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
        let body: Value = refused.json().await.unwrap();
        let error = body["error"].as_str().unwrap();
        assert!(error.starts_with("cannot read the fault rule: "), "{error}");
        assert!(error.contains(allowed), "{error}");
    }
    assert_eq!(get(&server, "/__faults").await, json!([]));
}

#[tokio::test]
async fn cut_and_garbage_break_the_response() {
    let server = start().await;
    server.fault(FaultRule::new(Pattern::path(CHAT), Fault::Cut).times(1));
    let response = send(&server, CHAT, &chat("m", "Hi")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.bytes().await.unwrap_err();
    server.fault(FaultRule::new(Pattern::path(CHAT), Fault::Garbage).times(1));
    let response = send(&server, CHAT, &chat("m", "Hi")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.json::<Value>().await.unwrap_err();
    let faults: Vec<_> = server.requests().into_iter().filter_map(|entry| entry.fault).collect();
    assert_eq!(faults, ["cut", "garbage"]);
}

#[tokio::test]
async fn a_hanging_request_waits_for_its_release() {
    let server = start().await;
    server.fault(FaultRule::new(Pattern::any(), Fault::Hang).times(1));
    let request = chat("m", "Hi");
    let asking = send(&server, CHAT, &request);
    let releasing = async {
        let held = |entry: &wattle_kit::standin::Entry| entry.fault.as_deref() == Some("hang");
        let entry = server.wait_for_request(held).await.unwrap();
        assert_eq!(entry.outcome, Outcome::Pending);
        post(&server, "/__release", &json!({})).await;
    };
    let (answer, ()) = tokio::join!(asking, releasing);
    assert_eq!(answer.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_disconnected_client_is_recorded() {
    let server = start().await;
    server.fault(FaultRule::new(Pattern::any(), Fault::Hang));
    let url = format!("{}{CHAT}", server.base_url);
    let request = Client::new().post(url).bearer_auth("k").json(&chat("m", "Hi"));
    let asking = tokio::spawn(request.send());
    server.wait_for_request(|entry| entry.outcome == Outcome::Pending).await.unwrap();
    asking.abort();
    server.wait_for_request(|entry| entry.outcome == Outcome::Abandoned).await.unwrap();
}

#[tokio::test]
async fn a_gate_holds_requests_and_reports_their_arrival() {
    let server = start().await;
    let gate = server.gate(Pattern::model("slow-model"));
    let request = chat("slow-model", "Hi");
    let asking = send(&server, CHAT, &request);
    let looking = async {
        gate.arrived(1).await.unwrap();
        let other = post(&server, CHAT, &chat("other", "Hi")).await;
        assert_eq!(other.status(), StatusCode::OK);
        assert_eq!(server.requests()[0].outcome, Outcome::Pending);
        gate.open();
    };
    let (answer, ()) = tokio::join!(asking, looking);
    assert_eq!(answer.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn the_request_log_redacts_keys_and_can_be_cleared() {
    let server = start().await;
    post(&server, CHAT, &chat("m", "Hi")).await;
    let entries = get(&server, "/__requests").await;
    assert_eq!(entries[0]["headers"]["authorization"], redact("Bearer sk-test"));
    assert_eq!(entries[0]["body"]["messages"][0]["content"], "Hi");
    assert_eq!(entries[0]["status"], 200);
    assert!(!entries.to_string().contains("sk-test"));
    let url = format!("{}/__requests", server.base_url);
    Client::new().delete(url).send().await.unwrap();
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn http_probes_respond() {
    let server = start().await;
    let echo: Value = post(&server, "/echo?a=1", &json!({"x": 1})).await.json().await.unwrap();
    assert_eq!(echo["method"], "POST");
    assert_eq!(echo["headers"]["authorization"], "Bearer sk-test");
    assert_eq!((&echo["json"]["x"], &echo["query"]["a"]), (&json!(1), &json!("1")));
    assert_eq!(get(&server, "/redirect?to=/count/a").await["count"], 1);
    assert_eq!(get(&server, "/count/a").await["count"], 2);
    assert_eq!(get(&server, "/slow/5").await["waited_ms"], 5);
    let big = reqwest::get(format!("{}/big/200000", server.base_url)).await.unwrap();
    assert_eq!(big.bytes().await.unwrap().len(), 200_000);
    let status = reqwest::get(format!("{}/status/418", server.base_url)).await.unwrap();
    assert_eq!(status.status(), StatusCode::IM_A_TEAPOT);
    let none = reqwest::get(format!("{}/nothing", server.base_url)).await.unwrap();
    assert_eq!(none.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_stopped_server_refuses_connections() {
    let server = start().await;
    let url = format!("{}/echo", server.base_url);
    reqwest::get(&url).await.unwrap();
    server.shutdown().await;
    reqwest::get(&url).await.unwrap_err();
}

#[tokio::test]
async fn mcp_servers_support_both_protocols() {
    let server = start().await;
    let current = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "a"}, "_meta": current}});
    let url = format!("{}/mcp", server.base_url);
    let request = Client::new().post(&url).header("mcp-protocol-version", "2026-07-28");
    let request = request.header("mcp-method", "tools/call").header("mcp-name", "echo");
    let answer: Value = request.json(&call).send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["result"]["structuredContent"], json!({"text": "a"}));
    assert_eq!(answer["result"]["resultType"], "complete");
    let bare = post(&server, "/mcp", &call).await;
    assert_eq!(bare.status(), StatusCode::BAD_REQUEST, "no session and no version");
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
    let begun = post(&server, "/mcp?era=legacy", &hello).await;
    let session = begun.headers()["mcp-session-id"].clone();
    let listing = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let list = || Client::new().post(&url).header("mcp-session-id", &session).json(&listing).send();
    let answer: Value = list().await.unwrap().json().await.unwrap();
    assert_eq!(answer["result"]["tools"][0]["name"], "echo");
    server.forget_mcp_sessions();
    assert_eq!(list().await.unwrap().status(), StatusCode::NOT_FOUND);
}
