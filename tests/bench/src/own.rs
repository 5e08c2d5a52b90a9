//! One case on Wattle, in a separate process, so that its peak memory can be measured.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use tokio::runtime::{Builder, Handle};
use wattle_graph::id::ThreadId;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::RunService as _;
use wattle_run::limit::PAGE_EVENTS;
use wattle_run::ports::store::{CheckpointQuery, Durability};
use wattle_run::ports::{Plugin, Store};

use crate::graphs::Case;
use crate::order::{Answer, Order, Reads};
use crate::usage::Usage;
use crate::{host, print_line, stores};

/// Measures a case and prints the result as a line of JSON.
pub(crate) fn answer(code: &str, case: &str, store: &str, order: &str) -> Result<()> {
    let order: Order = serde_json::from_str(order).context("cannot read the order")?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let plugin = runtime.block_on(host::plugin(code))?;
    let handle = runtime.handle().clone();
    let bench = Arc::new(runtime.block_on(Bench::new(handle, plugin, case, store, order))?);
    let reads = case == "history";
    // The measurement is spawned, because the thread of `block_on` wakes more slowly than a worker
    // thread.
    let measured =
        runtime
            .block_on(runtime.spawn(async move {
                if reads { bench.reads().await } else { bench.runs().await }
            }));
    print_line(&serde_json::to_string(&measured??)?);
    Ok(())
}

/// One case on one store.
struct Bench {
    engine: Engine,
    store: Arc<dyn Store>,
    store_name: String,
    durability: Durability,
    case: Case,
    order: Order,
}

impl Bench {
    async fn new(
        runtime: Handle,
        plugin: Arc<dyn Plugin>,
        case: &str,
        store_name: &str,
        order: Order,
    ) -> Result<Self> {
        let store = stores::open(store_name, &order.place).await?;
        let case = Case::new(case, &order)?;
        let engine = host::engine(runtime, store.clone(), plugin, &case.toml)?;
        let durability = stores::durability(store_name);
        Ok(Self { engine, store, store_name: store_name.to_owned(), durability, case, order })
    }

    /// Measures bursts of runs. Threads are deleted between bursts, outside of the measured time.
    async fn runs(self: Arc<Self>) -> Result<Answer> {
        if self.order.seconds > 0.0 {
            self.forget(vec![self.run().await?]).await?;
        }
        let (mut steps, mut seconds) = (0, 0.0);
        loop {
            let started = Instant::now();
            let threads = self.burst().await?;
            seconds += started.elapsed().as_secs_f64();
            steps += self.case.steps * threads.len();
            if seconds >= self.order.seconds {
                break;
            }
            self.forget(threads).await?;
        }
        self.measured(steps, seconds, None).await
    }

    /// Executes one burst: concurrent lanes, each of which executes its runs one after the other.
    async fn burst(self: &Arc<Self>) -> Result<Vec<ThreadId>> {
        let lanes: Vec<_> =
            (0..self.order.lanes).map(|_| tokio::spawn(self.clone().lane())).collect();
        let mut threads = Vec::new();
        for lane in lanes {
            threads.extend(lane.await??);
        }
        Ok(threads)
    }

    async fn lane(self: Arc<Self>) -> Result<Vec<ThreadId>> {
        let mut threads = Vec::new();
        for _ in 0..self.order.runs {
            threads.push(self.run().await?);
        }
        Ok(threads)
    }

    async fn run(&self) -> Result<ThreadId> {
        let (run, state) = host::run(&self.engine, &self.case.input, self.durability).await?;
        ensure!(self.case.holds(&state), "the run has a wrong state: {state}");
        Ok(run.thread)
    }

    async fn forget(&self, threads: Vec<ThreadId>) -> Result<()> {
        for thread in threads {
            self.engine.delete_thread(&thread).await?;
        }
        Ok(())
    }

    /// Measures reads of one long thread: the newest checkpoints, all of them, the latest state and
    /// the first page of events.
    async fn reads(self: Arc<Self>) -> Result<Answer> {
        let started = Instant::now();
        let thread = self.run().await?;
        let seconds = started.elapsed().as_secs_f64();
        let order = &self.order;
        let page_ms = self.history_ms(&thread, Some(order.page), order.page_reads).await?;
        let all_ms = self.history_ms(&thread, None, order.all_reads).await?;
        let latest_ms = self.latest_ms(&thread).await?;
        let events_ms = Some(self.events_ms(&thread).await?);
        let reads = Some(Reads { page_ms, all_ms, latest_ms, events_ms });
        self.measured(self.case.steps, seconds, reads).await
    }

    async fn history_ms(
        &self,
        thread: &ThreadId,
        limit: Option<usize>,
        times: usize,
    ) -> Result<f64> {
        let query = CheckpointQuery { limit, ..CheckpointQuery::default() };
        let mut taken = Vec::new();
        for _ in 0..times {
            let started = Instant::now();
            let length = self.store.checkpoints(thread, &query).await?.items.len();
            taken.push(milliseconds(started));
            ensure!(length >= limit.unwrap_or(self.order.turns), "only {length} checkpoints");
        }
        Ok(crate::median(&mut taken))
    }

    async fn latest_ms(&self, thread: &ThreadId) -> Result<f64> {
        let mut taken = Vec::new();
        for _ in 0..self.order.latest_reads {
            let started = Instant::now();
            let view = self.engine.thread(thread).await?.context("the thread does not exist")?;
            taken.push(milliseconds(started));
            ensure!(self.case.holds(&view.state), "not the latest state: {}", view.state);
        }
        Ok(crate::median(&mut taken))
    }

    async fn events_ms(&self, thread: &ThreadId) -> Result<f64> {
        let mut taken = Vec::new();
        for _ in 0..self.order.page_reads {
            let started = Instant::now();
            let length = self.engine.events(thread, 0, PAGE_EVENTS).await?.len();
            taken.push(milliseconds(started));
            // Each step has several events.
            ensure!(length >= self.order.turns.min(PAGE_EVENTS), "only {length} events");
        }
        Ok(crate::median(&mut taken))
    }

    async fn measured(&self, steps: usize, seconds: f64, reads: Option<Reads>) -> Result<Answer> {
        let peak_rss_bytes = Usage::of("self")?.peak_rss_bytes;
        let stored_bytes = if self.order.seconds > 0.0 {
            None
        } else {
            stores::stored_bytes(&self.store_name, &*self.store).await?
        };
        Ok(Answer { steps, seconds, peak_rss_bytes, stored_bytes, reads, version: None })
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::runtime::Handle;

    use super::Bench;
    use crate::host;
    use crate::order::Order;

    /// Runs a case with small sizes, to check that it works.
    async fn check(case: &str, store: &str) {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_string_lossy().into_owned();
        let small = Order { turns: 25, items: 5, sends: 5, lanes: 2, ..Order::new(place, 0.0) };
        let plugin = host::plugin("native").await.unwrap();
        let bench = Bench::new(Handle::current(), plugin, case, store, small).await;
        let bench = Arc::new(bench.unwrap());
        let reads = case == "history";
        let answer = if reads { bench.reads().await } else { bench.runs().await }.unwrap();
        assert!(answer.steps > 0 && answer.seconds > 0.0, "{answer:?}");
        assert_eq!(answer.reads.is_some(), reads);
        assert_eq!(answer.stored_bytes.is_some(), store.starts_with("redb"));
    }

    #[tokio::test]
    async fn every_case_works_on_every_store() {
        for case in ["line", "fan-out", "loop", "history", "append"] {
            for store in ["memory", "redb", "redb-sync"] {
                check(case, store).await;
            }
        }
    }
}
