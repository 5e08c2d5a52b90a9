//! Requests of `wasi:http`. The first lines of the input are the method, the scheme, the authority,
//! and the path with its query. Headers follow up to an empty line, and the rest is the body. In
//! the authority, `{port}` stands for the port of a local server.
//!
//! The call of the gate is not larger than the request, and its URL has the host of the request.
//! The client sends no request that the check of grants refuses, and the server receives the
//! method, the URL, the headers and the body of the call.

use std::sync::{Mutex, OnceLock};

use axum::body::to_bytes;
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Request, StatusCode, Uri, header};
use axum::{Router, extract};
use bytes::Bytes;
use url::{Host, Position, Url};
use wattle_graph::failure::{Failure, code};
use wattle_net::{OutboundHttp, Secrets, check_request};
use wattle_run::grant::{Grants, HttpRule};
use wattle_run::hostcall::http::{HttpBody, HttpRequest, HttpResponse};
use wattle_run::ports::{Caller, Net as _};
use wattle_sandbox::parse::http_request;
use wattle_store::InMemoryBlobs;

use super::{HOST, caller, header_field, lock, net_config, serve};

/// The placeholder for the port of the server in a URL of an input.
const PORT: &str = "{port}";

/// Maximum size of a body, in bytes.
const BODY_BYTES: usize = 8 << 10;

/// Maximum size of what a URL has beside the parts in the input, in bytes.
const URL_BYTES: usize = 8;

/// Beginning of the names of headers that the client does not use itself.
const PREFIX: &str = "x-";

/// Converts and sends a request.
pub fn run(bytes: &[u8]) {
    let world = World::get();
    let Some(request) = world.request(bytes) else { return };
    let uri = request.uri().clone();
    let Some(call) = crate::wait(http_request(request, BODY_BYTES as u64)) else { return };
    check_size(&call, bytes.len());
    let url = Url::parse(&call.url);
    if let Ok(url) = &url {
        check_host(url, &uri);
    }
    lock(&RECEIVED).clear();
    let is_allowed = check_request(&world.caller, &world.grants, &call).is_ok();
    let sent = crate::wait(world.send(&call));
    let received = std::mem::take(&mut *lock(&RECEIVED));
    assert!(is_allowed || (sent.is_err() && received.is_empty()), "{} is sent", call.url);
    if let Err(failure) = &sent {
        let expected = [code::DENIED, code::INVALID, code::LIMIT, code::UNAVAILABLE];
        assert!(expected.contains(&failure.code.as_str()), "{failure}");
    }
    assert!(received.len() <= 1, "{} requests", received.len());
    assert!(sent.is_err() || received.len() == 1, "nothing is sent to {}", call.url);
    for (head, body) in &received {
        let url = url.as_ref().expect("a URL that is sent can be parsed");
        world.check_received(&call, url, head);
        assert_eq!(body, body_of(&call), "the body");
    }
}

/// Checks that a call is not larger than its input.
fn check_size(call: &HttpRequest, input_bytes: usize) {
    let headers: usize = call.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    let key = call.idempotency_key.as_ref().map_or(0, String::len);
    let body = body_of(call).len();
    assert!(body <= BODY_BYTES, "{body} bytes");
    let bytes = call.method.len() + call.url.len() + headers + key + body;
    assert!(bytes <= input_bytes + URL_BYTES, "{bytes} bytes");
}

fn body_of(call: &HttpRequest) -> &[u8] {
    match &call.body {
        HttpBody::Empty => &[],
        HttpBody::Bytes(bytes) => bytes.as_ref(),
        body => panic!("unexpected body: {body:?}"),
    }
}

/// Checks that the URL of a call has the host and the port of its request.
fn check_host(url: &Url, uri: &Uri) {
    let (scheme, authority) = uri.scheme_str().zip(uri.authority()).expect("the URI is absolute");
    let own = Url::parse(&format!("{scheme}://{authority}/")).expect("the host fits in a URL");
    assert_eq!(
        (url.scheme(), url.host(), url.port()),
        (own.scheme(), own.host(), own.port()),
        "{uri}"
    );
    if let Some(Host::Domain(name)) = url.host() {
        assert!(name.eq_ignore_ascii_case(authority.host()), "{name} of {uri}");
    }
}

/// The requests that the server received, with their bodies.
static RECEIVED: Mutex<Vec<(Parts, Bytes)>> = Mutex::new(Vec::new());

/// The client of a guest, and the port of the local server.
struct World {
    net: OutboundHttp,
    port: u16,
    grants: Grants,
    caller: Caller,
    blobs: InMemoryBlobs,
}

impl World {
    fn get() -> &'static Self {
        static WORLD: OnceLock<World> = OnceLock::new();
        WORLD.get_or_init(|| crate::wait(Self::new()))
    }

    async fn new() -> Self {
        let port = serve(Router::new().fallback(answered)).await.port();
        let net = OutboundHttp::new(&net_config(), Secrets::default());
        let rule = HttpRule {
            host: HOST.to_owned(),
            scheme: "http".to_owned(),
            port: Some(port),
            methods: ["GET", "POST", "PUT"].map(ToOwned::to_owned).into(),
            secrets: Default::default(),
            private: true,
        };
        Self {
            net: net.expect("there is a client"),
            port,
            grants: Grants { http: vec![rule], ..Grants::default() },
            caller: caller(),
            blobs: InMemoryBlobs::new(),
        }
    }

    /// Builds a request as the implementation of `wasi:http` does, which supports no other schemes,
    /// and refuses other paths.
    fn request(&self, bytes: &[u8]) -> Option<Request<Bytes>> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n");
        let (head, body) = bytes.split_at(end.unwrap_or(bytes.len()));
        let mut lines = head.split(|byte| *byte == b'\n');
        let method = lines.next()?;
        let mut text = || std::str::from_utf8(lines.next()?).ok();
        let (scheme, authority, path) = (text()?, text()?, text()?);
        if !matches!(scheme, "http" | "https") || !path.starts_with(['/', '?']) {
            return None;
        }
        let authority = authority.replace(PORT, &self.port.to_string());
        let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path);
        let mut request = Request::builder().method(method).uri(uri.build().ok()?);
        for (name, value) in lines.filter_map(header_field) {
            request = request.header(name, value);
        }
        let body = body.strip_prefix(b"\n\n").unwrap_or_default();
        request.body(Bytes::copy_from_slice(body)).ok()
    }

    async fn send(&self, call: &HttpRequest) -> Result<HttpResponse, Failure> {
        self.net.send(&self.caller, &self.grants, call, &self.blobs).await
    }

    /// Checks that the server received the method, the URL and the headers of a call.
    fn check_received(&self, call: &HttpRequest, url: &Url, head: &Parts) {
        assert_eq!(head.method.as_str(), call.method);
        let host = head.headers.get(header::HOST).map(HeaderValue::as_bytes);
        assert_eq!(host, Some(format!("{HOST}:{}", self.port).as_bytes()), "{url}");
        let path = head.uri.path_and_query().map(PathAndQuery::as_str);
        assert_eq!(path, Some(&url[Position::BeforePath..]), "{url}");
        for (name, _) in call.headers.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
            let received = head.headers.get_all(name.as_str()).iter().map(HeaderValue::as_bytes);
            let values = call.headers.iter().filter(|(other, _)| other == name);
            assert!(received.eq(values.map(|(_, value)| value.as_bytes())), "{name}");
        }
    }
}

async fn answered(request: extract::Request) -> StatusCode {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, BODY_BYTES).await.unwrap_or_default();
    lock(&RECEIVED).push((head, body));
    StatusCode::OK
}
