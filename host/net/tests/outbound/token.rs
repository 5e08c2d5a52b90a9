//! Managed tokens: fetched once, renewed before they expire or when rejected, and never shown.

use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use serde_json::json;
use tokio::task::{JoinSet, yield_now};
use wattle_graph::failure::Failure;
use wattle_net::{NetConfig, OutboundHttp, Secrets, TokenSource};
use wattle_run::caller_id::CallerId;
use wattle_run::grant::HttpRule;
use wattle_run::hostcall::http::{HttpBody, HttpRequest, HttpResponse};
use wattle_run::lookups::Lookups;
use wattle_run::ports::{Caller, Clock, Net};
use wiremock::matchers::{any, method, path};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::support::{KEY, OneBlob, caller, get, grants, rule_for};

/// The code by which the service rejects a token.
const INVALID: i64 = 99_991_663;

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60_000;

#[derive(Clone, Default)]
struct SettableClock(Arc<AtomicI64>);

impl Clock for SettableClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    fn monotonic_ns(&self) -> u64 {
        0
    }

    fn time_zone(&self) -> &'static str {
        "UTC"
    }
}

/// A service that issues the tokens `t-fetched-1`, `t-fetched-2` and so on.
/// [`TokenService::refuses`] selects the tokens that the service rejects.
struct TokenService {
    server: MockServer,
    net: OutboundHttp,
    clock: SettableClock,
}

impl TokenService {
    async fn new() -> Self {
        Self::at("127.0.0.1").await
    }

    /// Starts a service that issues its tokens at this name or address of the loopback interface.
    async fn at(host: &str) -> Self {
        let server = MockServer::start().await;
        let clock = SettableClock::default();
        let source = format!(
            r#"
url = "http://{host}:{}/token"
body = '{{"app_id":"cli","app_secret":"{{{{secret:SECRET}}}}"}}'
field = "tenant_access_token"
expires_field = "expire"
message_field = "msg"
refresh_before = "30m"
invalid = {{ field = "code", values = [{INVALID}] }}
"#,
            server.address().port()
        );
        let source: TokenSource = toml::from_str(&source).unwrap();
        let secrets = [("SECRET".to_owned(), "app secret".into()), ("KEY".to_owned(), KEY.into())];
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let secrets = Secrets::new(secrets.into())
            .unwrap()
            .with_tokens(BTreeMap::from([("TOKEN".to_owned(), source)]), &shared)
            .unwrap();
        let net = OutboundHttp::new(&NetConfig::default(), secrets).unwrap();
        Self { server, net, clock }
    }

    /// Issues tokens with a lifetime of two hours.
    async fn hands_out(&self) {
        let count = AtomicU32::new(0);
        let answer = move |_: &Request| {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            let token = format!("t-fetched-{number}");
            let body = json!({"code": 0, "tenant_access_token": token, "expire": 7200});
            ResponseTemplate::new(200).set_body_json(body)
        };
        let token = Mock::given(method("POST")).and(path("/token")).respond_with(answer);
        token.mount(&self.server).await;
    }

    /// Echoes the received `authorization` header, and rejects the values in `refused`.
    async fn refuses(&self, refused: &'static [&'static str]) {
        let answer = move |request: &Request| {
            let shown = request.headers["authorization"].to_str().unwrap().to_owned();
            let code = if refused.contains(&shown.as_str()) { INVALID } else { 0 };
            ResponseTemplate::new(if code == 0 { 200 } else { 400 })
                .set_body_json(json!({"code": code, "shown": shown}))
        };
        Mock::given(path("/records")).respond_with(answer).mount(&self.server).await;
    }

    fn request(&self) -> HttpRequest {
        let mut request = get(format!("{}/records", self.server.uri()));
        request.method = "POST".into();
        request.headers = vec![("authorization".into(), "Bearer {{secret:TOKEN}}".into())];
        request.body = HttpBody::Text("record".into());
        request
    }

    fn rule(&self) -> HttpRule {
        HttpRule { secrets: ["TOKEN".to_owned()].into(), ..rule_for(&self.server) }
    }

    async fn send(&self) -> Result<HttpResponse, Failure> {
        self.send_by(&self.rule()).await
    }

    async fn send_by(&self, rule: &HttpRule) -> Result<HttpResponse, Failure> {
        self.send_of(&caller(), rule).await
    }

    async fn send_of(&self, caller: &Caller, rule: &HttpRule) -> Result<HttpResponse, Failure> {
        let blob = OneBlob(bytes::Bytes::new());
        let grants = grants(std::slice::from_ref(rule));
        self.net.send(caller, &grants, &self.request(), &blob).await
    }

    /// Returns the `authorization` headers of the requests that the service received, and the
    /// number of requests for a token.
    async fn seen(&self) -> (Vec<String>, usize) {
        let requests = self.server.received_requests().await.unwrap();
        let (fetched, shown): (Vec<_>, Vec<_>) =
            requests.iter().partition(|request| request.url.path() == "/token");
        let shown = shown.iter().map(|it| it.headers["authorization"].to_str().unwrap().to_owned());
        (shown.collect(), fetched.len())
    }
}

