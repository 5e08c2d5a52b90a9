//! The inputs of the projection to spans, in addition to the events of a run.

use serde_json::Value;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};

use crate::spans::content;

/// A run that has ended or is interrupted.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// App of the run.
    pub app: &'a AppName,
    /// Graph of the run.
    pub graph: &'a GraphName,
    /// Thread of the run.
    pub thread: &'a ThreadId,
    /// Id of the run.
    pub run: &'a RunId,
    /// The tenant that the thread belongs to.
    pub tenant: Option<&'a str>,
    /// Status of the run.
    pub status: RunStatus,
    /// Failure of a failed run.
    pub failure: Option<&'a Failure>,
    /// Whether the log has more events of the run than the projection gets.
    pub truncated: bool,
    /// Input of the run; `None` if content is not exported.
    pub input: Option<&'a Value>,
    /// State after the run; `None` if content is not exported.
    pub output: Option<&'a Value>,
}

/// The first candidate of a model route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Name of the provider.
    pub provider: String,
    /// Name of the model.
    pub model: String,
}

/// Settings of the projection.
pub struct View<'a> {
    /// Whether to export inputs, outputs and messages. Otherwise spans have only metadata.
    pub content: bool,
    /// Returns the first candidate of a model route for the tenant of the run.
    pub route: &'a dyn Fn(&str) -> Option<Route>,
}

impl View<'_> {
    /// Returns the message of a failure, or its code if content is not exported.
    pub(super) fn failure(&self, failure: &Failure) -> String {
        if self.content { content::text(&failure.to_string()) } else { failure.code.clone() }
    }
}
