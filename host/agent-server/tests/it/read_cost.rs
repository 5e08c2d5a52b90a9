//! Read costs of a long thread. Requests for the newest part of a thread read as many records of a
//! long thread as of a short thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use wattle_api::ApiConfig;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};
use wattle_kit::layer::{Layer, Layered};
use wattle_kit::memory::{Call, Hook, Hooked};
use wattle_project::agent_server::id::EventId;
use wattle_run::limit::LIST_BYTES;
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, RunRecord};
use wattle_store::{InMemoryStore, VolatileMemory};

use crate::host::{Host, HostOptions, request};
use crate::live_stream::LiveStream;
use crate::thread_stream::thread_stream_request;

/// Counts by name: for a read of the store, the number of records that it returned; for a method of
/// the memory, the number of its calls.
type Reads = BTreeMap<&'static str, usize>;

/// A store that counts the records that are read.
struct Counted {
    below: Arc<dyn Store>,
    reads: Mutex<Reads>,
}

#[async_trait]
impl Layer for Counted {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, reads: Mutex::default() }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    fn seen(&self, read: &'static str, records: usize) {
        *self.reads.lock().unwrap().entry(read).or_default() += records;
    }
}

/// Counts the calls of the memory for records of the Agent Server API.
#[derive(Default)]
struct Calls(Mutex<Reads>);

#[async_trait]
impl Hook for Calls {
    async fn after(&self, call: Call<'_>) -> Result<(), Failure> {
        // The records of API keys are in another namespace and are read once.
        if call.namespace.first().is_none_or(|part| part != "agent") {
            return Ok(());
        }
        assert_ne!(call.method, "search", "a search scans all records");
        *self.0.lock().unwrap().entry(call.method).or_default() += 1;
        Ok(())
    }
}

/// A host that counts the reads of its store and of its memory.
struct Counting {
    host: Host,
    store: Arc<Layered<Counted>>,
    memory: Arc<Hooked<Calls>>,
}

impl Counting {
    fn new() -> Self {
        let store = Arc::new(Layered::<Counted>::over(Arc::new(InMemoryStore::new())));
        let memory = Hooked::over(Arc::new(VolatileMemory::new()), Calls::default());
        let memory = Arc::new(memory);
        let options =
            HostOptions { store: store.clone(), memory: memory.clone(), ..HostOptions::default() };
        Self { host: Host::with_options(ApiConfig::default(), options), store, memory }
    }

    /// Returns the reads since the last call of this method.
    fn reads(&self) -> Reads {
        let mut reads = std::mem::take(&mut *self.store.reads.lock().unwrap());
        reads.append(&mut self.memory.0.lock().unwrap());
        reads
    }

    /// Appends copies of the newest run to a thread, with the events at which it starts and ends.
    /// Returns the sequence number of the last event.
    async fn lengthen(&self, thread: &str, runs: usize) -> u64 {
        let thread = ThreadId::new(thread).unwrap();
        let head = self.store.thread(&thread).await.unwrap().unwrap();
        let run = self.store.run(&head.record.run.unwrap()).await.unwrap().unwrap();
        let mut ends = self.store.events(&thread, run.first_seq - 1, 256).await.unwrap();
        let is_end =
            |kind: &EventKind| matches!(kind, EventKind::RunStarted(_) | EventKind::RunEnded(_));
        ends.retain(|event| is_end(&event.kind));
        let mut seq = head.last_seq;
        for _ in 0..runs {
            let id = RunId::new(format!("01a1ffdc-22ab-744e-a2fc-{seq:012}")).unwrap();
            let first_seq = seq + 1;
            let mut events = ends.clone();
            for event in &mut events {
                seq += 1;
                *event = Event { seq, run: id.clone(), ..event.clone() };
            }
            let run = RunRecord { id, first_seq, ..run.clone() };
            let batch = Batch { run: Some(run), events: events.into(), ..Batch::default() };
            self.store.append(&thread, batch).await.await.unwrap();
        }
        seq
    }

    /// Returns the reads of each request for the newest part of a thread.
    async fn of_each(&self, thread: &str) -> Vec<(&'static str, Reads)> {
        let path = |rest: &str| format!("/threads/{thread}{rest}");
        let run = json!({
            "assistant_id": "context", "input": { "value": 1 }, "context": { "a": 1 },
            "stream_mode": ["values", "messages", "updates"],
        });
        let update = json!({ "values": { "value": 2 } });
        let mut reads = Vec::new();
        for (what, rest, body) in [
            ("run", "/runs/wait", Some(run.clone())),
            ("stream", "/runs/stream", Some(run)),
            ("update", "/state", Some(update)),
            ("state", "/state", None),
            ("thread", "", None),
            ("history", "/history?limit=10", None),
            ("runs", "/runs?limit=10", None),
        ] {
            self.reads();
            let method = if body.is_some() { "POST" } else { "GET" };
            let response = self.host.call(method, &path(rest), body).await;
            assert_eq!(response.status, 200, "{what}: {}", response.text);
            reads.push((what, self.reads()));
        }
        reads
    }
}

