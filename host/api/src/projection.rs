//! What a projection sees of an event besides the event: its time, and the state of the thread.

use std::sync::Arc;

use serde_json::Value;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::{CheckpointId, Namespace, ThreadId};
use wattle_graph::mapping::Subject;
use wattle_run::app::App;
use wattle_run::hostcall::clock::{Zoned, to_zone};
use wattle_run::ports::Store;

/// What holds for all events of a run.
pub fn subject(app: &App, thread: &str, run: &str) -> Subject {
    Subject {
        app: app.name.as_str().into(),
        thread: thread.into(),
        run: run.into(),
        settings: Value::clone(&app.settings),
    }
}

/// The thread as it was when an event happened. Events must be shown to it in order.
pub struct Past {
    store: Arc<dyn Store>,
    thread: ThreadId,
    zone: String,
    /// The checkpoint that the thread stood at.
    checkpoint: Option<CheckpointId>,
    /// The one that was read last, with its state.
    read: Option<(CheckpointId, Value)>,
}

impl Past {
    /// The past of a thread, before any event; times are those of the zone.
    pub fn new(store: Arc<dyn Store>, zone: &str, thread: &ThreadId) -> Self {
        Self { store, thread: thread.clone(), zone: zone.to_owned(), checkpoint: None, read: None }
    }

    /// Takes note of an event.
    pub fn see(&mut self, event: &Event) {
        if event.namespace != Namespace::root() {
            return;
        }
        match &event.kind {
            EventKind::Checkpointed(checkpointed) => {
                self.checkpoint = Some(checkpointed.checkpoint);
            }
            // A run that goes on from a question has no checkpoint of its own at first.
            EventKind::TaskFinished(finished) if self.checkpoint.is_none() => {
                self.checkpoint = Some(finished.base);
            }
            _ => {}
        }
    }

    /// Channel values at the last checkpoint, an object; `null` before there is one, or if it
    /// cannot be read.
    pub async fn state(&mut self) -> &Value {
        let wanted = self.checkpoint;
        if self.read.as_ref().map(|(id, _)| *id) != wanted {
            self.read = match wanted {
                Some(id) => Some((id, self.load(id).await)),
                None => None,
            };
        }
        self.read.as_ref().map_or(&Value::Null, |(_, state)| state)
    }

    async fn load(&self, id: CheckpointId) -> Value {
        let thread = &self.thread;
        match self.store.checkpoint(thread, &Namespace::root(), Some(id)).await {
            Ok(tuple) => tuple.map(|tuple| tuple.checkpoint.state()).unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%thread, %error, "a projection goes without the state");
                Value::Null
            }
        }
    }

    /// When an event happened, such as `2025-01-15T10:30:45+08:00`; empty outside the years that a
    /// calendar has.
    pub fn time(&self, event: &Event) -> String {
        to_zone(event.at_ms, &self.zone).as_ref().map(time).unwrap_or_default()
    }

    /// The same down to milliseconds, such as `20250115-10-30-45-123`.
    pub fn stamp(&self, event: &Event) -> String {
        to_zone(event.at_ms, &self.zone).as_ref().map(stamp).unwrap_or_default()
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

fn stamp(zoned: &Zoned) -> String {
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
    fn times_are_those_of_the_zone() {
        for (zone, at, short) in [
            ("Asia/Shanghai", "2025-01-15T10:30:45+08:00", "20250115-10-30-45-123"),
            ("UTC", "2025-01-15T02:30:45+00:00", "20250115-02-30-45-123"),
            ("America/St_Johns", "2025-01-14T23:00:45-03:30", "20250114-23-00-45-123"),
        ] {
            let zoned = to_zone(1_736_908_245_123, zone).unwrap();
            assert_eq!((time(&zoned).as_str(), stamp(&zoned).as_str()), (at, short));
        }
    }
}
