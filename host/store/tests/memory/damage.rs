//! Damaged files: a rebuild keeps the readable documents, reports the lost documents, and no read
//! returns a damaged document.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use redb::{Database, ReadableTable as _, TableDefinition};
use serde_json::{Value, json};
use tempfile::TempDir;
use wattle_graph::failure::code;
use wattle_kit::damage::wipe;
use wattle_run::ports::Memory as _;
use wattle_run::ports::memory::PutItem;
use wattle_store::{EssentialDocuments, RedbMemory};

use crate::fixtures::{NOW_MS, get, item, no_tenant, parts, put, under};

type Key<'k> = (&'k [u8], &'k str);

/// A row: created, updated, expires, refresh, checksum, document.
type Row<'r> = (i64, i64, Option<i64>, Option<u64>, u64, &'r str);

/// The row of a file of format 1, which has no checksum.
type UncheckedRow<'r> = (i64, i64, Option<i64>, Option<u64>, &'r str);

const DOCUMENTS: TableDefinition<'_, Key<'_>, Row<'_>> = TableDefinition::new("items");

/// Number of documents that a test writes: far more than fit in one page of the file.
const MANY: usize = 400;

fn key(number: usize) -> String {
    format!("k{number:04}")
}

fn text(namespace: &str, number: usize) -> String {
    format!("{number:04} of {namespace}, and some more words")
}

async fn fill(path: &Path, namespace: &str, documents: usize) {
    let (memory, scope) = (RedbMemory::open(path).unwrap(), no_tenant());
    let items = (0..documents)
        .map(|number| item(&[namespace], &key(number), json!({ "text": text(namespace, number) })));
    for put in join_all(items.map(|item| memory.put(&scope, item, NOW_MS))).await {
        put.unwrap();
    }
}

/// Returns the numbers of the missing documents. All others must be unchanged.
async fn missing(memory: &RedbMemory, namespace: &str, documents: usize) -> Vec<usize> {
    let mut missing = Vec::new();
    for number in 0..documents {
        match get(memory, &[namespace], &key(number)).await {
            Some(item) => assert_eq!(item.value, json!({ "text": text(namespace, number) })),
            None => missing.push(number),
        }
    }
    missing
}

fn file() -> (PathBuf, TempDir) {
    let dir = TempDir::new().unwrap();
    (dir.path().join("memory.redb"), dir)
}

#[tokio::test]
async fn damaged_page_loses_only_its_documents() {
    let (path, dir) = file();
    fill(&path, "notes", MANY).await;
    assert!(RedbMemory::survey_file(&path).unwrap().is_empty());
    wipe(&path, &text("notes", 200)).unwrap();
    assert!(RedbMemory::survey_file(&path).unwrap().len() > 1, "the file and its documents");
    let memory = RedbMemory::open(&path).unwrap();
    let lost = missing(&memory, "notes", MANY).await;
    assert!(lost.contains(&200) && lost.len() < MANY / 4, "{lost:?}");
    let aside = dir.path().join("memory.redb.damaged-1");
    let named = memory.find_damage().await.unwrap();
    assert_eq!(named.len(), 1, "{named:?}");
    let reason = &named[0].reason;
    assert!(reason.contains(&format!("{} cannot be read between", lost.len())), "{reason}");
    assert!(reason.contains(&format!("document {:?} in", key(lost[0] - 1))), "{reason}");
    assert!(reason.contains("memory.redb.damaged-1"), "{reason}");
    put(&memory, &["notes"], &key(200), json!("again")).await;
    drop(memory);
    // The loss is reported until the damaged file is deleted.
    assert_eq!(RedbMemory::survey_file(&path).unwrap(), named);
    assert!(RedbMemory::repair_file(&path).unwrap().is_none(), "the rebuilt file is intact");
    fs::remove_file(aside).unwrap();
    assert!(RedbMemory::survey_file(&path).unwrap().is_empty());
    let memory = RedbMemory::open(&path).unwrap();
    assert_eq!(get(&memory, &["notes"], &key(200)).await.unwrap().value, json!("again"));
}

