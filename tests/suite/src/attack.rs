//! Attacks of guests, apps, services and clients on a running host, for the suite and the
//! benchmark.
//!
//! A [`Case`] is one attack. A *strike* is one round of it: the strike does as much harm as it can
//! and then checks that the limit against it held. An [`Attack`] repeats strikes while honest
//! callers use the [`Host`]. [`honest`] has the checks that must pass during every attack. A strike
//! that holds what it has taken runs them while it does.
//!
//! # Layout
//!
//! * [`honest`]: the checks of an honest caller.
//! * [`host`]: the real binary in a separate process, with one configuration for all cases.
//! * [`app`]: the app of the attackers, and the configuration.
//! * `guests`, `clients`, `crowd`, `readers`, `states`, `services`, `files`: the strikes, by
//!   attacker.
//! * [`poison`]: a store with runs that cannot be recovered.
//! * [`killed`]: a store whose host was killed amid thousands of tasks.
//! * [`hostile`]: services whose responses are endless, too large or too deep.

pub mod app;
mod clients;
mod crowd;
mod files;
mod guests;
pub mod honest;
pub mod host;
pub mod hostile;
pub mod killed;
pub mod poison;
mod readers;
mod services;
mod states;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::host::{Host, Prepared};

/// Interval between two polls of a strike.
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum duration of the polls for one result. It takes a fraction of that.
const PATIENCE: Duration = Duration::from_mins(1);

/// An attack with a name.
#[derive(Clone, Copy)]
pub struct Case {
    /// The name of the attack.
    pub name: &'static str,
    /// The number of concurrent strikes.
    pub lanes: usize,
    /// Whether the host has a cache of compiled code of its own, which the strikes fill. The other
    /// hosts use the cache that tests share.
    has_own_code: bool,
    strike: fn(Arc<Host>) -> BoxFuture<'static, Result<()>>,
}

impl Case {
    /// Starts a host for the attack.
    ///
    /// # Errors
    ///
    /// If it does not listen.
    pub async fn start_host(&self, binary: &Path) -> Result<Host> {
        let prepared = Prepared::new().await?;
        if self.has_own_code {
            prepared.unshare_compiled_code()?;
        }
        prepared.start(binary).await
    }
}

macro_rules! cases {
    (@has_own_code) => { false };
    (@has_own_code own_code) => { true };
    ($($name:literal, $lanes:literal, $strike:path $(, $code:ident)?;)*) => {
        &[$(Case {
            name: $name,
            lanes: $lanes,
            has_own_code: cases!(@has_own_code $($code)?),
            strike: |host| $strike(host).boxed(),
        }),*]
    };
}

/// All attacks.
pub const CASES: &[Case] = cases! {
    // Work that the host does on data of a guest.
    "question-schema", 2, guests::question_schema;
    "large-answer", 2, guests::large_answer;
    "model-schema", 2, guests::model_schema;
    "plugin-tool-schema", 2, guests::plugin_tool_schema;
    "sends", 1, guests::sends;
    "gotos", 2, guests::gotos;
    "conditions", 4, guests::conditions;
    "blobs", 2, guests::blobs;
    "random", 1, guests::random;
    "inputs", 2, guests::inputs;
    "logs", 2, guests::logs;
    "state", 1, guests::state;
    "output-numbers", 1, guests::output_numbers;
    "hog", 1, guests::hog;
    "histories", 1, guests::histories;
    "sql", 2, guests::sql;
    "words", 2, guests::words;
    "busy", 1, guests::busy;
    // Clients.
    "half-requests", 1, clients::half_requests;
    "silent-streams", 1, clients::silent_streams;
    "sockets", 2, clients::sockets;
    "hosts", 2, clients::hosts;
    "body-numbers", 1, clients::body_numbers;
    "large-events", 1, readers::large_events;
    "history", 1, readers::history;
    // A client that keeps what it takes.
    "handlers", 1, crowd::handlers;
    "searches", 2, crowd::searches;
    "waiting-runs", 1, crowd::waiting_runs;
    "many-states", 1, states::many_states;
    // Services.
    "model-comments", 2, services::model_comments;
    "model-deltas", 2, services::model_deltas;
    "model-endless", 2, services::model_endless;
    "model-large", 1, services::model_large;
    "model-numbers", 1, services::model_numbers;
    "tool-schema", 2, services::tool_schema;
    "tool-endless", 2, services::tool_endless;
    "tool-deep", 2, services::tool_deep;
    "tool-pages", 2, services::tool_pages;
    "tool-numbers", 2, services::tool_numbers;
    "http-endless", 2, services::http_endless;
    // An attacker who may write to the plugins folder.
    "files", 1, files::many_and_half;
    "components", 1, files::slow_components;
    "large-code", 1, files::large_code, own_code;
};

/// Returns the attack of a name.
pub fn case(name: &str) -> Option<Case> {
    CASES.iter().find(|case| case.name == name).copied()
}

/// Polls until there is a result. `what` is named if there is none in time.
async fn until<T, F>(what: &str, look: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<Option<T>>>,
{
    let looks = async {
        loop {
            if let Some(found) = look().await? {
                return anyhow::Ok(found);
            }
            sleep(PAUSE).await;
        }
    };
    timeout(PATIENCE, looks).await.unwrap_or_else(|_| Err(anyhow!("not in time: {what}")))
}

/// An attack that continues until it is stopped or a limit does not hold.
pub struct Attack {
    lanes: JoinSet<Result<()>>,
    strikes: watch::Sender<usize>,
    is_over: Arc<AtomicBool>,
}

impl Attack {
    /// Starts an attack with `at_once` concurrent strikes.
    pub fn begin(case: Case, host: &Arc<Host>, at_once: usize) -> Self {
        let (strikes, is_over) = (watch::Sender::new(0), Arc::new(AtomicBool::new(false)));
        let mut lanes = JoinSet::new();
        for _ in 0..at_once {
            let (host, strikes, is_over) = (host.clone(), strikes.clone(), is_over.clone());
            lanes.spawn(async move {
                while !is_over.load(Ordering::SeqCst) {
                    match (case.strike)(host.clone()).await {
                        Ok(()) => strikes.send_modify(|strikes| *strikes += 1),
                        // Requests fail while the host stops.
                        Err(_) if is_over.load(Ordering::SeqCst) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            });
        }
        Self { lanes, strikes, is_over }
    }

    /// Waits until `count` strikes have passed, each of which checks its limit.
    ///
    /// # Errors
    ///
    /// The failure of a strike.
    pub async fn struck(&mut self, count: usize) -> Result<()> {
        let mut strikes = self.strikes.subscribe();
        tokio::select! {
            // `self` has the sender, so the channel stays open.
            _ = strikes.wait_for(|strikes| *strikes >= count) => Ok(()),
            Some(ended) = self.lanes.join_next() => ended?,
        }
    }

    /// Returns the number of strikes that passed.
    pub fn strikes(&self) -> usize {
        *self.strikes.borrow()
    }

    /// Ignores failures of strikes from now on, because the host is about to stop. Each lane ends
    /// after its current strike.
    pub fn host_stops(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Stops the attack and waits until all strikes have ended.
    ///
    /// # Errors
    ///
    /// The failure of a strike before the host was about to stop.
    pub async fn end(mut self) -> Result<()> {
        self.host_stops();
        while let Some(ended) = self.lanes.join_next().await {
            ended??;
        }
        Ok(())
    }
}
