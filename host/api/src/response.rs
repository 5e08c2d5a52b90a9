//! Responses of any size: their JSON, the chunks in which they are sent, and server-sent events.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use wattle_graph::failure::code;
use wattle_graph::json_text::LimitedWriter;
use wattle_graph::limit::SHORT_JSON_BYTES;
use wattle_run::blocking::block_in_place;

use crate::guard::limits::RESPONSE_RESERVE_BYTES;
use crate::problem::Problem;

/// Size of the chunks of a response in bytes. A connection requests the next chunk when it has sent
/// most of the previous chunks.
const CHUNK_BYTES: usize = 16 << 10;

/// Marks a response whose bytes are in memory independent of the response, such as a file of a
/// page. Stored in the extensions of the response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedBytes;

/// Takes the next chunk of a response; `None` after the last one. A chunk is a copy, because a
/// chunk that refers to the whole response would keep all of it in memory until the chunk is sent.
pub fn next_chunk(rest: &mut Bytes) -> Option<Bytes> {
    let chunk = rest.split_to(rest.len().min(CHUNK_BYTES));
    (!chunk.is_empty()).then(|| Bytes::copy_from_slice(&chunk))
}

/// Joins the messages of one event of a stream if they are large together. A frame of a stream
/// counts until its client has read it, and so all messages of the event do.
pub fn join_large(messages: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
    let messages: Vec<Bytes> = messages.into_iter().collect();
    let bytes: usize = messages.iter().map(Bytes::len).sum();
    if bytes <= RESPONSE_RESERVE_BYTES || messages.len() == 1 {
        return messages;
    }
    let mut joined = Vec::with_capacity(bytes);
    for message in messages {
        joined.extend_from_slice(&message);
    }
    vec![joined.into()]
}

/// Returns a response whose body contains server-sent events.
pub fn sse_response(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        // nginx buffers responses by default.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, body).into_response()
}

/// A JSON response of any size. See [`write_json`].
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        let mut text = Vec::new();
        match write_json(&mut text, &self.0) {
            Ok(()) => {
                let json = HeaderValue::from_static("application/json");
                ([(header::CONTENT_TYPE, json)], text).into_response()
            }
            Err(error) => {
                let detail = format!("the response cannot be written: {error}");
                Problem::new(code::INTERNAL, detail).into_response()
            }
        }
    }
}

/// Appends a document as JSON. A long document is serialized in `block_in_place`, so that it does
/// not delay other tasks. The length is known only at the end, so a document that proves to be long
/// is serialized again from its start.
///
/// # Errors
///
/// The errors of the serializer. The text is then incomplete.
pub fn write_json(text: &mut Vec<u8>, document: &impl Serialize) -> serde_json::Result<()> {
    let start = text.len();
    match serde_json::to_writer(LimitedWriter::new(&mut *text, SHORT_JSON_BYTES), document) {
        // The writer returns an I/O error only at its length limit.
        Err(error) if error.is_io() => {
            text.truncate(start);
            block_in_place(|| serde_json::to_writer(text, document))
        }
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use axum::body::to_bytes;
    use serde::Serializer;
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn documents_of_any_length_are_written() {
        for document in [json!(null), json!("x".repeat(300 << 10)), json!(vec![1; 200_000])] {
            let response = Json(&document).into_response();
            assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
            let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), document);
            let mut text = b"[1,".to_vec();
            write_json(&mut text, &document).unwrap();
            assert_eq!(text, format!("[1,{document}").as_bytes());
        }
    }

    #[test]
    fn chunks_are_the_whole_response() {
        for length in [0, 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 1] {
            let whole = Bytes::from((0..length).map(|at| at as u8).collect::<Vec<_>>());
            let mut rest = whole.clone();
            let chunks: Vec<Bytes> = std::iter::from_fn(|| next_chunk(&mut rest)).collect();
            assert_eq!(chunks.concat(), whole);
            assert!(chunks.iter().all(|chunk| chunk.len() <= CHUNK_BYTES));
        }
    }

    #[test]
    fn only_large_messages_of_an_event_are_joined() {
        let small = ["one", "two"].map(|text| Bytes::from_static(text.as_bytes()));
        assert_eq!(join_large(small.clone()), small);
        let large = Bytes::from(vec![b'x'; RESPONSE_RESERVE_BYTES]);
        let [first, second] = small;
        let joined = join_large([first, large.clone(), second]);
        assert_eq!(joined, [[&b"one"[..], &large[..], &b"two"[..]].concat()]);
    }

    /// A long text that waits for another task of the runtime each time it is written.
    struct WaitsForTask;

    impl Serialize for WaitsForTask {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let written = serializer.serialize_str(&"x".repeat(300 << 10))?;
            let (sender, receiver) = channel();
            tokio::spawn(async move { sender.send(()) });
            receiver.recv().unwrap();
            Ok(written)
        }
    }

    /// The runtime has one worker thread. Serializing the document waits for another task, so the
    /// test hangs if the serialization blocks the worker thread.
    #[test]
    fn long_document_does_not_block_other_tasks() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
        let runtime = runtime.unwrap();
        let written = runtime.spawn(async { Json(WaitsForTask).into_response().status() });
        assert_eq!(runtime.block_on(written).unwrap(), 200);
    }
}
