//! Bounds what a server over HTTP can demand of the host: the rate at which a stream is read, how
//! often it is opened again, how long it is read if no session opens, and the tools that `rmcp`
//! keeps.

use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage, ServerResult, Tool};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use wattle_graph::weight::{NAME_BYTES, VALUE_BYTES, weight};

use crate::calls::{Calls, MAX_LISTED_BYTES};
use crate::connect::MAX_MESSAGE_BYTES;
use crate::connect::http::client::NormalizingClient;
use crate::connect::http::error::Error;
use crate::pace::SharedPace;

/// Minimum delay before a stream is opened again, in milliseconds. `rmcp` waits as long as the
/// server says after the end of a stream, and does not wait after an error.
const MIN_RECONNECT_MS: u64 = 100;

/// The key of the schema of a tool, as the normalizer writes it in a message.
const SCHEMA_KEY: &str = "\"inputSchema\":";

type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The HTTP client of a session, with bounded streams.
#[derive(Clone)]
pub(in crate::connect) struct BoundedClient {
    inner: NormalizingClient,
    /// Counts the bytes of the tools that the session has listed.
    calls: Calls,
    /// Bytes of memory of the tools on streams that the host has opened with GET requests. A server
    /// sends lists there only after it has lost a connection.
    pushed_bytes: Arc<AtomicU64>,
    /// The rate of these streams together, since a server may end a stream and send on in the next
    /// one.
    pushed_pace: SharedPace,
    /// Cancelled if the caller stops to wait before the session is open. `rmcp` reads the responses
    /// to the first requests in a task that it does not stop.
    abandoned: CancellationToken,
}

impl BoundedClient {
    pub(in crate::connect) fn new(
        inner: NormalizingClient,
        calls: Calls,
        abandoned: CancellationToken,
    ) -> Self {
        let pushed_pace = SharedPace::new();
        Self { inner, calls, pushed_bytes: Arc::default(), pushed_pace, abandoned }
    }

    /// Returns the events of the response to a message.
    fn response_events(&self, events: Events) -> Events {
        let abandoned = self.abandoned.clone().cancelled_owned();
        let calls = self.calls.clone();
        let counted = with_counted_tools(events, move |bytes| {
            calls.count_listed(bytes);
            true
        });
        with_bounded_rate(counted.take_until(abandoned).boxed(), SharedPace::new())
    }

    /// Returns the events of a stream that was opened with a GET request.
    fn pushed_events(&self, events: Events) -> Events {
        let pushed = self.pushed_bytes.clone();
        let counted = with_counted_tools(events, move |bytes| {
            pushed.fetch_add(bytes, Ordering::Relaxed) + bytes <= MAX_LISTED_BYTES
        });
        with_bounded_rate(counted, self.pushed_pace.clone())
    }
}

