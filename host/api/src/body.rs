//! Reads request bodies, with limits, and with errors that name the field and its position.

pub mod struct_from_map;

use std::error::Error as _;
use std::io::ErrorKind;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRef, FromRequest, Request};
use axum::http::{StatusCode, header};
use bytes::Bytes;
use futures::StreamExt as _;
use serde::de::DeserializeOwned;
use wattle_graph::failure::code;
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::caller_id::CallerId;
use wattle_run::json::bounded::{JsonBudget, JsonLimit};
use wattle_run::json::lenient;

use self::struct_from_map::StructFromMap;
use crate::config::ApiConfig;
use crate::guard::BodyLimit;
use crate::guard::limits::{limit_reached, max_body_values_bytes};
use crate::guard::open_requests::RequestPermit;
use crate::guard::reservation::BodyReservation;
use crate::problem::{Problem, api_code};

/// Maximum initial buffer size. The buffer grows with the received bytes, because a client can
/// declare a larger body than it sends.
const INITIAL_BUFFER_BYTES: usize = 64 << 10;

/// Maximum number of bytes of an oversized body that are read and discarded before the response.
/// Most clients read a response only after they have sent their body. The connection of a larger
/// body is closed.
const MAX_DRAIN_BYTES: usize = 64 << 20;

/// What helps against the limit of an API key.
const KEY_LIMIT_HINT: &str = "this is the limit of the API key; use a key with a higher limit";

/// A JSON body.
pub struct JsonBody<T>(pub T);

impl<T, S> FromRequest<S> for JsonBody<T>
where
    T: DeserializeOwned + Send,
    Arc<ApiConfig>: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let path = request.uri().path().to_owned();
        let limit_bytes = Arc::<ApiConfig>::from_ref(state).body_limit_bytes;
        read_json(request, limit_bytes)
            .await
            .map(Self)
            .map_err(|problem| problem.with_instance(&path))
    }
}

async fn read_json<T: DeserializeOwned>(
    request: Request,
    limit_bytes: usize,
) -> Result<T, Problem> {
    let media_type = request.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    if !media_type.is_some_and(is_json) {
        return Err(Problem::new(
            api_code::MEDIA_TYPE,
            "send the body as JSON with the header `content-type: application/json`",
        ));
    }
    let body = read(request, limit_bytes).await?;
    body.parse(parse_within).await
}

