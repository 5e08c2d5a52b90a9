//! What spans are made from besides the events of a run.

use serde_json::Value;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};

use crate::spans::content;

/// A run that has ended or waits.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// Its app.
    pub app: &'a AppName,
    /// Its graph.
    pub graph: &'a GraphName,
    /// Its thread.
    pub thread: &'a ThreadId,
    /// Its id.
    pub run: &'a RunId,
    /// The tenant that the thread belongs to.
    pub tenant: Option<&'a str>,
    /// How it ended.
    pub status: RunStatus,
    /// Why, if it failed.
    pub failure: Option<&'a Failure>,
    /// Whether it has more events than were read.
    pub truncated: bool,
    /// What it began with, if that is shown.
    pub input: Option<&'a Value>,
    /// The state that it left, if that is shown.
    pub output: Option<&'a Value>,
}

/// The first candidate of a model route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its provider.
    pub provider: String,
    /// Its model.
    pub model: String,
}

/// What decides how spans look, besides the run.
pub struct View<'a> {
    /// Whether to show requests, answers and texts of guests.
    pub content: bool,
    /// The first candidate of a model route for the tenant of the run.
    pub route: &'a dyn Fn(&str) -> Option<Route>,
}

impl View<'_> {
    /// Why something failed; only the code where content is left out.
    pub(super) fn failure(&self, failure: &Failure) -> String {
        if self.content { content::text(&failure.to_string()) } else { failure.code.clone() }
    }
}
