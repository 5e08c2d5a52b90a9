//! Webhooks that several hosts could tell.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Common, LEASE_MS, begin, slow};
use crate::webhooks::{HOOK, Receiver};

fn told(word: &str) -> Value {
    let mut run = slow(word);
    run["webhook"] = json!(HOOK);
    run
}

fn common(receiver: &Arc<Receiver>) -> Common {
    Common::with_net(receiver.clone())
}

#[tokio::test]
async fn another_host_tells_what_one_left_that_died() {
    let receiver = Receiver::new(&[]);
    let common = common(&receiver);
    let hosts = [common.host().await, common.host().await, common.host().await];
    let [one, two, three] = &hosts;
    one.hold();
    let thread = one.thread().await;
    let place = begin(one, &thread, told("a")).await;
    one.begun(1).await;
    one.die();
    two.agents.look_around().await;
    common.clock.advance(LEASE_MS);
    tokio::join!(two.agents.look_around(), three.agents.look_around());
    one.let_go.send_replace(true);
    two.get(&format!("{place}/join")).await.ok();
    let message = receiver.got(1).await.remove(0);
    assert_eq!(message.body()["values"]["items"], json!(["a"]));
    // The next message comes after all that could still be sent.
    tokio::join!(two.agents.look_around(), three.agents.look_around());
    let thread = two.thread().await;
    begin(two, &thread, told("b")).await;
    let got = receiver.got(2).await;
    assert_eq!(got[1].body()["values"]["items"], json!(["b"]));
    assert_eq!(got.len(), 2, "one of both tells it");
}

#[tokio::test]
async fn what_a_host_took_on_and_died_over_is_told_all_the_same() {
    let receiver = Receiver::new(&[]);
    let common = common(&receiver);
    let hosts = [common.host().await, common.host().await, common.host().await];
    let [one, two, three] = &hosts;
    one.hold();
    let thread = one.thread().await;
    begin(one, &thread, told("a")).await;
    one.begun(1).await;
    one.die();
    common.clock.advance(LEASE_MS);
    two.agents.look_around().await;
    two.die();
    common.clock.advance(LEASE_MS - 1);
    three.agents.look_around().await;
    common.clock.advance(1);
    three.agents.look_around().await;
    one.let_go.send_replace(true);
    let message = receiver.got(1).await.remove(0);
    assert_eq!(message.body()["values"]["items"], json!(["a"]));
}

#[tokio::test]
async fn a_host_that_was_taken_for_dead_tells_nothing() {
    let receiver = Receiver::new(&[]);
    let common = common(&receiver);
    let (one, two) = (common.host().await, common.host().await);
    one.hold();
    let thread = one.thread().await;
    let place = begin(&one, &thread, told("a")).await;
    one.begun(1).await;
    common.clock.advance(LEASE_MS);
    two.agents.look_around().await;
    one.let_go.send_replace(true);
    one.get(&format!("{place}/join")).await.ok();
    receiver.got(1).await;
    let thread = two.thread().await;
    begin(&two, &thread, told("b")).await;
    let got = receiver.got(2).await;
    assert_eq!(got[1].body()["values"]["items"], json!(["b"]));
}
