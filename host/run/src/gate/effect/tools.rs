//! Calls of tools: those of the app's plugins and those of MCP servers.
//!
//! A plugin may call the tools that it was granted, by name or by full reference (`date/parse`,
//! `mcp:graph/list`). Granted tools with the same name can be called by reference only, so no tool
//! receives the calls of another. The answer to an elicitation goes to the tool whose server
//! elicited, even if the name of that tool now refers to another tool.

mod images;
mod refusal;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::TryFutureExt as _;
use futures::future::join_all;
use serde_json::json;
use wattle_graph::event::Decision;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{PluginName, ThreadId};

use wattle_graph::llm::{Completion, CompletionRequest};
use wattle_graph::tool::{ToolOutput, ToolRequest};

use crate::gate::effect::{Effect, EffectContext};
use crate::gate::elicit::AnsweredRounds;
use crate::gate::entry::CallEntry;
use crate::gate::tool_check::{check_arguments, check_output_size};
use crate::gate::tool_timeout::ToolTimeout;
use crate::gate::unwind::{CallError, GuestError, Unwind};
use crate::gate::{Gate, GuestEnv};
use crate::grant::{InDoubtPolicy, ToolGrant, ToolSource};
use crate::hostcall::elicit::elicitation_unsupported;
use crate::hostcall::tools::{ListTools, PluginToolCall, ToolHints, ToolInfo};
use crate::json::{check_depth, with_integers};
use crate::limit;
use crate::ports::lease::CallLease;
use crate::ports::tool_server::{ServerCall, ServerCallResult};
use crate::ports::{Caller, ToolServers};

impl Effect for ToolRequest {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<ToolOutput, CallError> {
        call_tool(context, self).await
    }
}

impl Effect for ListTools {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<Vec<ToolInfo>, CallError> {
        Ok(list_tools(context).await)
    }
}

/// Logs the tools of the app's plugins that the model calls although the request does not offer
/// them, because the caller was not granted them. A guest knows only the tools that it was granted,
/// so it cannot distinguish such a tool from one that does not exist.
pub(super) fn log_not_granted(
    context: &EffectContext<'_>,
    request: &CompletionRequest,
    completion: &Completion,
) {
    let mut called: BTreeSet<&str> =
        completion.tool_calls().map(|call| call.name.as_str()).collect();
    called.retain(|name| request.tools.iter().all(|tool| tool.name != *name));
    for failure in called.into_iter().filter_map(|name| not_granted(context, name)) {
        let text = format!("the model called a tool that it was not offered: {}", failure.message);
        context.log("warn", &text);
    }
}

/// A tool with its source.
struct Tool {
    source: ToolSource,
    info: ToolInfo,
}

impl Tool {
    fn reference(&self) -> String {
        format!("{}/{}", self.source, self.info.name)
    }
}

/// The granted tools of a caller that can be listed now.
struct GrantedTools {
    tools: Vec<Tool>,
    /// Sources whose tools cannot be listed.
    unavailable: Vec<(ToolSource, Failure)>,
}

impl GrantedTools {
    fn names(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.info.name.as_str()).collect()
    }

    /// Returns the message for a name that several tools have.
    fn ambiguous(&self, name: &str) -> String {
        let named = self.tools.iter().filter(|tool| tool.info.name == name);
        refusal::ambiguous(name, &named.map(Tool::reference).collect::<Vec<_>>())
    }
}

/// Lists the tools of a caller, each under a name that identifies it. A source whose tools cannot
/// be listed has one unavailable entry, so that the caller can distinguish an unavailable tool from
/// one that does not exist.
async fn list_tools(context: &EffectContext<'_>) -> Vec<ToolInfo> {
    let toolbox = list_granted(context).await;
    for (_, failure) in &toolbox.unavailable {
        context.log("warn", &format!("tools are missing: {failure}"));
    }
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in &toolbox.tools {
        *count.entry(&tool.info.name).or_default() += 1;
    }
    for (name, _) in count.iter().filter(|&(_, &claims)| claims > 1) {
        context.log("warn", &toolbox.ambiguous(name));
    }
    let shadowed = |tool: &Tool| count.get(tool.info.name.as_str()).is_some_and(|&n| n > 1);
    let visible = toolbox.tools.iter().map(|tool| {
        let mut info = ToolInfo { reference: Some(tool.reference()), ..tool.info.clone() };
        if shadowed(tool) || looks_like_reference(&tool.info.name) {
            info.name = tool.reference();
        }
        info
    });
    let missing = toolbox.unavailable.iter().map(|(source, failure)| unavailable(source, failure));
    visible.chain(missing).collect()
}

