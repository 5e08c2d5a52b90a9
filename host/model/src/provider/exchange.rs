//! One HTTP request and its response.
//!
//! A response is one JSON document or a stream of server-sent events. Its first character decides which, whatever was
//! requested and whatever `content-type` says. An [`Assembly`] interprets the document or the data of the events in the
//! format of the provider.

use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use wattle_run::json::lenient;

use crate::provider::fault::{self, Fault};
use crate::provider::idle::Idle;
use crate::provider::pace::{Pace, SAID_BYTES};
use crate::provider::reply::Reply;
use crate::provider::sse::Events;
use crate::provider::state::says;
use crate::provider::{Aim, Provider};
use crate::sink::Sink;

/// Maximum bytes of one response. A stream takes hundreds of bytes for a token.
const ANSWER_BYTES: usize = 64 << 20;

/// Maximum wait for the end of a stream after the output and its usage.
const TAIL_WAIT: Duration = Duration::from_secs(2);

/// Maximum wait for the usage after the output. Some gateways count tokens only then.
const USAGE_WAIT: Duration = Duration::from_secs(15);

/// The data of the last event of a stream.
const DONE: &str = "[DONE]";

/// The reason for a response without output.
const NO_ANSWER: &str = "it contains no completion";

/// Fields next to an `error` that describe it further.
const BESIDE: [&str; 7] =
    ["code", "status", "statusCode", "status_code", "message", "detail", "msg"];

/// The byte order mark that some gateways send first.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Assembles a response in the format of one kind of provider. Emits each delta as it arrives.
pub(super) trait Assembly {
    /// Adds the data of an event, or an unstreamed response.
    fn take(&mut self, document: &Value) -> Result<(), Broken>;

    /// Returns how much has arrived.
    fn progress(&self) -> Progress;

    /// Returns the size of the output so far in bytes. It grows with every event that has output.
    fn carried(&self) -> usize;

    /// Returns the parsed response. Called once, at the end of the response.
    fn reply(self) -> Reply;
}

/// How much of a response has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// No part of a completion.
    Nothing,
    /// A part, perhaps an empty one.
    Begun,
    /// A part with a finish reason that is not final: output followed it, or none preceded it. Only the end of the
    /// stream ends the completion.
    GoesOn,
    /// All output, if nothing follows. The service may send a finish reason with every chunk, so more output may follow
    /// while the connection is open.
    Open,
    /// All output. Its usage may follow.
    Said,
    /// All output and its usage.
    Counted,
    /// All output. The service has marked the end of the stream.
    Ended,
}

/// Why a document is not part of a completion.
#[derive(Debug, PartialEq)]
pub(super) enum Broken {
    /// The service reported this error object.
    Error(Value),
    /// The document is malformed or exceeds a limit.
    Unreadable(String),
    /// The service stopped before the completion was finished, for this reason.
    GaveUp(String),
}

impl Broken {
    /// Returns an error if a document reports one instead of output. The error includes other fields of the document
    /// that describe it. vLLM sends the error object itself as the document.
    pub(super) fn reported(document: &Value) -> Result<(), Self> {
        if let Some(error) = document.get("error").filter(|error| is_error(error)) {
            let mut report = json!({ "error": error });
            for name in BESIDE {
                let beside = document.get(name).filter(|it| it.is_string() || it.is_number());
                if let Some(beside) = beside {
                    report[name] = beside.clone();
                }
            }
            return Err(Self::Error(report));
        }
        if ["object", "type"].iter().any(|field| document[*field] == "error") {
            return Err(Self::Error(json!({ "error": document })));
        }
        Ok(())
    }
}

/// Returns whether a field reports an error. Some services send the field with every chunk, with empty, zero or false
/// values.
fn is_error(error: &Value) -> bool {
    match error {
        Value::Bool(is_one) => *is_one,
        Value::Number(number) => number.as_u64() != Some(0),
        Value::Array(errors) => errors.iter().any(is_error),
        Value::Object(fields) => fields.values().any(is_error),
        Value::Null | Value::String(_) => says(error),
    }
}

