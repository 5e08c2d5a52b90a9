//! One server: its shared session, which the host renews, and its tool list.

mod failures;
mod list;
mod tool_cache;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::ClientCacheConfig;
use rmcp::{ErrorData, ServiceError};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};
use wattle_graph::elicitation::ElicitedQuestion;
use wattle_graph::failure::Failure;
use wattle_graph::llm::Part;
use wattle_graph::tool::{ToolOutput, ToolRequest};
use wattle_run::blocking::block_in_place_in_turn;
use wattle_run::caller_id::CallerId;
use wattle_run::hostcall::elicit;
use wattle_run::limit::SERVER_ROUNDS;
use wattle_run::places::Places;
use wattle_run::ports::Caller;
use wattle_run::ports::tool_server::{ServerCall, ServerCallResult};
use wattle_run::service_memory::ServiceMemory;

use crate::calls::{CallElicitation, Calls, ElicitationAnswer};
use crate::check::Check;
use crate::client::{Client, ToolListGeneration, UnscopedElicitations};
use crate::config::{AddressPolicy, ServerConfig};
use crate::connect::{Connector, Session};
use crate::elicitation::{
    RequestedInput, held_answer, input_responses, requested_input, unknown_input, unsupported,
};
use crate::error::ConfigError;
use crate::held_calls::{CallOwner, HeldCalls, HeldSlot};
use crate::permit::SendPermit;
use crate::running_call::{CallEvent, CallSlot, HeldCall, RunningCall, is_stateless, is_usable};
use crate::server::tool_cache::ToolCache;
use crate::unreadable::{ResponseTo, UnreadableMessage};
use crate::{elicitation, failure, tool_result};

/// Text with which servers report that the stateless protocol forbids an elicitation through the
/// session.
const ELICITATION_ERROR_TEXT: &str = "elicitation via server-initiated requests";

/// Timeout of closing a session when the host stops.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum concurrent calls of one server. Callers share the places of these calls, and further
/// calls wait up to their timeout.
pub(crate) const MAX_CALLS: usize = 64;

/// Maximum concurrent calls of one server that each have a separate session (for a stdio server, a
/// process). Callers share them like [`MAX_CALLS`].
const MAX_OWN_SESSIONS: usize = 16;

/// Maximum attempts of a call: the first attempt, one repetition from the beginning, one attempt
/// for each elicitation round, and one attempt in another session.
const MAX_ATTEMPTS: usize = SERVER_ROUNDS + 3;

/// First delay before a call that a busy server asks to repeat. Each repetition doubles the delay.
const MIN_REPEAT_DELAY: Duration = Duration::from_millis(100);

/// Maximum delay before a call that a busy server asks to repeat.
const MAX_REPEAT_DELAY: Duration = Duration::from_secs(5);

/// Outcome of a followed call.
enum CallStep {
    Outcome(ServerCallResult),
    /// The server requests another call with this `requestState`.
    Repeat(String),
    /// The server no longer knows the `requestState` of the call and has not executed the call.
    StaleState(Failure),
    /// The server does not know the session of the call and has not executed the call.
    UnknownSession(Failure),
}

/// An MCP server with its session and its cached tools.
#[derive(Debug)]
pub(crate) struct Server {
    name: String,
    connector: Connector,
    timeout: Duration,
    output_bytes: usize,
    generation: ToolListGeneration,
    unscoped_elicitations: UnscopedElicitations,
    /// Places for calls.
    calls: Places,
    /// Places for separate sessions of calls.
    own_sessions: Places,
    /// Held calls of all servers. All servers share this value.
    held_calls: Arc<HeldCalls<HeldCall>>,
    /// Locked while connecting, so that concurrent calls share one session.
    session: Mutex<Option<Arc<Session>>>,
    /// Locked while the list is requested, so that concurrent callers request it once.
    tool_cache: Mutex<ToolCache>,
}

