//! Hosts that share their documents: each says again and again that it is there, and takes on what
//! those had in hand that have fallen silent, runs that wait and webhooks.
//!
//! That a host is silent does not mean that it does nothing more. So whoever takes something on
//! writes its own name where the other's stands, which only one can, and each looks whether its name
//! still stands there before it does anything.

use std::collections::HashSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use wattle_graph::failure::Failure;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;

use crate::agents::Agents;
use crate::doc::Shelf;
use crate::{queue, webhooks};

/// How long a host may be silent before others take on what it has. Several times [`PERIOD`]: a
/// slow database or a machine with much to do is not taken for a host that died.
const LEASE_MS: u64 = 60_000;

/// How often it says that it is there, and looks for what others left: so long, at most, does a run
/// wait here that was cancelled on another host.
const PERIOD: Duration = Duration::from_secs(15);

/// How long a host that stops may take to say so.
const FAREWELL: Duration = Duration::from_secs(2);

/// What a host says of itself. It expires with the lease, so whoever is found is there.
#[derive(Debug, Serialize, Deserialize)]
struct Sign {
    host: String,
}

fn signs(ports: &Ports) -> Shelf<'_> {
    Shelf::new(ports, MemoryScope::Host(None), &["hosts"])
}

/// Hosts that others than themselves take nothing from.
#[derive(Debug)]
pub(crate) struct Present(HashSet<String>);

impl Present {
    /// Whether a host is among them.
    pub(crate) fn has(&self, host: &str) -> bool {
        self.0.contains(host)
    }
}

/// A new name: one for each start of a host, so that nothing is taken for its own which it does not
/// have in hand.
pub(crate) fn name() -> String {
    Uuid::new_v4().to_string()
}

impl Agents {
    /// Says that this host is there, and answers which are. One that shares nothing is alone: what
    /// has another name is from before its start.
    pub(crate) async fn present(&self) -> Result<Present, Failure> {
        let own = self.host();
        let mut present = HashSet::from([own.to_owned()]);
        if self.engine().is_shared() {
            self.sign().await?;
            let all: Vec<Sign> = signs(self.ports()).every().await?;
            present.extend(all.into_iter().map(|sign| sign.host));
        }
        Ok(Present(present))
    }

    async fn sign(&self) -> Result<(), Failure> {
        let sign = Sign { host: self.host().to_owned() };
        signs(self.ports()).put(self.host(), &sign, Some(LEASE_MS)).await
    }

    /// Whether another host is there.
    pub(crate) async fn is_present(&self, host: &str) -> Result<bool, Failure> {
        let is_other = self.engine().is_shared() && host != self.host();
        Ok(is_other && signs(self.ports()).get::<Sign>(host).await?.is_some())
    }

    /// Takes on what hosts had in hand that are there no more, and lets go what others have taken
    /// on. The server does so by itself every quarter of a minute if hosts share its documents.
    pub async fn look_around(&self) {
        // First what hosts have in hand, then who is there: one that comes in between is there.
        let (runs, hooks) = (queue::listed(self).await, webhooks::listed(self).await);
        let present = match self.present().await {
            Ok(present) => present,
            Err(failure) => {
                tracing::warn!(%failure, "cannot tell other hosts that this one is there");
                return;
            }
        };
        let taken = async { queue::take_up(self, &runs?, &present).await };
        if let Err(failure) = taken.await {
            tracing::error!(%failure, "cannot look for runs that wait");
        }
        let taken = async { webhooks::take_up(self, hooks?, &present).await };
        if let Err(failure) = taken.await {
            tracing::error!(%failure, "cannot look for webhooks that are to be called");
        }
    }

    /// Does that again and again, where other hosts may die.
    pub(crate) fn keep_looking_around(&self) {
        if !self.engine().is_shared() {
            return;
        }
        let agents = self.clone();
        tokio::spawn(async move {
            let mut stopping = agents.api().stopping.clone();
            let looking = async {
                loop {
                    tokio::time::sleep(PERIOD).await;
                    agents.look_around().await;
                }
            };
            // It may take long to take on what a host left that had much in hand.
            let signing = async {
                loop {
                    if let Err(failure) = agents.sign().await {
                        tracing::debug!(%failure, "other hosts do not hear of this one");
                    }
                    tokio::time::sleep(PERIOD).await;
                }
            };
            tokio::select! {
                () = looking => {}
                () = signing => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
            // Others then need not wait until the lease is over.
            let shelf = signs(agents.ports());
            let farewell = shelf.delete(agents.host());
            if !matches!(tokio::time::timeout(FAREWELL, farewell).await, Ok(Ok(()))) {
                tracing::debug!("other hosts are not told that this one stops");
            }
        });
    }
}
