//! One request and its answer over HTTP.
//!
//! An answer comes as one document or as a stream of events, whatever was asked for and announced: its
//! first character tells. What a document or an event means is up to the format, see [`Assembly`].

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

/// Bytes of one answer as they come over the wire: a stream spends hundreds of bytes on a token.
const ANSWER_BYTES: usize = 64 << 20;

/// Longest wait for the end of a stream in which everything was said and counted.
const TAIL_WAIT: Duration = Duration::from_secs(2);

/// Longest wait for the usage of an answer after its end. Some gateways count the tokens only then.
const USAGE_WAIT: Duration = Duration::from_secs(15);

/// The data of the last event of a stream.
const DONE: &str = "[DONE]";

/// What is wrong with documents that mean nothing.
const NO_ANSWER: &str = "it has nothing of an answer in it";

/// Fields in which a document says more of the error that it reports.
const BESIDE: [&str; 7] =
    ["code", "status", "statusCode", "status_code", "message", "detail", "msg"];

/// What some gateways write in front of an answer.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// An answer that is arriving in some format. Every piece is handed on at once.
pub(super) trait Assembly {
    /// Takes an event of a stream, or a whole answer.
    fn take(&mut self, document: &Value) -> Result<(), Broken>;

    /// How much has arrived.
    fn progress(&self) -> Progress;

    /// A number that grows with every piece that carries something.
    fn carried(&self) -> usize;

    /// The answer, now that nothing follows.
    fn reply(self) -> Reply;
}

/// How much of an answer has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// Nothing that belongs to an answer.
    Nothing,
    /// A part, if only an empty one.
    Begun,
    /// A part with a reason to stop that ends nothing: more followed on one, or nothing was said before it. Only the
    /// end of the stream ends the answer.
    GoesOn,
    /// Everything that the model says, if nothing follows. The reason to stop may be the first one of a service that
    /// gives it with every piece, so more may follow as long as the connection is there.
    Open,
    /// Everything that the model says. Its usage may follow.
    Said,
    /// Everything and its usage.
    Counted,
    /// Everything, with the sign for the end of a stream.
    Ended,
}

/// What keeps an answer from being one.
#[derive(Debug, PartialEq)]
pub(super) enum Broken {
    /// The service said so itself, in this error object.
    Error(Value),
    /// It cannot be read.
    Unreadable(String),
    /// The service gave up.
    GaveUp(String),
}

impl Broken {
    /// The error that a document reports in place of an answer, if it does, with what the document says of it in other
    /// fields. Servers of vLLM write that the document itself is an error.
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

/// Whether a field reports an error. Services have one in every piece, in which all is empty, zero or false.
fn is_error(error: &Value) -> bool {
    match error {
        Value::Bool(is_one) => *is_one,
        Value::Number(number) => number.as_u64() != Some(0),
        Value::Array(errors) => errors.iter().any(is_error),
        Value::Object(fields) => fields.values().any(is_error),
        Value::Null | Value::String(_) => says(error),
    }
}

/// Sends a request and reads its answer.
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

/// Reads an answer with a status that is a success.
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

/// An answer with a status that is no success.
async fn refused(provider: &Provider, aim: Aim<'_>, response: Response) -> Fault {
    let (status, headers) = (response.status(), response.headers().clone());
    // Without its words the status still says enough.
    let text = timeout(aim.timeout, response.text()).await.unwrap_or_else(|_| Ok(String::new()));
    fault::answered(provider, aim, status, &headers, &text.unwrap_or_default())
}

/// An answer that is arriving.
struct Arrival<'a, A> {
    provider: &'a Provider,
    aim: Aim<'a>,
    sink: &'a Sink<'a>,
    assembly: A,
    form: Form,
    idle: Idle,
    /// When the last event came that brought the answer on.
    since: Instant,
    /// The last document with words of an error, if nothing of an answer followed.
    complaint: Option<Value>,
}

/// How an answer comes.
enum Form {
    /// Only a byte order mark has come, or white space, which DeepSeek sends while it is busy.
    Unknown,
    /// One JSON document.
    Document(Vec<u8>),
    /// Events.
    Events(Events),
}

