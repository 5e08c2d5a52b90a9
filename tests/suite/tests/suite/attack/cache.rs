//! Compiled code that somebody changed while the host was down.

use std::fs;

use wattle_suite::attack::host::Prepared;
use wattle_suite::binary;

use super::calm;

#[tokio::test]
async fn compiled_code_that_was_changed_is_never_run() {
    let prepared = Prepared::new().await.unwrap();
    let cache = prepared.place.data().join("cache");
    // A cache of its own in place of the one that tests share.
    fs::remove_file(&cache).unwrap();
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
    assert!(before.len() >= 2, "two guests are kept");
    // One has other bytes, another the code of its neighbor.
    let mut changed = before[0].clone();
    let middle = changed.len() / 2;
    changed[middle..].fill(0);
    fs::write(&kept()[0], changed).unwrap();
    fs::write(&kept()[1], &before[0]).unwrap();

    let host = prepared.start(&binary::path()).await.unwrap();
    calm::all_is_calm(&host.honest).await;
    let (_, problems) = host.get("/api/v1/problems").await.unwrap();
    assert_eq!(problems, serde_json::json!([]), "nothing is refused, since it is compiled again");
    let after: Vec<Vec<u8>> = kept().iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(after == before, "what was changed is replaced");
    host.terminate().await.unwrap();
}
