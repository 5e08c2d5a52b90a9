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
use wattle_run::credentials::without_cut_words;
use wattle_run::limit::JSON_DEPTH;

use crate::connect::Refused;
use crate::permit::Unsent;
use crate::speaker::Speaker;

/// HTTP status of a rate limit.
const TOO_MANY_REQUESTS: u16 = 429;

/// HTTP status of an overloaded server, if it has a `retry-after` header.
const SERVICE_UNAVAILABLE: u16 = 503;

/// The error message of `rmcp` for a request whose session the server lost before it responded. By then `rmcp` has
/// opened a new session.
const LOST_WITH_SESSION: &str =
    "streamable HTTP session was re-initialized before the response arrived";

/// Returns the failure of an attempt to open a session.
pub(crate) fn of_connecting(speaker: &Speaker, error: &ClientInitializeError) -> Failure {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            of_connecting(speaker, fallback)
        }
        ClientInitializeError::TransportError { error, .. } => {
            of_transport(speaker, error.error.as_ref())
        }
        ClientInitializeError::JsonRpcError(data) => {
            away(speaker, &format!("it refuses a session: {}", speaker.quote(&data.message)))
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            let message = format!(
                "the MCP server `{}` and this host have no protocol version in common",
                speaker.name()
            );
            Failure::new(code::UNAVAILABLE, message)
        }
        ClientInitializeError::ConnectionClosed(_) => {
            away(speaker, "the connection closed before a session was open")
        }
        other => away(speaker, &speaker.quote(&root(other).to_string())),
    }
}

/// Returns true if a server whose first request failed with this error may accept a handshake: it is reachable, its
/// error is not one of the stateless protocol, and it refuses neither the credentials nor the request rate.
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
    let is_away = find::<reqwest::Error>(error).is_some_and(reqwest::Error::is_connect);
    let is_refused = find::<AuthRequiredError>(error).is_some()
        || find::<HttpStatusError>(error).is_some_and(slows_down);
    !is_away && !is_refused
}

/// Returns the failure of a request in a session. `subject` names what was requested, such as ``the tool `add` ``.
pub(crate) fn of_request(speaker: &Speaker, subject: &str, error: &ServiceError) -> Failure {
    match error {
        ServiceError::McpError(_) if is_lost(error) => {
            away(speaker, "it lost the session before it responded")
        }
        ServiceError::McpError(data) => of_refusal(speaker, subject, data),
        ServiceError::TransportSend(error) => of_transport(speaker, error.error.as_ref()),
        ServiceError::TransportClosed => away(speaker, "the connection closed before the response"),
        ServiceError::UnexpectedResponse => {
            away(speaker, &format!("its response to {subject} is not one of the protocol"))
        }
        other => away(speaker, &speaker.quote(&other.to_string())),
    }
}

/// Returns true if the error ends the session, so that later requests need a new one. An error before this host has
/// sent the message does not end it. Neither does an unknown session: `rmcp` has already opened a new one.
pub(crate) fn ends_session(error: &ServiceError) -> bool {
    match error {
        ServiceError::TransportSend(_) => unsent(error).is_none(),
        ServiceError::TransportClosed => true,
        _ => false,
    }
}

/// Returns true if the server refused a call because it does not know the session. The server has not executed the
/// call.
pub(crate) fn is_of_session(error: &ServiceError) -> bool {
    matches!(unsent(error), Some(Unsent::Forgotten))
}

/// Returns why this host did not send a message.
fn unsent(error: &ServiceError) -> Option<&Unsent> {
    match error {
        ServiceError::TransportSend(error) => find::<Unsent>(error.error.as_ref()),
        _ => None,
    }
}

/// Returns true if the session was lost after the server may have executed the request.
pub(crate) fn is_lost(error: &ServiceError) -> bool {
    match error {
        ServiceError::McpError(data) => {
            data.code == ErrorCode::INTERNAL_ERROR && data.message == LOST_WITH_SESSION
        }
        ServiceError::TransportSend(error) => matches!(
            find::<StreamableHttpError<reqwest::Error>>(error.error.as_ref()),
            Some(StreamableHttpError::SessionRecoveryTimeout)
        ),
        _ => false,
    }
}

/// Returns true if the outcome of a request is unknown because its session is lost. The server may have sent an
/// elicitation while it executed the request.
pub(crate) fn is_cut(error: &ServiceError) -> bool {
    ends_session(error) || is_lost(error) || is_of_session(error)
}

/// Returns the failure of a call in doubt: its session was lost after the server may have executed it.
pub(crate) fn in_doubt(speaker: &Speaker, subject: &str) -> Failure {
    let server = speaker.name();
    let message = format!(
        "the MCP server `{server}` has lost the session of the call, so {subject} may have had its \
         effect"
    );
    Failure::new(code::IN_DOUBT, message)
}

