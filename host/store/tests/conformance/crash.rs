//! A process is killed while it writes. All batches that the process reported as durable must
//! exist.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use tempfile::TempDir;
use wattle_run::ports::Store;
use wattle_run::ports::store::Batch;
use wattle_store::RedbStore;

use crate::fixtures::{checkpoint, create, events, id, read, seqs, thread_id};

const FILE: &str = "WATTLE_STORE_CRASH_FILE";
const THREADS: u64 = 3;

/// The process that [`acknowledged_batches_survive_sigkill`] starts. It is not an independent test.
#[tokio::test]
#[ignore = "started by another test, which kills it"]
async fn writer_process() {
    let store = RedbStore::open(crate::path_from_env(FILE)).unwrap();
    for number in 0..THREADS {
        let name = format!("t{number}");
        let thread = thread_id(&name);
        if store.thread(&thread).await.unwrap().is_none() {
            create(&store, &name).await;
        }
    }
    loop {
        let mut tickets = Vec::new();
        for number in 0..THREADS {
            let thread = thread_id(&format!("t{number}"));
            let seq = store.thread(&thread).await.unwrap().unwrap().last_seq + 1;
            let batch = step(seq);
            tickets.push((number, seq, store.append(&thread, batch).await));
        }
        for (number, seq, ticket) in tickets {
            ticket.await.unwrap();
            println!("durable {number} {seq}");
        }
    }
}

/// Returns a batch with one event and a checkpoint of the same number, which changes `n` and keeps
/// `first`.
fn step(seq: u64) -> Batch {
    let mut changed = vec![("n", json!({ "seq": seq, "text": "x".repeat(seq as usize % 9000) }))];
    let mut older = Vec::new();
    if seq == 1 {
        changed.push(("first", json!("first")));
    } else {
        older.push(("first", 1));
    }
    let parent = (seq > 1).then(|| seq - 1);
    let checkpoint = Some(checkpoint(seq, parent, &changed, &older));
    Batch { base: parent.map(id), checkpoint, ..events(seq, seq) }
}

#[tokio::test]
async fn acknowledged_batches_survive_sigkill() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    for round in 0..4 {
        let durable = write_and_kill(&path, 40 + round * 37);
        let store = RedbStore::open(&path).unwrap();
        for (number, seq) in durable.into_iter().enumerate() {
            check(&store, number, seq).await;
        }
    }
}

/// Runs the writer until it has reported this number of batches, and kills it. Returns the newest
/// event of each thread that it reported.
fn write_and_kill(path: &Path, batches: usize) -> [u64; THREADS as usize] {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["crash::writer_process", "--exact", "--ignored", "--nocapture"])
        .env(FILE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut durable = [0; THREADS as usize];
    let mut note = |line: String| {
        // The test harness may print text before the report.
        let report = line.split_once("durable ").map(|(_, report)| report.to_owned());
        if let Some((number, seq)) = report.as_deref().and_then(|report| report.split_once(' ')) {
            durable[number.parse::<usize>().unwrap()] = seq.parse().unwrap();
        }
        report.is_some()
    };
    let mut reported = 0;
    while reported < batches {
        let line = lines.next().expect("the writer ended early").unwrap();
        reported += usize::from(note(line));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Reports that the process wrote before the kill are valid, except an incomplete last line.
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let whole = rest.len().saturating_sub(1);
    for line in rest.into_iter().take(whole) {
        note(line);
    }
    durable
}

async fn check(store: &RedbStore, number: usize, durable: u64) {
    let thread = thread_id(&format!("t{number}"));
    let head = store.thread(&thread).await.unwrap().unwrap();
    assert!(head.last_seq >= durable, "{} of {durable} events are there", head.last_seq);
    assert_eq!(head.last_checkpoint, Some(id(head.last_seq)), "a batch is all there or not at all");
    let all = store.events(&thread, 0, usize::MAX).await.unwrap();
    assert_eq!(seqs(&all), (1..=head.last_seq).collect::<Vec<_>>());
    let tuple = read(store, &thread, None).await.unwrap();
    let state = tuple.checkpoint.state();
    assert_eq!((&state["first"], &state["n"]["seq"]), (&json!("first"), &json!(head.last_seq)));
}
