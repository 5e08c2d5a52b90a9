//! Runs that are at work on other hosts: waited for, cancelled, asked to stand still.
//!
//! Only the host that has a run can do anything to it. What others want of it travels with the news
//! of the store, which may be lost, so a wish is said again until it has come true.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::broadcast;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_graph::id::RunId;

use super::{Active, Engine, Inner, no_run};
use crate::call::runs::{RunRef, Runs as _};
use crate::ports::store::{StoreError, ThreadStatus, Wish};
use crate::view::store_failure;

/// How long to wait for news of a run on another host before looking again.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// The longest pause before a run is asked again to stand still: it doubles to that, since a
/// superstep may take long, and a wish is hardly ever lost.
const ASK_AGAIN_LATER: Duration = Duration::from_secs(30);

/// Runs of other hosts that are asked to stand still.
#[derive(Default)]
pub(super) struct Asking(Mutex<BTreeSet<RunId>>);

impl Asking {
    /// `false` if the run is asked already.
    fn begin(&self, run: &RunId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone())
    }

    fn end(&self, run: &RunId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
    }
}

impl Engine {
    /// Waits until a run that another host has is over; `cancel` asks that host to end it. If the
    /// host dies meanwhile, the run goes on here or elsewhere by [`Engine::recover`].
    pub(super) async fn ends_elsewhere(&self, run: &RunRef, cancel: bool) -> Result<(), Failure> {
        let store = &self.0.ports.store;
        let mut news = store.watch(&run.thread);
        loop {
            news.borrow_and_update();
            let record = store.run(&run.run).await.map_err(store_failure)?;
            let Some(record) = record.filter(|record| record.thread == run.thread) else {
                return Err(no_run(run));
            };
            if record.status != RunStatus::Running {
                return Ok(());
            }
            if cancel && self.here(&run.run).is_some() {
                return Box::pin(self.cancel(run)).await;
            }
            if cancel {
                store.wish(&Wish::Cancel(run.run.clone())).await.map_err(store_failure)?;
            }
            // News may be lost with a connection, so nothing depends on them alone. They end when a
            // thread is deleted, and begin anew with one of the same id.
            if let Ok(Err(_ended)) = tokio::time::timeout(ASK_AGAIN, news.changed()).await {
                tokio::time::sleep(ASK_AGAIN).await;
                news = store.watch(&run.thread);
            }
        }
    }

    /// Asks whichever host has a run to let it stand still, again and again until it does, on
    /// whatever host it is by then. Answers when it was asked once.
    pub(super) async fn drain_elsewhere(&self, run: &RunRef) -> Result<(), Failure> {
        if !self.0.leases.asking.begin(&run.run) {
            return Ok(());
        }
        let asked = self.ask_to_drain(run).await;
        if let Ok(true) = asked {
            self.0.runtime.spawn(keep_asking(Arc::downgrade(&self.0), run.clone()));
            return Ok(());
        }
        self.0.leases.asking.end(&run.run);
        asked.map(drop).map_err(store_failure)
    }

    /// `false` if nothing is left to ask for.
    async fn ask_to_drain(&self, run: &RunRef) -> Result<bool, StoreError> {
        if let Some(active) = self.here(&run.run) {
            active.drain.cancel();
            return Ok(false);
        }
        let store = &self.0.ports.store;
        let head = store.thread(&run.thread).await?;
        let record = head.map(|head| head.record);
        let is_at_work = record.is_some_and(|record| {
            record.status == ThreadStatus::Running && record.run.as_ref() == Some(&run.run)
        });
        if is_at_work {
            store.wish(&Wish::Drain(run.run.clone())).await?;
        }
        Ok(is_at_work)
    }

    /// A run that is at work in this process.
    fn here(&self, run: &RunId) -> Option<Active> {
        self.active().values().find(|active| active.run == *run).cloned()
    }
}

async fn keep_asking(engine: Weak<Inner>, run: RunRef) {
    let mut pause = ASK_AGAIN;
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(ASK_AGAIN_LATER);
        let Some(engine) = engine.upgrade().map(Engine) else { return };
        match engine.ask_to_drain(&run).await {
            Ok(true) => {}
            Ok(false) => return engine.0.leases.asking.end(&run.run),
            Err(error) => tracing::debug!(run = %run.run, %error, "a run is not asked to drain"),
        }
    }
}

/// Does to runs of this engine what other hosts wish.
pub(super) async fn hear(engine: Weak<Inner>, mut wishes: broadcast::Receiver<Wish>) {
    loop {
        let wish = match wishes.recv().await {
            Ok(wish) => wish,
            Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let Some(engine) = engine.upgrade().map(Engine) else { return };
        let (Wish::Cancel(run) | Wish::Drain(run)) = &wish;
        let Some(active) = engine.here(run) else { continue };
        match wish {
            Wish::Cancel(_) => active.cancel.cancel(),
            Wish::Drain(_) => active.drain.cancel(),
        }
    }
}
