//! The macro `chat_endpoints!`.

use crate::failure::Failure;
use crate::web::{self, ErrorDocument, Request, Response};

/// Responds as [`web::respond()`], with the header `cache-control: no-store`.
#[doc(hidden)]
pub fn respond(
    request: &Request,
    work: impl FnOnce() -> Result<Response, Failure>,
) -> Result<Response, Failure> {
    let response = web::respond::<ErrorDocument>(request, work)?;
    Ok(response.with_header("cache-control", "no-store"))
}

/// Declares the endpoints of the conversations of a [`Chat`](crate::chat::Chat), below a path. Each
/// is a function with `#[handler]`, and `export!` names those that the app offers. An app that
/// needs another form of an endpoint declares the endpoint itself.
///
/// | function | endpoint | request | responses |
/// |---|---|---|---|
/// | `send` | `POST /chat` | [`ChatRequest`] | [`Reply`]; 202 with [`Waiting`] |
/// | `stream` | `POST /chat/stream` | [`ChatRequest`], `?format=` | see [`Chat::stream`] |
/// | `list` | `GET /threads` | `?limit=&after=&text=` | [`ThreadList`] |
/// | `show` | `GET /threads/{id}` | | [`ThreadDocument`] |
/// | `rename` | `PATCH /threads/{id}` | [`TitleRequest`] | 204 |
/// | `delete` | `DELETE /threads/{id}` | | 204 |
/// | `join` | `GET /threads/{id}/stream` | `?format=` | see [`Chat::join`]; 204 |
/// | `cancel` | `POST /threads/{id}/cancel` | | [`ThreadDocument`] |
/// | `answer` | `POST /threads/{id}/answers` | [`AnswerRequest`] | those of `send` |
///
/// A refused request has the body `{"error": "..."}` with one of the [`Texts`]. A failed run has
/// the status 502 and a [`ChatError`] with [`Texts::failed`]. Each response has the header
/// `cache-control: no-store`, because a conversation changes at any time.
///
/// ```
/// use wattle_plugin::chat::Chat;
/// use wattle_plugin::prelude::*;
/// use wattle_plugin::testing::FakeHost;
///
/// const CHAT: Chat = Chat::graph("notes").title_chars(80);
///
/// wattle_plugin::chat_endpoints!(CHAT, "/api");
///
/// wattle_plugin::export! { handlers: [stream, list, show] }
///
/// # fn main() -> Result<(), Failure> {
/// let host = FakeHost::new();
/// let request = Request::new("POST", "/api/chat/stream").with_body(r#"{"message": "hi"}"#);
/// let response = host.run(|| stream(&request))?;
/// assert_eq!(response.status, 200);
/// assert_eq!(host.started()[0].graph, "notes");
/// # Ok(())
/// # }
/// ```
///
/// [`AnswerRequest`]: crate::chat::AnswerRequest
/// [`Chat::join`]: crate::chat::Chat::join
/// [`Chat::stream`]: crate::chat::Chat::stream
/// [`ChatError`]: crate::chat::ChatError
/// [`ChatRequest`]: crate::chat::ChatRequest
/// [`Reply`]: crate::chat::Reply
/// [`Texts`]: crate::chat::Texts
/// [`Texts::failed`]: crate::chat::Texts::failed
/// [`ThreadDocument`]: crate::chat::ThreadDocument
/// [`ThreadList`]: crate::chat::ThreadList
/// [`TitleRequest`]: crate::chat::TitleRequest
/// [`Waiting`]: crate::chat::Waiting
#[macro_export]
macro_rules! chat_endpoints {
    ($chat:expr, $path:literal $(,)?) => {
        /// Sends a message to a conversation and waits for the reply.
        #[$crate::handler(POST, concat!($path, "/chat"), body = $crate::chat::ChatRequest,
            returns = $crate::chat::Reply, returns(202) = $crate::chat::Waiting,
            error = $crate::chat::ChatError)]
        fn send(
            request: &$crate::web::Request,
        ) -> ::std::result::Result<$crate::web::Response, $crate::Failure> {
            $crate::chat::respond(request, || {
                $chat.wait(&$chat.send(request)?)?.into_response()
            })
        }

        /// Sends a message to a conversation and streams the run: as the host's own events, or with
        /// `?format=ai-sdk` as a message of the AI SDK.
        #[$crate::handler(POST, concat!($path, "/chat/stream"), query(format: Option<String>),
            body = $crate::chat::ChatRequest, events = $crate::serde_json::Value,
            error = $crate::web::ErrorDocument)]
        fn stream(
            request: &$crate::web::Request,
        ) -> ::std::result::Result<$crate::web::Response, $crate::Failure> {
            $crate::chat::respond(request, || $chat.stream(request))
        }

        /// Lists the conversations, newest update first.
        #[$crate::handler(GET, concat!($path, "/threads"),
            query(limit: Option<u32>, after: Option<String>, text: Option<String>),
            returns = $crate::chat::ThreadList, error = $crate::web::ErrorDocument)]
        fn list(
            request: &$crate::web::Request,
        ) -> ::std::result::Result<$crate::web::Response, $crate::Failure> {
            $crate::chat::respond(request, || {
                $crate::web::Response::json(200, &$chat.list(request)?)
            })
        }

        /// Responds with the messages and the pending questions of a conversation. Messages of the
        /// active run are omitted, because its stream has them from the beginning.
        #[$crate::handler(GET, concat!($path, "/threads/{id}"),
            returns = $crate::chat::ThreadDocument, error = $crate::web::ErrorDocument)]
        fn show(
            request: &$crate::web::Request,
        ) -> ::std::result::Result<$crate::web::Response, $crate::Failure> {
            $crate::chat::respond(request, || {
                $crate::web::Response::json(200, &$chat.show(&request.param::<String>("id")?)?)
            })
        }

        /// Sets the title of a conversation.
        #[$crate::handler(PATCH, concat!($path, "/threads/{id}"),
            body = $crate::chat::TitleRequest, returns(204), error = $crate::web::ErrorDocument)]
        fn rename(
            request: &$crate::web::Request,
        ) -> ::std::result::Result<$crate::web::Response, $crate::Failure> {
            $crate::chat::respond(request, || {
                $chat.rename(&request.param::<String>("id")?, request)?;
                Ok($crate::web::Response::empty(204))
            })
        }

        /// Deletes a conversation. Its active run is cancelled first.
        #[$crate::handler(DELETE, concat!($path, "/threads/{id}"), returns(204),
            error = $crate::web::ErrorDocument)]
        fn delete(
            request: &$crate::web::Request,
        ) -> ::std::result::Result<$crate::web::Response, $crate::Failure> {
            $crate::chat::respond(request, || {
                $chat.delete(&request.param::<String>("id")?)?;
                Ok($crate::web::Response::empty(204))
            })
        }

        /// Streams the active run of a conversation from its beginning: as a message of the AI SDK,
        /// or with `?format=sse` as the host's own events. Responds with 204 if there is none.
        #[$crate::handler(GET, concat!($path, "/threads/{id}/stream"),
            query(format: Option<String>), events = $crate::serde_json::Value, returns(204),
            error = $crate::web::ErrorDocument)]
        fn join(
            request: &$crate::web::Request,
        ) -> ::std::result::Result<$crate::web::Response, $crate::Failure> {
            $crate::chat::respond(request, || {
                $chat.join(&request.param::<String>("id")?, request)
            })
        }

        /// Cancels the active run of a conversation, if there is one, and responds with the
        /// conversation.
        #[$crate::handler(POST, concat!($path, "/threads/{id}/cancel"),
            returns = $crate::chat::ThreadDocument, error = $crate::web::ErrorDocument)]
        fn cancel(
            request: &$crate::web::Request,
        ) -> ::std::result::Result<$crate::web::Response, $crate::Failure> {
            $crate::chat::respond(request, || {
                $crate::web::Response::json(200, &$chat.cancel(&request.param::<String>("id")?)?)
            })
        }

        /// Answers a pending question of a conversation and waits for the reply.
        #[$crate::handler(POST, concat!($path, "/threads/{id}/answers"),
            body = $crate::chat::AnswerRequest, returns = $crate::chat::Reply,
            returns(202) = $crate::chat::Waiting, error = $crate::chat::ChatError)]
        fn answer(
            request: &$crate::web::Request,
        ) -> ::std::result::Result<$crate::web::Response, $crate::Failure> {
            $crate::chat::respond(request, || {
                $chat.answer(&request.param::<String>("id")?, request)?.into_response()
            })
        }
    };
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::chat::{Chat, Texts};
    use crate::export::{Handler as _, HandlerEntry, openapi};
    use crate::failure::Failure;
    use crate::runs::{EndedRun, Interrupt, Outcome, RunRef, Thread};
    use crate::testing::FakeHost;
    use crate::web::Request;

    const CHAT: Chat = Chat::graph("notes");

    crate::chat_endpoints!(CHAT, "/api");

    const ENTRIES: &[HandlerEntry] = &[
        send::ENTRY,
        stream::ENTRY,
        list::ENTRY,
        show::ENTRY,
        rename::ENTRY,
        delete::ENTRY,
        join::ENTRY,
        cancel::ENTRY,
        answer::ENTRY,
    ];

    /// The outcome of the runs of a host.
    type Ends = fn() -> Outcome;

    /// A host with an idle conversation and with one that has a pending question.
    fn host(ends: Ends) -> FakeHost {
        let thread = |id: &str, status: &str| Thread::new(id, "notes", status, json!({}));
        let mut waiting = thread("waiting", "interrupted");
        waiting.interrupts = vec![Interrupt::new("q", "tools", json!({"tool": "pay"}))];
        let host = FakeHost::new().thread(thread("idle", "idle")).thread(waiting);
        host.run_ends(move |run: &RunRef| EndedRun {
            run: run.clone(),
            outcome: ends(),
            state: json!({}),
        })
    }

    /// Sends a request to an endpoint, and returns the status and the body of the response, which
    /// no cache stores.
    fn call(host: &FakeHost, entry: &HandlerEntry, id: &str, body: &Value) -> (u16, Value) {
        let request = Request::new(entry.method, entry.path).with_param("id", id);
        let request = request.with_body(body.to_string());
        let response = host.run(|| (entry.handle)(&request)).unwrap();
        let no_store = ("cache-control".to_owned(), "no-store".to_owned());
        assert!(response.headers.contains(&no_store), "{} {}", entry.method, entry.path);
        (response.status, response.json_body().unwrap_or_default())
    }

    #[test]
    fn endpoints_are_below_the_path_and_have_a_summary() {
        let found: Vec<(&str, &str)> = ENTRIES.iter().map(|it| (it.method, it.path)).collect();
        let expected = [
            ("POST", "/api/chat"),
            ("POST", "/api/chat/stream"),
            ("GET", "/api/threads"),
            ("GET", "/api/threads/{id}"),
            ("PATCH", "/api/threads/{id}"),
            ("DELETE", "/api/threads/{id}"),
            ("GET", "/api/threads/{id}/stream"),
            ("POST", "/api/threads/{id}/cancel"),
            ("POST", "/api/threads/{id}/answers"),
        ];
        assert_eq!(found, expected);
        let document = openapi("notes", ENTRIES);
        for (method, path) in expected {
            let operation = &document["paths"][path][method.to_lowercase()];
            assert!(operation["summary"].as_str().is_some_and(|it| it.ends_with('.')), "{path}");
            assert!(operation["responses"]["default"].is_object(), "{path}: {operation}");
        }
    }

    #[test]
    fn endpoints_do_the_work_of_the_conversations() {
        let chosen = json!({"id": "q", "answer": {"decision": "approve"}});
        for (entry, id, body, status) in [
            (send::ENTRY, "", json!({"message": "hi"}), 200),
            (stream::ENTRY, "", json!({"message": "hi"}), 200),
            (list::ENTRY, "", json!(null), 200),
            (show::ENTRY, "idle", json!(null), 200),
            (rename::ENTRY, "idle", json!({"title": "Tea"}), 204),
            (delete::ENTRY, "idle", json!(null), 204),
            (join::ENTRY, "idle", json!(null), 204),
            (cancel::ENTRY, "idle", json!(null), 200),
            (answer::ENTRY, "waiting", chosen, 200),
        ] {
            let host = host(|| Outcome::Completed);
            let (found, body) = call(&host, &entry, id, &body);
            assert_eq!(found, status, "{} {}: {body}", entry.method, entry.path);
        }
    }

    #[test]
    fn refusals_and_failed_runs_have_a_text_for_users() {
        let host = host(|| Outcome::Failed(Failure::timeout("late")));
        for entry in ENTRIES.iter().filter(|entry| entry.path.contains("{id}")) {
            let body = json!({"title": "Tea", "id": "q", "answer": true});
            let missing = (404, json!({"error": Texts::ENGLISH.missing}));
            assert_eq!(call(&host, entry, "nobody", &body), missing, "{}", entry.path);
        }
        let body = json!({"message": "hi", "id": "q", "answer": true});
        for entry in [send::ENTRY, answer::ENTRY] {
            let (status, body) = call(&host, &entry, "waiting", &body);
            assert_eq!((status, &body["error"]), (502, &json!(Texts::ENGLISH.failed)), "{body}");
        }
    }
}
