//! Commands: runs that continue from the current or an earlier checkpoint, with values and nodes
//! that a client names.
//!
//! A command is a fork whose first checkpoint contains the writes and the named nodes. At the
//! current checkpoint, finished tasks, answers and journals carry over. Only a task that reads a
//! written channel restarts and keeps nothing but its answers, because its calls may now differ
//! from its journal. A command that would restart a task with a call in doubt is rejected.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::Event;
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::NodeKind;
use wattle_graph::id::{CheckpointId, NodeName, TaskId, ThreadId};
use wattle_graph::plan::tasks_of;
use wattle_graph::step::{self, CheckpointStamp, Command, command_reductions};

use super::carry_over::{CarriedOver, carry_over};
use super::forked_graph::{ForkedGraphs, SuperstepEvents};
use super::in_doubt::reject_in_doubt;
use super::scan::ForkScan;
use super::{ForkBase, PreparedFork};
use crate::app::{App, GraphVersion};
use crate::blocking::{block_in_place_in_turn, is_long_command};
use crate::caller_id::CallerId;
use crate::driver::reduce;
use crate::engine::admission::check_context;
use crate::engine::answers::retain_pending;
use crate::engine::app_code::select_graph;
use crate::engine::owner::check_owner;
use crate::engine::request::RunRequest;
use crate::engine::threads::bind;
use crate::engine::{Engine, ThreadClaim};
use crate::hostcall::runs::RunRef;
use crate::metadata;
use crate::ports::store::{CheckpointTuple, RunRecord, RunSpec, ThreadHead};
use crate::view;

/// A run that executes a command.
pub(in crate::engine) struct CommandRun<'r> {
    /// Record of the run, which names its thread and its options.
    pub(in crate::engine) record: &'r RunRecord,
    /// Specification of the run. An unbound thread is bound to its app and its graph.
    pub(in crate::engine) spec: &'r RunSpec,
    /// Tenant of the caller. A thread of another tenant is not found.
    pub(in crate::engine) tenant: Option<String>,
    /// The writes, and the nodes that run in addition to the triggered ones.
    pub(in crate::engine) command: &'r Command,
    /// The checkpoint to continue from; `None` for the current one. Pending work of an earlier
    /// checkpoint starts again.
    pub(in crate::engine) checkpoint: Option<CheckpointId>,
    /// Answers to pending interrupts of the current checkpoint, by interrupt id.
    pub(in crate::engine) answers: BTreeMap<String, Value>,
}

impl Engine {
    /// Starts a run that executes a command, on a thread that is created if it does not exist.
    /// Returns once the start is durable.
    ///
    /// # Errors
    ///
    /// `not-found` if the checkpoint does not exist; `busy` while a run is active;
    /// `invalid` for unknown channels and nodes, and for invalid answers; `conflict` for answers at
    /// an earlier checkpoint, for named nodes while an error handler runs in place of a failed
    /// task, and for writes to a channel that a task with a call in doubt reads.
    pub(in crate::engine) async fn start_command(
        &self,
        request: CommandRun<'_>,
        run_request: RunRequest,
    ) -> Result<RunRef, Failure> {
        let (thread, spec) = (&request.record.thread, request.spec);
        let mut slot = self.claim_for_run(thread, run_request).await?;
        let known = self.unexpired_thread(thread).await?;
        if let Some(head) = &known {
            self.admit(head).await?;
        } else {
            self.admit_new_thread(thread, request.tenant.as_deref()).await?;
        }
        let new = || ThreadHead::new(self.new_thread(thread.clone(), request.tenant.clone()));
        let head = known.unwrap_or_else(new);
        let app = (!head.record.is_unbound()).then_some(&spec.app);
        check_owner(&head, app, request.tenant.as_ref())?;
        let caller = slot.request.caller(&spec.app);
        self.take_memory(&mut slot, caller).await?;
        let (mut head, fork) = match request.checkpoint.or(head.current) {
            Some(id) => {
                let fork = self.prepare_command(&head, id, &slot, &request).await?;
                (head, fork)
            }
            None => self.prepare_first_command(head, &slot, &request).await?,
        };
        if !spec.context.is_null() {
            head.record.context = spec.context.clone();
        }
        metadata::check_merged_size(&head.record.metadata, &spec.metadata)?;
        head.record.metadata.extend(spec.metadata.clone());
        let options = request.record.options.clone();
        let run = RunRecord { options, ..self.new_run(&mut slot, &head, None) };
        let head = self.write_fork(&mut slot, head, &run, fork).await?;
        self.continue_fork(slot, head, run).await
    }