/// Sends a request and reads its response.
pub(super) async fn send(
    provider: &Provider,
    aim: Aim<'_>,
    sink: &Sink<'_>,
    request: RequestBuilder,
) -> Result<Reply, Fault> {
    let streams = provider.streams(sink);
    let accept = if streams { "text/event-stream, application/json" } else { "application/json" };
    let request = request.header(ACCEPT, accept);
    let answer = async {
        let response = match timeout(aim.timeout, request.send()).await {
            Err(_) => return Err(fault::timeout(provider, aim)),
            Ok(Err(error)) => return Err(fault::unsent(provider, aim, &error)),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if !status.is_success() {
            return Err(refused(provider, aim, response).await);
        }
        provider.read(aim, sink, response).await
    };
    if streams {
        return answer.await;
    }
    timeout(aim.timeout, answer).await.unwrap_or_else(|_| Err(fault::timeout(provider, aim)))
}

/// Reads a response with a success status.
pub(super) async fn read<A: Assembly>(
    provider: &Provider,
    aim: Aim<'_>,
    sink: &Sink<'_>,
    response: Response,
    assembly: A,
) -> Result<Reply, Fault> {
    let (form, idle, since) = (Form::Unknown, Idle::default(), Instant::now());
    Arrival { provider, aim, sink, assembly, form, idle, since, complaint: None }
        .read(response)
        .await
}

/// Reads a response with a status that is no success.
async fn refused(provider: &Provider, aim: Aim<'_>, response: Response) -> Fault {
    let (status, headers) = (response.status(), response.headers().clone());
    // Without the message, the status is still informative.
    let text = timeout(aim.timeout, response.text()).await.unwrap_or_else(|_| Ok(String::new()));
    fault::answered(provider, aim, status, &headers, &text.unwrap_or_default())
}

/// A response that is being read.
struct Arrival<'a, A> {
    provider: &'a Provider,
    aim: Aim<'a>,
    sink: &'a Sink<'a>,
    assembly: A,
    form: Form,
    idle: Idle,
    /// The time of the last event that advanced the response.
    since: Instant,
    /// The last document with an error message, unless output followed.
    complaint: Option<Value>,
}

/// The form of a response.
enum Form {
    /// Unknown: so far only a byte order mark, or white space, which DeepSeek sends while it is busy.
    Unknown,
    /// One JSON document.
    Document(Vec<u8>),
    /// Server-sent events.
    Events(Events),
}

