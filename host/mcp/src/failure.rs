//! Converts errors of `rmcp` and of servers to failures.

use std::error::Error;
use std::io;

use rmcp::ServiceError;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::ClientInitializeError;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, StreamableHttpError,
};
use wattle_graph::failure::{Failure, code};
use wattle_run::credentials::mask_abbreviated_keys;
use wattle_run::json::bounded::JsonLimit;
use wattle_run::limit::JSON_DEPTH;
use wattle_run::service_memory::ServicesFull;

use crate::connect::BlockedAddress;
use crate::permit::UnsentReason;
use crate::sanitizer::Sanitizer;
use crate::unreadable::MessageLimit;

/// HTTP status of a rate limit.
const TOO_MANY_REQUESTS: u16 = 429;

/// HTTP status of an overloaded server, if it has a `retry-after` header.
const SERVICE_UNAVAILABLE: u16 = 503;

/// JSON-RPC code of the error that replaces a response that exceeds a limit of this host. The
/// protocol reserves codes up to -32000.
const RESPONSE_EXCEEDS_LIMIT: ErrorCode = ErrorCode(-31_999);

/// The error message of `rmcp` for a request whose session the server lost before it responded.
/// When this error occurs, `rmcp` has already opened a new session.
const SESSION_REINITIALIZED: &str =
    "streamable HTTP session was re-initialized before the response arrived";

/// Returns the failure of an attempt to open a session.
pub(crate) fn connect_failure(sanitizer: &Sanitizer, error: &ClientInitializeError) -> Failure {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            connect_failure(sanitizer, fallback)
        }
        ClientInitializeError::TransportError { error, .. } => {
            transport_failure(sanitizer, error.error.as_ref())
        }
        ClientInitializeError::JsonRpcError(data) => unavailable(
            sanitizer,
            &format!("it refuses a session: {}", sanitizer.quote(&data.message)),
        ),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            let message = format!(
                "the MCP server `{}` and this host have no protocol version in common",
                sanitizer.server_name()
            );
            Failure::new(code::UNAVAILABLE, message)
        }
        ClientInitializeError::ConnectionClosed(_) => {
            unavailable(sanitizer, "the connection closed before a session was open")
        }
        other => unavailable(sanitizer, &sanitizer.quote(&root_cause(other).to_string())),
    }
}

/// Returns true if a server whose first request failed with this error may accept a handshake: the
/// server is reachable, its error is not defined by the stateless protocol (2026-07-28), and it
/// refuses neither the credentials nor the request rate.
pub(crate) fn may_want_handshake(error: &ClientInitializeError) -> bool {
    let error = match error {
        ClientInitializeError::LegacyFallbackFailed { .. }
        | ClientInitializeError::JsonRpcError(_) => return false,
        ClientInitializeError::TransportError { error, .. } => &*error.error,
        _ => return true,
    };
    let slows_down = |it: &HttpStatusError| match it.status {
        TOO_MANY_REQUESTS => true,
        SERVICE_UNAVAILABLE => it.retry_after.is_some(),
        _ => false,
    };
    let is_away = find_cause::<reqwest::Error>(error).is_some_and(reqwest::Error::is_connect);
    let is_refused = find_cause::<AuthRequiredError>(error).is_some()
        || find_cause::<HttpStatusError>(error).is_some_and(slows_down);
    !is_away && !is_refused
}

/// Returns the failure of a request in a session. `subject` is the phrase for the requested object,
/// such as ``the tool `add` ``.
pub(crate) fn request_failure(
    sanitizer: &Sanitizer,
    subject: &str,
    error: &ServiceError,
) -> Failure {
    match error {
        ServiceError::McpError(_) if is_session_lost(error) => {
            unavailable(sanitizer, "it lost the session before it responded")
        }
        ServiceError::McpError(data) => rpc_failure(sanitizer, subject, data),
        ServiceError::TransportSend(error) => transport_failure(sanitizer, error.error.as_ref()),
        ServiceError::TransportClosed => {
            unavailable(sanitizer, "the connection closed before the response")
        }
        ServiceError::UnexpectedResponse => unavailable(
            sanitizer,
            &format!("its response to {subject} is not defined by the protocol"),
        ),
        other => unavailable(sanitizer, &sanitizer.quote(&other.to_string())),
    }
}

