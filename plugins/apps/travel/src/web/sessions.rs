//! `/api/sessions`: creates sessions and lists them.

use wattle_plugin::prelude::{
    Failure, JsonSchema, Request, Response, Serialize, Value, handler, json,
};
use wattle_plugin::web::{PageQuery, refuse, respond, status};

use crate::session::{self, Session, SessionView, TITLE_CHARS};
use crate::web::ErrorDocument;

/// Default and maximum number of sessions in a list.
const PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 200;

/// A session that is to be.
#[expect(
    dead_code,
    reason = "only its schema is used: `fn title` reads the body, for better errors"
)]
#[derive(JsonSchema)]
struct NewSession {
    title: Option<String>,
}

/// A page of sessions.
#[derive(Serialize, JsonSchema)]
struct SessionList {
    sessions: Vec<SessionView>,
}

/// Creates a session: `{title?}`.
#[handler(POST, "/api/sessions", body = Option<NewSession>, returns(201) = SessionView,
    error = ErrorDocument)]
pub(crate) fn create(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let body: Value = if request.body.is_empty() { json!({}) } else { request.json()? };
        let title = title(&body)?;
        let session = session::create(request.tenant.as_deref(), title)?;
        Response::json(status::CREATED, &session.view())
    })
}

/// Lists the sessions, the newest first; `limit` and `offset` page through them.
#[handler(GET, "/api/sessions", query(limit: Option<u32>, offset: Option<u32>),
    returns = SessionList, error = ErrorDocument)]
pub(crate) fn list(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let PageQuery { limit, offset } = request.page(PAGE, LARGEST_PAGE)?;
        let sessions = session::list(request.tenant.as_deref(), limit, offset)?;
        // Only running sessions can have changed since they were last read.
        let sync = |session: Session| {
            let session = if session.is_running() { session::sync(session)? } else { session };
            Ok::<_, Failure>(session.view())
        };
        let sessions = sessions.into_iter().map(sync).collect::<Result<_, Failure>>()?;
        Response::json(200, &SessionList { sessions })
    })
}

/// Returns the title in a body; `None` if there is none.
pub(super) fn title(body: &Value) -> Result<Option<&str>, Failure> {
    let title = match body.get("title") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(title)) => title.trim(),
        Some(_) => return Err(refuse(status::BAD_REQUEST, "`title` must be a text")),
    };
    if title.is_empty() || title.chars().count() > TITLE_CHARS {
        let why = format!("`title` must have 1 to {TITLE_CHARS} characters");
        return Err(refuse(status::BAD_REQUEST, why));
    }
    Ok(Some(title))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, json};

    use super::{create, list};
    use crate::web::testing::{IDLE, sessions};

    #[test]
    fn s3_54_sessions_are_created_with_a_title_or_without() {
        let host = sessions();
        for (body, title) in [("", "Untitled Guide"), ("{\"title\": \" Tokyo \"}", "Tokyo")] {
            let request = Request::new("POST", "/api/sessions").with_body(body);
            let response = host.run(|| create(&request)).unwrap();
            let made = response.json_body().unwrap();
            assert_eq!((response.status, &made["title"]), (201, &json!(title)));
            assert_eq!(made["status"], "IDLE");
            assert_eq!(made["createdAt"], "2026-01-01T00:00:00.000Z");
        }
        for body in ["[", "{\"title\": 7}", "{\"title\": \"\"}"] {
            let request = Request::new("POST", "/api/sessions").with_body(body);
            assert_eq!(host.run(|| create(&request)).unwrap().status, 400, "{body}");
        }
    }

    #[test]
    fn s3_54_sessions_are_listed() {
        let host = sessions();
        let listed = host.run(|| list(&Request::new("GET", "/api/sessions"))).unwrap();
        assert_eq!(listed.json_body().unwrap()["sessions"][0]["id"], IDLE);
        let bad = Request::new("GET", "/api/sessions").with_query("limit", "many");
        assert_eq!(host.run(|| list(&bad)).unwrap().status, 400);
    }
}
