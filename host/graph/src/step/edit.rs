//! Edits of clients: writes as if given nodes had finished with them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::checkpoint::{Checkpoint, CheckpointMeta, CheckpointSource};
use crate::error::StepError;
use crate::event::Write;
use crate::graph::Graph;
use crate::id::{ChannelName, Namespace, NodeName};
use crate::schema::StepBudget;
use crate::step::apply::{ValuesBuilder, by_channel};
use crate::step::next::{self, FinishedNode};
use crate::step::{CheckpointStamp, check_node_writes, done, input, next_meta};

/// One edit: writes and their author.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// The author of the writes.
    pub as_node: EditAs,
    /// The writes, in order.
    pub writes: Vec<Write>,
}

/// The author of an edit, which determines what runs next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditAs {
    /// A node. The edit has the effect of a finished task: its edges and branches are followed.
    Node(NodeName),
    /// An input: the entry nodes run next. Must be the only edit.
    Input,
    /// The input of a run, when a history is rebuilt. Like [`Self::Input`], except that the source
    /// of the checkpoint is the input of a run.
    RunInput,
    /// The end of the graph: nothing runs next. Must be the only edit, and has no writes.
    End,
    /// A copy of the checkpoint, with the same state and the same triggers. Must be the only edit,
    /// and has no writes.
    Copy,
    /// The only node that made the checkpoint, or an input if no node did.
    Infer,
}

impl Edit {
    /// Returns true if the edit makes the first checkpoint of a thread without history, see
    /// [`first_input`]. Other edits change an [`empty_checkpoint`] there.
    pub fn is_first_input(&self) -> bool {
        matches!(self.as_node, EditAs::Input | EditAs::RunInput | EditAs::Infer)
    }
}

/// Applies edits and returns the new checkpoint. Several edits form one superstep: their writes are
/// applied in the given order, as if all of their nodes had finished in it. The triggers that
/// result from the edits replace those of `base`; deferred nodes stay deferred.
///
/// `reduced` holds the results of [`super::edit_reductions`].
///
/// # Errors
///
/// [`StepError::AmbiguousEdit`] if the author of an edit cannot be inferred.
/// [`StepError::InvalidEdit`] if there are no edits, if one of several edits must be the only edit,
/// for a node that the graph does not have, and for writes where none are allowed. Otherwise the
/// errors of [`super::advance`] and [`super::accept_input`].
pub fn edit(
    graph: &Graph,
    base: &Checkpoint,
    edits: &[Edit],
    reduced: &BTreeMap<ChannelName, Value>,
    at: CheckpointStamp,
) -> Result<Checkpoint, StepError> {
    if edits.is_empty() {
        return Err(invalid("there is nothing to apply: name at least one edit"));
    }
    let authors = edits.iter().map(|edit| author(graph, base, edit));
    let authors: Vec<ResolvedAuthor<'_>> = authors.collect::<Result<_, _>>()?;
    let alone = authors.iter().any(|author| !matches!(author, ResolvedAuthor::Node(_)));
    if alone && edits.len() > 1 {
        return Err(invalid("an edit as an input, as the end or as a copy must be the only edit"));
    }
    let writes = &edits[0].writes;
    match &authors[0] {
        ResolvedAuthor::Node(_) => as_nodes(graph, base, edits, &authors, reduced, at),
        ResolvedAuthor::Input(source) => {
            let namespace = &base.meta.namespace;
            input::accept(graph, Some(base), namespace, *source, writes, reduced, at)
        }
        ResolvedAuthor::End if writes.is_empty() => {
            let ended = copy(base, at);
            let meta = CheckpointMeta {
                next: Vec::new(),
                deferred: Vec::new(),
                barriers: BTreeMap::new(),
                ..ended.meta
            };
            Ok(Checkpoint { meta, ..ended })
        }
        ResolvedAuthor::Copy if writes.is_empty() => Ok(copy(base, at)),
        ResolvedAuthor::End | ResolvedAuthor::Copy => Err(invalid(
            "an edit as the end of the graph or as a copy cannot have writes; name the node that \
             writes",
        )),
    }
}

/// Applies an edit as an input to a thread without history, and returns its first checkpoint.
///
/// `reduced` holds the results of [`super::edit_reductions`] for an [`empty_checkpoint`].
///
/// # Errors
///
/// The errors of [`super::accept_input`].
pub fn first_input(
    graph: &Graph,
    edit: &Edit,
    reduced: &BTreeMap<ChannelName, Value>,
    at: CheckpointStamp,
) -> Result<Checkpoint, StepError> {
    let source = match edit.as_node {
        EditAs::RunInput => CheckpointSource::Input,
        _ => CheckpointSource::Update,
    };
    input::accept(graph, None, &Namespace::root(), source, &edit.writes, reduced, at)
}

