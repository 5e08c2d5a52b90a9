//! Failpoints, at which a test pauses or fails named calls of the code under test, and so controls
//! the order of concurrent calls.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use wattle_graph::failure::Failure;

/// The failpoints of a test. A failpoint has the name of a call and applies to one call.
#[derive(Default)]
pub struct Gates {
    failpoints: Mutex<Vec<(String, Failpoint)>>,
}

/// What a failpoint does with its call.
enum Failpoint {
    /// Pauses the call. A message on `open` makes it fail, a closed channel lets it continue.
    Hold {
        reached: oneshot::Sender<()>,
        open: oneshot::Receiver<()>,
    },
    Fail,
}

/// A failpoint that pauses a call. Dropping this value lets the call continue.
#[must_use]
pub struct Gate {
    reached: oneshot::Receiver<()>,
    open: oneshot::Sender<()>,
}

impl Gate {
    /// Waits until the call reaches the failpoint. The call stays paused.
    ///
    /// # Panics
    ///
    /// If the [`Gates`] are dropped before the call arrives.
    pub async fn reached(self) -> Held {
        self.reached.await.expect("the call must arrive before the `Gates` are dropped");
        Held(self.open)
    }
}

/// A paused call. Dropping this value lets the call continue.
#[must_use]
pub struct Held(oneshot::Sender<()>);

impl Held {
    /// Makes the call fail.
    pub fn fail(self) {
        // Sending fails only if the call was dropped.
        let _ = self.0.send(());
    }
}

impl Gates {
    /// Locks the failpoints and ignores poisoning: no code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, Vec<(String, Failpoint)>> {
        self.failpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pauses the next call with this name.
    pub fn hold(&self, call: &str) -> Gate {
        let (tell, reached) = oneshot::channel();
        let (keep, open) = oneshot::channel();
        self.lock().push((call.to_owned(), Failpoint::Hold { reached: tell, open }));
        Gate { reached, open: keep }
    }

    /// Fails the next call with this name.
    pub fn fail(&self, call: &str) {
        self.lock().push((call.to_owned(), Failpoint::Fail));
    }

    /// Returns true if no failpoint is left.
    pub fn are_passed(&self) -> bool {
        self.lock().is_empty()
    }

    /// Removes the oldest failpoint with this name and applies it to the call, if there is one. The
    /// code under test awaits this method at each named call.
    ///
    /// # Errors
    ///
    /// `internal` if the test requests a failure.
    pub async fn pass(&self, call: &str) -> Result<(), Failure> {
        let failpoint = {
            let mut failpoints = self.lock();
            let index = failpoints.iter().position(|(name, _)| name == call);
            index.map(|index| failpoints.remove(index).1)
        };
        let fails = match failpoint {
            None => false,
            Some(Failpoint::Fail) => true,
            Some(Failpoint::Hold { reached, open }) => {
                // Sending fails only if the test has dropped the gate.
                let _ = reached.send(());
                open.await.is_ok()
            }
        };
        if fails {
            return Err(Failure::internal(format!("failpoint `{call}`")));
        }
        Ok(())
    }
}
