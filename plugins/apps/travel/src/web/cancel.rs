//! `POST /api/sessions/{id}/cancel`: stops the run of a session.

use wattle_plugin::prelude::{Failure, Request, Response, handler, runs};

use crate::session::{self, Session};
use crate::web::{answer, find, running};

/// Stops what is under way and answers with the session as it stands then. Stopping what has
/// ended changes nothing.
#[handler(POST, "/api/sessions/{id}/cancel")]
pub(crate) fn cancel(request: &Request) -> Result<Response, Failure> {
    answer(|| {
        let session = stop(find(request)?)?;
        Ok(Response::json(200, &session.view()?)?)
    })
}

/// Stops the run of a session and waits for its end.
pub(super) fn stop(session: Session) -> Result<Session, Failure> {
    let Some(run) = running(&session) else { return Ok(session) };
    runs::cancel(&run)?;
    runs::wait(&run)?;
    session::sync(session)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, json};
    use wattle_plugin::runs::{EndedRun, Outcome};

    use super::cancel;
    use crate::web::testing::{IDLE, RUN, RUNNING, sessions};

    #[test]
    fn s3_65_a_run_is_stopped_and_waited_for() {
        let host = sessions().run_ends(|run| EndedRun {
            run: run.clone(),
            outcome: Outcome::Cancelled,
            state: json!({}),
        });
        let request = Request::new("POST", "/x").with_param("id", RUNNING);
        assert_eq!(host.run(|| cancel(&request)).unwrap().status, 200);
        assert_eq!(host.cancelled()[0].run_id, RUN);
    }

    #[test]
    fn s3_71_stopping_what_does_not_run_is_fine() {
        let host = sessions();
        let request = Request::new("POST", "/x").with_param("id", IDLE);
        let response = host.run(|| cancel(&request)).unwrap();
        assert_eq!(response.json_body().unwrap()["status"], "IDLE");
        assert!(host.cancelled().is_empty());
    }
}
