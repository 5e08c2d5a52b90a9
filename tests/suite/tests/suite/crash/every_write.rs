//! `kill -9` at every write: a process dies before a batch is queued, after it is queued, or after
//! it is durable. The next process continues, and each effect takes place exactly once.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Output, Stdio};

use futures::StreamExt as _;
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use wattle_kit::need;
use wattle_kit::standin::{Config, Entry, Fault, FaultRule, Handle, Pattern, Server};
use wattle_suite::mortal::journey::SENDS;
use wattle_suite::mortal::store::Moment;

/// Concurrent processes. More are not faster on two cores.
const AT_ONCE: usize = 4;

/// A process takes longer to start with PostgreSQL, so it dies at every fifth write only.
const POSTGRES_STRIDE: usize = 5;

/// Maximum number of calls in progress when the process dies: those of all tasks of a superstep.
const UNDER_WAY: usize = SENDS + 2;

/// Maximum difference of the writes of two journeys: concurrent changes can share a batch.
const VARYING: usize = 3;

/// The path of model calls.
const MODEL: &str = "/echo/model";

/// One thread with its services, continued by several processes.
struct Journey {
    store: String,
    thread: String,
    services: Handle,
}

/// The result of a journey.
#[derive(Debug)]
struct End {
    state: Value,
    writes: u64,
    effects: Effects,
}

/// The requests that reached the services.
#[derive(Debug)]
struct Effects {
    /// Number of idempotency keys by path.
    paid: BTreeMap<String, usize>,
    /// Number of payment requests with the idempotency key of an earlier request.
    repeated: usize,
    /// Number of model calls.
    thoughts: usize,
}

impl Effects {
    fn of(entries: &[Entry]) -> Self {
        let is_served = |entry: &&Entry| entry.fault.is_none();
        let (thoughts, payments): (Vec<&Entry>, Vec<&Entry>) =
            entries.iter().filter(is_served).partition(|entry| entry.path == MODEL);
        let keys: BTreeMap<&str, &str> = payments
            .iter()
            .map(|entry| (entry.headers["idempotency-key"].as_str(), entry.path.as_str()))
            .collect();
        let mut paid = BTreeMap::new();
        for path in keys.values() {
            *paid.entry((*path).to_owned()).or_default() += 1;
        }
        Self { paid, repeated: payments.len() - keys.len(), thoughts: thoughts.len() }
    }
}

impl Journey {
    async fn new(store: String, thread: &str) -> Self {
        let services = Server::start(Config::default()).await.unwrap();
        let away = Fault::Status { status: 503, retry_after: None, body: None };
        services.fault(FaultRule::new(Pattern::path("/echo/flaky"), away).times(1));
        Self { store, thread: thread.to_owned(), services }
    }

    /// Runs one process until the thread has ended or the process dies.
    async fn live(&self, death: Option<(Moment, usize)>) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattle-crash"));
        command.args([&self.store, &self.thread, &self.services.base_url]);
        if let Some((moment, number)) = death {
            command.args([moment.name(), &number.to_string()]);
        }
        command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap()
    }

    /// Runs a process until the thread has ended.
    async fn finish(&self, case: &str) -> End {
        let ended = self.live(None).await;
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{case}: {}\n{errors}", ended.status);
        let answer: Value = serde_json::from_slice(&ended.stdout).unwrap();
        let effects = Effects::of(&self.services.requests());
        let writes = answer["writes"].as_u64().unwrap();
        End { state: answer["state"].clone(), writes, effects }
    }

    /// Runs a process until it dies at a write. Returns `false` if the thread ended before.
    async fn dies(&self, moment: Moment, number: usize) -> bool {
        let life = self.live(Some((moment, number))).await;
        if life.status.success() {
            return false;
        }
        let errors = String::from_utf8_lossy(&life.stderr);
        let signal = life.status.signal();
        let case = format!("died {} write {number}", moment.name());
        assert_eq!(signal, Some(Signal::SIGKILL as i32), "{case}, but otherwise: {errors}");
        true
    }

    /// Runs a process that dies at a write and another that finishes. Returns `None` if the thread
    /// ended before.
    async fn die_and_finish(&self, moment: Moment, number: usize) -> Option<End> {
        let case = format!("died {} write {number}", moment.name());
        if self.dies(moment, number).await { Some(self.finish(&case).await) } else { None }
    }
}

