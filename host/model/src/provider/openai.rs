//! OpenAI's chat completions, and what others made of them.
//!
//! This is a client of our own, because services that speak this format differ most in what they
//! stream: see `assemble` for the pieces and `calls` for requests for tools.

mod assemble;
mod body;
mod calls;
mod think;

use std::time::Duration;

use reqwest::Response;
use reqwest::header::ACCEPT;
use serde_json::Value;
use tokio::time::timeout;

use crate::provider::fault::{self, Fault};
use crate::provider::idle::Idle;
use crate::provider::openai::assemble::{Assembly, Broken};
use crate::provider::pace::{Pace, SAID_BYTES};
use crate::provider::reply::Reply;
use crate::provider::sse::Events;
use crate::provider::{Aim, Ask, Provider};
use crate::sink::Sink;

/// Bytes of one answer as they come over the wire: a stream spends hundreds of bytes on a token.
const ANSWER_BYTES: usize = 64 << 20;

/// Longest wait for what may follow the end of an answer, such as the usage.
const TAIL_WAIT: Duration = Duration::from_secs(2);

/// The data of the last event of a stream.
const DONE: &str = "[DONE]";

/// One request.
pub(super) async fn ask(
    provider: &Provider,
    aim: Aim<'_>,
    ask: &Ask<'_>,
    sink: &Sink<'_>,
) -> Result<Reply, Fault> {
    let stream = provider.streams();
    let accept = if stream { "text/event-stream, application/json" } else { "application/json" };
    let mut request = provider
        .http()
        .post(provider.url("chat/completions"))
        .header(ACCEPT, accept)
        .json(&body::body(ask, aim.model, stream));
    if let Some(key) = provider.key() {
        request = request.bearer_auth(key);
    }
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
        read(provider, aim, sink, response).await
    };
    if stream {
        return answer.await;
    }
    timeout(aim.timeout, answer).await.unwrap_or_else(|_| Err(fault::timeout(provider, aim)))
}

/// Reads an answer with a status that is a success.
pub(crate) async fn read(
    provider: &Provider,
    aim: Aim<'_>,
    sink: &Sink<'_>,
    response: Response,
) -> Result<Reply, Fault> {
    Arrival::new(provider, aim, sink).read(response).await
}

/// An answer with a status that is no success.
async fn refused(provider: &Provider, aim: Aim<'_>, response: Response) -> Fault {
    let (status, headers) = (response.status(), response.headers().clone());
    // Without its words the status still says enough.
    let text = timeout(aim.timeout, response.text()).await.unwrap_or_else(|_| Ok(String::new()));
    fault::answered(provider, aim, status, &headers, &text.unwrap_or_default())
}

/// An answer that is arriving.
struct Arrival<'a> {
    provider: &'a Provider,
    aim: Aim<'a>,
    sink: &'a Sink<'a>,
    assembly: Assembly<'a>,
    form: Form,
    idle: Idle,
}

/// How an answer comes. Its first character tells, whatever was asked for and announced.
enum Form {
    /// Only white space has come, which DeepSeek sends while it is busy.
    Unknown,
    /// One JSON document.
    Document(Vec<u8>),
    /// Events.
    Events(Events),
}

impl<'a> Arrival<'a> {
    fn new(provider: &'a Provider, aim: Aim<'a>, sink: &'a Sink<'a>) -> Self {
        let assembly = Assembly::new(aim.model, sink);
        Self { provider, aim, sink, assembly, form: Form::Unknown, idle: Idle::default() }
    }

    async fn read(mut self, mut response: Response) -> Result<Reply, Fault> {
        let (mut bytes, mut pace) = (0, Pace::new());
        loop {
            let finished = self.assembly.finished();
            let wait = if finished { TAIL_WAIT.min(self.aim.timeout) } else { self.aim.timeout };
            let chunk = match timeout(wait, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                // All was said; only the connection did not end well.
                Err(_) | Ok(Err(_)) if finished => break,
                Err(_) => return Err(fault::stalled(self.provider, self.aim, self.sink.begun())),
                Ok(Err(error)) => {
                    return Err(fault::cut(self.provider, self.aim, self.sink, Some(&error)));
                }
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
                let finished = self.assembly.finished();
                return if finished {
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
            // However the bytes are cut, white space before the answer is no part of it.
            chunk = chunk.trim_ascii_start();
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
                    let before = self.assembly.carried();
                    if self.event(&data)? {
                        return Ok(true);
                    }
                    self.idle.event(self.assembly.carried() > before);
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
            return if self.assembly.seen() {
                Ok(true)
            } else {
                Err(self.unreadable("it is empty"))
            };
        }
        if data.is_empty() {
            return Ok(false);
        }
        match serde_json::from_str(data) {
            Ok(chunk) => self.chunk(&chunk).map(|()| false),
            Err(_) if self.assembly.finished() => Ok(false),
            Err(error) => Err(self.unreadable(&format!("an event is not json: {error}"))),
        }
    }

    fn chunk(&mut self, chunk: &Value) -> Result<(), Fault> {
        self.assembly.take(chunk).map_err(|broken| match broken {
            Broken::Error(body) => fault::in_stream(self.provider, self.aim, &body),
            Broken::Unreadable(reason) => self.unreadable(&reason),
            Broken::GaveUp(reason) => fault::gave_up(self.provider, self.aim, &reason),
        })?;
        if self.assembly.carried() > SAID_BYTES {
            return Err(self.unreadable(&format!("it says more than {SAID_BYTES} bytes")));
        }
        Ok(())
    }

    /// The connection ended.
    fn end(mut self) -> Result<Reply, Fault> {
        match std::mem::replace(&mut self.form, Form::Unknown) {
            Form::Unknown => return Err(self.unreadable("it is empty")),
            Form::Document(document) => {
                let document: Value = serde_json::from_slice(&document)
                    .map_err(|error| self.unreadable(&format!("it is not json: {error}")))?;
                self.chunk(&document)?;
                if !self.assembly.seen() {
                    return Err(self.unreadable("it has no `choices`"));
                }
                return Ok(self.assembly.reply());
            }
            Form::Events(mut events) => {
                // A last event without its end may be half of one.
                if let Some(data) = events.end()
                    && (data.trim() == DONE || serde_json::from_str::<Value>(&data).is_ok())
                    && self.event(&data)?
                {
                    return Ok(self.assembly.reply());
                }
            }
        }
        if self.assembly.finished() {
            return Ok(self.assembly.reply());
        }
        if self.assembly.seen() {
            return Err(fault::cut(self.provider, self.aim, self.sink, None));
        }
        Err(self.unreadable("it is neither json nor a stream of events"))
    }

    fn unreadable(&self, reason: &str) -> Fault {
        fault::broken(self.provider, self.aim, reason)
    }
}
