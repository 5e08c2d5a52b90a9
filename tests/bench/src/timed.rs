//! A store that measures the time that the engine spends in it, and the time of tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use tokio::sync::oneshot;
use wattle_graph::event::EventKind;
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, Ticket};

/// A counter of nanoseconds, shared between threads.
#[derive(Default)]
struct Nanoseconds(AtomicU64);

impl Nanoseconds {
    fn add(&self, since: Instant) {
        self.0.fetch_add(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    fn seconds(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 / 1e9
    }
}

/// A store that measures times.
pub(crate) type TimedStore = Layered<Timed>;

/// The layer of [`TimedStore`].
pub(crate) struct Timed {
    below: Arc<dyn Store>,
    times: Arc<Times>,
}

#[derive(Default)]
struct Times {
    append: Nanoseconds,
    wait: Nanoseconds,
    task: Nanoseconds,
}

impl Timed {
    pub(crate) fn reset(&self) {
        for time in [&self.times.append, &self.times.wait, &self.times.task] {
            time.0.store(0, Ordering::Relaxed);
        }
    }

    /// Returns the time in `append`, which queues batches.
    pub(crate) fn append_seconds(&self) -> f64 {
        self.times.append.seconds()
    }

    /// Returns the time from the first wait for a ticket until the batch is durable. Several
    /// batches can wait concurrently, so the sum may exceed the wall time.
    pub(crate) fn wait_seconds(&self) -> f64 {
        self.times.wait.seconds()
    }

    /// Returns the time in tasks: instance, guest, input and output.
    pub(crate) fn task_seconds(&self) -> f64 {
        self.times.task.seconds()
    }
}

#[async_trait]
impl Layer for Timed {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, times: Arc::default() }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        for event in batch.events.iter() {
            if let EventKind::TaskFinished(finished) = &event.kind {
                self.times.task.0.fetch_add(finished.duration_us * 1_000, Ordering::Relaxed);
            }
        }
        let started = Instant::now();
        let ticket = self.below.append(thread, batch).await;
        self.times.append.add(started);
        let (sender, receiver) = oneshot::channel();
        let (hurry, hurried) = oneshot::channel();
        let times = self.times.clone();
        tokio::spawn(async move {
            // A ticket that is dropped without a wait does not count.
            let Ok(since) = hurried.await else { return };
            let answer = ticket.await;
            times.wait.add(since);
            let _ = sender.send(answer);
        });
        Ticket::waiting(receiver, move || {
            let _ = hurry.send(Instant::now());
        })
    }
}
