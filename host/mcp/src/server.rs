//! One server: its shared session, which the host renews, and its tool list.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResponse, ProtocolVersion};
use rmcp::service::ClientCacheConfig;
use rmcp::{ErrorData, ServiceError};
use serde_json::{Value, json};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use wattle_graph::elicitation::ElicitedQuestion;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::Part;
use wattle_graph::tool::{ToolOutput, ToolRequest};
use wattle_run::hostcall::elicit;
use wattle_run::limit::SERVER_ROUNDS;
use wattle_run::ports::Caller;
use wattle_run::ports::sandbox::ToolInfo;
use wattle_run::ports::tool_server::{ServerAnswer, ServerCall};

use crate::asking::{Happened, Running, Seat, Waiting, is_gone};
use crate::calls::{Answered, Asked, Calls};
use crate::check::Check;
use crate::client::{AsksAnywhere, Changes, Client};
use crate::config::{Reachable, ServerConfig};
use crate::connect::{Connector, Session};
use crate::error::ConfigError;
use crate::held::{Held, Holder, Slot};
use crate::listing::Listing;
use crate::permit::Permit;
use crate::question::{Wanted, held_answer, responses, unreadable, unsupported, wanted};
use crate::{fault, listing, outcome, question};

/// Text with which servers report that the stateless protocol forbids an elicitation through the session.
const CANNOT_ASK: &str = "elicitation via server-initiated requests";

/// Timeout of closing a session when the host stops.
const GOODBYE: Duration = Duration::from_secs(2);

/// Maximum concurrent calls of one server with a separate session, which is a process for a stdio server: the number of
/// tools that an agent calls concurrently. Further calls wait up to their timeout.
const OWN_SESSIONS: usize = 16;

/// Divisor of the timeout, which results in the delay before the tool list of a server that timed out is requested
/// again. The list is needed before every model call, which does not wait for that request.
const PATIENCE_SHARE: u32 = 3;

/// Maximum attempts of a call: the first, one from the beginning, one for each elicitation round, one in another
/// session.
const MOST_CALLS: usize = SERVER_ROUNDS + 3;

/// First delay before a call that a busy server asks to repeat. The delay doubles.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// Maximum delay before such a call.
const MOST_BUSY_PAUSE: Duration = Duration::from_secs(5);

/// Cached tool list of a server.
#[derive(Debug, Default)]
struct Kept {
    listing: Option<Listing>,
    silence: Option<Silence>,
}

/// A timeout of the tool list or of one of its pages.
#[derive(Debug)]
struct Silence {
    failure: Failure,
    /// When the list is requested again.
    until: Instant,
}

/// Outcome of a followed call.
enum Followed {
    Answer(ServerAnswer),
    /// The server requests another call with this `requestState`.
    Again(String),
    /// The server no longer knows the `requestState` of the call and has done nothing.
    Stale(Failure),
    /// The server does not know the session of the call and has done nothing.
    Lapsed(Failure),
}

/// An MCP server with its session and its cached tools.
#[derive(Debug)]
pub(crate) struct Server {
    name: String,
    connector: Connector,
    limit: Duration,
    output_bytes: usize,
    changes: Changes,
    asks_anywhere: AsksAnywhere,
    own_sessions: Arc<Semaphore>,
    /// Held calls of all servers, shared with them.
    held: Arc<Held<Waiting>>,
    /// Locked while connecting, so that concurrent calls share one session.
    session: Mutex<Option<Arc<Session>>>,
    /// Locked while the list is requested, so that concurrent callers request it once.
    kept: Mutex<Kept>,
}

