//! Edits: writes of a client to the state of a thread without an active run.
//!
//! The events of an edit have a run id without a run record. An edit is not a run, so the newest
//! run of the thread stays the same.

mod subgraph;

use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

use wattle_graph::checkpoint::{ChannelValue, Checkpoint};
use wattle_graph::event::{Checkpointed, EventKind, Forked};
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::Graph;
use wattle_graph::id::{CheckpointId, Namespace};
use wattle_graph::principal::Principal;
use wattle_graph::step::{
    CheckpointStamp, Edit, edit, edit_reductions, empty_checkpoint, first_input,
};

use super::app_code::select_graph;
use super::history::check_namespace;
use super::owner::check_owner;
use super::threads::bind;
use super::{Engine, ThreadClaim, new_run_id, thread_not_found};
use crate::app::{App, GraphVersion};
use crate::blocking::{block_in_place_in_turn, is_long_validation};
use crate::caller_id::CallerId;
use crate::driver::reduce;
use crate::json::check_depth;
use crate::limit;
use crate::log::Commit;
use crate::metadata;
use crate::ports::store::{ThreadHead, ThreadRecord, ThreadStatus};
use crate::time_travel::{EditThread, StateView};
use crate::unpersisted_events;
use crate::view;

/// The thread and the checkpoint to edit.
struct EditTarget {
    head: ThreadHead,
    app: Arc<App>,
    /// The code that made the checkpoint.
    graph_version: Arc<GraphVersion>,
    /// `None` for a new thread.
    base: Option<Checkpoint>,
}

impl Engine {
    /// Edits a thread or one of its subgraphs, as if nodes had finished with the given writes,
    /// superstep by superstep. All edits are checked before anything is written. Returns the state
    /// after the edits.
    ///
    /// The edit discards pending work of the graph: interrupts, failures and finished tasks.
    /// Afterwards the thread is interrupted before the nodes that the edits trigger, or idle if
    /// they trigger none.
    ///
    /// # Errors
    ///
    /// `not-found` if the thread or the checkpoint does not exist; `busy` while a run is active;
    /// `invalid` if an edit cannot be applied, with the candidates if its node is ambiguous.
    pub async fn edit(&self, request: EditThread) -> Result<StateView, Failure> {
        check_request(&request)?;
        let mut slot = self.claim(&request.thread, new_run_id()).await?;
        let edited = if request.namespace.is_root() {
            self.edit_thread(&slot, &request).await
        } else {
            Box::pin(self.edit_subgraph(&slot, &request)).await
        };
        slot.release().await;
        edited?;
        self.state(&request.thread, &request.namespace, None).await
    }

    async fn edit_thread(&self, slot: &ThreadClaim, request: &EditThread) -> Result<(), Failure> {
        let EditTarget { head, app, graph_version, base } = self.edit_target(request).await?;
        self.admit(&head).await?;
        let first = self.next_checkpoint_id(&head).await?;
        let mut made = Vec::with_capacity(request.supersteps.len() + 1);
        let at = |made: &[Checkpoint]| {
            let last = made.last().map(|checkpoint| checkpoint.meta.id);
            CheckpointStamp {
                id: last.map_or(first, |id| CheckpointId(id.0 + 1)),
                run: slot.run.clone(),
                at_ms: self.now_ms(),
                version: graph_version.version,
                parents: BTreeMap::new(),
                tasks: None,
            }
        };
        let forked = base.as_ref().map(|base| base.meta.id);
        let forked = forked.filter(|id| head.current != Some(*id));
        let caller = CallerId::of_run(request.principal.as_ref(), &app.name);
        let mut supersteps = request.supersteps.iter().peekable();
        let mut before = match base {
            Some(base) => base,
            None => {
                let graph = &graph_version.graph;
                let blank = empty_checkpoint(graph, &Namespace::root(), at(&made));
                let input = supersteps.next_if(|edits| begins(edits));
                let first = match input.and_then(|edits| edits.first()) {
                    Some(input) => {
                        let stamp = at(&made);
                        let mut first =
                            apply_first(caller, &app, graph, &blank, input, stamp).await?;
                        first.meta.metadata.clone_from(&request.metadata);
                        first
                    }
                    None => blank,
                };
                made.push(first.clone());
                first
            }
        };
        for edits in supersteps {
            let stamp = at(&made);
            let edited = apply(caller, &app, &graph_version.graph, &before, edits, stamp).await?;
            before = edited;
            before.meta.metadata.clone_from(&request.metadata);
            made.push(before.clone());
        }
        let principal = request.principal.as_ref();
        let forked = forked.map(|from| Forked { from, call: None, principal: principal.cloned() });
        self.write_edits(slot, &head, forked, made, principal).await
    }

