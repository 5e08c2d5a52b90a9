//! Malformed responses, invalid configurations and cancelled calls.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use wattle_graph::llm::{Part, Role};
use wattle_kit::standin::{Config, Server};
use wattle_model::{ModelConfig, Routes};
use wattle_run::ports::Model;
use wiremock::ResponseTemplate;

use crate::support::{
    ask, assert_no_key, caller, chat, complete, error_status, json_response, message, raw_server,
    routes, server, simple, table,
};

#[tokio::test]
async fn malformed_responses_make_calls_fail_as_unavailable() {
    let cases = [
        ResponseTemplate::new(200).set_body_raw("<html>busy</html>", "text/html"),
        ResponseTemplate::new(200).set_body_raw("{\"choices\": [", "application/json"),
        json_response(&json!({ "choices": [] })),
        json_response(&json!({ "error": { "message": "overloaded" } })),
    ];
    for answer in cases {
        let server = server(vec![answer]).await;
        let failure = complete(&simple("openai", &server.uri()), &ask("hi")).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
        assert_no_key(&failure);
    }
}

#[tokio::test]
async fn failure_for_a_compressed_response_names_its_coding() {
    let gzip =
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\xae\x05\x00\x43\xbf\xa6\xa3\x02\x00\x00\x00";
    for (status, retryable) in [(200, false), (503, true)] {
        let answer = ResponseTemplate::new(status)
            .insert_header("content-encoding", "gzip")
            .set_body_raw(gzip.to_vec(), "application/json");
        let server = server(vec![answer]).await;
        let failure = complete(&simple("openai", &server.uri()), &ask("hi")).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", retryable));
        assert!(failure.message.contains("`content-encoding: gzip`"), "{failure}");
    }
    // A gateway that decompresses a response may keep the header.
    let kept = json_response(&chat("hi")).insert_header("content-encoding", "gzip");
    let server = server(vec![kept]).await;
    let answer = complete(&simple("openai", &server.uri()), &ask("hi")).await.unwrap();
    assert_eq!(answer.text(), "hi");
}

#[tokio::test]
async fn lost_connection_makes_a_call_fail_as_unavailable() {
    let base = raw_server(|mut stream| async move {
        let part =
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{";
        stream.write_all(part).await.unwrap();
    })
    .await;
    let failure = complete(&simple("openai", &base), &ask("hi")).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
    // The server has stopped.
    let failure = complete(&simple("openai", &base), &ask("hi")).await.unwrap_err();
    assert!(failure.message.contains("cannot be reached"), "{failure}");
}

#[tokio::test]
async fn failure_for_an_unreachable_base_url_names_it_with_a_hint() {
    let standin = Server::start(Config::default()).await.unwrap();
    let without_tls = format!("https://{}/v1/", standin.addr);
    for (base, advice) in [
        ("http://127.0.0.1:9/v1/", "; check `base_url` of the provider"),
        ("http://nowhere.invalid/v1/", "; check `base_url` of the provider"),
        (
            without_tls.as_str(),
            "; the server does not speak TLS, so write `http://` in `base_url` of the provider",
        ),
    ] {
        let failure = complete(&simple("openai", base), &ask("hi")).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
        assert!(failure.message.contains(&format!("cannot be reached at {base}: ")), "{failure}");
        assert!(failure.message.ends_with(advice), "{failure}");
        assert_no_key(&failure);
    }
}

#[tokio::test]
async fn call_of_an_unresponsive_provider_times_out() {
    let server =
        server(vec![json_response(&chat("late")).set_delay(Duration::from_secs(30))]).await;
    let route = json!({ "timeout": "100ms" });
    let routes = routes(table("openai", &server.uri(), &json!({}), &route));
    let failure = complete(&routes, &ask("hi")).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("timeout", true));
    assert!(failure.message.contains("100ms"), "{failure}");
}