impl<A: Assembly> Arrival<'_, A> {
    /// Returns whether the output may be complete.
    fn is_finished(&self) -> bool {
        self.assembly.progress() >= Progress::Open
    }

    /// Returns the maximum wait for the next bytes. Keep-alives extend the wait for more output, but not the wait after
    /// output that may be complete.
    fn wait(&self) -> Duration {
        let longest = self.aim.timeout;
        let wait = match self.assembly.progress() {
            Progress::Nothing | Progress::Begun | Progress::GoesOn => return longest,
            Progress::Open => longest,
            Progress::Said => USAGE_WAIT.min(longest),
            Progress::Counted | Progress::Ended => TAIL_WAIT.min(longest),
        };
        wait.saturating_sub(self.since.elapsed())
    }

    /// Returns the progress and the size of the output, which an event with content changes.
    fn arrived(&self) -> (Progress, usize) {
        (self.assembly.progress(), self.assembly.carried())
    }

    async fn read(mut self, mut response: Response) -> Result<Reply, Fault> {
        let (mut bytes, mut pace) = (0, Pace::new());
        loop {
            let chunk = match timeout(self.wait(), response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                // After a finish reason the completion is complete, however the connection ends.
                Err(_) | Ok(Err(_)) if self.is_finished() => break,
                Err(_) => return Err(fault::stalled(self.provider, self.aim, self.sink.begun())),
                Ok(Err(error)) => return Err(self.cut(Some(&error))),
            };
            bytes += chunk.len();
            if bytes > ANSWER_BYTES {
                let reason = format!("it has more than {ANSWER_BYTES} bytes");
                return Err(self.unreadable(&reason));
            }
            self.idle.bytes(chunk.len());
            if self.take(&chunk)? {
                return Ok(self.assembly.reply());
            }
            // A document is parsed when it is complete and has no output before, so the limits on idle streams do not
            // apply.
            if matches!(self.form, Form::Document(_)) {
                continue;
            }
            pace.keep(chunk.len()).await;
            if let Some(reason) = self.idle.excess() {
                return if self.is_finished() {
                    Ok(self.assembly.reply())
                } else {
                    Err(self.unreadable(&reason))
                };
            }
        }
        self.end()
    }

    /// Adds a chunk. Returns whether the response is complete.
    fn take(&mut self, mut chunk: &[u8]) -> Result<bool, Fault> {
        if let Form::Unknown = self.form {
            chunk = without_lead(chunk);
            match chunk.first() {
                None => return Ok(false),
                Some(b'{' | b'[') => self.form = Form::Document(Vec::new()),
                Some(_) => self.form = Form::Events(Events::default()),
            }
        }
        match &mut self.form {
            Form::Document(document) => {
                document.extend_from_slice(chunk);
                Ok(false)
            }
            Form::Events(events) => {
                let events = events.feed(chunk);
                for data in events {
                    let before = self.arrived();
                    if self.event(&data)? {
                        return Ok(true);
                    }
                    let after = self.arrived();
                    self.idle.event(after.1 > before.1);
                    if after != before {
                        self.since = Instant::now();
                    }
                }
                Ok(false)
            }
            Form::Unknown => Ok(false),
        }
    }

    /// Adds the data of an event. Returns whether it was the last one.
    fn event(&mut self, data: &str) -> Result<bool, Fault> {
        let data = data.trim();
        if data == DONE {
            return if self.assembly.progress() > Progress::Nothing {
                Ok(true)
            } else {
                Err(self.without_answer("it is empty"))
            };
        }
        if data.is_empty() {
            return Ok(false);
        }
        match lenient::read(data) {
            Ok(document) => {
                self.document(&document)?;
                Ok(self.assembly.progress() == Progress::Ended)
            }
            Err(_) if self.is_finished() => Ok(false),
            Err(error) => Err(self.unreadable(&format!("an event is not JSON: {error}"))),
        }
    }

    /// Adds a document. Google sends a stream without server-sent events as one array of documents.
    fn document(&mut self, document: &Value) -> Result<(), Fault> {
        if let Value::Array(documents) = document {
            return documents.iter().try_for_each(|document| self.document(document));
        }
        let before = self.arrived();
        self.assembly.take(document).map_err(|broken| match broken {
            Broken::Error(body) => fault::in_stream(self.provider, self.aim, &body),
            Broken::Unreadable(reason) => self.unreadable(&reason),
            Broken::GaveUp(reason) => fault::gave_up(self.provider, self.aim, &reason),
        })?;
        if self.assembly.carried() > SAID_BYTES {
            return Err(self.unreadable(&format!("its output has more than {SAID_BYTES} bytes")));
        }
        if self.arrived() != before {
            self.complaint = None;
        } else if fault::words(document).is_some() {
            self.complaint = Some(document.clone());
        }
        Ok(())
    }

    /// Finishes the response when the connection has ended.
    fn end(mut self) -> Result<Reply, Fault> {
        match std::mem::replace(&mut self.form, Form::Unknown) {
            Form::Unknown => return Err(self.unreadable("it is empty")),
            Form::Document(document) => {
                let document = lenient::read_bytes(&document)
                    .map_err(|error| self.unreadable(&format!("it is not JSON: {error}")))?;
                self.document(&document)?;
                if self.assembly.progress() == Progress::Nothing {
                    return Err(self.without_answer(NO_ANSWER));
                }
                return Ok(self.assembly.reply());
            }
            Form::Events(mut events) => {
                // A last event without its empty line may be incomplete.
                if let Some(data) = events.end()
                    && (data.trim() == DONE || lenient::read(&data).is_ok())
                    && self.event(&data)?
                {
                    return Ok(self.assembly.reply());
                }
                if let Some(line) = events.foreign()
                    && self.complaint.is_none()
                    && self.assembly.progress() == Progress::Nothing
                {
                    return Err(self.foreign(line));
                }
            }
        }
        match self.assembly.progress() {
            Progress::Nothing => Err(self.without_answer(NO_ANSWER)),
            Progress::Begun => Err(self.cut(None)),
            _ => Ok(self.assembly.reply()),
        }
    }

    /// Returns the error for a response that is neither JSON nor a stream of events. `line` is its first line: a
    /// message of a gateway, or the page of a web server if the base URL lacks a part of its path.
    fn foreign(&self, line: &str) -> Fault {
        if !line.starts_with('<') {
            let reason = format!("it is neither JSON nor a stream of events, but says `{line}`");
            return self.unreadable(&reason);
        }
        let address = &self.provider.base_url;
        self.unreadable(&format!(
            "it is neither JSON nor a stream of events; perhaps there is no model at {address}, so \
             check `base_url` of the provider"
        ))
    }

    /// Returns the error for a response without output. A message of the service replaces `reason`, which is less
    /// specific.
    fn without_answer(&self, reason: &str) -> Fault {
        let unreadable = || self.unreadable(&format!("{reason}{}", self.complained()));
        self.reported().unwrap_or_else(unreadable)
    }

    /// Returns the error for a stream that ended early, perhaps with an `error` of the connection.
    fn cut(&self, error: Option<&reqwest::Error>) -> Fault {
        let cut = || fault::cut(self.provider, self.aim, self.sink, error, &self.complained());
        self.reported().unwrap_or_else(cut)
    }

    /// Returns the error that the service sent in place of output, if it has a status.
    fn reported(&self) -> Option<Fault> {
        let document = self.complaint.as_ref()?;
        fault::status_of(document)?;
        Some(fault::in_stream(self.provider, self.aim, document))
    }

    /// Returns the message that the service sent in place of output, as the end of a sentence.
    fn complained(&self) -> String {
        let words = self.complaint.as_ref().and_then(fault::words);
        words.map(|words| format!("; it says `{words}`")).unwrap_or_default()
    }

    fn unreadable(&self, reason: &str) -> Fault {
        fault::broken(self.provider, self.aim, reason)
    }
}

/// Returns the bytes without leading white space and byte order mark. Each byte of the mark may come in a chunk of its
/// own.
fn without_lead(bytes: &[u8]) -> &[u8] {
    let is_lead = |byte: u8| byte.is_ascii_whitespace() || BYTE_ORDER_MARK.contains(&byte);
    let start = bytes.iter().position(|byte| !is_lead(*byte));
    &bytes[start.unwrap_or(bytes.len())..]
}
