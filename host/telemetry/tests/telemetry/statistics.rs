//! Tests of the statistics of runs, in a long-term memory that hosts share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ThreadId;
use wattle_kit::clock::ManualClock;
use wattle_kit::memory::{Call, Hook, Hooked};
use wattle_run::ports::memory::MemoryScope;
use wattle_run::ports::observer::RunSummary;
use wattle_run::ports::statistics::{
    ModelPrice, ModelPrices, StatisticsCounts, StatisticsGroup, StatisticsQuery, StatisticsStep,
};
use wattle_run::ports::{Memory, Observer as _, Statistics as _};
use wattle_store::VolatileMemory;
use wattle_telemetry::{RunStatistics, Telemetry, TelemetryConfig};

use crate::support::{NoModel, called, log, note, store};

/// Time of the host when the runs of these tests end, in milliseconds since 1970.
const NOW_MS: i64 = 5_000;

fn memory() -> Arc<dyn Memory> {
    Arc::new(VolatileMemory::new())
}

/// Returns the statistics of another host, or of the same host after a restart.
fn host(memory: &Arc<dyn Memory>) -> RunStatistics {
    host_at(memory, &ManualClock::at_ms(NOW_MS))
}

fn host_at(memory: &Arc<dyn Memory>, clock: &ManualClock) -> RunStatistics {
    let price = ModelPrice { input: 1e6, output: 2e6 };
    let prices = ModelPrices::from([("gpt-4o".to_owned(), price)]);
    RunStatistics::new(memory.clone(), Arc::new(clock.clone()), prices)
}

/// Records runs with the same log, writes the counts, and stops the statistics.
async fn record(statistics: &RunStatistics, log: &[Value], notes: Vec<RunSummary>) {
    let config = TelemetryConfig { otlp: None, content: false };
    let (store, model) = (store(log).await, Arc::new(NoModel));
    let telemetry = Telemetry::start(&config, store, model, Some(statistics.clone())).unwrap();
    for note in notes {
        telemetry.run_ended(note);
    }
    telemetry.close(Duration::from_secs(10)).await;
}

fn query(step: StatisticsStep) -> StatisticsQuery {
    StatisticsQuery { step, from_ms: Some(0), ..StatisticsQuery::default() }
}

/// Returns the counts of all runs.
async fn total(statistics: &RunStatistics, query: &StatisticsQuery) -> StatisticsCounts {
    let report = statistics.read(query).await.unwrap();
    report.series.into_iter().next().map(|series| series.total).unwrap_or_default()
}

/// Returns the number of completed runs in the minutes, the hours and the days.
async fn completed(statistics: &RunStatistics) -> [u64; 3] {
    let mut counts = [0; 3];
    for (count, step) in counts.iter_mut().zip(StatisticsStep::ALL) {
        *count = total(statistics, &query(step)).await.completed;
    }
    counts
}

#[tokio::test]
async fn run_is_counted_with_its_model_calls() {
    let (memory, log) = (memory(), log());
    let statistics = host(&memory);
    record(&statistics, &log, vec![note(log.len())]).await;
    let counts = total(&statistics, &query(StatisticsStep::Minute)).await;
    let expected = StatisticsCounts {
        completed: 1,
        durations: BTreeMap::from([(16, 1)]),
        model_calls: 2,
        input_tokens: 12,
        output_tokens: 3,
        cost: Some(18.0),
        ..StatisticsCounts::default()
    };
    assert_eq!(counts, expected);
    let group = Some(StatisticsGroup::Model);
    let by_model = StatisticsQuery { group, ..query(StatisticsStep::Day) };
    let report = statistics.read(&by_model).await.unwrap();
    let names: Vec<_> = report.series.iter().map(|series| series.name.as_deref()).collect();
    assert_eq!(names, [Some("gpt-4o")]);
}

#[tokio::test]
async fn failures_and_limits_are_counted_by_name() {
    let limit = |name: &str| {
        let details = serde_json::json!({ "limit": name });
        Failure::new(code::LIMIT, "it is reached").with_details(details)
    };
    let result = serde_json::json!({ "Err": limit("memory_total_bytes") });
    let log = vec![called("memory.put", 0, &[], serde_json::json!({}), result)];
    let failed = RunSummary {
        status: RunStatus::Failed,
        failure: Some(limit("step_tasks")),
        ..note(log.len())
    };
    let statistics = host(&memory());
    // The thread of this run was deleted before its log was read.
    let gone = RunSummary { thread: ThreadId::new("gone").unwrap(), ..failed.clone() };
    record(&statistics, &log, vec![failed, gone]).await;
    let counts = total(&statistics, &query(StatisticsStep::Hour)).await;
    assert_eq!((counts.failed, &counts.failures["limit"]), (2, &2));
    let limits = [("memory_total_bytes".to_owned(), 1), ("step_tasks".to_owned(), 1)];
    assert_eq!(counts.limits, BTreeMap::from(limits));
}

