//! `/api/sessions/{id}`: shows a session, renames and deletes it.

use wattle_plugin::prelude::{Failure, Request, Response, Value, code, handler, json, runs};

use crate::message;
use crate::session::{self, snapshot};
use crate::web::cancel::stop;
use crate::web::sessions::title;
use crate::web::{NO_CONTENT, Refusal, answer, find};

/// Shows a session with its messages, steps and snapshot. What a run that is under way says is not
/// among the messages: its stream tells it from the beginning.
#[handler(GET, "/api/sessions/{id}")]
pub(crate) fn show(request: &Request) -> Result<Response, Failure> {
    answer(|| {
        let session = find(request)?;
        let mut view = session.view()?;
        view["messages"] = json!(message::list(&session.id)?);
        view["steps"] = json!(session::steps(&session.id)?);
        view["state"] = snapshot::read(None, &session.id)?.view()?;
        Ok(Response::json(200, &view)?)
    })
}

/// Renames a session: `{title}`. No video replaces the title any more.
#[handler(PATCH, "/api/sessions/{id}")]
pub(crate) fn rename(request: &Request) -> Result<Response, Failure> {
    answer(|| {
        let mut session = find(request)?;
        let body: Value = request.json()?;
        if let Some(key) = body.as_object().and_then(|it| it.keys().find(|key| *key != "title")) {
            return Err(Refusal::invalid(format!("unknown key `{key}`; only `title` can be set")));
        }
        let title = title(&body)?.ok_or_else(|| Refusal::invalid("`title` is missing"))?;
        session::set_title(&session.id, title)?;
        title.clone_into(&mut session.title);
        Ok(Response::json(200, &session.view()?)?)
    })
}

/// Deletes a session with its thread. A run that is under way is stopped first.
#[handler(DELETE, "/api/sessions/{id}")]
pub(crate) fn delete(request: &Request) -> Result<Response, Failure> {
    answer(|| {
        let session = stop(find(request)?)?;
        match runs::delete_thread(&session.id) {
            Err(failure) if failure.code != code::NOT_FOUND => return Err(failure.into()),
            _ => {}
        }
        session::delete(&session.id)?;
        Ok(Response::empty(NO_CONTENT))
    })
}
