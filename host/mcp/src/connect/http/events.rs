//! The events of a response over HTTP.

use std::error::Error;
use std::future::ready;
use std::io;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use reqwest::Response;
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_client::SseError;
use serde_json::{Value, json};
use sse_stream::{Sse, SseStream};
use wattle_run::json::bounded::JsonError;
use wattle_run::service_memory::{ResponseMemory, ServicesFull};

use crate::connect::http::error::replaced_response;
use crate::failure::{exceeding_response, response_without_memory};
use crate::normalize::{self, Normalizer};
use crate::pace::SharedPace;

/// Normalizes the messages of an event and puts each message into a separate event. The data of an
/// event that is not a message is removed, so that `rmcp` reads nothing that is not normalized. A
/// message that exceeds a limit is replaced by the error of its request. If the event belongs to no
/// request, its data is removed. The id of the event remains, so that the server does not send the
/// event again when the stream is resumed.
pub(super) fn normalize_event(
    normalizer: &Normalizer,
    mut event: Sse,
    request: Option<&RequestId>,
) -> Vec<Result<Sse, SseError>> {
    let Some(data) = event.data.take() else { return vec![Ok(event)] };
    let document = match normalizer.parse(data.as_bytes()) {
        Ok(document) => document,
        Err(JsonError::Syntax(_)) => return vec![Ok(event)],
        Err(JsonError::Limit(exceeded)) => {
            normalizer.note(&format!("a message cannot be read: {exceeded}"));
            let Some(id) = request else { return vec![Ok(event)] };
            let message = replaced_response(exceeding_response(exceeded), id);
            return vec![Ok(with_message(event, &json!(message)))];
        }
    };
    let Some(messages) = normalize::split_messages(document) else { return vec![Ok(event)] };
    let normalized = messages.into_iter().map(|mut message| {
        normalizer.normalize(&mut message);
        Ok(with_message(event.clone(), &message))
    });
    normalized.collect()
}

/// Replaces the data of an event by a message.
pub(super) fn with_message(event: Sse, message: &Value) -> Sse {
    Sse { data: Some(message.to_string()), ..event }
}

/// Replaces the error of a response that does not get memory by the error of its request. Another
/// error, and that of a stream that responds to no request, stays.
pub(super) fn replace_error(error: SseError, request: Option<&RequestId>) -> Result<Sse, SseError> {
    match (missing_memory(&error), request) {
        (Some(full), Some(id)) => {
            let message = replaced_response(response_without_memory(full), id);
            Ok(with_message(Sse::default(), &json!(message)))
        }
        _ => Err(error),
    }
}

fn missing_memory(error: &SseError) -> Option<ServicesFull> {
    let SseError::Body(cause) = error else { return None };
    let cause = cause.downcast_ref::<io::Error>()?.get_ref()?;
    cause.downcast_ref::<ServicesFull>().copied()
}

/// Returns the events of a response, each of about `event_bytes` bytes at most. An event counts as
/// `memory` until it is complete. The bytes of the response are read at the rate of `pace`, since
/// comments are not events.
pub(super) fn read(
    response: Response,
    event_bytes: usize,
    memory: ResponseMemory,
    pace: SharedPace,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let chunks = limit_size(response.bytes_stream(), event_bytes, memory);
    let chunks = with_bounded_rate(chunks, pace);
    SseStream::from_bytes_stream(chunks).boxed()
}

/// Reads the chunks of a response at a bounded rate.
fn with_bounded_rate(
    chunks: impl Stream<Item = Result<Bytes, io::Error>> + Send + 'static,
    pace: SharedPace,
) -> BoxStream<'static, Result<Bytes, io::Error>> {
    let counted = chunks.then(move |chunk| {
        let pace = pace.clone();
        async move {
            pace.consume(chunk.as_ref().map_or(0, Bytes::len)).await;
            chunk
        }
    });
    counted.boxed()
}

