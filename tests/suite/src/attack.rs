//! What guests, apps, services and clients try on a running host, for the suite and the benchmark.
//!
//! A [`Case`] is one attack, and a *strike* one round of it: it does harm as well as it can and then
//! looks whether the limit held that is there for it. [`Attack`] strikes again and again while
//! others use the [`Host`]. What must hold beside every attack is in [`honest`], once for all.
//!
//! # Layout
//!
//! * [`honest`]: what the host owes to others meanwhile.
//! * [`host`]: the real binary in a process of its own, with one configuration for all cases.
//! * [`app`]: the app that the attackers brought, and the configuration.
//! * `guests`, `clients`, `services`, `files`: the strikes, by who makes them.
//! * [`poison`]: a store with runs that cannot be gone on with.
//! * [`hostile`]: services whose answers never end, or are too large or too deep.

pub mod app;
mod clients;
mod files;
mod guests;
pub mod honest;
pub mod host;
pub mod hostile;
pub mod poison;
mod services;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::host::Host;

/// One attack.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// How many strikes are under way at once where it is measured.
    pub lanes: usize,
    strike: fn(Arc<Host>) -> BoxFuture<'static, Result<()>>,
}

macro_rules! cases {
    ($($name:literal, $lanes:literal, $strike:path;)*) => {
        &[$(Case { name: $name, lanes: $lanes, strike: |host| $strike(host).boxed() }),*]
    };
}

/// All attacks.
pub const CASES: &[Case] = cases! {
    // Work that the host does on data of a guest.
    "question-schema", 2, guests::question_schema;
    "large-answer", 2, guests::large_answer;
    "model-schema", 2, guests::model_schema;
    "sends", 1, guests::sends;
    "gotos", 2, guests::gotos;
    "conditions", 4, guests::conditions;
    "blobs", 2, guests::blobs;
    "sql", 2, guests::sql;
    "words", 2, guests::words;
    "busy", 1, guests::busy;
    // Clients.
    "half-requests", 1, clients::half_requests;
    "silent-streams", 1, clients::silent_streams;
    "sockets", 2, clients::sockets;
    "hosts", 2, clients::hosts;
    // Services.
    "model-comments", 2, services::model_comments;
    "model-deltas", 2, services::model_deltas;
    "model-endless", 2, services::model_endless;
    "model-large", 1, services::model_large;
    "tool-schema", 2, services::tool_schema;
    "tool-endless", 2, services::tool_endless;
    "tool-deep", 2, services::tool_deep;
    "tool-pages", 2, services::tool_pages;
    // Somebody who may write to the plugins folder.
    "files", 1, files::many_and_half;
};

/// The attack of a name.
pub fn case(name: &str) -> Option<Case> {
    CASES.iter().find(|case| case.name == name).copied()
}

/// An attack that goes on until it is told to stop, or a limit did not hold.
pub struct Attack {
    lanes: JoinSet<Result<()>>,
    strikes: watch::Sender<usize>,
    is_over: Arc<AtomicBool>,
}

impl Attack {
    /// Begins it, with so many strikes under way at once.
    pub fn begin(case: Case, host: &Arc<Host>, at_once: usize) -> Self {
        let (strikes, is_over) = (watch::Sender::new(0), Arc::new(AtomicBool::new(false)));
        let mut lanes = JoinSet::new();
        for _ in 0..at_once {
            let (host, strikes, is_over) = (host.clone(), strikes.clone(), is_over.clone());
            lanes.spawn(async move {
                while !is_over.load(Ordering::SeqCst) {
                    match (case.strike)(host.clone()).await {
                        Ok(()) => strikes.send_modify(|strikes| *strikes += 1),
                        // What the host was asked while it stopped has no answer.
                        Err(_) if is_over.load(Ordering::SeqCst) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            });
        }
        Self { lanes, strikes, is_over }
    }

    /// Waits for a number of strikes, after each of which the limit held.
    ///
    /// # Errors
    ///
    /// What did not hold.
    pub async fn struck(&mut self, count: usize) -> Result<()> {
        let mut strikes = self.strikes.subscribe();
        tokio::select! {
            // This has the sender.
            _ = strikes.wait_for(|strikes| *strikes >= count) => Ok(()),
            Some(ended) = self.lanes.join_next() => ended?,
        }
    }

    /// How many strikes there were.
    pub fn strikes(&self) -> usize {
        *self.strikes.borrow()
    }

    /// Says that failures of strikes count no longer, since the host is about to stop. The strikes
    /// go on.
    pub fn host_stops(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Ends it.
    ///
    /// # Errors
    ///
    /// What did not hold before the host was to stop.
    pub async fn end(mut self) -> Result<()> {
        self.host_stops();
        while let Some(ended) = self.lanes.join_next().await {
            ended??;
        }
        Ok(())
    }
}
