//! Calls that a test holds up or lets fail, one of each wish: so it forces which of two comes first.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use wattle_graph::failure::Failure;

/// What is to happen to calls that come by, each under a name.
#[derive(Default)]
pub struct Gates {
    wishes: Mutex<Vec<(String, Wish)>>,
}

enum Wish {
    /// Something is sent if the call is to fail then.
    Hold {
        reached: oneshot::Sender<()>,
        open: oneshot::Receiver<()>,
    },
    Fail,
}

/// A gate before one call. The call goes on when this is dropped.
#[must_use]
pub struct Gate {
    reached: oneshot::Receiver<()>,
    open: oneshot::Sender<()>,
}

impl Gate {
    /// Waits until the call is there, and holds it on.
    ///
    /// # Panics
    ///
    /// If there are no [`Gates`] any more through which it could come.
    pub async fn reached(self) -> Held {
        self.reached.await.expect("the call comes by while its gates are there");
        Held(self.open)
    }
}

/// A call that is held. It goes on when this is dropped.
#[must_use]
pub struct Held(oneshot::Sender<()>);

impl Held {
    /// The call goes on and fails.
    pub fn fail(self) {
        // An error means that the call was dropped.
        let _ = self.0.send(());
    }
}

impl Gates {
    /// No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, Vec<(String, Wish)>> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next call of a name waits.
    pub fn hold(&self, call: &str) -> Gate {
        let (tell, reached) = oneshot::channel();
        let (keep, open) = oneshot::channel();
        self.lock().push((call.to_owned(), Wish::Hold { reached: tell, open }));
        Gate { reached, open: keep }
    }

    /// The next call of a name fails.
    pub fn fail(&self, call: &str) {
        self.lock().push((call.to_owned(), Wish::Fail));
    }

    /// Whether all has happened that was to happen.
    pub fn are_passed(&self) -> bool {
        self.lock().is_empty()
    }

    /// A call comes by: the oldest wish for its name is done.
    ///
    /// # Errors
    ///
    /// `internal` if the test wants that.
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
                // An error means that the test has let go of the gate.
                let _ = reached.send(());
                open.await.is_ok()
            }
        };
        if fails {
            return Err(Failure::internal(format!("`{call}` fails, as a test wants")));
        }
        Ok(())
    }
}
