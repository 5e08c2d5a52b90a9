//! Streamed responses, and their errors.

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use wattle_graph::llm::{Completion, CompletionRequest, Part, Role, ToolCall};
use wattle_kit::standin::{
    Config, Fault, FaultRule, Handle, Pattern, Server, StreamQuirks, StreamVariant,
};
use wattle_model::Routes;
use wattle_run::ports::Model as _;
use wiremock::ResponseTemplate;

use crate::support::{
    RecordedDeltas, ask, ask_city, ask_tools, assert_no_key, bodies, complete, error_status,
    message, raw_server, routes, server, simple, stream, table,
};

/// The path of each kind at the stand-in.
const KINDS: [(&str, &str); 3] = [("openai", "/v1"), ("gemini", "/v1beta"), ("anthropic", "/v1")];

/// A text whose characters have one to four bytes.
const WORDS: &str = "héllo 你好 \u{1f600}, and a good deal more so that it takes several pieces";

/// Two tool calls, with escapes and wide characters in their arguments.
const TOOLS: &str = "please\ncall add {\"a\":1,\"b\":[true,null,\"x\\\"y\"]}\n\
                     call save {\"text\":\"你好\\n\\u00e9 \u{1f600}\"}";

async fn standin() -> Handle {
    Server::start(Config::default()).await.unwrap()
}

fn order(server: &Handle, fault: Fault) {
    server.fault(FaultRule::new(Pattern::any(), fault));
}

fn vary(server: &Handle, variant: StreamVariant) {
    server.clear_faults();
    order(server, Fault::Stream(StreamQuirks::of(variant)));
}

fn asking(kind: &str, base: &str, stream: bool, route: &Value) -> Routes {
    routes(table(kind, base, &json!({ "stream": stream }), route))
}

fn patient(base: &str) -> Routes {
    asking("openai", base, true, &json!({ "retries": 2 }))
}

/// Checks that the deltas of a streamed response add up to the completion, which equals that of a
/// whole response.
async fn check(kind: &str, base: &str, request: &CompletionRequest, what: &str) -> Completion {
    let whole = complete(&asking(kind, base, false, &json!({})), request).await.unwrap();
    let (answer, kept) = stream(&asking(kind, base, true, &json!({})), request).await;
    let answer = answer.unwrap();
    assert_eq!(kept.parts(), spoken(&answer), "{kind}: {what}");
    assert_eq!(answer.parts, whole.parts, "{kind}: {what}");
    assert_eq!(answer.finish_reason, whole.finish_reason, "{kind}: {what}");
    assert_eq!(answer.model, whole.model, "{kind}: {what}");
    answer
}

/// Returns the parts of a completion without provider state.
fn spoken(answer: &Completion) -> Vec<Part> {
    let parts = answer.parts.iter().filter(|part| !matches!(part, Part::Other(_)));
    parts.cloned().collect()
}

#[tokio::test]
async fn streamed_and_whole_responses_are_equal() {
    let server = standin().await;
    for (kind, path) in KINDS {
        let base = format!("{}{path}", server.base_url);
        let said = check(kind, &base, &ask(WORDS), "text").await;
        assert!(matches!(&said.parts[..], [Part::Text(text)] if text.contains(WORDS)), "{kind}");
        assert!(said.usage.input_tokens.is_some() && said.usage.output_tokens.is_some());
        let asked = check(kind, &base, &ask_tools(TOOLS), "tools").await;
        assert_eq!(asked.parts.len(), 2, "{kind}");
        let structured = check(kind, &base, &ask_city(), "a document").await;
        assert!(structured.structured.is_some(), "{kind}");
    }
    let paths: Vec<String> = server.requests().into_iter().map(|entry| entry.path).collect();
    assert!(paths.iter().any(|path| path.ends_with("m-1:streamGenerateContent")), "{paths:?}");
}

#[tokio::test]
async fn variants_of_openai_streams_are_understood() {
    use StreamVariant as V;
    let server = standin().await;
    let base = format!("{}/v1", server.base_url);
    let odd = [
        V::MissingIndex,
        V::WholeCall,
        V::SplitUtf8,
        V::Interleaved,
        V::UsageLast,
        V::NoUsage,
        V::Comments,
        V::Crlf,
        V::NoDone,
        V::PlainJson,
        V::Reasoning,
    ];
    for variant in odd {
        vary(&server, variant);
        let what = format!("{variant:?}");
        let said = check("openai", &base, &ask(WORDS), &what).await;
        let usage = said.usage.output_tokens;
        assert_eq!(usage.is_some(), variant != V::NoUsage, "{what}");
        let thought = said.parts.iter().any(|part| matches!(part, Part::Reasoning(_)));
        assert_eq!(thought, variant == V::Reasoning, "{what}");
        check("openai", &base, &ask_tools(TOOLS), &what).await;
    }
}

