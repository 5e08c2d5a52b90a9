//! URLs that others choose. The first byte selects the kind: the URL of a webhook with a rule of
//! the operator, a path with a route of an app, or the redirect of a service. Each of the two texts
//! is a line. A permitted URL is permitted in its normalized form, too, and a request stays with
//! the services of its rule.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use wattle_agent_server::wire::webhook::{AllowRule, MAX_URL_BYTES, WebhookUrl};
use wattle_api::app_route::pattern;
use wattle_graph::failure::code;
use wattle_net::{OutboundHttp, Secrets, is_address_allowed};
use wattle_run::grant::{Grants, HttpRule};
use wattle_run::hostcall::http::{HttpBody, HttpRequest};
use wattle_run::ports::{Caller, Net as _};
use wattle_store::InMemoryBlobs;

use super::{HOST, caller, lines, lock, net_config, serve};

/// The kinds of texts.
const KINDS: &[fn(&str, &str)] = &[webhook, path, redirect];

/// The path that redirects; every other path responds.
const FIRST: &str = "/first";

/// The value of the secret that the guest sends. No input contains it.
const SECRET: &str = "f2b7c9e04d";

/// Statuses of a redirect.
const STATUSES: [StatusCode; 5] = [
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::FOUND,
    StatusCode::SEE_OTHER,
    StatusCode::TEMPORARY_REDIRECT,
    StatusCode::PERMANENT_REDIRECT,
];

/// Reads two texts.
pub fn run(bytes: &[u8]) {
    let Some((kind, texts)) = bytes.split_first() else { return };
    let Some((first, rest)) = lines(texts) else { return };
    KINDS[usize::from(*kind) % KINDS.len()](first, rest);
}

fn webhook(rule: &str, url: &str) {
    let allow: Vec<AllowRule> = rule.parse::<AllowRule>().into_iter().collect();
    let target = match WebhookUrl::parse(url, &allow, is_address_allowed) {
        Ok(target) => target,
        Err(why) => {
            assert!(!why.is_empty());
            return;
        }
    };
    let WebhookUrl { url, private } = &target;
    assert!(matches!(url.scheme(), "http" | "https"), "{url}");
    assert!(url.username().is_empty() && url.password().is_none(), "{url}");
    assert!(!private || allow.iter().any(|rule| rule.covers(url)), "{url}");
    let host = url.host_str().expect("a permitted URL has a host");
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        assert!(is_address_allowed(address, *private), "{url}");
    }
    if url.as_str().len() <= MAX_URL_BYTES {
        assert_eq!(WebhookUrl::parse(url.as_str(), &allow, is_address_allowed), Ok(target.clone()));
    }
}

fn path(route: &str, path: &str) {
    pattern::matches_path(route, path);
    assert_eq!(pattern::overlap(route, path), pattern::overlap(path, route), "{route} {path}");
}

/// Follows a redirect to the first text. The length of the second one selects the status.
fn redirect(location: &str, rest: &str) {
    let Ok(location) = HeaderValue::from_str(location) else { return };
    let world = World::get();
    let status = STATUSES[rest.len() % STATUSES.len()];
    *lock(&ANSWER) = (status, location);
    REQUESTS.store(0, Ordering::Relaxed);
    let sent = world.net.send(&world.caller, &world.grants, &world.request, &world.blobs);
    match crate::wait(sent) {
        Ok(response) => {
            assert!(response.url.starts_with(&world.base), "{}", response.url);
            assert!(!response.url.contains(SECRET), "{}", response.url);
        }
        Err(failure) => {
            let expected = [code::DENIED, code::INVALID, code::LIMIT, code::UNAVAILABLE];
            assert!(expected.contains(&failure.code.as_str()), "{failure}");
            assert!(!failure.message.contains(SECRET), "{failure}");
        }
    }
    let requests = REQUESTS.load(Ordering::Relaxed);
    assert!(requests <= 1 + world.grants.limits.net.redirects, "{requests} requests");
    let told = std::mem::take(&mut *lock(&TOLD));
    assert!(told.is_empty(), "the secret is in a URL: {told}");
}

/// The response to a request for [`FIRST`].
static ANSWER: Mutex<(StatusCode, HeaderValue)> =
    Mutex::new((StatusCode::FOUND, HeaderValue::from_static("/")));

/// Number of requests that the server received.
static REQUESTS: AtomicU32 = AtomicU32::new(0);

/// The URL of a request that had the secret in it.
static TOLD: Mutex<String> = Mutex::new(String::new());

/// The client of a guest, and a request to the local server.
struct World {
    net: OutboundHttp,
    base: String,
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
        let secrets = Secrets::new([("KEY".to_owned(), SECRET.into())].into());
        let net = OutboundHttp::new(&net_config(), secrets.expect("the secret is valid"));
        let base = format!("http://{HOST}:{port}/");
        let rule = HttpRule {
            host: HOST.to_owned(),
            scheme: "http".to_owned(),
            port: Some(port),
            methods: ["GET", "POST"].map(ToOwned::to_owned).into(),
            secrets: ["KEY".to_owned()].into(),
            private: true,
        };
        Self {
            net: net.expect("there is a client"),
            grants: Grants { http: vec![rule], ..Grants::default() },
            request: HttpRequest {
                method: "POST".to_owned(),
                url: format!("http://{HOST}:{port}{FIRST}"),
                headers: vec![("authorization".to_owned(), "Bearer {{secret:KEY}}".to_owned())],
                body: HttpBody::Text("text".to_owned()),
                timeout_ms: None,
                idempotency_key: None,
                delay_ms: None,
            },
            base,
            caller: caller(),
            blobs: InMemoryBlobs::new(),
        }
    }
}

async fn answered(request: Request) -> Response {
    REQUESTS.fetch_add(1, Ordering::Relaxed);
    let url = request.uri().to_string();
    if url.contains(SECRET) {
        *lock(&TOLD) = url;
    }
    if request.uri().path() != FIRST {
        return StatusCode::OK.into_response();
    }
    let (status, location) = lock(&ANSWER).clone();
    (status, [(header::LOCATION, location)]).into_response()
}