#[tokio::test]
async fn memory_file_that_may_have_lost_all_essential_documents_is_refused() {
    let (path, dir) = file();
    fill(&path, "notes", MANY).await;
    fill(&path, "own", 3).await;
    let essential = EssentialDocuments {
        scope: no_tenant(),
        namespace: parts(&["own"]),
        meaning: "nothing of its own may be left",
    };
    let open = || RedbMemory::open_with(&path, &essential, Duration::ZERO);
    let whole = fs::read(&path).unwrap();
    // The file is not refused for damage of other documents.
    wipe(&path, &text("notes", 200)).unwrap();
    drop(open().unwrap());
    fs::remove_file(dir.path().join("memory.redb.damaged-1")).unwrap();

    fs::write(&path, whole).unwrap();
    for number in 0..3 {
        wipe(&path, &text("own", number)).unwrap();
    }
    let damaged = fs::read(&path).unwrap();
    let refused = open().unwrap_err();
    assert_eq!(refused.code, code::BROKEN);
    for words in ["nothing of its own may be left", "wattle store repair", "from a backup"] {
        assert!(refused.message.contains(words), "{refused}");
    }
    assert!(fs::read(&path).unwrap() == damaged);
    let (named, aside) = RedbMemory::repair_file(&path).unwrap().unwrap();
    assert!(!named.is_empty() && fs::read(aside).unwrap() == damaged);
    let memory = open().unwrap();
    assert_eq!(missing(&memory, "own", 3).await, [0, 1, 2]);
    assert!(missing(&memory, "notes", MANY).await.len() < MANY / 4);
}

#[tokio::test]
async fn unreadable_file_is_not_replaced_by_an_empty_one() {
    let (path, _dir) = file();
    fill(&path, "notes", 3).await;
    for number in 0..3 {
        wipe(&path, &text("notes", number)).unwrap();
    }
    let damaged = fs::read(&path).unwrap();
    let found = RedbMemory::survey_file(&path);
    assert!(found.is_ok_and(|found| !found.is_empty()));
    for refused in [RedbMemory::open(&path).map(drop), RedbMemory::repair_file(&path).map(drop)] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, code::BROKEN);
        assert!(refused.message.contains("none of its documents can be read"), "{refused}");
    }
    assert!(fs::read(&path).unwrap() == damaged);
}

/// Replaces the content of a document, and keeps its old checksum.
fn change(path: &Path, changed: &str) {
    let database = Database::open(path).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut table = transaction.open_table(DOCUMENTS).unwrap();
    let mut found = None;
    for entry in table.iter().unwrap() {
        let (namespace_path, row) = entry.unwrap();
        let ((path, key), (created_ms, updated_ms, _, _, check, _)) =
            (namespace_path.value(), row.value());
        if key == changed {
            found = Some((path.to_vec(), created_ms, updated_ms, check));
        }
    }
    let (namespace_path, created_ms, updated_ms, check) = found.unwrap();
    let row: Row<'_> = (created_ms, updated_ms, None, None, check, "\"else\"");
    table.insert((namespace_path.as_slice(), changed), row).unwrap();
    drop(table);
    transaction.commit().unwrap();
}

#[tokio::test]
async fn damaged_document_is_broken_until_replaced_or_deleted() {
    let (path, _dir) = file();
    fill(&path, "notes", 3).await;
    change(&path, "k0001");
    let (memory, scope, notes) = (RedbMemory::open(&path).unwrap(), no_tenant(), parts(&["notes"]));
    let name = "document \"k0001\" in [\"notes\"]";
    let read = memory.get(&scope, &notes, "k0001", NOW_MS).await.unwrap_err();
    assert!(read.code == code::BROKEN && read.message.contains(name), "{read}");
    let searched = memory.search(&scope, &under(&["notes"]), NOW_MS).await.unwrap_err();
    assert_eq!(searched.code, code::BROKEN);
    let listed = memory.list(&scope, &notes, "", 9, NOW_MS).await.unwrap_err();
    assert_eq!(listed.code, code::BROKEN);
    assert_eq!(get(&memory, &["notes"], "k0002").await.unwrap().key, "k0002");
    let named = memory.find_damage().await.unwrap();
    assert_eq!((named.len(), named[0].subject.as_str()), (1, name));
    // The damaged document may differ from the expected document.
    let value = json!({ "text": text("notes", 1) });
    assert!(!memory.compare_and_delete(&scope, &notes, "k0001", &value, NOW_MS).await.unwrap());
    put(&memory, &["notes"], "k0001", value.clone()).await;
    assert_eq!(get(&memory, &["notes"], "k0001").await.unwrap().value, value);
    assert!(memory.find_damage().await.unwrap().is_empty());
    drop(memory);
    change(&path, "k0001");
    let memory = RedbMemory::open(&path).unwrap();
    memory.delete(&scope, &notes, "k0001").await.unwrap();
    assert_eq!(missing(&memory, "notes", 3).await, [1]);
    assert!(memory.find_damage().await.unwrap().is_empty());
}

