//! Executing a thread once more from its journal, with nothing done anew.
//!
//! Every task that ended well is executed with the answers that it got, against ports that are never
//! asked, and what it wants now is compared with what it wanted then; so is every checkpoint that
//! was made of that. Supersteps that were not stored are made again from those before them.
//! Whatever differs is a [`Divergence`]: the code, its settings or the record is not what it was.

mod chain;
mod closed;
mod record;
mod report;
mod step;
mod unstored;
mod values;

use std::sync::Arc;

use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::failure::{Failure, code};

use crate::app::{App, GraphPack};
use crate::export::Export;
use crate::ports::Ports;

use self::closed::InZone;
pub use self::closed::closed;
use self::record::{Record, Segment};
pub use self::report::{Counts, Divergence, Replay, Skipped};

/// What is needed to execute any superstep of a thread.
struct World<'r> {
    app: Arc<App>,
    /// The thread's own graph.
    root: Arc<GraphPack>,
    ports: Ports,
    export: &'r Export,
    record: &'r Record,
}

/// Executes a thread once more.
///
/// `app` is the code that the thread is pinned to. Of `ports` only the blobs are read, since what a
/// reference stands for is not journaled; everything else is answered by the journal.
///
/// # Errors
///
/// `broken` if the export was changed; `conflict` if the app is another version.
pub async fn replay(export: &Export, app: Arc<App>, ports: Ports) -> Result<Replay, Failure> {
    export.verify().map_err(|error| Failure::new(code::BROKEN, error.to_string()))?;
    let thread = &export.header.thread;
    let pack = app.graphs.get(&thread.graph).filter(|pack| pack.version == thread.version);
    let root = pack.cloned().ok_or_else(|| {
        Failure::new(
            code::CONFLICT,
            format!(
                "thread `{}` is pinned to version {} of graph `{}`, and other code is loaded",
                thread.id, thread.version, thread.graph
            ),
        )
    })?;
    let record = Record::of(export)?;
    let clock = match &export.header.time_zone {
        Some(zone) => Arc::new(InZone::new(ports.clock, zone)),
        None => ports.clock,
    };
    let ports = Ports { clock, ..ports };
    let world = World { app, root, ports, export, record: &record };
    let mut replay = Replay::default();
    for (checkpoint, namespace) in record.cut() {
        let left_out = Counts::of_superstep(record.since(checkpoint));
        let reason = "values of its checkpoint were pruned";
        replay.skip((namespace, checkpoint), None, reason, left_out);
    }
    for segment in record.segments() {
        Box::pin(world.replay(&segment, &mut replay)).await;
    }
    Ok(replay)
}

impl World<'_> {
    /// The graph of a namespace.
    fn graph_of(&self, meta: &CheckpointMeta) -> Option<Arc<GraphPack>> {
        self.record.graph_of(&self.app, &self.root, &meta.namespace)
    }

    async fn replay(&self, segment: &Segment<'_>, replay: &mut Replay) {
        let meta = &segment.checkpoint.meta;
        let graph = self.graph_of(meta);
        let reason = match &graph {
            None => "it is not known which graph this is",
            Some(graph) if meta.version.is_some_and(|version| version != graph.version) => {
                "it was made by another version of the code"
            }
            Some(_) => "",
        };
        match graph.filter(|_| reason.is_empty()) {
            Some(graph) => self.chain(segment, graph, replay).await,
            None if segment.events.is_empty() => {}
            None => {
                let left_out = Counts::of_superstep(segment.events);
                replay.skip((&meta.namespace, meta.id), None, reason, left_out);
            }
        }
    }
}
