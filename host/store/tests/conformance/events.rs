//! The event log: pages, kinds, watches.

use serde_json::{Value, json};
use wattle_graph::event::{Event, EventKind};
use wattle_run::limit::PAGE_EVENT_BYTES;
use wattle_run::ports::Store;
use wattle_run::ports::store::Batch;

use crate::fixtures::{append, batch, checkpoint, create, event, events, id, seqs, thread_id};

pub(crate) async fn events_are_paged(store: &dyn Store) {
    assert!(store.events(&thread_id("missing"), 0, 9).await.unwrap().is_empty());
    let thread = create(store, "t").await;
    append(store, &thread, events(1, 3)).await.unwrap();
    append(store, &thread, events(4, 4)).await.unwrap();
    append(store, &thread, batch(checkpoint(1, None, &[], &[]))).await.unwrap();
    append(store, &thread, events(5, 9)).await.unwrap();
    let pages: [(u64, usize, &[u64]); 8] = [
        (0, 2, &[1, 2]),
        (2, 2, &[3, 4]),
        (4, 100, &[5, 6, 7, 8, 9]),
        (6, 1, &[7]),
        (9, 5, &[]),
        (0, 0, &[]),
        (u64::MAX, 5, &[]),
        (8, usize::MAX, &[9]),
    ];
    for (after, limit, expected) in pages {
        let page = store.events(&thread, after, limit).await.unwrap();
        assert_eq!(seqs(&page), expected, "{limit} after {after}");
    }
}

pub(crate) async fn pages_are_bounded_in_bytes(store: &dyn Store) {
    let thread = create(store, "t").await;
    let third = "x".repeat(PAGE_EVENT_BYTES as usize / 3);
    let larger = "x".repeat(PAGE_EVENT_BYTES as usize + 1);
    let batches: [(u64, &[&str]); 6] = [
        (1, &["a", "b", "c"]),
        (4, &[&third, &third, &third, &third]),
        (8, &[&third]),
        (9, &[&third]),
        (10, &[&larger]),
        (11, &["d"]),
    ];
    for (first, texts) in batches {
        let events = (first..).zip(texts).map(|(seq, text)| event(seq, json!(text))).collect();
        append(store, &thread, Batch { events, ..Batch::default() }).await.unwrap();
    }
    let (mut pages, mut after) = (Vec::new(), 0);
    loop {
        let page = store.events(&thread, after, 256).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.seq;
        let bytes: usize = page.iter().map(|it| serde_json::to_vec(it).unwrap().len()).sum();
        assert!(bytes as u64 <= PAGE_EVENT_BYTES || page.len() == 1, "{bytes} bytes");
        pages.push(seqs(&page));
    }
    assert_eq!(pages.concat(), (1..=11).collect::<Vec<_>>(), "{pages:?}");
    let others: [(u64, &[u64]); 3] = [(5, &[6, 7]), (9, &[10]), (10, &[11])];
    for (after, expected) in others {
        let page = store.events(&thread, after, 256).await.unwrap();
        assert_eq!(seqs(&page), expected, "after {after}");
    }
}

pub(crate) async fn events_of_every_kind_round_trip(store: &dyn Store) {
    let thread = create(store, "t").await;
    for name in EventKind::NAMES {
        let begin = format!(r#"{{"type":"{name}""#);
        assert!(KINDS.iter().any(|kind| kind.starts_with(&begin)), "no sample of `{name}`");
    }
    let kinds: Vec<Value> = KINDS.iter().map(|kind| serde_json::from_str(kind).unwrap()).collect();
    let whole: Vec<Event> = kinds
        .into_iter()
        .zip(1..)
        .map(|(mut kind, seq)| {
            let about = json!({ "seq": seq, "at_ms": -1, "run": "r", "namespace": "child" });
            let fields = kind.as_object_mut().unwrap();
            fields.extend(about.as_object().unwrap().clone());
            serde_json::from_value(kind).unwrap()
        })
        .collect();
    let batch = Batch { events: whole.clone().into(), ..Batch::default() };
    append(store, &thread, batch).await.unwrap();
    assert_eq!(store.events(&thread, 0, 100).await.unwrap(), whole);
}

pub(crate) async fn events_of_a_long_thread_are_found(store: &dyn Store) {
    let thread = create(store, "t").await;
    let mut tickets = Vec::new();
    for seq in 1..=700 {
        tickets.push(store.append(&thread, events(seq, seq)).await);
        if seq % 50 == 0 {
            let batch = batch(checkpoint(seq, None, &[], &[]));
            tickets.push(store.append(&thread, batch).await);
        }
    }
    for ticket in tickets {
        ticket.await.unwrap();
    }
    for after in [0, 1, 62, 63, 64, 65, 127, 128, 350, 640, 699] {
        let page = seqs(&store.events(&thread, after, 10).await.unwrap());
        let expected: Vec<u64> = (after + 1..=(after + 10).min(700)).collect();
        assert_eq!(page, expected, "after {after}");
    }
    let found = store.checkpoint(&thread, &Default::default(), Some(id(100))).await.unwrap();
    assert!(found.is_some());
}

pub(crate) async fn watch_receives_the_newest_event(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, events(1, 2)).await.unwrap();
    let mut watch = store.watch(&thread);
    let other = store.watch(&thread_id("not there yet"));
    assert_eq!((*watch.borrow(), *other.borrow()), (2, 0));
    append(store, &thread, events(3, 5)).await.unwrap();
    let newest = *watch.wait_for(|seq| *seq >= 5).await.unwrap();
    assert_eq!(seqs(&store.events(&thread, 2, 9).await.unwrap()), [3, 4, 5]);
    assert_eq!((newest, *store.watch(&thread).borrow()), (5, 5));
    assert_eq!(*other.borrow(), 0);
}

