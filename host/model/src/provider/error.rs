//! Converts errors of providers to failures with a retry policy.

mod message;
mod status;

use std::error::Error as _;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_run::credentials::mask_abbreviated_keys;
use wattle_run::json::lenient;
use wattle_run::service_memory::ServicesFull;

use crate::provider::attempt::AttemptSpec;
use crate::provider::compression;
pub(super) use crate::provider::error::message::error_message;
use crate::provider::error::message::{first_error, full_message};
pub(super) use crate::provider::error::status::status_of;
use crate::provider::error::status::{KIND_POINTERS, NO_CREDIT_KINDS};
use crate::provider::service::Service;
use crate::retry::{Retry, retry_after, should_retry};
use crate::sink::CallSink;

/// Maximum characters of a provider's message in a failure: enough for a sentence or two.
const MAX_EXCERPT_CHARS: usize = 500;

/// Code of a failure whose output the provider withheld.
pub(crate) const WITHHELD: &str = "withheld";

/// The error of one try.
#[derive(Debug)]
pub(crate) struct ProviderError {
    pub(crate) failure: Failure,
    pub(crate) retry: Retry,
}

/// Builds the error for a response that did not arrive within the timeout.
pub(super) fn timed_out(service: &Service, spec: AttemptSpec<'_>) -> ProviderError {
    let text = format!(
        "{} did not respond within {:?}; raise `timeout` of the route if that is too short",
        subject(service, spec),
        spec.timeout
    );
    ProviderError { failure: Failure::new(code::TIMEOUT, text).retryable(), retry: Retry::BackOff }
}

/// Builds the error for a response that is malformed or exceeds a limit.
pub(super) fn malformed_response(
    service: &Service,
    spec: AttemptSpec<'_>,
    reason: &str,
) -> ProviderError {
    unavailable(service, spec, &format!("sent an unusable response: {reason}"))
}

/// Builds the error for a compressed response. The error is permanent, because a service that
/// compresses one response unasked compresses them all.
pub(super) fn compressed_response(
    service: &Service,
    spec: AttemptSpec<'_>,
    coding: &str,
) -> ProviderError {
    let text = format!(
        "{} sent a response with `content-encoding: {coding}`, which the host neither requests \
         nor decompresses; turn off compression at the service, or at the gateway in front of it",
        subject(service, spec)
    );
    ProviderError { failure: Failure::new(code::UNAVAILABLE, text), retry: Retry::Never }
}

/// Builds the error for a response that does not get memory. The response may fit after the
/// backoff, unless it would not fit alone.
pub(super) fn without_memory(
    service: &Service,
    spec: AttemptSpec<'_>,
    full: ServicesFull,
) -> ProviderError {
    let failure = full.to_failure(&format!("the response of {}", subject(service, spec)));
    let retry = if full.can_fit { Retry::BackOff } else { Retry::Never };
    ProviderError { failure, retry }
}

/// Builds the error for images that the provider withheld. The error is permanent, because a retry
/// would have the same outcome.
pub(super) fn withheld(service: &Service, spec: AttemptSpec<'_>, reason: &str) -> ProviderError {
    let text = format!(
        "{} withheld the image: {}; describe it in other words",
        subject(service, spec),
        excerpt(service, reason)
    );
    ProviderError { failure: Failure::new(WITHHELD, text), retry: Retry::Never }
}

/// Builds the error for a stream in which no bytes arrived within the timeout.
pub(super) fn stream_stalled(
    service: &Service,
    spec: AttemptSpec<'_>,
    begun: bool,
) -> ProviderError {
    if !begun {
        return timed_out(service, spec);
    }
    let text = format!(
        "{} sent nothing for {:?} in the middle of its response; raise `timeout` of the route if \
         that is too short",
        subject(service, spec),
        spec.timeout
    );
    ProviderError { failure: Failure::new(code::TIMEOUT, text).retryable(), retry: Retry::BackOff }
}

