//! Streamed completions, conversations of histories and model routes.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::checkpoint::SharedList;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ChannelName;
use wattle_graph::llm::{CompletionRequest, HistoryReference};

use crate::gate::stream::{self, CompletionStream};
use crate::gate::task_input::{HistoryInput, ListRead};
use crate::gate::unwind::{CallError, Unwind};
use crate::gate::{Gate, GuestEnv};
use crate::grant::Grants;
use crate::hostcall::llm;
use crate::json::{approx_bytes, check_depth};
use crate::ports::model::RouteInfo;

impl Gate {
    /// Calls a model for a guest that reads the completion as a stream.
    ///
    /// # Errors
    ///
    /// [`CallError::Unwind`] if the guest must be unwound. [`CompletionStream::finish`] reports a
    /// failure of the call.
    pub fn stream(
        self: &Arc<Self>,
        request: CompletionRequest,
    ) -> Result<CompletionStream, CallError> {
        stream::start_stream(self, request)
    }

    /// Adds the history that a guest refers to. A reference that does not fit the conversation
    /// counts the bytes of the conversation, as a call with a history does: the host reads all of it
    /// to find a message by its id.
    ///
    /// The inner error is a failure for the guest: `unsupported` outside of a node, also in a tool
    /// that a node calls; `not-found` if the input has no such channel; `invalid` if its value is not
    /// a list; errors of [`CompletionRequest::with_history`].
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must be unwound.
    pub fn with_history(
        &self,
        request: CompletionRequest,
        reference: HistoryReference,
    ) -> Result<Result<CompletionRequest, Failure>, Unwind> {
        let list = match self.conversation(&reference.channel) {
            Ok(list) => list,
            Err(failure) => return Ok(Err(failure)),
        };
        let resolved = request.with_history(reference, list.clone());
        if resolved.is_err() {
            self.count_bytes(list.json_bytes())?;
        }
        Ok(resolved)
    }

    /// Returns the conversation that the history of a request refers to: the list in the input of
    /// the task under the name of the channel. A node can give to a model only what it reads. The
    /// list of a send is copied once. The conversation that the node declares has no messages as
    /// long as the input has no value for it.
    fn conversation(&self, channel: &ChannelName) -> Result<SharedList, Failure> {
        let Some((input, declared)) = self.history_input() else {
            return Err(self.unsupported("history outside of a node"));
        };
        let is_declared = declared == Some(channel);
        let value = input.channel(channel).filter(|it| !is_declared || *it != Value::Null);
        let Some(value) = value else {
            if is_declared {
                return Ok(SharedList::default());
            }
            let text = format!("the input of the node has no channel `{channel}`");
            return Err(Failure::new(code::NOT_FOUND, text));
        };
        value.list().cloned().ok_or_else(|| {
            let text = format!("channel `{channel}` is not a list, so it is not a history");
            Failure::new(code::INVALID, text)
        })
    }

    /// Returns true if [`Self::with_history`] is long work: for a large list of a send, which is
    /// copied, and for a list of which much has no index.
    pub fn is_long_conversation(&self, channel: &ChannelName) -> bool {
        self.history_input().is_some_and(|(input, _)| input.is_long_read(channel, ListRead::Index))
    }

    /// Returns the input of the node and the channel of the conversation that the node declares;
    /// `None` for a guest that is no node.
    fn history_input(&self) -> Option<(&HistoryInput, Option<&ChannelName>)> {
        match (&self.task, self.client_node()) {
            (Some(task), _) => Some((task.input.as_deref()?, task.conversation.as_ref())),
            (None, Some(node)) if self.depth == 0 => {
                Some((&node.input, node.conversation.as_ref()))
            }
            (None, _) => None,
        }
    }

    /// Returns the model behind a route for the caller's tenant.
    ///
    /// # Errors
    ///
    /// `denied` without a grant, `not-found` if the route does not exist.
    pub fn route(&self, route: &str) -> Result<RouteInfo, CallError> {
        let GuestEnv { ports, caller, grants, .. } = &self.env;
        self.call_fallible(llm::ROUTE, json!(route), || {
            llm::check_route_grant(grants, caller, route)?;
            let info = ports.model.route(caller, route);
            let info = info.ok_or_else(|| ports.model.route_not_found(route))?;
            Ok(json!(info))
        })
    }

    /// Overrides a model route for the tenant of the request.
    ///
    /// # Errors
    ///
    /// `denied` without a grant, `unsupported` inside a node; errors of the adapter;
    /// [`CallError::Unwind`] if the guest must be unwound.
    pub async fn set_route(&self, route: &str, config: Value) -> Result<(), CallError> {
        self.count_call()?;
        self.count_bytes(approx_bytes(&config))?;
        self.check_tenant_route("tenants.set-route", route)?;
        check_depth("the route", &config)?;
        Ok(self.env.ports.model.set_route(self.caller(), route, config).await?)
    }

    /// Returns the tenant's override of a model route, without the key.
    ///
    /// # Errors
    ///
    /// See [`Gate::set_route`].
    pub async fn get_route(&self, route: &str) -> Result<Option<Value>, CallError> {
        self.count_call()?;
        self.check_tenant_route("tenants.get-route", route)?;
        let config = self.env.ports.model.get_route(self.caller(), route).await?;
        self.count_bytes(config.as_ref().map_or(0, approx_bytes))?;
        Ok(config)
    }

    /// Removes the tenant's override, so that the operator's route applies again.
    ///
    /// # Errors
    ///
    /// See [`Gate::set_route`].
    pub async fn remove_route(&self, route: &str) -> Result<(), CallError> {
        self.count_call()?;
        self.check_tenant_route("tenants.remove-route", route)?;
        Ok(self.env.ports.model.remove_route(self.caller(), route).await?)
    }

    fn check_tenant_route(&self, function: &'static str, route: &str) -> Result<(), Failure> {
        if self.task.is_some() || self.client_node().is_some() {
            return Err(self.unsupported("tenants inside a node"));
        }
        let allows = |grants: &Grants| grants.tenant_routes.contains(route);
        if allows(&self.env.grants) {
            return Ok(());
        }
        let what = format!("may not set the model route `{route}` for tenants");
        let change = format!("add `tenant_routes = [\"{route}\"]`");
        let denied = self.env.grants.denial(self.caller(), &what, &change, allows);
        self.count_denial(function, &denied);
        Err(denied)
    }
}