/// Returns the checkpoint of a thread without history, as a base for edits. It contains the
/// defaults of the channels, and nothing runs next.
pub fn empty_checkpoint(graph: &Graph, namespace: &Namespace, at: CheckpointStamp) -> Checkpoint {
    let state = ValuesBuilder::defaults(graph, at.id);
    state.into_checkpoint(next_meta(None, namespace, CheckpointSource::Update, at))
}

/// The resolved author of an edit.
enum ResolvedAuthor<'e> {
    Node(&'e NodeName),
    /// The source of the checkpoint.
    Input(CheckpointSource),
    End,
    Copy,
}

fn author<'e>(
    graph: &Graph,
    base: &'e Checkpoint,
    edit: &'e Edit,
) -> Result<ResolvedAuthor<'e>, StepError> {
    Ok(match &edit.as_node {
        EditAs::Node(node) if graph.node(node).is_some() => ResolvedAuthor::Node(node),
        EditAs::Node(node) => return Err(unknown_node(graph, node)),
        EditAs::Input => ResolvedAuthor::Input(CheckpointSource::Update),
        EditAs::RunInput => ResolvedAuthor::Input(CheckpointSource::Input),
        EditAs::End => ResolvedAuthor::End,
        EditAs::Copy => ResolvedAuthor::Copy,
        EditAs::Infer => infer(graph, base)?,
    })
}

/// Infers the author from a checkpoint: the only node that made it. A checkpoint that no node made
/// comes from an input or precedes it, so the author is an input. A checkpoint of a superstep
/// without writers comes from an older host, which did not record them, so the author is ambiguous.
fn infer<'e>(graph: &Graph, base: &'e Checkpoint) -> Result<ResolvedAuthor<'e>, StepError> {
    let writers: BTreeSet<&NodeName> = base.meta.writers.iter().collect();
    let mut sorted = writers.iter();
    match (sorted.next(), sorted.next()) {
        (Some(only), None) if graph.node(only).is_some() => Ok(ResolvedAuthor::Node(only)),
        (None, None) if base.meta.source != CheckpointSource::Loop => {
            Ok(ResolvedAuthor::Input(CheckpointSource::Update))
        }
        (None, None) => {
            Err(StepError::AmbiguousEdit { candidates: graph.nodes().keys().cloned().collect() })
        }
        _ => Err(StepError::AmbiguousEdit { candidates: writers.into_iter().cloned().collect() }),
    }
}

fn as_nodes(
    graph: &Graph,
    base: &Checkpoint,
    edits: &[Edit],
    authors: &[ResolvedAuthor<'_>],
    reduced: &BTreeMap<ChannelName, Value>,
    at: CheckpointStamp,
) -> Result<Checkpoint, StepError> {
    let nodes = authors.iter().filter_map(|author| match author {
        ResolvedAuthor::Node(node) => Some(*node),
        _ => None,
    });
    let nodes: Vec<&NodeName> = nodes.collect();
    let budget = StepBudget::default();
    for (node, edit) in nodes.iter().zip(edits) {
        check_node_writes(graph, node, &edit.writes, &budget)?;
    }
    let written = nodes.iter().zip(edits);
    let written = written.flat_map(|(node, edit)| edit.writes.iter().map(|w| (Some(*node), w)));
    let mut state = ValuesBuilder::of(base, at.id);
    state.apply(graph, &by_channel(written), reduced)?;
    let ran: Vec<FinishedNode<'_>> =
        nodes.iter().map(|node| FinishedNode::without_goto(node)).collect();
    let next = next::next(graph, &base.meta, &ran, &state.values)?;
    let meta = CheckpointMeta {
        next: next.triggers,
        barriers: next.barriers,
        deferred: next.deferred,
        tasks: done(base, &at.run, nodes.len()),
        writers: nodes.into_iter().cloned().collect(),
        ..next_meta(Some(base), &base.meta.namespace, CheckpointSource::Update, at)
    };
    Ok(Checkpoint { taken: next.taken, ..state.into_checkpoint(meta) })
}

/// Returns a copy of a checkpoint under a new number.
fn copy(base: &Checkpoint, at: CheckpointStamp) -> Checkpoint {
    let meta = CheckpointMeta {
        next: base.meta.next.clone(),
        deferred: base.meta.deferred.clone(),
        barriers: base.meta.barriers.clone(),
        writers: base.meta.writers.clone(),
        versions: base.meta.versions.clone(),
        ..next_meta(Some(base), &base.meta.namespace, CheckpointSource::Update, at)
    };
    Checkpoint::new(meta, base.values.clone())
}

/// Returns the error for a node that the graph does not have.
pub(super) fn unknown_node(graph: &Graph, node: &NodeName) -> StepError {
    let known: Vec<String> = graph.nodes().keys().map(|name| format!("`{name}`")).collect();
    let message =
        format!("graph `{}` has no node `{node}`, its nodes are {}", graph.name, known.join(", "));
    StepError::InvalidEdit { message }
}

fn invalid(message: &str) -> StepError {
    StepError::InvalidEdit { message: message.to_owned() }
}

#[cfg(test)]
mod tests;