/// Builds the error for a stream that ended before the completion did. `complained` is the message
/// that the service sent before the stream ended.
pub(super) fn stream_closed(
    service: &Service,
    spec: AttemptSpec<'_>,
    sink: &CallSink<'_>,
    error: Option<&reqwest::Error>,
    complained: &str,
) -> ProviderError {
    let reason = error.map_or_else(|| "the stream ended too early".to_owned(), root_cause);
    let place = if sink.has_emitted() { "in the middle of" } else { "before" };
    unavailable(service, spec, &format!("was cut off {place} its response: {reason}{complained}"))
}

/// Builds the error for a connection that was lost in the middle of a response.
pub(super) fn connection_lost(
    service: &Service,
    spec: AttemptSpec<'_>,
    error: &reqwest::Error,
) -> ProviderError {
    let what = format!("was cut off in the middle of its response: {}", root_cause(error));
    unavailable(service, spec, &what)
}

/// Builds the error for a service that stopped without a completion, `reason` is the finish reason
/// of the service.
pub(super) fn stopped_by_service(
    service: &Service,
    spec: AttemptSpec<'_>,
    reason: &str,
) -> ProviderError {
    unavailable(service, spec, &format!("stopped with reason `{reason}`"))
}

/// Builds the error that the service reported within a response with a success status.
pub(super) fn reported_in_response(
    service: &Service,
    spec: AttemptSpec<'_>,
    body: &Value,
) -> ProviderError {
    let status = status_of(body).and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let (text, body) = (body.to_string(), lenient::join_surrogates_in(body.clone()));
    from_error_body(service, spec, status, "in its response", &HeaderMap::new(), body, &text)
}

/// Builds the error for a request that could not be sent.
pub(super) fn send_failed(
    service: &Service,
    spec: AttemptSpec<'_>,
    error: &reqwest::Error,
) -> ProviderError {
    if error.is_builder() {
        let what = format!("cannot be called, the HTTP request is invalid: {}", root_cause(error));
        return invalid_request(service, spec, &what);
    }
    // A service that accepts no connection in time is down, or its name was not looked up in time.
    if error.is_timeout() && !error.is_connect() {
        let text = format!("{} did not respond in time", subject(service, spec));
        return ProviderError {
            failure: Failure::new(code::TIMEOUT, text).retryable(),
            retry: Retry::BackOff,
        };
    }
    let cause = root_cause(error);
    // The TLS library reports this error for the response of a server without TLS.
    let hint = if cause.contains("InvalidContentType") {
        "the server does not speak TLS, so write `http://` in `base_url` of the provider"
    } else {
        "check `base_url` of the provider"
    };
    let address = &service.base_url;
    unavailable(service, spec, &format!("cannot be reached at {address}: {cause}; {hint}"))
}

fn unavailable(service: &Service, spec: AttemptSpec<'_>, what: &str) -> ProviderError {
    let text = format!("{} {}", subject(service, spec), excerpt(service, what));
    ProviderError {
        failure: Failure::new(code::UNAVAILABLE, text).retryable(),
        retry: Retry::BackOff,
    }
}

fn invalid_request(service: &Service, spec: AttemptSpec<'_>, what: &str) -> ProviderError {
    let text = format!("{} {}", subject(service, spec), excerpt(service, what));
    ProviderError { failure: Failure::new(code::INVALID, text), retry: Retry::Never }
}

/// Builds the error for a response with a status that is no success.
pub(super) fn from_status(
    service: &Service,
    spec: AttemptSpec<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    text: &str,
) -> ProviderError {
    let place = format!("status {}", status.as_u16());
    let body = lenient::parse(text).map(lenient::join_surrogates_in).unwrap_or_default();
    let coding = compression::coding(headers).filter(|_| compression::is_binary(text.as_bytes()));
    let unread = coding.map(|coding| {
        format!("its message has `content-encoding: {coding}`, which the host does not decompress")
    });
    let text = unread.as_deref().unwrap_or(text);
    from_error_body(service, spec, status, &place, headers, body, text)
}

