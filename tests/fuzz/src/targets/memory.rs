//! Pages of the file of the long-term memory. The input selects bytes of an intact file to change,
//! as in the target `store`. The memory rejects the file as damaged, or opens it. If it opens, no
//! document has another value than before, and each one that is missing or damaged was reported.

use std::fs;
use std::sync::OnceLock;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::Memory as _;
use wattle_run::ports::memory::{MemoryScope, MemorySearch, PutItem};
use wattle_store::RedbMemory;

use super::{edited, folder};

/// The name of the file.
const FILE: &str = "memory.redb";

/// Number of documents in the file: enough for several pages.
const DOCUMENTS: usize = 24;

/// The time of all reads and writes.
const NOW_MS: i64 = 1_700_000_000_000;

/// Opens a file with changed bytes.
pub fn run(bytes: &[u8]) {
    static SOUND: OnceLock<Vec<u8>> = OnceLock::new();
    let sound = SOUND.get_or_init(|| crate::wait(make()));
    let folder = folder();
    let path = folder.path().join(FILE);
    fs::write(&path, edited(sound, bytes)).expect("there is room");
    let survey = RedbMemory::survey_file(&path);
    let is_found = survey.as_ref().map_or(true, |damaged| !damaged.is_empty());
    match RedbMemory::open(&path) {
        Ok(memory) => {
            let lost = crate::wait(compare(&memory));
            assert!(
                lost == 0 || is_found,
                "{lost} documents are lost, and the survey reports none"
            );
            if !is_found {
                crate::wait(used(&memory));
            }
        }
        Err(failure) => {
            assert!(is_expected(&failure), "{failure}");
            assert!(is_found, "the file is rejected, and the survey reports no damage: {failure}");
        }
    }
}

/// Returns true for the failures of a damaged file, and of a file with another version number.
fn is_expected(failure: &Failure) -> bool {
    matches!(failure.code.as_str(), code::BROKEN | code::UNAVAILABLE)
}

/// Compares all documents with their original values. Returns the number of those that are lost.
async fn compare(memory: &RedbMemory) -> usize {
    let mut lost = 0;
    for number in 0..DOCUMENTS {
        let item = item(number);
        match memory.peek(&scope(number), &item.namespace, &item.key, NOW_MS).await {
            Ok(Some(found)) => assert_eq!(found.value, item.value, "document {number} has changed"),
            Ok(None) => lost += 1,
            Err(failure) => {
                assert!(is_expected(&failure), "{failure}");
                lost += 1;
            }
        }
    }
    lost
}

/// Searches and writes an intact memory.
async fn used(memory: &RedbMemory) {
    let search = MemorySearch { limit: DOCUMENTS, ..MemorySearch::default() };
    let found = memory.search(&scope(0), &search, NOW_MS).await;
    assert_eq!(found.expect("a sound memory can be searched").len(), DOCUMENTS.div_ceil(2));
    let fresh = PutItem { key: "fresh".to_owned(), ..item(0) };
    memory.put(&scope(0), fresh, NOW_MS).await.expect("a sound memory can be written");
}

/// Returns the scope of a document: every second one belongs to a tenant.
fn scope(number: usize) -> MemoryScope {
    MemoryScope::Tenant((number % 2 == 1).then(|| "acme".to_owned()))
}

fn item(number: usize) -> PutItem {
    let value: Value = json!({ "number": number, "text": "text ".repeat(number * 20) });
    PutItem {
        namespace: vec!["notes".to_owned(), format!("part-{}", number % 3)],
        key: format!("key-{number}"),
        value,
        ttl_ms: None,
        refresh_on_read: false,
    }
}

async fn make() -> Vec<u8> {
    let folder = folder();
    let path = folder.path().join(FILE);
    let memory = RedbMemory::open(&path).expect("the file can be created");
    for number in 0..DOCUMENTS {
        let put = memory.put(&scope(number), item(number), NOW_MS).await;
        put.expect("an intact memory can be written");
    }
    drop(memory);
    fs::read(&path).expect("the file can be read")
}