fn is_json(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

/// A complete request body. Its bytes count against the limit of its caller until the handler has
/// returned.
pub struct ReceivedBody {
    bytes: Bytes,
    /// Maximum memory of the parsed values, in bytes.
    max_values_bytes: u64,
    reservation: Option<BodyReservation>,
    /// Caller that the work of parsing counts for.
    caller: CallerId,
}

impl ReceivedBody {
    /// Returns the bytes of the body.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Parses JSON. Values count against the limit of the caller before they are created, beside
    /// the bytes, and in place of the bytes after parsing. `parse` gets the bytes and the budget for
    /// the values.
    ///
    /// # Errors
    ///
    /// The errors of `parse`; `unavailable` if the bodies of all requests exceed the limit of the
    /// host.
    pub async fn parse<T, E: From<Problem>>(
        self,
        parse: impl FnOnce(&[u8], &JsonBudget) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        let Self { bytes, max_values_bytes, reservation, caller } = self;
        let parsed = block_in_place_in_turn(caller, is_long_parse(bytes.len()), || {
            let mut budget = JsonBudget::new(max_values_bytes);
            if let Some(reservation) = reservation.clone() {
                budget = budget.with_memory(move |bytes| reservation.try_grow(bytes as usize));
            }
            let parsed = parse(&bytes, &budget);
            if budget.is_memory_refused() {
                return Err(limit_reached("bytes of request bodies").into());
            }
            parsed.map(|parsed| (parsed, budget.weight()))
        });
        let (parsed, weight) = parsed.await?;
        drop(bytes);
        if reservation.is_some_and(|reservation| !reservation.try_resize(weight as usize)) {
            return Err(limit_reached("bytes of request bodies").into());
        }
        Ok(parsed)
    }
}

/// Reads a complete body of at most `limit_bytes` bytes, or fewer if the API key of the request has
/// a lower limit.
///
/// # Errors
///
/// `too-large` above the limit, `invalid` if the client disconnects before the end, `timeout` (408)
/// if the body arrives too slowly, `unavailable` if the bodies of all requests exceed the limit of
/// the host.
pub async fn read(request: Request, limit_bytes: usize) -> Result<ReceivedBody, Problem> {
    let hint = "raise `server.body_limit` in wattle.toml to accept larger bodies";
    read_up_to(request, limit_bytes, hint).await
}

/// Reads a complete body like [`read`]. `hint` says what helps against the limit.
///
/// # Errors
///
/// Those of [`read`].
pub async fn read_up_to(
    request: Request,
    limit_bytes: usize,
    hint: &str,
) -> Result<ReceivedBody, Problem> {
    let max_values_bytes = max_body_values_bytes(limit_bytes);
    let key_limit = request.extensions().get::<BodyLimit>().map(|limit| limit.0);
    let is_key_limit = key_limit.is_some_and(|key_limit| key_limit < limit_bytes);
    let limit_bytes = key_limit.unwrap_or(limit_bytes).min(limit_bytes);
    let hint = if is_key_limit { KEY_LIMIT_HINT } else { hint };
    let reservation = request.extensions().get::<BodyReservation>().cloned();
    let caller = RequestPermit::caller_of(request.extensions().get());
    let declared = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let body = request.into_body();
    if declared.is_some_and(|length| length > limit_bytes) {
        drain(body).await;
        return Err(too_large(limit_bytes, hint, reservation.as_ref()));
    }
    let mut body = body.into_data_stream();
    let mut bytes = Vec::with_capacity(declared.unwrap_or(0).min(INITIAL_BUFFER_BYTES));
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| read_error(&error))?;
        if reservation.as_ref().is_some_and(|reservation| !reservation.try_grow(chunk.len())) {
            return Err(limit_reached("bytes of request bodies"));
        }
        if bytes.len() + chunk.len() > limit_bytes {
            drain(Body::from_stream(body)).await;
            return Err(too_large(limit_bytes, hint, reservation.as_ref()));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(ReceivedBody { bytes: bytes.into(), max_values_bytes, reservation, caller })
}

fn read_error(error: &axum::Error) -> Problem {
    // The iteration begins at `source()`, because the borrow of `error` is too short for an item of
    // the iterator.
    let mut causes = std::iter::successors(error.source(), |cause| (**cause).source());
    let timeout = causes.find_map(|cause| cause.downcast_ref::<std::io::Error>());
    match timeout.filter(|cause| cause.kind() == ErrorKind::TimedOut) {
        Some(timeout) => {
            Problem::new(code::TIMEOUT, format!("the request body arrives too slowly: {timeout}"))
                .with_status(StatusCode::REQUEST_TIMEOUT)
        }
        None => Problem::new(code::INVALID, format!("the request body is incomplete: {error}")),
    }
}

async fn drain(body: Body) {
    let mut body = body.into_data_stream();
    let mut drained = 0;
    while let Some(Ok(chunk)) = body.next().await {
        drained += chunk.len();
        if drained > MAX_DRAIN_BYTES {
            break;
        }
    }
}

/// Counts a request with a body above the limit as rejected, and returns its problem.
fn too_large(limit_bytes: usize, hint: &str, reservation: Option<&BodyReservation>) -> Problem {
    if let Some(reservation) = reservation {
        reservation.count_too_large();
    }
    let detail = format!("the request body is larger than {limit_bytes} bytes; {hint}");
    Problem::new(api_code::TOO_LARGE, detail)
}

/// Parses JSON within the default budget, see [`parse_within`].
///
/// # Errors
///
/// The errors of [`parse_within`].
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    parse_within(bytes, &JsonBudget::default())
}

/// Parses JSON. A lone surrogate in a string is replaced, see [`lenient::parse_request`].
///
/// # Errors
///
/// `invalid`, with the field, line and column in `details`; `limit` if the values exceed the
/// budget.
pub fn parse_within<T: DeserializeOwned>(bytes: &[u8], budget: &JsonBudget) -> Result<T, Problem> {
    lenient::parse_request(bytes, budget, |bytes| deserialize(bytes, budget))
}

impl From<JsonLimit> for Problem {
    fn from(exceeded: JsonLimit) -> Self {
        let hint = match exceeded {
            JsonLimit::Values(_) => {
                "send fewer values, or put large data into a text or a blob; a higher \
                 `server.body_limit` in wattle.toml raises this limit as well"
            }
            JsonLimit::Depth => "flatten it, or send the inner value as a text",
        };
        exceeded.to_failure("the request body", hint).into()
    }
}