pub(crate) async fn watch_ends_with_its_thread(store: &dyn Store) {
    let thread = create(store, "t").await;
    let mut watch = store.watch(&thread);
    store.delete_thread(&thread).await.unwrap();
    assert!(watch.changed().await.is_err());
}

/// One event of each kind, with all optional fields set.
const KINDS: &[&str] = &[
    r#"{"type":"run_started","graph":"g","digest":"0000000000000000000000000000000000000000000000000000000000000000","reason":"recovery"}"#,
    r#"{"type":"run_ended","status":"failed","failure":{"code":"trap","message":"m","retryable":true,"details":{"a":[1]}}}"#,
    r#"{"type":"task_started","task":"t","node":"n","step":1,"attempt":2}"#,
    r#"{"type":"task_finished","task":"t","node":"n","index":3,"base":4,"writes":[{"channel":"c","value":null,"overwrite":true}],"goto":["x"],"sends":[{"node":"y","input":[1.25]}],"duration_us":9}"#,
    r#"{"type":"task_finished","task":"t","node":"n","base":4,"writes":[],"goto":[],"duration_us":9}"#,
    r#"{"type":"task_failed","task":"t","node":"n","attempt":1,"fault":"timeout","failure":{"code":"c","message":"m","retryable":false},"retry_in_ms":5}"#,
    r#"{"type":"call_started","task":"t","call":0,"function":"llm.complete","summary":"s"}"#,
    r#"{"type":"called","task":"t","node":"n","call":1,"function":"f","digest":"0000000000000000000000000000000000000000000000000000000000000000","request":{"z":1,"a":2},"result":{"Ok":{"t":0.30000000000000004}},"started_ms":1,"duration_us":2,"summary":"s","tokens":{"input":1,"output":2},"batch":1}"#,
    r#"{"type":"called","task":"t","node":"n","call":1,"function":"f","digest":"0000000000000000000000000000000000000000000000000000000000000000","request":null,"result":{"Err":{"code":"c","message":"m","retryable":false}},"started_ms":1,"duration_us":2,"batch":0}"#,
    r#"{"type":"asked","interrupt":"i","task":"t","node":"n","call":0,"payload":{"q":"?"},"response_schema":{"type":"string"},"expires_ms":77}"#,
    r#"{"type":"asked","interrupt":"i","task":"t","node":"n","call":0,"payload":{"message":"?"},"elicited":{"round":1,"digest":"0000000000000000000000000000000000000000000000000000000000000000","server":"s","tool":"t","asked":{"questions":{"q":{"message":"?","schema":{"type":"object"}}},"state":"opaque","held":"h"}}}"#,
    r#"{"type":"answered","interrupt":"i","task":"t","answer":"yes"}"#,
    r#"{"type":"checkpointed","checkpoint":1,"step":2,"source":"fork","changed":["a"],"next":["n"]}"#,
    r#"{"type":"checkpointed","checkpoint":1,"step":2,"source":"loop","changed":["a"],"next":["n"],"taken":[{"branch":"b","case":1}]}"#,
    r#"{"type":"reopened","to":1,"interrupts":["i"],"failure":{"code":"c","message":"m","retryable":false}}"#,
    r#"{"type":"forked","from":3,"call":{"task":"t","scope":[1],"call":2,"seq":9}}"#,
    r#"{"type":"settled","task":"t","scope":[1],"call":0,"decision":{"kind":"answer","answer":1},"by":"policy"}"#,
    r#"{"type":"migrated","from":"0000000000000000000000000000000000000000000000000000000000000000","to":"0000000000000000000000000000000000000000000000000000000000000000"}"#,
    r#"{"type":"streamed","task":"t","node":"n","scope":[1],"call":0,"deltas":[{"kind":"text","text":"a"},{"kind":"restart"}]}"#,
    r#"{"type":"custom","task":"t","node":"n","name":"x","data":{"type":"y","seq":1}}"#,
    r#"{"type":"progress","task":"t","node":"n","message":"m","fraction":0.1}"#,
    r#"{"type":"log","task":"t","node":"n","level":"info","message":"m","fields":{"k":"v"}}"#,
];
