//! Statistics of ended runs over time, which the host stores itself.
//!
//! The counts of each minute, hour and day are one document in the long-term memory of the host: a
//! bucket. All hosts of a store add to the same buckets by compare-and-set. A read therefore need
//! not merge buckets of hosts, and the number of documents does not grow with hosts or restarts.
//! The number of rows of a bucket is bounded, and a bucket expires.
//!
//! * `run_counts`: what a run adds; `counts` and `rows`: the rows of a bucket, `bucket`: its
//!   document.
//! * `pending`: counts that are not written yet, by minute, hour and day; `bucket_store`: the
//!   buckets in the long-term memory.
//! * `report`: groups the rows that a query selects into series.

mod bucket;
mod bucket_store;
mod counts;
mod limit;
mod pending;
mod report;
mod rows;
mod run_counts;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;
use uuid::Uuid;
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::observer::RunSummary;
use wattle_run::ports::statistics::{ModelPrices, Statistics, StatisticsQuery, StatisticsReport};
use wattle_run::ports::{Clock, Memory};

use crate::run_log::RunLog;
use crate::statistics::bucket::Bucket;
use crate::statistics::bucket_store::BucketStore;
use crate::statistics::pending::Pending;
use crate::statistics::report::{Range, Ranking, ReportBuilder};

/// Time between two writes. A crash of the host loses the counts since the last write.
const WRITE_PERIOD: Duration = Duration::from_secs(10);

/// Statistics of the ended runs of a host. Clones refer to the same statistics.
#[derive(Clone)]
pub struct RunStatistics(Arc<Inner>);

struct Inner {
    buckets: BucketStore,
    prices: ModelPrices,
    pending: Mutex<Pending>,
    /// Locked while counts are written, so that a read waits for a write in progress. The value is
    /// true after a warning about a failed write, until all counts are written.
    writing: tokio::sync::Mutex<bool>,
}

impl RunStatistics {
    /// Creates the statistics of a host. All hosts of a store share `memory`. Reports compute the
    /// costs of all intervals by the current `prices`.
    pub fn new(memory: Arc<dyn Memory>, clock: Arc<dyn Clock>, prices: ModelPrices) -> Self {
        Self(Arc::new(Inner {
            buckets: BucketStore { memory, clock },
            prices,
            pending: Mutex::new(Pending::new(Uuid::new_v4().to_string())),
            writing: tokio::sync::Mutex::new(false),
        }))
    }

    /// Counts a run. `models` returns the models that the operator configured for a route.
    pub(crate) fn record_run(&self, record: &RunLog, models: &dyn Fn(&str) -> Vec<String>) {
        let at_ms = run_counts::ended_ms(record).unwrap_or_else(|| self.0.buckets.clock.now_ms());
        self.add(at_ms, &run_counts::of_run(record, models));
    }

    /// Counts a run whose log could not be read, without its model calls.
    pub(crate) fn record_summary(&self, note: &RunSummary) {
        self.add(self.0.buckets.clock.now_ms(), &run_counts::of_summary(note));
    }

    /// Writes the counts every [`WRITE_PERIOD`], and a last time after `stopped` is closed.
    pub(crate) async fn run(self, mut stopped: oneshot::Receiver<()>) {
        loop {
            let is_stopped = tokio::time::timeout(WRITE_PERIOD, &mut stopped).await.is_ok();
            self.flush().await;
            if is_stopped {
                return;
            }
        }
    }

    /// Writes all counts. After a failure, the next call writes the remaining counts.
    async fn flush(&self) {
        let this = self.clone();
        // The spawned task ends even if the caller is dropped, so that all counts that it takes
        // from `pending` are written or put back.
        let written = tokio::spawn(async move { this.write_pending().await });
        if let Err(error) = written.await {
            tracing::warn!(%error, "cannot write statistics");
        }
    }

    async fn write_pending(&self) {
        let mut has_warned = self.0.writing.lock().await;
        let (mut writes, mut is_written) = (self.pending().take_writes(), true);
        while let Some(write) = writes.pop_front() {
            let Err(failure) = self.0.buckets.write(&write).await else { continue };
            is_written = false;
            if !*has_warned {
                *has_warned = true;
                tracing::warn!(%failure, "cannot write statistics");
            }
            // A damaged document cannot be read before a repair, so the counts of this write are
            // lost. Any other failure concerns the whole memory.
            if failure.code != code::BROKEN {
                self.pending().put_back(write, writes);
                return;
            }
        }
        if is_written {
            *has_warned = false;
        }
    }

    fn add(&self, at_ms: i64, counts: &Bucket) {
        self.pending().add(at_ms, counts);
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.0.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Statistics for RunStatistics {
    async fn read(&self, query: &StatisticsQuery) -> Result<StatisticsReport, Failure> {
        let Inner { buckets, prices, .. } = &*self.0;
        let range = Range::of(query, buckets.clock.now_ms())?;
        let Range { from_ms, to_ms } = range;
        self.flush().await;
        // The report is built in two passes, so that its memory is bounded for any number of names.
        let mut ranking = Ranking::new(query);
        if query.group.is_some() {
            let mut rank = |_: i64, bucket: Bucket| ranking.add(&bucket);
            buckets.visit(query.step, from_ms, to_ms, &mut rank).await?;
        }
        let mut report = ReportBuilder::new(query, prices, ranking.names());
        let mut add = |start_ms: i64, bucket: Bucket| report.add(start_ms, &bucket);
        buckets.visit(query.step, from_ms, to_ms, &mut add).await?;
        Ok(report.build(range))
    }
}
