//! Requests that the guard of the API accepts by their host and origin. An input has the lines of a
//! request: the method, the target, and one line for each header.
//!
//! The libraries that the host and its proxies use for URLs read the same host in an accepted
//! request as the guard. A page that may change something has that host, or a configured origin.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

use axum::body::Body;
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{Method, header};
use url::{Host, Position, Url};
use wattle_api::ApiConfig;
use wattle_api::guard::check_host_and_origin;
use wattle_api::problem::api_code;

use super::header_field;

/// The configured name of the host.
const NAME: &str = "wattle.example";

/// The configured origin.
const ORIGIN: &str = "https://ui.example";

/// The default port of `http`.
const PORT: u16 = 80;

/// Checks a request.
pub fn run(bytes: &[u8]) {
    let Some(request) = request(bytes) else { return };
    if let Some(problem) = check_host_and_origin(config(), &request) {
        let expected = [api_code::HOST, api_code::ORIGIN];
        assert!(expected.contains(&problem.code.as_str()), "{}", problem.code);
        return;
    }
    let host = requested(&request);
    check_host(host);
    if can_change(&request)
        && let Some(origin) = request.headers().get(header::ORIGIN)
    {
        check_origin(origin.to_str().expect("an accepted origin is text"), host);
    }
}

fn config() -> &'static ApiConfig {
    static CONFIG: OnceLock<ApiConfig> = OnceLock::new();
    CONFIG.get_or_init(|| ApiConfig {
        hosts: [NAME.to_owned()].into(),
        origins: [ORIGIN.to_owned()].into(),
        ..ApiConfig::default()
    })
}

fn request(bytes: &[u8]) -> Option<Request> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let mut request = Request::builder().method(lines.next()?).uri(lines.next()?);
    for (name, value) in lines.filter_map(header_field) {
        request = request.header(name, value);
    }
    request.body(Body::empty()).ok()
}

/// Returns the host of an accepted request.
fn requested(request: &Request) -> &str {
    if let Some(authority) = request.uri().authority() {
        return authority.as_str();
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().expect("an accepted request has a host");
    assert!(hosts.next().is_none(), "a request with several hosts is accepted");
    host.to_str().expect("an accepted host is text")
}

fn can_change(request: &Request) -> bool {
    let only_reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    !only_reads || request.headers().contains_key(header::UPGRADE)
}

/// Checks that an accepted host is the same host for `http` and `url`, and is still accepted in the
/// normal form of a URL.
fn check_host(host: &str) {
    let authority: Authority = host.parse().expect("an accepted host is an authority");
    let url = Url::parse(&format!("http://{host}/")).expect("an accepted host fits in a URL");
    assert!(url.username().is_empty() && url.password().is_none(), "{host}");
    assert_eq!(url.port_or_known_default(), authority.port_u16().or(Some(PORT)), "{host}");
    let name = authority.host();
    match url.host() {
        Some(Host::Domain(domain)) => {
            assert!(domain.eq_ignore_ascii_case(name), "{host}");
            assert!(domain == "localhost" || domain == NAME, "{host}");
        }
        Some(Host::Ipv4(address)) => assert_eq!(name.parse::<Ipv4Addr>(), Ok(address), "{host}"),
        Some(Host::Ipv6(address)) => {
            let name = name.trim_matches(['[', ']']);
            assert_eq!(name.parse::<Ipv6Addr>(), Ok(address), "{host}");
        }
        None => panic!("the URL of `{host}` has no host"),
    }
    let normal = &url[Position::BeforeHost..Position::AfterPort];
    let again = Request::get("/").header(header::HOST, normal).body(Body::empty());
    let again = again.expect("the normal form is the value of a header");
    assert!(check_host_and_origin(config(), &again).is_none(), "{host} is accepted, not {normal}");
}

/// Checks that a page with an accepted origin has the requested host, or the configured origin.
fn check_origin(origin: &str, host: &str) {
    if origin == ORIGIN {
        return;
    }
    let page = Url::parse(origin).expect("an accepted origin is a URL");
    assert!(matches!(page.scheme(), "http" | "https"), "{origin}");
    let own = Url::parse(&format!("{}://{host}/", page.scheme()));
    let own = own.expect("an accepted host fits in a URL");
    assert_eq!(page.origin(), own.origin(), "{origin} may change {host}");
}
