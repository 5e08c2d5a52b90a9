//! Reads recorded responses of providers without a connection, for tests of malformed responses.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::PoisonError;

use bytes::Bytes;
use futures::stream;
use reqwest::{Body, Response};
use wattle_graph::failure::Failure;
use wattle_graph::llm::{Completion, Delta};
use wattle_run::caller_id::CallerId;
use wattle_run::ports::model::DeltaSink;
use wattle_run::service_memory::ServiceMemory;

use crate::config::{DEFAULT_TIMEOUT, ProviderConfig, ProviderKind, StructuredMode};
use crate::error::ConfigError;
use crate::extra::Extra;
use crate::provider::{self, ApiKey, AttemptSpec, CallScope, Provider, RequestCount};
use crate::sink::CallSink;

/// A reader of responses in the format of one kind of provider.
#[derive(Debug)]
pub struct Recorded(Provider);

impl Recorded {
    /// Creates a reader.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Client`] if the HTTP client cannot be built.
    pub fn new(kind: ProviderKind) -> Result<Self, ConfigError> {
        let config = ProviderConfig {
            kind,
            base_url: None,
            key_env: None,
            structured: StructuredMode::default(),
            stream: true,
            extra: Extra::default(),
            headers: BTreeMap::new(),
        };
        let http = provider::http_client(None).map_err(|reason| ConfigError::Client { reason })?;
        Provider::new("recorded", &config, ApiKey::None, http).map(Self)
    }

    /// Reads the body of one response with status 200 that arrives in the given chunks. The body is
    /// a stream of events or an unstreamed response. Returns the completion and the deltas that
    /// were emitted.
    pub async fn read(&self, pieces: Vec<Bytes>) -> (Result<Completion, Failure>, Vec<Delta>) {
        let pieces = stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
        self.read_body(Body::wrap_stream(pieces)).await
    }

    async fn read_body(&self, body: Body) -> (Result<Completion, Failure>, Vec<Delta>) {
        let deltas = CollectedDeltas::default();
        let read = self.read_to(&deltas, body).await;
        (read, deltas.0.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    async fn read_to(&self, deltas: &dyn DeltaSink, body: Body) -> Result<Completion, Failure> {
        let response = Response::from(http::Response::new(body));
        let (sink, requests) = (CallSink::new(deltas), RequestCount::default());
        let memory = ServiceMemory::default();
        let spec = AttemptSpec {
            route: "recorded",
            model: "recorded",
            configured_model: "recorded",
            setting_text: "model",
            timeout: DEFAULT_TIMEOUT,
            retries: 0,
            requests: &requests,
            scope: CallScope { owner: CallerId::default(), memory: &memory },
        };
        let read = self.0.read_response(spec, &sink, response).await;
        read.map(|reply| reply.into_completion(None)).map_err(|error| error.failure)
    }
}

/// Collects the deltas.
#[derive(Default)]
struct CollectedDeltas(Mutex<Vec<Delta>>);

impl DeltaSink for CollectedDeltas {
    fn push(&self, delta: Delta) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(delta);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use futures::StreamExt as _;
    use serde_json::{Value, json};
    use tokio::time::{Instant, sleep};

    use super::*;

    /// Reads chunks over a connection that stays open. Each chunk arrives after a delay in seconds.
    /// Returns the completion and the number of seconds until it was complete.
    async fn slowly(
        kind: ProviderKind,
        pieces: Vec<(u64, String)>,
    ) -> (Result<Completion, Failure>, u64) {
        let pieces = stream::iter(pieces).then(|(pause, piece)| async move {
            sleep(Duration::from_secs(pause)).await;
            Ok::<_, Infallible>(Bytes::from(piece))
        });
        let body = Body::wrap_stream(pieces.chain(stream::pending()));
        let (reader, began) = (Recorded::new(kind).unwrap(), Instant::now());
        let (read, _) = reader.read_body(body).await;
        (read, began.elapsed().as_secs())
    }

    async fn openai(pieces: Vec<(u64, String)>) -> (Result<Completion, Failure>, u64) {
        slowly(ProviderKind::Openai, pieces).await
    }

    fn event(data: &Value) -> String {
        format!("data: {data}\n\n")
    }

    /// Returns a chunk with a text and an optional finish reason.
    fn words(text: &str, finish: Option<&str>) -> String {
        let choice = json!({ "delta": { "content": text }, "finish_reason": finish });
        event(&json!({ "choices": [choice], "usage": null }))
    }

    fn counted(text: &str) -> String {
        let choice = json!({ "delta": { "content": text }, "finish_reason": "stop" });
        event(&json!({ "choices": [choice], "usage": { "completion_tokens": 1 } }))
    }

    fn stop() -> String {
        event(&json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }))
    }

    fn usage() -> String {
        event(&json!({ "choices": [], "usage": { "completion_tokens": 3 } }))
    }

    fn whole() -> String {
        let choice = json!({ "message": { "content": "hi" }, "finish_reason": "stop" });
        event(&json!({ "choices": [choice], "usage": { "completion_tokens": 3 } }))
    }

    /// A sink that, at each delta, waits for another task of the runtime.
    struct Meeting;

