//! Failpoints: a test pauses or fails the next call of a name, and so controls the order of
//! concurrent calls.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use wattle_graph::failure::Failure;

/// The failpoints of a test. Each applies to one call of a name.
#[derive(Default)]
pub struct Gates {
    wishes: Mutex<Vec<(String, Wish)>>,
}

enum Wish {
    /// Pauses the call. A message on `open` makes it fail, a closed channel lets it continue.
    Hold {
        reached: oneshot::Sender<()>,
        open: oneshot::Receiver<()>,
    },
    Fail,
}

/// A call that will be paused. Dropping this value lets the call continue.
#[must_use]
pub struct Gate {
    reached: oneshot::Receiver<()>,
    open: oneshot::Sender<()>,
}

impl Gate {
    /// Waits until the call arrives, and keeps it paused.
    ///
    /// # Panics
    ///
    /// If the [`Gates`] are dropped before the call arrives.
    pub async fn reached(self) -> Held {
        self.reached.await.expect("the call comes by while its gates are there");
        Held(self.open)
    }
}

/// A paused call. Dropping this value lets the call continue.
#[must_use]
pub struct Held(oneshot::Sender<()>);

impl Held {
    /// Lets the call fail.
    pub fn fail(self) {
        // Sending fails only if the call was dropped.
        let _ = self.0.send(());
    }
}

impl Gates {
    /// Locks the failpoints. A poisoned lock is usable, because no code that can panic runs under
    /// it.
    fn lock(&self) -> MutexGuard<'_, Vec<(String, Wish)>> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pauses the next call of a name.
    pub fn hold(&self, call: &str) -> Gate {
        let (tell, reached) = oneshot::channel();
        let (keep, open) = oneshot::channel();
        self.lock().push((call.to_owned(), Wish::Hold { reached: tell, open }));
        Gate { reached, open: keep }
    }

    /// Fails the next call of a name.
    pub fn fail(&self, call: &str) {
        self.lock().push((call.to_owned(), Wish::Fail));
    }

    /// Returns true if no failpoint is left.
    pub fn are_passed(&self) -> bool {
        self.lock().is_empty()
    }

    /// Applies the oldest failpoint of a name to a call. The code under test calls this.
    ///
    /// # Errors
    ///
    /// `internal` if the test requests a failure.
    pub async fn pass(&self, call: &str) -> Result<(), Failure> {
        let wish = {
            let mut wishes = self.lock();
            let place = wishes.iter().position(|(name, _)| name == call);
            place.map(|place| wishes.remove(place).1)
        };
        let fails = match wish {
            None => false,
            Some(Wish::Fail) => true,
            Some(Wish::Hold { reached, open }) => {
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