#[tokio::test]
async fn requests_for_the_newest_part_of_a_long_thread_read_no_more_records() {
    let counting = Counting::new();
    let host = &counting.host;
    let thread = host.thread().await;
    let run = json!({ "assistant_id": "context", "input": { "value": 1 } });
    let update = json!({ "values": { "value": 2 } });
    let mut before = None;
    // Each iteration appends more than one page of the log.
    for _ in 0..2 {
        for _ in 0..70 {
            host.post(&format!("/threads/{thread}/runs/wait"), run.clone()).await.ok();
            host.post(&format!("/threads/{thread}/state"), update.clone()).await.ok();
        }
        let reads = counting.of_each(&thread).await;
        assert_eq!(*before.get_or_insert_with(|| reads.clone()), reads);
    }
    let reads: BTreeMap<_, _> = before.unwrap().into_iter().collect();
    let runs = &reads["runs"];
    assert!(runs.values().sum::<usize>() < 100, "{runs:?}");
    for what in ["run", "stream", "update", "state", "thread"] {
        // The engine reads no checkpoint, because the states that it wrote are in memory.
        assert!(!reads[what].contains_key("checkpoint"), "{what}: {:?}", reads[what]);
    }
    // The stream reads two checkpoints of the run and a few earlier checkpoints, each with the
    // whole state.
    assert!(reads["stream"]["checkpoints"] <= 6, "{:?}", reads["stream"]);
}

#[tokio::test]
async fn stream_after_an_event_reads_no_runs_before_the_event() {
    let counting = Counting::new();
    let host = &counting.host;
    let thread = host.thread().await;
    let path = format!("/threads/{thread}/runs/wait");
    let run = json!({ "assistant_id": "context", "input": { "value": 1 } });
    host.post(&path, run.clone()).await.ok();
    let mut before = None;
    for _ in 0..2 {
        let last_seq = counting.lengthen(&thread, 200).await;
        host.post(&path, run.clone()).await.ok();
        // The client has received the first event of the newest run.
        let since = EventId::end_of(last_seq + 1);
        counting.reads();
        let again = thread_stream_request(&thread, "", Some(&format!("0-{since}")));
        LiveStream::open(host, again).await.next().await.unwrap();
        let of_runs = counting.reads();
        assert!(of_runs["run"] <= 2, "{of_runs:?}");
        let wanted = json!({ "channels": ["values"], "since": since });
        LiveStream::events(host, &thread, wanted).await.next().await.unwrap();
        let typed = counting.reads();
        for reads in [&of_runs, &typed] {
            let lists = ["runs", "newest_runs"];
            assert!(!lists.iter().any(|list| reads.contains_key(list)), "{reads:?}");
        }
        let events = [of_runs["events"], typed["events"]];
        assert_eq!(*before.get_or_insert(events), events);
    }
}

#[tokio::test]
async fn record_of_a_created_run_is_read_once() {
    let counting = Counting::new();
    let host = &counting.host;
    host.hold();
    let run = json!({
        "assistant_id": "slow", "input": { "word": "a" }, "stream_mode": ["values"],
    });
    let path = format!("/threads/{}/runs", host.thread().await);
    counting.reads();
    host.post(&path, run.clone()).await.ok();
    assert_eq!(counting.reads()["run"], 1);
    let path = format!("/threads/{}/runs/stream", host.thread().await);
    counting.reads();
    let mut live = LiveStream::open(host, request("POST", &path, Some(run))).await;
    live.next().await.unwrap();
    assert_eq!(counting.reads()["run"], 1);
    host.release.send_replace(true);
}

#[tokio::test]
async fn page_of_runs_reads_no_runs_before_the_page() {
    let counting = Counting::new();
    let host = &counting.host;
    let thread = host.thread().await;
    let path = format!("/threads/{thread}/runs");
    let run = json!({ "assistant_id": "context", "input": { "value": 1 } });
    host.post(&format!("{path}/wait"), run).await.ok();
    counting.lengthen(&thread, 300).await;
    let all = host.get(&format!("{path}?limit=1000")).await.ok();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 301);
    let mut before = None;
    for offset in [0, 60, 240] {
        counting.reads();
        let page = host.get(&format!("{path}?limit=10&offset={offset}")).await.ok();
        assert_eq!(page.as_array().unwrap(), &all[offset..offset + 10]);
        let reads = counting.reads()["newest_runs"];
        assert_eq!(*before.get_or_insert(reads), reads, "at {offset}");
    }
    let beyond = host.get(&format!("{path}?limit=10&offset=400")).await.ok();
    assert_eq!(beyond, json!([]));
    // A filter is checked for each run.
    let filtered = host.get(&format!("{path}?limit=10&offset=60&status=success")).await.ok();
    assert_eq!(filtered.as_array().unwrap(), &all[60..70]);
}

