//! Compiled code that an attacker changed while the host was down.

use std::fs;

use wattle_suite::attack::host::Prepared;
use wattle_suite::binary;

use super::calm;

#[tokio::test]
async fn changed_compiled_code_is_never_executed() {
    let prepared = Prepared::new().await.unwrap();
    prepared.unshare_compiled_code().unwrap();
    let cache = prepared.workspace.code_cache();
    let host = prepared.start(&binary::path()).await.unwrap();
    calm::all_is_calm(&host.honest).await;
    let prepared = host.kill().await.unwrap();

    let kept = || -> Vec<_> {
        let files = fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = files.filter(|path| path.is_file()).collect();
        files.sort();
        files
    };
    let before: Vec<Vec<u8>> = kept().iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(before.len() >= 2, "two guests are cached");
    // One file gets other bytes, another one the code of its neighbor.
    let mut changed = before[0].clone();
    let middle = changed.len() / 2;
    changed[middle..].fill(0);
    fs::write(&kept()[0], changed).unwrap();
    fs::write(&kept()[1], &before[0]).unwrap();

    let host = prepared.start(&binary::path()).await.unwrap();
    calm::all_is_calm(&host.honest).await;
    let (_, problems) = host.get("/api/v1/problems").await.unwrap();
    assert_eq!(problems, serde_json::json!([]), "changed code is compiled again and not refused");
    let after: Vec<Vec<u8>> = kept().iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(after == before, "the changed files are replaced");
    host.terminate().await.unwrap();
}