impl StreamableHttpClient for BoundedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let limit = MAX_MESSAGE_BYTES;
        self.post_message_with_max_sse_event_size(uri, message, session, auth, headers, limit).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        event_bytes: usize,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let posted = self.inner.post_message_with_max_sse_event_size(
            uri,
            message,
            session,
            auth,
            headers,
            event_bytes,
        );
        let Some(response) = self.abandoned.run_until_cancelled(posted.boxed()).await else {
            let reason = "the host no longer waits for the session".into();
            return Err(StreamableHttpError::UnexpectedServerResponse(reason));
        };
        Ok(match response? {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(self.response_events(events), session)
            }
            StreamableHttpPostResponse::Json(message, session) => {
                self.calls.count_listed(tool_bytes(&message));
                StreamableHttpPostResponse::Json(message, session)
            }
            other => other,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        self.inner.delete_session(uri, session, auth, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Error> {
        let limit = MAX_MESSAGE_BYTES;
        self.get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, limit)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        event_bytes: usize,
    ) -> Result<Events, Error> {
        if self.pushed_bytes.load(Ordering::Relaxed) > MAX_LISTED_BYTES {
            // After this error, `rmcp` does not open the stream again.
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        let inner = &self.inner;
        let events = inner.get_stream_with_max_sse_event_size(
            uri,
            session,
            last_event,
            auth,
            headers,
            event_bytes,
        );
        Ok(self.pushed_events(events.await?))
    }
}

/// Passes the memory of each event with tools to `count`, in bytes. Ends the stream if the result is
/// false.
fn with_counted_tools(
    events: Events,
    mut count: impl FnMut(u64) -> bool + Send + 'static,
) -> Events {
    let passes = move |read: &Result<Sse, SseError>| {
        let data = read.as_ref().ok().and_then(|event| event.data.as_deref());
        let tools = data.filter(|data| data.contains(SCHEMA_KEY));
        ready(tools.is_none_or(|tools| count(max_weight(tools))))
    };
    events.take_while(passes).boxed()
}

/// Returns at least the [`weight`] of a JSON text, which is not parsed for this.
fn max_weight(text: &str) -> u64 {
    let count = |signs: &[u8]| text.bytes().filter(|byte| signs.contains(byte)).count() as u64;
    // Each value but the outermost one follows one of these signs, and each name is followed by a
    // colon.
    text.len() as u64 + VALUE_BYTES * (1 + count(b"[,:")) + NAME_BYTES * count(b":")
}

/// Returns the memory that `rmcp` keeps of the tools of a message, in bytes; 0 if the message is not
/// a tool list.
fn tool_bytes(message: &ServerJsonRpcMessage) -> u64 {
    let ServerJsonRpcMessage::Response(response) = message else { return 0 };
    let ServerResult::ListToolsResult(list) = &response.result else { return 0 };
    let named = |name: &str| NAME_BYTES + name.len() as u64;
    let of_tool = |tool: &Tool| {
        let fields = tool.input_schema.iter();
        let schema: u64 = fields.map(|(name, value)| named(name) + weight(value)).sum();
        named(&tool.name) + VALUE_BYTES + schema
    };
    list.tools.iter().map(of_tool).sum()
}

/// Reads the events of a stream at a bounded rate, and delays its next opening.
fn with_bounded_rate(events: Events, pace: SharedPace) -> Events {
    let next = |(mut events, pace): (Events, SharedPace)| async move {
        let mut read = events.next().await?;
        if let Ok(event) = &mut read {
            let bytes = event.data.as_ref().map_or(0, String::len);
            pace.consume(bytes).await;
            event.retry = event.retry.map(|delay| delay.max(MIN_RECONNECT_MS));
        } else {
            sleep(Duration::from_millis(MIN_RECONNECT_MS)).await;
        }
        Some((read, (events, pace)))
    };
    stream::unfold((events, pace), next).boxed()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::time::Instant;

    use super::*;

    /// Returns a list of one tool whose schema has about `bytes` bytes.
    fn list(bytes: usize) -> Value {
        let schema = json!({ "type": "object", "description": "x".repeat(bytes) });
        let tools = json!([{ "name": "book", "inputSchema": schema }]);
        json!({ "jsonrpc": "2.0", "id": 7, "result": { "tools": tools } })
    }

    #[test]
    fn tools_of_lists_are_counted() {
        let bytes = tool_bytes(&serde_json::from_value(list(1_000)).unwrap());
        assert!((1_000..1_500).contains(&bytes), "{bytes}");
        let tool = json!({ "name": "book", "inputSchema": { "enum": vec![0; 1_000] } });
        let numbers = json!({ "jsonrpc": "2.0", "id": 7, "result": { "tools": [tool] } });
        let bytes = tool_bytes(&serde_json::from_value(numbers).unwrap());
        assert!(bytes > 1_000 * VALUE_BYTES, "{bytes}");
        let result = json!({ "jsonrpc": "2.0", "id": 7, "result": { "content": [] } });
        assert_eq!(tool_bytes(&serde_json::from_value(result).unwrap()), 0);
    }

    #[test]
    fn text_has_at_least_its_weight() {
        for value in [
            json!(null),
            json!([]),
            json!({ "a": {}, "b": [[], 1, "c"] }),
            json!(vec![0; 100]),
            list(100),
        ] {
            assert!(max_weight(&value.to_string()) >= weight(&value), "{value}");
        }
    }

    #[tokio::test]
    async fn stream_with_too_many_tools_ends() {
        let calls = Calls::default();
        let counting = calls.clone();
        let count = move |bytes| {
            counting.count_listed(bytes);
            !counting.has_listed_too_much()
        };
        let (tools, other) = (list(6 << 20).to_string(), "{\"method\":\"ping\"}".to_owned());
        let events = [&tools, &other, &tools, &tools, &other];
        let events = events.map(|data| Ok(Sse::default().data(data.as_str())));
        let passed = with_counted_tools(stream::iter(events).boxed(), count);
        assert_eq!(passed.count().await, 3);
        assert!(calls.has_listed_too_much());
    }

    fn paced(events: impl IntoIterator<Item = Result<Sse, SseError>>) -> Events {
        let events: Vec<Result<Sse, SseError>> = events.into_iter().collect();
        with_bounded_rate(stream::iter(events).boxed(), SharedPace::new())
    }

    #[tokio::test(start_paused = true)]
    async fn streams_are_not_opened_again_without_a_delay() {
        let ended = [Sse::default().retry(0), Sse::default().retry(5_000), Sse::default()];
        let mut events = paced(ended.map(Ok));
        for retry in [Some(MIN_RECONNECT_MS), Some(5_000), None] {
            assert_eq!(events.next().await.unwrap().unwrap().retry, retry);
        }
        let began = Instant::now();
        assert!(paced([Err(SseError::InvalidLine)]).next().await.unwrap().is_err());
        assert_eq!(began.elapsed().as_millis(), u128::from(MIN_RECONNECT_MS));
    }

    #[tokio::test(start_paused = true)]
    async fn streams_with_one_pace_share_its_burst() {
        let (pace, began) = (SharedPace::new(), Instant::now());
        for _ in 0..2 {
            let flood = stream::iter(vec![Sse::default().data("{}"); 25_000]).map(Ok).boxed();
            assert_eq!(with_bounded_rate(flood, pace.clone()).count().await, 25_000);
        }
        assert_eq!(began.elapsed().as_secs(), 2);
    }
}