#[tokio::test]
async fn variants_of_other_streams_are_understood() {
    use StreamVariant as V;
    let server = standin().await;
    for (kind, path) in &KINDS[1..] {
        let base = format!("{}{path}", server.base_url);
        for variant in [V::SplitUtf8, V::Comments, V::Crlf] {
            vary(&server, variant);
            check(kind, &base, &ask(WORDS), &format!("{variant:?}")).await;
            check(kind, &base, &ask_tools(TOOLS), &format!("{variant:?}")).await;
        }
    }
}

#[tokio::test]
async fn interrupted_stream_is_not_retried() {
    use StreamVariant as V;
    let server = standin().await;
    let base = format!("{}/v1", server.base_url);
    let mut config = table("openai", &base, &json!({}), &json!({ "retries": 2 }));
    config["routes"]["chat"]["fallbacks"] = json!([{ "provider": "first", "model": "m-2" }]);
    let routes = routes(config);
    for (variant, word) in [
        (V::ErrorInStream, "ordered by the test"),
        (V::Cut, "in the middle of"),
        (V::InsufficientSystemResource, "`insufficient_system_resource`"),
    ] {
        server.clear_requests();
        vary(&server, variant);
        let (answer, kept) = stream(&routes, &ask(WORDS)).await;
        let failure = answer.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
        assert!(failure.message.contains(word), "{failure}");
        assert!(kept.len() > 0, "{variant:?}");
        assert_eq!(server.requests().len(), 1, "{variant:?}");
    }
    for (kind, path) in &KINDS[1..] {
        vary(&server, V::Cut);
        let routes = asking(kind, &format!("{}{path}", server.base_url), true, &json!({}));
        let (answer, kept) = stream(&routes, &ask(WORDS)).await;
        let failure = answer.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
        assert!(failure.message.contains("in the middle of"), "{failure}");
        assert!(kept.len() > 0, "{kind}");
    }
}

#[tokio::test]
async fn call_is_retried_before_the_first_delta() {
    for (kind, path) in KINDS {
        let server = standin().await;
        let refused = Fault::Status { status: 503, retry_after: None, body: None };
        server.fault(FaultRule::new(Pattern::any(), refused).times(1));
        let base = format!("{}{path}", server.base_url);
        let routes = asking(kind, &base, true, &json!({ "retries": 2 }));
        let (answer, kept) = stream(&routes, &ask("hi")).await;
        assert_eq!(answer.unwrap().parts, kept.parts());
        assert_eq!(server.requests().len(), 2, "{kind}");
    }
    // An error in the first event precedes all output.
    let error = "data: {\"error\":{\"message\":\"busy\",\"type\":\"server_error\"}}\n\n";
    let said = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\
                \"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = server(vec![events(error), events(said)]).await;
    let (answer, _) = stream(&patient(&server.uri()), &ask("hi")).await;
    assert_eq!(answer.unwrap().parts, [Part::Text("hi".into())]);
}

#[tokio::test]
async fn rejected_stream_options_are_left_out_of_later_requests() {
    let detail = json!([{ "type": "extra_forbidden", "loc": ["body", "stream_options"],
        "msg": "Extra inputs are not permitted" }]);
    let rejection = ResponseTemplate::new(422).set_body_json(json!({ "detail": detail }));
    let said = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\
                \"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    for (answers, is_ok, expected) in [
        (vec![rejection.clone(), events(said)], true, vec![true, false, false]),
        // Without the field, the service rejects the request for another reason.
        (vec![rejection], false, vec![true, false, true, false]),
        (vec![error_status(422)], false, vec![true, true]),
    ] {
        let server = server(answers).await;
        let routes = simple("openai", &server.uri());
        for _ in 0..2 {
            assert_eq!(complete(&routes, &ask("hi")).await.is_ok(), is_ok);
        }
        let bodies = bodies(&server).await;
        let sent = bodies.iter().map(|body| body.get("stream_options").is_some());
        assert_eq!(sent.collect::<Vec<bool>>(), expected);
    }
}

