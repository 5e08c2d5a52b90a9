//! The time that runs wait for the store, over HTTP.

use serde_json::{Value, json};
use wattle::config::StoreKind;
use wattle::server::Server;

use crate::fixture::{answer, config, options};
use crate::native_sandbox::KNOWN;
use crate::plugins::{READS, write_reader};

#[tokio::test]
async fn calls_and_supersteps_have_the_time_that_they_waited_for_the_store() {
    let folder = tempfile::tempdir().unwrap();
    write_reader(&folder.path().join("plugins"));
    let mut config = config(folder.path(), &format!("[grants.greeter]\n{READS}\n"));
    config.store.kind = StoreKind::Redb;
    let server = Server::start(config, options()).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let start = |thread: &str, durability: &str| {
        let body = json!({ "input": { "name": KNOWN }, "thread_id": thread, "wait": true,
            "options": { "durability": durability } });
        client.post(format!("{}/api/v1/apps/greeter/runs", server.url())).json(&body)
    };
    // Returns the events of a thread with a type.
    let events = async |thread: &str, name: &str| {
        let query = format!("outline=true&types={name}");
        let url = format!("{}/api/v1/threads/{thread}/log?{query}", server.url());
        let (_, page) = answer(client.get(url)).await;
        page["items"].as_array().unwrap().clone()
    };
    for durability in ["sync", "commit"] {
        let (status, run) = answer(start(durability, durability)).await;
        assert_eq!((status, &run["status"]), (200, &json!("interrupted")), "{run}");
        let calls = events(durability, "called").await;
        let read = calls.iter().find(|it| it["function"] == "memory.get").unwrap();
        assert!(read["store_us"].as_u64().unwrap() > 0, "{read}");
    }
    let between = async |thread: &str| events(thread, "run_ended").await[0]["store_us"].clone();
    assert!(between("sync").await.as_u64().unwrap() > 0);
    assert_eq!(between("commit").await, Value::Null, "only `sync` waits between supersteps");
    server.shutdown().await;
}
