//! Many concurrent threads and nodes: interrupted threads use no memory, and nodes that wait for a
//! slow model use little. Each test measures its own process, which nextest starts for it.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::json;
use tempfile::TempDir;
use wattle_graph::id::PluginName;
use wattle_run::grant::Grants;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{RunOutcome, RunService};
use wattle_run::ports::Sandbox as _;
use wattle_run::ports::store::{ThreadQuery, ThreadStatus};
use wattle_sandbox::{SandboxConfig, WasmSandbox};
use wattle_store::RedbStore;
use wattle_suite::guests;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{NoSql, get, prompt, said};
use wattle_suite::world::World;

/// Interrupted threads.
const THREADS: usize = 10_000;

/// Maximum memory of one of them, in bytes.
const THREAD_BYTES: u64 = 2 << 10;

/// Nodes that wait for a model concurrently.
const NODES: u32 = 5_000;

/// Components that wait for a model concurrently. Without optimization the frames of the host stay
/// on the stack of a waiting guest and take more than 370 of its 430 KiB, so a debug build measures
/// fewer. The kernel has room for 5,230 by default, of which the components of one app hold less than
/// half.
const COMPONENTS: u32 = if cfg!(debug_assertions) { 1_000 } else { 2_000 };

/// Maximum memory of the process with all of them, in bytes, including its code and the compiler.
const NODES_BYTES: u64 = 1 << 30;

/// Runs that are started concurrently, enough to keep the store's writer busy.
const STARTED_AT_ONCE: usize = 256;

/// Maximum duration of a test, in a debug build on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Returns a value of this process from the kernel, in bytes.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let kilobytes = line.trim_start_matches(':').trim().strip_suffix(" kB").unwrap();
    kilobytes.parse::<u64>().unwrap() * 1_024
}

/// Executes `work` `count` times, partly concurrently, and returns the results.
async fn many<T, F: Future<Output = T>>(count: usize, work: impl Fn(usize) -> F) -> Vec<T> {
    futures::stream::iter(0..count).map(work).buffer_unordered(STARTED_AT_ONCE).collect().await
}

const ASKING: &str = r#"
[graphs.ask]
entry = "ask"
[graphs.ask.channels.filling]
[graphs.ask.channels.out]
[graphs.ask.nodes.ask]
plugin = "p"
"#;

fn asking() -> NativePlugin {
    NativePlugin::new("p", "1").node("ask", |call, gate| async move {
        if call.input.get("filling").is_string() {
            return Ok(json!({}));
        }
        let question = InterruptRequest { payload: json!({ "sure": "?" }), response_schema: None };
        Ok(json!({ "out": gate.ask(question).await? }))
    })
}

/// Threads of this size fill the cache of the store, so that the measurement does not include its
/// growth.
const FILLING: usize = 192;
const FILLING_BYTES: usize = 1 << 20;

/// Interrupted threads before the first measurement, so that every buffer has its final size.
const WARM: usize = 1_000;

/// The result was 1.3 to 1.6 KB per thread, from the growth of the allocator and of the store's page
/// tables. Beside other tests it was up to 2.1 KB, because more threads of the process are at work at
/// once, so nextest runs this test alone. With the allocator of the `wattle` program it is 2.5 to 4.5 KB, because the pages of the
/// store's limited cache take more space there.
#[tokio::test]
async fn interrupted_threads_use_no_memory() {
    let began = Instant::now();
    let folder = TempDir::new().unwrap();
    let store = Arc::new(RedbStore::open(folder.path().join("store")).unwrap());
    let world = World::with_store(ASKING, asking(), store);
    let filling = json!({ "filling": filling() });
    for _ in 0..FILLING {
        assert_eq!(world.run(filling.clone()).await.outcome, RunOutcome::Completed);
    }
    many(WARM, async |_| drop(world.run(json!({})).await)).await;
    let before = status("VmRSS");
    let ended = many(THREADS, async |_| drop(world.run(json!({})).await)).await;
    let after = status("VmRSS");
    assert_eq!(ended.len(), THREADS);
    let each = after.saturating_sub(before) / THREADS as u64;
    assert!(each < THREAD_BYTES, "{each} bytes per thread");
    let waiting = ThreadQuery { status: Some(ThreadStatus::Interrupted), ..ThreadQuery::default() };
    let waiting = world.engine.ports().store.threads(&waiting).await.unwrap().items;
    assert_eq!(waiting.len(), WARM + THREADS);
    let last = world.answer(&waiting[0].id, json!("yes")).await;
    assert_eq!((last.outcome, &last.state["out"]), (RunOutcome::Completed, &json!("yes")));
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}

/// Returns a pseudorandom text, which the store cannot compress.
fn filling() -> String {
    let mut state = 1_u64;
    let digit = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + (state >> 58) as u8)
    };
    (0..FILLING_BYTES).map(digit).collect()
}

const CALLING: &str = r#"
[graphs.call]
entry = "call_then_wait"
[graphs.call.channels.route]
[graphs.call.channels.url]
[graphs.call.channels.text]
[graphs.call.channels.body]
[graphs.call.nodes.call_then_wait]
plugin = "misdeeds"
"#;

/// Runs `count` runs that wait for a model concurrently and then complete. In a debug build a run
/// needs 65 KiB, and its component the rest.
async fn wait_for_a_slow_model(world: &World, count: u32) {
    let (began, count) = (Instant::now(), count as usize);
    world.model.hold();
    let input = json!({ "route": "chat", "url": "https://example.com/" });
    let runs = many(count, async |_| world.begin(input.clone()).await.unwrap()).await;
    world.model.held(count).await;
    world.model.release();
    for run in &runs {
        let ended = world.engine.wait(run).await.unwrap();
        assert_eq!(ended.outcome, RunOutcome::Completed);
        assert!(ended.state["text"].as_str().unwrap().starts_with("answer "), "{}", ended.state);
    }
    assert_eq!((world.model.calls(), world.net.calls()), (count, count), "each call is made once");
    let peak = status("VmHWM");
    assert!(peak < NODES_BYTES, "{peak} bytes");
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}

#[tokio::test]
async fn nodes_that_wait_for_a_slow_model_fit_into_a_gibibyte() {
    let plugin = NativePlugin::new("misdeeds", "1").node("call_then_wait", |_, gate| async move {
        let text = said(&gate.call(prompt("go")).await?);
        gate.call(get("https://example.com/")).await?;
        Ok(json!({ "text": text }))
    });
    wait_for_a_slow_model(&World::new(CALLING, plugin), NODES).await;
}

#[tokio::test]
async fn components_that_wait_for_a_slow_model_fit_into_a_gibibyte() {
    // The pool counts the memory that guests declare, most of which they never touch.
    let guests_memory_bytes = u64::from(COMPONENTS) * (4 << 20);
    let config = SandboxConfig {
        max_instances: 3 * COMPONENTS,
        guests_memory_bytes,
        ..SandboxConfig::default()
    };
    let sandbox = WasmSandbox::new(&config).unwrap();
    let name = PluginName::new("misdeeds").unwrap();
    let plugin = sandbox.load(&name, guests::bytes("wattle-guest-misdeeds")).await.unwrap();
    let world = World::with_plugin(CALLING, plugin, Arc::new(NoSql), Grants::default());
    wait_for_a_slow_model(&world, COMPONENTS).await;
}
