//! Two hosts on one PostgreSQL server, of which one loses its connection: bytes are held back,
//! connections are half open, or the process is stopped. Even if it continues late, it makes no
//! payment for a thread that another host has taken over.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tokio::process::Command;
use wattle_graph::event::{Event, EventKind, RunStatus};
use wattle_graph::id::ThreadId;
use wattle_kit::link::{Held, Link};
use wattle_kit::need;
use wattle_kit::needs::{self, LeftOut};
use wattle_kit::postgres::Postgres;
use wattle_kit::process::Program;
use wattle_kit::standin::{Config, Handle, Server};
use wattle_run::ports::Store as _;
use wattle_store::{PostgresConfig, PostgresStore};
use wattle_suite::mortal::rival::{LEASE, PAYMENTS};

use super::random::Dice;

/// Number of runs of all tests together, unless [`RUNS`] is set: one wave per test.
const FEW: usize = TESTS * (CUT_OFF + UNHARMED);

/// Tests that share the waves.
const TESTS: usize = 3;

/// The environment variable with the number of runs.
const RUNS: &str = "WATTLE_RIVAL_RUNS";

/// Runs of one wave on the host that loses its connection, and on the other one.
const CUT_OFF: usize = 3;
const UNHARMED: usize = 1;

/// Interval between two polls.
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum duration of any wait. It includes the timeout of a half-open connection.
const IN_TIME: Duration = Duration::from_mins(2);

/// How the host loses its connection.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Bytes from or to the database are held back.
    Held(Held),
    /// Its connections have no other end.
    HalfOpen,
    /// The process is stopped.
    Stopped,
    /// The process is stopped while responses are on their way to it.
    StoppedAndHeld,
}

/// The faults in the order of the waves.
const FAULTS: [Fault; 6] = [
    Fault::Held(Held::Answers),
    Fault::Stopped,
    Fault::HalfOpen,
    Fault::Held(Held::Both),
    Fault::StoppedAndHeld,
    Fault::Held(Held::Requests),
];

/// The duration of the fault.
#[derive(Clone, Copy, Debug)]
enum Until {
    /// Until the other host has ended all runs of this one.
    Ended,
    /// Until the other host has taken over the first of these runs.
    TakenOver,
    /// About as long as a lease.
    Lease(Duration),
}

impl Until {
    fn of(dice: &mut Dice) -> Self {
        match dice.below(4) {
            0 => Self::Ended,
            1 | 2 => Self::TakenOver,
            _ => Self::Lease(LEASE / 2 + Duration::from_millis(dice.below(2_000))),
        }
    }
}

/// One payment that reached the services.
#[derive(Debug)]
struct Payment {
    host: String,
    is_keyed: bool,
    thread: String,
    number: u64,
    at_ms: i64,
}

/// The database, the services, and a store that observes the threads.
struct Trial {
    postgres: Postgres,
    url: String,
    services: Handle,
    store: PostgresStore,
}

/// The result of a wave.
#[derive(Default)]
struct Seen {
    payments: usize,
    takeovers: usize,
}

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(IN_TIME, work).await;
    ended.unwrap_or_else(|_| panic!("{what} takes too long"))
}

fn signal(program: &Program, signal: Signal) {
    let id = i32::try_from(program.id().unwrap()).unwrap();
    kill(Pid::from_raw(id), signal).unwrap();
}

impl Trial {
    /// Starts the database and the services. A test is left out without PostgreSQL.
    async fn start() -> Result<Self, LeftOut> {
        let (postgres, url) = crate::asset::postgres::database()?;
        let services = Server::start(Config::default()).await.unwrap();
        let store = PostgresStore::open(&PostgresConfig::new(&url)).await.unwrap();
        Ok(Self { postgres, url, services, store })
    }