fn events(text: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(text.to_owned(), "text/event-stream")
}

#[tokio::test]
async fn streams_without_output_are_unavailable() {
    for text in ["", ": nothing\n\n", "data: [DONE]\n\n", "data: {\"cho\n\n", "busy"] {
        let server = server(vec![events(text)]).await;
        let failure = complete(&simple("openai", &server.uri()), &ask("hi")).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
        assert_no_key(&failure);
    }
    for kind in ["gemini", "anthropic"] {
        let server = server(vec![events("")]).await;
        let routes = asking(kind, &server.uri(), true, &json!({}));
        let failure = complete(&routes, &ask("hi")).await.unwrap_err();
        assert!(failure.message.contains("it is empty"), "{failure}");
    }
}

#[tokio::test]
async fn events_that_are_not_one_document_are_understood() {
    let chunk = |text: &str, finish: Value| {
        let choice = json!({ "delta": { "content": text }, "finish_reason": finish });
        json!({ "choices": [choice] })
    };
    let (first, last) = (chunk("hel", Value::Null), chunk("lo", json!("stop")));
    for text in [
        format!("data: ping\n\ndata: {first}\n\ndata: ping\n\ndata: {last}\n\ndata: [DONE]\n\n"),
        format!("data: ping\ndata: {first}\ndata: {last}\n\ndata: [DONE]\n\n"),
        format!("data: {first}\ndata: {last}\ndata: [DONE]\n"),
    ] {
        let server = server(vec![events(&text)]).await;
        let (answer, kept) = stream(&simple("openai", &server.uri()), &ask("hi")).await;
        assert_eq!(answer.unwrap().parts, [Part::Text("hello".into())], "{text}");
        assert_eq!(kept.parts(), [Part::Text("hello".into())], "{text}");
    }
    let cut = format!("data: {first}\n\ndata: {first}\ndata: {{\"choices\":[\n\n");
    for (text, told) in
        [("data: it is gone\n\n", "it says `it is gone`"), (cut.as_str(), "cannot be read")]
    {
        let server = server(vec![events(text)]).await;
        let failure = complete(&simple("openai", &server.uri()), &ask("hi")).await.unwrap_err();
        assert_eq!(failure.code, "unavailable", "{text}");
        assert!(failure.message.contains(told), "{failure}");
    }
}

#[tokio::test]
async fn overlapping_blocks_are_read() {
    let event = |kind: &str, index: u64, rest: Value| {
        let mut event = json!({ "type": kind, "index": index });
        event.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        event
    };
    let start = |index, block: Value| {
        event("content_block_start", index, json!({ "content_block": block }))
    };
    let add = |index, delta: Value| event("content_block_delta", index, json!({ "delta": delta }));
    let json_delta = |text: &str| json!({ "type": "input_json_delta", "partial_json": text });
    let events_of = [
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 1 } } }),
        start(0, json!({ "type": "tool_use", "id": "t1", "name": "clock", "input": {} })),
        start(1, json!({ "type": "text", "text": "It " })),
        add(0, json_delta("{\"zone\":")),
        add(1, json!({ "type": "text_delta", "text": "is" })),
        add(1, json!({ "type": "news_delta", "what": "?" })),
        add(0, json_delta("\"x\"}")),
        start(2, json!({ "type": "tool_use", "name": "clock", "input": { "zone": "y" } })),
        event("content_block_stop", 0, json!({})),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
        json!({ "type": "message_stop" }),
    ];
    let lines = events_of.iter().map(|event| {
        let name = event["type"].as_str().unwrap();
        format!("event: {name}\ndata: {event}\n\n")
    });
    let server = server(vec![events(&lines.collect::<String>())]).await;
    let routes = asking("anthropic", &server.uri(), true, &json!({}));
    let (answer, kept) = stream(&routes, &ask("hi")).await;
    let call = |id: &str, zone: &str| {
        let arguments = json!({ "zone": zone });
        Part::ToolCall(ToolCall { id: id.into(), name: "clock".into(), arguments })
    };
    let expected = [Part::Text("It is".into()), call("t1", "x"), call("toolu_1", "y")];
    assert_eq!(answer.unwrap().parts, expected);
    assert_eq!(kept.parts(), expected);
}

