//! Webhooks that several hosts could deliver.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use wattle_kit::gates::{Gates, Held};
use wattle_run::ports::memory::MemoryScope;

use super::crons::{HOUR_MS, count, hourly, on_thread};
use super::{LEASE_MS, NOW_MS, SharedState, create_run, executions, run_until_idle, slow};
use crate::host::Host;
use crate::webhooks::{HOOK, Receiver};

fn run_with_webhook(word: &str) -> Value {
    let mut run = slow(word);
    run["webhook"] = json!(HOOK);
    run
}

fn common(receiver: &Arc<Receiver>) -> SharedState {
    SharedState::with_net(receiver.clone())
}

#[tokio::test]
async fn webhook_of_a_dead_host_is_taken_over() {
    let receiver = Receiver::new(&[]);
    let common = common(&receiver);
    let hosts = [common.host().await, common.host().await, common.host().await];
    let [one, two, three] = &hosts;
    one.hold();
    let thread = one.thread().await;
    let place = create_run(one, &thread, run_with_webhook("a")).await;
    one.wait_for_started(1).await;
    one.stop();
    two.server.reconcile().await;
    common.clock.advance(LEASE_MS);
    tokio::join!(two.server.reconcile(), three.server.reconcile());
    one.release.send_replace(true);
    two.get(&format!("{place}/join")).await.ok();
    let message = receiver.got(1).await.remove(0);
    assert_eq!(message.body()["values"]["items"], json!(["a"]));
    // The webhook of a later run arrives after any duplicate of the first webhook.
    tokio::join!(two.server.reconcile(), three.server.reconcile());
    let thread = two.thread().await;
    create_run(two, &thread, run_with_webhook("b")).await;
    let got = receiver.got(2).await;
    assert_eq!(got[1].body()["values"]["items"], json!(["b"]));
    assert_eq!(got.len(), 2, "only one of both hosts delivers the webhook");
}

#[tokio::test]
async fn webhook_is_taken_over_again_after_a_second_crash() {
    let receiver = Receiver::new(&[]);
    let common = common(&receiver);
    let hosts = [common.host().await, common.host().await, common.host().await];
    let [one, two, three] = &hosts;
    one.hold();
    let thread = one.thread().await;
    create_run(one, &thread, run_with_webhook("a")).await;
    one.wait_for_started(1).await;
    one.stop();
    common.clock.advance(LEASE_MS);
    two.server.reconcile().await;
    two.stop();
    common.clock.advance(LEASE_MS - 1);
    three.server.reconcile().await;
    common.clock.advance(1);
    three.server.reconcile().await;
    one.release.send_replace(true);
    let message = receiver.got(1).await.remove(0);
    assert_eq!(message.body()["values"]["items"], json!(["a"]));
}

#[tokio::test]
async fn host_that_counts_as_dead_delivers_no_webhook() {
    let receiver = Receiver::new(&[]);
    let common = common(&receiver);
    let (one, two) = (common.host().await, common.host().await);
    one.hold();
    let thread = one.thread().await;
    let place = create_run(&one, &thread, run_with_webhook("a")).await;
    one.wait_for_started(1).await;
    common.clock.advance(LEASE_MS);
    two.server.reconcile().await;
    one.release.send_replace(true);
    one.get(&format!("{place}/join")).await.ok();
    receiver.got(1).await;
    let thread = two.thread().await;
    create_run(&two, &thread, run_with_webhook("b")).await;
    let got = receiver.got(2).await;
    assert_eq!(got[1].body()["values"]["items"], json!(["b"]));
}

/// Returns the number of stored webhooks.
async fn stored_webhooks(common: &SharedState) -> usize {
    let namespace = ["agent".to_owned(), "webhooks".to_owned()];
    let scope = MemoryScope::Host(None);
    common.memory.list(&scope, &namespace, "", 100, NOW_MS).await.unwrap().len()
}

#[tokio::test]
async fn webhook_of_a_run_that_is_about_to_start_is_kept() {
    let receiver = Receiver::new(&[]);
    let common = common(&receiver);
    let (one, gates) = common.host_with_gates().await;
    let thread = one.thread().await;
    let gate = gates.hold("compare_and_set webhooks done");
    tokio::join!(create_run(&one, &thread, run_with_webhook("a")), async {
        let held = gate.reached().await;
        one.server.reconcile().await;
        run_until_idle().await;
        assert_eq!(stored_webhooks(&common).await, 1);
        drop(held);
    });
    assert_eq!(receiver.got(1).await[0].body()["values"]["items"], json!(["a"]));
}

/// Creates a cron whose runs have a webhook.
async fn cron_with_webhook(host: &Host) -> String {
    let mut cron = hourly();
    cron["webhook"] = json!(HOOK);
    on_thread(host, cron).await
}

/// Starts to create the due runs on a host. Returns when the gates hold the call `call`.
async fn create_due_runs_until(
    host: &Host,
    gates: &Gates,
    call: &str,
) -> (Held, JoinHandle<Option<i64>>) {
    let gate = gates.hold(call);
    let server = host.server.clone();
    let started = tokio::spawn(async move { server.create_due_runs().await });
    (gate.reached().await, started)
}

/// Stores the webhook of a due run, and stops the host before the run has started.
async fn stop_before_run(host: &Host, gates: &Gates) -> Held {
    let (held, started) = create_due_runs_until(host, gates, "compare_and_set webhooks done").await;
    host.stop();
    started.abort();
    held
}