/// Returns true if the error ends the session, so that later requests need a new session. An error
/// that occurs before this host has sent the message does not end the session. If the server does
/// not know the session, the result is false, because `rmcp` has already opened a new session.
pub(crate) fn ends_session(error: &ServiceError) -> bool {
    match error {
        ServiceError::TransportSend(_) => unsent_reason(error).is_none(),
        ServiceError::TransportClosed => true,
        _ => false,
    }
}

/// Returns true if the server refused a call because it does not know the session. The server has
/// not executed the call.
pub(crate) fn is_session_unknown(error: &ServiceError) -> bool {
    matches!(unsent_reason(error), Some(UnsentReason::UnknownSession))
}

/// Returns why this host did not send a message.
fn unsent_reason(error: &ServiceError) -> Option<&UnsentReason> {
    match error {
        ServiceError::TransportSend(error) => find_cause::<UnsentReason>(error.error.as_ref()),
        _ => None,
    }
}

/// Returns true if the session was lost after the server may have executed the request.
pub(crate) fn is_session_lost(error: &ServiceError) -> bool {
    match error {
        ServiceError::McpError(data) => {
            data.code == ErrorCode::INTERNAL_ERROR && data.message == SESSION_REINITIALIZED
        }
        ServiceError::TransportSend(error) => matches!(
            find_cause::<StreamableHttpError<reqwest::Error>>(error.error.as_ref()),
            Some(StreamableHttpError::SessionRecoveryTimeout)
        ),
        _ => false,
    }
}

/// Returns true if the session of a request is unusable: the session has ended or was lost, or the
/// server does not know it. If the session has ended or was lost, the server may have executed the
/// request, and may have sent an elicitation for it.
pub(crate) fn is_session_gone(error: &ServiceError) -> bool {
    ends_session(error) || is_session_lost(error) || is_session_unknown(error)
}

/// Returns the failure of a call in doubt, whose session was lost after the server may have
/// executed the call.
pub(crate) fn in_doubt(sanitizer: &Sanitizer, subject: &str) -> Failure {
    let server = sanitizer.server_name();
    let message = format!(
        "the MCP server `{server}` has lost the session of the call, so {subject} may have had its \
         effect"
    );
    Failure::new(code::IN_DOUBT, message)
}

/// Returns true if the server refuses a call because its `requestState` is no longer valid: the key
/// has expired, or the server was restarted. The server has not executed the call.
pub(crate) fn is_state_stale(error: &ServiceError) -> bool {
    let ServiceError::McpError(data) = error else { return false };
    let reason = data.data.as_ref().and_then(|data| data.get("reason"));
    data.code == ErrorCode::INVALID_PARAMS
        && reason.is_some_and(|reason| reason == "invalid_request_state")
}

/// Returns the error that replaces a response that exceeds a limit of this host. The server has
/// executed the request, so the error says why there is no result.
pub(crate) fn exceeding_response(exceeded: JsonLimit) -> ErrorData {
    let details = exceeded.to_failure("the response", "request less").details;
    ErrorData::new(RESPONSE_EXCEEDS_LIMIT, format!("{exceeded}; request less"), details)
}

/// Returns the error that replaces a response that does not get memory. The server has executed the
/// request.
pub(crate) fn response_without_memory(full: ServicesFull) -> ErrorData {
    ErrorData::new(RESPONSE_EXCEEDS_LIMIT, full.to_string(), Some(full.details()))
}

/// Returns the failure of a request whose response exceeds a limit and has ended the session. The
/// server has executed the request.
pub(crate) fn unreadable_response(
    sanitizer: &Sanitizer,
    subject: &str,
    limit: MessageLimit,
) -> Failure {
    match limit {
        MessageLimit::Bytes(allowed) => too_large(sanitizer.server_name(), allowed),
        MessageLimit::Json(exceeded) => {
            rpc_failure(sanitizer, subject, &exceeding_response(exceeded))
        }
        MessageLimit::Memory(full) => {
            rpc_failure(sanitizer, subject, &response_without_memory(full))
        }
    }
}