#[tokio::test]
async fn dropped_call_ends_the_request() {
    let (gone, mut heard) = tokio::sync::mpsc::channel(1);
    let (arrived, mut waiting) = tokio::sync::mpsc::channel(1);
    let base = raw_server(move |mut stream| async move {
        arrived.send(()).await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        gone.send(()).await.unwrap();
    })
    .await;
    let routes = simple("openai", &base);
    let call = tokio::spawn(async move { complete(&routes, &ask("hi")).await });
    waiting.recv().await.unwrap();
    call.abort();
    tokio::time::timeout(Duration::from_secs(5), heard.recv()).await.unwrap().unwrap();
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let target = server(vec![json_response(&chat("hi"))]).await;
    let answer = ResponseTemplate::new(307).insert_header("location", target.uri());
    let server = server(vec![answer]).await;
    let failure = complete(&simple("openai", &server.uri()), &ask("hi")).await.unwrap_err();
    assert!(failure.message.contains("redirect"), "{failure}");
    assert!(target.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn failure_for_a_rejected_key_names_the_variable_and_quotes_the_provider() {
    let server = server(vec![error_status(401)]).await;
    let failure = complete(&simple("openai", &server.uri()), &ask("hi")).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", false));
    assert!(failure.message.contains("`PROVIDER_KEY`"), "{failure}");
    assert!(failure.message.ends_with(": it went wrong ***"), "{failure}");
    assert_no_key(&failure);
}

#[tokio::test]
async fn missing_key_is_a_startup_warning() {
    let provider = json!({ "key_env": "ABSENT" });
    let routes = routes(table("openai", "http://127.0.0.1:9/", &provider, &json!({})));
    assert_eq!(
        routes.startup_warnings(),
        ["the model provider `first` has no key; set the environment variable `ABSENT`"]
    );
    assert!(routes.has_route(&caller(), "chat"));
    let failure = complete(&routes, &ask("hi")).await.unwrap_err();
    assert_eq!(failure.code, "unavailable");
    assert!(failure.message.contains("`ABSENT`"), "{failure}");
}

#[tokio::test]
async fn malformed_requests_fail_as_invalid() {
    let routes = simple("openai", "http://127.0.0.1:9/");
    let mut empty = ask("hi");
    empty.messages.clear();
    let mut role = ask("hi");
    role.messages[0].role = Role::Other("oracle".into());
    let mut part = ask("hi");
    part.messages[0].parts.push(Part::Other(json!({ "type": "smell" })));
    let mut tool = ask("hi");
    tool.messages.push(message(Role::Tool, vec![Part::Text("noon".into())]));
    for (request, word) in
        [(empty, "at least one"), (role, "`oracle`"), (part, "`smell`"), (tool, "tool results")]
    {
        let failure = complete(&routes, &request).await.unwrap_err();
        assert_eq!(failure.code, "invalid");
        assert!(failure.message.contains(word), "{failure}");
    }
    let mut unknown = ask("hi");
    unknown.route = "vision".into();
    let failure = complete(&routes, &unknown).await.unwrap_err();
    assert_eq!(failure.code, "not-found");
    assert!(failure.message.contains("[model.routes.vision]"), "{failure}");
    unknown.route = "chta".into();
    let failure = complete(&routes, &unknown).await.unwrap_err();
    assert!(failure.message.contains("did you mean `chat`? model routes: `chat`"), "{failure}");
}

#[test]
fn errors_for_invalid_configurations_name_the_key() {
    let check = |config: serde_json::Value, words: &[&str]| {
        let config: ModelConfig = serde_json::from_value(config).unwrap();
        let error = Routes::new(config, &|_| None).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    let route = |base: &str, route: &serde_json::Value| table("openai", base, &json!({}), route);
    let fine = "https://example.com/v1";
    check(route(fine, &json!({ "provider": "x" })), &["routes.chat", "`x`", "first"]);
    check(route(fine, &json!({ "timeout": "0s" })), &["routes.chat.timeout"]);
    check(route(fine, &json!({ "retries": 99 })), &["routes.chat.retries"]);
    check(route(fine, &json!({ "temperature": 9.0 })), &["routes.chat.temperature"]);
    check(route(fine, &json!({ "model": " " })), &["routes.chat.model"]);
    check(route(fine, &json!({ "extra": { "stream": false } })), &["chat.extra", "`stream`"]);
    let provider = json!({ "extra": { "messages": [] } });
    let extra = table("openai", fine, &provider, &json!({}));
    check(extra, &["providers.first.extra", "`messages`"]);
    let extra = table("gemini", fine, &json!({}), &json!({ "extra": { "top_k": 1 } }));
    check(extra, &["chat.extra", "`openai`"]);
    check(route("ftp://x/", &json!({})), &["providers.first.base_url", "ftp"]);
    check(route("not an address", &json!({})), &["providers.first.base_url"]);
    check(route("https://u:hidden@x/", &json!({})), &["key_env"]);
    for (base, ending) in [
        ("https://x/v1/chat/completions", "/chat/completions"),
        ("https://x/v1/chat/completions/", "/chat/completions"),
        ("https://x/v1/completions", "/completions"),
        ("https://x/v1/messages", "/messages"),
        ("https://x/v1beta/models", "/models"),
    ] {
        let hint = format!("it ends with `{ending}`, which the host appends itself; remove this");
        check(route(base, &json!({})), &["providers.first.base_url", base, &hint]);
    }
}
