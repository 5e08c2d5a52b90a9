//! A plugin whose node calls are measured.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::id::{AppName, TaskId};
use wattle_graph::tool::ToolOutput;

use super::recorded_run::CallEvent;
use super::refusing_ports::refused;
use crate::gate::Gate;
use crate::grant::Grants;
use crate::log::ThreadLog;
use crate::ports::Plugin;
use crate::ports::sandbox::{
    GuestError, NodeCall, NodeOutcome, PluginInfo, PluginToolCall, WebRequest, WebResponse,
};

/// Times of the steps of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StepTimes {
    /// Number of node calls.
    pub(super) steps: u32,
    /// Time in the plugin: instances, guests, JSON.
    pub(super) plugin: Duration,
    /// Time to write the inputs as JSON and to parse the outputs.
    pub(super) json: Duration,
    /// Time of the measurement itself.
    pub(super) overhead: Duration,
}

/// State that the measured plugins of one execution share.
pub(super) struct StepMeter {
    log: Arc<ThreadLog>,
    call_events: Arc<BTreeMap<TaskId, Vec<CallEvent>>>,
    asked_by_tools: Arc<BTreeSet<TaskId>>,
    times: Mutex<StepTimes>,
}

impl StepMeter {
    /// Creates the meter of an execution that writes a log.
    pub(super) fn new(
        log: Arc<ThreadLog>,
        call_events: Arc<BTreeMap<TaskId, Vec<CallEvent>>>,
        asked_by_tools: Arc<BTreeSet<TaskId>>,
    ) -> Self {
        Self { log, call_events, asked_by_tools, times: Mutex::default() }
    }

    /// Returns the times so far.
    pub(super) fn times(&self) -> StepTimes {
        *self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the times of steps. No code that can panic runs under the lock.
    fn add(&self, step: StepTimes) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.steps += step.steps;
        times.plugin += step.plugin;
        times.json += step.json;
        times.overhead += step.overhead;
    }

    /// Writes the events of the recorded calls of a task. The gate writes no events of calls whose
    /// results are recorded.
    async fn write_call_events(&self, task: &TaskId) {
        let Some(call_events) = self.call_events.get(task) else { return };
        for CallEvent { namespace, kind, is_flushed } in call_events {
            let log = self.log.for_namespace(namespace.clone());
            log.push(kind.clone());
            if *is_flushed {
                log.flush().await;
            }
        }
    }
}

/// A plugin whose node calls are measured.
pub(super) struct MeasuredPlugin {
    plugin: Arc<dyn Plugin>,
    meter: Arc<StepMeter>,
}

impl MeasuredPlugin {
    /// Measures the node calls of a plugin.
    pub(super) fn new(plugin: Arc<dyn Plugin>, meter: Arc<StepMeter>) -> Self {
        Self { plugin, meter }
    }
}

#[async_trait]
impl Plugin for MeasuredPlugin {
    fn info(&self) -> &PluginInfo {
        self.plugin.info()
    }

    async fn run_node(&self, call: NodeCall, gate: Arc<Gate>) -> Result<NodeOutcome, GuestError> {
        let task = call.task.clone();
        let before = Instant::now();
        drop(black_box(call.guest_input().text()));
        let written = before.elapsed();
        let started = Instant::now();
        let outcome = self.plugin.run_node(call, gate).await;
        let plugin = started.elapsed();
        let after = Instant::now();
        let json = written + outcome.as_ref().map_or(Duration::ZERO, time_to_parse);
        let overhead = written + after.elapsed();
        self.meter.add(StepTimes { steps: 1, plugin, json, overhead });
        self.meter.write_call_events(&task).await;
        outcome
    }

    async fn call_tool(
        &self,
        call: PluginToolCall,
        gate: Arc<Gate>,
    ) -> Result<ToolOutput, GuestError> {
        // The call of a tool with a recorded result is not executed. Only the call of a tool that
        // raised an interrupt has no result.
        if call.task.as_ref().is_none_or(|task| !self.meter.asked_by_tools.contains(task)) {
            return Err(GuestError::Failure(refused("tool")));
        }
        self.plugin.call_tool(call, gate).await
    }

    async fn handle(
        &self,
        request: WebRequest,
        gate: Arc<Gate>,
    ) -> Result<WebResponse, GuestError> {
        self.plugin.handle(request, gate).await
    }

    async fn reduce(
        &self,
        app: &AppName,
        reducer: &str,
        current: Option<Value>,
        updates: Vec<Value>,
        grants: &Grants,
    ) -> Result<Value, GuestError> {
        let started = Instant::now();
        let reduced = self.plugin.reduce(app, reducer, current, updates, grants).await;
        self.meter.add(StepTimes { plugin: started.elapsed(), ..StepTimes::default() });
        reduced
    }
}

/// Returns the time to parse the JSON of an outcome.
fn time_to_parse(outcome: &NodeOutcome) -> Duration {
    let written = outcome.writes.iter().map(|write| &write.value);
    let sent = outcome.sends.iter().map(|send| &send.input);
    let texts: Vec<String> = written.chain(sent).map(Value::to_string).collect();
    let started = Instant::now();
    for text in &texts {
        drop(black_box(serde_json::from_str::<Value>(text)));
    }
    started.elapsed()
}
