//! Threads that are made before it is known which graph they run, and facts of threads that change
//! without a run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};

use super::owner::check_owner;
use super::{Asked, Engine, Slot, new_run_id, new_thread_id, no_thread};
use crate::app::{App, GraphPack};
use crate::facts;
use crate::json::check_depth;
use crate::log::{Amended, Amendment};
use crate::ports::store::{Batch, StoreError, ThreadHead, ThreadRecord, ThreadTtl, Turn};
use crate::view::store_failure;

/// Attempts at facts of a thread that something else than a run at work has: a run that is about to
/// begin or has just ended, an edit.
const AMEND_ATTEMPTS: u32 = 20;

/// Pause before the next attempt.
const AMEND_PAUSE: Duration = Duration::from_millis(25);

/// A thread to be made before its first run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewThread {
    /// Its id; a fresh one without it.
    pub thread: Option<ThreadId>,
    /// Whose it is.
    pub tenant: Option<String>,
    /// Free facts.
    pub metadata: BTreeMap<String, Value>,
    /// How long it is kept; as the engine is set up without it.
    pub ttl: Option<ThreadTtl>,
    /// When it counts as made, milliseconds since 1970; now without it.
    pub created_ms: Option<i64>,
}

/// Facts of a thread that change without a run.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateThread {
    /// The thread.
    pub thread: ThreadId,
    /// Only a thread of this tenant.
    pub tenant: Option<String>,
    /// Facts that are added, or take the place of those of the same name.
    pub metadata: BTreeMap<String, Value>,
    /// How long it is kept; as it is set already without it.
    pub ttl: Option<ThreadTtl>,
}

impl Engine {
    /// Makes a thread without a graph; its first run binds it to one.
    ///
    /// # Errors
    ///
    /// `conflict` if there is a thread of that id, `busy` if one is just being made; `limit` for facts
    /// that are too large, and for a tenant that has as much as it may.
    pub async fn create_thread(&self, new: NewThread) -> Result<ThreadRecord, Failure> {
        new.metadata.values().try_for_each(|value| check_depth("the metadata", value))?;
        // One that is made again keeps what it had, also from before there was a limit.
        if new.created_ms.is_none() {
            facts::check(&new.metadata)?;
        }
        let thread = new.thread.unwrap_or_else(new_thread_id);
        let mut slot = self.claim(&thread, new_run_id()).await?;
        if self.live_thread(&thread).await?.is_some() {
            let text = format!("there is a thread `{thread}` already; choose another id");
            return Err(
                Failure::new(code::CONFLICT, text).with_details(json!({ "thread": thread }))
            );
        }
        self.admit_new(new.tenant.as_deref()).await?;
        let now_ms = self.now_ms();
        let record = ThreadRecord {
            created_ms: new.created_ms.unwrap_or(now_ms),
            tenant: new.tenant,
            metadata: new.metadata,
            ttl: new.ttl.or(self.0.thread_ttl),
            born: Some(new_run_id()),
            ..ThreadRecord::blank(thread.clone(), now_ms)
        };
        let batch =
            Batch { epoch: Some(slot.epoch), record: Some(record.clone()), ..Batch::default() };
        self.0.ports.store.append(&thread, batch).await.await.map_err(store_failure)?;
        slot.release().await;
        Ok(record)
    }

    /// Changes facts of a thread. A run that is at work has the facts as they were.
    ///
    /// # Errors
    ///
    /// `not-found`; `busy` while a run is at work on another host, or while something else happens
    /// to the thread for long; `limit` for facts that are too large with those it has.
    pub async fn update_thread(&self, update: UpdateThread) -> Result<ThreadRecord, Failure> {
        update.metadata.values().try_for_each(|value| check_depth("the metadata", value))?;
        let thread = &update.thread;
        let head = self.live_thread(thread).await?.ok_or_else(|| no_thread(thread))?;
        check_owner(&head, None, update.tenant.as_ref())?;
        let mut attempt = 1;
        loop {
            if let Some(record) = self.amend(&update).await? {
                return Ok(record);
            }
            match self.update_standing(&update).await {
                Err(failure) if failure.code == code::BUSY && attempt < AMEND_ATTEMPTS => {}
                updated => return updated,
            }
            tokio::time::sleep(AMEND_PAUSE).await;
            attempt += 1;
        }
    }

