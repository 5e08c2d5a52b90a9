//! Commands: runs that continue from the current or an earlier checkpoint, with values and nodes
//! that a client names.
//!
//! A command is a fork whose first checkpoint contains the writes and the named nodes. At the
//! current checkpoint, finished tasks, answers and journals carry over. Only a task that reads a
//! written channel restarts and keeps nothing but its answers, because its calls may differ now. A
//! command that would restart a task with a call in doubt is rejected.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Answered, Event, RunReason};
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::NodeKind;
use wattle_graph::id::{CheckpointId, NodeName, TaskId, ThreadId};
use wattle_graph::interrupt::{Interrupt, match_answers};
use wattle_graph::plan::tasks_of;
use wattle_graph::step::{self, CheckpointStamp, Command, command_reductions};

use super::reuse::{TakenOver, taken_over};
use super::site::{Known, Sites};
use super::survey::Survey;
use super::unclear::refuse_unclear;
use super::{Fork, Ground};
use crate::app::{App, GraphPack};
use crate::driver::reduce;
use crate::engine::asked::Asked;
use crate::engine::begin::{answer_failure, graph_of, in_their_graphs};
use crate::engine::blank::bound;
use crate::engine::owner::check_owner;
use crate::engine::{Engine, Slot, no_thread};
use crate::facts;
use crate::hostcall::runs::{RunRef, StartRun};
use crate::json::check_depth;
use crate::ports::store::{CheckpointTuple, RunRecord, ThreadHead};
use crate::travel::CommandThread;
use crate::view::{self, store_failure};

impl Engine {
    /// Starts a run that executes a command. Returns once the start is durable.
    ///
    /// # Errors
    ///
    /// `not-found` if the thread or the checkpoint does not exist; `busy` while a run is active;
    /// `invalid` for unknown channels and nodes, and for invalid answers; `conflict` for answers at
    /// an earlier checkpoint, for nodes to run while an error handler is in place of a failed task,
    /// and for writes that a task with a call in doubt reads.
    pub async fn command(&self, request: CommandThread) -> Result<RunRef, Failure> {
        check_request(&request)?;
        let asked = Asked::now(request.run.clone(), request.principal.clone());
        Box::pin(self.command_thread(request, asked)).await
    }

    pub(in crate::engine) async fn command_thread(
        &self,
        request: CommandThread,
        asked: Asked,
    ) -> Result<RunRef, Failure> {
        let thread = &request.thread;
        let mut slot = self.claim_new(thread, asked).await?;
        let head = self.live_thread(thread).await?.ok_or_else(|| no_thread(thread))?;
        self.admit(&head).await?;
        let app = (!head.record.is_blank()).then_some(&request.app);
        check_owner(&head, app, request.tenant.as_ref())?;
        let (mut head, fork) = match request.checkpoint.or(head.current) {
            Some(id) => {
                let fork = self.commanded(&head, id, &slot, &request).await?;
                (head, fork)
            }
            None => self.first_command(head, &slot, &request).await?,
        };
        if !request.context.is_null() {
            head.record.context = request.context;
        }
        facts::check_added(&head.record.metadata, &request.metadata)?;
        head.record.metadata.extend(request.metadata);
        let options = request.options;
        let run = RunRecord { options, ..self.new_run(&mut slot, &head, None) };
        let head = self.write_fork(&mut slot, head, &run, fork).await?;
        self.go_on(slot, head, run, RunReason::Fork, Vec::new()).await
    }

