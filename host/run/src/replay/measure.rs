//! Executes a recorded run again and measures where its time goes.
//!
//! The engine executes the run as it does every other run, on an empty store. Only the results of
//! host calls come from the record. The wall time and the time in plugins are measured during the
//! execution. JSON and the store are measured by doing their work once more: each input is written
//! and each output parsed beside the call of its node, and all batches are appended to a second
//! store afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_graph::checkpoint::{Checkpoint, ListDelta};
use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_graph::id::{ChannelName, ThreadId};
use wattle_graph::lineage::Lineage;

use super::context::graph_context;
use super::measured_plugin::{MeasuredPlugin, StepMeter, StepTimes};
use super::recorded_run::{RecordedRun, RecordedRunError};
use super::refusing_ports::in_time_zone;
use super::values::StoredValues;
use crate::app::{App, AppGrants, PluginGrants};
use crate::driver::{DriveOutcome, Driver, RootSuperstep};
use crate::grant::Grants;
use crate::hostcall::runs::RunOutcome;
use crate::log::ThreadLog;
use crate::memory_budget::DEFAULT_BUDGET;
use crate::ports::store::{Batch, LeaseHolder, StoreError, StoredBatch, StoredValue, ThreadHead};
use crate::ports::{Plugin, Ports, Store};
use crate::run_memory::MemoryCharge;
use crate::state_cache::StateCache;
use crate::task::GraphContext;
use crate::unpersisted_events::UnpersistedEvents;

/// Name under which the lease of the thread is held.
const HOLDER: &str = "measurement";

/// Maximum size of the cached states in bytes: that of a host with the default budget, whose costs
/// the measurement shows. The cache has the newest states of one thread.
const STATES_BYTES: u64 = DEFAULT_BUDGET.caches.states_bytes;

/// The cost of one execution of a run, from its first superstep to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCost {
    /// Number of steps: executions of nodes by plugins.
    pub steps: u32,
    /// Wall time.
    pub total: Duration,
    /// Time in guests: their instances, their code, and the host calls that they make.
    pub guest: Duration,
    /// Time of the host to write the inputs of nodes as JSON, and to parse their outputs.
    pub json: Duration,
    /// Time of the store to seal and append the batches of the run, and to encode them without
    /// their events, which the log encodes.
    pub store: Duration,
    /// Bytes of JSON that the run added to the store.
    pub bytes: u64,
}

impl RunCost {
    /// Returns the wall time without the other parts.
    pub fn engine(&self) -> Duration {
        self.total.saturating_sub(self.guest + self.json + self.store)
    }
}

impl RecordedRun {
    /// Executes the run. The store and the memory of `ports` and the store `second` must be empty,
    /// and all other ports should refuse calls, as those of
    /// [`replay_ports`](crate::replay::replay_ports) do.
    ///
    /// # Errors
    ///
    /// [`RecordedRunError::Different`] if the run does not end as it was recorded, and
    /// [`RecordedRunError::Failed`] if a store fails.
    pub async fn execute(
        &self,
        ports: Ports,
        second: &dyn Store,
    ) -> Result<RunCost, RecordedRunError> {
        let store = ports.store.clone();
        let ports = in_time_zone(ports, self.time_zone.as_deref());
        let log = Arc::new(self.begin(&ports).await?);
        let bytes = store.stored_bytes(self.thread()).await?;
        let meter = Arc::new(StepMeter::new(
            log.clone(),
            self.call_events.clone(),
            self.asked_by_tools.clone(),
        ));
        let driver = self.driver(log, ports, &meter);
        let started = Instant::now();
        let ended = Box::pin(driver.drive()).await;
        let wall = started.elapsed();
        self.check_end(ended)?;
        let StepTimes { steps, plugin, json, overhead } = meter.times();
        let bytes = store.stored_bytes(self.thread()).await?.saturating_sub(bytes);
        Ok(RunCost {
            steps,
            total: wall.saturating_sub(overhead),
            guest: plugin.saturating_sub(json),
            json,
            store: self.append_again(&*store, second).await?,
            bytes,
        })
    }

    /// Writes the start of the run, and returns the log for everything that follows.
    async fn begin(&self, ports: &Ports) -> Result<ThreadLog, StoreError> {
        let (store, thread) = (&ports.store, self.thread());
        let checkpoint = Some(self.start.clone());
        store.append(thread, Batch { checkpoint, ..self.batch_of_run() }).await.await?;
        let holder = LeaseHolder(HOLDER.to_owned());
        store.heartbeat(&holder).await?;
        let epoch = store.acquire_lease(thread, &holder).await?;
        let id = Some(self.start.meta.id);
        let head =
            ThreadHead { last_checkpoint: id, current: id, ..ThreadHead::new(self.record.clone()) };
        let states = StateCache::with_capacity(store.clone(), STATES_BYTES);
        let clock = ports.clock.clone();
        let log = ThreadLog::new(states, clock, &head, epoch, self.run.id.clone());
        // The engine counts the bytes of every log, because each log has a limit.
        Ok(log.with_durability(self.run.options.durability).with_size_limit(u64::MAX, 0, None))
    }

    /// Returns a batch with the records of the thread and of the run.
    fn batch_of_run(&self) -> Batch {
        Batch { record: Some(self.record.clone()), run: Some(self.run.clone()), ..Batch::default() }
    }

