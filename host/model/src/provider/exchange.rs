//! One HTTP request and its response.
//!
//! A response is one JSON document or a stream of server-sent events. The first character of the
//! response decides which of the two it is, independently of the request and of `content-type`. A
//! [`ResponseBuilder`] interprets the document or the data of the events in the format of the
//! provider.

use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::json::bounded::JsonError;
use wattle_run::json::lenient;
use wattle_run::service_memory::ResponseMemory;

use crate::provider::body_format::BodyFormat;
use crate::provider::compression;
use crate::provider::error::{self, ProviderError};
use crate::provider::event_data::{self, DONE_MARKER};
use crate::provider::idle::IdleCounter;
use crate::provider::left_out::LeftOutLog;
use crate::provider::provider_state::has_content;
use crate::provider::service::Service;
use crate::provider::throttle::{MAX_OUTPUT_BYTES, Throttle};
use crate::provider::turn_response::TurnResponse;
use crate::provider::{AttemptSpec, Provider};
use crate::sink::CallSink;

/// Maximum bytes that are read of a response with an error status. The message of an error has
/// about one sentence.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Maximum wait for the end of a stream after the output and its usage.
const STREAM_END_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum wait for the usage after the output. Some gateways count the tokens only after the
/// output.
const USAGE_TIMEOUT: Duration = Duration::from_secs(15);

/// The reason why a response without output is malformed.
const NO_COMPLETION: &str = "it contains no completion";

/// Maximum characters that are kept of an event that is left out.
const MAX_SKIPPED_CHARS: usize = 200;

/// Fields next to an `error` that describe it further.
const ERROR_FIELDS: [&str; 7] =
    ["code", "status", "statusCode", "status_code", "message", "detail", "msg"];

/// Assembles a response in the format of one kind of provider. Emits each delta as it arrives.
pub(super) trait ResponseBuilder: Send {
    /// Adds the data of an event, or an unstreamed response.
    fn push(&mut self, document: &Value) -> Result<(), ResponseError>;

    /// Returns how much of the response has arrived.
    fn progress(&self) -> Progress;

    /// Returns the size of the output so far in bytes. It grows with every event that has output.
    fn total_bytes(&self) -> usize;

    /// Returns the parsed response. Called once, at the end of the response.
    fn build(self) -> TurnResponse;
}

/// How much of a response has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// No part of a completion has arrived.
    Nothing,
    /// A part of a completion, which may be empty.
    Started,
    /// A part and a finish reason that may not be final, because output followed it or no output
    /// preceded it. Only the end of the stream ends the completion.
    FinishIgnored,
    /// All output, if nothing follows. The service may send a finish reason with every chunk, so
    /// more output may follow while the connection is open.
    MaybeFinished,
    /// All output. The usage of the completion may follow.
    Finished,
    /// All output and the usage of the completion.
    UsageReceived,
    /// All output. The service has marked the end of the stream.
    StreamEnded,
}

/// Why a document is not part of a completion.
#[derive(Debug, PartialEq)]
pub(super) enum ResponseError {
    /// The service reported this error object.
    Reported(Value),
    /// The document is malformed or exceeds a limit.
    Malformed(String),
    /// The service stopped before the completion was finished, for this reason.
    Stopped(String),
}

impl ResponseError {
    /// Returns an error if a document reports an error instead of output. The error includes other
    /// fields of the document that describe it. vLLM sends the error object itself as the document.
    pub(super) fn check_reported(document: &Value) -> Result<(), Self> {
        if let Some(error) = document.get("error").filter(|error| is_error(error)) {
            let mut report = json!({ "error": error });
            for name in ERROR_FIELDS {
                let beside = document.get(name).filter(|it| it.is_string() || it.is_number());
                if let Some(beside) = beside {
                    report[name] = beside.clone();
                }
            }
            return Err(Self::Reported(report));
        }
        if ["object", "type"].iter().any(|field| document[*field] == "error") {
            return Err(Self::Reported(json!({ "error": document })));
        }
        Ok(())
    }
}

/// Returns whether a field reports an error. Some services send the field with every chunk, with
/// empty, zero or false values.
fn is_error(error: &Value) -> bool {
    match error {
        Value::Bool(is_one) => *is_one,
        Value::Number(number) => number.as_u64() != Some(0),
        Value::Array(errors) => errors.iter().any(is_error),
        Value::Object(fields) => fields.values().any(is_error),
        Value::Null | Value::String(_) => has_content(error),
    }
}