    /// Prepares a command on a thread without a checkpoint.
    async fn prepare_first_command(
        &self,
        head: ThreadHead,
        slot: &ThreadClaim,
        request: &CommandRun<'_>,
    ) -> Result<(ThreadHead, PreparedFork), Failure> {
        if !request.answers.is_empty() {
            return Err(no_pending_interrupt(&request.record.thread));
        }
        let app = self.app(&request.spec.app)?;
        let graph_version = select_graph(&app, request.spec.graph.as_ref())?;
        let caller = slot.request.caller(&app.name);
        check_context(caller, &graph_version.graph, &request.spec.context).await?;
        let head = bind(head, &app, &graph_version);
        let at = self.root_stamp(&head, &graph_version, slot).await?;
        let checkpoint =
            command_checkpoint(caller, &app, &graph_version, None, request.command, at).await?;
        let carried_over = CarriedOver::default();
        Ok((head, PreparedFork { from: None, checkpoint, call: None, carried_over }))
    }

    /// Prepares a command at a checkpoint.
    async fn prepare_command(
        &self,
        head: &ThreadHead,
        id: CheckpointId,
        slot: &ThreadClaim,
        request: &CommandRun<'_>,
    ) -> Result<PreparedFork, Failure> {
        let is_current = head.current == Some(id);
        let mut tuple = self.root_checkpoint(&request.record.thread, id).await?;
        if is_current {
            let complete = view::current_checkpoint(&self.0.states, head).await?;
            tuple = complete.unwrap_or(tuple);
            self.append_answers(&mut tuple, slot, request).await?;
        } else if !request.answers.is_empty() {
            return Err(Failure::new(
                code::CONFLICT,
                format!(
                    "checkpoint {id} of thread `{}` is not the current checkpoint, and only the \
                     current checkpoint accepts answers; leave out the checkpoint",
                    request.record.thread
                ),
            ));
        }
        let fork_base = self.fork_base(head.clone(), tuple).await?;
        let caller = slot.request.caller(&fork_base.app.name);
        check_context(caller, &fork_base.graph_version.graph, &request.spec.context).await?;
        let at = self.root_stamp(&fork_base.head, &fork_base.graph_version, slot).await?;
        let events = SuperstepEvents::new(fork_base.tuple.clone());
        let (base, command) = (&fork_base.tuple.checkpoint, request.command);
        let found = if is_current {
            self.pending_work(&fork_base, &events, command).await?
        } else {
            ForkedGraphs::default()
        };
        let at =
            CheckpointStamp { id: CheckpointId(at.id.0 + found.copied_checkpoint_count()), ..at };
        let (app, graph_version) = (&fork_base.app, &fork_base.graph_version);
        let checkpoint =
            command_checkpoint(caller, app, graph_version, Some(base), command, at).await?;
        let carried_over = carry_over(&found, head.record.origin(), &checkpoint, None);
        Ok(PreparedFork { from: Some(id), checkpoint, call: None, carried_over })
    }

