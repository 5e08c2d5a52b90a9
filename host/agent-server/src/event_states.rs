//! The states and earlier events that are needed to encode an event.
//!
//! States are read from the store. A run with durability `exit` stores only its last state, so its
//! earlier states are recomputed from the writes of its tasks. Every reader of the log gets the
//! same states, whether the run has ended or not.

mod start_checkpoint;

use std::sync::Arc;

use wattle_graph::checkpoint::{Checkpoint, CheckpointSource};
use wattle_graph::event::{Checkpointed, Event, EventKind, RunReason, RunStarted};
use wattle_graph::failure::Failure;
use wattle_graph::id::{CheckpointId, Namespace, ThreadId};
use wattle_graph::lineage::Lineage;
use wattle_project::projection::{EventState, NeededState, goes_on};
use wattle_run::app::{App, GraphVersion};
use wattle_run::engine::Engine;
use wattle_run::ports::store::{CheckpointTuple, Durability, RunRecord, StoreError};
use wattle_run::unpersisted;

/// Reads the states for the events of one thread. The events must be passed in order, from the
/// first event of a run.
pub(crate) struct EventStates {
    engine: Engine,
    thread: ThreadId,
    /// Whether an encoder needs states.
    needs_states: bool,
    /// The record of the run that starts next, if the caller has passed it.
    run: Option<RunRecord>,
    /// The current run, if it stores only its last state.
    exit_run: Option<ExitRun>,
}

/// A run that stores only its last state.
struct ExitRun {
    code: (Arc<App>, Arc<GraphVersion>),
    /// Current state of the run; `None` if it is unknown.
    lineage: Option<Lineage>,
}

impl EventStates {
    pub(crate) fn new(engine: &Engine, thread: &ThreadId, needs_states: bool) -> Self {
        Self {
            engine: engine.clone(),
            thread: thread.clone(),
            needs_states,
            run: None,
            exit_run: None,
        }
    }

    /// Passes the record of the run that starts next, so that the record is not read again.
    pub(crate) fn set_run(&mut self, run: RunRecord) {
        self.run = Some(run);
    }

    /// Records that an encoder needs states from now on.
    pub(crate) fn require(&mut self) {
        self.needs_states = true;
    }

    /// Returns the states and earlier events that are needed to encode an event. The result is
    /// empty if the store cannot be read.
    pub(crate) async fn state_for(
        &mut self,
        event: &Event,
        need: Option<&NeededState>,
    ) -> EventState {
        match self.try_state_for(event, need).await {
            Ok(state) => state,
            Err(error) => {
                let thread = &self.thread;
                tracing::warn!(%thread, %error, "streaming an event without its state");
                EventState::default()
            }
        }
    }

    async fn try_state_for(
        &mut self,
        event: &Event,
        need: Option<&NeededState>,
    ) -> Result<EventState, Failure> {
        let is_root = event.namespace.is_root();
        match &event.kind {
            EventKind::RunStarted(started) if is_root => {
                return self.on_run_started(event, started, need).await;
            }
            EventKind::Checkpointed(made) if is_root && self.exit_run.is_some() => {
                let checkpoint = self.on_checkpoint(event, made).await?;
                return Ok(self.checkpoint_state(need, checkpoint).await);
            }
            EventKind::RunEnded(_) if is_root => self.exit_run = None,
            _ => {
                let lineage = self.exit_run.as_mut().and_then(|run| run.lineage.as_mut());
                if let Some(lineage) = lineage {
                    lineage.apply(event);
                }
            }
        }
        let Some(NeededState::Checkpoint(namespace, id) | NeededState::Input(namespace, id)) = need
        else {
            return Ok(EventState::default());
        };
        let checkpoint = self.read_checkpoint(namespace, *id).await.map_err(store_failure)?;
        Ok(self.checkpoint_state(need, checkpoint).await)
    }

    /// Handles the start or the recovery of a run.
    async fn on_run_started(
        &mut self,
        event: &Event,
        started: &RunStarted,
        need: Option<&NeededState>,
    ) -> Result<EventState, Failure> {
        let is_new = started.reason != RunReason::Recovery;
        if is_new {
            self.exit_run = None;
        }
        if need.is_none() && !(self.needs_states && is_new) {
            return Ok(EventState::default());
        }
        let run = match self.run.take_if(|run| run.id == event.run) {
            None => self.engine.ports().store.run(&event.run).await.map_err(store_failure)?,
            known => known,
        };
        let Some(run) = run else { return Ok(EventState::default()) };
        let is_exit = is_new && run.options.durability == Durability::Exit;
        let continues = goes_on(started.reason);
        let base = if need.is_some() || (is_exit && continues) {
            self.base_checkpoint(&run, event).await.map_err(store_failure)?
        } else {
            None
        };
        if is_exit {
            self.exit_run =
                self.load_exit_run(started, base.as_ref().filter(|_| continues)).await?;
        }
        Ok(match base {
            Some(CheckpointTuple { checkpoint, events }) => EventState {
                checkpoint: Some(checkpoint),
                before: if continues { events } else { Vec::new() },
                ..EventState::default()
            },
            None => EventState::default(),
        })
    }

