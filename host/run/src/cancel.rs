//! A flag that ends a run: set once, waited for by everything the run does.

use std::sync::Arc;

use tokio::sync::watch;
use wattle_graph::principal::Principal;

/// Cheap to clone; all clones share the flag.
#[derive(Clone, Default)]
pub struct Cancel(Arc<watch::Sender<Flag>>);

#[derive(Debug, Default)]
struct Flag {
    is_set: bool,
    /// Who set it first.
    principal: Option<Principal>,
}

impl Cancel {
    /// Sets the flag.
    pub fn cancel(&self) {
        self.cancel_for(None);
    }

    /// Sets the flag for somebody who asked for that. The first caller counts.
    pub fn cancel_for(&self, principal: Option<Principal>) {
        self.0.send_if_modified(|flag| {
            if flag.is_set {
                return false;
            }
            *flag = Flag { is_set: true, principal };
            true
        });
    }

    /// Who set the flag, if that is known.
    pub fn principal(&self) -> Option<Principal> {
        self.0.borrow().principal.clone()
    }

    /// Whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.borrow().is_set
    }

    /// Waits until the flag is set.
    pub async fn cancelled(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives in `self`, so waiting cannot fail before the flag is set.
        let _ = receiver.wait_for(|flag| flag.is_set).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_who_cancels_is_remembered() {
        let (cancel, user) = (Cancel::default(), |name: &str| {
            Some(Principal { user: Some(name.to_owned()), ..Principal::default() })
        });
        assert!(!cancel.is_cancelled());
        cancel.clone().cancel_for(user("jane"));
        cancel.cancel_for(user("joe"));
        cancel.cancel();
        assert!(cancel.is_cancelled());
        assert_eq!(cancel.principal(), user("jane"));
    }
}
