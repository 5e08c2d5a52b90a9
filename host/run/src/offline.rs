//! Executing a thread once more from its journal, with nothing done anew.
//!
//! Every task that ended well is executed with the answers that it got, against ports that are never
//! asked, and what it wants now is compared with what it wanted then; so is every checkpoint that
//! was made of that. Whatever differs is a [`Divergence`]: the code, its settings or the record is
//! not what it was.

mod closed;
mod record;
mod step;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, Namespace, NodeName, TaskId};

use crate::app::App;
use crate::export::Export;
use crate::ports::Ports;

pub use self::closed::closed;
use self::record::Record;
use self::step::Superstep;

/// What a replay came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// Checkpoints that were made once more and are the same.
    pub checkpoints: usize,
    /// Tasks that were executed once more and did the same.
    pub tasks: usize,
    /// Host calls that were answered from the journal.
    pub calls: usize,
    /// What was not executed, and why.
    pub skipped: Vec<Skipped>,
    /// What differs.
    pub divergences: Vec<Divergence>,
}

/// Something that a replay does not execute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The graph, by its place in the thread's own.
    pub namespace: Namespace,
    /// The checkpoint from which it started.
    pub checkpoint: CheckpointId,
    /// The node, if it is a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// Why.
    pub reason: String,
}

/// A difference between what was recorded and what happens now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Divergence {
    /// The graph, by its place in the thread's own.
    pub namespace: Namespace,
    /// The checkpoint from which it started.
    pub checkpoint: CheckpointId,
    /// The node, if it is a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// The task, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The host call, if one differs: its number in the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// What differs, in a sentence.
    pub message: String,
    /// What was recorded.
    pub recorded: Value,
    /// What happens now.
    pub now: Value,
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
    let pack = pack.cloned().ok_or_else(|| {
        Failure::new(
            code::CONFLICT,
            format!(
                "thread `{}` is pinned to version {} of graph `{}`, and other code is loaded",
                thread.id, thread.version, thread.graph
            ),
        )
    })?;
    let record = Record::of(export)?;
    let mut replay = Replay::default();
    for segment in record.segments() {
        let place = (segment.checkpoint.meta.namespace.clone(), segment.checkpoint.meta.id);
        let mut skip = |reason: &str| {
            replay.skipped.push(Skipped {
                namespace: place.0.clone(),
                checkpoint: place.1,
                node: None,
                reason: reason.to_owned(),
            });
        };
        let Some(graph) = record.graph_of(&app, &pack, &place.0) else {
            skip("it is not known which graph this is");
            continue;
        };
        if segment.checkpoint.meta.version.is_some_and(|version| version != graph.version) {
            skip("it was made by another version of the code");
            continue;
        }
        if segment.leaps {
            skip("its supersteps were not stored");
        }
        let above = place.0.parent().and_then(|above| record.graph_of(&app, &pack, &above));
        let superstep = Superstep {
            app: app.clone(),
            pack: graph,
            above,
            ports: ports.clone(),
            export,
            record: &record,
            segment: &segment,
        };
        Box::pin(superstep.execute(&mut replay)).await;
    }
    Ok(replay)
}
