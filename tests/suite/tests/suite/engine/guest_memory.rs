//! The memory of a guest in Rust: the allocator of the SDK begins with memory that the guest has from
//! its beginning.

use serde_json::{Value, json};
use wasmparser::{Parser, Payload};
use wattle_graph::id::PluginName;
use wattle_run::grant::Grants;
use wattle_run::hostcall::runs::{EndedRun, RunOutcome};
use wattle_run::limit::{self, Limits};
use wattle_suite::guests;
use wattle_suite::server::sandbox;
use wattle_suite::workspace::MISDEEDS;
use wattle_suite::world::{World, failure};

const TOUCH: &str = r#"
[graphs.touch]
entry = "touch"
[graphs.touch.channels.document]
[graphs.touch.nodes.touch]
plugin = "misdeeds"
"#;

/// Memory with which a guest begins, in bytes, as the page about the configuration says.
const FIRST_BYTES: u64 = 1 << 20;

/// Returns the memory with which a guest begins, in bytes.
fn first_bytes() -> u64 {
    let memory = Parser::new(0).parse_all(&guests::bytes(MISDEEDS)).find_map(|payload| {
        let Payload::MemorySection(memories) = payload.unwrap() else { return None };
        memories.into_iter().next()
    });
    memory.unwrap().unwrap().initial << 16
}

/// Runs a node that reads and writes a document, in a guest with this much memory.
async fn touch(document: Value, memory_bytes: u64) -> EndedRun {
    let name = PluginName::new("misdeeds").unwrap();
    let plugin = sandbox().load(&name, guests::bytes(MISDEEDS)).await.unwrap();
    let limits = Limits { memory_bytes, ..Limits::default() };
    let world = World::with_plugins(TOUCH, vec![(plugin, Grants { limits, ..Grants::default() })]);
    world.run(json!({ "document": document })).await
}

/// Returns a document of some `bytes` bytes of JSON, like a conversation.
fn conversation(bytes: usize) -> Value {
    let message = |id: usize| json!({ "id": id, "role": "user", "content": "x".repeat(100) });
    json!({ "n": 1, "messages": (0..bytes / 140).map(message).collect::<Vec<_>>() })
}

#[track_caller]
fn assert_touched(ended: &EndedRun) {
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["document"]["n"], 2);
}

#[tokio::test]
async fn a_step_needs_only_the_memory_with_which_its_guest_begins() {
    let first = first_bytes();
    assert!(first <= FIRST_BYTES, "{first}: `RUSTFLAGS` replaces what `.cargo/config.toml` sets");
    assert_touched(&touch(conversation(30_000), first).await);
}

#[tokio::test]
async fn a_step_that_needs_more_grows_up_to_its_limit() {
    let document = conversation(600_000);
    let ended = touch(document.clone(), first_bytes()).await;
    assert_eq!(failure(&ended).details.unwrap()["limit"], "memory");
    assert_touched(&touch(document, limit::MEMORY_BYTES).await);
}

#[tokio::test]
async fn the_deepest_document_fits_the_stack() {
    // The input and the document are a level each.
    let deep = (1..limit::JSON_DEPTH - 2).fold(json!([]), |inner, _| json!([inner]));
    assert_touched(&touch(json!({ "n": 1, "deep": deep }), limit::MEMORY_BYTES).await);
}