    /// Appends the answers to the events of a checkpoint.
    async fn append_answers(
        &self,
        tuple: &mut CheckpointTuple,
        slot: &ThreadClaim,
        request: &CommandRun<'_>,
    ) -> Result<(), Failure> {
        if request.answers.is_empty() {
            return Ok(());
        }
        let (lineage, subgraphs) = view::lineage_and_subgraphs(tuple);
        let open = view::pending_with_graphs(&lineage, &subgraphs);
        let mut answers = Cow::Borrowed(&request.answers);
        if slot.request.ignores_stale_answers() {
            retain_pending(answers.to_mut(), &open);
            if answers.is_empty() {
                return Ok(());
            }
        }
        let answers = self.match_answers(slot, &request.spec.app, &open, &answers).await?;
        let last = tuple.events.last().map_or(0, |event| event.seq);
        let answers = (last + 1..).zip(answers).map(|(seq, (namespace, kind))| Event {
            seq,
            at_ms: self.now_ms(),
            run: slot.run.clone(),
            namespace,
            kind,
        });
        tuple.events.extend(answers);
        Ok(())
    }

    /// Returns the pending work at the current checkpoint.
    async fn pending_work<'g>(
        &'g self,
        fork_base: &'g ForkBase,
        events: &'g SuperstepEvents,
        command: &Command,
    ) -> Result<ForkedGraphs<'g>, Failure> {
        let ForkBase { head, graph_version, tuple, .. } = fork_base;
        let lineage = view::lineage(tuple);
        let leads_on = !command.goto.is_empty() || !command.sends.is_empty();
        if leads_on && lineage.failed.values().any(|failed| failed.handler.is_some()) {
            let text = format!(
                "an `on_error` node handles a failure on thread `{}`; resume the thread before a \
                 command adds nodes",
                head.record.id
            );
            return Err(Failure::new(code::CONFLICT, text));
        }
        let restarted =
            tasks_to_restart(graph_version, head.record.origin(), &tuple.checkpoint, command);
        reject_in_doubt(events, &lineage, &restarted)?;
        let survey = ForkScan {
            store: self.0.ports.store.as_ref(),
            thread: &head.record.id,
            origin: head.record.origin(),
            error_handlers: fork_base.error_handlers(),
            events_before_reopen: events,
            all_events: events,
            overridden: None,
            restarted,
        };
        survey.run().await
    }
}

/// Returns the tasks that read a channel that a command writes. A task that runs a subgraph is
/// never among them, because the subgraph has a state of its own.
fn tasks_to_restart(
    graph_version: &GraphVersion,
    origin: &ThreadId,
    base: &Checkpoint,
    command: &Command,
) -> BTreeSet<TaskId> {
    let sees = |node: &NodeName| {
        let Some(node) = graph_version.graph.node(node) else { return false };
        let is_read = |channel| node.reads.as_ref().is_none_or(|reads| reads.contains(channel));
        matches!(node.body, NodeKind::Plugin { .. })
            && command.writes.iter().any(|write| is_read(&write.channel))
    };
    let tasks = tasks_of(origin, &base.meta).into_iter();
    let seeing = tasks.filter(|(_, trigger)| trigger.input.is_none() && sees(&trigger.node));
    seeing.map(|(task, _)| task).collect()
}

async fn command_checkpoint(
    caller: CallerId,
    app: &App,
    graph_version: &GraphVersion,
    base: Option<&Checkpoint>,
    command: &Command,
    at: CheckpointStamp,
) -> Result<Checkpoint, Failure> {
    let graph = &graph_version.graph;
    let reduced = reduce(app, command_reductions(graph, base, command)).await?;
    let is_long = is_long_command(graph, base, &command.writes);
    let made = block_in_place_in_turn(caller, is_long, || {
        step::command(graph, base, command, &reduced, at)
    });
    made.await.map_err(|error| error.to_failure())
}

fn no_pending_interrupt(thread: &ThreadId) -> Failure {
    let text = format!("thread `{thread}` has not run yet, so no interrupt is pending");
    Failure::new(code::CONFLICT, text)
}
