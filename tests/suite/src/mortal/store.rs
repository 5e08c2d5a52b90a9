//! A store whose process ends at one of its writes.

use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, Ticket};

/// When a process dies at a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nothing of the batch has been handed over.
    Before,
    /// The batch is on its way, and nobody knows how far.
    HandedOver,
    /// The batch is durable, and the engine has not heard of it.
    Durable,
}

impl Moment {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Before, Self::HandedOver, Self::Durable];

    /// As the command line says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::HandedOver => "handed-over",
            Self::Durable => "durable",
        }
    }
}

impl FromStr for Moment {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|moment| moment.name() == text);
        found.ok_or_else(|| {
            anyhow::anyhow!("there is no moment `{text}`: say one of {:?}", Self::ALL)
        })
    }
}

/// A store over another one that can be told when to die.
pub type MortalStore = Layered<Mortal>;

/// See [`MortalStore`].
pub struct Mortal {
    below: Arc<dyn Store>,
    writes: AtomicUsize,
    death: OnceLock<(Moment, usize)>,
}

impl Mortal {
    /// The process dies at the write of this number, from 1.
    pub fn die_at(&self, moment: Moment, number: usize) {
        self.death.get_or_init(|| (moment, number));
    }

    /// How many batches there were.
    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    fn die_if(&self, moment: Moment, number: usize) {
        if self.death.get() == Some(&(moment, number)) {
            die();
        }
    }
}

/// Ends the process here, as the system does when memory runs out: no destructor and no handler
/// runs, nothing is flushed, no thread goes on.
fn die() -> ! {
    // A process may always kill itself; if it could not, it still must not go on.
    let _ = kill(Pid::this(), Signal::SIGKILL);
    std::process::abort();
}

#[async_trait]
impl Layer for Mortal {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, writes: AtomicUsize::new(0), death: OnceLock::new() }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let number = self.writes.fetch_add(1, Ordering::SeqCst) + 1;
        self.die_if(Moment::Before, number);
        let ticket = self.below.append(thread, batch).await;
        self.die_if(Moment::HandedOver, number);
        if self.death.get() != Some(&(Moment::Durable, number)) {
            return ticket;
        }
        // Even a refusal is an answer that the engine does not live to hear.
        let _ = ticket.await;
        die();
    }
}