/// Returns the entry for all tools of an unavailable source.
fn unavailable(source: &ToolSource, failure: &Failure) -> ToolInfo {
    ToolInfo {
        name: format!("{source}/*"),
        description: failure.message.clone(),
        arguments_schema: json!({ "type": "object" }),
        accepts_invalid: false,
        hints: ToolHints::default(),
        reference: None,
        unavailable: Some(failure.clone()),
    }
}

/// Returns true if the name of a tool has the form of a reference to a tool of another source. A
/// server can give its tools any names.
fn looks_like_reference(name: &str) -> bool {
    name.parse::<ToolGrant>().is_ok()
}

/// Finds a tool, validates the arguments and calls it. First continues or settles a call that
/// started before: such a call may have taken effect, even if its tool cannot be found now.
async fn call_tool(
    context: &EffectContext<'_>,
    request: &ToolRequest,
) -> Result<ToolOutput, CallError> {
    let known = context.entry.map(CallEntry::answered_rounds).transpose()?.unwrap_or_default();
    if let Some(entry) = context.entry {
        entry.task.journal.count_size(known.size, &context.grants.limits)?;
    }
    if let Some(output) = continue_held_call(context, request, &known).await? {
        return Ok(output);
    }
    let found = match known.server_tool.clone() {
        Some((server, tool)) => {
            let grant = ToolGrant { source: ToolSource::Server(server), tool: Some(tool) };
            find_by_reference(context, grant, &request.tool).await
        }
        None => find_tool(context, &request.tool).await,
    };
    let named = request.tool.parse::<ToolGrant>().ok().filter(|grant| grant.tool.is_some());
    let is_settled = named.is_some_and(|grant| is_never_in_doubt(context, &grant.source));
    let tool = match found {
        Ok(tool) => tool,
        Err(failure) if is_settled => return Err(failure.into()),
        Err(failure) => {
            // The hints of the tool are unknown, so the call counts as not idempotent.
            let output = settle_in_doubt(context, ToolHints::default(), &known).await?;
            return output.ok_or(CallError::Failure(failure));
        }
    };
    check_depth("the arguments", &request.arguments)?;
    if !is_never_in_doubt(context, &tool.source)
        && !was_suspended(context, &tool.source)
        && let Some(output) = settle_in_doubt(context, tool.info.hints, &known).await?
    {
        return Ok(output);
    }
    match &tool.source {
        ToolSource::Plugin(plugin) => {
            let violations = check_arguments(context.env, &tool.info, request).await?;
            call_plugin(context, plugin, &tool, request, violations).await
        }
        // A server validates the arguments itself: its schema may use a draft or a pattern that
        // this host cannot read, and many servers accept `"2"` for 2.
        ToolSource::Server(server) => call_server(context, server, &tool, request, &known).await,
    }
}

/// Returns true if calls of a source are never in doubt: calls of a plugin that may not write
/// files. The host calls that its tools make have their own journal.
fn is_never_in_doubt(context: &EffectContext<'_>, source: &ToolSource) -> bool {
    let ToolSource::Plugin(plugin) = source else { return false };
    !context.env.app.grants_of(plugin).may_write_files()
}

/// Returns true if the last start of a plugin's tool ended with an interrupt of the tool: no part
/// of the suspended tool was executing when the host stopped.
fn was_suspended(context: &EffectContext<'_>, source: &ToolSource) -> bool {
    let ToolSource::Plugin(_) = source else { return false };
    let Some(entry) = context.entry else { return false };
    let suspended = entry.task.last_suspension_of_tool(entry.number);
    entry.last_start_seq.is_some_and(|begun| suspended.is_some_and(|seq| seq > begun))
}

/// Lists the tools of all sources concurrently, so that their delays do not add up.
async fn list_granted(context: &EffectContext<'_>) -> GrantedTools {
    let mut toolbox = GrantedTools { tools: Vec::new(), unavailable: Vec::new() };
    let grants = &context.grants.tools;
    let all = join_all(grants.iter().map(|grant| list_source(context, &grant.source))).await;
    for (grant, offered) in grants.iter().zip(all) {
        match offered {
            Err(failure) => {
                if toolbox.unavailable.iter().all(|(source, _)| *source != grant.source) {
                    toolbox.unavailable.push((grant.source.clone(), failure));
                }
            }
            Ok(infos) => {
                for info in infos.into_iter().filter(|info| grant.covers(&info.name)) {
                    let tool = Tool { source: grant.source.clone(), info };
                    if !toolbox.tools.iter().any(|known| known.reference() == tool.reference()) {
                        toolbox.tools.push(tool);
                    }
                }
            }
        }
    }
    toolbox
}