/// Returns true if the server refuses a call because its `requestState` is no longer valid: the key has expired, or the
/// server was restarted. The server has executed nothing.
pub(crate) fn is_of_state(error: &ServiceError) -> bool {
    let ServiceError::McpError(data) = error else { return false };
    let reason = data.data.as_ref().and_then(|data| data.get("reason"));
    data.code == ErrorCode::INVALID_PARAMS
        && reason.is_some_and(|reason| reason == "invalid_request_state")
}

/// Returns the failure for a JSON-RPC error.
fn of_refusal(speaker: &Speaker, subject: &str, data: &ErrorData) -> Failure {
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
            speaker.name(),
            speaker.quote(&data.message)
        ),
    );
    if kind == code::UNAVAILABLE { failure.retryable() } else { failure }
}

/// Returns the failure for an error of the transport.
fn of_transport(speaker: &Speaker, error: &(dyn Error + 'static)) -> Failure {
    if let Some(refused) = find::<Refused>(error) {
        let message = format!("access to the MCP server `{}` is denied: {refused}", speaker.name());
        return Failure::new(code::DENIED, message);
    }
    if let Some(Unsent::Fenced(fenced)) = find::<Unsent>(error) {
        return fenced.clone().into();
    }
    let server = speaker.name();
    if let Some(refused) = find::<AuthRequiredError>(error) {
        return no_entry(speaker, &refused.www_authenticate_header);
    }
    if let Some(status) = find::<HttpStatusError>(error) {
        let failure = away(speaker, &format!("it responds with status {}", status.status));
        let slow_down = status.status == TOO_MANY_REQUESTS;
        let code = if slow_down { code::RATE_LIMITED } else { code::UNAVAILABLE };
        return Failure { code: code.to_owned(), ..failure };
    }
    match find::<StreamableHttpError<reqwest::Error>>(error) {
        Some(StreamableHttpError::ResponseBodyTooLarge { max_size }) => {
            too_large(speaker.name(), *max_size)
        }
        Some(StreamableHttpError::UnexpectedServerResponse(text)) => {
            away(speaker, &speaker.quote(text))
        }
        Some(StreamableHttpError::Client(error)) if error.is_connect() => {
            let reason = speaker.quote(&root(error).to_string());
            // Path and query can contain secrets.
            let origin = error.url().map(|url| url.origin().ascii_serialization());
            let address = origin.unwrap_or_default();
            // How the TLS library reports the response of a server without TLS.
            let hint = if reason.contains("InvalidContentType") {
                "the server does not speak TLS, so write `http://` in `url`"
            } else {
                "check `url`"
            };
            away(
                speaker,
                &format!("no connection to {address}: {reason}; {hint} under `[mcp.{server}]`"),
            )
        }
        _ => away(speaker, &speaker.quote(&root(error).to_string())),
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

/// Returns the failure for a result that is nested too deep for the journal and for models.
pub(crate) fn too_deep(server: &str) -> Failure {
    let message = format!(
        "the response of the MCP server `{server}` is nested deeper than {JSON_DEPTH} levels"
    );
    Failure::new(code::INVALID, message)
}

/// Returns the failure for refused credentials. Servers often repeat parts of the credentials in their explanation.
fn no_entry(speaker: &Speaker, words: &str) -> Failure {
    let (server, words) = (speaker.name(), without_cut_words(&speaker.quote(words)));
    let colon = if words.is_empty() { "" } else { ": " };
    Failure::new(
        code::UNAVAILABLE,
        format!(
            "the MCP server `{server}` refuses the credentials{colon}{words}; check `headers` under \
             `[mcp.{server}]`"
        ),
    )
}

fn away(speaker: &Speaker, reason: &str) -> Failure {
    let message = format!("the MCP server `{}` is not available: {reason}", speaker.name());
    Failure::new(code::UNAVAILABLE, message).retryable()
}

/// Returns the first error of a type in a chain.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    chain(error).find_map(|error| error.downcast_ref::<T>())
}

/// Returns the innermost error. Outer ones repeat URLs, which can contain secrets.
fn root<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
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
            let failure = of_request(&"graph".into(), "tool `a`", &ServiceError::McpError(data));
            assert_eq!((failure.code.as_str(), failure.retryable), (expected, retryable));
            assert_eq!(failure.message, "the MCP server `graph` refuses tool `a`: no");
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
    fn request_lost_with_its_session_is_retryable() {
        let data = ErrorData::internal_error(LOST_WITH_SESSION, None);
        let lost = ServiceError::McpError(data);
        assert!(is_cut(&lost) && !ends_session(&lost));
        let failure = of_request(&"graph".into(), "the list of its tools", &lost);
        let message = "the MCP server `graph` is not available: it lost the session before it \
                       responded";
        assert_eq!((failure.message.as_str(), failure.retryable), (message, true));
    }
}
