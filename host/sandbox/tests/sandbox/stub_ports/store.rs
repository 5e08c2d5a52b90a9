//! A store without threads.

use async_trait::async_trait;
use tokio::sync::watch;
use wattle_graph::event::Event;
use wattle_graph::id::{AppName, CheckpointId, GraphName, Namespace, RunId, ThreadId};
use wattle_run::ports::Store;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, BatchPage, CheckpointOutline, CheckpointQuery, CheckpointTuple, CompactionReport,
    LeaseEpoch, LeaseHolder, ListPage, MentionPage, OrphanedThread, Owner, OwnerUsage,
    PendingQuery, PendingRun, PinnedVersions, PruneStrategy, RunCounts, RunRecord, RunSearch,
    RunSearchPage, RunSummary, SealReport, StoreError, StoreUsage, ThreadCounts, ThreadHead,
    ThreadQuery, ThreadSearch, ThreadSearchPage, ThreadSummary, Ticket,
};

use super::StubPorts;

/// Gates without a task never use the store.
#[async_trait]
impl Store for StubPorts {
    async fn append(&self, _thread: &ThreadId, _batch: Batch) -> Ticket {
        unreachable!("no task, no log")
    }

    fn watch(&self, _thread: &ThreadId) -> watch::Receiver<u64> {
        unreachable!("no task, no log")
    }

    async fn thread(&self, _thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError> {
        Ok(None)
    }

    async fn orphaned_threads(
        &self,
        _holder: &LeaseHolder,
        _after: Option<&ThreadId>,
    ) -> Result<Vec<OrphanedThread>, StoreError> {
        Ok(Vec::new())
    }

    async fn threads(&self, _query: &ThreadQuery) -> Result<ListPage<ThreadSummary>, StoreError> {
        Ok(ListPage::empty())
    }

    async fn search_threads(&self, _search: &ThreadSearch) -> Result<ThreadSearchPage, StoreError> {
        Ok(ThreadSearchPage::default())
    }

    async fn count_threads(&self, _search: &ThreadSearch) -> Result<ThreadCounts, StoreError> {
        Ok(ThreadCounts::default())
    }

    async fn search_runs(&self, _search: &RunSearch) -> Result<RunSearchPage, StoreError> {
        Ok(RunSearchPage::default())
    }

    async fn count_runs(&self, _search: &RunSearch) -> Result<RunCounts, StoreError> {
        Ok(RunCounts::default())
    }

    async fn pinned_versions(&self) -> Result<PinnedVersions, StoreError> {
        Ok(PinnedVersions::default())
    }

    async fn run(&self, _run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        Ok(None)
    }

    async fn enqueue(
        &self,
        _run: &RunRecord,
        _requested: Option<&(AppName, GraphName)>,
    ) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn dequeue(&self, _run: &RunId, _ended: Option<&RunRecord>) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn pending(&self, _query: &PendingQuery) -> Result<Vec<PendingRun>, StoreError> {
        Ok(Vec::new())
    }

    async fn runs(
        &self,
        _thread: &ThreadId,
        _skip: usize,
        _limit: usize,
    ) -> Result<ListPage<RunSummary>, StoreError> {
        Ok(ListPage::empty())
    }

    async fn newest_runs(
        &self,
        _thread: &ThreadId,
        _skip: usize,
        _limit: usize,
    ) -> Result<ListPage<RunRecord>, StoreError> {
        Ok(ListPage::empty())
    }

    async fn checkpoint(
        &self,
        _thread: &ThreadId,
        _namespace: &Namespace,
        _id: Option<CheckpointId>,
    ) -> Result<Option<CheckpointTuple>, StoreError> {
        Ok(None)
    }

    async fn checkpoint_outline(
        &self,
        _thread: &ThreadId,
        _namespace: &Namespace,
        _id: CheckpointId,
    ) -> Result<Option<CheckpointOutline>, StoreError> {
        Ok(None)
    }

    async fn checkpoints(
        &self,
        _thread: &ThreadId,
        _query: &CheckpointQuery,
    ) -> Result<ListPage<CheckpointTuple>, StoreError> {
        Ok(ListPage::empty())
    }

    async fn events(
        &self,
        _thread: &ThreadId,
        _after: u64,
        _limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        Ok(Vec::new())
    }

    async fn heartbeat(&self, _holder: &LeaseHolder) -> Result<(), StoreError> {
        Ok(())
    }

    async fn acquire_lease(
        &self,
        _thread: &ThreadId,
        _holder: &LeaseHolder,
    ) -> Result<LeaseEpoch, StoreError> {
        unreachable!("no task, no log")
    }

    async fn is_lease_held(
        &self,
        _thread: &ThreadId,
        _epoch: LeaseEpoch,
    ) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn release_lease(
        &self,
        _thread: &ThreadId,
        _epoch: LeaseEpoch,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    async fn delete_runs(&self, _runs: &[RunId]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn copy_thread(
        &self,
        _from: &ThreadId,
        _to: &ThreadId,
        _incarnation: &RunId,
        _run_id: &(dyn for<'r> Fn(&'r RunId) -> RunId + Send + Sync),
    ) -> Result<(), StoreError> {
        Ok(())
    }

    async fn prune(&self, _thread: &ThreadId, _keep: PruneStrategy) -> Result<(), StoreError> {
        Ok(())
    }

    async fn batches(
        &self,
        _thread: &ThreadId,
        _from: Option<u64>,
        _bytes: usize,
    ) -> Result<BatchPage, StoreError> {
        Ok(BatchPage::default())
    }

    async fn verify(&self, _thread: &ThreadId) -> Result<Option<SealReport>, StoreError> {
        Ok(None)
    }

    async fn compact(&self) -> Result<CompactionReport, StoreError> {
        Ok(CompactionReport::default())
    }

    async fn delete_thread(&self, _thread: &ThreadId) -> Result<(), StoreError> {
        Ok(())
    }

    async fn mentions(&self, _thread: &ThreadId, _blob: BlobRef) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn usage(&self, _of: &Owner) -> Result<OwnerUsage, StoreError> {
        Ok(OwnerUsage::default())
    }

    async fn total_usage(&self) -> Result<StoreUsage, StoreError> {
        Ok(StoreUsage::default())
    }

    async fn mentioned_blobs(
        &self,
        _of: &Owner,
        _: Option<&str>,
    ) -> Result<MentionPage, StoreError> {
        Ok(MentionPage::default())
    }

    async fn stored_bytes(&self, _thread: &ThreadId) -> Result<u64, StoreError> {
        Ok(0)
    }
}