/// Compares a journey with crashes with one without.
fn check(whole: &End, cut: &End, case: &str) {
    assert_eq!(cut.state, whole.state, "{case}: another state");
    assert_eq!(cut.effects.paid, whole.effects.paid, "{case}: another number of effects");
    assert!(cut.effects.repeated <= UNDER_WAY, "{case}: {:?}", cut.effects);
    assert!(cut.effects.thoughts <= 2, "{case}: {:?}", cut.effects);
}

/// Checks a journey without crashes.
fn check_whole(whole: &End) {
    assert_eq!((whole.effects.repeated, whole.effects.thoughts), (0, 1), "{whole:?}");
    assert_eq!(whole.effects.paid.values().sum::<usize>(), SENDS + 9, "{whole:?}");
    assert_eq!(whole.state["answer"], "yes");
}

/// Returns all moments of every `stride`-th write.
fn deaths(whole: &End, stride: usize) -> Vec<(Moment, usize)> {
    let last = usize::try_from(whole.writes).unwrap();
    let numbers = (1..=last).step_by(stride);
    numbers.flat_map(|number| Moment::ALL.map(|moment| (moment, number))).collect()
}

/// A journey makes 42 writes: 126 deaths, 253 processes, about 12 seconds on two cores.
#[tokio::test]
async fn a_kill_at_any_write_leads_to_the_same_state() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let whole = Journey::new(at("whole"), "journey").await.finish("not cut").await;
    check_whole(&whole);
    let all = deaths(&whole, 1);
    let cuts = futures::stream::iter(all.clone()).map(|(moment, number)| {
        let store = at(&format!("{}-{number}", moment.name()));
        async move {
            let journey = Journey::new(store, "journey").await;
            (moment, number, journey.die_and_finish(moment, number).await)
        }
    });
    let died = hold_all(&whole, cuts.buffer_unordered(AT_ONCE)).await;
    assert!(died + VARYING * Moment::ALL.len() >= all.len(), "{died} of {} died", all.len());
}

/// Compares all journeys with the one without crashes. Returns the number of processes that died.
async fn hold_all(
    whole: &End,
    cuts: impl futures::Stream<Item = (Moment, usize, Option<End>)>,
) -> usize {
    let mut cuts = std::pin::pin!(cuts);
    let mut died = 0;
    while let Some((moment, number, end)) = cuts.next().await {
        if let Some(end) = end {
            check(whole, &end, &format!("died {} write {number}", moment.name()));
            died += 1;
        }
    }
    died
}

/// Processes can die repeatedly, as long as each records a result that the one before did not.
#[tokio::test]
async fn repeated_kills_lead_to_the_same_state() {
    // A process writes that the run continues, announces each call in progress again, and records
    // one result. On a busy machine each of these is a separate write.
    const WRITES_OF_A_LIFE: usize = 1 + UNDER_WAY + 1;
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let whole = Journey::new(at("whole"), "journey").await.finish("not cut").await;
    let journey = Journey::new(at("often"), "journey").await;
    let mut lives = 1;
    while journey.dies(Moment::Durable, WRITES_OF_A_LIFE).await {
        lives += 1;
        assert!(lives < usize::try_from(whole.writes).unwrap(), "no progress");
    }
    let end = journey.finish("died often").await;
    assert_eq!((&end.state, &end.effects.paid), (&whole.state, &whole.effects.paid));
    assert!(lives > 3, "{lives}");
}

/// 27 deaths, 55 processes and one server, about 12 seconds.
#[tokio::test]
async fn a_kill_at_every_fifth_write_on_postgres_leads_to_the_same_state() {
    let (_postgres, url) = need!(crate::asset::postgres::database());
    let whole = Journey::new(url.clone(), "whole").await.finish("not cut").await;
    check_whole(&whole);
    let all = deaths(&whole, POSTGRES_STRIDE);
    // All hosts have the same holder, and each start recovers all runs that it finds, so no two run
    // at the same time.
    let mut died = 0;
    for (moment, number) in all.clone() {
        let thread = format!("{}-{number}", moment.name());
        let end = Journey::new(url.clone(), &thread).await.die_and_finish(moment, number).await;
        if let Some(end) = end {
            check(&whole, &end, &format!("{thread} on postgres"));
            died += 1;
        }
    }
    assert!(died + VARYING * Moment::ALL.len() >= all.len(), "{died} of {} died", all.len());
}
