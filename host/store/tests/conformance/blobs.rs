//! Blobs in files, in memory and in PostgreSQL, and the sweep of unmentioned blobs.

use std::fs;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tempfile::TempDir;
use wattle_graph::failure::code;
use wattle_graph::id::Digest;
use wattle_kit::need;
use wattle_run::ports::blob::{BlobRef, BlobStore};
use wattle_run::ports::store::{Batch, Store};
use wattle_store::sweep::{GRACE_PERIOD, Mentions, Sweepable, sweep_blobs};
use wattle_store::{FileBlobs, InMemoryBlobs, InMemoryStore, RedbStore};

use crate::fixtures::{append, batch, checkpoint, create, event, incompressible_text, record};
use crate::postgres::Server;

/// Mentions in events, values and records are stored until their thread is deleted.
pub(crate) async fn mentions_are_indexed_per_thread(store: &dyn Store) {
    let [in_event, in_value, in_record, nowhere] =
        ["event", "value", "record", "nowhere"].map(|name| BlobRef(Digest::of(name.as_bytes())));
    let thread = create(store, "t").await;
    let other = create(store, "other").await;
    let mut mentioning = record(&thread);
    mentioning.metadata.insert("avatar".into(), json!(in_record));
    let whole = Batch {
        record: Some(mentioning),
        events: vec![event(1, json!({ "text": format!("see {in_event}!") }))].into(),
        ..batch(checkpoint(1, None, &[("image", json!([in_value]))], &[]))
    };
    append(store, &thread, whole).await.unwrap();
    for blob in [in_event, in_value, in_record] {
        assert!(store.mentions(&thread, blob).await.unwrap(), "{blob}");
        assert!(!store.mentions(&other, blob).await.unwrap(), "{blob}");
    }
    assert!(!store.mentions(&thread, nowhere).await.unwrap());
    store.delete_thread(&thread).await.unwrap();
    assert!(!store.mentions(&thread, in_event).await.unwrap());
    create(store, "t").await;
    assert!(!store.mentions(&thread, in_event).await.unwrap(), "created again");
}

async fn blobs_round_trip(blobs: &dyn BlobStore) {
    let blob = blobs.put(Bytes::from_static(b"hello"), "text/plain").await.unwrap();
    assert_eq!(blob, BlobRef(Digest::of(b"hello")));
    let again = blobs.put(Bytes::from_static(b"hello"), "image/png").await.unwrap();
    assert_eq!(again, blob);
    let info = blobs.stat(blob).await.unwrap();
    assert_eq!((info.blob, info.size, info.media_type.as_str()), (blob, 5, "text/plain"));
    let ranges: [(u64, Option<u64>, &[u8]); 5] = [
        (0, None, b"hello"),
        (1, Some(3), b"ell"),
        (5, None, b""),
        (5, Some(0), b""),
        (4, Some(1), b"o"),
    ];
    for (offset, length, expected) in ranges {
        assert_eq!(blobs.get(blob, offset, length).await.unwrap(), expected);
    }
    for (offset, length) in [(6, None), (0, Some(6)), (5, Some(1)), (u64::MAX, Some(u64::MAX))] {
        let failure = blobs.get(blob, offset, length).await.unwrap_err();
        assert_eq!(failure.code, code::INVALID, "{failure}");
    }
    let empty = blobs.put(Bytes::new(), "").await.unwrap();
    assert_eq!(blobs.get(empty, 0, None).await.unwrap(), b""[..]);
    let missing = BlobRef(Digest::of(b"missing"));
    assert_eq!(blobs.get(missing, 0, None).await.unwrap_err().code, code::NOT_FOUND);
    assert_eq!(blobs.stat(missing).await.unwrap_err().code, code::NOT_FOUND);
}

