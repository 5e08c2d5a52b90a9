//! Fair shares of a limited resource between callers.
//!
//! A caller can hold at most half of the amount that other callers do not hold. A single caller
//! gets half of the resource, two callers about a third each, and so on. Every further caller finds
//! a free part, and no part is reserved for absent callers.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::{Div, Sub};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Returns how much of `all` one caller can hold while other callers hold `others`: half of the
/// rest, rounded up.
#[must_use]
pub fn share_of<N>(all: N, others: N) -> N
where
    N: Copy + PartialOrd + From<u8> + Sub<Output = N> + Div<Output = N>,
{
    let rest = if others < all { all - others } else { N::from(0) };
    rest - rest / N::from(2)
}

/// A resource with a fixed limit for all callers, and a dynamic limit for each caller. Clones share
/// their state.
#[derive(Clone, Debug)]
pub struct Pool<S> {
    all: usize,
    state: Arc<Mutex<State<S>>>,
}

#[derive(Debug)]
struct State<S> {
    used: usize,
    of: HashMap<S, usize>,
}

/// The limit that rejects a request for an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The configured maximum of one caller.
    Caller,
    /// The caller's share of the whole resource.
    Host,
}

impl<S: Clone + Eq + Hash> Pool<S> {
    /// Creates a resource of the given amount.
    #[must_use]
    pub fn new(all: usize) -> Self {
        let state = State { used: 0, of: HashMap::new() };
        Self { all, state: Arc::new(Mutex::new(state)) }
    }

    /// Locks the state and ignores poisoning: no code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `amount` for a caller. The total of the caller must not exceed `most`.
    ///
    /// # Errors
    ///
    /// The limit that the total of the caller would exceed.
    pub fn take(&self, caller: &S, amount: usize, most: usize) -> Result<(), Full> {
        let mut state = self.lock();
        let before = state.of.get(caller).copied().unwrap_or_default();
        let own = before + amount;
        if own > most {
            return Err(Full::Caller);
        }
        if own > share_of(self.all, state.used - before) {
            return Err(Full::Host);
        }
        state.used += amount;
        state.of.insert(caller.clone(), own);
        Ok(())
    }

    /// Takes `amount` for a caller until the returned value is dropped.
    ///
    /// # Errors
    ///
    /// See [`Pool::take`].
    pub fn lease(&self, caller: S, amount: usize, most: usize) -> Result<Lease<S>, Full> {
        self.take(&caller, amount, most)?;
        Ok(Lease { pool: self.clone(), caller, amount })
    }

    /// Returns an amount to the pool.
    pub fn give(&self, caller: &S, amount: usize) {
        let mut state = self.lock();
        state.used -= amount;
        if let Some(own) = state.of.get_mut(caller) {
            *own -= amount;
            if *own == 0 {
                state.of.remove(caller);
            }
        }
    }
}

/// An amount that a caller holds. The amount returns to the pool on drop.
#[derive(Debug)]
pub struct Lease<S: Clone + Eq + Hash> {
    pool: Pool<S>,
    caller: S,
    amount: usize,
}

impl<S: Clone + Eq + Hash> Lease<S> {
    /// Takes the same amount once more for the same caller.
    ///
    /// # Errors
    ///
    /// See [`Pool::take`].
    pub fn another(&self) -> Result<Self, Full> {
        self.pool.lease(self.caller.clone(), self.amount, usize::MAX)
    }

    /// Returns the amount.
    #[must_use]
    pub fn amount(&self) -> usize {
        self.amount
    }

    /// Ends the lease, but leaves up to `amount` with the caller, for [`Pool::give`]. Returns what
    /// is left with the caller.
    #[must_use]
    pub fn keep(mut self, amount: usize) -> usize {
        let kept = amount.min(self.amount);
        self.amount -= kept;
        kept
    }
}

impl<S: Clone + Eq + Hash> Drop for Lease<S> {
    fn drop(&mut self) {
        self.pool.give(&self.caller, self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes units for a caller until the pool rejects one. Returns the number of units and the
    /// limit.
    fn fill(pool: &Pool<usize>, caller: usize, most: usize) -> (usize, Full) {
        let mut got = 0;
        loop {
            match pool.take(&caller, 1, most) {
                Ok(()) => got += 1,
                Err(full) => return (got, full),
            }
        }
    }

    #[test]
    fn share_is_half_of_what_others_leave() {
        assert_eq!((share_of(64_u64, 0), share_of(64_u64, 33)), (32, 16));
        assert_eq!((share_of(1_usize, 0), share_of(2_usize, 3)), (1, 0));
    }

    #[test]
    fn further_callers_get_decreasing_shares() {
        let pool = Pool::new(64);
        assert_eq!(fill(&pool, 0, 20), (20, Full::Caller));
        assert_eq!(fill(&pool, 1, usize::MAX), (22, Full::Host));
        assert_eq!(fill(&pool, 2, usize::MAX), (11, Full::Host));
        for (caller, share) in [(3, 6), (4, 3), (5, 1), (6, 1), (7, 0)] {
            assert_eq!(fill(&pool, caller, usize::MAX), (share, Full::Host), "{caller}");
        }
    }

    #[test]
    fn returned_amount_is_available_again() {
        let pool = Pool::new(4);
        pool.take(&0, 2, 2).unwrap();
        assert_eq!(pool.take(&0, 1, 2), Err(Full::Caller));
        assert_eq!(pool.take(&1, 2, 2), Err(Full::Host));
        pool.give(&0, 2);
        assert!(pool.lock().of.is_empty());
        pool.take(&1, 2, 2).unwrap();
    }

    #[test]
    fn leased_amount_returns_on_drop() {
        let pool = Pool::new(4);
        let one = pool.lease(0, 1, usize::MAX).unwrap();
        let two = one.another().unwrap();
        assert_eq!(two.another().err(), Some(Full::Host));
        drop(one);
        let three = two.another().unwrap();
        drop((two, three));
        assert_eq!(pool.lock().used, 0);
    }

    #[test]
    fn kept_amount_stays_after_the_lease() {
        let pool = Pool::new(8);
        let lease = pool.lease(0, 3, usize::MAX).unwrap();
        assert_eq!(lease.amount(), 3);
        assert_eq!(lease.keep(2), 2);
        assert_eq!(pool.lock().used, 2);
        assert_eq!(pool.lease(0, 1, usize::MAX).unwrap().keep(5), 1);
        pool.give(&0, 3);
        assert_eq!(pool.lock().used, 0);
    }
}
