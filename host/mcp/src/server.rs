//! One server: its session, shared by all calls and renewed when it is gone, and its tools.

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

/// What a server says that asks through a session of the newer protocol, where it may not.
const CANNOT_ASK: &str = "elicitation via server-initiated requests";

/// How long a session may take to say goodbye when the host stops.
const GOODBYE: Duration = Duration::from_secs(2);

/// Sessions of their own that calls of one server have at once, each a process if the server is a program: as many as
/// an agent calls tools at once. More calls wait their turn, as long as for an answer.
const OWN_SESSIONS: usize = 16;

/// The share of its time after which a server that did not answer is asked for its tools again. They are
/// asked for before every call of a model, so nobody waits for that.
const PATIENCE_SHARE: u32 = 3;

/// How often one call is made at most: from the beginning, from there once more, for each round of questions, and once
/// in another session.
const MOST_CALLS: usize = SERVER_ROUNDS + 3;

/// Pause before a call that its server wants to be made again: it is busy. The pause doubles.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// The longest of these pauses.
const MOST_BUSY_PAUSE: Duration = Duration::from_secs(5);

/// What is remembered of a server's tools.
#[derive(Debug, Default)]
struct Kept {
    listing: Option<Listing>,
    silence: Option<Silence>,
}

/// That a server did not answer in its time, or not with all pages.
#[derive(Debug)]
struct Silence {
    failure: Failure,
    /// When it is asked again.
    until: Instant,
}

/// What comes of a call that was followed.
enum Followed {
    Answer(ServerAnswer),
    /// It is to be made again with this state.
    Again(String),
    /// The state that the call brought back is not known any more. The server has done nothing.
    Stale(Failure),
    /// The server does not know the session of the call, and has done nothing.
    Lapsed(Failure),
}

/// A server.
#[derive(Debug)]
pub(crate) struct Server {
    name: String,
    connector: Connector,
    limit: Duration,
    output_bytes: usize,
    changes: Changes,
    asks_anywhere: AsksAnywhere,
    own_sessions: Arc<Semaphore>,
    /// Calls of all servers that wait for people.
    held: Arc<Held<Waiting>>,
    /// Held while connecting, so that calls which arrive together share one session.
    session: Mutex<Option<Arc<Session>>>,
    /// Held while asking, so that the list is asked for once.
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

    /// The tools, from memory while they are fresh. A server that is away keeps those that it had:
    /// a call then says what is wrong, which a missing tool would not. A server that was silent is waited
    /// for once; it is asked again beside the callers, who get the failure until it answers.
    pub(crate) async fn list(self: &Arc<Self>) -> Result<Vec<ToolInfo>, Failure> {
        let mut kept = self.kept.lock().await;
        if let Some(listing) = kept.listing.as_ref().filter(|listing| self.is_fresh(listing)) {
            return Ok(listing.tools.clone());
        }
        let failure = match &mut kept.silence {
            Some(silence) => {
                let now = Instant::now();
                if silence.until <= now {
                    // It is asked once at a time: by then it has answered, or its time is over.
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
                tracing::warn!(server = %self.name, %failure, "the list of tools is an old one");
                Ok(old.tools.clone())
            }
            _ => Err(failure),
        }
    }

    /// Asks a server that was silent for its tools.
    async fn ask_again(self: Arc<Self>) {
        let answer = self.within(self.limit, self.ask_for_tools()).await;
        let mut kept = self.kept.lock().await;
        if let Err(failure) = self.keep(&mut kept, answer) {
            tracing::debug!(server = %self.name, %failure, "an MCP server is still away");
        }
    }

    /// Keeps a list, or that there is none.
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

    /// Looks at the server: see [`McpServers::check`](crate::McpServers::check).
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

    /// Calls a tool once: nobody but the caller knows whether it may be called twice. A server of the newer protocol
    /// that does not know its state any more, since the answer came late or the server was started again, has done
    /// nothing. It is called from the beginning then, and gets the answers to the same questions. A server that does
    /// not know the session any more is called once more in another one.
    pub(crate) async fn call(
        &self,
        caller: &Caller,
        call: ServerCall<'_>,
    ) -> Result<ServerAnswer, Failure> {
        let limit = self.limit_of(call.request);
        let mut parameters = self.parameters(call)?;
        // The next of the earlier answers, once the call is made again from its beginning.
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

    /// Goes on with the call that is held for the last answer, if it is.
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
            _ => return Err(self.refused(&request.tool, "its arguments are no JSON object")),
        };
        let mut parameters =
            CallToolRequestParams::new(request.tool.clone()).with_arguments(arguments);
        if let Some(round) = call.rounds.last().filter(|round| round.question.held.is_none()) {
            parameters.input_responses = Some(responses(round));
            parameters.request_state.clone_from(&round.question.state);
        }
        Ok(parameters)
    }

