//! Headers that the operator configures for a provider.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use wattle_model::{ModelConfig, Routes};
use wiremock::ResponseTemplate;

use crate::support::{ask, complete, server, table};

fn config(kind: &str, base: &str, headers: &Value) -> ModelConfig {
    let provider = json!({ "key_env": null, "headers": headers });
    serde_json::from_value(table(kind, base, &provider, &json!({}))).unwrap()
}

/// Creates routes with one secret, `X`.
fn routes(config: ModelConfig) -> Routes {
    let fill = |text: &str| {
        if text.contains("{{secret:Y}}") {
            return Err("the secret `Y` is missing".to_owned());
        }
        Ok(text.replace("{{secret:X}}", "x-secret-1"))
    };
    Routes::open(config, &|_| None, &fill).unwrap()
}

#[tokio::test]
async fn headers_are_sent_with_every_request_and_masked_in_messages() {
    let headers =
        json!({ "x-portkey-api-key": "{{secret:X}}", "authorization": "Bearer {{secret:X}}" });
    for kind in ["openai", "gemini", "anthropic"] {
        let error = json!({ "error": { "message": "no access with x-secret-1" } });
        let server = server(vec![ResponseTemplate::new(400).set_body_json(error)]).await;
        let failure =
            complete(&routes(config(kind, &server.uri(), &headers)), &ask("hi")).await.unwrap_err();
        assert!(failure.message.ends_with("no access with ***"), "{kind}: {failure}");
        let sent = server.received_requests().await.unwrap().remove(0).headers;
        assert_eq!(sent["x-portkey-api-key"], "x-secret-1", "{kind}");
        assert_eq!(sent["authorization"], "Bearer x-secret-1", "{kind}");
    }
}

#[tokio::test]
async fn header_secrets_are_masked_in_every_form() {
    let secret = "x-0123456789-very-secret";
    let basic = BASE64.encode(format!("me:{secret}"));
    let headers = json!({
        "authorization": format!("Basic {basic}"), "x-key": format!("Token {secret}"), "x-short": "abc12",
    });
    let words = [
        format!("bad key Token {secret}!"),
        format!("bad key {}", &secret[2..16]),
        format!("bad key {basic}"),
        format!("bad key me:{secret}"),
        "bad key abc12".to_owned(),
    ];
    for status in [200, 307, 400, 401, 403, 404, 413, 429, 500] {
        for words in &words {
            for body in
                [json!({ "error": { "message": words } }), json!({ "error": words }), json!(words)]
            {
                let answer = ResponseTemplate::new(status).set_body_json(&body);
                let server = server(vec![answer]).await;
                let routes = routes(config("openai", &server.uri(), &headers));
                let message = complete(&routes, &ask("hi")).await.unwrap_err().message;
                for part in ["0123456789", "abc12", &basic[..10]] {
                    assert!(!message.contains(part), "{status}: {message}");
                }
            }
        }
    }
}

#[tokio::test]
async fn missing_secret_makes_the_provider_unavailable() {
    let headers = json!({ "x-key": "{{secret:Y}}" });
    let routes = routes(config("openai", "http://127.0.0.1:9/", &headers));
    assert_eq!(routes.startup_warnings().len(), 1);
    let failure = complete(&routes, &ask("hi")).await.unwrap_err();
    assert_eq!(failure.code, "unavailable");
    assert!(failure.message.contains("the secret `Y` is missing"), "{failure}");
}

#[test]
fn errors_for_invalid_headers_name_the_key() {
    let keyed = |headers: Value| {
        let mut config = config("openai", "http://127.0.0.1:9/", &headers);
        config.providers.get_mut("first").unwrap().key_env = Some("KEY".into());
        config
    };
    for (config, word) in [
        (config("openai", "http://127.0.0.1:9/", &json!({ "a b": "c" })), "is not a header name"),
        (
            config("openai", "http://127.0.0.1:9/", &json!({ "Content-Type": "c" })),
            "set by the host",
        ),
        (config("openai", "http://127.0.0.1:9/", &json!({ "x-a": "b\nc" })), "cannot be sent"),
        (keyed(json!({ "Authorization": "Bearer a" })), "both set a key"),
    ] {
        let error = Routes::new(config, &|_| None).unwrap_err().to_string();
        assert!(error.starts_with("`model.providers.first.headers`: "), "{error}");
        assert!(error.contains(word), "{error}");
    }
}