/// Returns the chunks of an event stream, up to the first error. Fails at the end of a chunk if the
/// event that is still open there has more than `event_bytes` bytes. An event therefore has at most
/// `event_bytes` bytes more than the chunk in which it ends. Fails at a chunk that does not fit into
/// the memory with the open event.
fn limit_size<E>(
    chunks: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    event_bytes: usize,
    mut memory: ResponseMemory,
) -> impl Stream<Item = Result<Bytes, io::Error>> + Send + 'static
where
    E: Into<Box<dyn Error + Send + Sync>> + 'static,
{
    let (mut bytes, mut last) = (0, 0);
    let limited = chunks.map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        memory.set((bytes + chunk.len()) as u64).map_err(io::Error::other)?;
        for byte in &chunk {
            // An empty line ends an event. Lines end with LF or CR LF.
            let is_end = matches!((last, byte), (b'\n', b'\n' | b'\r') | (b'\r', b'\r'));
            bytes = if is_end { 0 } else { bytes + 1 };
            last = *byte;
        }
        if bytes > event_bytes {
            return Err(io::Error::other(format!("an event has more than {event_bytes} bytes")));
        }
        // The events that are complete are handed over.
        memory.set(bytes as u64).map_err(io::Error::other)?;
        Ok(chunk)
    });
    limited.scan(false, |has_failed, chunk| {
        let is_over = std::mem::replace(has_failed, chunk.is_err());
        ready((!is_over).then_some(chunk))
    })
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use tokio::time::Instant;
    use wattle_run::meter::WorkOwner;
    use wattle_run::service_memory::ServiceMemory;

    use super::*;

    fn event(data: &str) -> Sse {
        Sse { id: Some("7".to_owned()), data: Some(data.to_owned()), ..Sse::default() }
    }

    fn normalized(event: Sse, request: Option<&RequestId>) -> Vec<Sse> {
        let events = normalize_event(&Normalizer::new("graph"), event, request).into_iter();
        events.map(Result::unwrap).collect()
    }

    #[test]
    fn message_that_exceeds_a_limit_becomes_the_error_of_its_request() {
        let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
        let deep = format!("{{\"id\":1,\"result\":{{\"structuredContent\":{deep}}}}}");
        let answered = normalized(event(&deep), Some(&RequestId::Number(1)));
        assert_eq!(answered.len(), 1);
        let error: Value = serde_json::from_str(answered[0].data.as_deref().unwrap()).unwrap();
        assert_eq!((&error["id"], error.get("result")), (&json!(1), None));
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("116 levels"), "{message}");
        let pushed = normalized(Sse { retry: Some(5), ..event(&deep) }, None);
        assert_eq!(pushed, [Sse { data: None, retry: Some(5), ..event("") }]);
    }

    #[tokio::test(start_paused = true)]
    async fn comments_are_read_at_a_bounded_rate() {
        let began = Instant::now();
        let pace = SharedPace::new();
        for _ in 0..2 {
            let comment = Bytes::from_static(b": nothing\n\n");
            let flood = stream::iter(vec![comment; 25_000]).map(Ok);
            let chunks = with_bounded_rate(flood, pace.clone());
            assert_eq!(SseStream::from_bytes_stream(chunks).count().await, 0);
        }
        assert_eq!(began.elapsed().as_secs(), 2);
    }

    #[tokio::test]
    async fn event_that_does_not_get_memory_becomes_the_error_of_its_request() {
        const MIB: usize = 1 << 20;
        let (memory, owner) = (ServiceMemory::new(4 << 20), WorkOwner::Server("graph".into()));
        let mut other = memory.response(owner.clone());
        // All that large responses of one server can hold.
        other.set(7 << 18).unwrap();
        let read = |events: Vec<Vec<u8>>| {
            let chunks = stream::iter(events).map(|event| Ok::<_, io::Error>(Bytes::from(event)));
            let chunks = limit_size(chunks, 16 * MIB, memory.response(owner.clone()));
            SseStream::from_bytes_stream(chunks.boxed()).collect::<Vec<_>>()
        };
        let event = |bytes: usize| format!("data: {}\n\n", "x".repeat(bytes)).into_bytes();
        let mut events = read(vec![event(1_000), event(MIB), event(1_000)]).await;
        assert_eq!(events.len(), 2, "nothing follows the error");
        let error = events.pop().unwrap().unwrap_err();
        let id = RequestId::Number(1);
        let answered = replace_error(error, Some(&id)).unwrap();
        let answer: Value = serde_json::from_str(answered.data.as_deref().unwrap()).unwrap();
        assert_eq!(
            (&answer["id"], &answer["error"]["data"]["limit"]),
            (&json!(1), &json!("services_memory"))
        );
        drop(other);
        let events = read(vec![event(MIB), event(MIB)]).await;
        assert!(events.len() == 2 && events.iter().all(Result::is_ok));
        assert!(replace_error(SseError::InvalidLine, Some(&id)).is_err());
    }

    #[test]
    fn events_that_are_not_messages_have_no_data() {
        let empty = Sse { data: None, ..event("") };
        for other in [event("ready"), event(""), event("[1]"), event("7"), empty.clone()] {
            assert_eq!(normalized(other, None), std::slice::from_ref(&empty));
        }
    }
}
