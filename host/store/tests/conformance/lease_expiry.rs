//! Expired leases, as the other hosts of a store see them.

use std::time::Duration;

use serde_json::json;
use wattle_kit::need;
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, LeaseHolder, StoreError, ThreadRecord};
use wattle_store::PostgresStore;

use crate::fixtures::{append, create, events, record};
use crate::postgres::Server;

const MINUTE: Duration = Duration::from_mins(1);

fn holder(name: &str) -> LeaseHolder {
    LeaseHolder(name.into())
}

fn running(record: ThreadRecord) -> ThreadRecord {
    let status = serde_json::from_value(json!("running")).unwrap();
    ThreadRecord { status, ..record }
}

#[tokio::test]
async fn lease_duration_is_per_host() {
    let server = need!(Server::start());
    runs_of_dead_hosts_are_listed(&server).await;
    old_schema_has_leases_of_fifteen_seconds(&server).await;
    invalid_lease_duration_is_refused(&server).await;
}

async fn runs_of_dead_hosts_are_listed(server: &Server) {
    let config = server.config("cut").with_lease(MINUTE);
    let a = PostgresStore::open(&config).await.unwrap();
    let b = server.store("cut").await;
    assert_eq!(b.next_lease_expiry(&holder("b")).await.unwrap(), None, "no other host is live");
    let thread = create(&a, "t").await;
    create(&a, "idle").await;
    let epoch = a.acquire_lease(&thread, &holder("a")).await.unwrap();
    let batch =
        Batch { epoch: Some(epoch), record: Some(running(record(&thread))), ..events(1, 1) };
    append(&a, &thread, batch).await.unwrap();
    b.heartbeat(&holder("b")).await.unwrap();
    let lapse = b.next_lease_expiry(&holder("b")).await.unwrap().unwrap();
    assert!(lapse > MINUTE / 2 && lapse <= MINUTE, "{lapse:?}");
    assert_eq!(b.orphaned_threads(&holder("b"), None).await.unwrap(), []);

    // The lease of A is still valid, but would have expired with the lease duration of B.
    let silent = "UPDATE holders SET beat = beat - interval '20 s' WHERE holder = 'a'";
    server.execute_as_admin("cut", silent).await;
    let error = b.acquire_lease(&thread, &holder("b")).await.unwrap_err();
    assert!(matches!(error, StoreError::Leased { .. }), "{error}");
    assert_eq!(b.orphaned_threads(&holder("b"), None).await.unwrap(), []);

    let silent = "UPDATE holders SET beat = beat - interval '41 s' WHERE holder = 'a'";
    server.execute_as_admin("cut", silent).await;
    assert_eq!(b.next_lease_expiry(&holder("b")).await.unwrap(), None);
    let cut = b.orphaned_threads(&holder("b"), None).await.unwrap().into_iter();
    let cut: Vec<_> = cut.map(|it| it.thread).collect();
    assert_eq!(cut, std::slice::from_ref(&thread));
    b.acquire_lease(&thread, &holder("b")).await.unwrap();
    assert_eq!(b.orphaned_threads(&holder("a"), None).await.unwrap(), []);
    let own = b.orphaned_threads(&holder("b"), None).await.unwrap().into_iter();
    let own: Vec<_> = own.map(|it| it.thread).collect();
    assert_eq!(
        own,
        std::slice::from_ref(&thread),
        "a host that restarts under its name recovers its own runs"
    );
    let error = append(&a, &thread, Batch { epoch: Some(epoch), ..events(2, 2) }).await;
    assert!(matches!(error, Err(StoreError::Fenced { .. })), "{error:?}");
}

async fn old_schema_has_leases_of_fifteen_seconds(server: &Server) {
    let old = server.store("before").await;
    let thread = create(&old, "t").await;
    old.acquire_lease(&thread, &holder("old")).await.unwrap();
    let back = "DROP VIEW living;
                DROP INDEX threads_running, threads_by_status, threads_by_tenant,
                    threads_by_number, runs_by_place;
                ALTER TABLE holders DROP COLUMN lease_ms, DROP COLUMN version,
                    DROP COLUMN started_ms, DROP COLUMN runs, DROP COLUMN max_runs,
                    DROP COLUMN stopping;
                ALTER TABLE runs DROP COLUMN due_ms, DROP COLUMN caller;
                ALTER TABLE threads DROP COLUMN pending, DROP COLUMN ledger;
                UPDATE format SET number = 2;
                UPDATE holders SET beat = beat - interval '12 s'";
    server.execute_as_admin("before", back).await;
    let new = server.store("before").await;
    let error = new.acquire_lease(&thread, &holder("new")).await.unwrap_err();
    assert!(matches!(error, StoreError::Leased { .. }), "{error}");
    server.execute_as_admin("before", "UPDATE holders SET beat = beat - interval '3 s'").await;
    new.acquire_lease(&thread, &holder("new")).await.unwrap();
}

async fn invalid_lease_duration_is_refused(server: &Server) {
    for lease in [Duration::ZERO, Duration::from_secs(1), Duration::from_hours(2)] {
        let error = PostgresStore::open(&server.config("refused").with_lease(lease)).await;
        let text = error.unwrap_err().to_string();
        assert!(text.contains("from 2 to 3600 seconds"), "{text}");
    }
}
