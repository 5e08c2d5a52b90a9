//! The envelope of every response, and the codes of errors.

use wattle_plugin::prelude::{Failure, JsonSchema, Request, Response, Serialize, code, random};
use wattle_plugin::web::status::{
    BAD_GATEWAY, BAD_REQUEST, CONFLICT, INTERNAL_SERVER_ERROR, NOT_FOUND,
};
use wattle_plugin::web::{self, ErrorForm};

use crate::mcp::MCP;
use crate::model::LLM;

/// Status of a failed model call. Clients of the service that this app replaces expect 400; 502
/// would be more precise.
const LLM_UNAVAILABLE: u16 = BAD_REQUEST;

/// Error of a request during a run.
pub(crate) const BUSY: &str = "会话正在运行，请稍后重试";

/// Codes in the envelope.
const INVALID_CODE: u32 = 4000;
const NOT_FOUND_CODE: u32 = 4040;
const CONFLICT_CODE: u32 = 4090;
const LLM_CODE: u32 = 9000;
const MCP_CODE: u32 = 9001;
const INTERNAL_CODE: u32 = 9999;

/// Header with the trace id of the caller.
const TRACE_HEADER: &str = "x-trace-id";

/// Maximum bytes of a caller's trace id. A longer one is replaced by a new id.
const TRACE_BYTES: usize = 128;

/// A response with data.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}Envelope")]
pub(crate) struct Envelope<T> {
    /// Always 0.
    code: u32,
    message: String,
    data: T,
    trace_id: String,
}

/// A response without data, because the request failed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ErrorEnvelope {
    /// Not 0, and not the HTTP status.
    code: u32,
    message: String,
    data: (),
    trace_id: String,
}

impl ErrorForm for ErrorEnvelope {
    fn new(request: &Request, status: u16, failure: Failure) -> Self {
        let code = match (failure.code.as_str(), status) {
            (LLM, _) => LLM_CODE,
            (MCP, _) => MCP_CODE,
            (_, BAD_REQUEST) => INVALID_CODE,
            (_, NOT_FOUND) => NOT_FOUND_CODE,
            (_, CONFLICT) => CONFLICT_CODE,
            _ => INTERNAL_CODE,
        };
        let is_busy = failure.code == code::BUSY;
        let message = if is_busy { BUSY.to_owned() } else { failure.message };
        Self { code, message, data: (), trace_id: trace_id(request) }
    }

    fn status(failure: &Failure) -> Option<u16> {
        Some(failure.status().unwrap_or(match failure.code.as_str() {
            code::BUSY => CONFLICT,
            LLM => LLM_UNAVAILABLE,
            MCP => BAD_GATEWAY,
            _ => INTERNAL_SERVER_ERROR,
        }))
    }
}

/// Responds to a request with the data or the failure that `work` returns.
pub(crate) fn respond<T: Serialize>(
    request: &Request,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<Response, Failure> {
    web::respond::<ErrorEnvelope>(request, || {
        let (message, data) = ("ok".to_owned(), work()?);
        Response::json(200, &Envelope { code: 0, message, data, trace_id: trace_id(request) })
    })
}

/// Returns the caller's trace id, or a new one.
fn trace_id(request: &Request) -> String {
    match request.header(TRACE_HEADER) {
        Some(given) if !given.is_empty() && given.len() <= TRACE_BYTES => given.to_owned(),
        _ => random::uuid(),
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Failure, Request, json};
    use wattle_plugin::testing::FakeHost;

    use super::respond;

    #[test]
    fn only_refused_requests_are_invalid() {
        let request = Request::new("POST", "/x").with_body("{");
        let unread = request.json::<()>().unwrap_err();
        for (failure, status, code, logged) in
            [(unread, 400, 4000, 0), (Failure::invalid("read a row: no column"), 500, 9999, 1)]
        {
            let host = FakeHost::new();
            let response = host.run(|| respond::<()>(&request, || Err(failure))).unwrap();
            let body = response.json_body().unwrap();
            assert_eq!((response.status, &body["code"]), (status, &json!(code)), "{body}");
            assert_eq!(host.logged().len(), logged);
        }
    }
}