#[tokio::test]
async fn hosts_and_restarts_add_to_the_same_buckets() {
    let (memory, log) = (memory(), log());
    for _ in 0..5 {
        let (one, two) = (host(&memory), host(&memory));
        let notes = || vec![note(log.len()); 3];
        tokio::join!(record(&one, &log, notes()), record(&two, &log, notes()));
    }
    assert_eq!(completed(&host(&memory)).await, [30; 3]);
    for step in StatisticsStep::ALL {
        assert_eq!(documents(&memory, step).await.len(), 1, "{step:?}");
    }
}

/// Returns the documents of the buckets of a step.
async fn documents(memory: &Arc<dyn Memory>, step: StatisticsStep) -> Vec<Value> {
    let namespace = ["statistics".to_owned(), step.name().to_owned()];
    let items = memory.list(&MemoryScope::Host(None), &namespace, "", 100, NOW_MS).await.unwrap();
    items.into_iter().map(|item| item.value).collect()
}

/// A hook that fails the first writes, before or after the memory has executed them.
struct FailingWrites {
    before: AtomicUsize,
    after: AtomicUsize,
}

fn fail(call: Call<'_>, times: &AtomicUsize) -> Result<(), Failure> {
    let is_write = call.method == "compare_and_set";
    let next = |left: usize| left.checked_sub(1);
    if is_write && times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).is_ok() {
        return Err(Failure::new(code::UNAVAILABLE, "it is not reached").retryable());
    }
    Ok(())
}

#[async_trait]
impl Hook for FailingWrites {
    async fn before(&self, call: Call<'_>) -> Result<(), Failure> {
        fail(call, &self.before)
    }

    async fn after(&self, call: Call<'_>) -> Result<(), Failure> {
        fail(call, &self.after)
    }
}

#[tokio::test]
async fn failed_write_is_repeated_and_counted_once() {
    for (before, after) in [(1, 0), (0, 1), (2, 1)] {
        let name = format!("{before} before, {after} after");
        let [before, after] = [before, after].map(AtomicUsize::new);
        let hook = FailingWrites { before, after };
        let memory: Arc<dyn Memory> = Arc::new(Hooked::over(memory(), hook));
        let (statistics, log) = (host(&memory), log());
        record(&statistics, &log, vec![note(log.len())]).await;
        for _ in 0..3 {
            total(&statistics, &query(StatisticsStep::Day)).await;
        }
        record(&statistics, &log, vec![note(log.len())]).await;
        assert_eq!(completed(&statistics).await, [2; 3], "{name}");
    }
}

#[tokio::test]
async fn any_number_of_tenants_fits_into_a_bucket() {
    let (memory, log) = (memory(), log());
    let notes = (0..1_000).map(|number| {
        let tenant = Some(format!("tenant-with-a-long-name-{number}"));
        RunSummary { tenant, ..note(log.len()) }
    });
    let mut notes: Vec<_> = notes.collect();
    notes.extend(vec![note(log.len()); 3]);
    let statistics = host(&memory);
    record(&statistics, &log, notes).await;
    assert_eq!(completed(&statistics).await, [1_003; 3]);
    let documents = documents(&memory, StatisticsStep::Minute).await;
    assert_eq!(documents.len(), 1);
    assert!(documents[0].to_string().len() <= 64 << 10);

    let of = |tenant: &str| StatisticsQuery {
        tenant: Some(tenant.to_owned()),
        ..query(StatisticsStep::Minute)
    };
    let acme = statistics.read(&of("acme")).await.unwrap();
    assert_eq!((acme.series[0].total.completed, acme.is_complete), (3, false));
    let by_tenant =
        StatisticsQuery { group: Some(StatisticsGroup::Tenant), ..query(StatisticsStep::Minute) };
    let report = statistics.read(&by_tenant).await.unwrap();
    assert_eq!((report.series.len(), report.series[0].name.as_deref()), (21, Some("acme")));
    assert!(report.series[20].is_other);
}

#[tokio::test]
async fn minutes_expire_before_hours() {
    let (memory, log, clock) = (memory(), log(), ManualClock::at_ms(NOW_MS));
    let statistics = host_at(&memory, &clock);
    record(&statistics, &log, vec![note(log.len())]).await;
    clock.advance_ms(25 * 3_600_000);
    let minutes = StatisticsQuery { to_ms: Some(NOW_MS), ..query(StatisticsStep::Minute) };
    let hours = query(StatisticsStep::Hour);
    let found = (total(&statistics, &minutes).await, total(&statistics, &hours).await);
    assert_eq!((found.0.completed, found.1.completed), (0, 1));
    let too_long = statistics.read(&query(StatisticsStep::Minute)).await.unwrap_err();
    assert_eq!(too_long.code, code::INVALID);
}
