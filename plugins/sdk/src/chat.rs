//! Conversations as endpoints: messages, replies and streams.
//!
//! A conversation is the messages of a thread, in a channel with the reducer `messages`, such as
//! that of the nodes of the plugin `std`. It needs no tables.
//! [`chat_endpoints!`](crate::chat_endpoints) declares the common endpoints. An app declares others
//! itself, and [`Chat`] does their work:
//!
//! ```
//! use wattle_plugin::chat::{Chat, ChatRequest, ThreadDocument};
//! use wattle_plugin::prelude::*;
//! use wattle_plugin::testing::FakeHost;
//!
//! const CHAT: Chat = Chat::graph("notes").message_chars(4_000);
//!
//! /// Sends a message and streams the reply.
//! #[handler(POST, "/api/chat", query(format: Option<String>), body = ChatRequest, events = Value)]
//! fn chat(request: &Request) -> Result<Response, Failure> {
//!     CHAT.stream(request)
//! }
//!
//! /// Responds with the messages of a conversation.
//! #[handler(GET, "/api/threads/{id}", returns = ThreadDocument)]
//! fn thread(request: &Request) -> Result<Response, Failure> {
//!     Response::json(200, &CHAT.show(&request.param::<String>("id")?)?)
//! }
//!
//! /// Streams the active run of a conversation, for a page that is loaded again.
//! #[handler(GET, "/api/threads/{id}/stream", query(format: Option<String>), events = Value,
//!     returns(204))]
//! fn resume(request: &Request) -> Result<Response, Failure> {
//!     CHAT.join(&request.param::<String>("id")?, request)
//! }
//!
//! let host = FakeHost::new();
//! let request = Request::new("POST", "/api/chat").with_body(r#"{"message": "hi"}"#);
//! let response = host.run(|| chat(&request))?;
//! assert_eq!(response.headers[0].0, "x-thread-id");
//! let input = json!({"messages": [{"role": "user", "content": "hi"}]});
//! assert_eq!(host.started()[0].input, input);
//! # Ok::<_, Failure>(())
//! ```
//!
//! A refused request is a failure with the status of the response and one of the [`Texts`] as its
//! message, which [`web::respond`](crate::web::respond()) reports in the form of the app.
//!
//! An app that stores conversations in tables of its own reads them from the log of the thread with
//! an [`Agent`].

mod agent;
mod answer;
mod ended;
mod endpoints;
mod last_reply;
mod list;
mod message;
mod shown;
mod steps;
mod stored;
#[cfg(test)]
mod testing;
mod texts;
pub mod ui;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::agent::Agent;
pub use self::answer::AnswerRequest;
use self::ended::Question;
pub use self::ended::{ChatError, Ended, Reply, Waiting};
#[doc(hidden)]
pub use self::endpoints::respond;
use self::last_reply::LastReply;
pub use self::list::{ThreadList, TitleRequest};
pub use self::steps::{Step, StepStatus};
pub use self::texts::Texts;
use self::ui::UiMessage;
use crate::failure::{Failure, code};
use crate::log;
use crate::prompt::head;
use crate::runs::{self, EndedRun, Interrupt, RunRef, Start, Thread};
use crate::web::{HandOff, Request, Response, StreamFormat, refuse, status};

/// Header with the thread id, with which the next message can continue the conversation.
const THREAD_HEADER: &str = "x-thread-id";

/// Field of the metadata of a thread with the title of the conversation.
const TITLE: &str = "title";

/// Maximum number of characters of a message if the app sets none.
const MESSAGE_CHARS: usize = 20_000;

/// A message, or the request to reply to the last message again (`retry`).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatRequest {
    /// Conversation of the message; a new one without it.
    #[serde(default)]
    thread_id: Option<String>,
    #[serde(default)]
    message: String,
    /// Requests a reply to the last message after a failed run, in place of a new message.
    #[serde(default)]
    retry: bool,
}

/// A conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadDocument {
    thread_id: String,
    /// `running` during a run.
    status: String,
    messages: Vec<UiMessage>,
    /// Pending questions; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    questions: Vec<Question>,
}

/// The conversations of a graph.
#[derive(Debug, Clone, Copy)]
pub struct Chat {
    graph: &'static str,
    agent: Agent,
    message_chars: usize,
    title_chars: Option<usize>,
    grace_ms: Option<u64>,
    texts: &'static Texts,
}

/// Methods that describe the conversations.
impl Chat {
    /// Describes the conversations of a graph with the agent [`Agent::DEFAULT`]. A message has at
    /// most 20,000 characters.
    pub const fn graph(graph: &'static str) -> Self {
        Self {
            graph,
            agent: Agent::DEFAULT,
            message_chars: MESSAGE_CHARS,
            title_chars: None,
            grace_ms: None,
            texts: &Texts::ENGLISH,
        }
    }

    /// Sets the agent: the channel with the messages, and the node whose model calls are streamed
    /// to clients.
    pub const fn agent(self, agent: Agent) -> Self {
        Self { agent, ..self }
    }

