//! What a key must open for a request.

use axum::extract::Request;
use axum::http::{Method, header};
use url::form_urlencoded;

use crate::guard::holder::KeyScope;
use crate::guard::refusal::Form;

/// Paths, with all below them, that are the operator's, or of the operator of a tenant.
const ADMIN: &[&str] =
    &["/api/v1/keys", "/api/v1/plugins", "/api/v1/problems", "/api/v1/store/compact", "/metrics"];

/// Paths, with all below them, of which changes are the operator's of a tenant: who sets where a
/// model is asked reads what it is asked.
const ADMIN_CHANGES: &[&str] = &["/api/v1/tenants"];

/// What is only read although it is posted. `*` stands for any one segment.
const NATIVE_READS: &[&str] = &["/api/v1/memory/search"];

/// The same on the paths of the Agent Server.
const AGENT_READS: &[&str] = &[
    "/assistants/search",
    "/assistants/count",
    "/assistants/*/versions",
    "/threads/search",
    "/threads/count",
    "/threads/*/history",
    "/threads/*/state/checkpoint",
    "/threads/*/stream/events",
    "/runs/crons/search",
    "/runs/crons/count",
    "/store/items/search",
    "/store/namespaces",
];

/// The parameter by which leaving a stream ends its run.
const CANCELS: &str = "cancel_on_disconnect";

/// What a request needs.
pub(super) fn scope_of(form: Form, request: &Request) -> KeyScope {
    let (method, path) = (request.method(), request.uri().path());
    let is_read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    if is_below(ADMIN, path) || (!is_read && is_below(ADMIN_CHANGES, path)) {
        return KeyScope::Admin;
    }
    // What comes over the connection after an upgrade may be anything.
    let only_reads = is_read && !request.headers().contains_key(header::UPGRADE);
    if only_reads && !cancels(request.uri().query().unwrap_or_default()) {
        return KeyScope::Read;
    }
    let reads = match form {
        Form::Problem => NATIVE_READS,
        Form::Detail => AGENT_READS,
    };
    let is_search = *method == Method::POST && reads.iter().any(|read| fits(read, path));
    if is_search { KeyScope::Read } else { KeyScope::Write }
}

fn is_below(places: &[&str], path: &str) -> bool {
    places.iter().any(|place| {
        path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

fn fits(pattern: &str, path: &str) -> bool {
    let (mut wanted, mut found) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some("*"), Some(segment)) if !segment.is_empty() => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            _ => return false,
        }
    }
}

fn cancels(query: &str) -> bool {
    form_urlencoded::parse(query.as_bytes())
        .any(|(name, value)| name == CANCELS && !matches!(&*value, "" | "0" | "false"))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[track_caller]
    fn check(form: Form, method: &str, uri: &str, wanted: KeyScope) {
        let request = Request::builder().method(method).uri(uri).body(Body::empty()).unwrap();
        assert_eq!(scope_of(form, &request), wanted, "{method} {uri}");
    }

    #[test]
    fn reading_needs_less_than_writing() {
        let native = |method, uri, wanted| check(Form::Problem, method, uri, wanted);
        native("GET", "/api/v1/threads", KeyScope::Read);
        native("HEAD", "/apps/asset/", KeyScope::Read);
        native("POST", "/api/v1/memory/search", KeyScope::Read);
        native("PUT", "/api/v1/memory/items", KeyScope::Write);
        native("POST", "/api/v1/apps/a/runs", KeyScope::Write);
        native("POST", "/apps/asset/threads/search", KeyScope::Write);
        native("POST", "/threads/search", KeyScope::Write);
    }

    #[test]
    fn searches_of_the_agent_server_only_read() {
        let agent = |method, uri, wanted| check(Form::Detail, method, uri, wanted);
        agent("POST", "/threads/search", KeyScope::Read);
        agent("POST", "/threads/1/history", KeyScope::Read);
        agent("POST", "/threads/1/state", KeyScope::Write);
        agent("POST", "/threads//history", KeyScope::Write);
        agent("POST", "/threads/1/2/history", KeyScope::Write);
        agent("DELETE", "/threads/search", KeyScope::Write);
        agent("POST", "/threads/1/runs/wait", KeyScope::Write);
    }

    #[test]
    fn a_stream_whose_end_ends_the_run_is_no_reading() {
        let stream = |query: &str, wanted| {
            check(Form::Detail, "GET", &format!("/threads/1/runs/2/stream?{query}"), wanted);
        };
        for query in ["", "cancel_on_disconnect=false", "cancel_on_disconnect=0&x=1"] {
            stream(query, KeyScope::Read);
        }
        for query in ["cancel_on_disconnect=true", "x=1&cancel_on%5Fdisconnect=1"] {
            stream(query, KeyScope::Write);
        }
    }

    #[test]
    fn an_upgrade_may_write() {
        let request = Request::get("/threads/1/stream/events").header("upgrade", "websocket");
        let request = request.body(Body::empty()).unwrap();
        assert_eq!(scope_of(Form::Detail, &request), KeyScope::Write);
    }

    #[test]
    fn what_is_the_operators_needs_more() {
        let native = |method, uri, wanted| check(Form::Problem, method, uri, wanted);
        for path in ["/api/v1/keys", "/api/v1/keys/x", "/api/v1/plugins/p", "/metrics"] {
            native("GET", path, KeyScope::Admin);
        }
        native("GET", "/api/v1/keysmith", KeyScope::Read);
        native("PUT", "/api/v1/tenants/a/routes/chat", KeyScope::Admin);
        native("GET", "/api/v1/tenants/a/routes/chat", KeyScope::Read);
    }
}