/// Mentions in events, values and records protect blobs until their thread is deleted.
async fn unmentioned_blobs_are_swept<S, B>(store: &S, blobs: &B)
where
    S: Store + Mentions,
    B: BlobStore + Sweepable,
{
    /// Age from which the sweep deletes a blob. The sweep must reach the young blob before that
    /// blob has this age.
    const OLD: Duration = Duration::from_secs(2);
    let mut put = Vec::new();
    for name in ["event", "value", "record", "free", "young"] {
        put.push(blobs.put(Bytes::from(name), "text/plain").await.unwrap());
    }
    let [in_event, in_value, in_record, free, young] = put[..] else { panic!("five were put") };
    let thread = create(store, "t").await;
    let mut mentioning = record(&thread);
    mentioning.metadata.insert("avatar".into(), json!(in_record));
    let whole = Batch {
        record: Some(mentioning),
        events: vec![event(1, json!({ "text": format!("see {in_event}!") }))].into(),
        ..batch(checkpoint(1, None, &[("image", json!([in_value]))], &[]))
    };
    append(store, &thread, whole).await.unwrap();

    assert_eq!(sweep_blobs(store, blobs, GRACE_PERIOD).await.unwrap(), 0, "all are young");
    tokio::time::sleep(OLD).await;
    blobs.put(Bytes::from("young"), "text/plain").await.unwrap();
    assert_eq!(sweep_blobs(store, blobs, OLD).await.unwrap(), 1);
    assert!(blobs.stat(free).await.is_err());
    for kept in [in_event, in_value, in_record, young] {
        blobs.stat(kept).await.unwrap();
    }

    store.delete_thread(&thread).await.unwrap();
    assert_eq!(sweep_blobs(store, blobs, Duration::ZERO).await.unwrap(), 4);
    assert!(blobs.stat(in_value).await.is_err());
    let again = blobs.put(Bytes::from("value"), "text/plain").await.unwrap();
    assert_eq!(blobs.get(again, 0, None).await.unwrap(), b"value"[..]);
}

#[tokio::test]
async fn in_memory_blobs_round_trip() {
    blobs_round_trip(&InMemoryBlobs::new()).await;
}

#[tokio::test]
async fn file_blobs_round_trip() {
    let dir = TempDir::new().unwrap();
    blobs_round_trip(&FileBlobs::open(dir.path().join("blobs")).unwrap()).await;
}

#[tokio::test]
async fn postgresql_blobs_round_trip_and_are_swept() {
    let server = need!(Server::start());
    let store = server.store("blobs").await;
    let blobs = store.blobs();
    blobs_round_trip(&blobs).await;
    let large = Bytes::from(incompressible_text(1 << 18).into_bytes());
    let blob = blobs.put(large.clone(), "text/plain").await.unwrap();
    assert_eq!(blobs.get(blob, 0, None).await.unwrap(), large);
    let across = (1 << 20) - 3..(1 << 20) + 5;
    let read = blobs.get(blob, across.start as u64, Some(across.len() as u64)).await.unwrap();
    assert_eq!(read, large.slice(across));
    let store = server.store("swept").await;
    unmentioned_blobs_are_swept(&store, &store.blobs()).await;
}

#[tokio::test]
async fn unmentioned_blobs_in_memory_are_swept() {
    unmentioned_blobs_are_swept(&InMemoryStore::new(), &InMemoryBlobs::new()).await;
}

#[tokio::test]
async fn unmentioned_blobs_in_files_are_swept() {
    let dir = TempDir::new().unwrap();
    let store = RedbStore::open(dir.path().join("wattle.redb")).unwrap();
    let blobs = FileBlobs::open(dir.path().join("blobs")).unwrap();
    unmentioned_blobs_are_swept(&store, &blobs).await;
}