    /// Sets the maximum number of characters of a message.
    pub const fn message_chars(self, message_chars: usize) -> Self {
        Self { message_chars, ..self }
    }

    /// Gives new conversations a title: the beginning of the first line of the message, of at most
    /// `title_chars` characters. [`Chat::list`] shows it, and [`Chat::rename`] replaces it.
    pub const fn title_chars(self, title_chars: usize) -> Self {
        Self { title_chars: Some(title_chars), ..self }
    }

    /// Cancels a run if the last client of its stream disconnects, see
    /// [`HandOff::cancel_on_disconnect`].
    pub const fn cancel_on_disconnect(self, grace_ms: u64) -> Self {
        Self { grace_ms: Some(grace_ms), ..self }
    }

    /// Sets the texts for users.
    pub const fn texts(self, texts: &'static Texts) -> Self {
        Self { texts, ..self }
    }
}

/// Methods that do the work of endpoints.
impl Chat {
    /// Starts a run with the message of a [`ChatRequest`]. A retry starts a run without a new
    /// message, because tools could act twice on a message that is sent twice.
    ///
    /// Both are refused while a question of the conversation is pending. A run that starts without
    /// the answer would give up the tool call that waits for it.
    ///
    /// # Errors
    ///
    /// A failure with a status for a refused request, see [`Texts`].
    pub fn send(&self, request: &Request) -> Result<RunRef, Failure> {
        let malformed = |_| refuse(status::BAD_REQUEST, self.texts.malformed);
        let body: ChatRequest = request.json().map_err(malformed)?;
        let thread_id = body.thread_id.filter(|id| !id.is_empty());
        if body.retry {
            return self.retry(thread_id.as_deref());
        }
        let message = body.message.trim();
        if message.is_empty() {
            return Err(refuse(status::BAD_REQUEST, self.texts.empty));
        }
        if message.chars().count() > self.message_chars {
            return Err(refuse(status::PAYLOAD_TOO_LARGE, self.texts.too_long));
        }
        let channel = self.agent.channel;
        let input = json!({ channel: [{ "role": "user", "content": message }] });
        let mut start = Start::graph(self.graph).input(input);
        if let Some(chars) = self.title_chars {
            let is_new = match &thread_id {
                Some(thread_id) => runs::find(self.graph, thread_id)?.is_none(),
                None => true,
            };
            if is_new {
                start = start.metadata(json!({ TITLE: title_of(message, chars) }));
            }
        }
        if let Some(thread_id) = thread_id {
            start = start.thread_id(thread_id);
        }
        self.start(start)
    }

    /// Sends a message as [`Chat::send`] does and hands the stream of the run off: as the host's
    /// own events, or with `?format=ai-sdk` as a message of the AI SDK. The header `x-thread-id`
    /// has the id of the thread.
    pub fn stream(&self, request: &Request) -> Result<Response, Failure> {
        let format = self.format(request)?.unwrap_or(StreamFormat::Sse);
        let run = self.send(request)?;
        let thread_id = run.thread_id.clone();
        Ok(self.hand_off(run, format).with_header(THREAD_HEADER, thread_id))
    }

    /// Waits until a run has ended or is interrupted, for a response without a stream.
    ///
    /// ```
    /// use wattle_plugin::chat::{Chat, ChatError, ChatRequest, Reply, Waiting};
    /// use wattle_plugin::prelude::*;
    ///
    /// const CHAT: Chat = Chat::graph("notes");
    ///
    /// /// Sends a message and waits for the reply.
    /// #[handler(POST, "/api/chat", body = ChatRequest, returns = Reply, returns(202) = Waiting,
    ///     error = ChatError)]
    /// fn chat(request: &Request) -> Result<Response, Failure> {
    ///     web::respond::<web::ErrorDocument>(request, || {
    ///         let run = CHAT.send(request)?;
    ///         let down = (web::status::BAD_GATEWAY, "the model is not available");
    ///         CHAT.wait(&run)?.respond(|_| down)
    ///     })
    /// }
    /// ```
    pub fn wait(&self, run: &RunRef) -> Result<Ended, Failure> {
        Ok(self.ended(runs::wait(run)?))
    }

    /// Returns a conversation with its messages and pending questions. Messages of the active run
    /// are omitted, because its stream has them from the beginning.
    ///
    /// # Errors
    ///
    /// `not-found` with status 404 if the graph has no such thread.
    pub fn show(&self, thread_id: &str) -> Result<ThreadDocument, Failure> {
        let thread = self.find(thread_id)?;
        let whole = !thread.is_running();
        let messages = shown::of_state(self.messages(&thread.state), whole, self.texts.unfinished);
        let questions = pending(&thread).iter().cloned().map(Question::from).collect();
        Ok(ThreadDocument {
            thread_id: thread.thread_id,
            status: thread.status,
            messages,
            questions,
        })
    }