async fn list_source(
    context: &EffectContext<'_>,
    source: &ToolSource,
) -> Result<Vec<ToolInfo>, Failure> {
    match source {
        ToolSource::Plugin(name) => Ok(context.env.app.tools(name)?.to_vec()),
        ToolSource::Server(server) => context.ports.tools.list(context.caller, server).await,
    }
}

async fn find_tool(context: &EffectContext<'_>, wanted: &str) -> Result<Tool, Failure> {
    if let Ok(grant) = wanted.parse::<ToolGrant>()
        && grant.tool.is_some()
    {
        return find_by_reference(context, grant, wanted).await;
    }
    let mut toolbox = list_granted(context).await;
    let mut places =
        (0..toolbox.tools.len()).filter(|&place| toolbox.tools[place].info.name == wanted);
    match (places.next(), places.next()) {
        (Some(place), None) => Ok(toolbox.tools.swap_remove(place)),
        (Some(_), Some(_)) => {
            let text = toolbox.ambiguous(wanted);
            context.log("error", &text);
            Err(Failure::new(code::DENIED, text))
        }
        (None, _) => Err(match toolbox.unavailable.pop() {
            // The tool may belong to a source that cannot be listed.
            Some((_, missing)) => Failure {
                message: format!(
                    "the tool `{wanted}` is not among the tools that can be listed now: {}",
                    missing.message
                ),
                ..missing
            },
            None => not_granted(context, wanted)
                .unwrap_or_else(|| refusal::unknown_name(context, wanted, &toolbox.names())),
        }),
    }
}

async fn find_by_reference(
    context: &EffectContext<'_>,
    grant: ToolGrant,
    wanted: &str,
) -> Result<Tool, Failure> {
    let name = grant.tool.as_deref().unwrap_or_default();
    if !is_granted(context, &grant.source, name) {
        return Err(refusal::denied(context, wanted, &[wanted.to_owned()]));
    }
    let mut infos = list_source(context, &grant.source).await?;
    let Some(at) = infos.iter().position(|info| info.name == name) else {
        let granted = infos.iter().filter(|info| is_granted(context, &grant.source, &info.name));
        let references: Vec<String> =
            granted.map(|info| format!("{}/{}", grant.source, info.name)).collect();
        let names: Vec<&str> = references.iter().map(String::as_str).collect();
        return Err(refusal::unknown_reference(context, wanted, &names));
    };
    Ok(Tool { source: grant.source, info: infos.swap_remove(at) })
}

fn is_granted(context: &EffectContext<'_>, source: &ToolSource, tool: &str) -> bool {
    context.grants.tools.iter().any(|grant| grant.source == *source && grant.covers(tool))
}

/// Returns the failure for a tool that plugins of the app provide, possibly the caller itself, and
/// that the caller was not granted. Returns `None` if it was granted the tool of one of them.
fn not_granted(context: &EffectContext<'_>, wanted: &str) -> Option<Failure> {
    let providers = context.env.app.providers_of(wanted);
    if providers.iter().any(|name| is_granted(context, &ToolSource::Plugin(name.clone()), wanted)) {
        return None;
    }
    let references: Vec<String> =
        providers.iter().map(|plugin| format!("{plugin}/{wanted}")).collect();
    (!references.is_empty()).then(|| refusal::denied(context, wanted, &references))
}

