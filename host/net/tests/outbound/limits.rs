//! Size limits, timeouts and broken servers.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;
use wattle_graph::failure::Failure;
use wattle_net::{NetConfig, OutboundHttp, Secrets};
use wattle_run::caller_id::CallerId;
use wattle_run::grant::HttpRule;
use wattle_run::hostcall::http::{HttpBody, HttpRequest, HttpResponse};
use wattle_run::limit::NetLimits;
use wattle_run::ports::{Caller, Net as _};
use wattle_run::service_memory::ServiceMemory;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::{
    KEY, OneBlob, assert_no_secret, caller, get, grants, net, raw_server, rule, rule_for, send,
    send_within,
};

/// Memory of all responses. Those of one caller hold at most half, and those of another one at most
/// half of the rest.
const MEMORY_BYTES: u64 = 9 << 18;

/// Size of a response that fits beside any other one.
const SMALL_BYTES: usize = 512 << 10;

/// Size of a response that fits only if no other one arrives.
const LARGE_BYTES: usize = 1 << 20;

async fn serving(answer: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(answer).mount(&server).await;
    server
}

fn small() -> NetLimits {
    NetLimits { response_bytes: 100, request_bytes: 5, ..NetLimits::default() }
}

#[tokio::test]
async fn declared_body_over_the_limit_is_not_read() {
    let server = serving(ResponseTemplate::new(200).set_body_bytes(vec![b'x'; 101])).await;
    let failure = send_within(&[rule_for(&server)], &small(), &get(server.uri())).await;
    let failure = failure.unwrap_err();
    assert_eq!(failure.code, "limit");
    assert_eq!(failure.details.unwrap()["limit"], "response_bytes");

    let server = serving(ResponseTemplate::new(200).set_body_bytes(vec![b'x'; 100])).await;
    let answer = send_within(&[rule_for(&server)], &small(), &get(server.uri())).await.unwrap();
    assert_eq!(answer.body.len(), 100);
}

#[tokio::test]
async fn endless_body_fails_at_the_limit() {
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let port = raw_server(head, |mut stream| async move {
        while stream.write_all(b"10\r\n0123456789abcdef\r\n").await.is_ok() {}
    })
    .await;
    let request = get(format!("http://127.0.0.1:{port}/"));
    let failure = send_within(&[rule("127.0.0.1", port)], &small(), &request).await.unwrap_err();
    assert_eq!(failure.code, "limit");
}

#[tokio::test]
async fn request_bodies_are_limited() {
    let server = serving(ResponseTemplate::new(200)).await;
    let blob = "00".repeat(32).parse().map(wattle_run::ports::blob::BlobRef).unwrap();
    for body in [
        HttpBody::Text("sixsix".into()),
        HttpBody::Bytes(Bytes::from_static(b"sixsix")),
        HttpBody::Blob(blob),
    ] {
        let mut request = get(server.uri());
        request.method = "POST".into();
        request.body = body;
        let failure = send_within(&[rule_for(&server)], &small(), &request).await.unwrap_err();
        assert_eq!(failure.details.unwrap()["limit"], "request_bytes");
    }
    assert!(server.received_requests().await.unwrap().is_empty());
}

/// A secret can be much longer than its placeholder, and a body has room for many placeholders.
#[tokio::test]
async fn request_body_with_its_secrets_is_limited() {
    let server = serving(ResponseTemplate::new(200)).await;
    let within = |request_bytes| NetLimits { request_bytes, ..NetLimits::default() };
    let mut request = get(server.uri());
    request.method = "POST".into();
    request.body = HttpBody::Text("{{secret:KEY}}".into());
    let (rules, bytes) = ([rule_for(&server)], KEY.len() as u64);
    let failure = send_within(&rules, &within(bytes - 1), &request).await.unwrap_err();
    assert_no_secret(&failure);
    assert_eq!(failure.details.unwrap()["limit"], "request_bytes");
    assert!(server.received_requests().await.unwrap().is_empty());
    send_within(&rules, &within(bytes), &request).await.unwrap();
}

#[tokio::test]
async fn headers_are_limited() {
    let server = serving(ResponseTemplate::new(200)).await;
    let mut many = get(server.uri());
    many.headers = (0..65).map(|index| (format!("x-{index}"), "y".into())).collect();
    let mut long = get(server.uri());
    long.headers = vec![("x".into(), "y".repeat(70_000))];
    for request in [many, long] {
        let failure = send(&[rule_for(&server)], &request).await.unwrap_err();
        assert_eq!(failure.details.unwrap()["limit"], "request_headers");
    }
    let flood = (0..500).map(|index| format!("x-{index}: y\r\n")).collect::<Vec<_>>().concat();
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n{flood}\r\n");
    let port = raw_server(answer.into_bytes(), |_| async {}).await;
    let request = get(format!("http://127.0.0.1:{port}/"));
    let failure = send(&[rule("127.0.0.1", port)], &request).await.unwrap_err();
    assert_eq!(failure.code, "unavailable");
}

#[tokio::test]
async fn compressed_bodies_stay_compressed() {
    let answer = ResponseTemplate::new(200)
        .insert_header("content-encoding", "gzip")
        .set_body_bytes(vec![0x1f, 0x8b, 8, 0]);
    let server = serving(answer).await;
    let answer = send(&[rule_for(&server)], &get(server.uri())).await.unwrap();
    assert_eq!(&answer.body[..], [0x1f, 0x8b, 8, 0]);
    let asked = &server.received_requests().await.unwrap()[0];
    assert!(!asked.headers.contains_key("accept-encoding"));
}