    /// Changes facts by way of the run that is at work; `None` if none is, or it ends just now.
    async fn amend(&self, update: &UpdateThread) -> Result<Option<ThreadRecord>, Failure> {
        let at_work = self.active().get(&update.thread).and_then(|active| active.log.upgrade());
        let Some(log) = at_work else { return Ok(None) };
        let amendment = Amendment { metadata: update.metadata.clone(), ttl: update.ttl };
        match log.amend(amendment).await {
            Ok(Amended::Done(record)) => Ok(Some(record)),
            Ok(Amended::TooLarge(failure)) => Err(failure),
            Ok(Amended::TooEarly) | Err(StoreError::Fenced { .. }) => Ok(None),
            Err(error) => Err(store_failure(error)),
        }
    }

    /// Changes facts of a thread on which no run is at work.
    async fn update_standing(&self, update: &UpdateThread) -> Result<ThreadRecord, Failure> {
        let thread = &update.thread;
        let mut slot = self.claim(thread, new_run_id()).await?;
        let head = self.live_thread(thread).await?.ok_or_else(|| no_thread(thread))?;
        self.refuse_cut(&head).await?;
        let mut record = head.record;
        facts::check_added(&record.metadata, &update.metadata)?;
        let amendment = Amendment { metadata: update.metadata.clone(), ttl: update.ttl };
        amendment.apply(&mut record);
        record.updated_ms = self.now_ms();
        let batch =
            Batch { epoch: Some(slot.epoch), record: Some(record.clone()), ..Batch::default() };
        self.0.ports.store.append(thread, batch).await.await.map_err(store_failure)?;
        slot.release().await;
        Ok(record)
    }

    /// Takes a thread for a run that begins, under the id that was chosen if no other run has it.
    ///
    /// # Errors
    ///
    /// `conflict` for an id that a run has; `busy` if a run is at work on the thread.
    pub(super) async fn claim_new(&self, thread: &ThreadId, asked: Asked) -> Result<Slot, Failure> {
        let mut slot = match asked.run.clone() {
            None => self.claim(thread, new_run_id()).await?,
            // It is known, and begins in its turn.
            Some(run) if asked.turn == Turn::Own => self.claim(thread, run).await?,
            Some(run) => self.claim_chosen(thread, run).await?,
        };
        slot.asked = asked;
        Ok(slot)
    }

    async fn claim_chosen(&self, thread: &ThreadId, run: RunId) -> Result<Slot, Failure> {
        if self.active().values().any(|active| active.run == run) {
            return Err(taken(&run));
        }
        self.refuse_known(&run).await?;
        let slot = self.claim(thread, run).await?;
        // Another host may have begun the same run and ended it while its lease was waited for.
        self.refuse_known(&slot.run).await?;
        Ok(slot)
    }

    pub(super) async fn refuse_known(&self, run: &RunId) -> Result<(), Failure> {
        let known = self.0.ports.store.run(run).await.map_err(store_failure)?;
        known.map_or(Ok(()), |_| Err(taken(run)))
    }
}

pub(super) fn taken(run: &RunId) -> Failure {
    let text = format!("there is a run `{run}` already; choose another id");
    Failure::new(code::CONFLICT, text).with_details(json!({ "run_id": run }))
}

/// A blank thread as it stands when it is known what it runs. What was said of it before stays.
pub(super) fn bound(head: ThreadHead, app: &App, pack: &GraphPack) -> ThreadHead {
    let record = ThreadRecord {
        app: app.name.clone(),
        graph: pack.graph.name.clone(),
        version: pack.version,
        ..head.record
    };
    ThreadHead { record, ..head }
}
