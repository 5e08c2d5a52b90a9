//! Many hosts on one PostgreSQL database.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::ProptestConfig;
use proptest::test_runner::TestRunner;
use serde_json::json;
use sqlx::{Connection as _, Executor as _, PgConnection};
use wattle_graph::id::ThreadId;
use wattle_graph::principal::Principal;
use wattle_kit::need;
use wattle_kit::needs::LeftOut;
use wattle_kit::postgres::Postgres;
use wattle_run::caller_id::CallerId;
use wattle_run::ports::Store;
use wattle_run::ports::store::{
    Batch, HostReport, LeaseHolder, Notification, QueueCondition, StoreError,
};
use wattle_store::{PostgresConfig, PostgresStore};

use crate::fixtures::{
    append, batch, checkpoint, create, event, events, id, list_delta, read, record, run_id, seqs,
    thread_id,
};
use crate::model::{replay_on, step};
use crate::proxy::{CommitFault, FAULT_MARKER, Proxy};

/// A server for one test. Each of its schemas is a store.
pub(crate) struct Server {
    pub(crate) postgres: Postgres,
}

impl Server {
    /// Starts a server. The test is left out if PostgreSQL is not installed.
    pub(crate) fn start() -> Result<Self, LeftOut> {
        Ok(Self { postgres: Postgres::for_test()? })
    }

    pub(crate) fn config(&self, schema: &str) -> PostgresConfig {
        PostgresConfig::new(self.postgres.url()).with_schema(schema)
    }

    /// Opens the store of a schema, as a host does.
    pub(crate) async fn store(&self, schema: &str) -> PostgresStore {
        PostgresStore::open(&self.config(schema)).await.unwrap()
    }

    /// Runs a statement as another client of the database.
    pub(crate) async fn execute_as_admin(&self, schema: &str, statement: &'static str) {
        let mut connection = PgConnection::connect(&self.postgres.url()).await.unwrap();
        let path = sqlx::AssertSqlSafe(format!("SET search_path TO {schema}"));
        connection.execute(path).await.unwrap();
        connection.execute(statement).await.unwrap();
    }
}

fn holder(name: &str) -> LeaseHolder {
    LeaseHolder(name.into())
}

/// Opens a store twice, as two hosts do.
async fn pair(server: &Server, schema: &str) -> (PostgresStore, PostgresStore) {
    (server.store(schema).await, server.store(schema).await)
}

#[tokio::test]
async fn hosts_share_threads_without_forks() {
    let server = need!(Server::start());
    // The checks run concurrently, each on a separate store, because most of their time is waiting.
    tokio::join!(
        two_hosts_do_not_fork_a_thread(&server),
        host_takes_over_an_expired_lease(&server),
        takeover_waits_for_a_write_in_progress(&server),
        lease_check_waits_for_a_concurrent_takeover(&server),
        released_lease_keeps_the_thread(&server),
        watch_receives_appends_of_another_host(&server),
        live_hosts_are_listed_with_their_reports(&server),
        notifications_reach_every_host(&server),
        host_continues_after_another_hosts_append(&server),
        stale_thread_cache_is_detected(&server),
        run_that_another_host_began_does_not_begin_again(&server),
        many_hosts_can_start_concurrently(&server),
        newer_format_is_refused(&server),
        verify_detects_changed_rows(&server),
        rejected_batch_does_not_fail_its_group(&server),
        check_writable_executes_a_write(&server),
        check_writable_waits_for_another_host(&server),
    );
}

async fn check_writable_executes_a_write(server: &Server) {
    let store = server.store("proof").await;
    let mut other = PgConnection::connect(&server.postgres.url()).await.unwrap();
    // The lock blocks writes, but not reads.
    other.execute("BEGIN; LOCK TABLE proof.format IN EXCLUSIVE MODE").await.unwrap();
    let error = store.check_writable().await.unwrap_err();
    assert!(matches!(error, StoreError::Backend { .. }), "{error}");
    assert!(error.to_string().contains("lock timeout"), "{error}");
    other.execute("COMMIT").await.unwrap();
    store.check_writable().await.unwrap();
}

