//! Hosts and their loads.

use serde_json::{Value, json};
use wattle_kit::need;
use wattle_kit::postgres::Postgres;

use crate::fixture::{BRIEF_STOP, Fixture, write_app};
use crate::native_sandbox::SLOW;

/// Requests a run on a thread.
async fn ask(fixture: &Fixture, thread: &str, name: &str) -> Value {
    let body = json!({ "input": { "name": name }, "thread_id": thread });
    let (status, run) = fixture.post("/api/v1/apps/greeter/runs", &body).await;
    assert_eq!(status, 202, "{run}");
    run
}

fn id(run: &Value) -> &str {
    run["run"].as_str().unwrap()
}

async fn hosts(fixture: &Fixture) -> Vec<Value> {
    let (status, hosts) = fixture.get("/api/v1/hosts").await;
    assert_eq!(status, 200, "{hosts}");
    hosts.as_array().unwrap().clone()
}

#[tokio::test]
async fn a_host_reports_its_version_and_its_load() {
    let fixture = Fixture::start(&format!("{BRIEF_STOP}[limits]\nruns = 7\n")).await;
    ask(&fixture, "a", SLOW).await;
    let hosts = hosts(&fixture).await;
    let [host] = hosts.as_slice() else { panic!("{hosts:?}") };
    assert_eq!((&host["is_this"], &host["status"]), (&json!(true), &json!("running")), "{host}");
    assert_eq!((&host["runs"], &host["max_runs"]), (&json!(1), &json!(7)), "{host}");
    assert_eq!(host["version"], env!("CARGO_PKG_VERSION"));
    assert!(host["started_ms"].is_i64() && host["host"].is_string(), "{host}");
    fixture.server.shutdown().await;
}

#[tokio::test]
async fn a_run_above_the_maximum_is_pending_until_another_one_ends() {
    let fixture = Fixture::start(&format!("{BRIEF_STOP}[limits]\nruns = 2\n")).await;
    let first = ask(&fixture, "a", SLOW).await;
    let second = ask(&fixture, "b", SLOW).await;
    let third = ask(&fixture, "c", "Ada").await;
    let statuses = [&first, &second, &third].map(|run| run["status"].clone());
    assert_eq!(statuses, [json!("running"), json!("running"), json!("pending")]);
    let path = format!("/api/v1/runs/{}/wait", id(&third));
    let cancel = format!("/api/v1/runs/{}/cancel", id(&first));
    let empty = json!({});
    let (third, cancelled) = tokio::join!(fixture.get(&path), fixture.post(&cancel, &empty));
    assert_eq!(cancelled.0, 202);
    assert_eq!(third.1["state"]["greeting"], "hello Ada", "{third:?}");
    fixture.server.shutdown().await;
}

#[tokio::test]
async fn hosts_on_one_postgresql_list_each_other() {
    let postgres = need!(Postgres::for_test());
    let toml = format!("[store]\nurl = \"{}\"\n", postgres.url());
    let (one, two) = (on_postgres(&toml).await, on_postgres(&toml).await);
    loop {
        let (of_one, of_two) = (hosts(&one).await, hosts(&two).await);
        if of_one.len() == 2 && of_two.len() == 2 {
            let names =
                |hosts: &[Value]| hosts.iter().map(|it| it["host"].clone()).collect::<Vec<_>>();
            assert_eq!(names(&of_one), names(&of_two), "in one order");
            break;
        }
        tokio::task::yield_now().await;
    }
    two.server.shutdown().await;
    loop {
        let hosts = hosts(&one).await;
        if hosts.iter().all(|host| host["is_this"] == true || host["status"] == "stopping") {
            break;
        }
        tokio::task::yield_now().await;
    }
    one.server.shutdown().await;
}

/// Starts a host with the PostgreSQL store of a configuration.
pub(crate) async fn on_postgres(toml: &str) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let mut config = crate::fixture::config(folder.path(), toml);
    config.store.kind = wattle::config::StoreKind::Postgres;
    let server = wattle::server::Server::start(config, crate::fixture::options()).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    Fixture { server, client, folder }
}