    /// Hands the stream of the active run off, from its beginning: as a message of the AI SDK,
    /// because `useChat` resumes a stream without parameters, or with `?format=sse` as the host's
    /// own events. Responds with 204 if there is none.
    ///
    /// # Errors
    ///
    /// A failure with status 400 for an unknown format; `not-found` with status 404 if the graph
    /// has no such thread.
    pub fn join(&self, thread_id: &str, request: &Request) -> Result<Response, Failure> {
        let format = self.format(request)?.unwrap_or(StreamFormat::AiSdk);
        match self.find(thread_id)?.active_run() {
            Some(run) => Ok(self.hand_off(run, format)),
            None => Ok(Response::empty(status::NO_CONTENT)),
        }
    }

    /// Cancels the active run, waits for its end, and returns the conversation. Without an active
    /// run nothing changes.
    ///
    /// # Errors
    ///
    /// `not-found` with status 404 if the graph has no such thread.
    pub fn cancel(&self, thread_id: &str) -> Result<ThreadDocument, Failure> {
        if let Some(run) = self.find(thread_id)?.active_run() {
            runs::cancel_and_wait(&run)?;
        }
        self.show(thread_id)
    }

    /// Returns the format of a stream that a request names.
    fn format(&self, request: &Request) -> Result<Option<StreamFormat>, Failure> {
        match request.query("format") {
            None => Ok(None),
            Some("sse") => Ok(Some(StreamFormat::Sse)),
            Some("ai-sdk") => Ok(Some(StreamFormat::AiSdk)),
            Some(_) => Err(refuse(status::BAD_REQUEST, self.texts.format)),
        }
    }

    /// Starts a run without a new message.
    fn retry(&self, thread_id: Option<&str>) -> Result<RunRef, Failure> {
        let thread = self.find(thread_id.ok_or_else(|| self.missing())?)?;
        // A question may be pending behind a reply that is the last message.
        if !pending(&thread).is_empty() {
            return Err(refuse(status::CONFLICT, self.texts.waiting));
        }
        if stored::has_reply(self.messages(&thread.state)) {
            return Err(refuse(status::CONFLICT, self.texts.nothing_to_retry));
        }
        self.start(Start::graph(self.graph).thread_id(thread.thread_id))
    }

    fn start(&self, start: Start) -> Result<RunRef, Failure> {
        start.reject_if_interrupted().start().map_err(|failure| {
            log::debug!("start a run: {failure}");
            match failure.code.as_str() {
                code::CONFLICT if is_waiting(&failure) => {
                    refuse(status::CONFLICT, self.texts.waiting)
                }
                // The thread belongs to another graph.
                code::CONFLICT => self.missing(),
                code::INVALID => refuse(status::BAD_REQUEST, self.texts.thread_id),
                _ => self.refused(failure),
            }
        })
    }

    /// Returns the refusal for a thread that another operation uses or has deleted.
    fn refused(&self, failure: Failure) -> Failure {
        match failure.code.as_str() {
            code::BUSY => self.busy(),
            code::NOT_FOUND => self.missing(),
            _ => failure,
        }
    }

    fn busy(&self) -> Failure {
        Failure::new(code::BUSY, self.texts.busy).with_status(status::CONFLICT)
    }

    fn ended(&self, run: EndedRun) -> Ended {
        let last = LastReply::read(self.messages(&run.state));
        Ended::new(run, last, self.texts)
    }

    /// Returns the thread of a conversation. Threads of other graphs are not found.
    fn find(&self, thread_id: &str) -> Result<Thread, Failure> {
        runs::find(self.graph, thread_id)?.ok_or_else(|| self.missing())
    }

    fn missing(&self) -> Failure {
        refuse(status::NOT_FOUND, self.texts.missing)
    }

    fn messages<'a>(&self, state: &'a Value) -> &'a Value {
        state.get(self.agent.channel).unwrap_or(&Value::Null)
    }

    fn hand_off(&self, run: RunRef, format: StreamFormat) -> Response {
        let hand_off =
            HandOff::run(run.thread_id, run.run_id, format).nodes(&[self.agent.model_node]);
        Response::hand_off_from(match self.grace_ms {
            Some(grace_ms) => hand_off.cancel_on_disconnect(grace_ms),
            None => hand_off,
        })
    }
}

/// Returns true if a start failed because a question of the conversation is pending.
fn is_waiting(failure: &Failure) -> bool {
    failure.details.as_ref().is_some_and(|details| details["reason"] == "interrupted")
}

/// Returns the interrupts of a conversation that wait for an answer. A run that failed or was
/// cancelled may leave interrupts, which the next message gives up.
fn pending(thread: &Thread) -> &[Interrupt] {
    if thread.is_interrupted() { &thread.interrupts } else { &[] }
}

/// Returns the title of a conversation that begins with a message.
fn title_of(message: &str, chars: usize) -> String {
    let line = message.lines().next().unwrap_or_default();
    head(line, chars).trim_end().to_owned()
}

#[cfg(test)]
mod tests;