async fn check_writable_waits_for_another_host(server: &Server) {
    let store = server.store("proofs").await;
    let mut other = PgConnection::connect(&server.postgres.url()).await.unwrap();
    other.execute("BEGIN; UPDATE proofs.format SET number = number").await.unwrap();
    let mut watch = PgConnection::connect(&server.postgres.url()).await.unwrap();
    let unlock = async {
        // A session that waits for a row has the lock of the tuple. The second attempt begins after
        // the lock timeout of the first attempt.
        let waiting = "SELECT query_start::text FROM pg_locks JOIN pg_stat_activity USING (pid)
            WHERE locktype = 'tuple' AND relation = 'proofs.format'::regclass";
        let mut attempts = BTreeSet::new();
        while attempts.len() < 2 {
            let seen: Vec<String> =
                sqlx::query_scalar(waiting).fetch_all(&mut watch).await.unwrap();
            attempts.extend(seen);
        }
        other.execute("COMMIT").await.unwrap();
    };
    let (checked, ()) = tokio::join!(store.check_writable(), unlock);
    checked.unwrap();
}

async fn two_hosts_do_not_fork_a_thread(server: &Server) {
    let (a, b) = pair(server, "forks").await;
    let thread = create(&a, "t").await;
    let tickets = [a.append(&thread, events(1, 1)).await, b.append(&thread, events(1, 2)).await];
    let mut won = 0;
    for ticket in tickets {
        match ticket.await {
            Ok(()) => won += 1,
            Err(error) => assert!(matches!(error, StoreError::Conflict { .. }), "{error}"),
        }
    }
    assert_eq!(won, 1);
    let seen = seqs(&a.events(&thread, 0, 9).await.unwrap());
    assert_eq!(seen, seqs(&b.events(&thread, 0, 9).await.unwrap()));
}

async fn host_takes_over_an_expired_lease(server: &Server) {
    let (a, b) = pair(server, "silence").await;
    let thread = create(&a, "t").await;
    let old = a.acquire_lease(&thread, &holder("a")).await.unwrap();
    let under = |epoch, first, last| Batch { epoch: Some(epoch), ..events(first, last) };
    append(&a, &thread, under(old, 1, 1)).await.unwrap();
    let error = b.acquire_lease(&thread, &holder("b")).await.unwrap_err();
    assert!(matches!(error, StoreError::Leased { holder, .. } if holder == "a"));
    let error = append(&b, &thread, events(2, 2)).await.unwrap_err();
    assert!(matches!(error, StoreError::Fenced { epoch: 0, .. }));
    server.execute_as_admin("silence", "UPDATE holders SET beat = beat - interval '16 s'").await;
    let new = b.acquire_lease(&thread, &holder("b")).await.unwrap();
    assert!(new > old);
    let error = append(&a, &thread, under(old, 2, 2)).await.unwrap_err();
    assert!(matches!(error, StoreError::Fenced { epoch, .. } if epoch == old.0));
    append(&b, &thread, under(new, 2, 2)).await.unwrap();
    a.heartbeat(&holder("a")).await.unwrap();
    a.release_lease(&thread, old).await.unwrap();
    append(&b, &thread, under(new, 3, 3)).await.unwrap();
    b.release_lease(&thread, new).await.unwrap();
    append(&a, &thread, events(4, 4)).await.unwrap();
}

/// The check waits for the takeover, so that the result is not outdated when the caller receives
/// it.
async fn lease_check_waits_for_a_concurrent_takeover(server: &Server) {
    let a = server.store("asked").await;
    let thread = create(&a, "t").await;
    let epoch = a.acquire_lease(&thread, &holder("a")).await.unwrap();
    assert!(a.is_lease_held(&thread, epoch).await.unwrap());
    let mut other = PgConnection::connect(&server.postgres.url()).await.unwrap();
    other.execute("SET search_path TO asked; BEGIN").await.unwrap();
    other.execute("UPDATE threads SET holder = 'b', epoch = nextval('epochs')").await.unwrap();
    let (checking, leased) = (a.clone(), thread.clone());
    let holds = tokio::spawn(async move { checking.is_lease_held(&leased, epoch).await });
    let mut watching = PgConnection::connect(&server.postgres.url()).await.unwrap();
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut watching).await.unwrap() == 0 {}
    other.execute("COMMIT").await.unwrap();
    assert!(!holds.await.unwrap().unwrap());
}