/// Builds the error that a provider reported. `place` describes where the provider reported the
/// error, and `text` is the report as text.
fn from_error_body(
    service: &Service,
    spec: AttemptSpec<'_>,
    status: StatusCode,
    place: &str,
    headers: &HeaderMap,
    body: Value,
    text: &str,
) -> ProviderError {
    let body = first_error(body);
    let class = ErrorClass::of(status, &body);
    let mut details = json!({ "status": status.as_u16() });
    let mut retry = if class.is_transient() { Retry::BackOff } else { Retry::Never };
    match should_retry(headers) {
        Some(true) if retry == Retry::Never => retry = Retry::BackOff,
        Some(false) => retry = Retry::Never,
        _ => {}
    }
    if let Some(pause) = retry_after(headers, &body) {
        details["retry_after_ms"] = json!(pause.as_millis() as u64);
        if retry == Retry::BackOff {
            retry = Retry::After(pause);
        }
    }
    let message =
        class.message(service, spec, place, &provider_message(service, &body, text), retry);
    let mut failure = Failure::new(class.code(), message).with_details(details);
    failure.retryable = retry != Retry::Never;
    ProviderError { failure, retry }
}

/// The class of an error response, by its HTTP status and its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorClass {
    Auth,
    Quota,
    RateLimit,
    NotFound,
    Timeout,
    ServerError,
    /// The service cannot read what the model wrote.
    UnusableOutput,
    Redirect,
    BadRequest,
}

impl ErrorClass {
    fn of(status: StatusCode, body: &Value) -> Self {
        let says = |word: &str| {
            KIND_POINTERS
                .iter()
                .any(|field| body.pointer(field).and_then(Value::as_str) == Some(word))
        };
        // Google returns status 400 for a wrong key.
        let wrong_key =
            body.pointer("/error/details").and_then(Value::as_array).is_some_and(|details| {
                details.iter().any(|detail| detail["reason"] == "API_KEY_INVALID")
            });
        // DeepSeek and others return status 400 for an unknown model.
        let message = body.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
        let message = message.to_lowercase();
        let unknown_model = says("model_not_found") || message.contains("model not exist");
        // Anthropic returns status 400 for an account without credit, without a kind of its own.
        let no_credit =
            NO_CREDIT_KINDS.into_iter().any(says) || message.contains("credit balance is too low");
        match status.as_u16() {
            401 | 403 => Self::Auth,
            400 if unknown_model => Self::NotFound,
            400 if wrong_key => Self::Auth,
            400 | 429 if no_credit => Self::Quota,
            // Groq returns status 400 for a tool call of the model that it cannot read, and 498 if
            // its flex tier is at capacity ("Flex processing" of Groq's documentation).
            400 if says("tool_use_failed") => Self::UnusableOutput,
            498 if says("capacity_exceeded") || message.contains("capacity") => Self::RateLimit,
            402 => Self::Quota,
            429 => Self::RateLimit,
            404 | 405 => Self::NotFound,
            408 => Self::Timeout,
            409 | 500.. => Self::ServerError,
            300..=399 => Self::Redirect,
            _ => Self::BadRequest,
        }
    }

    /// Returns whether the same request may succeed later.
    fn is_transient(self) -> bool {
        matches!(self, Self::RateLimit | Self::Timeout | Self::ServerError | Self::UnusableOutput)
    }

    fn code(self) -> &'static str {
        match self {
            Self::Auth
            | Self::NotFound
            | Self::ServerError
            | Self::UnusableOutput
            | Self::Redirect => code::UNAVAILABLE,
            Self::Quota | Self::RateLimit => code::RATE_LIMITED,
            Self::Timeout => code::TIMEOUT,
            Self::BadRequest => code::INVALID,
        }
    }

    /// Returns the message of a failure. A provider's message about a rejected key often repeats
    /// parts of the key, so these parts are masked.
    fn message(
        self,
        service: &Service,
        spec: AttemptSpec<'_>,
        place: &str,
        words: &str,
        retry: Retry,
    ) -> String {
        let subject = subject(service, spec);
        let address = &service.base_url;
        match self {
            Self::Auth => {
                let words = mask_abbreviated_keys(words);
                format!("{subject} {}: {words}", service.key.rejection_message(place))
            }
            Self::Quota => {
                format!("{subject} has no credit left ({place}); top up the account: {words}")
            }
            Self::RateLimit => {
                format!("{subject} asks to slow down ({place}){}: {words}", retry_hint(retry))
            }
            Self::NotFound => format!(
                "{subject} does not exist at {address} ({place}); change {}, or `base_url` of the \
                 provider: {words}",
                spec.setting_text
            ),
            Self::Redirect => format!(
                "{subject} responds with a redirect at {address} ({place}); check `base_url` of \
                 the provider"
            ),
            Self::Timeout => format!("{subject} timed out ({place}): {words}"),
            Self::ServerError => format!("{subject} returned a server error ({place}): {words}"),
            Self::UnusableOutput => {
                format!("{subject} sent an unusable response ({place}): {words}")
            }
            Self::BadRequest => {
                format!("{subject} refuses the request ({place}): {words}")
            }
        }
    }
}