    /// Starts a host that starts runs on these threads, and that reaches the database through a
    /// local port.
    fn host(&self, name: &str, port: u16, threads: &[ThreadId]) -> Program {
        let (own, other) = (format!(":{}/", self.postgres.port()), format!(":{port}/"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattle-rival"));
        command.args([&self.url.replace(&own, &other), name, &self.services.base_url]);
        command.args(threads.iter().map(ThreadId::as_str));
        Program::start(command).unwrap()
    }

    async fn wave(&self, number: usize, fault: Fault, until: Until) -> Seen {
        self.services.clear_requests();
        let thread = |place: usize| ThreadId::new(format!("t{number}-{place}")).unwrap();
        let all: Vec<_> = (0..).map(thread).take(CUT_OFF + UNHARMED).collect();
        let (cut_off, unharmed) = all.split_at(CUT_OFF);
        let link = Link::to(self.postgres.port()).await.unwrap();
        let mut a = self.host(&format!("a{number}"), link.port(), cut_off);
        let mut b = self.host(&format!("b{number}"), self.postgres.port(), unharmed);
        in_time("the beginning", self.have_all_begun(&all)).await;
        cut(&link, &a, fault);
        match until {
            Until::Ended => in_time("the end", self.have_all_ended(cut_off)).await,
            Until::TakenOver => in_time("a takeover", self.is_taken_over(cut_off)).await,
            Until::Lease(time) => tokio::time::sleep(time).await,
        }
        mend(&link, &a, fault);
        in_time("the end", self.have_all_ended(&all)).await;
        for host in [&mut a, &mut b] {
            host.close_stdin();
            let ended = host.ended().await.unwrap();
            assert!(ended.success(), "{ended}: {}", host.output());
        }
        let mut seen = Seen::default();
        let payments = self.payments();
        for thread in &all {
            let of_thread = payments.iter().filter(|it| it.thread == thread.as_str()).collect();
            self.check(thread, of_thread, &mut seen).await;
        }
        seen
    }

    /// Waits until each of these threads has made a payment.
    async fn have_all_begun(&self, threads: &[ThreadId]) {
        loop {
            let paid: BTreeSet<_> = self.payments().into_iter().map(|it| it.thread).collect();
            if paid.len() == threads.len() {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until one of these threads is taken over, or until all have ended on their first host:
    /// a host that detects half-open connections early loses no thread.
    async fn is_taken_over(&self, threads: &[ThreadId]) {
        let taken_over = async {
            loop {
                for thread in threads {
                    let events = self.store.events(thread, 0, usize::MAX).await.unwrap();
                    if starts(&events).len() > 1 {
                        return;
                    }
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            () = taken_over => {}
            () = self.have_all_ended(threads) => {}
        }
    }

    async fn have_all_ended(&self, threads: &[ThreadId]) {
        for thread in threads {
            while self.store.runs(thread, 0, 1).await.unwrap().items[0].status == RunStatus::Running
            {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    fn payments(&self) -> Vec<Payment> {
        let entries = self.services.requests();
        let read = entries.iter().map(|entry| {
            let parts: Vec<&str> = entry.path.split('/').skip(2).collect();
            let [host, kind, thread, number] = parts[..] else { panic!("{entry:?}") };
            Payment {
                host: host.to_owned(),
                is_keyed: kind == "keyed",
                thread: thread.to_owned(),
                number: number.parse().unwrap(),
                at_ms: i64::try_from(entry.at_ms).unwrap(),
            }
        });
        read.collect()
    }

    async fn check(&self, thread: &ThreadId, payments: Vec<&Payment>, seen: &mut Seen) {
        let events = self.store.events(thread, 0, usize::MAX).await.unwrap();
        let shown = || {
            let kinds =
                events.iter().map(|event| format!("{} {}", event.at_ms, json!(event.kind)["type"]));
            format!("{thread}: {payments:#?}\n{:#?}", kinds.collect::<Vec<_>>())
        };
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        for payment in &payments {
            assert_eq!(payment.is_keyed, is_keyed(payment.number), "{payment:?}");
            *counts.entry(payment.number).or_default() += 1;
        }
        for number in 0..PAYMENTS {
            let count = counts.get(&number).copied().unwrap_or_default();
            let is_keyed = is_keyed(number);
            assert!(is_keyed || count <= 1, "payment {number} was made twice; {}", shown());
            assert!(!is_keyed || count >= 1, "payment {number} was not made; {}", shown());
        }
        let ends: Vec<i64> = ends(&events);
        assert_eq!(ends.len(), 1, "{}", shown());
        let late = payments.iter().find(|payment| payment.at_ms > ends[0]);
        assert!(late.is_none(), "{late:?} arrived after the end of its run; {}", shown());
        let starts = starts(&events);
        for (place, from) in starts.iter().enumerate() {
            let to = starts.get(place + 1).copied().unwrap_or(i64::MAX);
            let within = payments.iter().filter(|it| it.at_ms >= *from && it.at_ms < to);
            let hosts: BTreeSet<&str> = within.map(|it| it.host.as_str()).collect();
            assert!(hosts.len() <= 1, "{hosts:?} both had the thread; {}", shown());
        }
        let runs = self.store.runs(thread, 0, 1).await.unwrap().items;
        assert_eq!(runs[0].status, RunStatus::Completed, "{:?}; {}", runs[0].failure, shown());
        self.store.verify(thread).await.unwrap();
        seen.payments += payments.len();
        seen.takeovers += starts.len() - 1;
    }
}

fn cut(link: &Link, host: &Program, fault: Fault) {
    match fault {
        Fault::Held(held) => link.hold(held),
        Fault::HalfOpen => link.half_open(),
        Fault::Stopped => signal(host, Signal::SIGSTOP),
        Fault::StoppedAndHeld => {
            link.hold(Held::Answers);
            signal(host, Signal::SIGSTOP);
        }
    }
}

fn mend(link: &Link, host: &Program, fault: Fault) {
    match fault {
        Fault::Held(_) => link.release(),
        Fault::HalfOpen => link.close(),
        Fault::Stopped => signal(host, Signal::SIGCONT),
        Fault::StoppedAndHeld => {
            signal(host, Signal::SIGCONT);
            link.release();
        }
    }
}

/// Returns whether a payment has an idempotency key. Every second payment has one.
fn is_keyed(number: u64) -> bool {
    number % 2 == 1
}

/// Returns the times at which runs of a thread started or were taken over.
fn starts(events: &[Event]) -> Vec<i64> {
    let starts = events.iter().filter(|event| matches!(event.kind, EventKind::RunStarted(_)));
    starts.map(|event| event.at_ms).collect()
}

fn ends(events: &[Event]) -> Vec<i64> {
    let ends = events.iter().filter(|event| matches!(event.kind, EventKind::RunEnded(_)));
    ends.map(|event| event.at_ms).collect()
}

#[expect(clippy::print_stdout, reason = "a long trial shows its progress")]
fn tell(line: &str) {
    println!("{line}");
}

/// Executes every third wave of a trial, starting at `first`. Each test has other waves, so that
/// they run in parallel. A wave mostly waits.
async fn waves(first: usize) -> Result<Seen, LeftOut> {
    let trial = Trial::start().await?;
    let (mut dice, mut all) = (Dice::new(15 + first as u64), Seen::default());
    let waves = needs::setting(RUNS).unwrap_or(FEW).div_ceil(CUT_OFF + UNHARMED);
    for number in (first..waves).step_by(TESTS) {
        let fault = FAULTS[number % FAULTS.len()];
        // The first wave has the fault that was found first, for the longest time.
        let until = if number == 0 { Until::Ended } else { Until::of(&mut dice) };
        let Seen { payments, takeovers } = trial.wave(number, fault, until).await;
        tell(&format!("{number}: {fault:?} {until:?}: {payments} payments, {takeovers} takeovers"));
        all.payments += payments;
        all.takeovers += takeovers;
    }
    Ok(all)
}

#[tokio::test]
async fn a_host_without_responses_makes_no_payment_after_a_takeover() {
    let seen = need!(waves(0).await);
    assert!(seen.takeovers >= CUT_OFF, "the trial shows little: {} takeovers", seen.takeovers);
}

#[tokio::test]
async fn a_stopped_host_makes_no_payment_after_a_takeover() {
    let seen = need!(waves(1).await);
    assert!(seen.payments >= PAYMENTS as usize, "{} payments", seen.payments);
}

#[tokio::test]
async fn a_host_with_half_open_connections_makes_no_payment_after_a_takeover() {
    let seen = need!(waves(2).await);
    assert!(seen.payments >= PAYMENTS as usize, "{} payments", seen.payments);
}
