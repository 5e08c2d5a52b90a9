//! Data that projections of apps read in addition to an event: its time, and the state of the
//! thread.

use serde_json::Value;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::{CheckpointId, Namespace, ThreadId};
use wattle_graph::mapping::RunInfo;
use wattle_run::app::App;
use wattle_run::hostcall::clock::{Zoned, to_zone};
use wattle_run::state_cache::StateCache;

/// Returns the projection data that is the same for all events of a run.
pub fn run_info(app: &App, thread: &str, run: &str) -> RunInfo {
    RunInfo {
        app: app.name.as_str().into(),
        thread: thread.into(),
        run: run.into(),
        settings: Value::clone(&app.settings),
    }
}

/// The state of a thread at the time of an event. The events must be applied in order.
pub struct StateAtEvent {
    states: StateCache,
    thread: ThreadId,
    zone: String,
    /// Current checkpoint of the root graph after the last applied event.
    checkpoint: Option<CheckpointId>,
    /// Checkpoint that was loaded last, with its state.
    loaded: Option<(CheckpointId, Value)>,
}

impl StateAtEvent {
    /// Creates the state of a thread before its first event. Times are in `zone`.
    pub fn new(states: StateCache, zone: &str, thread: &ThreadId) -> Self {
        Self {
            states,
            thread: thread.clone(),
            zone: zone.to_owned(),
            checkpoint: None,
            loaded: None,
        }
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        if event.namespace != Namespace::root() {
            return;
        }
        match &event.kind {
            EventKind::Checkpointed(checkpointed) => {
                self.checkpoint = Some(checkpointed.checkpoint);
            }
            // A run that resumes after an interrupt starts without a checkpoint event. Its tasks
            // name the checkpoint on which they are based.
            EventKind::TaskFinished(finished) if self.checkpoint.is_none() => {
                self.checkpoint = Some(finished.base);
            }
            _ => {}
        }
    }

    /// Returns the channel values at the current checkpoint as an object. Returns `null` before the
    /// first checkpoint and if the state cannot be read.
    pub async fn state(&mut self) -> &Value {
        let current = self.checkpoint;
        if self.loaded.as_ref().map(|(id, _)| *id) != current {
            self.loaded = match current {
                Some(id) => {
                    let checkpoint = self.load(id).await;
                    Some((id, checkpoint.map(|checkpoint| checkpoint.state()).unwrap_or_default()))
                }
                None => None,
            };
        }
        self.loaded.as_ref().map_or(&Value::Null, |(_, state)| state)
    }

    /// Returns the current checkpoint. Returns `None` before the first checkpoint and if the
    /// checkpoint cannot be read.
    pub async fn current(&self) -> Option<Checkpoint> {
        self.load(self.checkpoint?).await
    }

    async fn load(&self, id: CheckpointId) -> Option<Checkpoint> {
        let thread = &self.thread;
        match self.states.checkpoint(thread, &Namespace::root(), id).await {
            Ok(tuple) => tuple.map(|tuple| tuple.checkpoint),
            Err(error) => {
                tracing::warn!(
                    %thread,
                    %error,
                    "cannot read the thread state that the projection of an event needs"
                );
                None
            }
        }
    }

    /// Returns the time of an event, such as `2025-01-15T10:30:45+08:00`. Returns an empty string
    /// for a time outside of the supported years.
    pub fn time(&self, event: &Event) -> String {
        to_zone(event.at_ms, &self.zone).as_ref().map(time).unwrap_or_default()
    }

    /// Returns the time of an event with milliseconds for file names, such as
    /// `20250115-10-30-45-123`. Returns an empty string for a time outside of the supported years.
    pub fn file_timestamp(&self, event: &Event) -> String {
        to_zone(event.at_ms, &self.zone).as_ref().map(file_timestamp).unwrap_or_default()
    }
}

fn time(zoned: &Zoned) -> String {
    let civil = &zoned.civil;
    let minutes = zoned.offset_seconds.abs() / 60;
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}{:02}:{:02}",
        civil.year,
        civil.month,
        civil.day,
        civil.hour,
        civil.minute,
        civil.second,
        if zoned.offset_seconds < 0 { '-' } else { '+' },
        minutes / 60,
        minutes % 60
    )
}

fn file_timestamp(zoned: &Zoned) -> String {
    let civil = &zoned.civil;
    format!(
        "{:04}{:02}{:02}-{:02}-{:02}-{:02}-{:03}",
        civil.year,
        civil.month,
        civil.day,
        civil.hour,
        civil.minute,
        civil.second,
        civil.millisecond
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_time_zone() {
        for (zone, expected, file) in [
            ("Asia/Shanghai", "2025-01-15T10:30:45+08:00", "20250115-10-30-45-123"),
            ("UTC", "2025-01-15T02:30:45+00:00", "20250115-02-30-45-123"),
            ("America/St_Johns", "2025-01-14T23:00:45-03:30", "20250114-23-00-45-123"),
        ] {
            let zoned = to_zone(1_736_908_245_123, zone).unwrap();
            assert_eq!((time(&zoned).as_str(), file_timestamp(&zoned).as_str()), (expected, file));
        }
    }
}
