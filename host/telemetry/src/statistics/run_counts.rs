//! The counts that a run adds to statistics.

use wattle_graph::call::CallKind;
use wattle_graph::event::{Called, EventKind, TaskFault};
use wattle_run::ports::observer::RunSummary;

use crate::metrics::run_metrics::{OTHER, model_of};
use crate::run_log::RunLog;
use crate::statistics::bucket::Bucket;
use crate::statistics::counts::{ModelCounts, ModelKey, REST, RunCounts, RunKey};

/// Returns the counts of a run whose log was not read.
pub(super) fn of_summary(note: &RunSummary) -> Bucket {
    let mut counts = RunCounts::of_run(note.status, note.failure.as_ref());
    if let Some(failure) = &note.failure {
        counts.count_limit(failure);
    }
    let mut bucket = Bucket::default();
    bucket.runs.add(key(note), &counts);
    bucket
}

/// Returns the counts of a run, its model calls and the limits that it reached. `models` returns
/// the models that the operator configured for a route.
pub(super) fn of_run(record: &RunLog, models: &dyn Fn(&str) -> Vec<String>) -> Bucket {
    let RunLog { note, events, .. } = record;
    let mut counts = RunCounts::of_run(note.status, note.failure.as_ref());
    let mut bucket = Bucket::default();
    for event in events {
        match &event.kind {
            // The run that received a reused result already counted the result.
            EventKind::Called(called) if called.reused.is_none() => {
                if let Err(failure) = &called.result {
                    counts.count_limit(failure);
                }
                count_model_call(&mut bucket, note, called, models);
            }
            EventKind::TaskFailed(it) if matches!(it.fault, TaskFault::Limit) => {
                counts.count_limit(&it.failure);
            }
            _ => {}
        }
    }
    // The failure of a run is often the failure of one of its calls or tasks, which is already
    // counted.
    if let Some(failure) = note.failure.as_ref().filter(|_| counts.limits.is_empty()) {
        counts.count_limit(failure);
    }
    if let (Some(first), Some(last), false) = (events.first(), events.last(), record.truncated) {
        let ms = last.at_ms.saturating_sub(first.at_ms);
        counts.count_duration(u64::try_from(ms).unwrap_or(0));
    }
    bucket.runs.add(key(note), &counts);
    bucket
}

/// Returns the time of the last event of a run; `None` if that event was not read.
pub(super) fn ended_ms(record: &RunLog) -> Option<i64> {
    record.events.last().filter(|_| !record.truncated).map(|event| event.at_ms)
}

fn key(note: &RunSummary) -> RunKey {
    RunKey { app: note.app.to_string(), tenant: note.tenant.clone().unwrap_or_default() }
}

fn count_model_call(
    bucket: &mut Bucket,
    note: &RunSummary,
    called: &Called,
    models: &dyn Fn(&str) -> Vec<String>,
) {
    if !called.kind().is_some_and(CallKind::is_model_call) {
        return;
    }
    let configured = models(called.route().unwrap_or_default());
    let model = model_of(called, &configured);
    let model = if model == OTHER { REST.to_owned() } else { model };
    let tokens = called.tokens.unwrap_or_default();
    let counts = ModelCounts {
        calls: 1,
        failed: u64::from(called.result.is_err()),
        input_tokens: tokens.input,
        output_tokens: tokens.output,
    };
    bucket.models.add(ModelKey { run: key(note), model }, &counts);
}