    /// Returns the thread and the checkpoint that a request edits. If the thread does not exist,
    /// the target is a new thread.
    async fn edit_target(&self, request: &EditThread) -> Result<EditTarget, Failure> {
        let thread = &request.thread;
        let Some(mut head) = self.unexpired_thread(thread).await? else {
            self.admit_new_thread(thread, request.tenant.as_deref()).await?;
            let record = self.new_thread(thread.clone(), request.tenant.clone());
            return self.first_edit_target(request, ThreadHead::new(record));
        };
        if head.record.is_unbound() {
            check_owner(&head, None, request.tenant.as_ref())?;
            return self.first_edit_target(request, head);
        }
        check_owner(&head, request.app.as_ref(), request.tenant.as_ref())?;
        let base = match request.checkpoint.or(head.current) {
            Some(id) => Some(self.root_checkpoint(thread, id).await?.checkpoint),
            None => None,
        };
        let version = base.as_ref().and_then(|base| base.meta.version);
        head.record.version = version.unwrap_or(head.record.version);
        let (app, graph_version) = self.pinned_code(&head.record).await?;
        Ok(EditTarget { head, app, graph_version, base })
    }

    /// Binds an unbound thread to the graph that a request names.
    fn first_edit_target(
        &self,
        request: &EditThread,
        head: ThreadHead,
    ) -> Result<EditTarget, Failure> {
        let (Some(app), None) = (&request.app, request.checkpoint) else {
            return Err(thread_not_found(&request.thread));
        };
        let app = self.app(app)?;
        let graph_version = select_graph(&app, request.graph.as_ref())?;
        let head = bind(head, &app, &graph_version);
        Ok(EditTarget { head, app, graph_version, base: None })
    }

    /// Returns the id of a thread's next checkpoint.
    pub(super) async fn next_checkpoint_id(
        &self,
        head: &ThreadHead,
    ) -> Result<CheckpointId, Failure> {
        let current = view::current_checkpoint(&self.0.states, head).await?;
        Ok(unpersisted_events::next_checkpoint_id(head, current.as_ref()))
    }

    /// Writes one batch per superstep, and waits once until all are durable.
    async fn write_edits(
        &self,
        slot: &ThreadClaim,
        head: &ThreadHead,
        forked: Option<Forked>,
        made: Vec<Checkpoint>,
        principal: Option<&Principal>,
    ) -> Result<(), Failure> {
        let log = self.thread_log(head, slot, principal);
        if let Some(forked) = forked {
            log.push(EventKind::Forked(forked));
        }
        for checkpoint in made {
            log.push(edit_event(principal, &checkpoint));
            let is_over = checkpoint.meta.next.is_empty();
            let record = ThreadRecord {
                status: if is_over { ThreadStatus::Idle } else { ThreadStatus::Interrupted },
                stopped: false,
                failure: None,
                updated_ms: self.now_ms(),
                expires_ms: None,
                ..head.record.clone()
            };
            let (record, checkpoint) = (Some(record), Some(checkpoint));
            log.commit(Commit { record, checkpoint, ..Commit::default() }).await;
        }
        Ok(log.wait_durable().await?)
    }
}

/// Returns true if the edits of a superstep make the first checkpoint of a thread.
fn begins(edits: &[Edit]) -> bool {
    matches!(edits, [only] if only.is_first_input())
}