#[tokio::test]
async fn blobs_survive_a_restart_and_torn_writes_are_deleted() {
    let dir = TempDir::new().unwrap();
    let blobs = FileBlobs::open(dir.path()).unwrap();
    let blob = blobs.put(Bytes::from_static(b"x"), "image/png").await.unwrap();
    drop(blobs);
    let torn = dir.path().join("tmp").join("0");
    fs::write(&torn, "half of some").unwrap();
    let blobs = FileBlobs::open(dir.path()).unwrap();
    assert!(!torn.exists());
    assert_eq!(blobs.stat(blob).await.unwrap().media_type, "image/png");
    assert_eq!(blobs.get(blob, 0, None).await.unwrap(), b"x"[..]);
}

#[tokio::test]
async fn equal_blobs_can_be_put_concurrently() {
    let dir = TempDir::new().unwrap();
    let blobs = FileBlobs::open(dir.path()).unwrap();
    let puts = (0..16).map(|_| {
        let blobs = blobs.clone();
        tokio::spawn(async move { blobs.put(Bytes::from(vec![7; 100_000]), "a/b").await })
    });
    let puts: Vec<_> = puts.collect();
    for put in puts {
        let blob = put.await.unwrap().unwrap();
        assert_eq!(blobs.get(blob, 99_999, None).await.unwrap(), [7][..]);
    }
}

/// Returns the contents of a blob file with a flipped byte, of a truncated file, of an empty file,
/// and of a file with an extra byte.
fn damages() -> Vec<Vec<u8>> {
    let whole = vec![7_u8; 600_000];
    let flipped = whole.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == 599_999));
    let mut longer = whole.clone();
    longer.push(7);
    vec![flipped.collect(), whole[..300_000].to_vec(), Vec::new(), longer]
}

#[tokio::test]
async fn damaged_blob_is_broken_until_a_put_repairs_it() {
    let dir = TempDir::new().unwrap();
    let blobs = FileBlobs::open(dir.path()).unwrap();
    let whole = Bytes::from(vec![7; 600_000]);
    let blob = blobs.put(whole.clone(), "image/png").await.unwrap();
    let name = blob.0.to_hex();
    let path = dir.path().join(&name[..2]).join(&name);
    for damage in damages() {
        // This read may cache that the file is intact.
        assert_eq!(blobs.get(blob, 100, Some(10)).await.unwrap(), [7; 10][..]);
        fs::write(&path, &damage).unwrap();
        for (offset, length) in [(0, None), (0, Some(10)), (299_990, Some(10)), (599_990, None)] {
            let failure = blobs.get(blob, offset, length).await.unwrap_err();
            assert_eq!(failure.code, code::BROKEN, "{} bytes: {failure}", damage.len());
            assert!(failure.message.contains(&blob.to_string()), "{failure}");
        }
        assert_eq!(blobs.stat(blob).await.unwrap_err().code, code::BROKEN);
        assert_eq!(blobs.put(whole.clone(), "image/png").await.unwrap(), blob);
        assert_eq!(blobs.get(blob, 0, None).await.unwrap(), whole);
        assert_eq!(blobs.stat(blob).await.unwrap().size, 600_000);
    }
}

/// Statements that damage the rows of a blob with three chunks.
const DAMAGED_ROWS: [&str; 6] = [
    "UPDATE blob_chunks SET bytes = overlay(bytes PLACING '\\x00'::bytea FROM 9) WHERE chunk = 1",
    "UPDATE blob_chunks SET bytes = substring(bytes FOR 50) WHERE chunk = 2",
    "DELETE FROM blob_chunks WHERE chunk = 1",
    "DELETE FROM blob_chunks",
    "UPDATE blobs SET size = size - 1",
    "UPDATE blobs SET size = 9000000000000000000",
];

