//! Statistics of runs and configured models over HTTP: counts, restarts, hosts, tenants.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wattle::config::StoreKind;
use wattle::server::Server;
use wattle_kit::need;
use wattle_kit::postgres::Postgres;

use crate::fixture::{Fixture, answer, config, options, write_app};
use crate::hosts::on_postgres;
use crate::lists::serve_tenants;

const STATISTICS: &str = "/api/v1/statistics";

async fn run(fixture: &Fixture, name: &str) {
    let body = json!({ "input": { "name": name }, "wait": true });
    let (status, run) = fixture.post("/api/v1/apps/greeter/runs", &body).await;
    assert_eq!(status, 200, "{run}");
}

async fn get(fixture: &Fixture, query: &str) -> Value {
    let (status, report) = fixture.get(&format!("{STATISTICS}?{query}")).await;
    assert_eq!(status, 200, "{report}");
    report
}

/// Returns the number of runs in all series of a report.
fn runs(report: &Value) -> u64 {
    let series = report["series"].as_array().unwrap().iter();
    let of = |series: &Value| {
        let runs = series["total"]["runs"].as_object().unwrap();
        runs.values().map(|count| count.as_u64().unwrap()).sum::<u64>()
    };
    series.map(of).sum()
}

/// Reads statistics until `expected` runs are counted, because a host counts a run only shortly
/// after its end.
async fn counted(fixture: &Fixture, query: &str, expected: u64) -> Value {
    loop {
        let report = get(fixture, query).await;
        if runs(&report) == expected {
            return report;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn ended_runs_are_counted_by_status_and_app() {
    let fixture = Fixture::start("").await;
    run(&fixture, "Ada").await;
    run(&fixture, "nobody").await;
    let report = counted(&fixture, "by=app", 2).await;
    let series = &report["series"][0];
    assert_eq!((&series["name"], &series["is_other"]), (&json!("greeter"), &json!(false)));
    let expected = json!({ "completed": 0, "interrupted": 1, "failed": 1, "cancelled": 0 });
    assert_eq!(series["total"]["runs"], expected, "{report}");
    // The app chose the failure code, so the code is counted as `other`.
    assert_eq!(series["total"]["failures"], json!({ "other": 1 }));
    assert_eq!((&report["step"], &report["is_complete"]), (&json!("hour"), &json!(true)));
    for (query, expected) in [
        ("step=minute", 2),
        ("step=day&app=greeter", 2),
        ("app=other", 0),
        ("tenant=acme", 0),
        ("tenant=*&by=tenant", 2),
        ("by=model", 0),
        ("to_ms=1", 0),
    ] {
        assert_eq!(runs(&get(&fixture, query).await), expected, "{query}");
    }
    for (query, detail) in [
        ("step=week", "unknown variant"),
        ("by=graph", "unknown variant"),
        ("limit=1", "unknown field"),
        ("from_ms=0&step=minute", "choose a longer `step`"),
        ("from_ms=2&to_ms=1&step=day&tenant=a/b", "a tenant's name"),
        ("from_ms=90000000&to_ms=1&step=day", "`from_ms` is after `to_ms`"),
    ] {
        let (status, problem) = fixture.get(&format!("{STATISTICS}?{query}")).await;
        assert_eq!((status, &problem["code"]), (400, &json!("invalid")), "{query}");
        assert!(problem["detail"].as_str().unwrap().contains(detail), "{query}: {problem}");
    }
}

#[tokio::test]
async fn counts_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let mut config = config(folder.path(), "");
    config.store.kind = StoreKind::Redb;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for starts in 1..=3 {
        let server = Server::start(config.clone(), options()).await.unwrap();
        let url = format!("{}/api/v1/apps/greeter/runs", server.url());
        let body = json!({ "input": { "name": "Ada" }, "wait": true });
        assert_eq!(answer(client.post(url).json(&body)).await.0, 200);
        // A stop writes all counts that are not written yet.
        server.shutdown().await;
        let server = Server::start(config.clone(), options()).await.unwrap();
        for step in ["minute", "hour", "day"] {
            let url = format!("{}{STATISTICS}?step={step}", server.url());
            let (status, report) = answer(client.get(url)).await;
            assert_eq!((status, runs(&report)), (200, starts), "{step}");
        }
        server.shutdown().await;
    }
}

#[tokio::test]
async fn counts_of_hosts_on_one_postgresql_are_added() {
    let postgres = need!(Postgres::for_test());
    let toml = format!("[store]\nurl = \"{}\"\n", postgres.url());
    let (one, two) = (on_postgres(&toml).await, on_postgres(&toml).await);
    for fixture in [&one, &one, &two] {
        run(fixture, "Ada").await;
    }
    loop {
        let (of_one, of_two) = (get(&one, "").await, get(&two, "").await);
        if (runs(&of_one), runs(&of_two)) == (3, 3) {
            assert_eq!(of_one["series"], of_two["series"]);
            break;
        }
        tokio::task::yield_now().await;
    }
    two.server.shutdown().await;
    one.server.shutdown().await;
}

#[tokio::test]
async fn another_tenant_sees_no_statistics() {
    let fixture = serve_tenants().await;
    let get = |key: &'static str, tenant: Option<&'static str>, query: &str| {
        let url = fixture.url(&format!("{STATISTICS}?{query}"));
        let request = fixture.client.get(url).header("x-api-key", key);
        answer(tenant.into_iter().fold(request, |it, tenant| it.header("x-tenant", tenant)))
    };
    while runs(&get("k-operator", None, "tenant=*").await.1) < 2 {
        tokio::task::yield_now().await;
    }
    for (key, header, query, found) in [
        ("k-acme", None, "", Ok(1)),
        ("k-acme", None, "by=app&tenant=acme", Ok(1)),
        ("k-acme", None, "tenant=globex", Err(403)),
        ("k-acme", None, "tenant=*", Err(403)),
        ("k-acme", None, "by=tenant", Err(403)),
        ("k-globex", None, "step=day", Ok(1)),
        ("k-operator", Some("acme"), "", Ok(1)),
        ("k-operator", Some("other"), "", Ok(0)),
        ("k-operator", None, "tenant=globex", Ok(1)),
        ("k-operator", None, "tenant=*&by=tenant", Ok(2)),
        // A request of a proxy that does not name a tenant is refused, and does not get the
        // statistics of all tenants.
        ("k-operator", None, "", Err(401)),
    ] {
        let name = format!("{key} {header:?} {query}");
        let (status, report) = get(key, header, query).await;
        assert_eq!(status, found.err().unwrap_or(200), "{name}: {report}");
        if let Ok(found) = found {
            assert_eq!(runs(&report), found, "{name}: {report}");
        }
    }
    let (_, all) = get("k-operator", None, "tenant=*&by=tenant").await;
    let names = all["series"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap());
    assert_eq!(names.collect::<BTreeSet<_>>(), BTreeSet::from(["acme", "globex"]));
}

#[tokio::test]
async fn models_are_listed_with_their_prices() {
    let toml = "[model.providers.one]\nkind = \"openai\"\n\
                [model.routes.chat]\nprovider = \"one\"\nmodel = \"old\"\n\
                fallbacks = [{ provider = \"one\", model = \"small\" }]\n\
                [model.aliases]\nold = { model = \"new\" }\n\
                [model.prices]\nnew = { input = 0.5, output = 2.0 }\n";
    let fixture = Fixture::start(toml).await;
    let expected = json!({
        "routes": { "chat": { "models": ["old", "new", "small"] } },
        "prices": { "new": { "input": 0.5, "output": 2.0 } },
    });
    assert_eq!(fixture.get("/api/v1/models").await, (200, expected));
}
