//! `/api/sessions/{id}`: shows, renames and deletes a session.

use wattle_plugin::prelude::{
    Failure, JsonSchema, Request, Response, Serialize, Value, handler, json, runs,
};
use wattle_plugin::web::{PAGE_BYTES, refuse, respond, status};

use crate::message::{self, StoredMessage};
use crate::session::{self, Session, SessionView, StateView, StepView, snapshot, stored_output};
use crate::web::cancel::stop;
use crate::web::sessions::title;
use crate::web::{ErrorDocument, find};

/// Maximum size of a snapshot that is shown whole, in bytes. Messages and steps need space as well.
const STATE_BYTES: usize = 3 << 20;

/// A session with its messages, steps and snapshot.
#[derive(Serialize, JsonSchema)]
struct WholeSession {
    #[serde(flatten)]
    session: SessionView,
    state: StateView,
    #[schemars(with = "Vec<StoredMessage>")]
    messages: Vec<Value>,
    #[schemars(with = "Vec<StepView>")]
    steps: Vec<Value>,
    /// True if the oldest messages and steps, or subtitles of videos, are left out.
    truncated: bool,
}

/// A new title.
#[expect(
    dead_code,
    reason = "only its schema is used: `fn title` reads the body, for better errors"
)]
#[derive(JsonSchema)]
struct Title {
    title: String,
}

/// Shows a session with its messages, steps and snapshot. `truncated` is true if the oldest
/// messages and steps, or subtitles of videos, are left out, because the response would be too
/// large. The messages do not include the output of an active run, which its stream has from the
/// beginning.
#[handler(GET, "/api/sessions/{id}", returns = WholeSession, error = ErrorDocument)]
pub(crate) fn show(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let session = find(request)?;
        let (state, is_shortened) = state(&session)?;
        let mut budget = PAGE_BYTES.saturating_sub(json!(state).to_string().len());
        let messages = message::list(&session.id, &mut budget)?;
        let steps = session::steps(&session.id, &mut budget)?;
        let view = WholeSession {
            session: session.view(),
            state,
            messages: messages.items,
            steps: steps.items,
            truncated: is_shortened || messages.truncated || steps.truncated,
        };
        Response::json(200, &view)
    })
}

/// Returns the snapshot, and true if subtitles are left out because it is too large.
fn state(session: &Session) -> Result<(StateView, bool), Failure> {
    let mut state = snapshot::read(None, &session.id)?.view();
    let is_large = json!(state).to_string().len() > STATE_BYTES;
    if is_large {
        stored_output::shorten_videos(&mut state.context["videos"]);
    }
    Ok((state, is_large))
}

/// Renames a session: `{title}`. From then on, no video replaces the title.
#[handler(PATCH, "/api/sessions/{id}", body = Title, returns = SessionView, error = ErrorDocument)]
pub(crate) fn rename(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let mut session = find(request)?;
        let body: Value = request.json()?;
        if let Some(key) = body.as_object().and_then(|it| it.keys().find(|key| *key != "title")) {
            let why = format!("unknown key `{key}`; only `title` can be set");
            return Err(refuse(status::BAD_REQUEST, why));
        }
        let none = || refuse(status::BAD_REQUEST, "`title` is missing");
        let title = title(&body)?.ok_or_else(none)?;
        session::set_title(&session.id, title)?;
        title.clone_into(&mut session.title);
        Response::json(200, &session.view())
    })
}

/// Deletes a session with its thread. An active run is stopped first.
#[handler(DELETE, "/api/sessions/{id}", returns(204), error = ErrorDocument)]
pub(crate) fn delete(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let session = stop(find(request)?)?;
        runs::delete_thread_if_any(&session.id)?;
        session::delete(&session.id)?;
        Ok(Response::empty(status::NO_CONTENT))
    })
}
