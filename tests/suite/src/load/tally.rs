//! The differences of two readings of the same events.

use std::collections::HashMap;
use std::ops::AddAssign;

use crate::load::frame::Mark;

/// Counts of events. All counts except the first two are zero if the readings are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events of the second reading.
    pub expected: usize,
    /// Events that the client received in the first reading.
    pub delivered: usize,
    /// Expected events that the client did not receive.
    pub lost: usize,
    /// Events that the client received more than once.
    pub twice: usize,
    /// Events that the client received with another content.
    pub changed: usize,
    /// Events that the client received and that were not expected.
    pub unknown: usize,
    /// Events that the client received after one with a higher number.
    pub unordered: usize,
}

impl Tally {
    /// Compares the events that a client received with the expected ones.
    pub(super) fn of(seen: &[Mark], truth: &[Mark]) -> Self {
        let mut tally = Self { expected: truth.len(), delivered: seen.len(), ..Self::default() };
        let known: HashMap<u64, u64> = truth.iter().map(|it| (it.number, it.digest)).collect();
        let mut first: HashMap<u64, u64> = HashMap::with_capacity(seen.len());
        for mark in seen {
            if first.insert(mark.number, mark.digest).is_some() {
                tally.twice += 1;
                continue;
            }
            match known.get(&mark.number) {
                None => tally.unknown += 1,
                Some(digest) if *digest != mark.digest => tally.changed += 1,
                Some(_) => {}
            }
        }
        tally.lost = known.keys().filter(|number| !first.contains_key(number)).count();
        tally.unordered = seen.windows(2).filter(|pair| pair[1].number < pair[0].number).count();
        // Duplicate numbers among the expected events would hide lost ones.
        tally.twice += truth.len() - known.len();
        tally
    }

    /// Returns whether both readings are equal.
    pub fn is_whole(&self) -> bool {
        let Self { expected, delivered, lost, twice, changed, unknown, unordered } = *self;
        expected == delivered && lost + twice + changed + unknown + unordered == 0
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.expected += other.expected;
        self.delivered += other.delivered;
        self.lost += other.lost;
        self.twice += other.twice;
        self.changed += other.changed;
        self.unknown += other.unknown;
        self.unordered += other.unordered;
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;
    use crate::load::frame::Mark;

    fn marks(numbers: &[u64]) -> Vec<Mark> {
        numbers.iter().map(|&number| Mark { number, digest: number }).collect()
    }

    fn check(seen: &[u64], wanted: &str) {
        let tally = Tally::of(&marks(seen), &marks(&[1, 2, 3]));
        let Tally { lost, twice, unknown, unordered, .. } = tally;
        let told = format!("lost {lost} twice {twice} unknown {unknown} unordered {unordered}");
        assert_eq!(told, wanted, "{seen:?}");
        assert_eq!(tally.is_whole(), seen == [1, 2, 3]);
    }

    #[test]
    fn tally_counts_every_difference() {
        check(&[1, 2, 3], "lost 0 twice 0 unknown 0 unordered 0");
        check(&[1, 3], "lost 1 twice 0 unknown 0 unordered 0");
        check(&[], "lost 3 twice 0 unknown 0 unordered 0");
        check(&[1, 2, 2, 3], "lost 0 twice 1 unknown 0 unordered 0");
        check(&[1, 2, 2], "lost 1 twice 1 unknown 0 unordered 0");
        check(&[1, 2, 3, 4], "lost 0 twice 0 unknown 1 unordered 0");
        check(&[2, 1, 3], "lost 0 twice 0 unknown 0 unordered 1");
    }

    #[test]
    fn changed_content_is_a_difference() {
        let seen = [Mark { number: 1, digest: 7 }];
        let tally = Tally::of(&seen, &marks(&[1]));
        assert_eq!((tally.changed, tally.is_whole()), (1, false));
    }

    #[test]
    fn duplicate_expected_numbers_are_a_difference() {
        assert!(!Tally::of(&marks(&[1, 2]), &marks(&[1, 1, 2])).is_whole());
    }
}
