//! Compiled code on disk.

use std::fs;
use std::path::Path;

use wattle_sandbox::{SandboxConfig, WasmSandbox};

use crate::{guest, load_into};

async fn load_with(directory: &Path) {
    let config = SandboxConfig { cache_dir: Some(directory.to_owned()), max_instances: 4 };
    let sandbox = WasmSandbox::new(&config).unwrap();
    let plugin = load_into(&sandbox, guest::reducer("(i32.const 320)")).await.unwrap();
    assert_eq!(plugin.info().reducers.len(), 1);
}

fn only_file(directory: &Path) -> std::path::PathBuf {
    let mut files = fs::read_dir(directory).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none());
    file
}

#[tokio::test]
async fn code_is_kept_and_found() {
    let directory = tempfile::tempdir().unwrap();
    load_with(directory.path()).await;
    let file = only_file(directory.path());
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    load_with(directory.path()).await;
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written);
}

#[tokio::test]
async fn broken_code_is_compiled_anew() {
    let directory = tempfile::tempdir().unwrap();
    load_with(directory.path()).await;
    let file = only_file(directory.path());
    let whole = fs::read(&file).unwrap();
    for broken in [Vec::new(), whole[..whole.len() / 2].to_vec(), flipped(&whole)] {
        fs::write(&file, broken).unwrap();
        load_with(directory.path()).await;
        assert_eq!(fs::read(&file).unwrap(), whole);
    }
}

fn flipped(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bytes
}

#[cfg(unix)]
#[tokio::test]
async fn the_directory_is_closed_to_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("code");
    load_with(&path).await;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
}