#[tokio::test]
async fn run_after_a_cancelled_run_of_a_long_thread_reads_no_more_records() {
    let counting = Counting::new();
    let host = &counting.host;
    let thread = host.thread().await;
    let path = format!("/threads/{thread}/runs");
    let run = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    let mut before = None;
    for _ in 0..2 {
        for _ in 0..40 {
            host.post(&format!("{path}/wait"), run.clone()).await.ok();
        }
        host.hold();
        let begun = *host.started.borrow();
        let cancelled = host.post(&path, run.clone()).await.ok();
        host.wait_for_started(begun + 1).await;
        let cancelled = cancelled["run_id"].as_str().unwrap();
        host.post(&format!("{path}/{cancelled}/cancel?wait=true"), json!({})).await;
        host.release.send_replace(true);
        counting.reads();
        host.post(&format!("{path}/wait"), run.clone()).await.ok();
        let reads = counting.reads();
        assert!(reads["newest_runs"] < 20 && !reads.contains_key("runs"), "{reads:?}");
        assert_eq!(*before.get_or_insert_with(|| reads.clone()), reads);
        let newest = host.get(&format!("{path}?limit=1")).await.ok()[0]["run_id"].clone();
        counting.reads();
        let newest = format!("{path}/{}", newest.as_str().unwrap());
        assert_eq!(host.call("DELETE", &newest, None).await.status, 204);
        assert!(!counting.reads().contains_key("runs"));
    }
}

#[tokio::test]
async fn search_by_ids_reads_only_the_named_threads() {
    let counting = Counting::new();
    let host = &counting.host;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(host.thread().await);
    }
    counting.reads();
    let none = "00000000-0000-7000-8000-000000000000";
    let search = json!({ "ids": [ids[3], ids[7], ids[3], none, "no id"], "select": ["thread_id"] });
    let found = host.post("/threads/search", search).await.ok();
    let mut wanted = [json!({ "thread_id": ids[7] }), json!({ "thread_id": ids[3] })];
    let mut found = found.as_array().unwrap().clone();
    for list in [&mut wanted[..], &mut found[..]] {
        list.sort_by_key(Value::to_string);
    }
    assert_eq!(found, wanted);
    assert_eq!(counting.reads(), [("thread", 2)].into());
    // Many ids are looked up in a list of all threads.
    let many: Vec<String> = (0..100).map(|n| format!("{n}")).chain(ids.clone()).collect();
    let search = json!({ "ids": many, "limit": 100, "select": ["thread_id"] });
    let found = host.post("/threads/search", search).await.ok();
    assert_eq!(found.as_array().unwrap().len(), 20);
    assert_eq!(counting.reads(), [("threads", 20), ("thread", 20)].into());
}

#[tokio::test]
async fn search_by_ids_keeps_records_up_to_a_number_of_bytes() {
    const THREADS: usize = 80;
    let counting = Counting::new();
    let host = &counting.host;
    let metadata = json!({ "metadata": { "note": "x".repeat(60_000) } });
    let mut ids = Vec::new();
    for _ in 0..THREADS {
        let made = host.post("/threads", metadata.clone()).await.ok();
        ids.push(made["thread_id"].clone());
    }
    counting.reads();
    let search = json!({ "ids": ids, "limit": THREADS, "select": ["thread_id"] });
    let found = host.post("/threads/search", search).await.ok();
    assert_eq!(found.as_array().unwrap().len(), THREADS);
    // The search reads the records that it did not keep again.
    let again = counting.reads()["thread"] - THREADS;
    let kept_bytes = (THREADS - again) * 60_000;
    assert!((LIST_BYTES as usize / 2..=LIST_BYTES as usize).contains(&kept_bytes), "{again}");
}

#[tokio::test]
async fn search_by_values_reads_each_state_once() {
    let counting = Counting::new();
    let host = &counting.host;
    for n in 0..20 {
        let made = host.post("/threads", json!({ "metadata": { "graph_id": "context" } })).await;
        let id = made.ok()["thread_id"].as_str().unwrap().to_owned();
        let update = json!({ "values": { "value": n } });
        host.post(&format!("/threads/{id}/state"), update).await.ok();
    }
    counting.reads();
    let search = json!({ "values": { "value": 3 }, "select": ["thread_id"] });
    let found = host.post("/threads/search", search.clone()).await.ok();
    assert_eq!(found.as_array().unwrap().len(), 1);
    let with_page = 20 + 1;
    let reads = [("threads", 20), ("thread", with_page), ("checkpoint", 20)];
    assert_eq!(counting.reads(), reads.into());
    // States of threads that other conditions exclude are not read.
    let mut search = search;
    search["metadata"] = json!({ "graph_id": "other" });
    assert_eq!(host.post("/threads/search", search).await.ok(), json!([]));
    assert_eq!(counting.reads(), [("threads", 20)].into());
}
