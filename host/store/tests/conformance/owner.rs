//! The size of the threads of an app or a tenant, and the blobs that these threads mention.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use serde_json::{Value, json};
use wattle_graph::id::{AppName, Digest, ThreadId};
use wattle_kit::need;
use wattle_run::limit::MENTIONED_PAGE;
use wattle_run::ports::blob::{BlobRef, BlobStore};
use wattle_run::ports::store::{Batch, Owner, OwnerUsage, Store, ThreadRecord};
use wattle_store::{FileBlobs, InMemoryBlobs};

use crate::fixtures::{append, batch, checkpoint, record, thread_id};
use crate::postgres::Server;

/// Number of threads: more than fit into one page of mentions.
const THREADS: usize = 300;

fn app(name: &str) -> AppName {
    AppName::new(name).unwrap()
}

fn tenant(name: &str) -> Owner {
    Owner::Tenant(name.to_owned())
}

fn blob(number: usize) -> BlobRef {
    BlobRef(Digest::of(number.to_string().as_bytes()))
}

/// Creates a thread of an app and a tenant that contains a value.
async fn thread(store: &dyn Store, name: &str, (app, tenant): (&str, Option<&str>), value: Value) {
    let thread = thread_id(name);
    let record =
        ThreadRecord { app: self::app(app), tenant: tenant.map(str::to_owned), ..record(&thread) };
    let first = batch(checkpoint(1, None, &[("x", value)], &[]));
    append(store, &thread, Batch { record: Some(record), ..first }).await.unwrap();
}

async fn bytes(store: &dyn Store, threads: &[&str]) -> u64 {
    let mut bytes = 0;
    for name in threads {
        bytes += store.stored_bytes(&thread_id(name)).await.unwrap();
    }
    bytes
}

pub(crate) async fn size_of_an_owner_is_the_size_of_its_threads(store: &dyn Store) {
    thread(store, "one", ("demo", Some("acme")), json!("x".repeat(1_000))).await;
    thread(store, "two", ("other", Some("acme")), json!(2)).await;
    thread(store, "three", ("demo", None), json!(3)).await;
    let owners: [(Owner, &[&str]); 6] = [
        (tenant("acme"), &["one", "two"]),
        (tenant("nobody"), &[]),
        (Owner::App(app("demo")), &["one", "three"]),
        (Owner::App(app("gone")), &[]),
        (Owner::Thread(thread_id("two")), &["two"]),
        (Owner::Thread(thread_id("four")), &[]),
    ];
    for (owner, threads) in &owners {
        let expected =
            OwnerUsage { threads: threads.len() as u64, bytes: bytes(store, threads).await };
        assert_eq!(store.usage(owner).await.unwrap(), expected, "{owner:?}");
    }
    let total = store.total_usage().await.unwrap().owners;
    let mut expected = BTreeMap::new();
    for (name, app, tenant) in
        [("one", "demo", Some("acme")), ("two", "other", Some("acme")), ("three", "demo", None)]
    {
        let usage = OwnerUsage { threads: 1, bytes: bytes(store, &[name]).await };
        expected.insert((self::app(app), tenant.map(str::to_owned)), usage);
    }
    assert_eq!(total, expected);
    store.delete_thread(&thread_id("one")).await.unwrap();
    let left = OwnerUsage { threads: 1, bytes: bytes(store, &["two"]).await };
    assert_eq!(store.usage(&tenant("acme")).await.unwrap(), left);
}

/// Returns how often each blob is in the pages of an owner.
async fn mentioned(store: &dyn Store, owner: &Owner) -> BTreeMap<BlobRef, usize> {
    let (mut found, mut from) = (BTreeMap::new(), None);
    loop {
        let page = store.mentioned_blobs(owner, from.as_deref()).await.unwrap();
        page.blobs.into_iter().for_each(|blob| *found.entry(blob).or_default() += 1);
        from = page.next;
        if from.is_none() {
            return found;
        }
    }
}

pub(crate) async fn mentions_of_an_owner_are_paged(store: &dyn Store) {
    let many: Vec<BlobRef> = (0..MENTIONED_PAGE + 10).map(blob).collect();
    thread(store, "many", ("demo", Some("acme")), json!(many)).await;
    thread(store, "none", ("demo", Some("acme")), json!("nothing")).await;
    thread(store, "other", ("other", Some("others")), json!([blob(0)])).await;
    for number in 0..THREADS {
        let name = format!("small {number:03}");
        thread(store, &name, ("demo", Some("small")), json!([blob(0), blob(number)])).await;
    }
    let of = |owner: Owner| async move { mentioned(store, &owner).await };
    let own: ThreadId = thread_id("many");
    let all = of(Owner::Thread(own)).await;
    assert_eq!((all.len(), all.values().sum::<usize>()), (many.len(), many.len()));
    assert_eq!(of(tenant("acme")).await, all);
    assert_eq!(of(tenant("others")).await, BTreeMap::from([(blob(0), 1)]));
    assert_eq!(of(tenant("nobody")).await, BTreeMap::new());
    let small = of(tenant("small")).await;
    assert_eq!((small.len(), small[&blob(0)], small[&blob(7)]), (THREADS, THREADS, 1));
    let app = of(Owner::App(app("demo"))).await;
    assert_eq!((app.len(), app[&blob(0)], app[&blob(7)]), (many.len(), THREADS + 1, 2));
}

async fn sizes_are_those_of_existing_blobs(blobs: &dyn BlobStore) {
    let large = blobs.put(Bytes::from(vec![1; 100_000]), "a/b").await.unwrap();
    let small = blobs.put(Bytes::from_static(b"x"), "a/b").await.unwrap();
    let sizes = blobs.sizes(&[large, small, blob(1), small]).await.unwrap();
    assert_eq!(sizes, HashMap::from([(large, 100_000), (small, 1)]));
    assert_eq!(blobs.sizes(&[]).await.unwrap(), HashMap::new());
}

#[tokio::test]
async fn sizes_of_many_blobs_are_read_together() {
    sizes_are_those_of_existing_blobs(&InMemoryBlobs::new()).await;
    let folder = tempfile::tempdir().unwrap();
    sizes_are_those_of_existing_blobs(&FileBlobs::open(folder.path()).unwrap()).await;
    let server = need!(Server::start());
    let store = server.store("sizes_of_blobs").await;
    sizes_are_those_of_existing_blobs(&store.blobs()).await;
}
