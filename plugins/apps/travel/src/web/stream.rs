//! `GET /api/chat/{id}/stream`: the stream of a run, for a page that reconnects.

use wattle_plugin::prelude::{Failure, Request, Response, Value, handler};
use wattle_plugin::web::{respond, status};

use crate::web::{ErrorDocument, find, running, stream_of};

/// Hands off the stream of the active run, from its beginning; 204 if there is none.
#[handler(GET, "/api/chat/{id}/stream", events = Value, returns(204), error = ErrorDocument)]
pub(crate) fn stream(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || match running(&find(request)?) {
        Some(run) => stream_of(&run),
        None => Ok(Response::empty(status::NO_CONTENT)),
    })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::Request;
    use wattle_plugin::web::Body;

    use super::stream;
    use crate::web::testing::{IDLE, RUN, RUNNING, sessions};

    #[test]
    fn reconnected_page_gets_the_active_run() {
        let host = sessions();
        let get = |id: &str| {
            let request = Request::new("GET", "/api/chat/x/stream").with_param("id", id);
            host.run(|| stream(&request)).unwrap()
        };
        assert_eq!(get(IDLE).status, 204);
        assert_eq!(get("nobody").status, 404);
        let Body::HandOff(hand_off) = get(RUNNING).body else { panic!() };
        assert_eq!(hand_off.run_id.as_deref(), Some(RUN));
    }
}