#[tokio::test]
async fn concurrent_creation_of_a_cron_run_delivers_one_webhook() {
    let receiver = Receiver::new(&[]);
    let common = common(&receiver);
    let ((one, gates), two) = (common.host_with_gates().await, common.host().await);
    cron_with_webhook(&one).await;
    common.clock.advance(HOUR_MS);
    let gate = gates.hold("lease");
    tokio::join!(one.server.create_due_runs(), async {
        let held = gate.reached().await;
        two.server.create_due_runs().await;
        // The host that started the run delivers the webhook. The other host then finds the webhook
        // delivered.
        receiver.got(1).await;
        drop(held);
    });
    receiver.got(1).await;
    run_until_idle().await;
    assert_eq!((receiver.sent(), stored_webhooks(&common).await), (1, 0));
    assert_eq!(executions([&one, &two]), 1);
}

#[tokio::test]
async fn webhook_of_a_host_that_died_before_the_run_is_delivered() {
    for looks_first in [false, true] {
        let receiver = Receiver::new(&[]);
        let common = common(&receiver);
        let ((one, gates), two) = (common.host_with_gates().await, common.host().await);
        let id = cron_with_webhook(&one).await;
        common.clock.advance(HOUR_MS);
        let _held = stop_before_run(&one, &gates).await;
        common.clock.advance(LEASE_MS);
        if looks_first {
            two.server.reconcile().await;
            run_until_idle().await;
        }
        two.server.create_due_runs().await;
        two.server.reconcile().await;
        assert_eq!(count(&two, &id).await, 1);
        receiver.got(1).await;
        run_until_idle().await;
        assert_eq!((receiver.sent(), stored_webhooks(&common).await), (1, 0));
    }
}

#[tokio::test]
async fn webhook_is_delivered_if_its_run_is_created_during_its_deletion() {
    let receiver = Receiver::new(&[]);
    let common = common(&receiver);
    let ((one, gates), (two, looks)) =
        (common.host_with_gates().await, common.host_with_gates().await);
    let id = cron_with_webhook(&one).await;
    common.clock.advance(HOUR_MS);
    let _held = stop_before_run(&one, &gates).await;
    common.clock.advance(LEASE_MS);
    let gate = looks.hold("compare_and_delete webhooks");
    two.server.reconcile().await;
    let found_none = gate.reached().await;
    two.server.create_due_runs().await;
    assert_eq!(count(&two, &id).await, 1);
    drop(found_none);
    receiver.got(1).await;
    run_until_idle().await;
    assert_eq!((receiver.sent(), stored_webhooks(&common).await), (1, 0));
}

#[tokio::test]
async fn webhook_of_an_ended_run_is_not_delivered_again() {
    let receiver = Receiver::new(&[]);
    let common = common(&receiver);
    let ((one, gates), two) = (common.host_with_gates().await, common.host().await);
    let id = cron_with_webhook(&one).await;
    common.clock.advance(HOUR_MS);
    let (_held, started) = create_due_runs_until(&one, &gates, "compare_and_set dues").await;
    receiver.got(1).await;
    run_until_idle().await;
    one.stop();
    started.abort();
    two.server.create_due_runs().await;
    assert_eq!(count(&two, &id).await, 1);
    run_until_idle().await;
    assert_eq!((receiver.sent(), stored_webhooks(&common).await), (1, 0));
    assert_eq!(executions([&one, &two]), 1);
}

#[tokio::test]
async fn webhook_whose_payload_was_deleted_is_delivered() {
    let receiver = Receiver::new(&[]);
    let common = common(&receiver);
    let ((one, gates), (two, looks)) =
        (common.host_with_gates().await, common.host_with_gates().await);
    let (three, sends) = common.host_with_gates().await;
    cron_with_webhook(&one).await;
    common.clock.advance(HOUR_MS);
    let _held = stop_before_run(&one, &gates).await;
    common.clock.advance(LEASE_MS);
    let (deletes, reads) = (looks.hold("delete tidings"), sends.hold("get tidings"));
    two.server.reconcile().await;
    let deletes = deletes.reached().await;
    three.server.create_due_runs().await;
    let reads = reads.reached().await;
    drop(deletes);
    run_until_idle().await;
    drop(reads);
    let message = receiver.got(1).await.remove(0);
    assert_eq!(message.body()["status"], "success");
    run_until_idle().await;
    assert_eq!((receiver.sent(), stored_webhooks(&common).await), (1, 0));
}

#[tokio::test]
async fn webhook_taken_over_during_a_repeated_creation_of_its_run_is_delivered_once() {
    let receiver = Receiver::new(&[]);
    let common = common(&receiver);
    let ((one, gates), (two, looks)) =
        (common.host_with_gates().await, common.host_with_gates().await);
    cron_with_webhook(&one).await;
    common.clock.advance(HOUR_MS);
    let (held, started) = create_due_runs_until(&two, &looks, "compare_and_set webhooks").await;
    let sends = gates.hold("get tidings");
    one.server.create_due_runs().await;
    let _sends = sends.reached().await;
    one.stop();
    common.clock.advance(LEASE_MS);
    two.server.reconcile().await;
    drop(held);
    started.await.unwrap();
    receiver.got(1).await;
    run_until_idle().await;
    assert_eq!((receiver.sent(), stored_webhooks(&common).await), (1, 0));
}
