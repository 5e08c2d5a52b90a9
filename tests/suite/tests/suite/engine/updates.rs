//! Updates of threads while others delete the threads, and create them again for another tenant.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::Notify;
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::engine::threads::NewThread;
use wattle_run::hostcall::runs::{RunService as _, StartRun, UpdateThread};
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, LeaseEpoch, LeaseHolder, StoreError, ThreadRecord, Ticket};
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::world::World;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

/// A store that replaces a thread before the engine acquires its lease.
struct Replacing {
    below: Arc<dyn Store>,
    /// Record of the thread that takes the place of the next one.
    next: Mutex<Option<ThreadRecord>>,
    /// Epoch of the newest batch.
    epoch: Mutex<Option<LeaseEpoch>>,
}

#[async_trait]
impl Layer for Replacing {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, next: Mutex::default(), epoch: Mutex::default() }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        *self.epoch.lock().unwrap() = batch.epoch;
        self.below.append(thread, batch).await
    }

    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        holder: &LeaseHolder,
    ) -> Result<LeaseEpoch, StoreError> {
        let next = self.next.lock().unwrap().take();
        if let Some(record) = next {
            self.below.delete_thread(thread).await?;
            let batch = Batch { record: Some(record), ..Batch::default() };
            self.below.append(thread, batch).await.await?;
        }
        self.below.acquire_lease(thread, holder).await
    }
}

/// Returns a world whose node waits for a notification.
fn world(goes_on: &Arc<Notify>) -> (World, Arc<Layered<Replacing>>) {
    let released = goes_on.clone();
    let plugin = NativePlugin::new("p", "1").node("work", move |_, _| {
        let released = released.clone();
        async move {
            released.notified().await;
            Ok(json!({ "out": "done" }))
        }
    });
    let store = Arc::new(Layered::<Replacing>::over(Arc::new(InMemoryStore::new())));
    (World::with_store(ONE, plugin, store.clone()), store)
}

/// Returns an update of a thread of tenant `acme`.
fn update(thread: &ThreadId) -> UpdateThread {
    let metadata = BTreeMap::from([("title".to_owned(), json!("new"))]);
    let tenant = Some("acme".to_owned());
    UpdateThread { thread: thread.clone(), app: None, tenant, metadata, ttl: None }
}

#[tokio::test]
async fn an_update_does_not_change_a_thread_that_another_tenant_has_created_again() {
    let (world, store) = world(&Arc::default());
    let tenant = Some("acme".to_owned());
    let old = world.engine.create_thread(NewThread { tenant, ..NewThread::default() });
    let old = old.await.unwrap();
    let new = ThreadRecord { tenant: Some("globex".to_owned()), ..old.clone() };
    *store.next.lock().unwrap() = Some(new.clone());
    let failure = world.engine.update_thread(update(&old.id)).await.unwrap_err();
    assert_eq!(failure.code, code::NOT_FOUND, "{failure}");
    assert_eq!(store.next.lock().unwrap().take(), None, "the store has replaced the thread");
    assert_eq!(store.thread(&old.id).await.unwrap().unwrap().record, new);
}

#[tokio::test]
async fn an_update_does_not_reach_the_run_of_another_tenant() {
    let goes_on = Arc::<Notify>::default();
    let (world, store) = world(&goes_on);
    let tenant = Some("globex".to_owned());
    let run = StartRun { tenant: tenant.clone(), ..world.request(None, json!({})) };
    let run = world.engine.start(run).await.unwrap();
    // The update reads a record of before the run.
    let current = store.thread(&run.thread).await.unwrap().unwrap().record;
    let before = ThreadRecord { tenant: Some("acme".to_owned()), ..current };
    let epoch = *store.epoch.lock().unwrap();
    let batch = Batch { epoch, record: Some(before), ..Batch::default() };
    store.below.append(&run.thread, batch).await.await.unwrap();
    let failure = world.engine.update_thread(update(&run.thread)).await.unwrap_err();
    assert_eq!(failure.code, code::NOT_FOUND, "{failure}");
    goes_on.notify_one();
    world.engine.wait(&run).await.unwrap();
    let record = store.thread(&run.thread).await.unwrap().unwrap().record;
    assert_eq!((record.tenant, record.metadata), (tenant, BTreeMap::new()));
}
