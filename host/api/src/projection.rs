//! Projections of apps: the data that they read in addition to an event, which is its time and the
//! state of the thread, and the turns in which they are evaluated.

use serde_json::Value;
use wattle_graph::checkpoint::{ChannelValue, Checkpoint};
use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::{CheckpointId, Namespace, ThreadId};
use wattle_graph::limit::{Exceeded, SHORT_JSON_BYTES};
use wattle_graph::mapping::{ProjectionBudget, RunInfo};
use wattle_run::app::App;
use wattle_run::blocking::{are_large_values, block_in_place_in_turn};
use wattle_run::caller_id::CallerId;
use wattle_run::hostcall::clock::{Zoned, to_zone};
use wattle_run::log::event_memory_bytes;
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

/// Returns true if an event takes more memory than [`SHORT_JSON_BYTES`], so that building its JSON
/// form delays other tasks on the same thread. Does not read the texts of the event.
pub fn is_long_event(event: &Event) -> bool {
    event_memory_bytes(&event.kind) > SHORT_JSON_BYTES
}

/// Returns true if copying or writing the state of a checkpoint delays other tasks on the same
/// thread.
pub fn is_large_state(checkpoint: &Checkpoint) -> bool {
    are_large_values(checkpoint.values.values().flat_map(ChannelValue::items))
}

/// Applies an event to a projection. If `is_long` is false, applies it within a short part of the
/// budget `whole` first, which delays no other task. If that is not enough, applies it within all of
/// `whole`, in a turn of the owner.
///
/// # Errors
///
/// [`Exceeded`] if the projection exceeds the budget `whole`.
pub async fn apply_in_turn<T>(
    owner: CallerId,
    is_long: bool,
    whole: &mut ProjectionBudget,
    mut apply: impl FnMut(&mut ProjectionBudget) -> Result<T, Exceeded> + Send,
) -> Result<T, Exceeded> {
    if !is_long && let Ok(applied) = whole.within_short(&mut apply) {
        return Ok(applied);
    }
    block_in_place_in_turn(owner, true, || apply(whole)).await
}

/// The state of a thread at the time of an event. The events must be applied in order.
pub struct StateAtEvent {
    states: StateCache,
    thread: ThreadId,
    zone: String,
    position: Position,
}

/// The current checkpoint of the root graph after the last applied event.
#[derive(Default)]
struct Position {
    checkpoint: Option<CheckpointId>,
    /// Copy of the state of the checkpoint; `None` until an event needs the state.
    copy: Option<Value>,
}

impl Position {
    fn apply(&mut self, event: &Event) {
        if event.namespace != Namespace::root() {
            return;
        }
        match &event.kind {
            EventKind::Checkpointed(checkpointed) => {
                *self = Self { checkpoint: Some(checkpointed.checkpoint), copy: None };
            }
            // A run that resumes after an interrupt starts without a checkpoint event. Its tasks
            // name the checkpoint on which they are based.
            EventKind::TaskFinished(finished) if self.checkpoint.is_none() => {
                self.checkpoint = Some(finished.base);
            }
            _ => {}
        }
    }
}

impl StateAtEvent {
    /// Creates the state of a thread before its first event. Times are in `zone`.
    pub fn new(states: StateCache, zone: &str, thread: &ThreadId) -> Self {
        Self {
            states,
            thread: thread.clone(),
            zone: zone.to_owned(),
            position: Position::default(),
        }
    }

    /// Applies an event. The copy of an earlier state is freed.
    pub fn apply(&mut self, event: &Event) {
        self.position.apply(event);
    }

    /// Frees the copy of the state. The next call of [`state`](Self::state) copies it again.
    pub fn release(&mut self) {
        self.position.copy = None;
    }

    /// Returns the channel values at the current checkpoint as an object. Returns `null` before the
    /// first checkpoint and if the state cannot be read. A large state is copied in a turn of the
    /// owner.
    pub async fn state(&mut self, owner: CallerId) -> &Value {
        if let Position { checkpoint: Some(id), copy: None } = self.position {
            let checkpoint = self.load(id).await;
            let is_long = checkpoint.as_ref().is_some_and(is_large_state);
            let copy = || checkpoint.as_ref().map(Checkpoint::state).unwrap_or_default();
            self.position.copy = Some(block_in_place_in_turn(owner, is_long, copy).await);
        }
        self.position.copy.as_ref().unwrap_or(&Value::Null)
    }