/// Sends a request and reads its response.
pub(super) async fn send(
    provider: &Provider,
    spec: AttemptSpec<'_>,
    sink: &CallSink<'_>,
    request: RequestBuilder,
) -> Result<TurnResponse, ProviderError> {
    let streams = provider.wants_stream(sink);
    let accept = if streams { "text/event-stream, application/json" } else { "application/json" };
    let request = request.header(ACCEPT, accept);
    let exchange = async {
        let response = match timeout(spec.timeout, request.send()).await {
            Err(_) => return Err(error::timed_out(&provider.service, spec)),
            Ok(Err(error)) => return Err(error::send_failed(&provider.service, spec, &error)),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if !status.is_success() {
            return Err(read_error(&provider.service, spec, response).await);
        }
        provider.read_response(spec, sink, response).await
    };
    if streams {
        return exchange.await;
    }
    timeout(spec.timeout, exchange)
        .await
        .unwrap_or_else(|_| Err(error::timed_out(&provider.service, spec)))
}

/// Reads a response with a success status. `left_out` logs events that are left out.
pub(super) async fn read<A: ResponseBuilder>(
    service: &Service,
    left_out: &LeftOutLog,
    spec: AttemptSpec<'_>,
    sink: &CallSink<'_>,
    response: Response,
    builder: A,
) -> Result<TurnResponse, ProviderError> {
    let (format, idle, last_progress) =
        (BodyFormat::Unknown, IdleCounter::default(), Instant::now());
    ResponseReader {
        service,
        left_out,
        spec,
        sink,
        builder,
        coding: compression::coding(response.headers()),
        format,
        memory: spec.response_memory(),
        idle,
        last_progress,
        error_document: None,
        skipped_text: None,
    }
    .read(response)
    .await
}

/// Reads a response with a status that is no success.
async fn read_error(
    service: &Service,
    spec: AttemptSpec<'_>,
    mut response: Response,
) -> ProviderError {
    let (status, headers) = (response.status(), response.headers().clone());
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ERROR_BYTES {
                body.truncate(MAX_ERROR_BYTES);
                break;
            }
        }
    };
    // If the message cannot be read completely, the error still has the status.
    let _ = timeout(spec.timeout, read).await;
    error::from_status(service, spec, status, &headers, &String::from_utf8_lossy(&body))
}

/// A response that is being read.
struct ResponseReader<'a, A> {
    service: &'a Service,
    left_out: &'a LeftOutLog,
    spec: AttemptSpec<'a>,
    sink: &'a CallSink<'a>,
    builder: A,
    /// The content coding of the response, if it compresses.
    coding: Option<String>,
    format: BodyFormat,
    memory: ResponseMemory,
    idle: IdleCounter,
    /// The time of the last event that advanced the response.
    last_progress: Instant,
    /// The last document with an error message, unless output followed.
    error_document: Option<Value>,
    /// The start of the last event that was left out, unless output followed.
    skipped_text: Option<String>,
}