    /// Returns the checkpoint from which a run continues, with the events between it and the run.
    async fn base_checkpoint(
        &self,
        run: &RunRecord,
        event: &Event,
    ) -> Result<Option<CheckpointTuple>, StoreError> {
        let Some(id) = start_checkpoint::find_start_checkpoint(&self.engine, run, event).await?
        else {
            return Ok(None);
        };
        let states = self.engine.states();
        let tuple = unpersisted::root_checkpoint(states, &self.thread, id).await?;
        Ok(tuple.map(|mut tuple| {
            tuple.events.retain(|before| before.seq < event.seq);
            tuple
        }))
    }

    async fn load_exit_run(
        &self,
        started: &RunStarted,
        base: Option<&CheckpointTuple>,
    ) -> Result<Option<ExitRun>, Failure> {
        let head = self.engine.ports().store.thread(&self.thread).await.map_err(store_failure)?;
        let Some(head) = head else { return Ok(None) };
        let catalog = self.engine.catalog();
        let code = catalog.load_version(&head.record.app, &started.graph, started.digest).await;
        // Without the code, the states of unpersisted checkpoints are unknown.
        let code = code.unwrap_or_default();
        let lineage = base.map(|tuple| {
            let mut lineage = Lineage::new(tuple.checkpoint.clone());
            tuple.events.iter().for_each(|event| lineage.apply(event));
            lineage
        });
        Ok(code.map(|code| ExitRun { code, lineage }))
    }

    /// Handles a checkpoint of a run that stores only its last state.
    async fn on_checkpoint(
        &mut self,
        event: &Event,
        made: &Checkpointed,
    ) -> Result<Option<Checkpoint>, Failure> {
        let stored = match made.source {
            CheckpointSource::Loop => None,
            _ => self
                .read_checkpoint(&event.namespace, made.checkpoint)
                .await
                .map_err(store_failure)?,
        };
        let Some(run) = &mut self.exit_run else { return Ok(stored) };
        // If the recomputation fails, the state is unknown from this checkpoint on.
        let lineage = run.lineage.take();
        let checkpoint = match (stored, lineage) {
            (Some(stored), _) => stored,
            (None, Some(lineage)) => {
                let (app, graph_version) = &run.code;
                unpersisted::rebuild_checkpoint(app, graph_version, &lineage, event, made).await?
            }
            (None, None) => return Ok(None),
        };
        run.lineage = Some(Lineage::new(checkpoint.clone()));
        Ok(Some(checkpoint))
    }

    /// Returns the state of a checkpoint. If the event needs the checkpoint before it, and that one
    /// cannot be read, the state has only the checkpoint itself.
    async fn checkpoint_state(
        &self,
        need: Option<&NeededState>,
        checkpoint: Option<Checkpoint>,
    ) -> EventState {
        let before = self.checkpoint_before_input(need, checkpoint.as_ref()).await;
        let is_parent_unknown = before.is_err();
        let parent = before.unwrap_or_else(|error| {
            let thread = &self.thread;
            tracing::warn!(%thread, %error, "streaming an input without the state before it");
            None
        });
        EventState { checkpoint, parent, is_parent_unknown, ..EventState::default() }
    }

    /// Returns the checkpoint before the input that made `made`. Returns `None` if the event does
    /// not need it, if the input is the first of its graph, or if the checkpoint was deleted.
    async fn checkpoint_before_input(
        &self,
        need: Option<&NeededState>,
        made: Option<&Checkpoint>,
    ) -> Result<Option<Checkpoint>, StoreError> {
        let (Some(NeededState::Input(namespace, _)), Some(made)) = (need, made) else {
            return Ok(None);
        };
        let Some(parent) = made.meta.parent else { return Ok(None) };
        self.read_checkpoint(namespace, parent).await
    }

    async fn read_checkpoint(
        &self,
        namespace: &Namespace,
        id: CheckpointId,
    ) -> Result<Option<Checkpoint>, StoreError> {
        let states = self.engine.states();
        let found = states.checkpoint(&self.thread, namespace, id).await?;
        Ok(found.map(|tuple| tuple.checkpoint))
    }
}

fn store_failure(error: StoreError) -> Failure {
    Failure::internal(error.to_string())
}
