//! Places for calls of an adapter that all callers share, such as requests to one model provider
//! and lookups of names.
//!
//! A caller holds at most half of the places that other callers do not hold, so a further caller
//! finds a free place however slow the calls of others are. A place that becomes free goes to the
//! caller that holds the fewest; see [`crate::meter`].

use std::fmt;

use crate::meter::WorkOwner;
use crate::meter::turns::{Turn, Turns};

/// Places that callers share. Clones share the places.
#[derive(Clone)]
pub struct Places(Turns);

/// A place that a caller holds. Dropping the value frees the place.
#[must_use]
pub struct Place {
    _turn: Option<Turn>,
}

impl Places {
    /// Creates places for `count` calls at once. A single caller gets half of them, rounded up.
    pub fn new(count: usize) -> Self {
        Self(Turns::in_shares(count))
    }

    /// Waits for a place. The calls of one owner get places in the order of arrival. Dropping the
    /// future leaves the queue.
    pub async fn take(&self, owner: impl Into<WorkOwner>) -> Place {
        Place { _turn: self.0.take(owner.into()).await }
    }

    /// Returns true if no place is held, no call waits, and no clone exists.
    pub fn is_unused(&self) -> bool {
        self.0.is_unused()
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").finish_non_exhaustive()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::{FutureExt as _, poll};

    use super::*;
    use crate::caller_id::CallerId;

    #[tokio::test]
    async fn caller_with_slow_calls_leaves_places_for_others() {
        let (places, [slow, other]) = (Places::new(4), ["slow", "other"].map(CallerId::of_key));
        let held: Vec<Place> = (0..4).filter_map(|_| places.take(slow).now_or_never()).collect();
        assert_eq!(held.len(), 2);
        let mut waiting = pin!(places.take(slow));
        assert!(poll!(waiting.as_mut()).is_pending());
        let place = places.take(other).now_or_never();
        assert!(place.is_some());
        drop(held);
        assert!(waiting.now_or_never().is_some());
    }

    #[tokio::test]
    async fn waiting_call_of_another_caller_goes_first() {
        let (places, [slow, other]) = (Places::new(1), ["slow", "other"].map(CallerId::of_key));
        let held = places.take(slow).await;
        let mut second = pin!(places.take(slow));
        let mut first = pin!(places.take(other));
        assert!(poll!(second.as_mut()).is_pending() && poll!(first.as_mut()).is_pending());
        drop(held);
        assert!(poll!(second.as_mut()).is_pending());
        drop(first.await);
        drop(second.await);
    }

    #[tokio::test]
    async fn places_are_in_use_while_one_is_held_or_a_call_waits() {
        let (places, caller) = (Places::new(1), CallerId::default());
        assert!(places.is_unused());
        let held = places.take(caller).await;
        assert!(!places.is_unused());
        let mut waiting = Box::pin(places.take(caller));
        assert!(poll!(waiting.as_mut()).is_pending());
        drop((held, waiting));
        assert!(places.is_unused());
    }
}