/// Returns the failure for a JSON-RPC error.
fn rpc_failure(sanitizer: &Sanitizer, subject: &str, data: &ErrorData) -> Failure {
    if data.code == RESPONSE_EXCEEDS_LIMIT {
        let (server, words) = (sanitizer.server_name(), sanitizer.quote(&data.message));
        let message = format!(
            "the response of the MCP server `{server}` to {subject} cannot be read: {words}"
        );
        return match &data.data {
            Some(details) => Failure::new(code::LIMIT, message).with_details(details.clone()),
            None => Failure::new(code::INVALID, message),
        };
    }
    let kind = match data.code {
        ErrorCode::INVALID_PARAMS | ErrorCode::INVALID_REQUEST | ErrorCode::PARSE_ERROR => {
            code::INVALID
        }
        ErrorCode::METHOD_NOT_FOUND | ErrorCode::RESOURCE_NOT_FOUND => code::NOT_FOUND,
        _ => code::UNAVAILABLE,
    };
    let failure = Failure::new(
        kind,
        format!(
            "the MCP server `{}` refuses {subject}: {}",
            sanitizer.server_name(),
            sanitizer.quote(&data.message)
        ),
    );
    if kind == code::UNAVAILABLE { failure.retryable() } else { failure }
}

/// Returns the failure for an error of the transport.
fn transport_failure(sanitizer: &Sanitizer, error: &(dyn Error + 'static)) -> Failure {
    if let Some(refused) = find_cause::<BlockedAddress>(error) {
        let message =
            format!("access to the MCP server `{}` is denied: {refused}", sanitizer.server_name());
        return Failure::new(code::DENIED, message);
    }
    if let Some(UnsentReason::Fenced(fenced)) = find_cause::<UnsentReason>(error) {
        return fenced.clone().into();
    }
    let server = sanitizer.server_name();
    if let Some(refused) = find_cause::<AuthRequiredError>(error) {
        return unauthorized(sanitizer, &refused.www_authenticate_header);
    }
    if let Some(status) = find_cause::<HttpStatusError>(error) {
        let failure = unavailable(sanitizer, &format!("it responds with status {}", status.status));
        let slow_down = status.status == TOO_MANY_REQUESTS;
        let code = if slow_down { code::RATE_LIMITED } else { code::UNAVAILABLE };
        return Failure { code: code.to_owned(), ..failure };
    }
    match find_cause::<StreamableHttpError<reqwest::Error>>(error) {
        Some(StreamableHttpError::ResponseBodyTooLarge { max_size }) => {
            too_large(sanitizer.server_name(), *max_size)
        }
        Some(StreamableHttpError::UnexpectedServerResponse(text)) => {
            unavailable(sanitizer, &sanitizer.quote(text))
        }
        Some(StreamableHttpError::Client(error)) if error.is_connect() => {
            let reason = sanitizer.quote(&root_cause(error).to_string());
            // Path and query can contain secrets.
            let origin = error.url().map(|url| url.origin().ascii_serialization());
            let address = origin.unwrap_or_default();
            // The TLS library reports this error for the response of a server without TLS.
            let hint = if reason.contains("InvalidContentType") {
                "the server does not speak TLS, so write `http://` in `url`"
            } else {
                "check `url`"
            };
            unavailable(
                sanitizer,
                &format!("no connection to {address}: {reason}; {hint} under `[mcp.{server}]`"),
            )
        }
        _ => unavailable(sanitizer, &sanitizer.quote(&root_cause(error).to_string())),
    }
}

/// Returns the failure for a result that exceeds a limit.
pub(crate) fn too_large(server: &str, allowed: usize) -> Failure {
    Failure::new(
        code::LIMIT,
        format!(
            "the response of the MCP server `{server}` is larger than {allowed} bytes, the limit \
             of one message; request less"
        ),
    )
    .with_details(serde_json::json!({ "limit": "mcp_output", "allowed": allowed }))
}

/// Returns the failure for a result that is nested too deeply for the journal and for models.
pub(crate) fn too_deep(server: &str) -> Failure {
    let message = format!(
        "the response of the MCP server `{server}` is nested deeper than {JSON_DEPTH} levels"
    );
    Failure::new(code::INVALID, message)
}

/// Returns the failure for refused credentials. Servers often repeat parts of the credentials in
/// their explanation.
fn unauthorized(sanitizer: &Sanitizer, words: &str) -> Failure {
    let (server, words) = (sanitizer.server_name(), mask_abbreviated_keys(&sanitizer.quote(words)));
    let colon = if words.is_empty() { "" } else { ": " };
    Failure::new(
        code::UNAVAILABLE,
        format!(
            "the MCP server `{server}` refuses the credentials{colon}{words}; check `headers` under \
             `[mcp.{server}]`"
        ),
    )
}

fn unavailable(sanitizer: &Sanitizer, reason: &str) -> Failure {
    let message =
        format!("the MCP server `{}` is not available: {reason}", sanitizer.server_name());
    Failure::new(code::UNAVAILABLE, message).retryable()
}

/// Returns the first error of type `T` in the chain of causes.
fn find_cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    chain(error).find_map(|error| error.downcast_ref::<T>())
}

