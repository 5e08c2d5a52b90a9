//! The events of a response over HTTP.

use std::io;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use reqwest::Response;
use rmcp::model::{RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::SseError;
use serde_json::{Value, json};
use sse_stream::{Sse, SseStream};
use wattle_run::json::bounded::JsonError;

use crate::failure::exceeding_response;
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
            let Some(id) = request.cloned() else { return vec![Ok(event)] };
            let error = ServerJsonRpcMessage::error(exceeding_response(exceeded), Some(id));
            return vec![Ok(with_message(event, &json!(error)))];
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

/// Returns the events of a response, each of about `event_bytes` bytes at most. The bytes of the
/// response are read at the rate of `pace`, since comments are not events.
pub(super) fn read(
    response: Response,
    event_bytes: usize,
    pace: SharedPace,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let chunks = with_bounded_rate(limit_size(response, event_bytes), pace);
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

/// Returns the chunks of an event stream. Fails at the end of a chunk if the event that is still
/// open there has more than `event_bytes` bytes. An event therefore has at most `event_bytes` bytes
/// more than the chunk in which it ends.
fn limit_size(
    response: Response,
    event_bytes: usize,
) -> impl Stream<Item = Result<Bytes, io::Error>> + Send + 'static {
    let (mut bytes, mut last) = (0, 0);
    response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        for byte in &chunk {
            // An empty line ends an event. Lines end with LF or CR LF.
            let is_end = matches!((last, byte), (b'\n', b'\n' | b'\r') | (b'\r', b'\r'));
            bytes = if is_end { 0 } else { bytes + 1 };
            last = *byte;
        }
        if bytes > event_bytes {
            return Err(io::Error::other(format!("an event has more than {event_bytes} bytes")));
        }
        Ok(chunk)
    })
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use tokio::time::Instant;

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

    #[test]
    fn events_that_are_not_messages_have_no_data() {
        let empty = Sse { data: None, ..event("") };
        for other in [event("ready"), event(""), event("[1]"), event("7"), empty.clone()] {
            assert_eq!(normalized(other, None), std::slice::from_ref(&empty));
        }
    }
}