async fn released_lease_keeps_the_thread(server: &Server) {
    let (a, b) = pair(server, "given").await;
    let thread = thread_id("t");
    let epoch = a.acquire_lease(&thread, &holder("a")).await.unwrap();
    let begun = Batch { epoch: Some(epoch), record: Some(record(&thread)), ..events(1, 1) };
    let ticket = a.append(&thread, begun).await;
    a.release_lease(&thread, epoch).await.unwrap();
    ticket.await.unwrap();
    let epoch = b.acquire_lease(&thread, &holder("b")).await.unwrap();
    append(&b, &thread, Batch { epoch: Some(epoch), ..events(2, 2) }).await.unwrap();
    let empty = thread_id("empty");
    let epoch = a.acquire_lease(&empty, &holder("a")).await.unwrap();
    a.release_lease(&empty, epoch).await.unwrap();
    assert!(!a.is_lease_held(&empty, epoch).await.unwrap());
    b.acquire_lease(&empty, &holder("b")).await.unwrap();
}

/// A new lease holder sees everything that was written under the previous lease.
async fn takeover_waits_for_a_write_in_progress(server: &Server) {
    let (a, b) = pair(server, "handover").await;
    let thread = create(&a, "t").await;
    let old = a.acquire_lease(&thread, &holder("a")).await.unwrap();
    let mut tickets = Vec::new();
    for seq in 1..=50 {
        let batch = Batch { epoch: Some(old), ..events(seq, seq) };
        tickets.push(a.append(&thread, batch).await);
    }
    server.execute_as_admin("handover", "UPDATE holders SET beat = beat - interval '16 s'").await;
    b.acquire_lease(&thread, &holder("b")).await.unwrap();
    let seen = b.thread(&thread).await.unwrap().unwrap().last_seq;
    for (ticket, seq) in tickets.into_iter().zip(1..) {
        let fits = match ticket.await {
            Ok(()) => seq <= seen,
            Err(StoreError::Fenced { .. }) => seq > seen,
            Err(error) => panic!("{error}"),
        };
        assert!(fits, "event {seq}, while the new holder saw {seen}");
    }
    assert_eq!(b.thread(&thread).await.unwrap().unwrap().last_seq, seen);
}

async fn watch_receives_appends_of_another_host(server: &Server) {
    let (a, b) = pair(server, "news").await;
    let thread = create(&a, "t\0").await;
    let mut watch = b.watch(&thread);
    append(&a, &thread, events(1, 3)).await.unwrap();
    watch.wait_for(|seq| *seq == 3).await.unwrap();
    assert_eq!(seqs(&b.events(&thread, 0, 9).await.unwrap()), [1, 2, 3]);
    let mut late = b.watch(&thread);
    late.wait_for(|seq| *seq == 3).await.unwrap();
    // Closes the listening connections. Appends before the connections are restored are still
    // found.
    server
        .execute_as_admin(
            "news",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE query LIKE 'LISTEN%' AND pid <> pg_backend_pid()",
        )
        .await;
    append(&a, &thread, events(4, 4)).await.unwrap();
    watch.wait_for(|seq| *seq == 4).await.unwrap();
    a.delete_thread(&thread).await.unwrap();
    while watch.changed().await.is_ok() {}
}

async fn live_hosts_are_listed_with_their_reports(server: &Server) {
    let (a, b) = pair(server, "hosts").await;
    let report = |runs, is_stopping| HostReport {
        version: "1.2.3".into(),
        started_ms: 5,
        runs,
        max_runs: u32::MAX,
        is_stopping,
    };
    a.report(&holder("a"), &report(1, false)).await.unwrap();
    assert_eq!(b.hosts().await.unwrap(), [], "the host has sent no heartbeat");
    a.heartbeat(&holder("a")).await.unwrap();
    b.heartbeat(&holder("b")).await.unwrap();
    assert_eq!(b.hosts().await.unwrap(), [], "no host has reported");
    a.report(&holder("a"), &report(1, false)).await.unwrap();
    b.report(&holder("b"), &report(2, false)).await.unwrap();
    b.report(&holder("b"), &report(3, true)).await.unwrap();
    let mut hosts = a.hosts().await.unwrap();
    hosts.sort_by(|one, other| one.holder.cmp(&other.holder));
    let reports: Vec<_> = hosts.into_iter().map(|host| (host.holder, host.report)).collect();
    assert_eq!(reports, [(holder("a"), report(1, false)), (holder("b"), report(3, true))]);
    server
        .execute_as_admin(
            "hosts",
            "UPDATE holders SET beat = beat - interval '16 s' WHERE runs = 3",
        )
        .await;
    let left: Vec<_> = a.hosts().await.unwrap().into_iter().map(|host| host.holder).collect();
    assert_eq!(left, [holder("a")], "the other one has expired");
}