async fn call_plugin(
    context: &EffectContext<'_>,
    name: &PluginName,
    tool: &Tool,
    request: &ToolRequest,
    violations: Vec<String>,
) -> Result<ToolOutput, CallError> {
    if context.depth >= limit::TOOL_DEPTH {
        return Err(refusal::too_deep().into());
    }
    let env = GuestEnv {
        caller: Caller { plugin: name.clone(), ..context.caller.clone() },
        grants: context.env.app.grants_of(name),
        ..context.env.clone()
    };
    let task = context.entry.as_ref().map(|entry| entry.task.for_tool_call(entry.number));
    let grants = Arc::clone(&env.grants);
    let call = PluginToolCall {
        tool: tool.info.name.clone(),
        call_id: call_id(context, request),
        thread: task.as_ref().map(|task| task.log.thread().clone()),
        task: task.as_ref().map(|task| task.task.clone()),
        tenant: context.caller.tenant.clone(),
        violations,
        arguments: with_integers(request.arguments.clone()),
        state: request.state.clone(),
        grants: Arc::clone(&grants),
    };
    let budget = match &task {
        Some(task) => task.journal.budget(),
        None => Arc::new(context.budget.for_handler_tool()?),
    };
    let (depth, client) = (context.depth + 1, context.client.cloned());
    let gate = Arc::new(Gate::for_tool(env, task, budget, depth, client));
    let timeout = timeout_of(request, grants.limits.node_timeout_ms);
    match context.env.app.call_tool(name, call, gate, timeout).await {
        Ok(output) => {
            let tool_of = (&context.caller.app, name);
            Ok(check_output_size(output, &request.tool, &grants, tool_of)?)
        }
        Err(ended) => Err(into_call_error(context, ended)),
    }
}

/// Returns the model's id of the call, or one that derives from the call path and is the same after
/// a crash.
fn call_id(context: &EffectContext<'_>, request: &ToolRequest) -> String {
    match (&context.entry, request.call_id.is_empty()) {
        (_, false) => request.call_id.clone(),
        (Some(entry), true) => {
            format!("{}-{}", entry.task.task, entry.call_path())
        }
        (None, true) => uuid::Uuid::new_v4().to_string(),
    }
}

/// Returns the timeout that the request wants, or `most_ms` if that is less.
fn timeout_of(request: &ToolRequest, most_ms: u64) -> ToolTimeout<'_> {
    let allowed_ms = request.timeout_ms.map_or(most_ms, |wanted| u64::from(wanted).min(most_ms));
    ToolTimeout { tool: &request.tool, allowed_ms }
}

/// Converts the error of a tool: a failure for its caller, unless the whole task must be unwound.
fn into_call_error(context: &EffectContext<'_>, ended: GuestError) -> CallError {
    let failure = match ended {
        GuestError::Unwound(Unwind::Limit(failure))
        | GuestError::Trap(failure)
        | GuestError::Limit(failure) => {
            context.log("error", &failure.message);
            failure
        }
        GuestError::Unwound(unwind) => return unwind.into(),
        GuestError::Failure(failure) | GuestError::Host(failure) => failure,
    };
    failure.into()
}

/// A call of a tool of a server.
struct ServerToolCall<'a> {
    server: &'a str,
    request: &'a ToolRequest,
    /// The request with the tool's name on the server.
    server_request: ToolRequest,
    lease: CallLease,
    answered: &'a AnsweredRounds,
    timeout: ToolTimeout<'a>,
}

impl<'a> ServerToolCall<'a> {
    fn new(
        context: &EffectContext<'_>,
        (server, tool): (&'a str, &str),
        request: &'a ToolRequest,
        answered: &'a AnsweredRounds,
    ) -> Self {
        let call_id = call_id(context, request);
        let arguments = with_integers(request.arguments.clone());
        let server_request =
            ToolRequest { tool: tool.to_owned(), call_id, arguments, ..request.clone() };
        let lease =
            context.entry.map(|entry| entry.task.log.call_lease()).cloned().unwrap_or_default();
        let timeout = timeout_of(request, context.grants.limits.node_timeout_ms);
        Self { server, request, server_request, lease, answered, timeout }
    }

    fn to_server_call<'c>(&'c self, context: &'c EffectContext<'_>) -> ServerCall<'c> {
        let thread = context.entry.map(|entry| entry.task.log.thread());
        let Self { server_request, lease, answered, .. } = self;
        ServerCall { request: server_request, thread, lease, rounds: &answered.rounds }
    }
}

/// Continues the tool call that the MCP server holds open until the last answer arrives. Returns
/// `None` if no call is held open. The server knows the state of the call, so neither the policy
/// nor the tool's hints are consulted. A person's decision about the call takes precedence over the
/// answer.
async fn continue_held_call(
    context: &EffectContext<'_>,
    request: &ToolRequest,
    known: &AnsweredRounds,
) -> Result<Option<ToolOutput>, CallError> {
    let Some((server, tool)) = known.server_tool.as_ref().filter(|_| known.is_held()) else {
        return Ok(None);
    };
    let is_decided = context.entry.is_some_and(|entry| entry.decision.is_some());
    if is_decided || !is_granted(context, &ToolSource::Server(server.clone()), tool) {
        return Ok(None);
    }
    let call = ServerToolCall::new(context, (server, tool), request, known);
    let gone_on =
        context.ports.tools.continue_call(context.caller, server, call.to_server_call(context));
    // The hints of the tool are unknown here, so the call counts as not idempotent.
    let gone_on = gone_on.map_err(|failure| call_failure(context, ToolHints::default(), failure));
    match call.timeout.limit(gone_on).await? {
        Some(answer) => output_or_interrupt(context, &call, answer).await.map(Some),
        None => Ok(None),
    }
}

