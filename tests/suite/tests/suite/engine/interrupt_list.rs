//! The list of pending interrupts of all threads: its pages, and threads that are left out.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use wattle_graph::failure::code;
use wattle_graph::id::{CheckpointId, ThreadId};
use wattle_kit::layer::{Layer, Layered};
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::limit::{INTERRUPT_COUNT_PAGES, INTERRUPT_THREADS};
use wattle_run::ports::Store;
use wattle_run::ports::store::{StoreError, ThreadSearch};
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::World;

const ASK: &str = r#"
[graphs.ask]
entry = "ask"
[graphs.ask.channels.text]
[graphs.ask.channels.out]
[graphs.ask.nodes.ask]
plugin = "p"
"#;

const TWO: &str = r#"
[graphs.two]
entry = ["ask", "work"]
[graphs.two.channels.text]
[graphs.two.channels.out]
[graphs.two.nodes.ask]
plugin = "p"
[graphs.two.nodes.work]
plugin = "p"
"#;

/// Returns a plugin with a node that asks a question with the input as payload, and a node that
/// sends a request.
fn plugin(version: &str) -> NativePlugin {
    NativePlugin::new("p", version)
        .node("ask", |call, gate| async move {
            let payload = call.input.get("text").into_owned();
            let answer = gate.ask(InterruptRequest { payload, response_schema: None }).await?;
            Ok(json!({ "out": answer }))
        })
        .node("work", |_, gate| async move {
            gate.call(get("https://example.com/slow")).await?;
            Ok(json!({}))
        })
}

/// Starts a run that asks a question, and advances the clock. Returns the thread.
async fn ask(world: &World, payload: Value) -> ThreadId {
    let thread = world.run(json!({ "text": payload })).await.run.thread;
    world.clock.advance_ms(1);
    thread
}

/// Counts the pending interrupts. Returns true with the number if all were counted.
async fn counted(world: &World) -> (u64, bool) {
    let count = world.engine.count_interrupts(ThreadSearch::default()).await.unwrap();
    (count.total, count.is_complete)
}

/// Returns the ids of the listed threads.
async fn listed(world: &World) -> Vec<ThreadId> {
    world.pending_interrupts().await.into_iter().map(|(thread, _)| thread).collect()
}

/// Reads all pages of a list. Returns the number of threads of each, and all threads in order.
async fn pages(world: &World, limit: usize) -> (Vec<usize>, Vec<ThreadId>) {
    let (mut lengths, mut threads) = (Vec::new(), Vec::new());
    let mut search = ThreadSearch { limit, ..ThreadSearch::default() };
    loop {
        let page = world.engine.pending_interrupts(search.clone()).await.unwrap();
        lengths.push(page.threads.len());
        threads.extend(page.threads.into_iter().map(|thread| thread.record.id));
        if page.next.is_none() {
            return (lengths, threads);
        }
        search.after = page.next;
    }
}

#[tokio::test]
async fn newest_threads_come_first_and_pages_have_each_thread_once() {
    let world = World::new(ASK, plugin("1"));
    let mut threads = Vec::new();
    for number in 0..=INTERRUPT_THREADS {
        threads.push(ask(&world, json!(number)).await);
    }
    threads.reverse();
    assert_eq!(pages(&world, usize::MAX).await, (vec![INTERRUPT_THREADS, 1], threads.clone()));
    let (lengths, found) = pages(&world, 20).await;
    assert_eq!((lengths, found), (vec![20, 20, 11], threads));
    assert_eq!(counted(&world).await, (INTERRUPT_THREADS as u64 + 1, true));
}

#[tokio::test]
async fn count_ends_after_its_last_page() {
    let world = World::new(ASK, plugin("1"));
    // A page has one thread with so much to read.
    let large = json!(vec![0; 150_000]);
    for _ in 0..INTERRUPT_COUNT_PAGES {
        ask(&world, large.clone()).await;
    }
    let pages = INTERRUPT_COUNT_PAGES as u64;
    assert_eq!(counted(&world).await, (pages, true));
    ask(&world, large).await;
    assert_eq!(counted(&world).await, (pages, false));
}

#[tokio::test]
async fn page_ends_after_a_thread_with_much_to_read() {
    let world = World::new(ASK, plugin("1"));
    // A number has two bytes of text and takes 72 bytes of memory.
    let large = json!(vec![0; 150_000]);
    let mut threads = vec![ask(&world, json!("small")).await];
    threads.push(ask(&world, large.clone()).await);
    threads.push(ask(&world, large).await);
    threads.reverse();
    assert_eq!(pages(&world, usize::MAX).await, (vec![1, 1, 1], threads));
}

/// The version to which the threads are pinned is missing. The list needs no code.
#[tokio::test]
async fn threads_that_are_set_aside_are_left_out() {
    let store: Arc<dyn Store> = Arc::new(InMemoryStore::new());
    let old = World::with_store(TWO, plugin("1"), store.clone());
    let waiting = ask(&old, json!("Sure?")).await;
    old.net.hang_next(1);
    let cut = old.begin(json!({ "text": "Sure?" })).await.unwrap();
    old.net.hung().await;
    assert_eq!(
        listed(&old).await,
        std::slice::from_ref(&waiting),
        "a running thread is not listed"
    );
    drop(old);
    let world = World::with_store(TWO, plugin("2"), store);
    world.engine.start_recovery();
    assert_eq!(world.engine.wait_recovered().await.set_aside, 1);
    assert!(world.engine.set_aside(&cut.thread).is_some());
    assert_eq!(listed(&world).await, [waiting]);
}

/// A store whose next read of an outline fails.
struct Faulty {
    below: Arc<dyn Store>,
    error: Mutex<Option<StoreError>>,
}

impl Faulty {
    fn fail(&self, error: StoreError) {
        *self.error.lock().unwrap() = Some(error);
    }
}

#[async_trait]
impl Layer for Faulty {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, error: Mutex::default() }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn reading(&self, read: &'static str) -> Result<(), StoreError> {
        if read != "checkpoint_outline" {
            return Ok(());
        }
        self.error.lock().unwrap().take().map_or(Ok(()), Err)
    }
}

#[tokio::test]
async fn damaged_thread_does_not_hide_the_others() {
    let store = Arc::new(Layered::<Faulty>::over(Arc::new(InMemoryStore::new())));
    let world = World::with_store(ASK, plugin("1"), store.clone());
    let older = ask(&world, json!(1)).await;
    let newer = ask(&world, json!(2)).await;
    let (thread, message) = (newer.clone(), "it was changed".to_owned());
    let (bytes, checkpoint) = (2 << 20, CheckpointId(1));
    for error in [
        StoreError::Broken { thread: thread.clone(), seq: 1, message: message.clone() },
        StoreError::Corrupt { what: "event 3".to_owned(), message: message.clone() },
        StoreError::TooLarge { thread, checkpoint, bytes, limit: 1 << 20 },
    ] {
        store.fail(error);
        assert_eq!(listed(&world).await, std::slice::from_ref(&older));
        assert_eq!(listed(&world).await, [newer.clone(), older.clone()]);
    }
    store.fail(StoreError::Backend { operation: "read a checkpoint", message });
    let failure = world.engine.pending_interrupts(ThreadSearch::default()).await.unwrap_err();
    assert_eq!(failure.code, code::UNAVAILABLE, "an incomplete list is no list");
}
