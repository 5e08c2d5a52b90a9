//! The server and its files: backups, damage, and a disk that is full for some time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tempfile::TempDir;
use wattle_kit::damage::{change, wipe};

use super::{Served, said};

/// Maximum number of attempts, at intervals of a tenth of a second.
const TRIES: usize = 300;

fn url(served: &Served, path: &str) -> String {
    format!("{}{path}", served.ready["address"].as_str().unwrap())
}

async fn get(served: &Served, path: &str) -> (u16, Value) {
    let answer = reqwest::get(url(served, path)).await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

/// Creates a thread. Returns the status and the thread id.
async fn make(served: &Served, note: &str) -> (u16, String) {
    let request = reqwest::Client::new().post(url(served, "/threads"));
    let answer = request.json(&json!({ "metadata": { "note": note } })).send().await.unwrap();
    let status = answer.status().as_u16();
    let thread: Value = answer.json().await.unwrap_or_default();
    (status, thread["thread_id"].as_str().unwrap_or_default().to_owned())
}

async fn make_some(served: &Served, count: usize) -> Vec<String> {
    let mut made = Vec::new();
    for number in 0..count {
        let (status, id) = make(served, &format!("note of {number:03}")).await;
        assert_eq!(status, 200);
        made.push(id);
    }
    made
}

#[tokio::test]
async fn a_backup_of_a_running_server_is_restored_and_continues() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let copy = from.path().join("copy");
    let copy = copy.to_str().unwrap();
    let served = Served::start(from.path());
    let threads = make_some(&served, 5).await;
    let (went_well, text) = said(from.path(), &["store", "backup", copy], None);
    assert!(went_well && text.contains("backed up to"), "{text}");
    let (went_well, text) = said(from.path(), &["store", "backup", copy], None);
    assert!(!went_well && text.contains("is not empty"), "{text}");
    let later = make_some(&served, 1).await;
    let (went_well, text) = said(from.path(), &["store", "restore", copy], None);
    assert!(!went_well && text.contains("has the store open"), "{text}");
    assert_eq!(served.terminate(), Some(0));
    let (went_well, text) = said(from.path(), &["store", "restore", copy], None);
    assert!(!went_well && text.contains("contains data"), "{text}");
    let (went_well, text) = said(to.path(), &["store", "restore", "."], None);
    assert!(!went_well && text.contains("contains no backup"), "{text}");

    let (went_well, text) = said(to.path(), &["store", "restore", copy], None);
    assert!(went_well && text.contains("nothing is damaged"), "{text}");
    let served = Served::start(to.path());
    for thread in &threads {
        assert_eq!(get(&served, &format!("/threads/{thread}")).await.0, 200);
    }
    assert_eq!(get(&served, &format!("/threads/{}", later[0])).await.0, 404);
    make_some(&served, 2).await;
    assert_eq!(served.terminate(), Some(0));
}

/// Adds an archived version, to which no readable thread is pinned, to the data folder.
fn put_version(folder: &Path) -> PathBuf {
    let version = folder.join("data/versions/asset/old");
    fs::create_dir_all(&version).unwrap();
    let index = json!({ "app": "asset", "versions": [], "components": [] });
    fs::write(version.join("index.json"), index.to_string()).unwrap();
    version
}

#[tokio::test]
async fn a_damaged_thread_is_reported_and_set_aside() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("data/wattle.redb");
    let served = Served::start(folder.path());
    let threads = make_some(&served, 5).await;
    assert_eq!(served.terminate(), Some(0));
    for args in [&["store", "verify"][..], &["doctor"]] {
        let (went_well, text) = said(folder.path(), args, None);
        assert!(went_well && !text.contains("damaged:"), "{args:?}: {text}");
    }
    change(&file, "note of 003").unwrap();
    for args in [&["store", "verify"][..], &["doctor"]] {
        let (went_well, text) = said(folder.path(), args, None);
        assert!(!went_well && text.contains(&threads[3]), "{args:?}: {text}");
        assert!(!text.contains("panicked"), "{args:?}: {text}");
    }
    let code = put_version(folder.path());
    let served = Served::start(folder.path());
    for (number, thread) in threads.iter().enumerate() {
        let (status, answer) = get(&served, &format!("/api/v1/threads/{thread}")).await;
        if number == 3 {
            assert_eq!((status, answer["code"].as_str()), (500, Some("broken")), "{answer}");
            assert!(answer["detail"].as_str().unwrap().contains(thread), "{answer}");
        } else {
            assert_eq!(status, 200, "{answer}");
        }
    }
    assert_eq!(make(&served, "one more").await.0, 200);
    let (went_well, text) = said(folder.path(), &["store", "verify"], None);
    assert!(!went_well && text.contains(&threads[3]), "{text}");
    assert!(code.exists(), "the thread may need it once it is restored");
    // The operator deletes the thread.
    let (went_well, text) = said(folder.path(), &["thread", "delete", &threads[3]], None);
    assert!(went_well, "{text}");
    assert_eq!(get(&served, &format!("/api/v1/threads/{}", threads[3])).await.0, 404);
    let (went_well, text) = said(folder.path(), &["store", "verify"], None);
    assert!(went_well && text.contains("nothing is damaged"), "{text}");
    assert_eq!(served.terminate(), Some(0));
    assert_eq!(Served::start(folder.path()).terminate(), Some(0));
    assert!(!code.exists());

    fs::write(&file, "").unwrap();
    let (went_well, text) = said(folder.path(), &["serve", "--listen", "127.0.0.1:0"], None);
    assert!(!went_well && text.contains("wattle store restore"), "{text}");
}

/// Number of documents of the long-term memory. The documents fill more than a few pages of the
/// file.
const REMEMBERED: usize = 200;