impl<A: ResponseBuilder> ResponseReader<'_, A> {
    /// Returns whether the output may be complete.
    fn is_finished(&self) -> bool {
        self.builder.progress() >= Progress::MaybeFinished
    }

    /// Returns the maximum wait for the next bytes. A keep-alive extends the wait for further
    /// output, but not the wait after output that may be complete.
    fn read_timeout(&self) -> Duration {
        let longest = self.spec.timeout;
        let wait = match self.builder.progress() {
            Progress::Nothing | Progress::Started | Progress::FinishIgnored => return longest,
            Progress::MaybeFinished => longest,
            Progress::Finished => USAGE_TIMEOUT.min(longest),
            Progress::UsageReceived | Progress::StreamEnded => STREAM_END_TIMEOUT.min(longest),
        };
        wait.saturating_sub(self.last_progress.elapsed())
    }

    /// Returns the progress and the size of the output, which an event with content changes.
    fn received(&self) -> (Progress, usize) {
        (self.builder.progress(), self.builder.total_bytes())
    }

    async fn read(mut self, mut response: Response) -> Result<TurnResponse, ProviderError> {
        let (mut bytes, mut throttle) = (0, Throttle::new());
        loop {
            let chunk = match timeout(self.read_timeout(), response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                // After a finish reason, the completion is complete even if the connection ends
                // with an error.
                Err(_) | Ok(Err(_)) if self.is_finished() => break,
                Err(_) => {
                    return Err(error::stream_stalled(
                        self.service,
                        self.spec,
                        self.sink.has_emitted(),
                    ));
                }
                Ok(Err(error)) => return Err(self.closed_early(Some(&error))),
            };
            bytes += chunk.len();
            let most = self.format.max_bytes();
            if bytes > most {
                let reason = format!("it has more than {most} bytes");
                return Err(self.malformed(&reason));
            }
            self.idle.add_bytes(chunk.len());
            self.count_memory(chunk.len())?;
            let events = self.format.feed(&chunk);
            let is_long = is_long_parse(events.iter().map(String::len).sum());
            let owner = self.spec.owner();
            if block_in_place_in_turn(owner, is_long, || self.push_events(&events)).await? {
                return Ok(self.builder.build());
            }
            // A document is parsed only when it is complete and yields no output before that, so
            // the limits on idle streams do not apply to it.
            if matches!(self.format, BodyFormat::Document(_)) {
                continue;
            }
            throttle.consume(chunk.len()).await;
            if let Some(reason) = self.idle.exceeded_limit() {
                return if self.is_finished() {
                    Ok(self.builder.build())
                } else {
                    Err(self.malformed(&reason))
                };
            }
        }
        let format = std::mem::replace(&mut self.format, BodyFormat::Unknown);
        let is_long = is_long_parse(format.pending_bytes());
        block_in_place_in_turn(self.spec.owner(), is_long, move || self.finish(format)).await
    }

    /// Counts the memory of the response with a further chunk: what is not parsed yet, and the
    /// output so far.
    fn count_memory(&mut self, chunk_bytes: usize) -> Result<(), ProviderError> {
        let bytes = self.format.pending_bytes() + self.builder.total_bytes() + chunk_bytes;
        let counted = self.memory.set(bytes as u64);
        counted.map_err(|full| error::without_memory(self.service, self.spec, full))
    }

    /// Adds the data of events. Returns whether the response is complete.
    fn push_events(&mut self, events: &[String]) -> Result<bool, ProviderError> {
        for data in events {
            let before = self.received();
            if self.push_event(data)? {
                return Ok(true);
            }
            let after = self.received();
            self.idle.add_event(after.1 > before.1);
            if after != before {
                self.last_progress = Instant::now();
            }
        }
        Ok(false)
    }

    /// Adds the data of an event. Returns whether the event was the last one.
    fn push_event(&mut self, data: &str) -> Result<bool, ProviderError> {
        let data = data.trim();
        if data == DONE_MARKER {
            return if self.builder.progress() > Progress::Nothing {
                Ok(true)
            } else {
                Err(self.no_completion("it is empty"))
            };
        }
        if data.is_empty() {
            return Ok(false);
        }
        let error = match lenient::parse(data) {
            Ok(document) => return self.push_event_document(&document),
            Err(error) => error,
        };
        if matches!(error, JsonError::Syntax(_)) {
            if let Some(lines) = event_data::separate_lines(data) {
                return self.push_lines(&lines);
            }
            if !event_data::has_document(data) {
                self.skip_event(data);
                return Ok(false);
            }
        }
        if self.is_finished() {
            return Ok(false);
        }
        Err(self.malformed(&format!("an event cannot be read: {error}")))
    }

    /// Adds the lines of an event as events. Returns whether one of them was the last one.
    fn push_lines(&mut self, lines: &[&str]) -> Result<bool, ProviderError> {
        for line in lines {
            if self.push_event(line)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Leaves out an event that is not JSON.
    fn skip_event(&mut self, data: &str) {
        let text: String = data.chars().take(MAX_SKIPPED_CHARS).collect();
        self.left_out.log_event(&self.service.redact(&text));
        self.skipped_text = Some(text);
    }

    /// Adds the data of the last event if the empty line after the event is missing. Data that is
    /// not JSON may be incomplete, and is ignored. Returns whether the event ends the stream.
    fn push_last_event(&mut self, data: &str) -> Result<bool, ProviderError> {
        let data = data.trim();
        if data == DONE_MARKER {
            return self.push_event(data);
        }
        match lenient::parse(data) {
            Ok(document) => self.push_event_document(&document),
            Err(JsonError::Limit(exceeded)) if !self.is_finished() => {
                Err(self.malformed(&format!("an event cannot be read: {exceeded}")))
            }
            Err(_) => match event_data::separate_lines(data) {
                Some(lines) => self.push_lines(&lines),
                None => Ok(false),
            },
        }
    }

    /// Adds the document of an event. Returns whether the event was the last one.
    fn push_event_document(&mut self, document: &Value) -> Result<bool, ProviderError> {
        self.push_document(document)?;
        Ok(self.builder.progress() == Progress::StreamEnded)
    }

    /// Adds a document. Google sends a stream without server-sent events as one array of documents.
    fn push_document(&mut self, document: &Value) -> Result<(), ProviderError> {
        if let Value::Array(documents) = document {
            return documents.iter().try_for_each(|document| self.push_document(document));
        }
        let before = self.received();
        self.builder.push(document).map_err(|broken| match broken {
            ResponseError::Reported(body) => {
                error::reported_in_response(self.service, self.spec, &body)
            }
            ResponseError::Malformed(reason) => self.malformed(&reason),
            ResponseError::Stopped(reason) => {
                error::stopped_by_service(self.service, self.spec, &reason)
            }
        })?;
        if self.builder.total_bytes() > MAX_OUTPUT_BYTES {
            return Err(
                self.malformed(&format!("its output has more than {MAX_OUTPUT_BYTES} bytes"))
            );
        }
        if self.received() != before {
            self.error_document = None;
            self.skipped_text = None;
        } else if error::error_message(document).is_some() {
            self.error_document = Some(document.clone());
        }
        Ok(())
    }

    /// Finishes the response when the connection has ended.
    fn finish(mut self, format: BodyFormat) -> Result<TurnResponse, ProviderError> {
        match format {
            BodyFormat::Unknown => return Err(self.malformed("it is empty")),
            BodyFormat::Document(document) => {
                let parsed = lenient::parse_bytes(&document)
                    .map_err(|error| self.unreadable(&document, &error.to_string()));
                drop(document);
                let document = parsed?;
                self.push_document(&document)?;
                if self.builder.progress() == Progress::Nothing {
                    return Err(self.no_completion(NO_COMPLETION));
                }
                return Ok(self.builder.build());
            }
            BodyFormat::Events(mut events) => {
                // A last event without an empty line after it may be incomplete.
                if let Some(data) = events.finish()
                    && self.push_last_event(&data)?
                {
                    return Ok(self.builder.build());
                }
                if let Some(line) = events.non_event_line()
                    && self.error_document.is_none()
                    && self.builder.progress() == Progress::Nothing
                {
                    return Err(self.unknown_format(line));
                }
            }
        }
        match self.builder.progress() {
            Progress::Nothing => Err(self.no_completion(NO_COMPLETION)),
            Progress::Started => Err(self.closed_early(None)),
            _ => Ok(self.builder.build()),
        }
    }

    /// Returns the error for a response that is neither JSON nor a stream of events. `line` is its
    /// first line: a message of a gateway, or the page of a web server if the base URL lacks a part
    /// of its path.
    fn unknown_format(&self, line: &str) -> ProviderError {
        if !line.starts_with('<') {
            let reason = format!("it is neither JSON nor a stream of events, but says `{line}`");
            return self.unreadable(line.as_bytes(), &reason);
        }
        let address = &self.service.base_url;
        self.malformed(&format!(
            "it is neither JSON nor a stream of events; perhaps there is no model at {address}, so \
             check `base_url` of the provider"
        ))
    }

    /// Returns the error for a response without output. A message of the service replaces `reason`,
    /// which is less specific.
    fn no_completion(&self, reason: &str) -> ProviderError {
        let unreadable = || self.malformed(&format!("{reason}{}", self.reported_message()));
        self.reported_error().unwrap_or_else(unreadable)
    }

    /// Returns the error for a stream that ended early, perhaps with an `error` of the connection.
    fn closed_early(&self, error: Option<&reqwest::Error>) -> ProviderError {
        let cut = || {
            error::stream_closed(
                self.service,
                self.spec,
                self.sink,
                error,
                &self.reported_message(),
            )
        };
        self.reported_error().unwrap_or_else(cut)
    }

    /// Returns the error that the service sent in place of output, if it has a status.
    fn reported_error(&self) -> Option<ProviderError> {
        let document = self.error_document.as_ref()?;
        error::status_of(document)?;
        Some(error::reported_in_response(self.service, self.spec, document))
    }

    /// Returns the message that the service sent in place of output, as the end of a sentence.
    fn reported_message(&self) -> String {
        let words = self.error_document.as_ref().and_then(error::error_message);
        let words = words.or(self.skipped_text.as_deref());
        words.map(|words| format!("; it says `{words}`")).unwrap_or_default()
    }

    /// Returns the error for a response that cannot be read, because it is compressed or else for
    /// `reason`. `start` is the start of the response.
    fn unreadable(&self, start: &[u8], reason: &str) -> ProviderError {
        match &self.coding {
            Some(coding) if compression::is_binary(start) => {
                error::compressed_response(self.service, self.spec, coding)
            }
            _ => self.malformed(reason),
        }
    }

    fn malformed(&self, reason: &str) -> ProviderError {
        error::malformed_response(self.service, self.spec, reason)
    }
}
