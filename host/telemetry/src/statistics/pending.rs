//! Counts that are not written yet.

use std::collections::{BTreeMap, VecDeque};
use std::mem::take;

use wattle_run::ports::statistics::StatisticsStep;

use crate::statistics::bucket::Bucket;
use crate::statistics::limit::{BUCKET_ROWS, PENDING_BUCKETS};

/// An interval: its length, and its start in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Interval {
    pub(super) step: StatisticsStep,
    pub(super) start_ms: i64,
}

/// Counts that are added to the bucket of an interval.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BucketWrite {
    pub(super) interval: Interval,
    pub(super) added: Bucket,
    /// Mark that is unique among all writes. A bucket with this mark contains the counts of the
    /// write.
    pub(super) mark: String,
}

/// Counts that are not written yet.
#[derive(Debug)]
pub(super) struct Pending {
    counts: BTreeMap<Interval, Bucket>,
    /// A write that failed. The memory may have executed the write nevertheless, so the repetition
    /// has the same mark and the same counts.
    failed: Option<BucketWrite>,
    /// Prefix of the marks of this process.
    process: String,
    /// Number of marks that were created.
    marks: u64,
}

impl Pending {
    /// Creates empty counts. `process` is a name that no other process has.
    pub(super) fn new(process: String) -> Self {
        Self { counts: BTreeMap::new(), failed: None, process, marks: 0 }
    }

    /// Adds counts to the minute, the hour and the day that contain a time.
    pub(super) fn add(&mut self, at_ms: i64, counts: &Bucket) {
        for step in StatisticsStep::ALL {
            let start_ms = step.start_of(at_ms.max(0));
            self.add_to(Interval { step, start_ms }, counts);
        }
    }

    /// Takes all counts as writes. The failed write is the first one.
    pub(super) fn take_writes(&mut self) -> VecDeque<BucketWrite> {
        let mut writes: VecDeque<BucketWrite> = self.failed.take().into_iter().collect();
        for (interval, added) in take(&mut self.counts) {
            self.marks += 1;
            let mark = format!("{}-{}", self.process, self.marks);
            writes.push_back(BucketWrite { interval, added, mark });
        }
        writes
    }

    /// Puts back a write that failed, and the writes after it that were not attempted.
    pub(super) fn put_back(&mut self, failed: BucketWrite, rest: VecDeque<BucketWrite>) {
        self.failed = Some(failed);
        for write in rest {
            self.add_to(write.interval, &write.added);
        }
    }

    fn add_to(&mut self, interval: Interval, counts: &Bucket) {
        let bucket = self.counts.entry(interval).or_default();
        bucket.merge(counts);
        if bucket.most_rows() > 2 * BUCKET_ROWS {
            bucket.fold_to(BUCKET_ROWS);
        }
        if self.counts.len() > PENDING_BUCKETS {
            // The first interval is the oldest minute.
            self.counts.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::counts::{RunCounts, RunKey};
    use crate::statistics::rows::Counts as _;

    const MINUTE_MS: i64 = StatisticsStep::Minute.ms();

    fn run() -> Bucket {
        let mut bucket = Bucket::default();
        let key = RunKey { app: "asset".into(), tenant: String::new() };
        bucket.runs.add(key, &RunCounts { completed: 1, ..RunCounts::default() });
        bucket
    }

    fn runs(write: &BucketWrite) -> u64 {
        write.added.runs.iter().map(|(_, counts)| counts.weight()).sum()
    }

    #[test]
    fn counts_are_added_to_minutes_hours_and_days() {
        let mut pending = Pending::new("h".into());
        for minute in [0, 0, 1, 59, 60, 24 * 60] {
            pending.add(minute * MINUTE_MS + 5, &run());
        }
        pending.add(-5, &run());
        let writes = pending.take_writes();
        let found: Vec<_> = writes
            .iter()
            .map(|write| {
                (write.interval.step.name(), write.interval.start_ms / MINUTE_MS, runs(write))
            })
            .collect();
        let minutes = [("minute", 0, 3), ("minute", 1, 1), ("minute", 59, 1), ("minute", 60, 1)];
        let longer = [("hour", 0, 5), ("hour", 60, 1), ("hour", 1_440, 1), ("day", 0, 6)];
        let last = [("minute", 1_440, 1)];
        let expected = minutes.into_iter().chain(last).chain(longer).chain([("day", 1_440, 1)]);
        assert_eq!(found, expected.collect::<Vec<_>>());
        assert!(pending.take_writes().is_empty());
    }

    #[test]
    fn failed_write_keeps_its_mark_and_its_counts() {
        let mut pending = Pending::new("h".into());
        pending.add(0, &run());
        let mut writes = pending.take_writes();
        let failed = writes.pop_front().unwrap();
        pending.put_back(failed.clone(), writes);
        pending.add(0, &run());
        let again = pending.take_writes();
        assert_eq!((again.len(), &again[0]), (4, &failed));
        assert_eq!(again.iter().map(runs).collect::<Vec<_>>(), [1, 1, 2, 2]);
        let marks: Vec<&str> = again.iter().map(|write| write.mark.as_str()).collect();
        assert_eq!(marks, ["h-1", "h-4", "h-5", "h-6"]);
    }

    #[test]
    fn oldest_minutes_are_dropped_first() {
        let mut pending = Pending::new("h".into());
        for minute in 0..2_000 {
            pending.add(minute * MINUTE_MS, &run());
        }
        let writes = pending.take_writes();
        assert_eq!(writes.len(), PENDING_BUCKETS);
        let days = writes.iter().filter(|write| write.interval.step == StatisticsStep::Day);
        assert_eq!(days.map(runs).sum::<u64>(), 2_000);
    }
}
