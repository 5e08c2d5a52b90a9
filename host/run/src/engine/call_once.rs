//! Calls one tool of an app for a client, outside of any run.
//!
//! The tool has the gate of a guest without a journal: grants, budgets and limits are those of the
//! plugin, and nothing is recorded. The client gets the list of the host calls with the output.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;
use wattle_graph::failure::{Failure, code};
use wattle_graph::tool::{ToolOutput, ToolRequest};

use super::Engine;
use super::find_function::{Found, PluginFunction as _, find_function};
use crate::app::App;
use crate::caller_id::CallerId;
use crate::gate::call_list::{CallList, ListedCall};
use crate::gate::client_call::ClientCall;
use crate::gate::tool_check::{check_arguments, check_output_size};
use crate::gate::tool_timeout::ToolTimeout;
use crate::gate::unwind::Unwind;
use crate::gate::{Gate, GuestEnv, HostedApp as _, handlers_full};
use crate::json::{check_depth, with_integers};
use crate::ports::sandbox::{GuestError, PluginToolCall, ToolInfo};
use crate::run_memory::MemoryCharge;

/// A call of one tool.
#[derive(Clone, Debug)]
pub struct CallToolOnce {
    /// Full reference of the tool, such as `date/parse`, or a name that one plugin of the app has.
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
    /// Tenant of the caller.
    pub tenant: Option<String>,
    /// Caller for which the guest instance and its work count.
    pub caller: CallerId,
}

/// The end of a call of one tool.
#[derive(Debug)]
pub struct ToolCallEnd {
    /// The output, or the failure that ended the tool.
    pub result: Result<ToolOutput, Failure>,
    /// Duration of the call.
    pub duration: Duration,
    /// Host calls of the tool and of the tools that it called, in the order in which they began.
    pub calls: Vec<ListedCall>,
    /// Number of further host calls.
    pub omitted_calls: u64,
}

impl Engine {
    /// Calls a tool of an app. The call ends if its future is dropped.
    ///
    /// # Errors
    ///
    /// `not-found` if the app has no such tool; `invalid` for a name that several plugins have, and
    /// for arguments that the tool does not accept; `unavailable` if guests outside of runs hold as
    /// many instances as they may. A failure of the tool is in the result.
    pub async fn call_tool_once(
        &self,
        app: &Arc<App>,
        call: CallToolOnce,
    ) -> Result<ToolCallEnd, Failure> {
        let CallToolOnce { tool, arguments, tenant, caller } = call;
        check_depth("the arguments", &arguments)?;
        let Found { plugin, info, .. } = find_function::<ToolInfo>(app, &tool)?;
        let env = self.env_outside_of_runs(app, plugin, tenant, caller);
        let call_id = uuid::Uuid::new_v4().to_string();
        let called_as = tool.clone();
        let request = ToolRequest { tool, call_id, arguments, timeout_ms: None, state: None };
        let violations = check_arguments(&env, info, &request).await?;
        let instance = self.0.handlers.lease(caller, 1, usize::MAX);
        let instance = instance.map_err(|_full| handlers_full())?;
        let tool_call = tool_call(&env, info, request, violations);
        let grants = Arc::clone(&env.grants);
        let allowed_ms = grants.limits.node_timeout_ms;
        let calls = CallList::default();
        let client = ClientCall { calls: calls.clone(), node: None };
        // The requests of a tool have no history, so they are no longer than what the tool wrote.
        let memory = MemoryCharge::default();
        let gate = Arc::new(Gate::for_client(env, instance, memory, client));
        let started = Instant::now();
        let work = {
            let (app, plugin) = (Arc::clone(app), plugin.clone());
            async move {
                let timeout = ToolTimeout { tool: &called_as, allowed_ms };
                app.call_tool(&plugin, tool_call, gate, timeout).await
            }
        };
        let ended = AbortOnDropHandle::new(self.0.runtime.spawn(work)).await;
        let duration = started.elapsed();
        let result = match ended {
            Ok(Ok(output)) => check_output_size(output, &info.name, &grants, (&app.name, plugin)),
            Ok(Err(ended)) => Err(to_failure(ended, ToolInfo::KIND)),
            Err(error) => Err(Failure::internal(format!("the tool call failed: {error}"))),
        };
        let (calls, omitted_calls) = calls.to_calls();
        Ok(ToolCallEnd { result, duration, calls, omitted_calls })
    }
}

fn tool_call(
    env: &GuestEnv,
    info: &ToolInfo,
    request: ToolRequest,
    violations: Vec<String>,
) -> PluginToolCall {
    PluginToolCall {
        tool: info.name.clone(),
        call_id: request.call_id,
        thread: None,
        task: None,
        tenant: env.caller.tenant.clone(),
        violations,
        arguments: with_integers(request.arguments),
        state: None,
        grants: Arc::clone(&env.grants),
    }
}

/// Converts the error of a guest that a client calls. `kind` is the kind of the guest, for messages.
pub(super) fn to_failure(ended: GuestError, kind: &str) -> Failure {
    match ended {
        GuestError::Failure(failure)
        | GuestError::Trap(failure)
        | GuestError::Limit(failure)
        | GuestError::Host(failure)
        | GuestError::Unwound(
            Unwind::Limit(failure) | Unwind::Divergence(failure) | Unwind::LogLost(failure),
        ) => failure,
        GuestError::Unwound(Unwind::Cancelled | Unwind::Drained) => {
            Failure::new(code::CANCELLED, format!("the {kind} call was cancelled"))
        }
        // The gate refuses interrupts of a tool without a task. The caller takes those of a node.
        GuestError::Unwound(Unwind::Suspended(_)) => {
            Failure::internal(format!("the {kind} raised an interrupt outside of a run"))
        }
    }
}