fn deserialize<T: DeserializeOwned>(bytes: &[u8], budget: &JsonBudget) -> Result<T, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let bounded = StructFromMap(budget.bound(&mut deserializer));
    let parsed = serde_path_to_error::deserialize(bounded).map_err(|error| {
        let field = error.path().to_string();
        let inner = error.into_inner();
        invalid(&field, inner.line(), inner.column(), &inner.to_string())
    })?;
    deserializer
        .end()
        .map_err(|error| invalid(".", error.line(), error.column(), &error.to_string()))?;
    Ok(parsed)
}

fn invalid(field: &str, line: usize, column: usize, message: &str) -> Problem {
    let subject =
        if matches!(field, "." | "?") { "the body".to_owned() } else { format!("field `{field}`") };
    let details = serde_json::json!({ "field": field, "line": line, "column": column });
    Problem::new(code::INVALID, format!("{subject} of the request is not valid: {message}"))
        .with_details(details)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use wattle_graph::weight::VALUE_BYTES;
    use wattle_run::fair_share::Pool;
    use wattle_run::json::bounded::MEMORY_CHUNK_BYTES;

    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[expect(dead_code, reason = "only its type matters")]
        input: Inner,
    }

    #[derive(Debug, serde::Deserialize)]
    struct Inner {
        #[expect(dead_code, reason = "only its type matters")]
        count: u32,
    }

    #[test]
    fn errors_name_the_field_and_its_position() {
        let problem = parse::<Sample>(br#"{"input": {"count": "x"}}"#).unwrap_err();
        assert_eq!(problem.code, code::INVALID);
        assert!(problem.detail.contains("`input.count`"), "{}", problem.detail);
        assert_eq!(problem.details.as_ref().unwrap()["column"], 23);
    }

    #[test]
    fn lone_surrogate_is_replaced() {
        let parsed = parse::<Value>(br#"{"a": "caf\ud83d"}"#).unwrap();
        assert_eq!(parsed["a"], "caf\u{fffd}");
        let problem =
            parse::<Sample>(br#"{"input": {"\ud83d": 1, "count": "\ude00"}}"#).unwrap_err();
        assert_eq!(problem.details.as_ref().unwrap()["field"], "input.count");
    }

    #[test]
    fn body_with_too_many_values_is_rejected() {
        let budget = JsonBudget::new(10_000);
        let numbers = format!("{{\"input\": [{}oops", "0,".repeat(1_000));
        let problem = parse_within::<Value>(numbers.as_bytes(), &budget).unwrap_err();
        assert_eq!((problem.status, &*problem.code), (422, code::LIMIT));
        assert_eq!(problem.details.as_ref().unwrap()["limit"], "json_values_bytes");
        assert!(problem.detail.contains("more than 10000 bytes"), "{}", problem.detail);
        let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
        let problem = parse::<Value>(deep.as_bytes()).unwrap_err();
        assert_eq!((problem.status, &*problem.code), (400, code::INVALID));
    }

    #[tokio::test]
    async fn values_of_a_body_count_while_they_are_parsed() {
        const CHUNK: usize = MEMORY_CHUNK_BYTES as usize;
        let pool = Pool::new(8 * CHUNK);
        let reservation = || BodyReservation::new(&pool, CallerId::of_key("a"), &Arc::default());
        let body = |values: usize| ReceivedBody {
            bytes: format!("[{}oops", "0,".repeat(values)).into(),
            max_values_bytes: 8 * MEMORY_CHUNK_BYTES,
            reservation: Some(reservation()),
            caller: CallerId::of_key("a"),
        };
        // The caller has half of the pool, which is four chunks. The values take two besides the
        // first one, which is free.
        let values = 5 * CHUNK / 2 / VALUE_BYTES as usize;
        let parsed = body(values).parse(|bytes, budget| {
            let parsed = parse_within::<Value>(bytes, budget);
            assert!(!reservation().try_grow(3 * CHUNK) && reservation().try_grow(2 * CHUNK));
            parsed
        });
        assert_eq!(parsed.await.unwrap_err().code, code::INVALID);
        assert!(reservation().try_grow(4 * CHUNK), "a body that is refused takes nothing");
        let parsed = body(4 * values).parse(parse_within::<Value>).await;
        assert_eq!(parsed.unwrap_err().code, code::UNAVAILABLE, "the end is not read");
    }

    #[test]
    fn trailing_characters_are_rejected() {
        assert!(parse::<Value>(b"{} x").is_err());
        assert!(parse::<Value>(b"{").unwrap_err().detail.contains("the body"));
    }

    #[test]
    fn json_media_types_are_recognized() {
        assert!(is_json("application/json; charset=utf-8"));
        assert!(is_json("application/merge-patch+json"));
        assert!(!is_json("text/plain"));
    }
}
