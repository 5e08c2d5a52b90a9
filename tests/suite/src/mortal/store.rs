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

/// The moment of a write at which a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the batch is queued.
    Before,
    /// After the batch is queued, which may or may not be durable.
    HandedOver,
    /// After the batch is durable, and before the engine is notified.
    Durable,
}

impl Moment {
    /// All moments.
    pub const ALL: [Self; 3] = [Self::Before, Self::HandedOver, Self::Durable];

    /// Returns the name on the command line.
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
            anyhow::anyhow!("unknown moment `{text}`, expected one of {:?}", Self::ALL)
        })
    }
}

/// A store on top of another one, whose process dies at a selected write.
pub type MortalStore = Layered<Mortal>;

/// The layer of [`MortalStore`].
pub struct Mortal {
    below: Arc<dyn Store>,
    writes: AtomicUsize,
    death: OnceLock<(Moment, usize)>,
}

impl Mortal {
    /// Makes the process die at the write of this number, counted from 1.
    pub fn die_at(&self, moment: Moment, number: usize) {
        self.death.get_or_init(|| (moment, number));
    }

    /// Returns the number of batches.
    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    fn die_if(&self, moment: Moment, number: usize) {
        if self.death.get() == Some(&(moment, number)) {
            die();
        }
    }
}

/// Ends the process like the system when memory runs out: no destructor and no handler runs, and
/// nothing is flushed.
fn die() -> ! {
    // A process can always kill itself. The abort covers the case that the signal fails.
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
        // The engine must not receive an error either.
        let _ = ticket.await;
        die();
    }
}
