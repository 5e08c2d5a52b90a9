//! Tests of the cache of compiled code.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use wattle_sandbox::{CodeCacheConfig, SandboxConfig, WasmSandbox};

use crate::{guest, load_into};

/// The key of most tests in this file.
const KEY: [u8; 32] = [7; 32];

fn one() -> Bytes {
    guest::reducer("(i32.const 320)")
}

fn other() -> Bytes {
    guest::node("", "(i32.const 512)")
}

async fn load_with(directory: &Path, key: [u8; 32], bytes: Bytes) {
    let cache = Some(CodeCacheConfig { directory: directory.to_owned(), key });
    let config = SandboxConfig { cache, max_instances: 4, ..SandboxConfig::default() };
    let sandbox = WasmSandbox::new(&config).unwrap();
    let is_reducer = bytes == one();
    let plugin = load_into(&sandbox, bytes).await.unwrap();
    let info = plugin.info();
    assert_eq!((info.reducers.len(), info.nodes.len()), if is_reducer { (1, 0) } else { (0, 1) });
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn only_file(directory: &Path) -> PathBuf {
    let files = files(directory);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[tokio::test]
async fn compiled_code_is_cached() {
    let directory = tempfile::tempdir().unwrap();
    load_with(directory.path(), KEY, one()).await;
    let file = only_file(directory.path());
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    load_with(directory.path(), KEY, one()).await;
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written);
}

#[tokio::test]
async fn compiled_code_of_both_engines_is_cached() {
    let directory = tempfile::tempdir().unwrap();
    let asynchronous = guest::node(guest::TASK_CANCEL, "(i32.const 512)");
    load_with(directory.path(), KEY, asynchronous.clone()).await;
    let file = only_file(directory.path());
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    load_with(directory.path(), KEY, asynchronous).await;
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written);
    load_with(directory.path(), KEY, other()).await;
    assert_eq!(files(directory.path()).len(), 2);
}

#[tokio::test]
async fn component_with_a_broken_cache_file_is_compiled_again() {
    let directory = tempfile::tempdir().unwrap();
    load_with(directory.path(), KEY, one()).await;
    let file = only_file(directory.path());
    let whole = fs::read(&file).unwrap();
    for broken in [Vec::new(), whole[..whole.len() / 2].to_vec(), flipped(&whole)] {
        fs::write(&file, broken).unwrap();
        load_with(directory.path(), KEY, one()).await;
        assert_eq!(fs::read(&file).unwrap(), whole);
    }
}

/// A user with write access to the directory knows the file format, but not the key. A digest of
/// the content alone would accept this file.
#[tokio::test]
async fn code_written_without_the_key_is_not_run() {
    let directory = tempfile::tempdir().unwrap();
    load_with(directory.path(), KEY, one()).await;
    let file = only_file(directory.path());
    let whole = fs::read(&file).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    load_with(elsewhere.path(), [8; 32], one()).await;
    let foreign = only_file(elsewhere.path());
    assert_ne!(foreign.file_name(), file.file_name(), "names depend on the key");
    fs::copy(foreign, &file).unwrap();
    load_with(directory.path(), KEY, one()).await;
    assert_eq!(fs::read(&file).unwrap(), whole);
}

/// Code that the host wrote for one component is not executed for another.
#[tokio::test]
async fn code_of_another_component_is_not_run() {
    let directory = tempfile::tempdir().unwrap();
    load_with(directory.path(), KEY, one()).await;
    let first = only_file(directory.path());
    let whole = fs::read(&first).unwrap();
    load_with(directory.path(), KEY, other()).await;
    let second = files(directory.path()).into_iter().find(|file| *file != first).unwrap();
    fs::copy(second, &first).unwrap();
    load_with(directory.path(), KEY, one()).await;
    assert_eq!(fs::read(&first).unwrap(), whole);
}

#[cfg(unix)]
#[tokio::test]
async fn special_files_are_not_read() {
    let directory = tempfile::tempdir().unwrap();
    load_with(directory.path(), KEY, one()).await;
    let file = only_file(directory.path());
    let pipe = |path: &Path| std::process::Command::new("mkfifo").arg(path).status().unwrap();
    fs::remove_file(&file).unwrap();
    assert!(pipe(&file).success());
    load_with(directory.path(), KEY, one()).await;
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    load_with(directory.path(), KEY, one()).await;
    assert!(fs::symlink_metadata(&file).unwrap().is_file(), "a regular file replaces the link");
}

fn flipped(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bytes
}

#[cfg(unix)]
#[tokio::test]
async fn other_users_have_no_access_to_the_directory() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("code");
    load_with(&path, KEY, one()).await;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
}