/// Applies an edit as an input to a thread without history, as work of a caller. `blank` is the
/// empty checkpoint of the thread.
async fn apply_first(
    caller: CallerId,
    app: &App,
    graph: &Graph,
    blank: &Checkpoint,
    input: &Edit,
    stamp: CheckpointStamp,
) -> Result<Checkpoint, Failure> {
    let reduced = reduce(app, edit_reductions(graph, blank, slice::from_ref(input))).await?;
    let is_long = is_long_validation(graph, input.writes.iter().map(|write| &write.value));
    let made =
        block_in_place_in_turn(caller, is_long, || first_input(graph, input, &reduced, stamp));
    made.await.map_err(|error| error.to_failure())
}

/// Applies the edits of one superstep, as work of a caller. Conditions read the whole state, so the
/// work is proportional to its size.
async fn apply(
    caller: CallerId,
    app: &App,
    graph: &Graph,
    base: &Checkpoint,
    edits: &[Edit],
    stamp: CheckpointStamp,
) -> Result<Checkpoint, Failure> {
    let reduced = reduce(app, edit_reductions(graph, base, edits)).await?;
    let written = edits.iter().flat_map(|edit| &edit.writes).map(|write| &write.value);
    let values = base.values.values().flat_map(ChannelValue::items);
    let is_long = is_long_validation(graph, values.chain(written));
    let made =
        block_in_place_in_turn(caller, is_long, || edit(graph, base, edits, &reduced, stamp));
    made.await.map_err(|error| error.to_failure())
}

/// Returns the event of a checkpoint that an edit made.
fn edit_event(principal: Option<&Principal>, checkpoint: &Checkpoint) -> EventKind {
    let principal = principal.cloned();
    EventKind::Checkpointed(Checkpointed { principal, ..Checkpointed::from(checkpoint) })
}

fn check_request(request: &EditThread) -> Result<(), Failure> {
    check_namespace(&request.namespace)?;
    if request.supersteps.is_empty() {
        let text = "there is nothing to apply: name at least one edit";
        return Err(Failure::new(code::INVALID, text));
    }
    if request.supersteps.len() > limit::EDIT_SUPERSTEPS {
        let text = format!(
            "{} supersteps of edits are more than the limit of {}; make several requests",
            request.supersteps.len(),
            limit::EDIT_SUPERSTEPS
        );
        return Err(Failure::new(code::LIMIT, text));
    }
    request.metadata.values().try_for_each(|value| check_depth("the metadata", value))?;
    metadata::check_size(&request.metadata)?;
    let writes = request.supersteps.iter().flatten().flat_map(|edit| &edit.writes);
    writes.into_iter().try_for_each(|write| {
        check_depth(format_args!("the write to channel `{}`", write.channel), &write.value)
    })
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;
    use serde_json::json;
    use wattle_graph::check::{AnyPlugin, check_toml};
    use wattle_graph::event::Write;
    use wattle_graph::id::{AppName, ChannelName};
    use wattle_graph::step::EditAs;

    use super::*;
    use crate::blocking::hold_all_turns;

    #[tokio::test]
    async fn large_edits_wait_for_a_turn_of_long_work() {
        let text = "[graphs.g]\nentry = 'a'\nnodes = { a = {} }\nchannels = { list = {} }";
        let graph = check_toml("graph.toml", text, &AnyPlugin).unwrap().remove(0);
        let app = App::empty(AppName::new("app").unwrap());
        let stamp = |id: u64| CheckpointStamp {
            id: CheckpointId(id),
            run: new_run_id(),
            at_ms: 0,
            version: graph.digest,
            parents: BTreeMap::new(),
            tasks: None,
        };
        let base = empty_checkpoint(&graph, &Namespace::root(), stamp(1));
        let edits = |length: usize| {
            let (channel, value) = (ChannelName::new("list").unwrap(), json!(vec![0; length]));
            let writes = vec![Write { channel, value, overwrite: false }];
            [Edit { as_node: EditAs::Input, writes }]
        };
        let (large, small, caller) = (edits(1_000), edits(1), CallerId::default());
        let held = hold_all_turns().await;
        let mut waiting = pin!(apply(caller, &app, &graph, &base, &large, stamp(2)));
        assert!(poll!(waiting.as_mut()).is_pending());
        assert!(apply(caller, &app, &graph, &base, &small, stamp(2)).await.is_ok());
        drop(held);
        assert!(waiting.await.is_ok());
    }
}
