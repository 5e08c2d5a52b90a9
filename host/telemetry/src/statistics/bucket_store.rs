//! Buckets in the long-term memory of the host, which all hosts of a store share.

use std::sync::Arc;

use wattle_graph::failure::{Failure, code};
use wattle_run::ports::memory::{MemoryScope, PutItem};
use wattle_run::ports::statistics::StatisticsStep;
use wattle_run::ports::{Clock, Memory};

use crate::statistics::bucket::{Bucket, BucketDocument};
use crate::statistics::limit::{DAYS_KEPT_MS, HOURS_KEPT_MS, MINUTES_KEPT_MS, WRITE_ATTEMPTS};
use crate::statistics::pending::BucketWrite;

/// Scope of the documents. Guests and clients cannot access this scope.
const SCOPE: MemoryScope = MemoryScope::Host(None);

/// First part of the document namespace of a bucket. The second part is the length of the interval
/// of the bucket: `minute`, `hour` or `day`.
const NAMESPACE: &str = "statistics";

/// Number of buckets that are read at once: 1 MiB at most.
const PAGE: usize = 16;

/// Buckets in the long-term memory.
pub(super) struct BucketStore {
    pub(super) memory: Arc<dyn Memory>,
    pub(super) clock: Arc<dyn Clock>,
}

impl BucketStore {
    /// Adds counts to the bucket of an interval. A repetition of a write that succeeded changes
    /// nothing, unless another host has written the bucket in between; the counts are then added
    /// twice.
    pub(super) async fn write(&self, write: &BucketWrite) -> Result<(), Failure> {
        let namespace = namespace(write.interval.step);
        let key = key(write.interval.start_ms);
        for _ in 0..WRITE_ATTEMPTS {
            let now_ms = self.clock.now_ms();
            let stored = self.memory.peek(&SCOPE, &namespace, &key, now_ms).await?;
            let known = stored.map(|item| item.value);
            let document = known.as_ref().map(BucketDocument::from_value).transpose();
            let document = document.unwrap_or_else(|error| {
                tracing::warn!(key, %error, "a bucket of statistics cannot be read and is replaced");
                None
            });
            let document = document.unwrap_or_default();
            if document.mark == write.mark {
                return Ok(());
            }
            let mut bucket = Bucket::from(document);
            bucket.merge(&write.added);
            bucket.bound();
            let item = PutItem {
                namespace: namespace.clone(),
                key: key.clone(),
                // The mark makes the value unique. If two hosts write equal counts, the
                // compare-and-set of only one of them succeeds.
                value: bucket.to_document(&write.mark).to_value(),
                ttl_ms: Some(kept_ms(write.interval.step)),
                refresh_on_read: false,
            };
            if self.memory.compare_and_set(&SCOPE, known.as_ref(), item, now_ms).await? {
                return Ok(());
            }
        }
        let message =
            "other hosts changed the bucket of statistics during every attempt to write it";
        Err(Failure::new(code::BUSY, message).retryable())
    }

    /// Calls `visit` for each bucket whose interval has the length `step` and starts between
    /// `from_ms` and `to_ms`, both included. The oldest bucket is first.
    pub(super) async fn visit(
        &self,
        step: StatisticsStep,
        from_ms: i64,
        to_ms: i64,
        visit: &mut (dyn FnMut(i64, Bucket) + Send),
    ) -> Result<(), Failure> {
        let (namespace, now_ms) = (namespace(step), self.clock.now_ms());
        let mut after = key(from_ms - 1);
        loop {
            let page = self.memory.list(&SCOPE, &namespace, &after, PAGE, now_ms).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after.clone_from(&last.key);
            for item in page {
                let Ok(start_ms) = item.key.parse::<i64>() else { continue };
                if start_ms > to_ms {
                    return Ok(());
                }
                match BucketDocument::from_value(&item.value) {
                    Ok(document) => visit(start_ms, document.into()),
                    Err(error) => {
                        tracing::warn!(start_ms, %error, "a bucket of statistics cannot be read");
                    }
                }
            }
        }
    }
}

fn namespace(step: StatisticsStep) -> Vec<String> {
    vec![NAMESPACE.to_owned(), step.name().to_owned()]
}

/// Returns the key of a bucket. The order of keys is the order of starts, because starts are not
/// negative.
fn key(start_ms: i64) -> String {
    format!("{start_ms:015}")
}

fn kept_ms(step: StatisticsStep) -> u64 {
    match step {
        StatisticsStep::Minute => MINUTES_KEPT_MS,
        StatisticsStep::Hour => HOURS_KEPT_MS,
        StatisticsStep::Day => DAYS_KEPT_MS,
    }
}
