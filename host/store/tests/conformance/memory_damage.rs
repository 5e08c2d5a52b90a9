//! Damaged files of the long-term memory: each damage is reported or harmless, and all other
//! documents are intact.

use std::fs;
use std::path::Path;

use futures::future::join_all;
use serde_json::{Value, json};
use tempfile::TempDir;
use wattle_graph::failure::{Failure, code};
use wattle_kit::needs::setting;
use wattle_run::ports::Memory as _;
use wattle_run::ports::memory::{MemoryScope, PutItem};
use wattle_store::RedbMemory;

use crate::damage::{DAMAGES, Numbers, clear_beside, damage};

/// Default number of damages.
const ORDINARY: u64 = 20;

/// Number of documents of the file. Some documents belong to agents and some to the host, and some
/// expire.
const DOCUMENTS: usize = 600;

/// The current time, which does not advance.
const NOW_MS: i64 = 1_700_000_000_000;

/// Counts of the outcomes of damages.
#[derive(Debug, Default)]
struct Outcomes {
    harmless: u64,
    rebuilt: u64,
    documents_lost: usize,
    only_from_a_backup: u64,
}

fn scope(number: usize) -> MemoryScope {
    match number % 3 {
        0 => MemoryScope::Tenant(None),
        1 => MemoryScope::Tenant(Some("acme".to_owned())),
        _ => MemoryScope::Host(None),
    }
}

fn namespace(number: usize) -> Vec<String> {
    vec![format!("n{}", number % 7)]
}

fn key(number: usize) -> String {
    number.to_string()
}

fn value(number: usize) -> Value {
    json!({ "number": number, "text": "word ".repeat(number % 40) })
}

fn item(number: usize) -> PutItem {
    PutItem {
        namespace: namespace(number),
        key: key(number),
        value: value(number),
        ttl_ms: (number.is_multiple_of(5)).then_some(1_000),
        refresh_on_read: false,
    }
}

async fn fill(path: &Path) {
    let memory = RedbMemory::open(path).unwrap();
    let put = async |number| memory.put(&scope(number), item(number), NOW_MS).await;
    for put in join_all((0..DOCUMENTS).map(put)).await {
        put.unwrap();
    }
}

/// Compares all documents with their values before the damage, and returns the number of lost
/// documents. Fails if a document has another value or is damaged.
async fn compare(memory: &RedbMemory, how: &str) -> usize {
    let mut lost = 0;
    for number in 0..DOCUMENTS {
        let read = memory.get(&scope(number), &namespace(number), &key(number), NOW_MS).await;
        match read.unwrap() {
            Some(item) => assert_eq!(item.value, value(number), "{how}"),
            None => lost += 1,
        }
    }
    lost
}

/// Checks the error for a file that cannot be opened: the file is damaged, and the message names
/// the remedy.
fn check_refusal(failure: &Failure, how: &str) {
    assert_eq!(failure.code, code::BROKEN, "{how}: {failure}");
    assert!(failure.message.contains("backup"), "{how}: {failure}");
}

/// Opens a damaged file, after a repair if necessary; `None` if neither is possible.
fn opened(path: &Path, how: &str) -> Option<RedbMemory> {
    let refused = match RedbMemory::open(path) {
        Ok(memory) => return Some(memory),
        Err(refused) => refused,
    };
    check_refusal(&refused, how);
    let Err(refused) = RedbMemory::repair_file(path) else {
        return Some(RedbMemory::open(path).unwrap());
    };
    check_refusal(&refused, how);
    None
}

async fn damaged(path: &Path, how: &str, bytes: &[u8], outcomes: &mut Outcomes) {
    clear_beside(path);
    fs::write(path, bytes).unwrap();
    let found = RedbMemory::survey_file(path);
    let is_found = found.map_or(true, |found| !found.is_empty());
    assert!(fs::read(path).unwrap() == bytes, "{how}: the survey changed the file");
    let Some(memory) = opened(path, how) else {
        outcomes.only_from_a_backup += 1;
        return;
    };
    let lost = compare(&memory, how).await;
    if lost == 0 {
        outcomes.harmless += 1;
    } else {
        assert!(is_found, "{how}: {lost} documents are lost, and the survey found no damage");
        assert!(
            !memory.find_damage().await.unwrap().is_empty(),
            "{how}: the lost documents are not reported"
        );
        outcomes.rebuilt += 1;
        outcomes.documents_lost += lost;
    }
    memory.put(&scope(0), item(0), NOW_MS).await.unwrap();
    let next = memory.get(&scope(0), &namespace(0), &key(0), NOW_MS).await.unwrap();
    assert_eq!(next.unwrap().value, value(0), "{how}");
}

#[tokio::test]
async fn random_damage_of_the_memory_is_reported_or_harmless() {
    let damages = setting(DAMAGES).unwrap_or(ORDINARY);
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("memory.redb");
    fill(&path).await;
    assert!(RedbMemory::survey_file(&path).unwrap().is_empty());
    let whole = fs::read(&path).unwrap();
    let (mut outcomes, mut numbers) = (Outcomes::default(), Numbers(11));
    for _ in 0..damages {
        let mut bytes = whole.clone();
        let how = damage(&mut bytes, &mut numbers);
        damaged(&path, &how, &bytes, &mut outcomes).await;
    }
    println!("{damages} damages, {DOCUMENTS} documents, {} bytes: {outcomes:?}", whole.len());
}
