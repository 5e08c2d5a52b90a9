//! The tail of an event log: the events that it returns, and its states when there are none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::join_all;
use serde_json::json;
use wattle_graph::event::{Custom, Event, EventKind};
use wattle_graph::failure::code;
use wattle_graph::id::{Namespace, NodeName, RunId, TaskId, ThreadId};
use wattle_kit::layer::{Layer, Layered};
use wattle_run::engine::threads::NewThread;
use wattle_run::hostcall::runs::{RunRef, RunService as _};
use wattle_run::limit::{PAGE_EVENT_BYTES, PAGE_EVENTS};
use wattle_run::memory_budget::DEFAULT_BUDGET;
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, StoreError, ThreadRecord, ThreadStatus};
use wattle_run::tail::range::EventRange;
use wattle_run::tail::{Tail, TailItem, TailQuery, Until};
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::world::World;

use super::enqueue_undue;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

/// Longer than any interval of the engine. The paused clock of the tests skips it.
const SILENCE: Duration = Duration::from_hours(1);

/// A store that counts and fails reads of events, and that can append an event directly after a
/// read of the thread.
struct Watched {
    below: Arc<dyn Store>,
    reads: AtomicUsize,
    /// The maximum number of events in a page.
    largest: AtomicUsize,
    is_damaged: AtomicBool,
    /// The sequence number of the event to append after the next read of the thread, or 0.
    late: AtomicUsize,
}

