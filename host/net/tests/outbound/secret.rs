//! Secrets are inserted in requests and redacted everywhere else.

use wattle_run::grant::HttpRule;
use wattle_run::hostcall::http::HttpBody;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::support::{KEY, assert_no_secret, get, rule, rule_for, send};

/// Starts a server that echoes the request in its body and a header.
async fn echo() -> MockServer {
    let server = MockServer::start().await;
    let answer = |request: &Request| {
        let key = request.headers.get("x-key").map(|value| value.to_str().unwrap().to_owned());
        let body = String::from_utf8_lossy(&request.body);
        ResponseTemplate::new(200)
            .insert_header("x-echo", key.clone().unwrap_or_default())
            .set_body_string(format!("{} {} {body}", request.url, key.unwrap_or_default()))
    };
    Mock::given(any()).respond_with(answer).mount(&server).await;
    server
}

#[tokio::test]
async fn secrets_are_sent_and_redacted() {
    let server = echo().await;
    let mut request = get(format!("{}/a?q=1&apiKey={{{{secret:KEY}}}}", server.uri()));
    request.method = "POST".into();
    request.headers = vec![("X-Key".into(), "{{secret:KEY}}".into())];
    request.body = HttpBody::Text("the key is {{secret:KEY}}.".into());
    let answer = send(&[rule_for(&server)], &request).await.unwrap();

    let sent = &server.received_requests().await.unwrap()[0];
    assert_eq!(sent.url.query(), Some("q=1&apiKey=k%26y%20with%2Fodd%2Bsigns"));
    assert_eq!(sent.headers["x-key"], KEY);
    assert_eq!(sent.body, format!("the key is {KEY}.").as_bytes());

    assert_eq!(answer.url, format!("{}/a?q=1&apiKey=***", server.uri()));
    let echoed = answer.headers.iter().find(|(name, _)| name == "x-echo").unwrap();
    assert_eq!(echoed.1, "***");
    let body = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(body.ends_with("apiKey=*** *** the key is ***."), "{body}");
    assert!(answer.headers.iter().all(|(name, _)| name != "content-length"));
}

#[tokio::test]
async fn bytes_and_blobs_are_sent_unchanged() {
    let server = echo().await;
    let blob = "00".repeat(32).parse().map(wattle_run::ports::blob::BlobRef).unwrap();
    for (body, expected) in [
        (HttpBody::Bytes(bytes::Bytes::from_static(b"{{secret:KEY}}")), &b"{{secret:KEY}}"[..]),
        (HttpBody::Blob(blob), b"blob bytes"),
    ] {
        let mut request = get(server.uri());
        request.method = "PUT".into();
        request.body = body;
        send(&[rule_for(&server)], &request).await.unwrap();
        assert_eq!(server.received_requests().await.unwrap().last().unwrap().body, expected);
    }
}

#[tokio::test]
async fn secret_needs_a_rule() {
    let server = echo().await;
    let bare = HttpRule { secrets: [].into(), ..rule_for(&server) };
    let request = get(format!("{}/?k={{{{secret:KEY}}}}", server.uri()));
    let failure = send(&[bare], &request).await.unwrap_err();
    assert_eq!(failure.code, "denied");
    let line = "secrets = [\"KEY\"], private = true }]` under `[grants.\"demo/demo\"]`";
    assert!(failure.message.contains(line), "{failure}");
    assert_no_secret(&failure);

    let missing = HttpRule { secrets: ["GONE".to_owned()].into(), ..rule_for(&server) };
    let request = get(format!("{}/?k={{{{secret:GONE}}}}", server.uri()));
    let failure = send(&[missing], &request).await.unwrap_err();
    assert_eq!(failure.code, "unavailable");
    assert!(failure.message.contains("GONE = { env = \"GONE\" }"), "{failure}");

    let request = get(format!("{}/{{{{secret:KEY}}}}", server.uri()));
    assert_eq!(send(&[rule_for(&server)], &request).await.unwrap_err().code, "invalid");
    assert!(server.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn failures_redact_secrets() {
    // No service listens on port 1.
    let mut request = get("http://127.0.0.1:1/?k={{secret:KEY}}");
    request.headers = vec![("x-key".into(), "{{secret:KEY}}".into())];
    let failure = send(&[rule("127.0.0.1", 1)], &request).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true));
    assert_no_secret(&failure);
}