#[tokio::test]
async fn stream_errors_become_failure_codes() {
    let cases = [
        (json!({ "type": "invalid_request_error" }), "invalid", false),
        (json!({ "type": "authentication_error" }), "unavailable", false),
        (json!({ "code": "insufficient_quota" }), "rate-limited", false),
        (json!({ "code": "rate_limit_exceeded" }), "rate-limited", true),
        (json!({ "code": 503 }), "unavailable", true),
        (json!({ "code": "429" }), "rate-limited", true),
        (json!({ "message": "?" }), "unavailable", true),
    ];
    for (error, code, retryable) in cases {
        let body = format!("data: {}\n\n", json!({ "error": error }));
        let server = server(vec![events(&body)]).await;
        let failure = complete(&simple("openai", &server.uri()), &ask("hi")).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), (code, retryable), "{error}");
    }
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\
                      \"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let server = server(vec![events(overloaded)]).await;
    let routes = asking("anthropic", &server.uri(), true, &json!({}));
    let failure = complete(&routes, &ask("hi")).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
    assert!(failure.message.contains("Overloaded"), "{failure}");
}

#[tokio::test]
async fn blocked_prompt_is_an_empty_completion() {
    let blocked = json!({
        "promptFeedback": { "blockReason": "SAFETY" },
        "usageMetadata": { "promptTokenCount": 8 }, "modelVersion": "g",
    });
    let server = server(vec![events(&format!("data: {blocked}\n\n"))]).await;
    let routes = asking("gemini", &server.uri(), true, &json!({}));
    let answer = complete(&routes, &ask("?")).await.unwrap();
    assert_eq!((answer.usage.input_tokens, answer.model.as_str()), (Some(8), "g"));
    assert!(answer.parts.is_empty());
}

#[tokio::test]
async fn deltas_are_emitted_as_they_arrive() {
    for (kind, path) in KINDS {
        let server = standin().await;
        let gate = server.stream_gate(Pattern::any());
        let routes = asking(kind, &format!("{}{path}", server.base_url), true, &json!({}));
        let (pieces, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let call = tokio::spawn(async move {
            let blobs = crate::support::Blobs::default();
            let deltas = Forward(pieces);
            let caller = crate::support::caller();
            routes.complete(&caller, &ask(WORDS), &blobs, &deltas).await
        });
        // The first events of a stream may have no output.
        gate.release(5);
        heard.recv().await.unwrap();
        assert!(!call.is_finished(), "{kind}");
        gate.open();
        call.await.unwrap().unwrap();
        assert!(!server.requests()[0].aborted, "{kind}");
    }
}

struct Forward(tokio::sync::mpsc::UnboundedSender<()>);

impl wattle_run::ports::model::DeltaSink for Forward {
    fn push(&self, _: wattle_graph::llm::Delta) {
        self.0.send(()).unwrap();
    }
}

#[tokio::test]
async fn timeout_of_a_route_applies_between_chunks() {
    join_all(KINDS.map(|(kind, path)| async move {
        let server = standin().await;
        let gate = server.stream_gate(Pattern::any());
        let base = format!("{}{path}", server.base_url);
        let routes = asking(kind, &base, true, &json!({ "timeout": "1s" }));
        let failure = complete(&routes, &ask(WORDS)).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("timeout", true), "{failure}");
        assert!(failure.message.contains("did not respond within 1s"), "{failure}");
        gate.release(5);
        let failure = complete(&routes, &ask(WORDS)).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("timeout", true), "{failure}");
        assert!(failure.message.contains("in the middle of"), "{failure}");
        drop(gate);
        order(&server, Fault::Stream(StreamQuirks { pause_ms: 150, ..StreamQuirks::default() }));
        let start = Instant::now();
        complete(&routes, &ask(WORDS)).await.unwrap();
        assert!(start.elapsed() > Duration::from_secs(1), "{kind}");
    }))
    .await;
}

#[tokio::test]
async fn dropped_call_closes_its_connection() {
    for (kind, path) in KINDS {
        let server = standin().await;
        let base = format!("{}{path}", server.base_url);
        let gate = server.stream_gate(Pattern::any());
        // The gate holds the stream, so the drop closes the connection before the timeout of the
        // route does.
        let routes = asking(kind, &base, true, &json!({}));
        let call = tokio::spawn(async move { complete(&routes, &ask(WORDS)).await });
        gate.release(3);
        gate.arrived(4).await.unwrap();
        call.abort();
        server.wait_for_request(|entry| entry.aborted).await.unwrap();
    }
}