    fn driver(&self, log: Arc<ThreadLog>, ports: Ports, meter: &Arc<StepMeter>) -> Driver {
        let (app, record) = (Arc::new(self.measured_app(meter)), self.record.clone());
        let (graph_version, run_context) = (self.graph_version.clone(), record.context.clone());
        let ports = Arc::new(ports);
        let context =
            graph_context(app, graph_version, log, record, run_context, ports, &self.start);
        let context = GraphContext {
            options: Arc::new(self.run.options.clone()),
            schemas: self.schemas.clone(),
            root_superstep: Arc::new(RootSuperstep::with_recorded_calls(self.calls.clone())),
            ..context
        };
        let lineage = Lineage::new(self.start.clone());
        let (record, run) = (self.record.clone(), self.run.clone());
        let (unpersisted, memory) = (UnpersistedEvents::default(), MemoryCharge::default());
        Driver::new(context, record, run, lineage, unpersisted, memory)
    }

    /// Returns the app with measured plugins, which get no environment variables and no folders.
    fn measured_app(&self, meter: &Arc<StepMeter>) -> App {
        let measured = |plugin: &Arc<dyn Plugin>| -> Arc<dyn Plugin> {
            Arc::new(MeasuredPlugin::new(plugin.clone(), meter.clone()))
        };
        let plugins = self.app.plugins.iter();
        let grants = self.app.grants.all();
        let grants: PluginGrants =
            grants.iter().map(|(name, grants)| (name.clone(), without_machine(grants))).collect();
        App {
            digest: self.app.digest,
            graphs: self.app.graphs.clone(),
            plugins: plugins.map(|(name, plugin)| (name.clone(), measured(plugin))).collect(),
            grants: AppGrants::from(grants),
            settings: self.app.settings.clone(),
            ..App::empty(self.app.name.clone())
        }
    }

    /// Checks that the run ended as it was recorded.
    fn check_end(&self, driven: DriveOutcome) -> Result<(), RecordedRunError> {
        let end = match driven {
            DriveOutcome::Ended { end, .. } => end,
            DriveOutcome::LogLost(failure) => return Err(failure.into()),
            DriveOutcome::HandOver => return Err(Failure::internal("the run has not ended").into()),
        };
        let (status, difference) = match &end.outcome {
            RunOutcome::Completed => (RunStatus::Completed, "it completes".to_owned()),
            RunOutcome::Interrupted { .. } => {
                (RunStatus::Interrupted, "it is interrupted".to_owned())
            }
            RunOutcome::Cancelled => (RunStatus::Cancelled, "it is cancelled".to_owned()),
            RunOutcome::Failed { failure } => {
                (RunStatus::Failed, format!("it fails: {}", failure.message))
            }
        };
        let difference = if status != self.status {
            difference
        } else if end.checkpoint.state() != self.state {
            "its state differs".to_owned()
        } else {
            return Ok(());
        };
        Err(RecordedRunError::Different { run: self.run.id.clone(), difference })
    }

    /// Appends what the run wrote to another store, and returns the time of its batches. The first
    /// batch is the start of the run, which [`RecordedRun::begin`] has written.
    async fn append_again(
        &self,
        store: &dyn Store,
        second: &dyn Store,
    ) -> Result<Duration, RecordedRunError> {
        let written = batches(store, self.thread()).await?;
        let last = written.len().saturating_sub(1);
        let mut values = StoredValues::default();
        let mut took = Duration::ZERO;
        for (index, stored) in written.into_iter().enumerate() {
            values.add_batch(&stored)?;
            // A run writes its record at its start and at its end.
            let has_records = index == 0 || index == last;
            let records = if has_records { self.batch_of_run() } else { Batch::default() };
            let batch = with_stored(records, stored, &values);
            let started = Instant::now();
            second.append(self.thread(), batch).await.await?;
            if index > 0 {
                took += started.elapsed();
            }
        }
        Ok(took)
    }
}

/// Returns grants without environment variables and folders.
fn without_machine(grants: &Grants) -> Arc<Grants> {
    let (environment, folders) = (BTreeMap::new(), Vec::new());
    Arc::new(Grants { environment, folders, ..grants.clone() })
}

/// Reads all batches of a thread.
async fn batches(store: &dyn Store, thread: &ThreadId) -> Result<Vec<StoredBatch>, StoreError> {
    let (mut all, mut from) = (Vec::new(), None);
    loop {
        let page = store.batches(thread, from, usize::MAX).await?;
        all.extend(page.batches);
        from = page.next;
        if from.is_none() {
            return Ok(all);
        }
    }
}

/// Adds events and checkpoint of a stored batch to a batch.
fn with_stored(batch: Batch, stored: StoredBatch, values: &StoredValues) -> Batch {
    let StoredBatch { base, events, checkpoint, values: written, .. } = stored;
    let list_delta = |(channel, value): (ChannelName, StoredValue)| match value {
        StoredValue::Whole(_) => None,
        StoredValue::ListDelta { base, keep: prefix_len, .. } => {
            Some((channel, ListDelta { base, prefix_len }))
        }
    };
    let list_deltas: BTreeMap<ChannelName, ListDelta> =
        written.into_iter().filter_map(list_delta).collect();
    let checkpoint = checkpoint.map(|meta| {
        let values = values.values_of(&meta);
        Checkpoint { list_deltas, ..Checkpoint::new(meta, values) }
    });
    Batch { base, events: events.into(), checkpoint, ..batch }
}