#[tokio::test]
async fn damaged_postgresql_blob_is_broken_until_a_put_repairs_it() {
    let server = need!(Server::start());
    let store = server.store("damaged").await;
    let blobs = store.blobs();
    let whole = Bytes::from(vec![7; (2 << 20) + 100]);
    let blob = blobs.put(whole.clone(), "image/png").await.unwrap();
    for damage in DAMAGED_ROWS {
        // This read may cache that the blob is intact.
        assert_eq!(blobs.get(blob, 100, Some(10)).await.unwrap(), [7; 10][..]);
        server.execute_as_admin("damaged", damage).await;
        let across = (1 << 20) - 3;
        for (offset, length) in [(0, None), (0, Some(10)), (across, Some(6)), (2 << 20, None)] {
            let failure = blobs.get(blob, offset, length).await.unwrap_err();
            assert_eq!(failure.code, code::BROKEN, "{damage}: {failure}");
            assert!(failure.message.contains(&blob.to_string()), "{failure}");
        }
        assert_eq!(blobs.stat(blob).await.unwrap_err().code, code::BROKEN, "{damage}");
        // Another host has no cached result.
        let other = store.blobs();
        assert_eq!(other.stat(blob).await.unwrap_err().code, code::BROKEN, "{damage}");
        assert_eq!(blobs.put(whole.clone(), "image/png").await.unwrap(), blob);
        assert_eq!(blobs.get(blob, 0, None).await.unwrap(), whole, "{damage}");
        assert_eq!(other.stat(blob).await.unwrap().size, whole.len() as u64, "{damage}");
    }
    server.execute_as_admin("damaged", "DELETE FROM blobs").await;
    assert_eq!(blobs.get(blob, 0, Some(1)).await.unwrap_err().code, code::NOT_FOUND);
}

#[tokio::test]
async fn damaged_media_type_is_broken_until_a_put_repairs_it() {
    let dir = TempDir::new().unwrap();
    let blobs = FileBlobs::open(dir.path()).unwrap();
    let blob = blobs.put(Bytes::from_static(b"x"), "image/png").await.unwrap();
    let name = blob.0.to_hex();
    let side = dir.path().join(&name[..2]).join(name).with_extension("json");
    for damage in [&b"{\"media_ty"[..], b""] {
        fs::write(&side, damage).unwrap();
        let failure = blobs.stat(blob).await.unwrap_err();
        assert_eq!(failure.code, code::BROKEN, "{failure}");
        assert!(failure.message.contains(&blob.to_string()), "{failure}");
        blobs.put(Bytes::from_static(b"x"), "image/png").await.unwrap();
        assert_eq!(blobs.stat(blob).await.unwrap().media_type, "image/png");
    }
}

#[tokio::test]
async fn blob_without_a_media_type_is_swept() {
    let dir = TempDir::new().unwrap();
    let blobs = FileBlobs::open(dir.path()).unwrap();
    let mut put = Vec::new();
    for text in ["one", "two", "three"] {
        put.push(blobs.put(Bytes::from(text), "text/plain").await.unwrap());
    }
    let name = put[1].0.to_hex();
    fs::remove_file(dir.path().join(&name[..2]).join(format!("{name}.json"))).unwrap();
    assert_eq!(sweep_blobs(&InMemoryStore::new(), &blobs, Duration::ZERO).await.unwrap(), 3);
    assert!(blobs.older_than(Duration::ZERO).await.unwrap().is_empty());
}

/// A symbolic link to itself cannot be opened. The link simulates all causes for which an intact
/// file cannot be opened, such as too many open files.
#[cfg(unix)]
#[tokio::test]
async fn unopenable_blob_is_not_reported_as_damaged() {
    let dir = TempDir::new().unwrap();
    let blobs = FileBlobs::open(dir.path()).unwrap();
    let blob = blobs.put(Bytes::from_static(b"x"), "text/plain").await.unwrap();
    let name = blob.0.to_hex();
    let path = dir.path().join(&name[..2]).join(&name);
    for path in [path.with_extension("json"), path] {
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&path, &path).unwrap();
        let failure = blobs.find_damage().await.unwrap_err();
        assert_eq!(failure.code, code::INTERNAL, "{failure}");
    }
}