/// Returns the innermost error. The messages of outer errors contain URLs, which can contain
/// secrets.
fn root_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    chain(error).last().unwrap_or(error)
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'a (dyn Error + 'static) = *error;
        // These types do not return their cause from `source`.
        if let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            return Some(inner);
        }
        match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::Client(inner)) => Some(inner),
            Some(StreamableHttpError::HttpStatus(inner)) => Some(inner),
            _ => error.source(),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use rmcp::transport::DynamicTransportError;

    use super::*;

    #[test]
    fn rpc_errors_map_to_failure_codes() {
        let cases = [
            (ErrorCode::INVALID_PARAMS, code::INVALID, false),
            (ErrorCode::METHOD_NOT_FOUND, code::NOT_FOUND, false),
            (ErrorCode::INTERNAL_ERROR, code::UNAVAILABLE, true),
        ];
        for (error, expected, retryable) in cases {
            let data = ErrorData::new(error, "no", None);
            let failure =
                request_failure(&"graph".into(), "tool `a`", &ServiceError::McpError(data));
            assert_eq!((failure.code.as_str(), failure.retryable), (expected, retryable));
            assert_eq!(failure.message, "the MCP server `graph` refuses tool `a`: no");
        }
    }

    #[test]
    fn response_above_a_limit_names_the_limit() {
        for (exceeded, code, limit) in [
            (JsonLimit::Values(72), code::LIMIT, Some("json_values_bytes")),
            (JsonLimit::Depth, code::INVALID, None),
        ] {
            let error = ServiceError::McpError(exceeding_response(exceeded));
            for failure in [
                request_failure(&"graph".into(), "tool `a`", &error),
                unreadable_response(&"graph".into(), "tool `a`", exceeded.into()),
            ] {
                let details = failure.details.as_ref().and_then(|it| it["limit"].as_str());
                assert_eq!((failure.code.as_str(), details), (code, limit), "{failure}");
                assert!(!failure.retryable, "{failure}");
                assert!(failure.message.contains("to tool `a` cannot be read"), "{failure}");
            }
        }
    }

    #[test]
    fn response_without_memory_names_the_limit_and_is_not_retryable() {
        let full = ServicesFull { allowed: 7, can_fit: true };
        let error = ServiceError::McpError(response_without_memory(full));
        for failure in [
            request_failure(&"graph".into(), "tool `a`", &error),
            unreadable_response(&"graph".into(), "tool `a`", full.into()),
        ] {
            assert_eq!((&*failure.code, failure.retryable), (code::LIMIT, false), "{failure}");
            assert_eq!(failure.details, Some(full.details()));
            assert!(failure.message.contains("`limits.services_memory`"), "{failure}");
        }
    }

    #[test]
    fn overloaded_server_gets_no_handshake() {
        let wants = |status: u16, retry_after: Option<&str>| {
            let error = HttpStatusError::new(status, retry_after.map(str::to_owned));
            let error = StreamableHttpError::<reqwest::Error>::HttpStatus(error);
            let error =
                DynamicTransportError::from_parts("http", TypeId::of::<()>(), Box::new(error));
            let error = ClientInitializeError::TransportError { error, context: "asking".into() };
            may_want_handshake(&error)
        };
        assert!(wants(500, None) && wants(503, None));
        assert!(!wants(429, None) && !wants(503, Some("1")));
    }

    #[test]
    fn failure_of_a_request_whose_session_was_lost_is_retryable() {
        let data = ErrorData::internal_error(SESSION_REINITIALIZED, None);
        let lost = ServiceError::McpError(data);
        assert!(is_session_gone(&lost) && !ends_session(&lost));
        let failure = request_failure(&"graph".into(), "the list of its tools", &lost);
        let message = "the MCP server `graph` is not available: it lost the session before it \
                       responded";
        assert_eq!((failure.message.as_str(), failure.retryable), (message, true));
    }
}