    impl DeltaSink for Meeting {
        fn push(&self, _delta: Delta) {
            let (tell, told) = channel();
            tokio::spawn(async move { tell.send(()) });
            told.recv().unwrap();
        }
    }

    /// The sink waits for a task that needs the only thread of the runtime, so the test would hang
    /// if that thread read the response.
    #[test]
    fn large_responses_are_read_off_the_threads_that_tasks_share() {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        let text = "x".repeat(300 << 10);
        let choice = json!({ "message": { "content": text }, "finish_reason": "stop" });
        let document = json!({ "choices": [choice] }).to_string();
        for body in [document, words(&text, Some("stop"))] {
            let read = runtime.spawn(async move {
                let reader = Recorded::new(ProviderKind::Openai).unwrap();
                reader.read_to(&Meeting, Body::from(body)).await
            });
            assert_eq!(runtime.block_on(read).unwrap().unwrap().text(), text);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn finish_reason_with_every_chunk_does_not_end_the_text() {
        let done = || "data: [DONE]\n\n".to_owned();
        for (one, two) in [
            (counted("One, "), counted("two.")),
            (words("One, ", Some("stop")), words("two.", Some("stop"))),
            (stop(), words("One, two.", None)),
        ] {
            let (read, took) = openai(vec![(30, one), (30, two), (30, done())]).await;
            assert_eq!((read.unwrap().text().as_str(), took), ("One, two.", 90));
        }
        let usage = words("One, ", Some("stop")) + &usage();
        let (read, took) = openai(vec![(0, usage), (30, counted("two.")), (30, done())]).await;
        assert_eq!((read.unwrap().text().as_str(), took), ("One, two.", 60));
    }

    #[tokio::test(start_paused = true)]
    async fn wait_for_the_end_of_a_stream_depends_on_what_may_follow() {
        for (pieces, wait) in [
            (words("hi", None) + &stop(), 15),
            (words("hi", None) + &stop() + &usage(), 2),
            (words("hi", Some("stop")), 60),
            (counted("hi"), 60),
            (whole(), 2),
        ] {
            let (read, took) = openai(vec![(1, pieces.clone())]).await;
            assert_eq!((read.unwrap().text().as_str(), took), ("hi", 1 + wait), "{pieces}");
        }
        let early = event(&json!({ "choices": [], "usage": { "completion_tokens": 1 } }));
        for said in [words("hi", None) + &stop(), early + &words("hi", None) + &stop()] {
            let (read, took) = openai(vec![(0, said.clone()), (10, usage())]).await;
            assert_eq!((read.unwrap().usage.output_tokens, took), (Some(3), 12), "{said}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn keep_alives_do_not_extend_the_wait_after_a_finish_reason() {
        for (said, wait) in [(counted("hi"), 60), (words("hi", None) + &stop(), 15)] {
            let pings = (0..100).map(|_| (7, ": ping\n\n".to_owned()));
            let (read, took) = openai(std::iter::once((0, said)).chain(pings).collect()).await;
            assert_eq!((read.unwrap().text().as_str(), took), ("hi", wait));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn timeout_after_a_meaningless_finish_reason_is_a_failure() {
        for (pieces, why) in [
            (vec![(0, counted("One, ")), (1, counted("two."))], "in the middle of its response"),
            (vec![(1, stop())], "did not respond within"),
        ] {
            let (read, took) = openai(pieces).await;
            let failure = read.unwrap_err();
            assert_eq!((&*failure.code, failure.retryable, took), ("timeout", true, 61));
            assert!(failure.message.contains(why), "{failure}");
        }
    }

    #[tokio::test]
    async fn connection_reset_is_accepted_after_a_final_finish_reason_only() {
        for (said, is_whole) in [
            (words("hi", None) + &stop(), true),
            (counted("hi"), true),
            (counted("One, ") + &counted("two."), false),
            (words("hi", None), false),
            (stop(), false),
        ] {
            let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
            let pieces = [Ok(Bytes::from(said.clone())), Err(reset)];
            let reader = Recorded::new(ProviderKind::Openai).unwrap();
            let (read, _) = reader.read_body(Body::wrap_stream(stream::iter(pieces))).await;
            match read {
                Ok(answer) => assert!(is_whole && answer.text() == "hi", "{said}"),
                Err(failure) => {
                    assert!(!is_whole && failure.retryable, "{said}: {failure}");
                    assert!(failure.message.contains("was cut off"), "{failure}");
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn stop_reason_in_message_start_is_ignored() {
        let begin = json!({ "type": "message_start", "message": {
            "content": [], "stop_reason": "end_turn", "usage": { "input_tokens": 3 } } });
        let delta = json!({ "type": "text_delta", "text": "hi" });
        let delta = json!({ "type": "content_block_delta", "index": 0, "delta": delta });
        let end =
            event(&json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }))
                + &event(&json!({ "type": "message_stop" }));
        let pieces = vec![(0, event(&begin)), (30, event(&delta)), (30, end)];
        let (read, took) = slowly(ProviderKind::Anthropic, pieces).await;
        assert_eq!((read.unwrap().text().as_str(), took), ("hi", 60));
    }
}