#[tokio::test]
async fn open_connection_does_not_delay_the_completion() {
    let said = json!({ "choices": [{ "delta": { "content": "hi" } }] });
    let stop = json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] });
    let usage = json!({ "choices": [], "usage": { "completion_tokens": 3 } });
    let pieces: String = [said, stop, usage].map(|it| format!("data: {it}\n\n")).concat();
    let base = raw_server(move |mut socket| async move {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        socket.write_all(format!("{head}{pieces}").as_bytes()).await.unwrap();
        // The server sends neither `[DONE]` nor the end of the connection.
        std::future::pending::<()>().await;
    })
    .await;
    let routes = asking("openai", &base, true, &json!({ "timeout": "1s" }));
    let answer = complete(&routes, &ask("hi")).await.unwrap();
    assert_eq!((answer.text().as_str(), answer.usage.output_tokens), ("hi", Some(3)));
}

#[tokio::test]
async fn repair_restarts_the_deltas() {
    for (kind, path) in KINDS {
        let server = standin().await;
        let script = vec![json!("it is Rome"), json!({ "city": "Rome" })];
        order(&server, Fault::Script { contents: script.into() });
        let routes = asking(kind, &format!("{}{path}", server.base_url), true, &json!({}));
        let (answer, kept): (_, RecordedDeltas) = stream(&routes, &ask_city()).await;
        assert_eq!(answer.unwrap().structured, Some(json!({ "city": "Rome" })), "{kind}");
        assert_eq!(kept.restarts(), 1, "{kind}");
        assert_eq!(kept.parts(), [Part::Text("{\"city\":\"Rome\"}".into())], "{kind}");
    }
}

#[tokio::test]
async fn repair_that_fails_before_its_first_delta_falls_back() {
    let server = standin().await;
    let script = Fault::Script { contents: vec![json!("it is Rome")].into() };
    let first = Pattern::model("m-1");
    server.fault(FaultRule::new(first.clone(), script));
    let gone = Fault::Status { status: 503, retry_after: None, body: None };
    server.fault(FaultRule::new(first, gone));
    let base = format!("{}/v1", server.base_url);
    let fallbacks = json!([{ "provider": "first", "model": "m-2" }]);
    let routes = asking("openai", &base, true, &json!({ "fallbacks": fallbacks }));
    let (answer, kept) = stream(&routes, &ask_city()).await;
    let answer = answer.unwrap();
    assert_eq!((kept.restarts(), kept.parts()), (1, answer.parts));
    assert_eq!((answer.model.as_str(), answer.attempts.len()), ("m-2", 2));
}

#[tokio::test]
async fn signatures_of_gemini_are_sent_back_with_their_calls() {
    let call = |city: &str, signature: &str| {
        let call = json!({ "name": "find", "args": { "city": city } });
        json!({ "functionCall": call, "thoughtSignature": signature })
    };
    let event = |parts: Value, finish: Option<&str>| {
        let content = json!({ "role": "model", "parts": parts });
        let candidate = json!({ "content": content, "finishReason": finish, "index": 0 });
        format!("data: {}\n\n", json!({ "candidates": [candidate] }))
    };
    let body = [
        event(json!([{ "text": "Both." }]), None),
        event(json!([call("Oslo", "sig-o")]), None),
        event(json!([call("Rome", "sig-r")]), Some("STOP")),
    ];
    let answer = ResponseTemplate::new(200).set_body_raw(body.concat(), "text/event-stream");
    let server = server(vec![answer]).await;
    let routes = asking("gemini", &server.uri(), true, &json!({}));
    let said = complete(&routes, &ask_tools("where?")).await.unwrap();
    let calls = said.parts.iter().filter(|part| matches!(part, Part::ToolCall(_)));
    assert_eq!(calls.count(), 2);

    let mut next = ask("and now?");
    next.messages.insert(1, message(Role::Assistant, said.parts));
    complete(&routes, &next).await.unwrap();
    let sent = bodies(&server).await.remove(1);
    let parts = sent["contents"][0]["parts"].as_array().unwrap();
    let signatures: Vec<&Value> = parts.iter().map(|part| &part["thoughtSignature"]).collect();
    assert_eq!(signatures, [&Value::Null, &json!("sig-o"), &json!("sig-r")], "{sent}");
}
