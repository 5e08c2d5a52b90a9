//! Commands: runs that continue from the current or an earlier checkpoint, with values and nodes
//! that a client names.
//!
//! A command is a fork whose first checkpoint contains the writes and the named nodes. At the
//! current checkpoint, finished tasks, answers and journals carry over. Only a task that reads a
//! written channel restarts and keeps nothing but its answers, because its calls may differ now. A
//! command that would restart a task with a call in doubt is rejected.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Event, RunReason};
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
use crate::engine::{Engine, ThreadClaim, thread_not_found};
use crate::hostcall::runs::{RunRef, StartRun};
use crate::json::check_depth;
use crate::metadata;
use crate::ports::store::{CheckpointTuple, RunRecord, ThreadHead};
use crate::time_travel::CommandThread;
use crate::view;

impl Engine {
    /// Starts a run that executes a command. Returns once the start is durable.
    ///
    /// # Errors
    ///
    /// `not-found` if the thread or the checkpoint does not exist; `busy` while a run is active;
    /// `invalid` for unknown channels and nodes, and for invalid answers; `conflict` for answers at
    /// an earlier checkpoint, for nodes to run while an error handler is in place of a failed task,
    /// and for writes that a task with a call in doubt reads; `limit` for a context that is too
    /// large.
    pub async fn command(&self, request: CommandThread) -> Result<RunRef, Failure> {
        check_request(&request)?;
        self.check_context_size(&request.context)?;
        let run_request = RunRequest::immediate(request.run.clone(), request.principal.clone());
        Box::pin(self.command_thread(request, run_request)).await
    }

    pub(in crate::engine) async fn command_thread(
        &self,
        request: CommandThread,
        run_request: RunRequest,
    ) -> Result<RunRef, Failure> {
        let thread = &request.thread;
        let mut slot = self.claim_for_run(thread, run_request).await?;
        let head = self.unexpired_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        self.admit(&head).await?;
        let app = (!head.record.is_unbound()).then_some(&request.app);
        check_owner(&head, app, request.tenant.as_ref())?;
        let (mut head, fork) = match request.checkpoint.or(head.current) {
            Some(id) => {
                let fork = self.prepare_command(&head, id, &slot, &request).await?;
                (head, fork)
            }
            None => self.prepare_first_command(head, &slot, &request).await?,
        };
        if !request.context.is_null() {
            head.record.context = request.context;
        }
        metadata::check_merged_size(&head.record.metadata, &request.metadata)?;
        head.record.metadata.extend(request.metadata);
        let options = request.options;
        let run = RunRecord { options, ..self.new_run(&mut slot, &head, None) };
        let head = self.write_fork(&mut slot, head, &run, fork).await?;
        self.continue_run(slot, head, run, RunReason::Fork).await
    }

    /// Prepares a command on a thread without a checkpoint.
    async fn prepare_first_command(
        &self,
        head: ThreadHead,
        slot: &ThreadClaim,
        request: &CommandThread,
    ) -> Result<(ThreadHead, PreparedFork), Failure> {
        let start = StartRun {
            app: request.app.clone(),
            graph: request.graph.clone(),
            input: Value::Null,
            thread: Some(request.thread.clone()),
            run: None,
            context: Value::Null,
            metadata: BTreeMap::new(),
            tenant: request.tenant.clone(),
            options: request.options.clone(),
            ttl: None,
            principal: None,
        };
        if !request.answers.is_empty() {
            return Err(no_pending_interrupt(&request.thread));
        }
        let app = self.app(&start.app)?;
        let graph_version = select_graph(&app, start.graph.as_ref())?;
        let caller = slot.request.caller(&app.name);
        check_context(caller, &graph_version.graph, &request.context).await?;
        let head = bind(head, &app, &graph_version);
        let at = self.root_stamp(&head, &graph_version, slot).await?;
        let checkpoint =
            command_checkpoint(caller, &app, &graph_version, None, &request.command, at).await?;
        let carried_over = CarriedOver::default();
        Ok((head, PreparedFork { from: None, checkpoint, call: None, carried_over }))
    }

    /// Prepares a command at a checkpoint.
    async fn prepare_command(
        &self,
        head: &ThreadHead,
        id: CheckpointId,
        slot: &ThreadClaim,
        request: &CommandThread,
    ) -> Result<PreparedFork, Failure> {
        let is_current = head.current == Some(id);
        let mut tuple = self.root_checkpoint(&request.thread, id).await?;
        if is_current {
            let complete = view::current_checkpoint(&self.0.states, head).await?;
            tuple = complete.unwrap_or(tuple);
            self.append_answers(&mut tuple, slot, request).await?;
        } else if !request.answers.is_empty() {
            return Err(Failure::new(
                code::CONFLICT,
                format!(
                    "checkpoint {id} of thread `{}` is not the current one, and only that accepts \
                     answers; leave out the checkpoint",
                    request.thread
                ),
            ));
        }
        let fork_base = self.fork_base(head.clone(), tuple).await?;
        let caller = slot.request.caller(&fork_base.app.name);
        check_context(caller, &fork_base.graph_version.graph, &request.context).await?;
        let at = self.root_stamp(&fork_base.head, &fork_base.graph_version, slot).await?;
        let events = SuperstepEvents::new(fork_base.tuple.clone());
        let (base, command) = (&fork_base.tuple.checkpoint, &request.command);
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
        request: &CommandThread,
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
        let answers = self.match_answers(slot, &request.app, &open, &answers).await?;
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

fn check_request(request: &CommandThread) -> Result<(), Failure> {
    let Command { writes, sends, .. } = &request.command;
    if request.command.is_empty() && request.answers.is_empty() {
        let text = "the command is empty: name values, nodes or answers";
        return Err(Failure::new(code::INVALID, text));
    }
    check_depth("the context", &request.context)?;
    request.answers.values().try_for_each(|answer| check_depth("an answer", answer))?;
    request.metadata.values().try_for_each(|value| check_depth("the metadata", value))?;
    sends.iter().try_for_each(|send| check_depth("the input of a task", &send.input))?;
    writes.iter().try_for_each(|write| {
        check_depth(&format!("the write to channel `{}`", write.channel), &write.value)
    })
}

fn no_pending_interrupt(thread: &ThreadId) -> Failure {
    let text = format!("thread `{thread}` has not run yet, so nothing can be answered");
    Failure::new(code::CONFLICT, text)
}
