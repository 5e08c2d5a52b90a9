//! Redirects, with a check of every hop.

use wattle_run::grant::HttpRule;
use wattle_run::hostcall::http::HttpBody;
use wattle_run::limit::NetLimits;
use wiremock::matchers::{any, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::{OTHER, assert_no_secret, get, rule, rule_for, send, send_within};

fn to(status: u16, location: &str) -> ResponseTemplate {
    ResponseTemplate::new(status).insert_header("location", location)
}

/// Starts a server that redirects `/start` and responds with 200 to everything else.
async fn redirecting(answer: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(path("/start")).respond_with(answer).with_priority(1).mount(&server).await;
    Mock::given(any()).respond_with(ResponseTemplate::new(200)).mount(&server).await;
    server
}

#[tokio::test]
async fn redirects_change_method_and_body_by_rfc_9110() {
    for (status, method, expected) in [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (302, "PUT", "PUT"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
        (302, "HEAD", "HEAD"),
        (303, "HEAD", "HEAD"),
    ] {
        let server = redirecting(to(status, "end?x=1")).await;
        let mut request = get(format!("{}/start", server.uri()));
        request.method = method.into();
        request.headers = vec![("content-type".into(), "text/plain".into())];
        if method != "HEAD" {
            request.body = HttpBody::Text("words".into());
        }
        let answer = send(&[rule_for(&server)], &request).await.unwrap();
        assert_eq!(answer.url, format!("{}/end?x=1", server.uri()));
        let last = server.received_requests().await.unwrap().remove(1);
        assert_eq!(last.method.as_str(), expected, "{status} {method}");
        let kept = expected == method && method != "HEAD";
        assert_eq!(last.body, if kept { &b"words"[..] } else { b"" }, "{status} {method}");
        let typed = last.headers.contains_key("content-type");
        assert_eq!(typed, kept || method == "HEAD", "{status} {method}");
    }
}

#[tokio::test]
async fn hop_without_a_rule_is_denied() {
    let target = redirecting(ResponseTemplate::new(200)).await;
    let server = redirecting(to(302, &format!("{}/end", target.uri()))).await;
    let request = get(format!("{}/start", server.uri()));
    let failure = send(&[rule_for(&server)], &request).await.unwrap_err();
    assert_eq!(failure.code, "denied");
    assert!(failure.message.contains(&target.address().port().to_string()), "{failure}");
    assert!(target.received_requests().await.unwrap().is_empty());

    for location in ["http://169.254.169.254/", "http://localhost:1/", "file:///etc/passwd"] {
        let server = redirecting(to(302, location)).await;
        let public = HttpRule { private: false, ..rule("localhost", 1) };
        let metadata = HttpRule { private: false, ..rule("169.254.169.254", 80) };
        let request = get(format!("{}/start", server.uri()));
        let failure = send(&[rule_for(&server), public, metadata], &request).await.unwrap_err();
        let expected = if location.starts_with("http") { "denied" } else { "invalid" };
        assert_eq!(failure.code, expected, "{location}: {failure}");
    }
}

#[tokio::test]
async fn credentials_are_dropped_at_another_origin() {
    let target = redirecting(ResponseTemplate::new(200)).await;
    let headers = ["authorization", "cookie", "x-key", "x-plain"];
    for (location, kept) in
        [(format!("{}/end", target.uri()), &headers[3..]), ("/end".to_owned(), &headers[..])]
    {
        let server = redirecting(to(307, &location)).await;
        let mut request = get(format!("{}/start", server.uri()));
        request.headers = vec![
            ("Authorization".into(), "Bearer words".into()),
            ("Cookie".into(), "a=b".into()),
            ("X-Key".into(), "{{secret:KEY}}".into()),
            ("X-Plain".into(), "words".into()),
        ];
        send(&[rule_for(&server), rule_for(&target)], &request).await.unwrap();
        let last = match kept.len() {
            1 => target.received_requests().await.unwrap().remove(0),
            _ => server.received_requests().await.unwrap().remove(1),
        };
        for header in headers {
            assert_eq!(last.headers.contains_key(header), kept.contains(&header), "{header}");
        }
    }
}

#[tokio::test]
async fn secret_in_a_body_needs_a_rule_for_every_hop() {
    let target = redirecting(ResponseTemplate::new(200)).await;
    let server = redirecting(to(307, &format!("{}/end", target.uri()))).await;
    let mut request = get(format!("{}/start", server.uri()));
    request.method = "POST".into();
    request.body = HttpBody::Text("{{secret:KEY}}".into());
    let bare = HttpRule { secrets: [].into(), ..rule_for(&target) };
    let failure = send(&[rule_for(&server), bare], &request).await.unwrap_err();
    assert_eq!(failure.code, "denied");
    assert!(failure.message.contains("secrets = [\"KEY\"]"), "{failure}");
    assert_no_secret(&failure);
    assert!(target.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn placeholders_in_a_redirect_are_not_replaced() {
    let server = redirecting(to(302, "/end?x={{secret:OTHER}}&y=%7B%7Bsecret:KEY%7D%7D")).await;
    let all =
        HttpRule { secrets: ["KEY".to_owned(), "OTHER".to_owned()].into(), ..rule_for(&server) };
    send(&[all], &get(format!("{}/start", server.uri()))).await.unwrap();
    let last = server.received_requests().await.unwrap().remove(1);
    assert!(!last.url.as_str().contains(OTHER), "{}", last.url);
    assert!(last.url.as_str().contains("secret:OTHER"), "{}", last.url);
}

#[tokio::test]
async fn secret_in_a_redirect_is_redacted() {
    let server = redirecting(to(302, "/end?k=k&y with/odd+signs")).await;
    let mut request = get(format!("{}/start", server.uri()));
    request.headers = vec![("x-key".into(), "{{secret:KEY}}".into())];
    let answer = send(&[rule_for(&server)], &request).await.unwrap();
    assert_eq!(answer.url, format!("{}/***", server.uri()));

    let none = NetLimits { redirects: 0, ..NetLimits::default() };
    let answer = send_within(&[rule_for(&server)], &none, &request).await.unwrap();
    let location = answer.headers.iter().find(|(name, _)| name == "location").unwrap();
    assert_eq!(location.1, "/end?k=***");
}

#[tokio::test]
async fn redirects_are_limited() {
    let server = redirecting(to(302, "/start")).await;
    let request = get(format!("{}/start", server.uri()));
    let limits = NetLimits { redirects: 3, ..NetLimits::default() };
    let failure = send_within(&[rule_for(&server)], &limits, &request).await.unwrap_err();
    assert_eq!(failure.code, "limit");
    assert_eq!(failure.details.unwrap()["limit"], "redirects");
    assert_eq!(server.received_requests().await.unwrap().len(), 4);

    let none = NetLimits { redirects: 0, ..NetLimits::default() };
    let answer = send_within(&[rule_for(&server)], &none, &request).await.unwrap();
    assert_eq!(answer.status, 302);
}