    /// Returns the current checkpoint. Returns `None` before the first checkpoint and if the
    /// checkpoint cannot be read.
    pub async fn current(&self) -> Option<Checkpoint> {
        self.load(self.position.checkpoint?).await
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
    use std::sync::Arc;

    use serde_json::json;
    use wattle_graph::mapping::{EventContext, StreamProjection, StreamProjector};

    use super::*;

    #[test]
    fn events_are_long_by_the_memory_of_their_values() {
        let is_long = |data: Value| {
            let event = json!({
                "seq": 1, "at_ms": 0, "run": "r", "type": "custom", "task": "t", "node": "n",
                "name": "note", "data": data,
            });
            is_long_event(&serde_json::from_value(event).unwrap())
        };
        assert!(!is_long(json!("x".repeat(200_000))));
        assert!(is_long(json!("x".repeat(300_000))));
        assert!(!is_long(json!(vec![0; 1_000])));
        assert!(is_long(json!(vec![0; 10_000])), "a short text with many values");
    }

    /// Returns the budgets within which a projection is applied.
    async fn budgets(is_long: bool, is_short_enough: bool) -> Vec<ProjectionBudget> {
        let (mut whole, mut budgets) = (ProjectionBudget::default(), Vec::new());
        let apply = |budget: &mut ProjectionBudget| {
            budgets.push(*budget);
            if is_short_enough || *budget == ProjectionBudget::default() {
                return Ok(());
            }
            Err(Exceeded { limit: "steps", allowed: 1, message: String::new() })
        };
        apply_in_turn(CallerId::default(), is_long, &mut whole, apply).await.unwrap();
        budgets
    }

    #[tokio::test]
    async fn only_long_projections_are_applied_in_a_turn() {
        let (short, whole) = (ProjectionBudget::short(), ProjectionBudget::default());
        assert_eq!(budgets(false, true).await, [short]);
        assert_eq!(budgets(false, false).await, [short, whole]);
        assert_eq!(budgets(true, true).await, [whole]);
    }

    #[tokio::test]
    async fn short_projections_count_against_the_whole_budget() {
        // An expression takes as many steps as its text has bytes at least.
        let long = format!("\"='{}'\"", "x".repeat(900));
        let data = [long.as_str(); 5].join(", ");
        let text = format!("[[messages]]\non = 'run_ended'\ndata = [{data}]");
        let mapping = Arc::new(StreamProjection::parse(&text).unwrap());
        let [app, thread, run, settings] = ["a", "t", "r", "s"].map(Value::from);
        let mut stream = StreamProjector::new(mapping, RunInfo { app, thread, run, settings });
        let ended = json!({ "seq": 1, "at_ms": 0, "run": "r", "type": "run_ended",
                            "status": "completed" });
        let ended: Event = serde_json::from_value(ended).unwrap();
        let context = EventContext { time: "", state: &Value::Null };
        let (owner, mut whole) = (CallerId::default(), ProjectionBudget::default());
        let mut exceeded = None;
        for _ in 0..2_500 {
            let apply = |budget: &mut ProjectionBudget| stream.apply(&ended, context, budget);
            exceeded = apply_in_turn(owner, false, &mut whole, apply).await.err();
            if exceeded.is_some() {
                break;
            }
        }
        assert_eq!(exceeded.map(|it| it.limit), Some("projection_steps"));
    }

    #[test]
    fn copy_of_a_state_is_freed_at_the_next_checkpoint() {
        let event = |fields: Value| {
            let mut event = json!({ "seq": 1, "at_ms": 0, "run": "r" });
            event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            serde_json::from_value::<Event>(event).unwrap()
        };
        let checkpointed = json!({ "type": "checkpointed", "checkpoint": 2, "step": 1,
                                   "source": "loop", "changed": [], "next": [] });
        let mut nested = checkpointed.clone();
        nested["namespace"] = "agent:task-0".into();
        let note = json!({ "type": "custom", "task": "t", "node": "n", "name": "x", "data": 1 });
        let mut position = Position { checkpoint: Some(CheckpointId(1)), copy: Some(json!({})) };
        for other in [nested, note] {
            position.apply(&event(other));
            assert_eq!(position.checkpoint, Some(CheckpointId(1)));
            assert_eq!(position.copy, Some(json!({})), "later events may need it");
        }
        position.apply(&event(checkpointed));
        assert_eq!((position.checkpoint, position.copy), (Some(CheckpointId(2)), None));
    }

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