fn memo(number: usize) -> String {
    format!("memo {number:03} {}", "x".repeat(300))
}

/// Writes documents of the long-term memory.
async fn remember(served: &Served) {
    let client = reqwest::Client::new();
    let puts = (0..REMEMBERED).map(|number| {
        let value = json!({ "text": memo(number) });
        let item = json!({ "namespace": ["notes"], "key": number.to_string(), "value": value });
        client.put(url(served, "/api/v1/memory/items")).json(&item).send()
    });
    for put in join_all(puts).await {
        assert_eq!(put.unwrap().status(), 204);
    }
}

#[tokio::test]
async fn a_damaged_memory_is_rebuilt_and_losses_are_named() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("data/memory.redb");
    let served = Served::start(folder.path());
    remember(&served).await;
    assert_eq!(served.terminate(), Some(0));
    wipe(&file, &memo(REMEMBERED / 2)).unwrap();
    for args in [&["store", "verify"][..], &["doctor"]] {
        let (went_well, text) = said(folder.path(), args, None);
        assert!(!went_well && text.contains("documents of the long-term memory"), "{text}");
        assert!(!text.contains("panicked"), "{text}");
    }
    let served = Served::start(folder.path());
    let mut lost = Vec::new();
    for number in 0..REMEMBERED {
        let path = format!("/api/v1/memory/items?namespace=notes&key={number}");
        match get(&served, &path).await {
            (200, item) => assert_eq!(item["value"], json!({ "text": memo(number) })),
            (404, _) => lost.push(number),
            other => panic!("{other:?}"),
        }
    }
    assert!(lost.contains(&(REMEMBERED / 2)) && lost.len() < REMEMBERED / 2, "{lost:?}");
    let aside = folder.path().join("data/memory.redb.damaged-1");
    let (went_well, text) = said(folder.path(), &["store", "verify"], None);
    assert!(!went_well && text.contains("memory.redb.damaged-1"), "{text}");
    fs::remove_file(aside).unwrap();
    let (went_well, text) = said(folder.path(), &["store", "verify"], None);
    assert!(went_well && text.contains("nothing is damaged"), "{text}");
    assert_eq!(served.terminate(), Some(0));
}

/// Sets the maximum size of files that a process may write.
#[cfg(target_os = "linux")]
fn limit(served: &Served, bytes: &str) {
    let pid = served.child.id().to_string();
    let limit = format!("--fsize={bytes}:");
    let set = Command::new("prlimit").args(["--pid", &pid, &limit]).status().unwrap();
    assert!(set.success());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_survives_a_full_disk_and_readiness_reports_it() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path());
    let threads = make_some(&served, 1).await;
    assert_eq!(get(&served, "/readyz").await.0, 200);
    limit(&served, "0");
    // Readiness reports the problem with a delay, because for one second a recent write proves that
    // the store is writable.
    let mut tries = 0;
    while get(&served, "/readyz").await.0 == 200 {
        tries += 1;
        assert!(tries < TRIES);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (status, answer) = get(&served, "/readyz").await;
    assert_eq!(status, 503, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("checkpoint store"), "{answer}");
    assert_eq!(get(&served, "/healthz").await.0, 200);
    assert!(make(&served, "no room").await.0 >= 500);
    assert_eq!(get(&served, &format!("/threads/{}", threads[0])).await.0, 200);
    limit(&served, "unlimited");
    let mut tries = 0;
    while get(&served, "/readyz").await.0 != 200 {
        tries += 1;
        assert!(tries < TRIES);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(make(&served, "room again").await.0, 200);
    assert_eq!(served.terminate(), Some(0));
}

/// Returns the output and exit code of a command that can write at most one page to a file; the
/// code is `None` if a signal ends it.
#[cfg(target_os = "linux")]
fn said_within_a_page(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let limited = ["--fsize=4096:", "env", "-i", env!("CARGO_BIN_EXE_wattle")];
    let mut command = Command::new("prlimit");
    let ended = command.args(limited).args(args).current_dir(folder).output().unwrap();
    let text = [ended.stdout, ended.stderr].concat();
    (ended.status.code(), String::from_utf8(text).unwrap())
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_reports_the_limit_on_file_sizes() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let copy = from.path().join("copy");
    let copy = copy.to_str().unwrap();
    let served = Served::start(from.path());
    make_some(&served, 1).await;
    let (went_well, text) = said(from.path(), &["store", "backup", copy], None);
    assert!(went_well, "{text}");
    assert_eq!(served.terminate(), Some(0));
    let restore = ["store", "restore", copy];
    for (folder, args) in [(&from, &["store", "repair"][..]), (&to, &restore[..])] {
        let (code, text) = said_within_a_page(folder.path(), args);
        assert_eq!(code, Some(1), "{args:?}: {text}");
        assert!(text.to_lowercase().contains("file too large"), "{args:?}: {text}");
    }
    // After an interrupted restore, a host does not start with an empty store. The restore can be
    // repeated.
    let (went_well, text) = said(to.path(), &["serve", "--listen", "127.0.0.1:0"], None);
    assert!(!went_well && text.contains("its restore did not finish"), "{text}");
    let (went_well, text) = said(to.path(), &restore, None);
    assert!(went_well && text.contains("nothing is damaged"), "{text}");
    assert_eq!(Served::start(to.path()).terminate(), Some(0));
    let (went_well, text) = said(from.path(), &["store", "verify"], None);
    assert!(went_well && text.contains("nothing is damaged"), "{text}");
}

#[cfg(unix)]
#[test]
fn doctor_creates_a_data_folder_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = TempDir::new().unwrap();
    let (_, text) = said(folder.path(), &["doctor"], None);
    let data = fs::metadata(folder.path().join("data")).expect(&text);
    assert_eq!(data.permissions().mode() & 0o777, 0o700);
}
