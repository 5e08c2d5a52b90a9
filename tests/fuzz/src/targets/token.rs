//! Responses of a service that issues managed tokens. The first byte of the input selects the
//! status, the rest is the body.
//!
//! The host sends only the token of a successful response, and fetches another token after a day. A
//! failure does not show the secret with which the host requests the token.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde_json::Value;
use wattle_graph::definition::HumanDuration;
use wattle_graph::failure::{Failure, code};
use wattle_net::{OutboundHttp, Rejection, Secrets, TokenSource};
use wattle_run::grant::{Grants, HttpRule};
use wattle_run::hostcall::http::{HttpBody, HttpRequest, HttpResponse};
use wattle_run::ports::{Caller, Clock, Net as _};
use wattle_store::InMemoryBlobs;

use super::{HOST, caller, lock, net_config, serve};

/// The path that issues tokens; every other path accepts them.
const ISSUES: &str = "/token";

/// The field of a response with the token.
const FIELD: &str = "access_token";

/// The value of the secret with which the host requests a token. No input contains it.
const SECRET: &str = "a81c07f5d2";

/// Maximum age of a token, in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60_000;

/// Maximum size of a failure's message, in bytes. The message quotes only a part of the response.
const MESSAGE_BYTES: usize = 2 << 10;

/// Statuses, by the lowest bits of the first byte. Half of them are successful.
const STATUSES: [StatusCode; 8] = [
    StatusCode::OK,
    StatusCode::OK,
    StatusCode::OK,
    StatusCode::CREATED,
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::INTERNAL_SERVER_ERROR,
];

/// Sends a request with the token of a response.
pub fn run(bytes: &[u8]) {
    let Some((&first, body)) = bytes.split_first() else { return };
    let world = World::get();
    let status = STATUSES[usize::from(first) % STATUSES.len()];
    *lock(&ANSWER) = (status, Bytes::copy_from_slice(body));
    lock(&SHOWN).clear();
    FETCHES.store(0, Ordering::Relaxed);
    // The token of an earlier input is no longer used.
    NOW_MS.fetch_add(DAY_MS, Ordering::Relaxed);
    match crate::wait(world.send()) {
        Ok(_) => {
            check_token(status, body);
            NOW_MS.fetch_add(DAY_MS, Ordering::Relaxed);
            crate::wait(world.send()).expect("the token is issued again");
            assert_eq!(FETCHES.load(Ordering::Relaxed), 2, "the token is kept for a day");
        }
        Err(failure) => {
            let expected = [code::INVALID, code::LIMIT, code::UNAVAILABLE];
            assert!(expected.contains(&failure.code.as_str()), "{failure}");
            assert!(!failure.message.contains(SECRET), "{failure}");
            assert!(failure.message.len() <= MESSAGE_BYTES, "{failure}");
        }
    }
}

/// Checks that the host has sent the token of a response.
fn check_token(status: StatusCode, body: &[u8]) {
    assert!(status.is_success(), "the token of a response with status {status} is used");
    let document: Value = serde_json::from_slice(body).expect("the response has a token");
    let token = document[FIELD].as_str().expect("the response has a token");
    assert!(!token.trim().is_empty() && !token.contains(char::is_control), "{token:?}");
    let sent = format!("Bearer {token}");
    // HTTP removes spaces after a value.
    assert_eq!(*lock(&SHOWN), [sent.trim_end_matches(' ').as_bytes().to_vec()]);
}

/// The response to a request for a token.
static ANSWER: Mutex<(StatusCode, Bytes)> = Mutex::new((StatusCode::OK, Bytes::new()));

/// The `authorization` headers of other requests.
static SHOWN: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Number of requests for a token.
static FETCHES: AtomicU32 = AtomicU32::new(0);

/// The time, in milliseconds since 1970.
static NOW_MS: AtomicI64 = AtomicI64::new(0);

/// The clock of the host.
struct FuzzClock;

impl Clock for FuzzClock {
    fn now_ms(&self) -> i64 {
        NOW_MS.load(Ordering::Relaxed)
    }

    fn monotonic_ns(&self) -> u64 {
        0
    }

    fn time_zone(&self) -> &'static str {
        "UTC"
    }
}

/// The client of a guest, and a request with the token.
struct World {
    net: OutboundHttp,
    grants: Grants,
    request: HttpRequest,
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
        let secrets = Secrets::new([("CLIENT".to_owned(), SECRET.into())].into());
        let sources = BTreeMap::from([("TOKEN".to_owned(), source(port))]);
        let clock: Arc<dyn Clock> = Arc::new(FuzzClock);
        let secrets = secrets.expect("the secret is valid").with_tokens(sources, &clock);
        let net = OutboundHttp::new(&net_config(), secrets.expect("the source is valid"));
        let rule = HttpRule {
            host: HOST.to_owned(),
            scheme: "http".to_owned(),
            port: Some(port),
            methods: vec!["GET".to_owned()],
            secrets: ["TOKEN".to_owned()].into(),
            private: true,
        };
        Self {
            net: net.expect("there is a client"),
            grants: Grants { http: vec![rule], ..Grants::default() },
            request: HttpRequest {
                method: "GET".to_owned(),
                url: format!("http://{HOST}:{port}/"),
                headers: vec![("authorization".to_owned(), "Bearer {{secret:TOKEN}}".to_owned())],
                body: HttpBody::Empty,
                timeout_ms: None,
                idempotency_key: None,
                delay_ms: None,
            },
            caller: caller(),
            blobs: InMemoryBlobs::new(),
        }
    }

    async fn send(&self) -> Result<HttpResponse, Failure> {
        self.net.send(&self.caller, &self.grants, &self.request, &self.blobs).await
    }
}

fn source(port: u16) -> TokenSource {
    TokenSource {
        url: format!("http://{HOST}:{port}{ISSUES}"),
        body: r#"{"client_secret":"{{secret:CLIENT}}"}"#.to_owned(),
        content_type: "application/json".to_owned(),
        field: FIELD.to_owned(),
        expires_field: Some("expires_in".to_owned()),
        message_field: Some("error".to_owned()),
        refresh_before: HumanDuration::from_ms(60_000),
        invalid: Rejection::default(),
    }
}

async fn answered(request: Request) -> Response {
    if request.uri().path() == ISSUES {
        FETCHES.fetch_add(1, Ordering::Relaxed);
        return lock(&ANSWER).clone().into_response();
    }
    let shown = request.headers().get(header::AUTHORIZATION);
    lock(&SHOWN).extend(shown.map(|value| value.as_bytes().to_vec()));
    StatusCode::OK.into_response()
}
