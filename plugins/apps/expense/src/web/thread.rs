//! `GET /api/threads/{id}`: a conversation for a page that opens it.
//! `GET /api/threads/{id}/stream`: the stream of its active run.

use wattle_plugin::chat::ThreadDocument;
use wattle_plugin::prelude::{Failure, Request, Response, Value, handler};
use wattle_plugin::web::{ErrorDocument, respond};

use crate::web::CHAT;

/// Responds with the messages of a conversation in the form of the AI SDK. Messages of the active
/// run are omitted, because its stream has them from the beginning.
#[handler(GET, "/api/threads/{id}", returns = ThreadDocument, error = ErrorDocument)]
pub(crate) fn thread(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let thread = CHAT.show(&request.param::<String>("id")?)?;
        Ok(Response::json(200, &thread)?.with_header("cache-control", "no-store"))
    })
}

/// Streams the active run from its beginning. Responds with 204 if there is none.
#[handler(GET, "/api/threads/{id}/stream", events = Value, returns(204), error = ErrorDocument)]
pub(crate) fn resume(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || CHAT.join(&request.param::<String>("id")?))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, json};
    use wattle_plugin::runs::Thread;
    use wattle_plugin::testing::FakeHost;

    use super::thread;

    #[test]
    fn conversation_is_not_cached() {
        let state = json!({"messages": [{"id": "u", "role": "user", "content": "早"}]});
        let host = FakeHost::new().thread(Thread::new("t", "expense", "idle", state));
        let request = Request::new("GET", "/api/threads/t").with_param("id", "t");
        let response = host.run(|| thread(&request)).unwrap();
        assert!(response.headers.contains(&("cache-control".to_owned(), "no-store".to_owned())));
        let message = json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": "早"}]});
        let body = json!({"threadId": "t", "status": "idle", "messages": [message]});
        assert_eq!(response.json_body().unwrap(), body);
    }
}