async fn notifications_reach_every_host(server: &Server) {
    let (a, b) = pair(server, "signals").await;
    let other_store = server.store("strangers").await;
    assert!(a.is_shared());
    let mut receivers = [a.notifications().unwrap(), b.notifications().unwrap()];
    let mut of_other_store = other_store.notifications().unwrap();
    let principal = Principal { user: Some("jane\"'".into()), ..Principal::default() };
    let cancel = Notification::Cancel { run: run_id("r\0"), principal: Some(principal) };
    let (thread, host) = (thread_id("t\0"), Some(holder("b")));
    let caller = CallerId::of_key("k");
    let enqueued = Notification::Enqueued { thread, due_ms: 7, caller, host };
    for notification in
        [cancel, Notification::Drain(run_id("r\0")), enqueued, Notification::HandedOver]
    {
        // A notification is lost while no host listens, so its sender repeats it.
        let send = async {
            loop {
                a.send_notification(&notification).await.unwrap();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let all_receive = async {
            for receiver in &mut receivers {
                while receiver.recv().await.unwrap() != notification {}
            }
        };
        let received = tokio::time::timeout(Duration::from_secs(30), all_receive);
        tokio::select! {
            () = send => {}
            result = received => result.unwrap(),
        }
    }
    assert!(of_other_store.try_recv().is_err(), "another store has other runs");
}

async fn host_continues_after_another_hosts_append(server: &Server) {
    let (a, b) = pair(server, "turns").await;
    let thread = create(&a, "t").await;
    let hosts = [&a, &b];
    let mut items = Vec::new();
    for n in 1..=20_u64 {
        items.push(json!({ "item": n }));
        let mut next = checkpoint(
            n,
            (n > 1).then(|| n - 1),
            &[("list", json!(items))],
            if n > 1 { &[("first", 1)] } else { &[] },
        );
        if n == 1 {
            next = checkpoint(1, None, &[("list", json!(items)), ("first", json!("a"))], &[]);
        } else {
            next.list_deltas.extend([list_delta("list", n - 1, n as u32 - 1)]);
        }
        append(hosts[(n / 3) as usize % 2], &thread, batch(next)).await.unwrap();
    }
    for host in hosts {
        for n in [1, 7, 20] {
            let state = read(host, &thread, Some(n)).await.unwrap().checkpoint.state();
            assert_eq!(state, json!({ "first": "a", "list": items[..n as usize] }));
        }
        assert!(host.verify(&thread).await.unwrap().unwrap().seal.is_some());
    }
}

/// A host that has just acquired the lease has not read the runs of the thread.
async fn run_that_another_host_began_does_not_begin_again(server: &Server) {
    let (a, b) = pair(server, "again").await;
    let thread = create(&a, "t").await;
    let begins = |epoch, seq, name: &str| Batch {
        epoch: Some(epoch),
        run: Some(crate::fixtures::run(&thread, name)),
        queue_condition: QueueCondition::Free,
        ..events(seq, seq)
    };
    let epoch = a.acquire_lease(&thread, &holder("a")).await.unwrap();
    append(&a, &thread, begins(epoch, 1, "r")).await.unwrap();
    a.release_lease(&thread, epoch).await.unwrap();
    let epoch = b.acquire_lease(&thread, &holder("b")).await.unwrap();
    let error = append(&b, &thread, begins(epoch, 2, "r")).await.unwrap_err();
    assert!(matches!(error, StoreError::OutOfTurn { .. }), "{error}");
    append(&b, &thread, begins(epoch, 2, "other")).await.unwrap();
    assert_eq!(seqs(&a.events(&thread, 0, 9).await.unwrap()), [1, 2]);
}

/// A writer appends with its cached state of a thread. The server detects a stale state.
async fn stale_thread_cache_is_detected(server: &Server) {
    let (a, b) = pair(server, "belief").await;
    let thread = create(&a, "t").await;
    let under = |epoch, seq| Batch { epoch: Some(epoch), ..events(seq, seq) };
    let old = a.acquire_lease(&thread, &holder("a")).await.unwrap();
    append(&a, &thread, under(old, 1)).await.unwrap();
    append(&a, &thread, under(old, 2)).await.unwrap();
    let error = append(&a, &thread, under(old, 2)).await.unwrap_err();
    assert!(matches!(error, StoreError::Conflict { newest: 2, .. }), "{error}");
    append(&a, &thread, under(old, 3)).await.unwrap();
    a.release_lease(&thread, old).await.unwrap();
    // Another host appends, and deletes the thread.
    let new = b.acquire_lease(&thread, &holder("b")).await.unwrap();
    append(&b, &thread, under(new, 4)).await.unwrap();
    let error = append(&a, &thread, under(old, 4)).await.unwrap_err();
    assert!(matches!(error, StoreError::Fenced { .. }), "{error}");
    b.release_lease(&thread, new).await.unwrap();
    b.delete_thread(&thread).await.unwrap();
    let newest = a.acquire_lease(&thread, &holder("a")).await.unwrap();
    let record = Some(record(&thread));
    append(&a, &thread, Batch { record, ..under(newest, 1) }).await.unwrap();
    // The other host deletes the thread again, while this host has the lease.
    b.delete_thread(&thread).await.unwrap();
    let error = append(&a, &thread, under(newest, 2)).await.unwrap_err();
    assert!(matches!(error, StoreError::Conflict { newest: 0, .. }), "{error}");
    // A run of another thread is refused, whether the cache contains the run or not.
    let other = create(&b, "other").await;
    let run = Some(crate::fixtures::run(&other, "r"));
    append(&b, &other, Batch { run: run.clone(), ..Batch::default() }).await.unwrap();
    let record = Some(crate::fixtures::record(&thread));
    append(&a, &thread, Batch { record, ..under(newest, 1) }).await.unwrap();
    let error = append(&a, &thread, Batch { run, ..under(newest, 2) }).await.unwrap_err();
    assert!(error.to_string().contains("other"), "{error}");
    append(&a, &thread, under(newest, 2)).await.unwrap();
    assert_eq!(seqs(&b.events(&thread, 0, 9).await.unwrap()), [1, 2]);
    b.verify(&thread).await.unwrap().unwrap();
}

async fn many_hosts_can_start_concurrently(server: &Server) {
    let starts = (0..8).map(|_| server.store("crowd"));
    let hosts = futures::future::join_all(starts).await;
    create(&hosts[0], "t").await;
    assert!(hosts[7].thread(&thread_id("t")).await.unwrap().is_some());
}

async fn newer_format_is_refused(server: &Server) {
    server.store("newer").await;
    server.execute_as_admin("newer", "UPDATE format SET number = 77").await;
    let error = PostgresStore::open(&server.config("newer")).await.unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { found: 77, .. }), "{error}");
    assert!(error.to_string().contains("schema `newer`"), "{error}");
}

