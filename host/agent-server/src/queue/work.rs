//! The workers of lanes: each begins what waits for its thread, one run after the other.

use std::time::Duration;

use wattle_graph::event::RunStatus;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::call::runs::{RunRef, Runs as _};
use wattle_run::ports::store::StoreError;

use crate::agents::Agents;
use crate::begin::begin;
use crate::doc::Kept;
use crate::doc::queued::{Queued, Stage, entry, leave, queued};
use crate::doc::run::{RunDoc, Waiting};
use crate::queue::take_out::finish_drop;
use crate::queue::{Next, Turn};

/// Pause before looking again at a thread that somebody else has.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Pause after the first failure of what the run needs, and again after a success; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause: a store that is back is not long without work.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Failures to begin one run, of the kind that passes, after which it counts as failed: some ten
/// minutes with their pauses. A store that is away does not bring it to that, however long: the run
/// then does not come so far.
const TRIES: u32 = 25;

/// Puts a run at the end of its lane.
pub(super) fn wait_for_turn(agents: &Agents, doc: RunDoc) {
    let thread = doc.thread.clone();
    let turn = Turn::new(doc, agents.now_ms());
    if agents.queue().push(turn) {
        let agents = agents.clone();
        tokio::spawn(async move {
            let mut stopping = agents.api().stopping.clone();
            tokio::select! {
                () = work(&agents, &thread) => {}
                // What waits then goes on after the next start, or on another host.
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        });
    }
}

async fn work(agents: &Agents, thread: &ThreadId) {
    let (mut misses, mut tried) = (0, None::<(RunId, u32)>);
    while let Some(next) = agents.queue().next(thread) {
        match next {
            Next::At(due, changed) => {
                let _ = tokio::time::timeout_at(due, changed.notified()).await;
            }
            Next::Turn(turn) => {
                let run = &turn.doc.run;
                let tries = tried.filter(|(tried, _)| tried == run).map_or(0, |(_, tries)| tries);
                tried = Some((run.clone(), tries));
                match take_turn(agents, thread, &turn, tries).await {
                    Ok(()) => misses = 0,
                    Err(Miss::Busy) => tokio::time::sleep(LOOK_AGAIN).await,
                    Err(Miss::Failed { failure, has_tried }) => {
                        if misses == 0 {
                            tracing::warn!(%thread, %run, %failure, "a run waits on, to be tried again");
                        }
                        tokio::time::sleep(pause(misses)).await;
                        misses = misses.saturating_add(1);
                        tried = Some((run.clone(), tries + u32::from(has_tried)));
                    }
                }
            }
        }
    }
}

fn pause(misses: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(misses)).min(LONGEST_PAUSE)
}

/// Why a run is to be tried again.
#[derive(Debug)]
enum Miss {
    /// Another run is at work on its thread.
    Busy,
    /// Something that it needs is away.
    Failed {
        failure: Failure,
        /// Whether the engine was asked to begin it.
        has_tried: bool,
    },
}

impl From<Failure> for Miss {
    fn from(failure: Failure) -> Self {
        Self::Failed { failure, has_tried: false }
    }
}

impl From<StoreError> for Miss {
    fn from(error: StoreError) -> Self {
        Failure::internal(error.to_string()).into()
    }
}

/// Begins a run when the thread is free.
///
/// # Errors
///
/// Why it is to be tried again.
async fn take_turn(
    agents: &Agents,
    thread: &ThreadId,
    turn: &Turn,
    tries: u32,
) -> Result<(), Miss> {
    wait_until_free(agents, thread).await?;
    let _turnstile = agents.queue().enter(thread).await;
    // It may have been taken out meanwhile, or another host may have taken it on.
    if agents.queue().left(thread, &turn.doc.run).is_some()
        && let Some(taken) = take(agents, &turn.doc).await?
    {
        begin_taken(agents, &turn.doc, &taken, tries).await?;
    }
    agents.queue().leave(thread, Some(&turn.doc.run));
    Ok(())
}

/// Says that this host begins a run; `None` if that is not for this host to do any more.
async fn take(agents: &Agents, doc: &RunDoc) -> Result<Option<Kept<Queued>>, Failure> {
    let entry = entry(agents.ports(), &doc.thread, &doc.run).await?;
    let Some(entry) = entry.filter(|entry| entry.doc.host == agents.host()) else {
        return Ok(None);
    };
    match entry.doc.stage {
        // Whoever dropped it may have failed halfway.
        Stage::Dropped { forget } => {
            finish_drop(agents, &entry.doc, forget).await?;
            Ok(None)
        }
        Stage::Waiting | Stage::Taken => {
            queued(agents.ports()).change(&entry, entry.doc.with(Stage::Taken)).await
        }
    }
}

async fn begin_taken(
    agents: &Agents,
    doc: &RunDoc,
    taken: &Kept<Queued>,
    tries: u32,
) -> Result<(), Miss> {
    let ports = agents.ports();
    match begin(agents, doc).await {
        Ok(_) => doc.lighten(ports).await,
        // Its host died right after it had begun, or the answer was lost.
        Err(_) if ports.store.run(&doc.run).await?.is_some() => {}
        Err(failure) => {
            let is_busy = failure.code == code::BUSY;
            if is_busy || (passes(&failure) && tries < TRIES) {
                queued(ports).change(taken, taken.doc.with(Stage::Waiting)).await?;
                let failed = Miss::Failed { failure, has_tried: true };
                return Err(if is_busy { Miss::Busy } else { failed });
            }
            tracing::info!(thread = %doc.thread, run = %doc.run, %failure, "a run cannot begin");
            RunDoc { state: Waiting::Failed { failure }, ..doc.clone() }.save(ports).await?;
        }
    }
    Ok(leave(ports, &doc.thread, &doc.run).await?)
}

/// Whether it may go better another time, without anybody doing anything about the run.
pub(super) fn passes(failure: &Failure) -> bool {
    failure.code == code::INTERNAL || failure.code == code::UNAVAILABLE
}

async fn wait_until_free(agents: &Agents, thread: &ThreadId) -> Result<(), Miss> {
    let store = &agents.ports().store;
    loop {
        let head = store.thread(thread).await?;
        let Some(run) = head.and_then(|head| head.record.run) else { return Ok(()) };
        let record = store.run(&run).await?;
        if record.is_none_or(|record| record.status != RunStatus::Running) {
            return Ok(());
        }
        match agents.engine().wait(&RunRef { thread: thread.clone(), run }).await {
            // It was cut and is not taken on yet, or has been taken away.
            Err(failure) if matches!(failure.code.as_str(), code::BUSY | code::NOT_FOUND) => {
                return Err(Miss::Busy);
            }
            ended => drop(ended?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_some_ten_minutes() {
        assert_eq!(pause(0), FIRST_PAUSE);
        assert_eq!(pause(1), FIRST_PAUSE * 2);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
        let all: Duration = (0..TRIES).map(pause).sum();
        assert!((Duration::from_mins(9)..Duration::from_mins(12)).contains(&all), "{all:?}");
    }
}