/// The expiry of a damaged document is unknown, so a put that replaces the document leaves the old
/// entry in `expiries`.
#[tokio::test]
async fn replacement_of_a_damaged_document_has_its_own_expiry() {
    let (path, _dir) = file();
    let (memory, scope) = (RedbMemory::open(&path).unwrap(), no_tenant());
    let brief = PutItem { ttl_ms: Some(10), ..item(&["a"], "k", json!(1)) };
    memory.put(&scope, brief, NOW_MS).await.unwrap();
    drop(memory);
    change(&path, "k");
    let memory = RedbMemory::open(&path).unwrap();
    put(&memory, &["a"], "k", json!(2)).await;
    assert_eq!(memory.sweep(NOW_MS + 20).await.unwrap(), 0);
    let kept = memory.get(&scope, &parts(&["a"]), "k", NOW_MS + 20).await.unwrap();
    assert_eq!(kept.unwrap().value, json!(2));
}

/// Creates a file of format 1, which has no checksums.
fn of_format_1(path: &Path, documents: usize) {
    let meta: TableDefinition<'_, &str, u64> = TableDefinition::new("memory");
    let unchecked: TableDefinition<'_, Key<'_>, UncheckedRow<'_>> =
        TableDefinition::new("documents");
    let expiries: TableDefinition<'_, (i64, &[u8], &str), ()> = TableDefinition::new("expiries");
    let database = Database::create(path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(meta).unwrap().insert("format", 1).unwrap();
    let mut table = transaction.open_table(unchecked).unwrap();
    let mut expiring = transaction.open_table(expiries).unwrap();
    // The path of the namespace `["notes"]` without a tenant.
    let namespace_path = [&[0_u8][..], b"opuft", &[0]].concat();
    for number in 0..documents {
        let document = json!({ "text": text("notes", number) }).to_string();
        let expires_ms = (number == 0).then_some(NOW_MS + 10);
        let row: UncheckedRow<'_> = (NOW_MS, NOW_MS, expires_ms, None, document.as_str());
        table.insert((namespace_path.as_slice(), key(number).as_str()), row).unwrap();
        if let Some(expires_ms) = expires_ms {
            expiring
                .insert((expires_ms, namespace_path.as_slice(), key(number).as_str()), ())
                .unwrap();
        }
    }
    drop((table, expiring));
    transaction.commit().unwrap();
}

#[tokio::test]
async fn format_1_file_gets_checksums() {
    let (path, _dir) = file();
    of_format_1(&path, MANY);
    assert!(RedbMemory::survey_file(&path).unwrap().is_empty());
    for _ in 0..2 {
        let memory = RedbMemory::open(&path).unwrap();
        assert!(missing(&memory, "notes", MANY).await.is_empty());
    }
    assert!(RedbMemory::survey_file(&path).unwrap().is_empty());
    change(&path, "k0007");
    let memory = RedbMemory::open(&path).unwrap();
    let read = memory.get(&no_tenant(), &parts(&["notes"]), "k0007", NOW_MS).await.unwrap_err();
    assert_eq!(read.code, code::BROKEN);
    assert_eq!(memory.sweep(NOW_MS + 10).await.unwrap(), 1);
    let kept: Option<Value> = get(&memory, &["notes"], "k0000").await.map(|item| item.value);
    assert_eq!(kept, None);
}

#[tokio::test]
async fn damaged_format_1_file_is_rebuilt() {
    let (path, dir) = file();
    of_format_1(&path, MANY);
    wipe(&path, &text("notes", 200)).unwrap();
    let memory = RedbMemory::open(&path).unwrap();
    let lost = missing(&memory, "notes", MANY).await;
    assert!(lost.contains(&200) && lost.len() < MANY / 4, "{lost:?}");
    assert!(dir.path().join("memory.redb.damaged-1").exists());
    assert_eq!(memory.find_damage().await.unwrap().len(), 1);
}