impl Server {
    pub(crate) fn new(
        name: &str,
        config: &ServerConfig,
        reachable: AddressPolicy,
        held_calls: Arc<HeldCalls<HeldCall>>,
        memory: ServiceMemory,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            name: name.to_owned(),
            connector: Connector::new(name, config, reachable, memory)?,
            timeout: config.timeout,
            output_bytes: config.output_bytes,
            generation: ToolListGeneration::default(),
            unscoped_elicitations: UnscopedElicitations::default(),
            calls: Places::new(MAX_CALLS),
            own_sessions: Places::new(MAX_OWN_SESSIONS),
            held_calls,
            session: Mutex::new(None),
            tool_cache: Mutex::default(),
        })
    }

    /// Checks the server, see [`McpServers::check`](crate::McpServers::check).
    pub(crate) async fn check(&self) -> Check {
        let mut check = Check::default();
        let begun = Instant::now();
        let session = self.with_timeout(self.timeout, self.session()).await;
        check.session_ms = millis(begun.elapsed());
        match session {
            Ok(session) => {
                let info = session.peer().peer_info();
                check.protocol = info.as_ref().map(|info| info.protocol_version.to_string());
                let software = info.as_ref().and_then(|info| info.server_info.as_ref());
                check.software = software.map(|it| {
                    self.connector.sanitizer().quote(&format!("{} {}", it.name, it.version))
                });
                let begun = Instant::now();
                let listing = self.with_timeout(self.timeout, self.fetch_tools()).await;
                check.tools_ms = Some(millis(begun.elapsed()));
                match listing {
                    Ok(listing) => check.tools = listing.tools,
                    Err(failure) => check.failure = Some(failure),
                }
            }
            Err(failure) => check.failure = Some(failure),
        }
        check.notes = self.connector.normalizer().notes();
        check
    }

    /// Calls a tool. The host does not repeat a call on which the server may have acted, since only
    /// the caller knows whether a second call is safe. The host repeats a call in three cases:
    ///
    /// * The server requests the repetition with a `requestState` of the stateless protocol.
    /// * The server no longer knows its `requestState`, because the answer came late or the server
    ///   was restarted. The server has then done nothing. The call starts from the beginning and
    ///   gets the earlier answers to the same questions.
    /// * The server does not know the session, and has done nothing. The host repeats the call once
    ///   in another session.
    pub(crate) async fn call(
        &self,
        caller: &Caller,
        call: ServerCall<'_>,
    ) -> Result<ServerCallResult, Failure> {
        let limit = self.timeout_of(call.request);
        let mut parameters = self.parameters(call)?;
        // Round of the next earlier answer, once the call was started from the beginning.
        let mut resumed = None;
        let mut has_lapsed = false;
        let mut pause = MIN_REPEAT_DELAY;
        for _ in 0..MAX_ATTEMPTS {
            let seat = self.call_slot(caller.owner, &call.request.tool, limit).await?;
            let running =
                RunningCall::start(seat, parameters.clone(), SendPermit::with_lease(call.lease));
            match self.with_timeout(limit, self.follow(running, caller, call, 0)).await? {
                CallStep::Outcome(ServerCallResult::Elicits(asked)) if asked.held.is_none() => {
                    let given = resumed
                        .and_then(|from| elicitation::stateless_answers(call.rounds, from, &asked));
                    let Some((next, answers)) = given else {
                        return Ok(ServerCallResult::Elicits(asked));
                    };
                    resumed = Some(next);
                    parameters.input_responses = Some(answers);
                    parameters.request_state = asked.state;
                }
                CallStep::Outcome(answer) => return Ok(answer),
                CallStep::Repeat(state) => {
                    sleep(pause).await;
                    pause = MAX_REPEAT_DELAY.min(pause * 2);
                    parameters.input_responses = None;
                    parameters.request_state = Some(state);
                }
                CallStep::StaleState(_)
                    if resumed.is_none() && parameters.request_state.is_some() =>
                {
                    resumed = Some(0);
                    parameters.input_responses = None;
                    parameters.request_state = None;
                }
                CallStep::UnknownSession(_) if !has_lapsed => has_lapsed = true,
                CallStep::StaleState(failure) | CallStep::UnknownSession(failure) => {
                    return Err(failure);
                }
            }
        }
        Err(self.too_many_repetitions(&call.request.tool))
    }

    /// Continues the held call of the last answer; `None` if the call or its connection is lost.
    pub(crate) async fn resume_held(
        &self,
        caller: &Caller,
        call: ServerCall<'_>,
    ) -> Result<Option<ServerCallResult>, Failure> {
        let Some((thread, round)) = call.thread.zip(call.rounds.last()) else { return Ok(None) };
        let name = round.elicitation.held.as_deref().unwrap_or_default();
        let Some(waiting) = self.held_calls.take(thread, name) else { return Ok(None) };
        let permit = SendPermit::with_lease(call.lease);
        let Some(running) = waiting.resume(round, permit).await else { return Ok(None) };
        let followed = self.follow(running, caller, call, call.rounds.len());
        match self.with_timeout(self.timeout_of(call.request), followed).await? {
            CallStep::Outcome(answer) => Ok(Some(answer)),
            CallStep::Repeat(_) => Err(self.too_many_repetitions(&call.request.tool)),
            CallStep::StaleState(failure) | CallStep::UnknownSession(failure) => Err(failure),
        }
    }

    fn timeout_of(&self, request: &ToolRequest) -> Duration {
        let wanted = request.timeout_ms.map(|ms| Duration::from_millis(ms.into()));
        wanted.map_or(self.timeout, |wanted| wanted.min(self.timeout))
    }

    fn parameters(&self, call: ServerCall<'_>) -> Result<CallToolRequestParams, Failure> {
        let request = call.request;
        let arguments = match &request.arguments {
            Value::Object(arguments) => arguments.clone(),
            Value::Null => serde_json::Map::new(),
            _ => {
                return Err(self.invalid_call(&request.tool, "its arguments are not a JSON object"));
            }
        };
        let mut parameters =
            CallToolRequestParams::new(request.tool.clone()).with_arguments(arguments);
        if let Some(round) = call.rounds.last().filter(|round| round.elicitation.held.is_none()) {
            parameters.input_responses = Some(input_responses(round));
            parameters.request_state.clone_from(&round.elicitation.state);
        }
        Ok(parameters)
    }

    /// Waits until a call ends, or until the call sends an elicitation that has no answer yet.
    /// `answered` is the number of answered rounds. An elicitation that the host cannot pass to a
    /// person is refused, and the call continues.
    async fn follow(
        &self,
        mut running: RunningCall,
        caller: &Caller,
        call: ServerCall<'_>,
        mut answered: usize,
    ) -> Result<CallStep, Failure> {
        let mut refused = None;
        loop {
            let CallElicitation { question, reply } = match running.next().await {
                CallEvent::Elicited(asked) => asked,
                CallEvent::Ended(ended) => {
                    // After a refused elicitation, a server may end the call with an error.
                    let is_refusal = matches!(&*ended, Err(error @ ServiceError::McpError(_))
                        if !failure::is_session_gone(error));
                    if let Some(refused) = refused.filter(|_| is_refusal) {
                        return Err(refused);
                    }
                    return self.finish(running.session(), &call.request.tool, *ended).await;
                }
            };
            if let Some((next, known)) = held_answer(call.rounds, answered, &question) {
                answered = next;
                let permit = SendPermit::with_lease(call.lease);
                reply.send(ElicitationAnswer { answer: Ok(known), permit }).ok();
                continue;
            }
            match self.reserve_held_slot(caller, call, &question) {
                Ok(slot) => {
                    let waiting =
                        HeldCall::new(running, reply, self.unscoped_elicitations.is_set());
                    let name = slot.hold(waiting);
                    let asked = elicitation::single_question(question, Some(name));
                    return Ok(CallStep::Outcome(ServerCallResult::Elicits(asked)));
                }
                Err(failure) => {
                    let answer = Err(ErrorData::internal_error(failure.message.clone(), None));
                    reply
                        .send(ElicitationAnswer {
                            answer,
                            permit: SendPermit::with_lease(call.lease),
                        })
                        .ok();
                    refused = Some(failure);
                }
            }
        }
    }

    /// Reserves a slot for holding a call until a person answers.
    fn reserve_held_slot(
        &self,
        caller: &Caller,
        call: ServerCall<'_>,
        question: &ElicitedQuestion,
    ) -> Result<HeldSlot<HeldCall>, Failure> {
        let (server, tool) = (self.name.as_str(), call.request.tool.as_str());
        let Some(thread) = call.thread else {
            return Err(elicit::elicitation_unsupported(server, tool));
        };
        let asked = elicitation::single_question(question.clone(), None);
        elicit::round_interrupt(server, tool, call.rounds.len(), &asked)?;
        self.held_calls.reserve(CallOwner {
            server,
            tool,
            thread,
            tenant: caller.tenant.as_deref(),
        })
    }

    async fn finish(
        &self,
        session: &Arc<Session>,
        tool: &str,
        ended: Result<CallToolResponse, ServiceError>,
    ) -> Result<CallStep, Failure> {
        let (server, subject) = (self.name.as_str(), format!("the tool `{tool}`"));
        let sanitizer = self.connector.sanitizer();
        if let Err(error) = &ended {
            let failure = || failure::request_failure(sanitizer, &subject, error);
            if failure::is_state_stale(error) {
                return Ok(CallStep::StaleState(failure()));
            }
            if failure::is_session_unknown(error) {
                return Ok(CallStep::UnknownSession(failure()));
            }
            if matches!(error, ServiceError::UnexpectedResponse) {
                return Err(unknown_input(server, tool));
            }
            // The message that could not be read may be the response to another request.
            let is_unclear = unreadable_response(session, error)
                .is_some_and(|message| message.response_to != ResponseTo::OnlyCall);
            if failure::is_session_lost(error) || is_unclear {
                self.discard_session(session, error).await;
                return Err(failure::in_doubt(sanitizer, &subject));
            }
        }
        let request = ResponseTo::OnlyCall;
        let outcome = match self.map_request_error(session, &subject, request, ended).await? {
            CallToolResponse::Complete(result) => {
                let (owner, is_long) = (sanitizer.work_owner(), tool_result::is_long(&result));
                let convert = || tool_result::to_tool_output(server, result, self.output_bytes);
                let mut output = block_in_place_in_turn(owner, is_long, convert).await?;
                if output.is_error && is_stateless(session) && mentions_elicitation(&output) {
                    output.content.push(Part::Text(self.handshake_advice()));
                }
                ServerCallResult::Returned(output)
            }
            CallToolResponse::InputRequired(asked) => match requested_input(server, tool, asked)? {
                RequestedInput::Answers(asked) => ServerCallResult::Elicits(asked),
                RequestedInput::Repeat(state) => return Ok(CallStep::Repeat(state)),
            },
            _ => {
                let wants = ("its caller to poll for the result", "let it return the result");
                return Err(unsupported(server, tool, "mcp.tasks", wants));
            }
        };
        Ok(CallStep::Outcome(outcome))
    }

    /// Closes the session. If a call is in progress, the session is closed at the end of the call.
    pub(crate) async fn close(&self) {
        if let Some(session) = self.session.lock().await.take() {
            close_session(&self.name, session).await;
        }
    }

    /// Returns the open session, or a new session.
    async fn session(&self) -> Result<Arc<Session>, Failure> {
        let mut open = self.session.lock().await;
        self.open_session(&mut open, |_| true).await
    }

    /// Returns `open` if it is usable and `is_of_use` accepts its calls, or else a new session.
    async fn open_session(
        &self,
        open: &mut Option<Arc<Session>>,
        is_of_use: impl Fn(&Calls) -> bool,
    ) -> Result<Arc<Session>, Failure> {
        let is_of_use =
            |session: &&Arc<Session>| is_usable(session) && is_of_use(session.service().calls());
        if let Some(session) = open.as_ref().filter(is_of_use) {
            return Ok(session.clone());
        }
        let session = self.connect().await?;
        Ok(open.insert(session).clone())
    }

    /// Returns a slot for a call of `owner`. If the server does not identify the call in its
    /// elicitations, the call gets a separate session, unless the shared session is free.
    async fn call_slot(
        &self,
        owner: CallerId,
        tool: &str,
        limit: Duration,
    ) -> Result<CallSlot, Failure> {
        let Ok(place) = timeout(limit, self.calls.take(owner)).await else {
            return Err(self.no_free_call(tool));
        };
        let mut slot = match self.with_timeout(limit, self.shared_slot()).await? {
            Some(slot) => slot,
            None => self.own_slot(owner, tool, limit).await?,
        };
        slot.hold(place);
        Ok(slot)
    }

    /// Returns a slot on a separate session.
    async fn own_slot(
        &self,
        owner: CallerId,
        tool: &str,
        limit: Duration,
    ) -> Result<CallSlot, Failure> {
        let Ok(place) = timeout(limit, self.own_sessions.take(owner)).await else {
            return Err(self.no_free_session(tool));
        };
        let session = self.with_timeout(limit, self.connect()).await?;
        let mut slot = CallSlot::new(session);
        slot.hold(place);
        Ok(slot)
    }

    /// Returns a slot on the shared session; `None` if the call needs a separate session. A session
    /// is replaced if it is reserved for a held call, or if an elicitation on it could belong to a
    /// cancelled call.
    async fn shared_slot(&self) -> Result<Option<CallSlot>, Failure> {
        let mut open = self.session.lock().await;
        let is_of_use = |calls: &Calls| {
            let is_unclear = self.unscoped_elicitations.is_set() && calls.have_cancelled();
            !calls.is_session_reserved() && !is_unclear
        };
        let session = self.open_session(&mut open, is_of_use).await?;
        let is_free = !self.unscoped_elicitations.is_set() || session.service().calls().are_idle();
        Ok(is_free.then(|| CallSlot::new(session)))
    }

    async fn connect(&self) -> Result<Arc<Session>, Failure> {
        let (sanitizer, changes) = (self.connector.sanitizer().clone(), self.generation.clone());
        let client = Client::new(sanitizer, changes, self.unscoped_elicitations.clone());
        let session = self.connector.connect(&self.name, client).await?;
        // The cache of `rmcp` is disabled, because `Server` caches the tool list for all sessions.
        session.set_response_cache_config(ClientCacheConfig::disabled()).await;
        tracing::debug!(server = %self.name, "opened an MCP session");
        Ok(Arc::new(session))
    }

    /// Converts an error to a failure, and discards the session if it is broken. If a message that
    /// could not be read is the response to `request`, the failure names its limit.
    async fn map_request_error<T>(
        &self,
        session: &Arc<Session>,
        subject: &str,
        request: ResponseTo,
        result: Result<T, ServiceError>,
    ) -> Result<T, Failure> {
        match result {
            Ok(answer) => Ok(answer),
            Err(error) => {
                self.discard_session(session, &error).await;
                let sanitizer = self.connector.sanitizer();
                Err(match unreadable_response(session, &error) {
                    Some(message) if message.response_to == request => {
                        failure::unreadable_response(sanitizer, subject, message.limit)
                    }
                    _ => failure::request_failure(sanitizer, subject, &error),
                })
            }
        }
    }

    /// Discards a broken session.
    async fn discard_session(&self, session: &Arc<Session>, error: &ServiceError) {
        if failure::ends_session(error) {
            let mut open = self.session.lock().await;
            if open.as_ref().is_some_and(|open| Arc::ptr_eq(open, session)) {
                *open = None;
            }
        }
    }

    async fn with_timeout<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        timeout(limit, work).await.unwrap_or_else(|_| Err(self.timed_out(limit)))
    }
}

/// Closes a session unless a call is in progress on it.
pub(crate) async fn close_session(server: &str, session: Arc<Session>) {
    let Some(mut session) = Arc::into_inner(session) else { return };
    if let Err(error) = session.close_with_timeout(CLOSE_TIMEOUT).await {
        tracing::debug!(server, %error, "cannot close an MCP session");
    }
}

/// Returns the message that may be the response to a failed request and that could not be read.
fn unreadable_response(session: &Session, error: &ServiceError) -> Option<UnreadableMessage> {
    let is_closed = matches!(error, ServiceError::TransportClosed);
    session.service().calls().unreadable_message().filter(|_| is_closed)
}

/// Returns true if a tool failed because it cannot send an elicitation.
fn mentions_elicitation(output: &ToolOutput) -> bool {
    let said =
        |part: &Part| matches!(part, Part::Text(text) if text.contains(ELICITATION_ERROR_TEXT));
    output.content.iter().any(said)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
