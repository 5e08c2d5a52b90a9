//! Records the metrics of a run.

use std::sync::PoisonError;

use serde_json::Value;
use wattle_graph::call::CallKind;
use wattle_graph::event::{Called, EventKind, TaskFault};
use wattle_graph::failure::{Failure, code};

use crate::metrics::{
    CallLabels, FaultLabels, MAX_TOOLS, Metrics, ModelLabels, NodeLabels, RouteLabels,
    TOOL_NAME_BYTES, TokenLabels, ToolLabels,
};
use crate::run_log::RunLog;

/// Label of all tool calls whose tool does not exist or is not granted. A model can choose the
/// names of such tools.
const NO_TOOL: &str = "(none)";

/// Label of all routes and models of tenants, of all codes of guests, and of all tools above
/// [`MAX_TOOLS`].
pub(crate) const OTHER: &str = "other";

/// Code of a model call whose output the provider withheld. The host reports it in addition to
/// [`code::ALL`].
const WITHHELD: &str = "withheld";

/// Microseconds per second.
const MICROS_PER_SECOND: f64 = 1_000_000.0;

impl Metrics {
    /// Records a run. `models` returns the models that the operator configured for a route.
    pub(crate) fn record_run(&self, record: &RunLog, models: &dyn Fn(&str) -> Vec<String>) {
        let app = || record.note.app.to_string();
        let graph = || record.note.graph.to_string();
        for event in &record.events {
            match &event.kind {
                EventKind::TaskFinished(it) => {
                    let node = it.node.to_string();
                    let labels = NodeLabels { app: app(), graph: graph(), node };
                    self.nodes.get_or_create(&labels).observe(seconds(it.duration_us));
                }
                EventKind::TaskFailed(it) => {
                    let (node, fault) = (it.node.to_string(), fault_name(it.fault).to_owned());
                    let labels = FaultLabels { app: app(), graph: graph(), node, fault };
                    self.attempts_failed.get_or_create(&labels).inc();
                }
                EventKind::Called(called) => self.record_call(called, models),
                _ => {}
            }
        }
    }

    fn record_call(&self, called: &Called, models: &dyn Fn(&str) -> Vec<String>) {
        match called.kind() {
            // The run that received a reused completion already counted the completion.
            Some(kind) if kind.is_model_call() && called.reused.is_none() => {
                self.record_model_call(called, models);
            }
            Some(CallKind::CallTool) => self.record_tool_call(called),
            _ => {}
        }
        if let Err(failure) = &called.result {
            let (function, code) = (called.function.clone(), code_of(failure).to_owned());
            self.call_failures.get_or_create(&CallLabels { function, code }).inc();
        }
    }

    fn record_model_call(&self, called: &Called, models: &dyn Fn(&str) -> Vec<String>) {
        let route = called.route().unwrap_or_default();
        let configured = models(route);
        let model = model_of(called, &configured);
        let route = if configured.is_empty() { OTHER } else { route }.to_owned();
        let took = self.model_seconds.get_or_create(&RouteLabels { route: route.clone() }).clone();
        took.observe(seconds(called.duration_us));
        if let Some(tokens) = called.tokens {
            for (direction, count) in [("input", tokens.input), ("output", tokens.output)] {
                let labels = TokenLabels { route: route.clone(), model: model.clone(), direction };
                self.tokens.get_or_create(&labels).inc_by(count);
            }
        }
        let outcome = outcome(&called.result);
        self.model_calls.get_or_create(&ModelLabels { route, model, outcome }).inc();
    }

    fn record_tool_call(&self, called: &Called) {
        let outcome = match called.tool_output() {
            Some(output) if output.is_error => "error".to_owned(),
            _ => outcome(&called.result),
        };
        let made_up = [code::NOT_FOUND, code::DENIED].contains(&outcome.as_str());
        let tool = called.tool_request().filter(|_| !made_up).map(|request| request.tool);
        let tool = tool.map_or_else(|| NO_TOOL.to_owned(), |tool| self.counted(tool));
        self.tool_calls.get_or_create(&ToolLabels { tool, outcome }).inc();
    }

    /// Returns the label of a tool: its name, or [`OTHER`] if the name is longer than
    /// [`TOOL_NAME_BYTES`] or if [`MAX_TOOLS`] other tools already have a label.
    fn counted(&self, tool: String) -> String {
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = tools.len() < MAX_TOOLS && tool.len() <= TOOL_NAME_BYTES;
        if !has_room && !tools.contains(&tool) {
            return OTHER.to_owned();
        }
        tools.insert(tool.clone());
        tool
    }
}

/// Returns the configured name of the model that answered a call. Returns the first model of the
/// route if the log names no model, and [`OTHER`] for a model that the operator did not configure.
/// The result is never a name that only the service uses for the model.
pub(crate) fn model_of(called: &Called, configured: &[String]) -> String {
    let last = called.completion().and_then(|mut completion| completion.attempts.pop());
    let by_images = || called.images()?.into_iter().next().map(|image| image.model);
    let model = match last.map(|attempt| attempt.model).or_else(by_images) {
        Some(answered) => configured.iter().find(|model| **model == answered),
        None => configured.first(),
    };
    model.map_or(OTHER, String::as_str).to_owned()
}

fn outcome(result: &Result<Value, Failure>) -> String {
    result.as_ref().err().map_or("ok", code_of).to_owned()
}

/// Returns the code of a failure of the host. Returns [`OTHER`] for all codes that guests choose.
pub(crate) fn code_of(failure: &Failure) -> &'static str {
    let mut known = code::ALL.iter().copied().chain([WITHHELD]);
    known.find(|code| *code == failure.code).unwrap_or(OTHER)
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / MICROS_PER_SECOND
}

fn fault_name(fault: TaskFault) -> &'static str {
    match fault {
        TaskFault::Failure => "failure",
        TaskFault::Trap => "trap",
        TaskFault::Limit => "limit",
        TaskFault::Timeout => "timeout",
        TaskFault::Divergence => "divergence",
        TaskFault::Host => "host",
    }
}
