//! The envelope of every response, and the codes of errors.

use wattle_plugin::prelude::{
    Failure, JsonSchema, Request, Response, Serialize, code, log, random,
};

const OK: u16 = 200;
const BAD_REQUEST: u16 = 400;
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;
const INTERNAL: u16 = 500;
const BAD_GATEWAY: u16 = 502;

/// Status of a failed model call. Clients of the service that this app replaces expect 400; 502
/// would be more precise.
const LLM_UNAVAILABLE: u16 = BAD_REQUEST;

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

/// Error of a request, which becomes the response.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: u16,
    code: u32,
    message: String,
}

impl Refusal {
    /// Returns the refusal of an invalid request.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { status: BAD_REQUEST, code: INVALID_CODE, message: message.into() }
    }

    /// Returns the refusal of a request for something that does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self { status: NOT_FOUND, code: NOT_FOUND_CODE, message: message.into() }
    }

    /// Returns the refusal of a request that does not match the status of the session.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self { status: CONFLICT, code: CONFLICT_CODE, message: message.into() }
    }

    /// Returns the refusal for a failed model call.
    pub(crate) fn llm(message: impl Into<String>) -> Self {
        Self { status: LLM_UNAVAILABLE, code: LLM_CODE, message: message.into() }
    }

    /// Returns the refusal for a failed call of a service.
    pub(crate) fn mcp(message: impl Into<String>) -> Self {
        Self { status: BAD_GATEWAY, code: MCP_CODE, message: message.into() }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        match failure.code.as_str() {
            code::BUSY => Self::conflict("会话正在运行，请稍后重试"),
            code::INVALID => Self::invalid(failure.message),
            _ => {
                log::error!("a request failed: {failure}");
                Self { status: INTERNAL, code: INTERNAL_CODE, message: failure.message }
            }
        }
    }
}

/// Responds to a request with the data or the refusal that `work` returns.
pub(crate) fn respond<T: Serialize>(
    request: &Request,
    work: impl FnOnce() -> Result<T, Refusal>,
) -> Result<Response, Failure> {
    let trace_id = match request.header(TRACE_HEADER) {
        Some(given) if !given.is_empty() && given.len() <= TRACE_BYTES => given.to_owned(),
        _ => random::uuid(),
    };
    match work() {
        Ok(data) => {
            Response::json(OK, &Envelope { code: 0, message: "ok".to_owned(), data, trace_id })
        }
        Err(Refusal { status, code, message }) => {
            Response::json(status, &ErrorEnvelope { code, message, data: (), trace_id })
        }
    }
}
