//! Records that the server stores in addition to threads, in the memory scope of the host, which
//! neither guests nor clients can access.
//!
//! * [`assistant`]: assistants that clients created.
//! * [`old`]: runs as older versions stored them. [`webhook`]: webhooks whose delivery is not
//!   complete.
//! * [`cron`]: crons and their due times.

pub(crate) mod assistant;
pub(crate) mod cron;
pub(crate) mod old;
pub(crate) mod webhook;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wattle_graph::failure::Failure;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::{Item, MemoryScope, PutItem};

/// First part of the namespaces of all records of this server.
const ROOT: &str = "agent";

/// Number of records in one list request, which is the maximum of the memory.
const LISTED: usize = wattle_run::limit::MEMORY_RESULTS;

/// Maximum number of attempts to change a record by compare-and-swap. Each failed attempt means
/// that another writer succeeded, so the limit is reached only if that many requests change the
/// same record at the same time.
const ATTEMPTS: usize = 16;

/// Repeats a compare-and-swap until it succeeds. Each attempt reads the record again. Returns
/// `None` if another writer came first in each of [`ATTEMPTS`] attempts.
///
/// # Errors
///
/// The error of an attempt. An error is not retried.
pub(crate) async fn attempts<T, E, A>(attempt: impl Fn() -> A) -> Result<Option<T>, E>
where
    A: Future<Output = Result<Option<T>, E>>,
{
    for _ in 0..ATTEMPTS {
        if let Some(done) = attempt().await? {
            return Ok(Some(done));
        }
    }
    Ok(None)
}

/// A record together with the JSON value that was read. [`Shelf::change`] fails if the stored value
/// is no longer equal.
#[derive(Clone, Debug)]
pub(crate) struct Kept<T> {
    /// The decoded value.
    pub(crate) doc: T,
    pub(crate) key: String,
    known: Value,
}

/// The records of one type, under one namespace of the memory.
pub(crate) struct Shelf<'p> {
    ports: &'p Ports,
    scope: MemoryScope,
    namespace: Vec<String>,
}

impl<'p> Shelf<'p> {
    pub(crate) fn new(ports: &'p Ports, scope: MemoryScope, parts: &[&str]) -> Self {
        let parts = [ROOT].iter().chain(parts).map(|part| (*part).to_owned());
        Self { ports, scope, namespace: parts.collect() }
    }

    async fn item(&self, key: &str) -> Result<Option<Item>, Failure> {
        let now_ms = self.ports.clock.now_ms();
        self.ports.memory.get(&self.scope, &self.namespace, key, now_ms).await
    }

    /// Reads a record.
    pub(crate) async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Failure> {
        self.item(key).await?.map(|item| read(item.value)).transpose()
    }

    /// Reads a record to change it with [`Self::change`].
    pub(crate) async fn get_to_change<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<Kept<T>>, Failure> {
        self.item(key).await?.map(keep).transpose()
    }

    /// Inserts a record, durable when this returns. Returns `None` if the key exists.
    pub(crate) async fn make<T: Serialize>(
        &self,
        key: &str,
        document: T,
    ) -> Result<Option<Kept<T>>, Failure> {
        self.put_if(key, None, document).await
    }

    /// Replaces a record that was read, durable when this returns. Returns `None` if the record was
    /// changed or deleted since it was read.
    pub(crate) async fn change<T: Serialize>(
        &self,
        kept: &Kept<T>,
        document: T,
    ) -> Result<Option<Kept<T>>, Failure> {
        self.put_if(&kept.key, Some(&kept.known), document).await
    }

    async fn put_if<T: Serialize>(
        &self,
        key: &str,
        known: Option<&Value>,
        document: T,
    ) -> Result<Option<Kept<T>>, Failure> {
        let item = self.put_item(key, &document, None)?;
        let (value, now_ms) = (item.value.clone(), self.ports.clock.now_ms());
        let is_there = self.ports.memory.compare_and_set(&self.scope, known, item, now_ms).await?;
        Ok(is_there.then(|| Kept { doc: document, key: key.to_owned(), known: value }))
    }

    /// Writes a record, durable when this returns.
    pub(crate) async fn put<T: Serialize>(
        &self,
        key: &str,
        document: &T,
        ttl_ms: Option<u64>,
    ) -> Result<(), Failure> {
        let item = self.put_item(key, document, ttl_ms)?;
        self.ports.memory.put(&self.scope, item, self.ports.clock.now_ms()).await
    }

    fn put_item<T: Serialize>(
        &self,
        key: &str,
        document: &T,
        ttl_ms: Option<u64>,
    ) -> Result<PutItem, Failure> {
        let value = serde_json::to_value(document)
            .map_err(|error| Failure::internal(format!("a record cannot be written: {error}")))?;
        let (namespace, key) = (self.namespace.clone(), key.to_owned());
        Ok(PutItem { namespace, key, value, ttl_ms, refresh_on_read: false })
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<(), Failure> {
        self.ports.memory.delete(&self.scope, &self.namespace, key).await
    }

    /// Deletes a record that was read. Returns `true` if no record has the key afterwards, `false`
    /// if the record was changed since it was read.
    pub(crate) async fn remove<T>(&self, kept: &Kept<T>) -> Result<bool, Failure> {
        let (memory, now_ms) = (&self.ports.memory, self.ports.clock.now_ms());
        memory
            .compare_and_delete(&self.scope, &self.namespace, &kept.key, &kept.known, now_ms)
            .await
    }

    /// Lists all records by key. Suitable for small records only: all of them are in memory.
    pub(crate) async fn every<T: DeserializeOwned>(&self) -> Result<Vec<T>, Failure> {
        Ok(self.under("").await?.into_iter().map(|kept| kept.doc).collect())
    }

    /// Lists the records whose keys have a prefix, to change them. A record that cannot be decoded
    /// is logged and skipped, so that the others remain available.
    pub(crate) async fn under<T: DeserializeOwned>(
        &self,
        beginning: &str,
    ) -> Result<Vec<Kept<T>>, Failure> {
        let (mut all, mut after) = (Vec::new(), beginning.to_owned());
        loop {
            let now_ms = self.ports.clock.now_ms();
            let (memory, namespace) = (&self.ports.memory, &self.namespace);
            let items = memory.list(&self.scope, namespace, &after, LISTED, now_ms).await?;
            let Some(last) = items.last() else { return Ok(all) };
            after.clone_from(&last.key);
            for item in items {
                if !item.key.starts_with(beginning) {
                    return Ok(all);
                }
                let key = item.key.clone();
                match keep(item) {
                    Ok(kept) => all.push(kept),
                    Err(failure) => {
                        let kind = self.namespace.join("/");
                        tracing::error!(
                            kind, key, %failure, "skipped a record that cannot be decoded"
                        );
                    }
                }
            }
        }
    }

    pub(crate) async fn clear(&self) -> Result<(), Failure> {
        self.ports.memory.clear(&self.scope, &self.namespace).await.map(drop)
    }
}

fn keep<T: DeserializeOwned>(item: Item) -> Result<Kept<T>, Failure> {
    let known = item.value.clone();
    Ok(Kept { doc: read(item.value)?, key: item.key, known })
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value)
        .map_err(|error| Failure::internal(format!("a stored record cannot be read: {error}")))
}
