//! `POST /api/sessions/{id}/cancel`: stops the run of a session.

use wattle_plugin::prelude::{Failure, Request, Response, handler, runs};
use wattle_plugin::web::respond;

use crate::session::{self, Session, SessionView};
use crate::web::{ErrorDocument, find, running};

/// Stops the active run and returns the session after it has ended. Without an active run nothing
/// changes.
#[handler(POST, "/api/sessions/{id}/cancel", returns = SessionView, error = ErrorDocument)]
pub(crate) fn cancel(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let session = stop(find(request)?)?;
        Response::json(200, &session.view())
    })
}

/// Stops the run of a session and waits for its end.
pub(super) fn stop(session: Session) -> Result<Session, Failure> {
    let Some(run) = running(&session) else { return Ok(session) };
    runs::cancel_and_wait(&run)?;
    session::sync(session)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, json};
    use wattle_plugin::runs::Outcome;

    use super::cancel;
    use crate::web::testing::{IDLE, RUN, RUNNING, sessions};

    #[test]
    fn s3_65_a_cancel_waits_for_the_end_of_the_run() {
        let host = sessions().outcome(Outcome::Cancelled, json!({}));
        let request = Request::new("POST", "/x").with_param("id", RUNNING);
        assert_eq!(host.run(|| cancel(&request)).unwrap().status, 200);
        assert_eq!(host.cancelled()[0].run_id, RUN);
    }

    #[test]
    fn s3_71_a_cancel_without_a_run_succeeds() {
        let host = sessions();
        let request = Request::new("POST", "/x").with_param("id", IDLE);
        let response = host.run(|| cancel(&request)).unwrap();
        assert_eq!(response.json_body().unwrap()["status"], "IDLE");
        assert!(host.cancelled().is_empty());
    }
}
