//! A run can be ahead of the disk within a limit: events that are not durable are in memory, and
//! the end of a run waits for all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::{oneshot, watch};
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::hostcall::runs::{RunOutcome, RunService};
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, Ticket};
use wattle_store::MemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::world::World;

/// Interval between checks that the run waits.
const PAUSE: Duration = Duration::from_millis(500);

/// Supersteps of the run, and the bytes that each writes.
const STEPS: usize = 16;
const WRITTEN_BYTES: usize = 1 << 20;

/// Maximum number of supersteps ahead of the disk. Each writes its bytes twice, in its task and in
/// its checkpoint.
const AHEAD: usize = 6;

const LOOP: &str = r#"
[graphs.main]
entry = "work"
recursion_limit = 1000
[graphs.main.channels.number]
[graphs.main.channels.text]
[graphs.main.nodes.work]
plugin = "p"
goto = ["work"]
"#;

/// A store whose disk can be stopped.
struct Disk {
    below: Arc<dyn Store>,
    works: watch::Sender<bool>,
}

#[async_trait]
impl Layer for Disk {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, works: watch::Sender::new(true) }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let done = self.below.append(thread, batch).await;
        let (answer, durable) = oneshot::channel();
        let mut works = self.works.subscribe();
        tokio::spawn(async move {
            // An error means that the test has ended, or that no caller waits for the batch.
            let _ = works.wait_for(|works| *works).await;
            let _ = answer.send(done.await);
        });
        Ticket::waiting(durable, || ())
    }
}

#[tokio::test]
async fn a_run_that_is_far_ahead_of_the_disk_waits() {
    let store = Arc::new(Layered::<Disk>::over(Arc::new(MemoryStore::new())));
    let taken = Arc::<AtomicUsize>::default();
    let (counted, stalled) = (taken.clone(), store.clone());
    let plugin = NativePlugin::new("p", "1").node("work", move |_, _| {
        let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
        if number == 1 {
            // The start of the run is durable.
            stalled.works.send_replace(false);
        }
        let next: &[&str] = if number < STEPS { &["work"] } else { &[] };
        let text = "x".repeat(WRITTEN_BYTES);
        async move { Ok(json!({ "number": number, "text": text, "$goto": next })) }
    });
    let world = World::with_store(LOOP, plugin, store.clone());
    let run = world.begin(json!({})).await.unwrap();
    let mut before = 0;
    let ahead = loop {
        tokio::time::sleep(PAUSE).await;
        let now = taken.load(Ordering::SeqCst);
        if now > 0 && now == before {
            break now;
        }
        before = now;
    };
    assert!(ahead <= AHEAD, "{ahead} supersteps wait for the disk");
    store.works.send_replace(true);
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!((ended.outcome, &ended.state["number"]), (RunOutcome::Completed, &json!(STEPS)));
}