impl Server {
    pub(crate) fn new(
        name: &str,
        config: &ServerConfig,
        reachable: Reachable,
        held: Arc<Held<Waiting>>,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            name: name.to_owned(),
            connector: Connector::new(name, config, reachable)?,
            limit: config.timeout,
            output_bytes: config.output_bytes,
            changes: Changes::default(),
            asks_anywhere: AsksAnywhere::default(),
            own_sessions: Arc::new(Semaphore::new(OWN_SESSIONS)),
            held,
            session: Mutex::new(None),
            kept: Mutex::default(),
        })
    }

    /// Returns the tools, from the cache while it is fresh. If the server is unavailable, the cached tools are
    /// returned: a call then fails with the reason, which a missing tool would hide. Only the first caller waits for a
    /// server that times out. Later ones get the failure at once while a background task requests the list again.
    pub(crate) async fn list(self: &Arc<Self>) -> Result<Vec<ToolInfo>, Failure> {
        let mut kept = self.kept.lock().await;
        if let Some(listing) = kept.listing.as_ref().filter(|listing| self.is_fresh(listing)) {
            return Ok(listing.tools.clone());
        }
        let failure = match &mut kept.silence {
            Some(silence) => {
                let now = Instant::now();
                if silence.until <= now {
                    // Requests are not concurrent: by then this one has ended or timed out.
                    silence.until = now + 2 * self.limit;
                    tokio::spawn(self.clone().ask_again());
                }
                silence.failure.clone()
            }
            None => {
                let answer = self.within(self.limit, self.ask_for_tools()).await;
                match self.keep(&mut kept, answer) {
                    Ok(()) => {
                        return Ok(kept.listing.iter().flat_map(|it| it.tools.clone()).collect());
                    }
                    Err(failure) => failure,
                }
            }
        };
        match &kept.listing {
            Some(old) if failure.retryable => {
                tracing::warn!(server = %self.name, %failure, "using an outdated tool list");
                Ok(old.tools.clone())
            }
            _ => Err(failure),
        }
    }

    /// Requests the list again from a server that timed out.
    async fn ask_again(self: Arc<Self>) {
        let answer = self.within(self.limit, self.ask_for_tools()).await;
        let mut kept = self.kept.lock().await;
        if let Err(failure) = self.keep(&mut kept, answer) {
            tracing::debug!(server = %self.name, %failure, "an MCP server is still unavailable");
        }
    }

    /// Caches a list or a timeout.
    fn keep(&self, kept: &mut Kept, answer: Result<Listing, Failure>) -> Result<(), Failure> {
        kept.silence = None;
        match answer {
            Ok(mut listing) => {
                kept.silence = listing.is_late.then(|| self.silence(self.too_late(self.limit)));
                if let Some(earlier) = kept.listing.take().filter(|_| !listing.is_whole) {
                    listing.fill_in(earlier);
                }
                kept.listing = Some(listing);
                Ok(())
            }
            Err(failure) => {
                if failure.code == code::TIMEOUT {
                    kept.silence = Some(self.silence(failure.clone()));
                }
                Err(failure)
            }
        }
    }

    fn silence(&self, failure: Failure) -> Silence {
        Silence { failure, until: Instant::now() + self.limit / PATIENCE_SHARE }
    }

    /// Checks the server, see [`McpServers::check`](crate::McpServers::check).
    pub(crate) async fn check(&self) -> Check {
        let mut check = Check::default();
        let begun = Instant::now();
        let session = self.within(self.limit, self.session()).await;
        check.session_ms = millis(begun.elapsed());
        match session {
            Ok(session) => {
                let info = session.peer().peer_info();
                check.protocol = info.as_ref().map(|info| info.protocol_version.to_string());
                let software = info.as_ref().and_then(|info| info.server_info.as_ref());
                check.software = software.map(|it| {
                    self.connector.speaker().quote(&format!("{} {}", it.name, it.version))
                });
                let begun = Instant::now();
                let listing = self.within(self.limit, self.ask_for_tools()).await;
                check.tools_ms = Some(millis(begun.elapsed()));
                match listing {
                    Ok(listing) => check.tools = listing.tools,
                    Err(failure) => check.failure = Some(failure),
                }
            }
            Err(failure) => check.failure = Some(failure),
        }
        check.notes = self.connector.mender().notes();
        check
    }

    /// Calls a tool once, since only the caller knows whether a second call is safe. If a server of the stateless
    /// protocol no longer knows its `requestState`, because the answer came late or the server was restarted, it has
    /// done nothing. The call then starts from the beginning and gets the earlier answers to the same questions. If the
    /// server does not know the session, the call is repeated once in another session.
    pub(crate) async fn call(
        &self,
        caller: &Caller,
        call: ServerCall<'_>,
    ) -> Result<ServerAnswer, Failure> {
        let limit = self.limit_of(call.request);
        let mut parameters = self.parameters(call)?;
        // Round of the next earlier answer, once the call was started from the beginning.
        let mut resumed = None;
        let mut has_lapsed = false;
        let mut pause = BUSY_PAUSE;
        for _ in 0..MOST_CALLS {
            let seat = self.seat(&call.request.tool, limit).await?;
            let running = Running::start(seat, parameters.clone(), Permit::under(call.leased));
            match self.within(limit, self.follow(running, caller, call, 0)).await? {
                Followed::Answer(ServerAnswer::Asks(asked)) if asked.held.is_none() => {
                    let given = resumed
                        .and_then(|from| question::stateless_answers(call.rounds, from, &asked));
                    let Some((next, answers)) = given else {
                        return Ok(ServerAnswer::Asks(asked));
                    };
                    resumed = Some(next);
                    parameters.input_responses = Some(answers);
                    parameters.request_state = asked.state;
                }
                Followed::Answer(answer) => return Ok(answer),
                Followed::Again(state) => {
                    sleep(pause).await;
                    pause = MOST_BUSY_PAUSE.min(pause * 2);
                    parameters.input_responses = None;
                    parameters.request_state = Some(state);
                }
                Followed::Stale(_) if resumed.is_none() && parameters.request_state.is_some() => {
                    resumed = Some(0);
                    parameters.input_responses = None;
                    parameters.request_state = None;
                }
                Followed::Lapsed(_) if !has_lapsed => has_lapsed = true,
                Followed::Stale(failure) | Followed::Lapsed(failure) => return Err(failure),
            }
        }
        Err(self.too_often(&call.request.tool))
    }

    /// Continues the held call of the last answer. Returns `None` if it is not held or its connection is lost.
    pub(crate) async fn go_on(
        &self,
        caller: &Caller,
        call: ServerCall<'_>,
    ) -> Result<Option<ServerAnswer>, Failure> {
        let Some((thread, round)) = call.thread.zip(call.rounds.last()) else { return Ok(None) };
        let name = round.question.held.as_deref().unwrap_or_default();
        let Some(waiting) = self.held.take(thread, name) else { return Ok(None) };
        let permit = Permit::under(call.leased);
        let Some(running) = waiting.answered(round, permit).await else { return Ok(None) };
        let followed = self.follow(running, caller, call, call.rounds.len());
        match self.within(self.limit_of(call.request), followed).await? {
            Followed::Answer(answer) => Ok(Some(answer)),
            Followed::Again(_) => Err(self.too_often(&call.request.tool)),
            Followed::Stale(failure) | Followed::Lapsed(failure) => Err(failure),
        }
    }

    fn limit_of(&self, request: &ToolRequest) -> Duration {
        let wanted = request.timeout_ms.map(|ms| Duration::from_millis(ms.into()));
        wanted.map_or(self.limit, |wanted| wanted.min(self.limit))
    }

    fn parameters(&self, call: ServerCall<'_>) -> Result<CallToolRequestParams, Failure> {
        let request = call.request;
        let arguments = match &request.arguments {
            Value::Object(arguments) => arguments.clone(),
            Value::Null => serde_json::Map::new(),
            _ => return Err(self.refused(&request.tool, "its arguments are not a JSON object")),
        };
        let mut parameters =
            CallToolRequestParams::new(request.tool.clone()).with_arguments(arguments);
        if let Some(round) = call.rounds.last().filter(|round| round.question.held.is_none()) {
            parameters.input_responses = Some(responses(round));
            parameters.request_state.clone_from(&round.question.state);
        }
        Ok(parameters)
    }

    /// Follows a call to its end, or to an elicitation without an answer. `answered` is the number of answered rounds.
    /// An elicitation that the host cannot pass to a person is refused, and the call continues.
    async fn follow(
        &self,
        mut running: Running,
        caller: &Caller,
        call: ServerCall<'_>,
        mut answered: usize,
    ) -> Result<Followed, Failure> {
        let mut refused = None;
        loop {
            let Asked { question, reply } = match running.next().await {
                Happened::Asked(asked) => asked,
                Happened::Ended(ended) => {
                    // A server may respond to the refusal with an error.
                    let is_refusal = matches!(&*ended, Err(error @ ServiceError::McpError(_))
                        if !fault::is_cut(error));
                    if let Some(refused) = refused.filter(|_| is_refusal) {
                        return Err(refused);
                    }
                    return self.ended(running.session(), &call.request.tool, *ended).await;
                }
            };
            if let Some((next, known)) = held_answer(call.rounds, answered, &question) {
                answered = next;
                let permit = Permit::under(call.leased);
                reply.send(Answered { answer: Ok(known), permit }).ok();
                continue;
            }
            match self.slot(caller, call, &question) {
                Ok(slot) => {
                    let waiting = Waiting::new(running, reply, self.asks_anywhere.is_so());
                    let name = slot.hold(waiting);
                    let asked = question::only(question, Some(name));
                    return Ok(Followed::Answer(ServerAnswer::Asks(asked)));
                }
                Err(failure) => {
                    let answer = Err(ErrorData::internal_error(failure.message.clone(), None));
                    reply.send(Answered { answer, permit: Permit::under(call.leased) }).ok();
                    refused = Some(failure);
                }
            }
        }
    }

    /// Reserves a slot to hold a call while a person is asked.
    fn slot(
        &self,
        caller: &Caller,
        call: ServerCall<'_>,
        question: &ElicitedQuestion,
    ) -> Result<Slot<Waiting>, Failure> {
        let (server, tool) = (self.name.as_str(), call.request.tool.as_str());
        let Some(thread) = call.thread else { return Err(elicit::nobody_to_ask(server, tool)) };
        let asked = question::only(question.clone(), None);
        elicit::question(server, tool, call.rounds.len(), &asked)?;
        self.held.slot(Holder { server, tool, thread, tenant: caller.tenant.as_deref() })
    }

    async fn ended(
        &self,
        session: &Arc<Session>,
        tool: &str,
        ended: Result<CallToolResponse, ServiceError>,
    ) -> Result<Followed, Failure> {
        let (server, subject) = (self.name.as_str(), format!("the tool `{tool}`"));
        let speaker = self.connector.speaker();
        if let Err(error) = &ended {
            let failure = || fault::of_request(speaker, &subject, error);
            if fault::is_of_state(error) {
                return Ok(Followed::Stale(failure()));
            }
            if fault::is_of_session(error) {
                return Ok(Followed::Lapsed(failure()));
            }
            if matches!(error, ServiceError::UnexpectedResponse) {
                return Err(unreadable(server, tool));
            }
            if fault::is_lost(error) {
                self.forget(session, error).await;
                return Err(fault::in_doubt(speaker, &subject));
            }
        }
        let answer = match self.checked(session, &subject, ended).await? {
            CallToolResponse::Complete(result) => {
                let mut output = outcome::output(server, result, self.output_bytes)?;
                if output.is_error && is_newer(session) && speaks_of_asking(&output) {
                    output.content.push(Part::Text(self.handshake_advice()));
                }
                ServerAnswer::Done(output)
            }
            CallToolResponse::InputRequired(asked) => match wanted(server, tool, asked)? {
                Wanted::Answers(asked) => ServerAnswer::Asks(asked),
                Wanted::Again(state) => return Ok(Followed::Again(state)),
            },
            _ => {
                let wants = ("its caller to poll for the result", "let it return the result");
                return Err(unsupported(server, tool, "mcp.tasks", wants));
            }
        };
        Ok(Followed::Answer(answer))
    }

    /// Closes the session. A call in progress closes it at its end.
    pub(crate) async fn close(&self) {
        if let Some(session) = self.session.lock().await.take() {
            end(&self.name, session).await;
        }
    }

    fn is_fresh(&self, listing: &Listing) -> bool {
        let is_young = Instant::now() < listing.until;
        listing.changes == self.changes.count() && (is_young || self.is_reserved())
    }

    /// Returns true if the session is reserved for a held call. A stdio server may respond to nothing else meanwhile.
    fn is_reserved(&self) -> bool {
        let is_reserved = |session: &Arc<Session>| session.service().calls().are_reserved();
        self.session.try_lock().is_ok_and(|open| open.as_ref().is_some_and(is_reserved))
    }

    async fn ask_for_tools(&self) -> Result<Listing, Failure> {
        let session = self.session().await?;
        let changes = self.changes.count();
        let (mender, subject) = (self.connector.mender(), "the list of its tools");
        let read = listing::read(mender, session.peer(), changes, self.limit / 2).await;
        let (listing, rest) = self.checked(&session, subject, read).await?;
        // The session served the earlier pages, so it stays open.
        if let Err(error) = rest {
            let failure = fault::of_request(self.connector.speaker(), subject, &error);
            mender.note(&format!("later pages of the tool list are missing: {failure}"));
        }
        Ok(listing)
    }

    /// Returns the open session, or a new one.
    async fn session(&self) -> Result<Arc<Session>, Failure> {
        let mut open = self.session.lock().await;
        self.opened(&mut open, |_| true).await
    }

    /// Returns the locked session if it is connected and `is_of_use` accepts its calls, or opens a new one.
    async fn opened(
        &self,
        open: &mut Option<Arc<Session>>,
        is_of_use: impl Fn(&Calls) -> bool,
    ) -> Result<Arc<Session>, Failure> {
        let is_of_use =
            |session: &&Arc<Session>| !is_gone(session) && is_of_use(session.service().calls());
        if let Some(session) = open.as_ref().filter(is_of_use) {
            return Ok(session.clone());
        }
        let session = self.connect().await?;
        Ok(open.insert(session).clone())
    }

    /// Returns a slot for a call. If the server does not identify the call in its elicitations, the call gets a
    /// separate session, unless the shared one is free.
    async fn seat(&self, tool: &str, limit: Duration) -> Result<Seat, Failure> {
        if let Some(seat) = self.within(limit, self.shared_seat()).await? {
            return Ok(seat);
        }
        let room = timeout(limit, self.own_sessions.clone().acquire_owned()).await;
        let Ok(Ok(room)) = room else { return Err(self.no_room(tool)) };
        let session = self.within(limit, self.connect()).await?;
        Ok(Seat::on(session, Some(room)))
    }

    /// Returns a slot on the shared session; `None` if the call needs a separate session. A session that is reserved
    /// for a held call is replaced, and so is one on which an elicitation could belong to a cancelled call.
    async fn shared_seat(&self) -> Result<Option<Seat>, Failure> {
        let mut open = self.session.lock().await;
        let is_of_use = |calls: &Calls| {
            let is_unclear = self.asks_anywhere.is_so() && calls.have_given_up();
            !calls.are_reserved() && !is_unclear
        };
        let session = self.opened(&mut open, is_of_use).await?;
        let is_free = !self.asks_anywhere.is_so() || session.service().calls().are_clear();
        Ok(is_free.then(|| Seat::on(session, None)))
    }

    async fn connect(&self) -> Result<Arc<Session>, Failure> {
        let (speaker, changes) = (self.connector.speaker().clone(), self.changes.clone());
        let client = Client::new(speaker, changes, self.asks_anywhere.clone());
        let session = self.connector.connect(&self.name, client).await?;
        // `Server` caches the list for all sessions.
        session.set_response_cache_config(ClientCacheConfig::disabled()).await;
        tracing::debug!(server = %self.name, "opened an MCP session");
        Ok(Arc::new(session))
    }

    /// Converts an error to a failure, and discards the session if it is broken.
    async fn checked<T>(
        &self,
        session: &Arc<Session>,
        subject: &str,
        answer: Result<T, ServiceError>,
    ) -> Result<T, Failure> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => {
                self.forget(session, &error).await;
                Err(fault::of_request(self.connector.speaker(), subject, &error))
            }
        }
    }

    /// Discards a broken session.
    async fn forget(&self, session: &Arc<Session>, error: &ServiceError) {
        if fault::ends_session(error) {
            let mut open = self.session.lock().await;
            if open.as_ref().is_some_and(|open| Arc::ptr_eq(open, session)) {
                *open = None;
            }
        }
    }

    async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        timeout(limit, work).await.unwrap_or_else(|_| Err(self.too_late(limit)))
    }

    fn too_late(&self, limit: Duration) -> Failure {
        let message = format!("the MCP server `{}` did not respond within {limit:?}", self.name);
        Failure::new(code::TIMEOUT, message).retryable()
    }

    fn refused(&self, tool: &str, reason: &str) -> Failure {
        let message = format!(
            "the tool `{tool}` of the MCP server `{}` cannot be called: {reason}",
            self.name
        );
        Failure::new(code::INVALID, message)
    }

    /// Returns the advice for a server that sends elicitations during calls, which only the earlier protocols permit.
    fn handshake_advice(&self) -> String {
        let name = &self.name;
        tracing::warn!(server = name, "an MCP server cannot ask people without `handshake = true`");
        format!("[to let the server ask people, set `handshake = true` under `[mcp.{name}]`]")
    }

    fn no_room(&self, tool: &str) -> Failure {
        let message = format!(
            "the tool `{tool}` of the MCP server `{}` got no session in time: the server asks \
             people, and {OWN_SESSIONS} of its calls have a session of their own; retry later",
            self.name
        );
        let details = json!({ "limit": "own_sessions", "allowed": OWN_SESSIONS });
        Failure::new(code::LIMIT, message).retryable().with_details(details)
    }

    fn too_often(&self, tool: &str) -> Failure {
        let message = format!(
            "the tool `{tool}` of the MCP server `{}` asks for too many repetitions of one call; \
             check the server",
            self.name
        );
        let details = json!({ "limit": "server_rounds", "allowed": SERVER_ROUNDS });
        Failure::new(code::LIMIT, message).retryable().with_details(details)
    }
}

/// Closes a session unless a call is in progress on it.
pub(crate) async fn end(server: &str, session: Arc<Session>) {
    let Some(mut session) = Arc::into_inner(session) else { return };
    if let Err(error) = session.close_with_timeout(GOODBYE).await {
        tracing::debug!(server, %error, "cannot close an MCP session");
    }
}

/// Returns true if a session uses the stateless protocol.
fn is_newer(session: &Session) -> bool {
    let info = session.peer().peer_info();
    info.is_some_and(|info| info.protocol_version >= ProtocolVersion::NO_INITIALIZE)
}

/// Returns true if a tool failed because it cannot send an elicitation.
fn speaks_of_asking(output: &ToolOutput) -> bool {
    let said = |part: &Part| matches!(part, Part::Text(text) if text.contains(CANNOT_ASK));
    output.content.iter().any(said)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
