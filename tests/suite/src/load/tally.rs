//! How two readings of the same events differ.

use std::collections::HashMap;
use std::ops::AddAssign;

use crate::load::frame::Mark;

/// Counts of events. All but the first two are zero if nothing is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// That a second reading has.
    pub expected: usize,
    /// That a client was sent the first time.
    pub delivered: usize,
    /// Expected, and never sent.
    pub lost: usize,
    /// Sent once more.
    pub twice: usize,
    /// Sent with another content.
    pub changed: usize,
    /// Sent, and not expected.
    pub unknown: usize,
    /// Sent behind one with a higher number.
    pub unordered: usize,
}

impl Tally {
    /// Compares what a client saw with what is true.
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
        // Numbers that are not unique would hide what is lost.
        tally.twice += truth.len() - known.len();
        tally
    }

    /// Whether both readings are the same.
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
    fn every_difference_is_counted() {
        check(&[1, 2, 3], "lost 0 twice 0 unknown 0 unordered 0");
        check(&[1, 3], "lost 1 twice 0 unknown 0 unordered 0");
        check(&[], "lost 3 twice 0 unknown 0 unordered 0");
        check(&[1, 2, 2, 3], "lost 0 twice 1 unknown 0 unordered 0");
        check(&[1, 2, 2], "lost 1 twice 1 unknown 0 unordered 0");
        check(&[1, 2, 3, 4], "lost 0 twice 0 unknown 1 unordered 0");
        check(&[2, 1, 3], "lost 0 twice 0 unknown 0 unordered 1");
    }

    #[test]
    fn another_content_is_a_difference() {
        let seen = [Mark { number: 1, digest: 7 }];
        let tally = Tally::of(&seen, &marks(&[1]));
        assert_eq!((tally.changed, tally.is_whole()), (1, false));
    }

    #[test]
    fn numbers_that_are_not_unique_are_no_truth() {
        assert!(!Tally::of(&marks(&[1, 2]), &marks(&[1, 1, 2])).is_whole());
    }
}
