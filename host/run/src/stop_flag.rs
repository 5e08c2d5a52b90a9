//! A flag that asks for a stop: of a run, as a cancel, drain, handover or abort, or of the engine
//! as a shutdown. The flag is set once, and the tasks that wait for it then stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;
use wattle_graph::principal::Principal;

/// A flag that is set once. Clones are cheap and share the flag.
#[derive(Clone, Default)]
pub struct StopFlag(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Whether `flag` is set. Supersteps read this value several times, without a lock.
    is_set: AtomicBool,
    flag: watch::Sender<Flag>,
}

#[derive(Debug, Default)]
struct Flag {
    is_set: bool,
    /// The principal of the first request that set the flag.
    principal: Option<Principal>,
}

impl StopFlag {
    /// Sets the flag.
    pub fn set(&self) {
        self.set_for(None);
    }

    /// Sets the flag on behalf of a principal. Only the principal of the first call is recorded.
    pub fn set_for(&self, principal: Option<Principal>) {
        let Inner { is_set, flag } = self.0.as_ref();
        flag.send_if_modified(|flag| {
            if flag.is_set {
                return false;
            }
            *flag = Flag { is_set: true, principal };
            is_set.store(true, Ordering::Release);
            true
        });
    }

    /// Returns the principal that set the flag, if there is one.
    pub fn principal(&self) -> Option<Principal> {
        self.0.flag.borrow().principal.clone()
    }

    /// Returns true if the flag is set.
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Acquire)
    }

    /// Waits until the flag is set.
    pub async fn wait(&self) {
        let mut receiver = self.0.flag.subscribe();
        // The sender lives in `self`, so waiting cannot fail before the flag is set.
        let _ = receiver.wait_for(|flag| flag.is_set).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_principal_that_cancels_is_recorded() {
        let (cancel, user) = (StopFlag::default(), |name: &str| {
            Some(Principal { user: Some(name.to_owned()), ..Principal::default() })
        });
        assert!(!cancel.is_set());
        cancel.clone().set_for(user("jane"));
        cancel.set_for(user("joe"));
        cancel.set();
        assert!(cancel.is_set());
        assert_eq!(cancel.principal(), user("jane"));
    }
}