async fn verify_detects_changed_rows(server: &Server) {
    const CHANGES: [&str; 7] = [
        "UPDATE batches SET events = (SELECT events FROM batches WHERE place = 3) WHERE place = 2",
        "UPDATE batches SET base = NULL WHERE place = 2",
        "UPDATE batches SET namespace = 'x' WHERE place = 1",
        "UPDATE channel_values SET value = '\\x0031' WHERE place = 1",
        "UPDATE channel_values SET version = 7 WHERE place = 1",
        "DELETE FROM batches WHERE place = 2",
        "DELETE FROM batches WHERE place = 3",
    ];
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    for change in CHANGES {
        let schema = format!("change_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let store = server.store(&schema).await;
        let thread = create(&store, "t").await;
        append(&store, &thread, batch(checkpoint(1, None, &[("x", json!("a"))], &[])))
            .await
            .unwrap();
        for seq in [1, 2] {
            let batch = Batch { base: Some(id(1)), ..events(seq, seq) };
            append(&store, &thread, batch).await.unwrap();
        }
        store.verify(&thread).await.unwrap();
        server.execute_as_admin(&schema, change).await;
        let error = store.verify(&thread).await.unwrap_err();
        assert!(matches!(error, StoreError::Broken { .. }), "{change}: {error}");
    }
}

/// If the server rejects a row of one batch, the other batches of the group are written.
async fn rejected_batch_does_not_fail_its_group(server: &Server) {
    let store = server.store("refused").await;
    server
        .execute_as_admin(
            "refused",
            "ALTER TABLE threads ADD CHECK (updated_ms IS DISTINCT FROM 13)",
        )
        .await;
    let threads: Vec<ThreadId> = (0..40).map(|n| thread_id(&format!("t{n}"))).collect();
    let mut tickets = Vec::new();
    for (n, thread) in (0..).zip(&threads) {
        let mut record = record(thread);
        record.updated_ms = n;
        let batch = Batch { record: Some(record), ..events(1, 1) };
        tickets.push(store.append(thread, batch).await);
    }
    for (n, ticket) in tickets.into_iter().enumerate() {
        let answer = ticket.await;
        assert_eq!(answer.is_ok(), n != 13, "{n}: {answer:?}");
    }
    assert!(store.thread(&threads[13]).await.unwrap().is_none());
}

#[tokio::test]
async fn server_restart_loses_and_repeats_nothing() {
    let server = need!(Server::start());
    let store = server.store("restart").await;
    let thread = create(&store, "t").await;
    append(&store, &thread, events(1, 1)).await.unwrap();
    server.postgres.crash().unwrap();
    let (writing, reading) = (store.clone(), store.clone());
    let (to_write, to_read) = (thread.clone(), thread.clone());
    let written = tokio::spawn(async move { append(&writing, &to_write, events(2, 2)).await });
    let read = tokio::spawn(async move { reading.events(&to_read, 0, 9).await });
    let restart = tokio::task::spawn_blocking(move || {
        server.postgres.restart().unwrap();
        server
    });
    let _server = restart.await.unwrap();
    written.await.unwrap().unwrap();
    read.await.unwrap().unwrap();
    assert_eq!(seqs(&store.events(&thread, 0, 9).await.unwrap()), [1, 2]);
    let mut watch = store.watch(&thread);
    append(&store, &thread, events(3, 3)).await.unwrap();
    let news = watch.wait_for(|seq| *seq == 3);
    tokio::time::timeout(Duration::from_secs(30), news).await.unwrap().unwrap();
}

#[tokio::test]
async fn in_doubt_commit_is_applied_once() {
    let server = need!(Server::start());
    let proxy = Proxy::start(server.postgres.port()).await;
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port);
    let store = PostgresStore::open(&PostgresConfig::new(url)).await.unwrap();
    let thread = create(&store, "t").await;
    for (seq, fault) in
        [(1, CommitFault::ReplyLost), (2, CommitFault::CommitLost), (3, CommitFault::ReplyLost)]
    {
        proxy.next(fault);
        append(&store, &thread, events(seq, seq)).await.unwrap();
    }
    assert_eq!(seqs(&store.events(&thread, 0, 9).await.unwrap()), [1, 2, 3]);
    store.verify(&thread).await.unwrap();
}

