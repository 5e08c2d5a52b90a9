//! The places for runs of a host, and how callers share them.
//!
//! The waiting caller with the fewest places gets the next free place, so a caller that holds half
//! of the places gets no further place while another caller waits. A caller that holds as many
//! places as are free may take further ones, but leaves one of [`RESERVED_PLACES_DIVISOR`] places
//! free for others, because its runs may last long.

use std::collections::HashMap;

use crate::caller_id::CallerId;
use crate::fair_share::share_of;
use crate::limit::RESERVED_PLACES_DIVISOR;

/// The places for runs of a host at one moment.
#[derive(Clone, Debug)]
pub(super) struct RunPlaces {
    all: usize,
    used: usize,
    of: HashMap<CallerId, usize>,
}

impl RunPlaces {
    /// Creates a number of free places.
    pub(super) fn new(all: usize) -> Self {
        Self { all, used: 0, of: HashMap::new() }
    }

    /// Adds places that a caller holds. Runs that do not wait for a place may exceed the number of
    /// places.
    pub(super) fn add(&mut self, caller: CallerId, count: usize) {
        self.used += count;
        *self.of.entry(caller).or_default() += count;
    }

    /// Returns the number of places that callers hold.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Returns the number of free places.
    pub(super) fn free(&self) -> usize {
        self.all.saturating_sub(self.used)
    }

    /// Returns the number of places that a caller holds.
    pub(super) fn held_by(&self, caller: CallerId) -> usize {
        self.of.get(&caller).copied().unwrap_or_default()
    }

    /// Returns true if a run of a caller may start. If the result is false for a caller, it is also
    /// false for every caller with more places.
    pub(super) fn may_start(&self, caller: CallerId) -> bool {
        let (own, free) = (self.held_by(caller), self.free());
        let is_within_share = own < share_of(self.all, self.used - own);
        free > 0 && (is_within_share || free > self.all / RESERVED_PLACES_DIVISOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(number: usize) -> CallerId {
        CallerId::of_key(&number.to_string())
    }

    /// Starts runs of a caller until the caller may start no further run. Returns their number.
    fn fill(places: &mut RunPlaces, number: usize) -> usize {
        let before = places.held_by(caller(number));
        while places.may_start(caller(number)) {
            places.add(caller(number), 1);
        }
        places.held_by(caller(number)) - before
    }

    #[test]
    fn further_callers_find_free_places_for_runs() {
        let mut places = RunPlaces::new(1_000);
        assert_eq!(fill(&mut places, 0), 875);
        for (number, share) in [(1, 63), (2, 31), (3, 16), (4, 8), (5, 4), (6, 2), (7, 1)] {
            assert_eq!(fill(&mut places, number), share, "{number}");
        }
        assert_eq!(places.free(), 0);
    }

    #[test]
    fn no_place_is_reserved_if_a_host_has_few_places() {
        for all in 1..RESERVED_PLACES_DIVISOR {
            assert_eq!(fill(&mut RunPlaces::new(all), 0), all);
        }
        assert_eq!(fill(&mut RunPlaces::new(RESERVED_PLACES_DIVISOR), 0), 7);
    }

    #[test]
    fn more_runs_than_places_leave_no_free_place() {
        let mut places = RunPlaces::new(2);
        places.add(caller(0), 5);
        assert!(!places.may_start(caller(1)));
        assert_eq!((places.used(), places.free()), (5, 0));
    }

    #[test]
    fn caller_with_more_places_starts_only_if_a_caller_with_fewer_may_start() {
        for (one, other) in (0..40).flat_map(|one| (0..40).map(move |other| (one, other))) {
            let mut places = RunPlaces::new(64);
            places.add(caller(0), one);
            places.add(caller(1), one + other);
            assert!(places.may_start(caller(0)) || !places.may_start(caller(1)), "{one} {other}");
        }
    }
}
