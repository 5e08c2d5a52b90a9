//! What went wrong with a server, in our words.

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

/// HTTP's word for `slow down`.
const TOO_MANY_REQUESTS: u16 = 429;

/// That of a server that has too much to do, if it says when to come again.
const SERVICE_UNAVAILABLE: u16 = 503;

/// The error message of `rmcp` for a request whose session the server forgot before it answered. `rmcp` has opened a
/// new session since.
const LOST_WITH_SESSION: &str =
    "streamable HTTP session was re-initialized before the response arrived";

/// A session could not be opened.
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
                "the MCP server `{}` speaks no version of the protocol that this host knows",
                speaker.name()
            );
            Failure::new(code::UNAVAILABLE, message)
        }
        ClientInitializeError::ConnectionClosed(_) => {
            away(speaker, "the connection ended before a session was open")
        }
        other => away(speaker, &speaker.quote(&root(other).to_string())),
    }
}

/// Whether a server that failed so at the first question of the newer protocol may take a handshake: it is there, did not
/// refuse in the words of that protocol, and refuses neither credentials nor the rate of requests.
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

/// A request in a session failed. `subject` is what was asked, such as ``tool `add` ``.
pub(crate) fn of_request(speaker: &Speaker, subject: &str, error: &ServiceError) -> Failure {
    match error {
        ServiceError::McpError(_) if is_lost(error) => {
            away(speaker, "it forgot the session before it answered")
        }
        ServiceError::McpError(data) => of_refusal(speaker, subject, data),
        ServiceError::TransportSend(error) => of_transport(speaker, error.error.as_ref()),
        ServiceError::TransportClosed => away(speaker, "the connection ended before the answer"),
        ServiceError::UnexpectedResponse => {
            away(speaker, &format!("its answer to {subject} is none that the protocol knows"))
        }
        other => away(speaker, &speaker.quote(&other.to_string())),
    }
}

/// Whether no later request can use the session. A message that this host did not send does not end the session. If the
/// server did not know the session, `rmcp` has already opened a new one.
pub(crate) fn ends_session(error: &ServiceError) -> bool {
    match error {
        ServiceError::TransportSend(_) => unsent(error).is_none(),
        ServiceError::TransportClosed => true,
        _ => false,
    }
}

/// Whether the server refused a call because it does not know the session. It has not begun the call.
pub(crate) fn is_of_session(error: &ServiceError) -> bool {
    matches!(unsent(error), Some(Unsent::Forgotten))
}

/// Why a message was not sent, if this host says so itself.
fn unsent(error: &ServiceError) -> Option<&Unsent> {
    match error {
        ServiceError::TransportSend(error) => find::<Unsent>(error.error.as_ref()),
        _ => None,
    }
}

/// Whether the session of a request was lost while the server may have carried it out.
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

/// Whether nobody knows how a request ended in which the server may have asked, since its session is gone.
pub(crate) fn is_cut(error: &ServiceError) -> bool {
    ends_session(error) || is_lost(error) || is_of_session(error)
}

/// A call whose session was lost while the server may have carried it out.
pub(crate) fn in_doubt(speaker: &Speaker, subject: &str) -> Failure {
    let server = speaker.name();
    let message = format!(
        "the MCP server `{server}` has lost the session of the call, so {subject} may have had its \
         effect"
    );
    Failure::new(code::IN_DOUBT, message)
}

/// Whether a server refuses a call since it does not know the state any more that it wanted back: it keeps the key to
/// that for a while only, or was started again. It has done nothing then.
pub(crate) fn is_of_state(error: &ServiceError) -> bool {
    let ServiceError::McpError(data) = error else { return false };
    let reason = data.data.as_ref().and_then(|data| data.get("reason"));
    data.code == ErrorCode::INVALID_PARAMS
        && reason.is_some_and(|reason| reason == "invalid_request_state")
}

/// The server understood and refused.
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

/// The request or its answer did not get through.
fn of_transport(speaker: &Speaker, error: &(dyn Error + 'static)) -> Failure {
    if let Some(refused) = find::<Refused>(error) {
        let message = format!("the MCP server `{}` may not be reached: {refused}", speaker.name());
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
        let failure = away(speaker, &format!("it answers with status {}", status.status));
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
            // Path and query may hold secrets.
            let origin = error.url().map(|url| url.origin().ascii_serialization());
            let address = origin.unwrap_or_default();
            // What a server without TLS answers, as the library for TLS reads it.
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

/// A result that is larger than allowed.
pub(crate) fn too_large(server: &str, allowed: usize) -> Failure {
    Failure::new(
        code::LIMIT,
        format!(
            "the answer of the MCP server `{server}` is larger than {allowed} bytes, the most that one \
             message may have; ask it for less"
        ),
    )
    .with_details(serde_json::json!({ "limit": "mcp_output", "allowed": allowed }))
}

/// A result that is nested deeper than a journal and a model can take.
pub(crate) fn too_deep(server: &str) -> Failure {
    let message = format!(
        "the answer of the MCP server `{server}` is nested deeper than {JSON_DEPTH} levels"
    );
    Failure::new(code::INVALID, message)
}

/// Words about refused credentials like to repeat pieces of them.
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

/// The first error of a kind in a chain.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    chain(error).find_map(|error| error.downcast_ref::<T>())
}

/// The innermost error: the outer ones repeat addresses, which may hold secrets.
fn root<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    chain(error).last().unwrap_or(error)
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'a (dyn Error + 'static) = *error;
        // These hide their source.
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
    fn refusals_have_codes() {
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
    fn a_server_that_has_too_much_to_do_is_not_greeted_again() {
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
    fn a_request_that_is_lost_with_its_session_is_not_refused() {
        let data = ErrorData::internal_error(LOST_WITH_SESSION, None);
        let lost = ServiceError::McpError(data);
        assert!(is_cut(&lost) && !ends_session(&lost));
        let failure = of_request(&"graph".into(), "the list of its tools", &lost);
        let message = "the MCP server `graph` is not available: it forgot the session before it \
                       answered";
        assert_eq!((failure.message.as_str(), failure.retryable), (message, true));
    }
}
