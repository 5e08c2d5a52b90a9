//! `kill -9` at every write: a process of its own dies before a batch is handed over, right after,
//! and once it is durable; the next one goes on, and each effect is there exactly once.

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

/// Processes at once: more do not make two cores faster.
const AT_ONCE: usize = 4;

/// On PostgreSQL a process takes longer to start, so it dies at every third write only.
const POSTGRES_STRIDE: usize = 3;

/// Calls that may be under way when the process dies: those of all tasks of a superstep.
const UNDER_WAY: usize = SENDS + 2;

/// Writes that a journey may have fewer than another: what happens at once goes into one batch.
const VARYING: usize = 3;

/// Where model calls arrive.
const MODEL: &str = "/echo/model";

/// One thread with its services, over the lives of several processes.
struct Journey {
    store: String,
    thread: String,
    services: Handle,
}

/// What came of a journey.
#[derive(Debug)]
struct End {
    state: Value,
    writes: u64,
    effects: Effects,
}

/// What arrived at the services.
#[derive(Debug)]
struct Effects {
    /// How many keys each path was paid under.
    paid: BTreeMap<String, usize>,
    /// Payments that arrived again under their key.
    repeated: usize,
    /// Calls of the model.
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

    /// Lives once, until the end or until death.
    async fn live(&self, death: Option<(Moment, usize)>) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattle-crash"));
        command.args([&self.store, &self.thread, &self.services.base_url]);
        if let Some((moment, number)) = death {
            command.args([moment.name(), &number.to_string()]);
        }
        command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap()
    }

    /// Lives until the end of the journey, from wherever it is.
    async fn finish(&self, case: &str) -> End {
        let ended = self.live(None).await;
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{case}: {}\n{errors}", ended.status);
        let answer: Value = serde_json::from_slice(&ended.stdout).unwrap();
        let effects = Effects::of(&self.services.requests());
        let writes = answer["writes"].as_u64().unwrap();
        End { state: answer["state"].clone(), writes, effects }
    }

    /// Lives until a write of this life kills it: `false` if the journey ended before.
    async fn dies(&self, moment: Moment, number: usize) -> bool {
        let life = self.live(Some((moment, number))).await;
        if life.status.success() {
            return false;
        }
        let errors = String::from_utf8_lossy(&life.stderr);
        let signal = life.status.signal();
        let case = format!("died {} write {number}", moment.name());
        assert_eq!(signal, Some(Signal::SIGKILL as i32), "{case}, and not so: {errors}");
        true
    }

    /// Dies at a write and goes on; `None` if the journey ended before.
    async fn die_and_finish(&self, moment: Moment, number: usize) -> Option<End> {
        let case = format!("died {} write {number}", moment.name());
        if self.dies(moment, number).await { Some(self.finish(&case).await) } else { None }
    }
}

/// Holds a journey that was cut against one that was not.
fn check(whole: &End, cut: &End, case: &str) {
    assert_eq!(cut.state, whole.state, "{case}: another end");
    assert_eq!(cut.effects.paid, whole.effects.paid, "{case}: each effect is there once");
    assert!(cut.effects.repeated <= UNDER_WAY, "{case}: {:?}", cut.effects);
    assert!(cut.effects.thoughts <= 2, "{case}: {:?}", cut.effects);
}

/// What a whole journey does.
fn check_whole(whole: &End) {
    assert_eq!((whole.effects.repeated, whole.effects.thoughts), (0, 1), "{whole:?}");
    assert_eq!(whole.effects.paid.values().sum::<usize>(), SENDS + 9, "{whole:?}");
    assert_eq!(whole.state["answer"], "yes");
}

/// All deaths at every `stride`-th write.
fn deaths(whole: &End, stride: usize) -> Vec<(Moment, usize)> {
    let last = usize::try_from(whole.writes).unwrap();
    let numbers = (1..=last).step_by(stride);
    numbers.flat_map(|number| Moment::ALL.map(|moment| (moment, number))).collect()
}

/// A whole journey makes 42 writes: 126 deaths, 253 processes, some 12 seconds on two cores.
#[tokio::test]
async fn killed_at_any_write_the_next_process_comes_to_the_same_end() {
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

/// Holds all journeys against the whole one; gives how many died on their way.
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

/// A process may die over and over, as long as each records an answer that the one before did not.
#[tokio::test]
async fn killed_over_and_over_it_comes_to_the_same_end() {
    // A life writes that the run goes on, announces each call that was under way once more, and
    // records one answer. On a busy machine each of these is a write of its own.
    const WRITES_OF_A_LIFE: usize = 1 + UNDER_WAY + 1;
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let whole = Journey::new(at("whole"), "journey").await.finish("not cut").await;
    let journey = Journey::new(at("often"), "journey").await;
    let mut lives = 1;
    while journey.dies(Moment::Durable, WRITES_OF_A_LIFE).await {
        lives += 1;
        assert!(lives < usize::try_from(whole.writes).unwrap(), "it does not get on");
    }
    let end = journey.finish("died often").await;
    assert_eq!((&end.state, &end.effects.paid), (&whole.state, &whole.effects.paid));
    assert!(lives > 3, "{lives}");
}

/// 42 deaths, 85 processes and one server, some 20 seconds.
#[tokio::test]
async fn killed_at_any_third_write_on_postgres_it_comes_to_the_same_end() {
    let (_postgres, url) = need!(crate::asset::postgres::database());
    let whole = Journey::new(url.clone(), "whole").await.finish("not cut").await;
    check_whole(&whole);
    let all = deaths(&whole, POSTGRES_STRIDE);
    // All hosts hold under one name, and each start takes over what it finds: no two at once.
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
