//! Calls that nobody goes on with.

use std::sync::Arc;

use serde_json::json;
use wattle_graph::failure::code;
use wattle_run::grant::InDoubt;
use wattle_run::hostcall::runs::Runs as _;
use wattle_run::limit::{ELICITED_MESSAGE_BYTES, SERVER_ROUNDS};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::{failure, questions};

use super::{Desk, ONE, TWO, accept, asked, book, world, world_of};

#[tokio::test]
async fn nothing_is_held_for_a_thread_that_is_gone_or_a_run_that_is_cancelled() {
    let desk = Desk::holding();
    let world = world(ONE, &desk);
    let (_, thread) = asked(&world).await;
    assert_eq!(desk.waiting(), 1);
    world.engine.delete_thread(&thread).await.unwrap();
    desk.lets_go(0).await;
    let plugin = NativePlugin::new("p", "1")
        .node("a", |_, gate| async move { book(&gate, "a").await })
        .node("b", |_, gate| async move {
            gate.call(get("https://a.example/slow")).await?;
            Ok(json!({}))
        });
    let world = world_of(TWO, plugin, &desk, InDoubt::Fail);
    desk.asked.notified().await;
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    desk.asked.notified().await;
    world.engine.cancel(&run).await.unwrap();
    world.engine.wait(&run).await.unwrap();
    desk.lets_go(0).await;
}

#[tokio::test]
async fn a_server_that_asks_too_much_is_let_go_of() {
    let text = "x".repeat(ELICITED_MESSAGE_BYTES + 1);
    let desk = Arc::new(Desk { text, ..Desk::new(true, 1) });
    let ended = world(ONE, &desk).run(json!({})).await;
    assert_eq!((failure(&ended).code.as_str(), desk.waiting()), (code::LIMIT, 0));
    let desk = Arc::new(Desk::new(true, SERVER_ROUNDS + 1));
    let world = world(ONE, &desk);
    let (mut ended, thread) = asked(&world).await;
    for _ in 0..SERVER_ROUNDS {
        assert_eq!(questions(&ended).len(), 1);
        ended = world.answer(&thread, accept()).await;
    }
    let details = failure(&ended).details.unwrap();
    assert_eq!((&details["limit"], desk.waiting()), (&json!("server_rounds"), 0));
}
