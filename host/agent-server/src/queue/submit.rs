//! A run that is asked for: it begins at once if the thread is free, and by its strategy else.
//!
//! What is done to a thread is done to its end, also if the client who asked for it hangs up.

use wattle_graph::event::RunStatus;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::call::runs::{RunRef, Runs as _};
use wattle_run::engine::blank::NewThread;
use wattle_run::ports::memory::MemoryScope;
use wattle_run::ports::store::{RunRecord, ThreadRecord};

use crate::agents::Agents;
use crate::begin::begin;
use crate::crons;
use crate::doc::queued::{Queued, of_thread};
use crate::doc::run::{RunDoc, shelf};
use crate::fault::Fault;
use crate::queue::drop_waiting;
use crate::queue::work::{passes, wait_for_turn};
use crate::webhooks::{book, unbook};
use crate::whole::whole;
use crate::wire::request::Multitask;

/// Begins a run or lets it wait for its turn; returns once that is durable.
///
/// # Errors
///
/// 409 for a thread at work and the strategy `reject`; 503 if too many wait; those of the engine.
pub(crate) async fn submit(agents: &Agents, doc: RunDoc) -> Result<(), Fault> {
    let own = agents.clone();
    whole(agents, Box::pin(async move { take_in(&own, doc).await })).await
}

async fn take_in(agents: &Agents, doc: RunDoc) -> Result<(), Fault> {
    let ports = agents.ports();
    let thread = doc.thread.clone();
    // Before the run can begin, and watched once it is known whether it has.
    let _booking = book(agents, &doc).await?;
    let _turnstile = agents.queue().enter(&thread).await;
    let at_work = at_work(agents, &thread).await?;
    // Another host has begun the same run of a cron.
    if at_work.as_ref().is_some_and(|record| record.id == doc.run) {
        return Ok(());
    }
    let has_waiting = has_waiting(agents, &thread).await?;
    if at_work.is_some() || has_waiting {
        clear_the_way(agents, &doc, at_work.as_ref()).await?;
    }
    doc.save(ports).await?;
    let is_free = matches!(doc.strategy, Multitask::Interrupt | Multitask::Rollback)
        || (at_work.is_none() && !has_waiting);
    if is_free && doc.due_ms <= agents.now_ms() {
        match begin(agents, &doc).await {
            Ok(_) => {
                doc.lighten(ports).await;
                return Ok(());
            }
            // Somebody else was faster, by another API or on another host.
            Err(failure) if failure.code == code::BUSY && doc.strategy != Multitask::Reject => {}
            Err(failure) => {
                // The same run of a cron that another host began has the same document.
                if ports.store.run(&doc.run).await?.is_some() {
                    return Ok(());
                }
                // Another host may need it right now, which begins the same run of a cron. It goes
                // where that fails as well.
                if !(passes(&failure) && crons::is_of_cron(&doc)) {
                    doc.forget(ports).await?;
                }
                return Err(failure.into());
            }
        }
    }
    // One that is there is of the same run of a cron, which waits on another host.
    if Queued::new(&doc, agents.host()).make(ports).await? {
        wait_for_turn(agents, doc);
    }
    Ok(())
}

/// Whether runs wait for a thread, here or on another host.
pub(crate) async fn has_waiting(agents: &Agents, thread: &ThreadId) -> Result<bool, Failure> {
    let is_here = agents.queue().has_waiting(thread);
    let may_be_elsewhere = !is_here && agents.engine().is_shared();
    Ok(is_here || (may_be_elsewhere && !of_thread(agents.ports(), thread).await?.is_empty()))
}

/// What the strategy does with the runs that are in the way.
async fn clear_the_way(
    agents: &Agents,
    doc: &RunDoc,
    at_work: Option<&RunRecord>,
) -> Result<(), Fault> {
    let thread = &doc.thread;
    match doc.strategy {
        Multitask::Reject => {
            let text = format!("thread `{thread}` is at work; wait for its run or cancel it");
            return Err(Fault::conflict(text));
        }
        Multitask::Enqueue if agents.queue().is_full(thread) => {
            let text = format!("too many runs wait for thread `{thread}`; try again later");
            return Err(Failure::new(code::UNAVAILABLE, text).into());
        }
        Multitask::Enqueue => {}
        Multitask::Interrupt => {
            drop_waiting(agents, thread, None, false).await?;
            if let Some(run) = at_work {
                agents.engine().cancel(&reference(run)).await?;
            }
        }
        Multitask::Rollback => {
            drop_waiting(agents, thread, None, true).await?;
            if let Some(run) = at_work {
                unbook(agents, &run.id).await?;
                agents.engine().cancel(&reference(run)).await?;
                roll_back(agents, thread, &run.id).await?;
            }
        }
    }
    Ok(())
}