#[tokio::test]
async fn token_is_fetched_once_and_redacted() {
    let scene = TokenService::new().await;
    scene.hands_out().await;
    scene.refuses(&[]).await;
    let (first, second) = tokio::join!(scene.send(), scene.send());
    second.unwrap();
    let body = String::from_utf8(first.unwrap().body.to_vec()).unwrap();
    assert!(body.contains("Bearer ***"), "{body}");
    assert_eq!(scene.seen().await, (vec!["Bearer t-fetched-1".to_owned(); 2], 1));
    let fetch = &scene.server.received_requests().await.unwrap()[0];
    assert_eq!(fetch.body, br#"{"app_id":"cli","app_secret":"app secret"}"#);
    assert_eq!(fetch.headers["content-type"], "application/json");
}

/// A caller with silent name servers must not delay the tokens of other callers.
#[tokio::test]
async fn token_fetch_does_not_wait_for_the_lookups_of_its_caller() {
    let scene = TokenService::at("localhost").await;
    scene.hands_out().await;
    scene.refuses(&[]).await;
    let one = Caller { owner: CallerId::of_key("one"), ..caller() };
    let mut silent = JoinSet::new();
    for _ in 0..100 {
        let lookup = pending::<io::Result<()>>();
        silent.spawn(async move { Lookups::shared().run(one.owner, "silent", lookup).await });
    }
    yield_now().await;
    assert_eq!(scene.send_of(&one, &scene.rule()).await.unwrap().status, 200);
}

#[tokio::test]
async fn token_is_renewed_before_it_expires() {
    let scene = TokenService::new().await;
    scene.hands_out().await;
    scene.refuses(&[]).await;
    scene.send().await.unwrap();
    // The token is renewed 30 minutes before its lifetime of two hours ends.
    scene.clock.0.store(90 * 60_000 - 1, Ordering::SeqCst);
    scene.send().await.unwrap();
    assert_eq!(scene.seen().await.1, 1);
    scene.clock.0.store(90 * 60_000, Ordering::SeqCst);
    scene.send().await.unwrap();
    let (shown, fetched) = scene.seen().await;
    assert_eq!((shown.last().unwrap().as_str(), fetched), ("Bearer t-fetched-2", 2));
}

#[tokio::test]
async fn token_of_any_lifetime_is_renewed_after_a_day() {
    for lifetime in [json!(7_200_000), json!(1e300), json!("inf")] {
        let scene = TokenService::new().await;
        let body = json!({"tenant_access_token": "t-fetched", "expire": lifetime});
        let token = ResponseTemplate::new(200).set_body_json(body);
        Mock::given(path("/token")).respond_with(token).mount(&scene.server).await;
        scene.refuses(&[]).await;
        scene.send().await.unwrap();
        for (now_ms, fetched) in [(DAY_MS - 1, 1), (DAY_MS, 2)] {
            scene.clock.0.store(now_ms, Ordering::SeqCst);
            scene.send().await.unwrap();
            assert_eq!(scene.seen().await.1, fetched, "{lifetime}");
        }
    }
}

#[tokio::test]
async fn rejected_token_is_renewed_and_the_request_repeated() {
    let scene = TokenService::new().await;
    scene.hands_out().await;
    scene.refuses(&["Bearer t-fetched-1"]).await;
    let answer = scene.send().await.unwrap();
    assert_eq!(answer.status, 200);
    let shown = vec!["Bearer t-fetched-1".to_owned(), "Bearer t-fetched-2".to_owned()];
    assert_eq!(scene.seen().await, (shown, 2));
    let requests = scene.server.received_requests().await.unwrap();
    assert!(
        requests.iter().filter(|it| it.url.path() == "/records").all(|it| it.body == b"record")
    );
    // A further request uses the new token without another fetch.
    scene.send().await.unwrap();
    assert_eq!(scene.seen().await.1, 2);
}

#[tokio::test]
async fn second_token_rejection_is_returned() {
    let scene = TokenService::new().await;
    scene.hands_out().await;
    scene.refuses(&["Bearer t-fetched-1", "Bearer t-fetched-2"]).await;
    let answer = scene.send().await.unwrap();
    assert_eq!(answer.status, 400);
    assert_eq!(scene.seen().await.1, 2);
}

#[tokio::test]
async fn no_token_is_fetched_without_a_grant() {
    let scene = TokenService::new().await;
    scene.hands_out().await;
    let failure = scene.send_by(&rule_for(&scene.server)).await.unwrap_err();
    assert_eq!(failure.code, "denied");
    assert!(scene.server.received_requests().await.unwrap().is_empty());
}

/// The target of the redirect needs no rule for a token that it does not receive.
#[tokio::test]
async fn tokens_of_a_body_are_not_needed_after_it_is_dropped() {
    let (scene, target) = (TokenService::new().await, MockServer::start().await);
    scene.hands_out().await;
    let location = format!("{}/end", target.uri());
    let moved = ResponseTemplate::new(303).insert_header("location", location.as_str());
    Mock::given(path("/records")).respond_with(moved).mount(&scene.server).await;
    Mock::given(any()).respond_with(ResponseTemplate::new(200)).mount(&target).await;
    let mut request = scene.request();
    request.headers.clear();
    request.body = HttpBody::Text("{{secret:TOKEN}}, {{secret:TOKEN}}".into());
    let grants = grants(&[scene.rule(), rule_for(&target)]);
    let blob = OneBlob(bytes::Bytes::new());
    let answer = scene.net.send(&caller(), &grants, &request, &blob).await.unwrap();
    assert_eq!(answer.status, 200);
    let received = scene.server.received_requests().await.unwrap();
    assert_eq!(received.len(), 2, "one request for a token and one with it");
    assert_eq!(received[1].body, b"t-fetched-1, t-fetched-1");
}

#[tokio::test]
async fn failed_token_fetch_is_reported() {
    let scene = TokenService::new().await;
    let words = json!({"code": 10_014, "msg": "app secret is invalid", "debug": "app secret"});
    let answer = ResponseTemplate::new(200).set_body_json(words);
    Mock::given(path("/token")).respond_with(answer).mount(&scene.server).await;
    let failure = scene.send().await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", false));
    let said = "the token `TOKEN` cannot be fetched from";
    assert!(failure.message.starts_with(said), "{failure}");
    assert!(failure.message.contains("200 OK: *** is invalid; check `[secrets.TOKEN.token]`"));
}

#[tokio::test]
async fn secret_at_the_end_of_a_cut_message_is_redacted() {
    let scene = TokenService::new().await;
    // The message is cut after 200 characters, within the secret.
    let words = json!({"msg": format!("{}app secret", "x".repeat(195))});
    let answer = ResponseTemplate::new(400).set_body_json(words);
    Mock::given(path("/token")).respond_with(answer).mount(&scene.server).await;
    let failure = scene.send().await.unwrap_err();
    assert!(failure.message.contains("xx***; check"), "{failure}");
    assert!(!failure.message.contains("app"), "{failure}");
}

#[tokio::test]
async fn invalid_token_sources_are_rejected() {
    let clock: Arc<dyn Clock> = Arc::new(SettableClock::default());
    for (name, source) in [
        ("TOKEN", "url = \"ftp://a/\"\nbody = \"\"\nfield = \"t\""),
        ("TOKEN", "url = \"https://a/\"\nbody = \"\"\nfield = \"\""),
        ("TOKEN", "url = \"https://a/\"\nbody = \"{{secret:TOKEN}}\"\nfield = \"t\""),
        ("A B", "url = \"https://a/\"\nbody = \"\"\nfield = \"t\""),
        ("TAKEN", "url = \"https://a/\"\nbody = \"\"\nfield = \"t\""),
    ] {
        let sources = BTreeMap::from([(name.to_owned(), toml::from_str(source).unwrap())]);
        let secrets = Secrets::new([("TAKEN".to_owned(), "x".into())].into()).unwrap();
        assert!(secrets.with_tokens(sources, &clock).is_err(), "{name} {source}");
    }
    let misspelled = "url = \"https://a/\"\nbody = \"\"\nfield = \"t\"\nfeild = \"x\"";
    assert!(toml::from_str::<TokenSource>(misspelled).is_err());
}
