//! Responses to failed requests, in the form of the app.

use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::{Failure, code};
use crate::log;
use crate::web::request::Request;
use crate::web::response::Response;
use crate::web::status;

/// The form in which an app reports failures to its clients: the body of the response, and its
/// status. [`ErrorDocument`] is a common one.
///
/// ```
/// use wattle_plugin::prelude::*;
/// use wattle_plugin::web::{ErrorForm, respond, refuse, status};
///
/// /// The reason of a refused request, with a code for programs.
/// #[derive(Serialize, JsonSchema)]
/// struct Refusal {
///     code: String,
///     message: String,
/// }
///
/// impl ErrorForm for Refusal {
///     fn new(_request: &Request, _status: u16, failure: Failure) -> Self {
///         Self { code: failure.code, message: failure.message }
///     }
/// }
///
/// let request = Request::new("GET", "/api/items/7");
/// let response = respond::<Refusal>(&request, || Err(refuse(status::NOT_FOUND, "no item 7")))?;
/// assert_eq!(response.status, 404);
/// assert_eq!(response.json_body()?, json!({"code": "not-found", "message": "no item 7"}));
/// # Ok::<_, Failure>(())
/// ```
pub trait ErrorForm: Serialize + Sized {
    /// Creates the body of the response to a failed request.
    fn new(request: &Request, status: u16, failure: Failure) -> Self;

    /// Returns the status of the response; by default that of [`Failure::with_status`]. A failure
    /// without a status goes to the host, which responds with status 500.
    fn status(failure: &Failure) -> Option<u16> {
        failure.status()
    }
}

/// The reason of a refused request, for users.
// The schema of each app that names this type has the line above as its description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ErrorDocument {
    error: String,
}

impl ErrorForm for ErrorDocument {
    fn new(_request: &Request, _status: u16, failure: Failure) -> Self {
        Self { error: failure.message }
    }
}

/// Responds to a request with the response that `work` returns. A failure with a status becomes a
/// response in the form `E`. One with status 500 is logged, because clients cannot act on it.
///
/// ```
/// use wattle_plugin::prelude::*;
/// use wattle_plugin::web::{ErrorDocument, respond, refuse, status};
///
/// #[handler(GET, "/api/items/{id}", returns = Value, error = ErrorDocument)]
/// fn show(request: &Request) -> Result<Response, Failure> {
///     respond::<ErrorDocument>(request, || {
///         let id: u64 = request.param("id")?;
///         if id > 9 {
///             return Err(refuse(status::NOT_FOUND, format!("there is no item {id}")));
///         }
///         Response::json(200, &json!({"id": id}))
///     })
/// }
///
/// wattle_plugin::export! { handlers: [show] }
/// # fn main() -> Result<(), Failure> {
/// let response = show(&Request::new("GET", "/api/items/12").with_param("id", "12"))?;
/// assert_eq!(response.status, 404);
/// assert_eq!(response.json_body()?, json!({"error": "there is no item 12"}));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Failures of `work` for which the form has no status.
pub fn respond<E: ErrorForm>(
    request: &Request,
    work: impl FnOnce() -> Result<Response, Failure>,
) -> Result<Response, Failure> {
    work().or_else(|failure| {
        let Some(status) = E::status(&failure) else { return Err(failure) };
        if status == status::INTERNAL_SERVER_ERROR {
            log::error!("a request failed: {failure}");
        }
        Response::json(status, &E::new(request, status, failure))
    })
}

/// Creates the failure for a refused request. Its code is the one that fits the status.
///
/// ```
/// use wattle_plugin::code;
/// use wattle_plugin::web::{refuse, status};
///
/// let failure = refuse(status::CONFLICT, "the order was already sent");
/// assert_eq!((failure.status(), failure.code.as_str()), (Some(409), code::CONFLICT));
/// ```
pub fn refuse(status: u16, message: impl Into<String>) -> Failure {
    let code = match status {
        status::NOT_FOUND => code::NOT_FOUND,
        status::CONFLICT | status::PRECONDITION_FAILED => code::CONFLICT,
        status::GONE => code::EXPIRED,
        status::PAYLOAD_TOO_LARGE => code::LIMIT,
        status::INTERNAL_SERVER_ERROR => code::INTERNAL,
        status::BAD_GATEWAY => code::UNAVAILABLE,
        _ => code::INVALID,
    };
    Failure::new(code, message).with_status(status)
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::{ErrorDocument, ErrorForm, refuse, respond};
    use crate::failure::Failure;
    use crate::testing::FakeHost;
    use crate::web::request::Request;
    use crate::web::response::Response;

    /// A form that has a status for each failure, and the path of the request.
    #[derive(Serialize)]
    struct Envelope {
        path: String,
        code: u16,
    }

    impl ErrorForm for Envelope {
        fn new(request: &Request, status: u16, _failure: Failure) -> Self {
            Self { path: request.path.clone(), code: status }
        }

        fn status(failure: &Failure) -> Option<u16> {
            failure.status().or(Some(500))
        }
    }

    fn response_of<E: ErrorForm>(host: &FakeHost, failure: &Failure) -> Option<(u16, Value)> {
        let request = Request::new("GET", "/p");
        let answered = host.run(|| respond::<E>(&request, || Err(failure.clone())));
        answered.ok().map(|response| (response.status, response.json_body().unwrap()))
    }

    #[test]
    fn failures_are_responses_in_the_form_of_the_app() {
        let host = FakeHost::new();
        let gone = refuse(410, "too late");
        let defect = Failure::internal("down");
        let document = json!({"error": "too late"});
        assert_eq!(response_of::<ErrorDocument>(&host, &gone), Some((410, document)));
        assert_eq!(response_of::<ErrorDocument>(&host, &defect), None, "the host reports it");
        let envelope = |code: u16| Some((code, json!({"path": "/p", "code": code})));
        assert_eq!(response_of::<Envelope>(&host, &gone), envelope(410));
        assert!(host.logged().is_empty());
        assert_eq!(response_of::<Envelope>(&host, &defect), envelope(500));
        assert_eq!(host.logged()[0].message, "a request failed: down");
    }

    #[test]
    fn responses_are_unchanged() {
        let request = Request::new("GET", "/p");
        let response = respond::<ErrorDocument>(&request, || Ok(Response::text(404, "none")));
        assert_eq!(response, Ok(Response::text(404, "none")));
    }
}