async fn call_server(
    context: &EffectContext<'_>,
    server: &str,
    tool: &Tool,
    request: &ToolRequest,
    known: &AnsweredRounds,
) -> Result<ToolOutput, CallError> {
    let call = ServerToolCall::new(context, (server, &tool.info.name), request, known);
    let made = context.ports.tools.call(context.caller, server, call.to_server_call(context));
    let made = made.map_err(|failure| call_failure(context, tool.info.hints, failure));
    let answer = call.timeout.limit(made).await?;
    output_or_interrupt(context, &call, answer).await
}

/// Returns the output of a call. If the server elicits, raises an interrupt.
async fn output_or_interrupt(
    context: &EffectContext<'_>,
    call: &ServerToolCall<'_>,
    answer: ServerCallResult,
) -> Result<ToolOutput, CallError> {
    let (grants, tools) = (context.grants, context.ports.tools.as_ref());
    match (answer, context.entry) {
        (ServerCallResult::Returned(output), _) => {
            let output = images::store_images(context, call.server, output).await;
            let Caller { app, plugin, .. } = context.caller;
            Ok(check_output_size(output, &call.request.tool, grants, (app, plugin))?)
        }
        (ServerCallResult::Elicits(elicitation), Some(entry)) => {
            let thread = entry.task.log.thread();
            let mut held = HeldCallGuard { tools, thread, name: elicitation.held.clone() };
            let asker = (call.server, call.server_request.tool.as_str());
            let round = call.answered.rounds.len();
            let unwind = entry.elicit(asker, round, elicitation, &grants.limits).await?;
            if matches!(unwind, Unwind::Suspended(_)) {
                held.name = None;
            }
            Err(unwind.into())
        }
        (ServerCallResult::Elicits(_), None) => {
            Err(elicitation_unsupported(call.server, &call.server_request.tool).into())
        }
    }
}

/// A tool call that the MCP server keeps open until an answer arrives. Dropping the guard before
/// the interrupt is logged releases the call: no answer will come.
struct HeldCallGuard<'a> {
    tools: &'a dyn ToolServers,
    thread: &'a ThreadId,
    /// `None` if no call is held, or if the interrupt is logged.
    name: Option<String>,
}

impl Drop for HeldCallGuard<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.tools.release_call(self.thread, name);
        }
    }
}

/// Returns the failure of a call. The failure stays `in-doubt` unless the call is idempotent or the
/// operator's policy is to retry.
fn call_failure(context: &EffectContext<'_>, hints: ToolHints, failure: Failure) -> Failure {
    let is_harmless = hints.read_only || hints.idempotent;
    let may_repeat = is_harmless || context.grants.in_doubt == InDoubtPolicy::Retry;
    if failure.code == code::IN_DOUBT && may_repeat {
        return Failure { code: code::UNAVAILABLE.to_owned(), ..failure }.retryable();
    }
    failure
}

/// Decides about a call that may have taken effect before its host stopped. Returns the call's
/// output, or `None` if the call is executed again.
async fn settle_in_doubt(
    context: &EffectContext<'_>,
    hints: ToolHints,
    known: &AnsweredRounds,
) -> Result<Option<ToolOutput>, CallError> {
    let Some(entry) = context.entry.filter(|_| !(hints.read_only || hints.idempotent)) else {
        return Ok(None);
    };
    // A call without a start is new, or its last attempt failed, or the decision is to retry.
    let Some(begun) = entry.last_start_seq else { return Ok(None) };
    // The server's side of the call ended with the last round, and the call has not started since.
    if !known.is_held() && begun < known.raised_seq {
        return Ok(None);
    }
    match entry.settle(context.grants.in_doubt, begun.max(known.raised_seq)).await? {
        Decision::Retry => Ok(None),
        Decision::Fail => Err(entry.in_doubt_failure().into()),
        Decision::Answer { answer } => serde_json::from_value(answer).map(Some).map_err(|error| {
            let text = format!("the output given for the in-doubt call is invalid: {error}");
            Failure::new(code::INVALID, text).into()
        }),
    }
}
