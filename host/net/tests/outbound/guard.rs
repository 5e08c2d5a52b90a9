//! Requests that guests are not allowed to send.

use wattle_run::grant::HttpRule;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::{get, grants, rule, rule_for, send};

async fn hello() -> MockServer {
    let server = MockServer::start().await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(200).set_body_string("hello"))
        .mount(&server)
        .await;
    server
}

#[tokio::test]
async fn request_that_a_rule_allows_is_sent() {
    let server = hello().await;
    let answer = send(&[rule_for(&server)], &get(format!("{}/a?b=c#d", server.uri()))).await;
    let answer = answer.unwrap();
    assert_eq!((answer.status, &answer.body[..]), (200, &b"hello"[..]));
    assert_eq!(answer.url, format!("{}/a?b=c", server.uri()));
    let agent = &server.received_requests().await.unwrap()[0].headers["user-agent"];
    assert!(agent.to_str().unwrap().starts_with("wattle/"));
}

#[tokio::test]
async fn nothing_is_sent_without_a_rule() {
    let server = hello().await;
    let port = server.address().port();
    let failure = send(&[], &get(server.uri())).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("denied", false));
    let line = format!(
        "`http = [{{ host = \"127.0.0.1\", scheme = \"http\", port = {port}, methods = \
         [\"GET\"], private = true }}]` under `[grants.\"demo/demo\"]`"
    );
    assert!(failure.message.contains(&line), "{failure}");
    assert!(server.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn private_addresses_need_a_private_rule_in_any_spelling() {
    let server = hello().await;
    let port = server.address().port();
    let public = |host: &str| HttpRule { private: false, ..rule(host, port) };
    for (host, allowed) in [
        ("localhost", "localhost"),
        ("localhost.", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.0.0.1", "127.0.0.1"),
        ("0177.1", "127.0.0.1"),
    ] {
        let request = get(format!("http://{host}:{port}/"));
        let failure = send(&[public(allowed)], &request).await.unwrap_err();
        assert_eq!(failure.code, "denied", "{host}: {failure}");
        assert!(failure.message.contains("private = true"), "{host}: {failure}");
        let answer = send(&[rule(allowed, port)], &request).await.unwrap();
        assert_eq!(answer.status, 200, "{host}");
    }
    assert_eq!(server.received_requests().await.unwrap().len(), 6);
}

#[tokio::test]
async fn forbidden_addresses_are_denied() {
    for host in ["169.254.169.254", "0.0.0.0", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[::]"] {
        let rule = rule(host.trim_matches(['[', ']']), 80);
        let failure = send(&[rule], &get(format!("http://{host}/"))).await.unwrap_err();
        assert_eq!(failure.code, "denied", "{host}");
        assert!(failure.message.contains("no plugin is allowed to reach"), "{host}: {failure}");
    }
}

#[tokio::test]
async fn private_connections_are_not_reused_for_public_rules() {
    let server = hello().await;
    let port = server.address().port();
    let net = crate::support::net();
    let blobs = crate::support::OneBlob(bytes::Bytes::new());
    let caller = crate::support::caller();
    let request = get(format!("http://localhost:{port}/"));
    use wattle_run::ports::Net as _;
    let private = grants(&[rule("localhost", port)]);
    net.send(&caller, &private, &request, &blobs).await.unwrap();
    let public = grants(&[HttpRule { private: false, ..rule("localhost", port) }]);
    let failure = net.send(&caller, &public, &request, &blobs).await.unwrap_err();
    assert_eq!(failure.code, "denied");
}

#[tokio::test]
async fn unsupported_requests_are_invalid() {
    let rules = [rule("127.0.0.1", 80)];
    for (method, url) in [
        ("CONNECT", "http://127.0.0.1/"),
        ("TRACE", "http://127.0.0.1/"),
        ("get", "http://127.0.0.1/"),
        ("GE T", "http://127.0.0.1/"),
        ("GET", "http://user@127.0.0.1/"),
        ("GET", "gopher://127.0.0.1/"),
        ("GET", "127.0.0.1"),
    ] {
        let mut request = get(url);
        request.method = method.into();
        let failure = send(&rules, &request).await.unwrap_err();
        assert_eq!(failure.code, "invalid", "{method} {url}");
    }
}

#[tokio::test]
async fn connection_headers_of_guests_are_ignored() {
    let server = hello().await;
    let mut request = get(server.uri());
    let own = [
        ("Host", "evil.example"),
        ("Content-Length", "99"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "close"),
        ("X-Own", "kept"),
        ("Idempotency-Key", "mine"),
    ];
    request.headers = own.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    request.idempotency_key = Some("the-hosts".into());
    send(&[rule_for(&server)], &request).await.unwrap();
    let headers = &server.received_requests().await.unwrap()[0].headers;
    assert_eq!(headers["host"], server.address().to_string());
    assert_eq!(headers["x-own"], "kept");
    let keys: Vec<_> = headers.get_all("idempotency-key").iter().collect();
    assert_eq!(keys, ["the-hosts"]);
    assert!(!headers.contains_key("transfer-encoding") && !headers.contains_key("content-length"));

    let mut request = get(server.uri());
    request.headers = vec![("x y".into(), "z".into())];
    assert_eq!(send(&[rule_for(&server)], &request).await.unwrap_err().code, "invalid");
    request.headers = vec![("x".into(), "a\r\nb: c".into())];
    assert_eq!(send(&[rule_for(&server)], &request).await.unwrap_err().code, "invalid");
}
