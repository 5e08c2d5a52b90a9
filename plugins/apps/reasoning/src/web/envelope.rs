//! The envelope around every answer, and the codes of those that went wrong.

use wattle_plugin::prelude::{Failure, Request, Response, Value, code, json, log, random};

const OK: u16 = 200;
const BAD_REQUEST: u16 = 400;
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;
const INTERNAL: u16 = 500;
const BAD_GATEWAY: u16 = 502;

/// The status when no model answers. A client of the service whose place this one takes expects
/// 400; 502 would say more.
const LLM_UNAVAILABLE: u16 = BAD_REQUEST;

/// Codes in the envelope.
const INVALID_CODE: u32 = 4000;
const NOT_FOUND_CODE: u32 = 4040;
const CONFLICT_CODE: u32 = 4090;
const LLM_CODE: u32 = 9000;
const MCP_CODE: u32 = 9001;
const INTERNAL_CODE: u32 = 9999;

/// Header in which a caller names its own trace.
const TRACE_HEADER: &str = "x-trace-id";

/// Bytes of a caller's trace id that are repeated to it.
const TRACE_BYTES: usize = 128;

/// Why a request has no good answer.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: u16,
    code: u32,
    message: String,
}

impl Refusal {
    /// The request is wrong.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { status: BAD_REQUEST, code: INVALID_CODE, message: message.into() }
    }

    /// There is no such thing.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self { status: NOT_FOUND, code: NOT_FOUND_CODE, message: message.into() }
    }

    /// The request does not fit the state of the session.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self { status: CONFLICT, code: CONFLICT_CODE, message: message.into() }
    }

    /// No model answered.
    pub(crate) fn llm(message: impl Into<String>) -> Self {
        Self { status: LLM_UNAVAILABLE, code: LLM_CODE, message: message.into() }
    }

    /// A service did not answer.
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

/// Answers a request with what was worked out.
pub(crate) fn answer(
    request: &Request,
    work: impl FnOnce() -> Result<Value, Refusal>,
) -> Result<Response, Failure> {
    let trace_id = match request.header(TRACE_HEADER) {
        Some(given) if !given.is_empty() && given.len() <= TRACE_BYTES => given.to_owned(),
        _ => random::uuid(),
    };
    match work() {
        Ok(data) => Response::json(
            OK,
            &json!({ "code": 0, "message": "ok", "data": data, "trace_id": trace_id }),
        ),
        Err(Refusal { status, code, message }) => Response::json(
            status,
            &json!({ "code": code, "message": message, "data": null, "trace_id": trace_id }),
        ),
    }
}
