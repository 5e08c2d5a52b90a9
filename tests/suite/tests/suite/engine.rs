//! The engine through its handle, with plugins in plain Rust and a memory store.

mod ahead;
mod answers;
mod breakpoints;
mod caps;
mod control;
mod crash_loop;
mod doubt;
mod durability;
mod elicit;
mod foreign;
mod guest_memory;
mod handlers;
mod history;
mod interrupt_list;
mod interrupts;
mod late;
mod leases;
mod memory;
mod migrate;
mod options;
mod policies;
mod recovery;
mod replay;
mod result_reuse;
mod retention;
mod run_memory;
mod semantics;
mod state_cache;
mod stop;
mod subgraphs;
mod supersteps;
mod tail;
mod teach;
mod tickets;
mod tool_images;
mod tools;
mod transactions;
mod travel_in_time;
mod turns;
mod typed;
mod unpersisted;
mod updates;
mod web;

use serde_json::json;
use wattle_graph::id::ThreadId;
use wattle_run::ports::Store;
use wattle_run::ports::store::RunRecord;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;

/// Returns a version of a plugin whose node makes one HTTP call.
fn calling(version: &str) -> NativePlugin {
    NativePlugin::new("p", version).node("work", |_, gate| async move {
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "out": "done" }))
    })
}

/// Stores a pending run that is never due.
async fn enqueue_undue(store: &dyn Store, thread: &ThreadId, run: &str) -> RunRecord {
    let record = json!({
        "id": run, "thread": thread, "status": "pending", "created_ms": 1, "started_ms": 1,
        "spec": {
            "kind": { "kind": "start", "input": null }, "app": "test", "due_ms": i64::MAX,
        },
    });
    let pending: RunRecord = serde_json::from_value(record).unwrap();
    assert!(store.enqueue(&pending, None).await.unwrap());
    pending
}