#[tokio::test]
async fn timeout_limits_the_whole_exchange() {
    let server = serving(ResponseTemplate::new(200).set_delay(Duration::from_secs(30))).await;
    let short = NetLimits { timeout_ms: 100, ..NetLimits::default() };
    let failure = send_within(&[rule_for(&server)], &short, &get(server.uri())).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("timeout", true));

    // The head of the response arrives immediately and the body never ends. The guest's timeout is
    // shorter than the default.
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".to_vec();
    let port = raw_server(head, |stream| async move {
        let _open = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let mut request = get(format!("http://127.0.0.1:{port}/"));
    request.timeout_ms = Some(100);
    let failure = send(&[rule("127.0.0.1", port)], &request).await.unwrap_err();
    assert_eq!(failure.code, "timeout");

    // The timeout of a guest's request may exceed the default up to the maximum.
    request.timeout_ms = Some(60_000);
    let limits = NetLimits { timeout_ms: 10, longest_timeout_ms: 100, ..NetLimits::default() };
    let rules = [rule("127.0.0.1", port)];
    let failure = send_within(&rules, &limits, &request).await.unwrap_err();
    let told = failure.details.unwrap_or_default();
    assert_eq!(told["timeout_ms"], 100, "{told}");
}

#[tokio::test]
async fn incomplete_response_is_a_retryable_failure() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".to_vec();
    let port = raw_server(head, |_| async {}).await;
    let request = get(format!("http://127.0.0.1:{port}/"));
    let failure = send(&[rule("127.0.0.1", port)], &request).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
}

#[tokio::test]
async fn dropped_exchange_closes_the_connection() {
    let (gone, mut heard) = tokio::sync::mpsc::channel(1);
    let (arrived, mut waiting) = tokio::sync::mpsc::channel(1);
    let port = raw_server(Vec::new(), move |mut stream| async move {
        arrived.send(()).await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
        gone.send(()).await.unwrap();
    })
    .await;
    let request = get(format!("http://127.0.0.1:{port}/"));
    let call = tokio::spawn(async move { send(&[rule("127.0.0.1", port)], &request).await });
    waiting.recv().await.unwrap();
    call.abort();
    tokio::time::timeout(Duration::from_secs(5), heard.recv()).await.unwrap().unwrap();
}

#[tokio::test]
async fn requests_to_a_host_are_rate_limited() {
    let server = serving(ResponseTemplate::new(200)).await;
    let config = NetConfig {
        requests_per_second: NonZeroU32::new(10).unwrap(),
        burst: NonZeroU32::new(1).unwrap(),
        ..NetConfig::default()
    };
    let net = OutboundHttp::new(&config, Secrets::default()).unwrap();
    let start = Instant::now();
    for _ in 0..3 {
        let grants = grants(&[rule_for(&server)]);
        let request = get(server.uri());
        net.send(&caller(), &grants, &request, &OneBlob(Bytes::new())).await.unwrap();
    }
    assert!(start.elapsed() >= Duration::from_millis(180), "{:?}", start.elapsed());
}

/// Sends a request with the memory of an adapter.
async fn fetch(
    net: &OutboundHttp,
    caller: &Caller,
    rule: HttpRule,
    request: &HttpRequest,
) -> Result<HttpResponse, Failure> {
    net.send(caller, &grants(&[rule]), request, &OneBlob(Bytes::new())).await
}

#[tokio::test]
async fn response_holds_memory_until_it_is_read() {
    let (complete, completed) = oneshot::channel::<()>();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", SMALL_BYTES + 1);
    let mut part = head.into_bytes();
    part.resize(part.len() + SMALL_BYTES, b'x');
    let port = raw_server(part, |mut stream| async move {
        completed.await.unwrap();
        stream.write_all(b"x").await.unwrap();
        // A connection that is closed before the request is read would be reset.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let net = Arc::new(net().with_memory(ServiceMemory::new(MEMORY_BYTES)));
    let shared = net.clone();
    let slow = tokio::spawn(async move {
        let other = Caller { owner: CallerId::of_key("other"), ..caller() };
        let request = get(format!("http://127.0.0.1:{port}/"));
        fetch(&shared, &other, rule("127.0.0.1", port), &request).await
    });
    let server = serving(ResponseTemplate::new(200).set_body_bytes(vec![b'x'; LARGE_BYTES])).await;
    let large = || async { fetch(&net, &caller(), rule_for(&server), &get(server.uri())).await };
    // It is refused as soon as the part of the other response has arrived.
    let refused = async {
        loop {
            if let Err(failure) = large().await {
                return failure;
            }
        }
    };
    let failure = tokio::time::timeout(Duration::from_mins(1), refused).await.unwrap();
    assert_eq!((failure.code.as_str(), failure.retryable), ("limit", true), "{failure}");
    assert_eq!(failure.details.unwrap()["limit"], "services_memory");
    complete.send(()).unwrap();
    assert_eq!(slow.await.unwrap().unwrap().body.len(), SMALL_BYTES + 1);
    assert_eq!(large().await.unwrap().body.len(), LARGE_BYTES);
}