impl<A: Assembly> Arrival<'_, A> {
    /// Whether the model has said all that it has to say, as far as is known.
    fn is_finished(&self) -> bool {
        self.assembly.progress() >= Progress::Open
    }

    /// Longest wait for the next bytes. Bytes that only keep the connection alive prolong an answer that goes on, and
    /// not the wait behind one that may be over.
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

    /// What events bring on.
    fn arrived(&self) -> (Progress, usize) {
        (self.assembly.progress(), self.assembly.carried())
    }

    async fn read(mut self, mut response: Response) -> Result<Reply, Fault> {
        let (mut bytes, mut pace) = (0, Pace::new());
        loop {
            let chunk = match timeout(self.wait(), response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                // The reason to stop ended the answer, however the connection ends.
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
            // A document is handed on at its end, and carries nothing before that.
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

    /// Takes bytes; says whether the answer is complete.
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

    /// Takes the data of an event; says whether it was the last one.
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
            Err(error) => Err(self.unreadable(&format!("an event is not json: {error}"))),
        }
    }

    /// Takes a document. Google's streams without events are lists of them.
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
            return Err(self.unreadable(&format!("it says more than {SAID_BYTES} bytes")));
        }
        if self.arrived() != before {
            self.complaint = None;
        } else if fault::words(document).is_some() {
            self.complaint = Some(document.clone());
        }
        Ok(())
    }

    /// The connection ended.
    fn end(mut self) -> Result<Reply, Fault> {
        match std::mem::replace(&mut self.form, Form::Unknown) {
            Form::Unknown => return Err(self.unreadable("it is empty")),
            Form::Document(document) => {
                let document = lenient::read_bytes(&document)
                    .map_err(|error| self.unreadable(&format!("it is not json: {error}")))?;
                self.document(&document)?;
                if self.assembly.progress() == Progress::Nothing {
                    return Err(self.without_answer(NO_ANSWER));
                }
                return Ok(self.assembly.reply());
            }
            Form::Events(mut events) => {
                // A last event without its end may be half of one.
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

    /// Something else than an answer, which begins with this line: words of a gateway, or what a web server sends from
    /// an address that lacks a part of its path.
    fn foreign(&self, line: &str) -> Fault {
        if !line.starts_with('<') {
            let reason = format!("it is neither json nor a stream of events, but says `{line}`");
            return self.unreadable(&reason);
        }
        let address = &self.provider.base_url;
        self.unreadable(&format!(
            "it is neither json nor a stream of events; perhaps there is no model at {address}, so \
             check `base_url` of the provider"
        ))
    }

    /// An answer with nothing of one in it. What a service writes in its place says more than the `reason`.
    fn without_answer(&self, reason: &str) -> Fault {
        let unreadable = || self.unreadable(&format!("{reason}{}", self.complained()));
        self.reported().unwrap_or_else(unreadable)
    }

    /// A stream that ended before the answer did, perhaps because of an `error` of the connection.
    fn cut(&self, error: Option<&reqwest::Error>) -> Fault {
        let cut = || fault::cut(self.provider, self.aim, self.sink, error, &self.complained());
        self.reported().unwrap_or_else(cut)
    }

    /// The error in the place of an answer, if it has the status of one.
    fn reported(&self) -> Option<Fault> {
        let document = self.complaint.as_ref()?;
        fault::status_of(document)?;
        Some(fault::in_stream(self.provider, self.aim, document))
    }

    /// What the service says in the place of an answer, for the end of a sentence.
    fn complained(&self) -> String {
        let words = self.complaint.as_ref().and_then(fault::words);
        words.map(|words| format!("; it says `{words}`")).unwrap_or_default()
    }

    fn unreadable(&self, reason: &str) -> Fault {
        fault::broken(self.provider, self.aim, reason)
    }
}

/// The bytes without those before an answer that are no part of it, however they are cut.
fn without_lead(bytes: &[u8]) -> &[u8] {
    let is_lead = |byte: u8| byte.is_ascii_whitespace() || BYTE_ORDER_MARK.contains(&byte);
    let start = bytes.iter().position(|byte| !is_lead(*byte));
    &bytes[start.unwrap_or(bytes.len())..]
}