fn retry_hint(retry: Retry) -> String {
    match retry {
        Retry::After(pause) if pause > Duration::ZERO => format!(" for {pause:?}"),
        _ => String::new(),
    }
}

fn subject(service: &Service, spec: AttemptSpec<'_>) -> String {
    let alias = if spec.configured_model == spec.model {
        String::new()
    } else {
        format!(" (for `{}`)", spec.configured_model)
    };
    let AttemptSpec { route, model, .. } = spec;
    format!("model `{model}`{alias} of provider `{}` (route `{route}`)", service.name)
}

/// Returns the message in an error body of any dialect, or else the start of the body.
fn provider_message(service: &Service, body: &Value, text: &str) -> String {
    match full_message(body) {
        Some(message) => excerpt(service, &message),
        None => excerpt(service, text),
    }
}

/// Returns the provider's part of the message, in lower case, if the provider rejects the request
/// with status 400 or 422. The rest of the message has names of routes and models. vLLM rejects a
/// request within a response with a success status.
pub(crate) fn rejection_words(failure: &Failure) -> Option<String> {
    let status = failure.details.as_ref().and_then(|details| details["status"].as_u64());
    let status =
        status.filter(|status| failure.code == code::INVALID && [400, 422].contains(status))?;
    let places = [format!("(status {status}): "), "(in its response): ".to_owned()];
    let words = places.iter().find_map(|place| failure.message.split_once(place.as_str()));
    words.map(|(_, words)| words.to_lowercase())
}

fn excerpt(service: &Service, text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((end, _)) => format!("{} ...", service.redact(&text[..end])),
        None => service.redact(text),
    }
}

