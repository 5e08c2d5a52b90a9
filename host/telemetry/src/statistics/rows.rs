//! A bounded number of rows, each with a key and counts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The key of a row.
pub(super) trait Key: Clone + Ord {
    /// Returns the key of the less specific row into which this row can be merged; `None` for the
    /// least specific key.
    fn parent(&self) -> Option<Self>;
}

/// The counts of a row.
pub(super) trait Counts: Default {
    /// Adds other counts to these.
    fn add(&mut self, other: &Self);

    /// Returns how much the row matters. The rows that matter least are merged first.
    fn weight(&self) -> u64;
}

/// Rows of counts by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rows<K, C>(BTreeMap<K, C>);

impl<K: Key, C: Counts> Rows<K, C> {
    /// Adds counts to a row.
    pub(super) fn add(&mut self, key: K, counts: &C) {
        self.0.entry(key).or_default().add(counts);
    }

    /// Adds all rows of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        for (key, counts) in &other.0 {
            self.add(key.clone(), counts);
        }
    }

    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns all rows, ordered by key.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &C)> {
        self.0.iter()
    }

    /// Merges rows into less specific rows until at most `most` rows, or one row, are left. The
    /// most specific rows are merged first, and among these the rows with the smallest weights. The
    /// sum of all counts does not change.
    pub(super) fn fold_to(&mut self, most: usize) {
        let most = most.max(1);
        while self.0.len() > most {
            let excess = self.0.len() - most;
            let rows = self.0.iter();
            let mut order: Vec<(Reverse<usize>, u64, K)> = rows
                .map(|(key, counts)| (Reverse(depth(key)), counts.weight(), key.clone()))
                .collect();
            order.sort();
            for (_, _, key) in order.into_iter().take(excess) {
                if let (Some(parent), Some(counts)) = (key.parent(), self.0.remove(&key)) {
                    self.add(parent, &counts);
                }
            }
        }
    }
}

/// Returns how many times a row with this key can be merged into a less specific row.
fn depth<K: Key>(key: &K) -> usize {
    std::iter::successors(key.parent(), Key::parent).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Key for (u32, u32) {
        fn parent(&self) -> Option<Self> {
            match *self {
                (0, 0) => None,
                (_, 0) => Some((0, 0)),
                (app, _) => Some((app, 0)),
            }
        }
    }

    impl Counts for u64 {
        fn add(&mut self, other: &Self) {
            *self += other;
        }

        fn weight(&self) -> u64 {
            *self
        }
    }

    fn rows(counts: &[((u32, u32), u64)]) -> Rows<(u32, u32), u64> {
        let mut rows = Rows::default();
        for (key, count) in counts {
            rows.add(*key, count);
        }
        rows
    }

    #[test]
    fn specific_and_small_rows_are_merged_first() {
        let all = [((1, 1), 9), ((1, 2), 1), ((1, 3), 2), ((2, 1), 3)];
        let mut folded = rows(&all);
        folded.fold_to(3);
        assert_eq!(folded, rows(&[((1, 1), 9), ((1, 0), 3), ((2, 1), 3)]));
        folded.fold_to(2);
        assert_eq!(folded, rows(&[((1, 0), 12), ((2, 0), 3)]));
        for most in [1, 0] {
            let mut folded = rows(&all);
            folded.fold_to(most);
            assert_eq!(folded, rows(&[((0, 0), 15)]), "{most}");
        }
    }

    #[test]
    fn any_number_of_rows_is_merged_to_the_limit() {
        let all: Vec<_> = (1..=5_000_u32).map(|n| ((n % 70 + 1, n), u64::from(n))).collect();
        let total: u64 = all.iter().map(|(_, count)| count).sum();
        for most in [1, 5, 69, 256, 4_999] {
            let mut folded = rows(&all);
            folded.fold_to(most);
            assert!(folded.len() <= most, "{most}: {}", folded.len());
            assert_eq!(folded.iter().map(|(_, count)| count).sum::<u64>(), total, "{most}");
        }
    }
}
