//! A resource with a fixed limit for all callers, and a dynamic limit for each caller.
//!
//! A caller can hold at most half of the amount that other callers do not hold. A single caller
//! gets half of the resource, two callers about a third each, and so on. Every further caller finds
//! a free part, and no part is reserved for absent callers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::guard::open::Subject;

/// The resource. Clones share their state.
#[derive(Clone)]
pub(crate) struct Pool {
    all: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    used: usize,
    of: HashMap<Subject, usize>,
}

/// The limit that rejects a request for an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The configured maximum of one caller.
    Caller,
    /// The caller's share of the whole resource.
    Host,
}

impl Pool {
    /// Creates a resource of the given amount.
    pub(crate) fn new(all: usize) -> Self {
        Self { all, state: Arc::default() }
    }

    /// Locks the state and ignores poisoning: no code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `amount` for a caller. The total of the caller must not exceed `most`.
    pub(crate) fn take(&self, subject: &Subject, amount: usize, most: usize) -> Result<(), Full> {
        let mut state = self.lock();
        let own = state.of.get(subject).copied().unwrap_or_default() + amount;
        if own > most {
            return Err(Full::Caller);
        }
        // `free` is the amount that other callers do not hold. The caller's total must not exceed
        // half of it, rounded up.
        let free = (self.all + own - amount).saturating_sub(state.used);
        if own > free.div_ceil(2) {
            return Err(Full::Host);
        }
        state.used += amount;
        state.of.insert(subject.clone(), own);
        Ok(())
    }

    /// Returns an amount to the pool.
    pub(crate) fn give(&self, subject: &Subject, amount: usize) {
        let mut state = self.lock();
        state.used -= amount;
        if let Some(own) = state.of.get_mut(subject) {
            *own -= amount;
            if *own == 0 {
                state.of.remove(subject);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: usize) -> Subject {
        Subject::Key(id.to_string())
    }

    /// Takes units for a caller until the pool rejects one. Returns the number of units and the
    /// limit.
    fn fill(pool: &Pool, id: usize, most: usize) -> (usize, Full) {
        let mut got = 0;
        loop {
            match pool.take(&key(id), 1, most) {
                Ok(()) => got += 1,
                Err(full) => return (got, full),
            }
        }
    }

    #[test]
    fn further_callers_get_decreasing_shares() {
        let pool = Pool::new(64);
        assert_eq!(fill(&pool, 0, 20), (20, Full::Caller));
        assert_eq!(fill(&pool, 1, usize::MAX), (22, Full::Host));
        assert_eq!(fill(&pool, 2, usize::MAX), (11, Full::Host));
        for (id, share) in [(3, 6), (4, 3), (5, 1), (6, 1), (7, 0)] {
            assert_eq!(fill(&pool, id, usize::MAX), (share, Full::Host), "{id}");
        }
    }

    #[test]
    fn returned_amount_is_available_again() {
        let pool = Pool::new(4);
        pool.take(&key(0), 2, 2).unwrap();
        assert_eq!(pool.take(&key(0), 1, 2), Err(Full::Caller));
        assert_eq!(pool.take(&key(1), 2, 2), Err(Full::Host));
        pool.give(&key(0), 2);
        assert!(pool.lock().of.is_empty());
        pool.take(&key(1), 2, 2).unwrap();
    }
}