/// The run that is at work on a thread.
async fn at_work(agents: &Agents, thread: &ThreadId) -> Result<Option<RunRecord>, Fault> {
    let store = &agents.ports().store;
    let head = store.thread(thread).await?;
    let Some(run) = head.and_then(|head| head.record.run) else { return Ok(None) };
    Ok(store.run(&run).await?.filter(|run| run.status == RunStatus::Running))
}

fn reference(run: &RunRecord) -> RunRef {
    RunRef { thread: run.thread.clone(), run: run.id.clone() }
}

/// Cancels a run that waits or is at work; with `forget` it is taken away with what it did.
///
/// # Errors
///
/// 404 if there is nothing to cancel.
pub(crate) async fn cancel(
    agents: &Agents,
    thread: &ThreadId,
    run: &RunId,
    forget: bool,
) -> Result<(), Fault> {
    let (own, thread, run) = (agents.clone(), thread.clone(), run.clone());
    whole(agents, Box::pin(async move { call_off(&own, &thread, &run, forget).await })).await
}

async fn call_off(
    agents: &Agents,
    thread: &ThreadId,
    run: &RunId,
    forget: bool,
) -> Result<(), Fault> {
    let _turnstile = agents.queue().enter(thread).await;
    if drop_waiting(agents, thread, Some(run), forget).await? > 0 {
        return Ok(());
    }
    let record = at_work(agents, thread).await?.filter(|record| record.id == *run);
    let record = record.ok_or_else(|| Fault::missing("run to cancel", run.as_str()))?;
    if forget {
        unbook(agents, run).await?;
    }
    agents.engine().cancel(&reference(&record)).await?;
    if forget {
        roll_back(agents, thread, run).await?;
    }
    Ok(())
}

/// Takes a run away with what it did, cancelled before if need be.
pub(crate) async fn remove(agents: &Agents, thread: &ThreadId, run: &RunId) -> Result<(), Fault> {
    let (own, thread, run) = (agents.clone(), thread.clone(), run.clone());
    whole(agents, Box::pin(async move { take_away(&own, &thread, &run).await })).await
}

async fn take_away(agents: &Agents, thread: &ThreadId, run: &RunId) -> Result<(), Fault> {
    let _turnstile = agents.queue().enter(thread).await;
    if drop_waiting(agents, thread, Some(run), true).await? > 0 {
        return Ok(());
    }
    unbook(agents, run).await?;
    let record = at_work(agents, thread).await?.filter(|record| record.id == *run);
    if let Some(record) = record {
        agents.engine().cancel(&reference(&record)).await?;
    }
    roll_back(agents, thread, run).await
}

/// Forgets a run that is over, with the checkpoints that it made. A thread that has none then is
/// blank again.
async fn roll_back(agents: &Agents, thread: &ThreadId, run: &RunId) -> Result<(), Fault> {
    let (engine, ports) = (agents.engine(), agents.ports());
    let Some(head) = ports.store.thread(thread).await? else { return Ok(()) };
    engine.delete_runs(thread, std::slice::from_ref(run)).await?;
    let scope = MemoryScope::Host(head.record.tenant.clone());
    shelf(ports, scope, thread).delete(run.as_str()).await?;
    if ports.store.thread(thread).await?.is_none() {
        engine.create_thread(blank_again(head.record)).await?;
    }
    Ok(())
}

fn blank_again(record: ThreadRecord) -> NewThread {
    NewThread {
        thread: Some(record.id),
        tenant: record.tenant,
        metadata: record.metadata,
        ttl: record.ttl,
        created_ms: Some(record.created_ms),
    }
}