    /// Follows a call to its end, or to a question that nobody has answered. `answered` is the number of rounds in
    /// it that were answered. A question that nobody is asked is refused, and the call goes on with that.
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
                    // A server may answer the refusal of its question with an error.
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

    /// A slot to hold a call while a person is asked.
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
                let wants = ("its caller to come back for the result", "let it answer at once");
                return Err(unsupported(server, tool, "mcp.tasks", wants));
            }
        };
        Ok(Followed::Answer(answer))
    }

    /// Ends the session; a call that is under way ends it when it is done.
    pub(crate) async fn close(&self) {
        if let Some(session) = self.session.lock().await.take() {
            end(&self.name, session).await;
        }
    }

    fn is_fresh(&self, listing: &Listing) -> bool {
        let is_young = Instant::now() < listing.until;
        listing.changes == self.changes.count() && (is_young || self.is_reserved())
    }

    /// Whether the session is reserved for a call that waits for a person. Its program may answer nothing else.
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
        // The session was good enough for the pages before.
        if let Err(error) = rest {
            let failure = fault::of_request(self.connector.speaker(), subject, &error);
            mender.note(&format!("later pages of the list of tools are missing: {failure}"));
        }
        Ok(listing)
    }

    /// The session that is open, or a new one.
    async fn session(&self) -> Result<Arc<Session>, Failure> {
        let mut open = self.session.lock().await;
        self.opened(&mut open, |_| true).await
    }

    /// The same while it is locked, if the calls on it let others share it.
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

    /// A place for a call of a tool. If the server asks people without saying in which call, the call is alone on its
    /// session.
    async fn seat(&self, tool: &str, limit: Duration) -> Result<Seat, Failure> {
        if let Some(seat) = self.within(limit, self.shared_seat()).await? {
            return Ok(seat);
        }
        let room = timeout(limit, self.own_sessions.clone().acquire_owned()).await;
        let Ok(Ok(room)) = room else { return Err(self.no_room(tool)) };
        let session = self.within(limit, self.connect()).await?;
        Ok(Seat::on(session, Some(room)))
    }

    /// A place on the session that calls share; `None` if that has one that must be alone. Nobody shares a session
    /// that is reserved for a call, or in which a question would be nobody's.
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
        // The list is kept here, for all sessions.
        session.set_response_cache_config(ClientCacheConfig::disabled()).await;
        tracing::debug!(server = %self.name, "opened an MCP session");
        Ok(Arc::new(session))
    }

    /// An answer, or the failure for the caller; a broken session is not used again.
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

    /// Does not use a session again that is broken.
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
        let message = format!("the MCP server `{}` did not answer within {limit:?}", self.name);
        Failure::new(code::TIMEOUT, message).retryable()
    }

    fn refused(&self, tool: &str, reason: &str) -> Failure {
        let message = format!(
            "the tool `{tool}` of the MCP server `{}` cannot be called: {reason}",
            self.name
        );
        Failure::new(code::INVALID, message)
    }

    /// What to do about a server that asks people in the middle of a call, as it may in the earlier protocols only.
    fn handshake_advice(&self) -> String {
        let name = &self.name;
        tracing::warn!(server = name, "an MCP server cannot ask people without `handshake = true`");
        format!("[to let the server ask people, set `handshake = true` under `[mcp.{name}]`]")
    }

    fn no_room(&self, tool: &str) -> Failure {
        let message = format!(
            "the tool `{tool}` of the MCP server `{}` waits for its turn: the server asks people, and \
             {OWN_SESSIONS} of its calls have a session of their own already; try again",
            self.name
        );
        let details = json!({ "limit": "own_sessions", "allowed": OWN_SESSIONS });
        Failure::new(code::LIMIT, message).retryable().with_details(details)
    }

    fn too_often(&self, tool: &str) -> Failure {
        let message = format!(
            "the tool `{tool}` of the MCP server `{}` wants to be called again and again: look \
             whether the server is well",
            self.name
        );
        let details = json!({ "limit": "server_rounds", "allowed": SERVER_ROUNDS });
        Failure::new(code::LIMIT, message).retryable().with_details(details)
    }
}

/// Says goodbye, unless a call is under way on the session.
pub(crate) async fn end(server: &str, session: Arc<Session>) {
    let Some(mut session) = Arc::into_inner(session) else { return };
    if let Err(error) = session.close_with_timeout(GOODBYE).await {
        tracing::debug!(server, %error, "an MCP session did not end well");
    }
}

/// Whether a session speaks the protocol without a handshake.
fn is_newer(session: &Session) -> bool {
    let info = session.peer().peer_info();
    info.is_some_and(|info| info.protocol_version >= ProtocolVersion::NO_INITIALIZE)
}

/// Whether a tool failed as one does that cannot ask a person.
fn speaks_of_asking(output: &ToolOutput) -> bool {
    let said = |part: &Part| matches!(part, Part::Text(text) if text.contains(CANNOT_ASK));
    output.content.iter().any(said)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
