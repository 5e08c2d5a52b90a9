//! Tests of the memory of compiled code.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use wattle_run::ports::sandbox::{CODE_MEMORY, LoadError, Plugin};
use wattle_sandbox::{CodeCacheConfig, SandboxConfig, WasmSandbox};

use crate::{guest, load_into};

fn one() -> Bytes {
    guest::reducer("(i32.const 320)")
}

fn other() -> Bytes {
    guest::node("", "(i32.const 512)")
}

/// Returns a sandbox whose loaded components have at most `code_bytes` bytes of code.
fn sandbox(directory: &Path, code_bytes: u64) -> Arc<WasmSandbox> {
    let cache = Some(CodeCacheConfig { directory: directory.to_owned(), key: [7; 32] });
    let config = SandboxConfig { cache, code_bytes, max_instances: 4, ..SandboxConfig::default() };
    WasmSandbox::new(&config).unwrap()
}

/// Returns the size of the code of a component in bytes, which the error about code that never fits
/// names. Afterwards, the code is in the cache.
async fn code_bytes(directory: &Path, bytes: Bytes) -> u64 {
    let loaded = load_into(&sandbox(directory, 1), bytes).await;
    let Err(error) = loaded else { panic!("the component was loaded") };
    error.message.split_whitespace().find_map(|word| word.parse().ok()).unwrap()
}

#[track_caller]
fn refused(loaded: Result<Arc<dyn Plugin>, LoadError>, code: &str) {
    let Err(error) = loaded else { panic!("the component was loaded") };
    assert_eq!(error.code, code, "{error}");
    assert!(error.to_string().contains("`limits.code_memory`"), "{error}");
}

#[tokio::test]
async fn component_is_refused_until_other_code_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let first_bytes = code_bytes(directory.path(), one()).await;
    let other_bytes = code_bytes(directory.path(), other()).await;
    let small = sandbox(directory.path(), first_bytes + other_bytes - 1);
    let first = load_into(&small, one()).await.unwrap();
    refused(load_into(&small, other()).await, CODE_MEMORY);
    let again = load_into(&small, one()).await.unwrap();
    drop(first);
    refused(load_into(&small, other()).await, CODE_MEMORY);
    drop(again);
    assert_eq!(load_into(&small, other()).await.unwrap().info().nodes.len(), 1);
}

#[tokio::test]
async fn code_takes_the_same_memory_from_the_cache_as_after_its_compilation() {
    let directory = tempfile::tempdir().unwrap();
    let compiled = code_bytes(directory.path(), one()).await;
    let cached = code_bytes(directory.path(), one()).await;
    assert!(compiled > 1);
    assert_eq!(cached, compiled);
    load_into(&sandbox(directory.path(), compiled), one()).await.unwrap();
}

#[tokio::test]
async fn concurrent_loads_of_a_component_reserve_the_memory_of_its_code_once() {
    let directory = tempfile::tempdir().unwrap();
    let small = sandbox(directory.path(), code_bytes(directory.path(), one()).await);
    let (first, second) = tokio::join!(load_into(&small, one()), load_into(&small, one()));
    for plugin in [first.unwrap(), second.unwrap()] {
        assert_eq!(plugin.info().reducers.len(), 1);
    }
}

#[tokio::test]
async fn code_that_does_not_fit_is_compiled_only_once() {
    let directory = tempfile::tempdir().unwrap();
    refused(load_into(&sandbox(directory.path(), 1), one()).await, "limit");
    let files: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "its code is in the cache");
    refused(load_into(&sandbox(directory.path(), 1), one()).await, "limit");
    load_into(&sandbox(directory.path(), u64::MAX), one()).await.unwrap();
}

#[tokio::test]
async fn code_in_the_cache_that_does_not_fit_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    code_bytes(directory.path(), one()).await;
    let file = fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    let mut broken = fs::read(&file).unwrap();
    *broken.last_mut().unwrap() ^= 1;
    fs::write(&file, &broken).unwrap();
    refused(load_into(&sandbox(directory.path(), 1), one()).await, "limit");
    let kept = fs::read(&file).unwrap();
    assert!(kept == broken, "a host that reads the code compiles the component again");
}