/// Returns the innermost cause. The messages of outer errors contain only "error sending request"
/// and the URL.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    let mut text = None;
    while let Some(inner) = cause {
        text = Some(inner.to_string());
        cause = inner.source();
    }
    text.unwrap_or_else(|| "the connection was lost".to_owned())
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::io;
    use std::sync::Arc;

    use reqwest::Client;
    use reqwest::dns::{Addrs, Name, Resolve, Resolving};
    use wattle_run::caller_id::CallerId;
    use wattle_run::service_memory::ServiceMemory;

    use crate::provider::attempt::{CallScope, RequestCount};
    use crate::provider::key::ApiKey;

    use super::*;

    /// The outcome of a lookup.
    type Found = Result<Addrs, Box<dyn std::error::Error + Send + Sync>>;

    /// A resolver that waits for a place in vain.
    struct Occupied;

    impl Resolve for Occupied {
        fn resolve(&self, _: Name) -> Resolving {
            let late = io::Error::new(io::ErrorKind::TimedOut, "no place");
            let found: Found = Err(late.into());
            Box::pin(ready(found))
        }
    }

    /// A resolver that does not respond.
    struct Silent;

    impl Resolve for Silent {
        fn resolve(&self, _: Name) -> Resolving {
            Box::pin(pending::<Found>())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn service_whose_name_is_not_resolved_in_time_is_unavailable() {
        let resolvers: [(Arc<dyn Resolve>, &str); 2] =
            [(Arc::new(Occupied), "no place"), (Arc::new(Silent), "timed out")];
        for (resolver, cause) in resolvers {
            let client = Client::builder().no_proxy().connect_timeout(Duration::from_secs(10));
            let http = client.dns_resolver(resolver).build().unwrap();
            let config = json!({ "kind": "openai", "base_url": "http://silent.example/v1" });
            let config = serde_json::from_value(config).unwrap();
            let service = Service::new("p", &config, ApiKey::None, http).unwrap();
            let (requests, memory) = (RequestCount::default(), ServiceMemory::default());
            let spec = AttemptSpec {
                route: "chat",
                model: "m",
                configured_model: "m",
                setting_text: "model",
                timeout: Duration::from_mins(1),
                retries: 0,
                requests: &requests,
                scope: CallScope { owner: CallerId::default(), memory: &memory },
            };
            let error = service.post("models").send().await.unwrap_err();
            let failure = send_failed(&service, spec, &error).failure;
            assert_eq!((&*failure.code, failure.retryable), (code::UNAVAILABLE, true));
            assert!(failure.message.contains("cannot be reached at"), "{failure}");
            assert!(failure.message.contains(cause), "{failure}");
        }
    }

    #[test]
    fn status_and_body_determine_the_class_and_the_failure_code() {
        let quota = json!({ "error": { "code": "insufficient_quota" } });
        let moonshot = json!({ "error": { "type": "exceeded_current_quota_error" } });
        let zhipu = json!({ "error": { "code": "1113", "message": "?" } });
        let alibaba = json!({ "error": { "code": "Arrearage", "type": "Arrearage" } });
        let groq = json!({ "error": { "code": "tool_use_failed", "failed_generation": "" } });
        let flex = json!({ "error": { "code": "capacity_exceeded" } });
        let key = json!({ "error": { "details": [{ "reason": "API_KEY_INVALID" }] } });
        let model = json!({ "error": { "message": "Model Not Exist" } });
        let credit = json!({ "error": { "message": "Your credit balance is too low to access" } });
        let cases = [
            (400, &model, ErrorClass::NotFound, code::UNAVAILABLE),
            (401, &Value::Null, ErrorClass::Auth, code::UNAVAILABLE),
            (403, &Value::Null, ErrorClass::Auth, code::UNAVAILABLE),
            (400, &key, ErrorClass::Auth, code::UNAVAILABLE),
            (400, &credit, ErrorClass::Quota, code::RATE_LIMITED),
            (400, &Value::Null, ErrorClass::BadRequest, code::INVALID),
            (400, &groq, ErrorClass::UnusableOutput, code::UNAVAILABLE),
            (422, &Value::Null, ErrorClass::BadRequest, code::INVALID),
            (413, &Value::Null, ErrorClass::BadRequest, code::INVALID),
            (402, &Value::Null, ErrorClass::Quota, code::RATE_LIMITED),
            (429, &quota, ErrorClass::Quota, code::RATE_LIMITED),
            (429, &moonshot, ErrorClass::Quota, code::RATE_LIMITED),
            (429, &zhipu, ErrorClass::Quota, code::RATE_LIMITED),
            (400, &alibaba, ErrorClass::Quota, code::RATE_LIMITED),
            (429, &Value::Null, ErrorClass::RateLimit, code::RATE_LIMITED),
            (498, &flex, ErrorClass::RateLimit, code::RATE_LIMITED),
            (404, &Value::Null, ErrorClass::NotFound, code::UNAVAILABLE),
            (405, &Value::Null, ErrorClass::NotFound, code::UNAVAILABLE),
            (408, &Value::Null, ErrorClass::Timeout, code::TIMEOUT),
            (409, &Value::Null, ErrorClass::ServerError, code::UNAVAILABLE),
            (500, &Value::Null, ErrorClass::ServerError, code::UNAVAILABLE),
            (529, &Value::Null, ErrorClass::ServerError, code::UNAVAILABLE),
            (307, &Value::Null, ErrorClass::Redirect, code::UNAVAILABLE),
        ];
        for (status, body, class, code) in cases {
            let found = ErrorClass::of(StatusCode::from_u16(status).unwrap(), body);
            assert_eq!((found, found.code()), (class, code), "{status}");
        }
    }
}
