//! Turns for long work of the process under test, which a test holds so that long work waits.

use std::num::NonZero;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, available_parallelism};

use tokio::runtime::Handle;
use tokio::sync::{Mutex, MutexGuard, oneshot};
use wattle_run::blocking::block_in_place_in_turn;
use wattle_run::caller_id::CallerId;

/// All turns for long work. Dropping this value ends them.
#[must_use]
pub struct HeldTurns {
    // A turn ends when its sender is dropped.
    _turns: Vec<Sender<()>>,
    _alone: MutexGuard<'static, ()>,
}

/// Holds all turns for long work until the result is dropped. Another test that wants to hold them
/// waits: two tests that each hold some of the turns would wait for one another.
///
/// # Panics
///
/// If called outside of a tokio runtime.
pub async fn hold_all_turns() -> HeldTurns {
    static ALONE: Mutex<()> = Mutex::const_new(());
    let alone = ALONE.lock().await;
    let mut turns = Vec::new();
    for _ in 0..available_parallelism().map_or(1, NonZero::get) {
        let (turn, ended) = channel();
        let (started, has_started) = oneshot::channel();
        let runtime = Handle::current();
        thread::spawn(move || {
            runtime.block_on(block_in_place_in_turn(CallerId::of_key("other"), true, move || {
                // Sending fails only if the test has ended.
                let _: Result<(), _> = started.send(());
                // An error means that the sender was dropped.
                let _: Result<(), _> = ended.recv();
            }));
        });
        has_started.await.expect("the turn starts");
        turns.push(turn);
    }
    HeldTurns { _turns: turns, _alone: alone }
}