#[tokio::test]
async fn in_doubt_statement_is_applied_once() {
    let server = need!(Server::start());
    let proxy = Proxy::start(server.postgres.port()).await;
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port);
    let store = PostgresStore::open(&PostgresConfig::new(url)).await.unwrap();
    let thread = create(&store, "t").await;
    let epoch = Some(store.acquire_lease(&thread, &holder("a")).await.unwrap());
    append(&store, &thread, Batch { epoch, ..events(1, 1) }).await.unwrap();
    for (seq, fault) in
        [(2, CommitFault::ReplyLost), (3, CommitFault::CommitLost), (4, CommitFault::ReplyLost)]
    {
        // Prepares the statement on the new connection.
        append(&store, &thread, Batch { epoch, ..events(seq * 2 - 2, seq * 2 - 2) }).await.unwrap();
        proxy.next(fault);
        let events = vec![event(seq * 2 - 1, json!(FAULT_MARKER))].into();
        append(&store, &thread, Batch { epoch, events, ..Batch::default() }).await.unwrap();
        assert!(proxy.has_fired(), "{seq}");
    }
    let all = seqs(&store.events(&thread, 0, 99).await.unwrap());
    assert_eq!(all, (1..=7).collect::<Vec<_>>());
    store.verify(&thread).await.unwrap();
}

/// See the module `model`.
#[test]
fn random_histories_match_the_in_memory_store() {
    let server = need!(Server::start());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig { cases: 12, failure_persistence: None, ..Default::default() };
    let number = AtomicUsize::new(0);
    let played = TestRunner::new(config).run(&vec(step(), 1..50), |steps| {
        let schema = format!("model_{}", number.fetch_add(1, Ordering::Relaxed));
        runtime.block_on(async { replay_on(steps, &server.store(&schema).await).await })
    });
    played.unwrap();
}
