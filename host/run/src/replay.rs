//! Replays a thread from its journals, without any effect outside of the host.
//!
//! Every task is executed with the results of its journal, against ports that refuse every call.
//! The outcome, the failure or the question of the task is compared with the recorded one, and each
//! checkpoint with the recorded checkpoint. Supersteps that were not persisted are rebuilt from the
//! supersteps before them. A difference is a [`Divergence`]: the code, its settings or the record
//! has changed.
//!
//! [`RecordedRun`] executes one run again with the engine itself, to measure what its steps cost.

mod chain;
mod context;
mod measure;
mod measured_plugin;
mod recorded_run;
mod recording;
mod refusing_ports;
mod report;
mod step;
mod unfinished_task;
mod unpersisted_graph;
mod values;

use std::sync::Arc;

use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::failure::{Failure, code};

use crate::app::{App, GraphVersion};
use crate::export::Export;
use crate::ports::Ports;

pub use self::measure::RunCost;
pub use self::recorded_run::{RecordedRun, RecordedRunError, Unsuitable};
use self::recording::{RecordedSuperstep, Recording};
use self::refusing_ports::in_time_zone;
pub use self::refusing_ports::replay_ports;
pub use self::report::{Counts, Divergence, Replay, Skipped};

/// The code with which a thread is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The version that the thread is pinned to. A difference means that the record, settings or
    /// the host have changed.
    Pinned,
    /// Any other version. A difference is an effect of the changed code.
    Current,
}

/// Code, ports and recorded data that the replay of every superstep of a thread shares.
struct ReplayContext<'r> {
    app: Arc<App>,
    against: Against,
    /// The root graph.
    root: Arc<GraphVersion>,
    ports: Arc<Ports>,
    export: &'r Export,
    recording: &'r Recording,
}

/// Replays a thread with the code of an app.
///
/// The replay reads blobs from `ports`, since the journal does not contain their bytes. The journal
/// has the results of all other calls.
///
/// # Errors
///
/// `broken` if the export was changed; `conflict` if `against` is [`Against::Pinned`] and `app` is
/// another version; `not-found` if the app does not have the graph of the thread.
pub async fn replay_thread(
    export: &Export,
    app: Arc<App>,
    ports: Ports,
    against: Against,
) -> Result<Replay, Failure> {
    export.verify().map_err(|error| Failure::new(code::BROKEN, error.to_string()))?;
    let thread = &export.header.thread;
    let root = match (app.graphs.get(&thread.graph), against) {
        (None, Against::Current) => {
            let message = format!("app `{}` has no graph `{}`", app.name, thread.graph);
            return Err(Failure::new(code::NOT_FOUND, message));
        }
        (Some(graph), Against::Current) => graph.clone(),
        (Some(graph), Against::Pinned) if graph.version == thread.version => graph.clone(),
        (_, Against::Pinned) => {
            let message = format!(
                "thread `{}` is pinned to version {} of graph `{}`, but another version is loaded",
                thread.id, thread.version, thread.graph
            );
            return Err(Failure::new(code::CONFLICT, message));
        }
    };
    let recording = Recording::of(export)?;
    let ports = Arc::new(in_time_zone(ports, export.header.time_zone.as_deref()));
    let context = ReplayContext { app, against, root, ports, export, recording: &recording };
    let mut replay = Replay::default();
    for (checkpoint, namespace) in recording.incomplete() {
        let left_out = Counts::of_superstep(recording.events_since(checkpoint));
        let reason = "the values of the checkpoint were pruned";
        replay.skip((namespace, checkpoint), None, reason, left_out);
    }
    for segment in recording.supersteps() {
        Box::pin(context.replay(&segment, &mut replay)).await;
    }
    Ok(replay)
}

impl ReplayContext<'_> {
    /// Returns the graph of a namespace.
    fn graph_of(&self, meta: &CheckpointMeta) -> Option<Arc<GraphVersion>> {
        self.recording.graph_of(&self.app, &self.root, &meta.namespace)
    }

    async fn replay(&self, segment: &RecordedSuperstep<'_>, replay: &mut Replay) {
        let meta = &segment.checkpoint.meta;
        let graph = self.graph_of(meta);
        let reason = match &graph {
            None => "the graph is unknown",
            Some(graph)
                if self.against == Against::Pinned
                    && meta.version.is_some_and(|version| version != graph.version) =>
            {
                "the checkpoint was made by another version of the code"
            }
            Some(_) => "",
        };
        match graph.filter(|_| reason.is_empty()) {
            Some(graph) => self.replay_chain(segment, graph, replay).await,
            None if segment.events.is_empty() => {}
            None => {
                let left_out = Counts::of_superstep(segment.events);
                replay.skip((&meta.namespace, meta.id), None, reason, left_out);
            }
        }
    }
}