#[async_trait]
impl Layer for Watched {
    fn over(below: Arc<dyn Store>) -> Self {
        let (reads, largest, late) =
            (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        Self { below, reads, largest, is_damaged: AtomicBool::new(false), late }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn reading(&self, read: &'static str) -> Result<(), StoreError> {
        if read != "events" {
            return Ok(());
        }
        self.reads.fetch_add(1, Ordering::SeqCst);
        if self.is_damaged.load(Ordering::SeqCst) {
            let what = "event 3 of thread `t`".to_owned();
            return Err(StoreError::Corrupt { what, message: "its checksum differs".to_owned() });
        }
        Ok(())
    }

    fn seen(&self, read: &'static str, records: usize) {
        if read == "events" {
            self.largest.fetch_max(records, Ordering::SeqCst);
        }
        let late = self.late.swap(0, Ordering::SeqCst) as u64;
        if read == "thread" && late > 0 {
            let batch = Batch { events: vec![event(late, "a")].into(), ..Batch::default() };
            let ticket = self.below.append(&id("t"), batch).now_or_never();
            ticket.expect("a store in memory waits for nothing").now_or_never().unwrap().unwrap();
        }
    }
}

/// An engine on a store to which tests write, and one of its threads.
struct Log {
    world: World,
    store: Arc<Layered<Watched>>,
    record: ThreadRecord,
    last_seq: u64,
}

fn id(thread: &str) -> ThreadId {
    ThreadId::new(thread).unwrap()
}

fn run_id(run: &str) -> RunId {
    RunId::new(run).unwrap()
}

fn event(seq: u64, run: &str) -> Event {
    let kind = EventKind::Custom(Custom {
        task: TaskId::new("task").unwrap(),
        node: NodeName::new("work").unwrap(),
        name: "note".into(),
        data: json!(seq),
    });
    Event { seq, at_ms: 1, run: run_id(run), namespace: Namespace::root(), kind }
}

/// Returns an event with a text of `bytes` bytes.
fn large_event(seq: u64, bytes: u64) -> Event {
    let mut event = event(seq, "a");
    if let EventKind::Custom(custom) = &mut event.kind {
        custom.data = json!("x".repeat(bytes as usize));
    }
    event
}

impl Log {
    /// Creates a store without threads.
    fn empty() -> Self {
        let store = Arc::new(Layered::<Watched>::over(Arc::new(InMemoryStore::new())));
        let plugin =
            NativePlugin::new("p", "1").node("work", |_, _| async { Ok(json!({ "out": 1 })) });
        let world = World::with_store(ONE, plugin, store.clone());
        let record = ThreadRecord::unbound(id("t"), 1);
        Self { world, store, record, last_seq: 0 }
    }

    /// Creates a store with the thread `t`.
    async fn new() -> Self {
        let mut log = Self::empty();
        log.create("t", "first").await;
        log
    }

    async fn write(&self, batch: Batch) {
        self.store.append(&self.record.id, batch).await.await.unwrap();
    }

    async fn create(&mut self, thread: &str, born: &str) {
        self.record = ThreadRecord { incarnation: Some(run_id(born)), ..self.record.clone() };
        (self.record.id, self.last_seq) = (id(thread), 0);
        self.set(ThreadStatus::Idle, None).await;
    }

    /// Sets status and run of the thread.
    async fn set(&mut self, status: ThreadStatus, run: Option<&str>) {
        (self.record.status, self.record.run) = (status, run.map(run_id));
        self.write(Batch { record: Some(self.record.clone()), ..Batch::default() }).await;
    }

    /// Appends one event of each run in one batch.
    async fn append(&mut self, runs: &[&str]) {
        let events = (self.last_seq + 1..).zip(runs).map(|(seq, run)| event(seq, run)).collect();
        self.last_seq += runs.len() as u64;
        self.write(Batch { events, ..Batch::default() }).await;
    }

    async fn delete(&self) {
        self.store.delete_thread(&self.record.id).await.unwrap();
    }

    fn tail(&self, run: Option<&str>, until: Until) -> Tail {
        let (thread, run) = (self.record.id.clone(), run.map(run_id));
        self.world.engine.tail(TailQuery { thread, run, after: 0, until })
    }

    fn reads(&self) -> usize {
        self.store.reads.load(Ordering::SeqCst)
    }
}

/// Reads a tail until it has no event. Returns the sequence numbers and the final state.
async fn read(tail: &mut Tail) -> (Vec<u64>, TailItem) {
    let mut seqs = Vec::new();
    loop {
        match tail.next().await.unwrap() {
            TailItem::Event(event) => seqs.push(event.seq),
            end => return (seqs, end),
        }
    }
}

/// An operation on a log or its tail.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    AppendOne,
    AppendThree,
    Read,
    Wait,
}

const STEPS: [Step; 4] = [Step::AppendOne, Step::AppendThree, Step::Read, Step::Wait];

/// Steps of one script, enough for an event before, between and after a read and a wait, twice.
const LENGTH: u32 = 6;

#[tokio::test(start_paused = true)]
async fn each_event_is_returned_once_for_every_interleaving() {
    let mut log = Log::empty();
    for number in 0..STEPS.len().pow(LENGTH) {
        let script: Vec<Step> =
            (0..LENGTH).map(|place| STEPS[number / STEPS.len().pow(place) % STEPS.len()]).collect();
        log.create(&format!("t-{number}"), "first").await;
        let run = (number % 2 == 1).then_some("a");
        let mut tail = log.tail(run, Until::Deleted);
        let (mut seen, mut known) = (Vec::new(), None);
        for step in &script {
            match step {
                Step::AppendOne => log.append(&["a"]).await,
                Step::AppendThree => log.append(&["b", "a", "b"]).await,
                Step::Read => match tail.next().await.unwrap() {
                    TailItem::Event(event) => {
                        seen.push(event);
                        known = None;
                    }
                    TailItem::CaughtUp => known = Some(log.last_seq),
                    other => panic!("{other:?} in {script:?}"),
                },
                Step::Wait => {
                    let is_news = tail.wait(SILENCE).await;
                    if let Some(known) = known {
                        assert_eq!(is_news, known < log.last_seq, "{script:?}");
                    }
                    // The next wait reports what follows this one.
                    known = None;
                }
            }
        }
        while let TailItem::Event(event) = tail.next().await.unwrap() {
            seen.push(event);
        }
        let all = log.world.events(&log.record.id).await;
        let wanted = all.iter().filter(|event| run.is_none_or(|run| event.run == run_id(run)));
        assert!(seen.iter().map(AsRef::as_ref).eq(wanted), "{script:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_after_an_early_read_ends_the_wait() {
    let log = Log::new().await;
    let mut tail = log.tail(None, Until::Deleted);
    assert_eq!(read(&mut tail).await, (vec![], TailItem::CaughtUp));
    for seq in 1..=3 {
        log.store.late.store(seq, Ordering::SeqCst);
        assert_eq!(
            tail.next().await.unwrap(),
            TailItem::CaughtUp,
            "the read came before the event"
        );
        assert!(tail.wait(SILENCE).await);
        assert_eq!(read(&mut tail).await, (vec![seq as u64], TailItem::CaughtUp));
        assert!(!tail.wait(SILENCE).await, "no event is reported twice");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_loses_no_event() {
    let mut log = Log::new().await;
    let mut tail = log.tail(None, Until::Deleted);
    assert_eq!(tail.next().await.unwrap(), TailItem::CaughtUp);
    assert!(tail.wait(SILENCE).now_or_never().is_none());
    log.append(&["a"]).await;
    assert!(tail.wait(SILENCE).await);
    assert_eq!(read(&mut tail).await, (vec![1], TailItem::CaughtUp));
}

#[tokio::test]
async fn a_long_log_is_read_in_pages() {
    let mut log = Log::new().await;
    let last = 2 * PAGE_EVENTS + 10;
    log.append(&vec!["a"; last]).await;
    let all: Vec<u64> = (1..=last as u64).collect();
    let mut tail = log.tail(None, Until::Deleted);
    assert_eq!(read(&mut tail).await, (all.clone(), TailItem::CaughtUp));
    assert_eq!((log.reads(), log.store.largest.load(Ordering::SeqCst)), (3, PAGE_EVENTS));
    tail.seek(last as u64 - 2);
    assert_eq!(read(&mut tail).await.0, all[last - 2..]);
    tail.seek(u64::MAX);
    let before = log.reads();
    assert_eq!(read(&mut tail).await, (vec![], TailItem::CaughtUp));
    assert_eq!((log.reads(), tail.head().unwrap().last_seq), (before, last as u64));
    tail.seek(0);
    assert_eq!(read(&mut tail).await.0, all);
}

#[tokio::test]
async fn large_events_are_read_in_short_pages() {
    let log = Log::new().await;
    let events = (1..=4).map(|seq| large_event(seq, PAGE_EVENT_BYTES / 2)).collect();
    log.write(Batch { events, ..Batch::default() }).await;
    let mut tail = log.tail(None, Until::Deleted);
    assert_eq!(read(&mut tail).await, (vec![1, 2, 3, 4], TailItem::CaughtUp));
    assert_eq!((log.reads(), log.store.largest.load(Ordering::SeqCst)), (4, 1));
    let mut range = EventRange::new(log.store.as_ref(), &log.record.id, 0, 4);
    for seq in 1..=4 {
        assert_eq!(range.next().await.unwrap().unwrap()[0].seq, seq);
    }
    assert_eq!(range.next().await.unwrap(), None);
    assert_eq!(log.reads(), 8, "a known end needs no further read");
}

#[tokio::test]
async fn tails_whose_events_are_not_taken_share_a_limit_of_memory() {
    let log = Log::new().await;
    let max_bytes = DEFAULT_BUDGET.caches.log_pages_bytes;
    let last = max_bytes / PAGE_EVENT_BYTES * 2;
    for seq in 1..=last {
        let events = vec![large_event(seq, PAGE_EVENT_BYTES / 4)].into();
        log.write(Batch { events, ..Batch::default() }).await;
    }
    // Returns a tail that has returned one event, and the number of events of its page.
    let open = async |after| {
        log.store.largest.store(0, Ordering::SeqCst);
        let mut tail = log.tail(None, Until::Deleted);
        tail.seek(after);
        let TailItem::Event(event) = tail.next().await.unwrap() else { panic!("no event") };
        assert_eq!(event.seq, after + 1);
        (tail, log.store.largest.load(Ordering::SeqCst))
    };
    let mut held = Vec::new();
    let mut single = loop {
        match open(held.len() as u64).await {
            (tail, 3) => held.push(tail),
            (tail, events) => {
                assert_eq!(events, 1);
                break tail;
            }
        }
    };
    let pages = held.len() as u64;
    assert!(pages * 3 * PAGE_EVENT_BYTES / 4 <= max_bytes, "{pages}");
    assert!(pages >= max_bytes / PAGE_EVENT_BYTES, "{pages}");
    let rest: Vec<u64> = (pages + 2..=last).collect();
    assert_eq!(read(&mut single).await.0, rest, "the other tails only slow it down");
    for tail in &mut held {
        for _ in 1..3 {
            assert!(matches!(tail.next().await.unwrap(), TailItem::Event(_)));
        }
    }
    assert_eq!(open(0).await.1, 3, "a tail that has returned its page holds none");
}

#[tokio::test]
async fn a_range_ends_at_its_last_event() {
    let mut log = Log::new().await;
    let last = 2 * PAGE_EVENTS as u64;
    log.append(&vec!["a"; 2 * PAGE_EVENTS]).await;
    let page = PAGE_EVENTS as u64;
    for (after, to) in [
        (0, last),
        (0, u64::MAX),
        (0, page),
        (3, page + 4),
        (page - 1, page + 1),
        (last - 1, last + 1),
        (last, u64::MAX),
        (7, 7),
        (8, 7),
    ] {
        let mut range = EventRange::new(log.store.as_ref(), &log.record.id, after, to);
        let mut seqs = Vec::new();
        while let Some(page) = range.next().await.unwrap() {
            assert!((1..=PAGE_EVENTS).contains(&page.len()), "{} events", page.len());
            seqs.extend(page.iter().map(|event| event.seq));
        }
        let expected: Vec<u64> = (after + 1..=to.min(last)).collect();
        assert_eq!(seqs, expected, "after {after} to {to}");
    }
    let missing = id("missing");
    let mut range = EventRange::new(log.store.as_ref(), &missing, 0, u64::MAX);
    assert_eq!(range.next().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_tail_waits_for_a_thread_that_does_not_exist() {
    let mut log = Log::empty();
    let mut tail = log.tail(None, Until::Deleted);
    assert_eq!(read(&mut tail).await, (vec![], TailItem::Gone));
    assert!(!tail.wait(SILENCE).await);
    assert_eq!((read(&mut tail).await, tail.head()), ((vec![], TailItem::Gone), None));
    log.create("t", "first").await;
    log.append(&["a", "a"]).await;
    assert!(tail.wait(SILENCE).await);
    assert_eq!(read(&mut tail).await, (vec![1, 2], TailItem::CaughtUp));
}

#[tokio::test(start_paused = true)]
async fn a_new_thread_under_the_id_of_a_deleted_one_is_read_from_the_start() {
    let mut log = Log::new().await;
    log.append(&["a", "a", "a"]).await;
    let mut tail = log.tail(None, Until::Deleted);
    assert_eq!(read(&mut tail).await, (vec![1, 2, 3], TailItem::CaughtUp));
    log.delete().await;
    assert!(tail.wait(SILENCE).await);
    assert_eq!(read(&mut tail).await, (vec![], TailItem::Gone));
    assert!(!tail.wait(SILENCE).await, "the end of the watch is reported once");
    for born in ["second", "third"] {
        log.create("t", born).await;
        log.append(&["b", "b"]).await;
        assert!(tail.wait(SILENCE).await);
        assert_eq!(read(&mut tail).await, (vec![], TailItem::Replaced));
        assert_eq!(read(&mut tail).await, (vec![1, 2], TailItem::CaughtUp));
        log.delete().await;
    }
}

#[tokio::test]
async fn a_tail_is_idle_when_a_run_has_ended() {
    let log = Log::empty();
    let ended = log.world.run(json!({ "out": 0 })).await;
    let all = log.world.events(&ended.run.thread).await;
    let seqs: Vec<u64> = all.iter().map(|event| event.seq).collect();
    assert!(matches!(all.last().unwrap().kind, EventKind::RunEnded(_)));
    for (until, end) in [(Until::Idle, TailItem::Idle), (Until::Deleted, TailItem::CaughtUp)] {
        for run in [None, Some(ended.run.run.clone())] {
            let thread = ended.run.thread.clone();
            let mut tail = log.world.engine.tail(TailQuery { thread, run, after: 0, until });
            assert_eq!(read(&mut tail).await, (seqs.clone(), end.clone()));
        }
    }
}

#[tokio::test]
async fn the_first_run_of_a_blank_thread_does_not_replace_the_thread() {
    let world = Log::empty().world;
    let new = NewThread { thread: Some(id("blank")), ..NewThread::default() };
    let thread = world.engine.create_thread(new).await.unwrap().id;
    let query = TailQuery { thread: thread.clone(), run: None, after: 0, until: Until::Deleted };
    let mut tail = world.engine.tail(query);
    assert_eq!(read(&mut tail).await, (vec![], TailItem::CaughtUp));
    let run = world.begin_on(Some(&thread), json!({ "out": 0 })).await.unwrap();
    world.engine.wait(&run).await.unwrap();
    assert!(tail.wait(SILENCE).await);
    let seqs = world.events(&thread).await.iter().map(|event| event.seq).collect();
    assert_eq!(read(&mut tail).await, (seqs, TailItem::CaughtUp));
}

#[tokio::test(start_paused = true)]
async fn a_tail_is_idle_only_while_no_run_writes_its_events() {
    let mut log = Log::new().await;
    log.set(ThreadStatus::Running, Some("a")).await;
    log.append(&["a"]).await;
    let (mut of_run, mut of_thread) =
        (log.tail(Some("a"), Until::Idle), log.tail(None, Until::Idle));
    let mut of_other = log.tail(Some("b"), Until::Idle);
    for tail in [&mut of_run, &mut of_thread] {
        assert_eq!(read(tail).await, (vec![1], TailItem::CaughtUp));
        assert!(tail.is_run_active());
    }
    assert_eq!(read(&mut of_other).await, (vec![], TailItem::Idle));
    log.set(ThreadStatus::Running, Some("b")).await;
    log.append(&["b"]).await;
    assert_eq!(read(&mut of_run).await, (vec![], TailItem::Idle), "its run has ended");
    assert_eq!(read(&mut of_thread).await, (vec![2], TailItem::CaughtUp), "another run is active");
    assert_eq!(read(&mut of_other).await, (vec![2], TailItem::CaughtUp));
    log.set(ThreadStatus::Idle, Some("b")).await;
    assert_eq!(read(&mut of_thread).await, (vec![], TailItem::Idle));
    assert!(!of_thread.is_run_active());
}

#[tokio::test(start_paused = true)]
async fn a_tail_of_a_pending_run_waits_until_the_run_leaves_its_queue() {
    let log = Log::new().await;
    enqueue_undue(log.store.as_ref(), &id("t"), "a").await;
    let mut tail = log.tail(Some("a"), Until::Idle);
    assert_eq!(read(&mut tail).await, (vec![], TailItem::CaughtUp));
    assert_eq!(read(&mut log.tail(None, Until::Idle)).await, (vec![], TailItem::Idle), "not due");
    log.world.engine.cancel(&RunRef { thread: id("t"), run: run_id("a") }).await.unwrap();
    assert!(tail.wait(SILENCE).await);
    assert_eq!(read(&mut tail).await, (vec![], TailItem::Idle));
    assert!(!tail.wait(SILENCE).await, "a run that has left its queue ends no wait");
}

#[tokio::test]
async fn a_failed_read_of_the_log_is_retried() {
    let mut log = Log::new().await;
    log.append(&["a", "a"]).await;
    let mut tail = log.tail(None, Until::Idle);
    log.store.is_damaged.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        let failure = tail.next().await.unwrap_err();
        assert_eq!(failure.code, code::BROKEN);
        assert!(failure.message.contains("checksum"), "{failure}");
    }
    log.store.is_damaged.store(false, Ordering::SeqCst);
    assert_eq!(read(&mut tail).await, (vec![1, 2], TailItem::Idle));
}

#[tokio::test]
async fn tails_at_one_position_share_a_page() {
    let mut log = Log::new().await;
    log.append(&["a"]).await;
    let mut tails: Vec<Tail> = (0..100).map(|_| log.tail(None, Until::Deleted)).collect();
    for tail in &mut tails {
        assert_eq!(read(tail).await.0, [1]);
    }
    let before = log.reads();
    log.append(&["a", "a"]).await;
    for end in join_all(tails.iter_mut().map(Tail::next)).await {
        assert_eq!(end.unwrap(), TailItem::Event(Arc::new(event(2, "a"))));
    }
    assert_eq!(log.reads() - before, 1);
}