    /// Prepares a command on a thread without a checkpoint.
    async fn first_command(
        &self,
        head: ThreadHead,
        slot: &Slot,
        request: &CommandThread,
    ) -> Result<(ThreadHead, Fork), Failure> {
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
            return Err(nothing_asked(&request.thread));
        }
        let app = self.app(&start.app)?;
        let pack = graph_of(&app, start.graph.as_ref())?;
        pack.graph.check_context(&request.context)?;
        let head = bound(head, &app, &pack);
        let at = self.position(&head, &pack, slot).await?;
        let checkpoint = carried_out(&app, &pack, None, &request.command, at).await?;
        let taken_over = TakenOver::default();
        Ok((head, Fork { from: None, checkpoint, call: None, taken_over }))
    }

    /// Prepares a command at a checkpoint.
    async fn commanded(
        &self,
        head: &ThreadHead,
        id: CheckpointId,
        slot: &Slot,
        request: &CommandThread,
    ) -> Result<Fork, Failure> {
        let stands_here = head.current == Some(id);
        let mut tuple = self.root_tuple(&request.thread, id).await?;
        if stands_here {
            let store = self.0.ports.store.as_ref();
            let complete = view::current(store, head).await.map_err(store_failure)?;
            tuple = complete.unwrap_or(tuple);
            self.answer(&mut tuple, slot, request)?;
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
        let ground = self.ground(head.clone(), tuple)?;
        ground.pack.graph.check_context(&request.context)?;
        let at = self.position(&ground.head, &ground.pack, slot).await?;
        let whole = Known::new(ground.tuple.clone());
        let (base, command) = (&ground.tuple.checkpoint, &request.command);
        let found = if stands_here {
            self.pending(&ground, &whole, command).await?
        } else {
            Sites::default()
        };
        let at = CheckpointStamp { id: CheckpointId(at.id.0 + found.copies()), ..at };
        let checkpoint = carried_out(&ground.app, &ground.pack, Some(base), command, at).await?;
        let taken_over = taken_over(&found, head.record.origin(), &checkpoint, None);
        Ok(Fork { from: Some(id), checkpoint, call: None, taken_over })
    }

    /// Appends the answers to the events of a checkpoint.
    fn answer(
        &self,
        tuple: &mut CheckpointTuple,
        slot: &Slot,
        request: &CommandThread,
    ) -> Result<(), Failure> {
        if request.answers.is_empty() {
            return Ok(());
        }
        let (lineage, nest) = view::open(tuple.clone());
        let open = view::questions(&lineage, &nest);
        let asked: Vec<&Interrupt> = open.iter().map(|(_, question)| question).collect();
        let answers: Vec<Answered> = match_answers(&asked, &request.answers)
            .map_err(|error| answer_failure(&error, &request.thread))?;
        let last = tuple.events.last().map_or(0, |event| event.seq);
        let answers =
            (last + 1..).zip(in_their_graphs(&open, answers, slot.asked.principal.as_ref()));
        let answers = answers.map(|(seq, (namespace, kind))| Event {
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
    async fn pending<'g>(
        &'g self,
        ground: &'g Ground,
        whole: &'g Known,
        command: &Command,
    ) -> Result<Sites<'g>, Failure> {
        let Ground { head, pack, tuple, .. } = ground;
        let lineage = view::lineage(tuple.clone());
        let leads_on = !command.goto.is_empty() || !command.sends.is_empty();
        if leads_on && lineage.failed.values().any(|failed| failed.handler.is_some()) {
            let text = format!(
                "an `on_error` node handles a failure on thread `{}`; resume the thread before a \
                 command adds nodes",
                head.record.id
            );
            return Err(Failure::new(code::CONFLICT, text));
        }
        let afresh = afresh(pack, head.record.origin(), &tuple.checkpoint, command);
        refuse_unclear(whole, &lineage, &afresh)?;
        let survey = Survey {
            store: self.0.ports.store.as_ref(),
            thread: &head.record.id,
            origin: head.record.origin(),
            handlers: ground.handlers(),
            then: whole,
            whole,
            replaced: None,
            afresh,
        };
        survey.make().await
    }
}

/// Returns the tasks that read a channel that a command writes. A task that runs a subgraph is
/// never among them, because the subgraph has a state of its own.
fn afresh(
    pack: &GraphPack,
    origin: &ThreadId,
    base: &Checkpoint,
    command: &Command,
) -> BTreeSet<TaskId> {
    let sees = |node: &NodeName| {
        let Some(node) = pack.graph.node(node) else { return false };
        let is_read = |channel| node.reads.as_ref().is_none_or(|reads| reads.contains(channel));
        matches!(node.body, NodeKind::Plugin { .. })
            && command.writes.iter().any(|write| is_read(&write.channel))
    };
    let tasks = tasks_of(origin, &base.meta).into_iter();
    let seeing = tasks.filter(|(_, trigger)| trigger.input.is_none() && sees(&trigger.node));
    seeing.map(|(task, _)| task).collect()
}

async fn carried_out(
    app: &App,
    pack: &GraphPack,
    base: Option<&Checkpoint>,
    command: &Command,
    at: CheckpointStamp,
) -> Result<Checkpoint, Failure> {
    let reduced = reduce(app, command_reductions(&pack.graph, base, command)).await?;
    let made = step::command(&pack.graph, base, command, &reduced, at);
    made.map_err(|error| error.to_failure())
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

fn nothing_asked(thread: &ThreadId) -> Failure {
    let text = format!("thread `{thread}` has not run yet, so nothing can be answered");
    Failure::new(code::CONFLICT, text)
}
