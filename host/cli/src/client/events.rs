//! Reads server-sent events of a thread.

use axum::http::Method;
use futures::StreamExt as _;
use wattle_graph::event::Event;

use crate::client::{ByteStream, Client, encode_segment};
use crate::error::Error;

/// The stream of events of a thread.
pub struct EventStream {
    chunks: ByteStream,
    buffer: Vec<u8>,
}

impl Client {
    /// Streams the events after the sequence number `after`, until no run of the thread is running.
    ///
    /// # Errors
    ///
    /// Those of [`Client::get`].
    pub async fn events(&self, thread: &str, after: u64) -> Result<EventStream, Error> {
        let thread = encode_segment(thread);
        let path = format!("/api/v1/threads/{thread}/events?until=idle&after={after}");
        let chunks = self.send(Method::GET, &path, None).await?;
        Ok(EventStream { chunks, buffer: Vec::new() })
    }
}

impl EventStream {
    /// Returns the next event, or `None` at the end of the stream. Skips event types that this
    /// version of the CLI does not know.
    ///
    /// # Errors
    ///
    /// [`Error::Server`] if the connection breaks.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            while let Some(end) = find(&self.buffer, b"\n\n") {
                let message: Vec<u8> = self.buffer.drain(..end + 2).collect();
                if let Some(event) = parse(&message) {
                    return Ok(Some(event));
                }
            }
            match self.chunks.next().await {
                Some(chunk) => self.buffer.extend_from_slice(&chunk?),
                None => return Ok(None),
            }
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn parse(message: &[u8]) -> Option<Event> {
    let data =
        message.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"data: "))?;
    serde_json::from_slice(data).ok()
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    #[tokio::test]
    async fn messages_are_assembled_from_chunks() {
        let message = "id: 1\nevent: run_ended\ndata: {\"seq\":1,\"at_ms\":0,\"run\":\"r\",\
                       \"type\":\"run_ended\",\"status\":\"completed\"}\n\n";
        let (first, second) = message.split_at(30);
        let chunks = [":\n\n", first, second, "data: {\"type\":\"new\"}\n\n"];
        let chunks = chunks.map(|chunk| Ok(chunk.to_owned().into()));
        let mut events = EventStream { chunks: stream::iter(chunks).boxed(), buffer: Vec::new() };
        assert_eq!(events.next().await.unwrap().unwrap().seq, 1);
        assert!(events.next().await.unwrap().is_none());
    }
}
