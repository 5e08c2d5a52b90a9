//! What the server keeps beside threads: documents in the memory of the host, which no guest and no
//! client works in.
//!
//! * [`assistant`]: a graph with settings that a client made.
//! * [`old`]: runs as older hosts kept them. [`webhook`]: where the end of a run is reported.
//! * [`cron`]: runs that come again and again.

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

/// First part of the namespaces of all documents of this server.
const ROOT: &str = "agent";

/// Documents that are listed at most: as many as one answer of the memory holds.
const LISTED: usize = wattle_run::limit::MEMORY_RESULTS;

/// Attempts at a change of one document that others get in between. Each of them lets one of those
/// through and brings it to its end, so that many at once would have to change the same document.
const ATTEMPTS: usize = 16;

/// Tries to change a document again and again while others change it in between, each of which the
/// next attempt reads anew. `None` if somebody always does.
///
/// # Errors
///
/// Those of an attempt: it is the last one.
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

/// A document as it stands, to be changed unless somebody else changes it first.
#[derive(Clone, Debug)]
pub(crate) struct Kept<T> {
    /// What it says.
    pub(crate) doc: T,
    pub(crate) key: String,
    known: Value,
}

/// Where documents of one kind are.
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

    /// What a document says.
    pub(crate) async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Failure> {
        self.item(key).await?.map(|item| read(item.value)).transpose()
    }

    /// A document as it stands, for [`Self::change`].
    pub(crate) async fn get_to_change<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<Kept<T>>, Failure> {
        self.item(key).await?.map(keep).transpose()
    }

    /// Writes a document where none is, durable when this returns. `None` if another one is there.
    pub(crate) async fn make<T: Serialize>(
        &self,
        key: &str,
        document: T,
    ) -> Result<Option<Kept<T>>, Failure> {
        self.put_if(key, None, document).await
    }

    /// Writes a document in place of one that was read, durable when this returns. `None` if that
    /// has been changed or deleted meanwhile.
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
        let is_there = self.ports.memory.put_if(&self.scope, known, item, now_ms).await?;
        Ok(is_there.then(|| Kept { doc: document, key: key.to_owned(), known: value }))
    }

    /// Writes a document, durable when this returns.
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
            .map_err(|error| Failure::internal(format!("a document cannot be written: {error}")))?;
        let (namespace, key) = (self.namespace.clone(), key.to_owned());
        Ok(PutItem { namespace, key, value, ttl_ms, refresh_on_read: false })
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<(), Failure> {
        self.ports.memory.delete(&self.scope, &self.namespace, key).await
    }

    /// Deletes a document that was read. Whether none is there now; if not, it has been changed
    /// meanwhile.
    pub(crate) async fn remove<T>(&self, kept: &Kept<T>) -> Result<bool, Failure> {
        let (memory, now_ms) = (&self.ports.memory, self.ports.clock.now_ms());
        memory.delete_if(&self.scope, &self.namespace, &kept.key, &kept.known, now_ms).await
    }

    /// All documents, in the order of their keys: for small ones of which there may be many.
    pub(crate) async fn every<T: DeserializeOwned>(&self) -> Result<Vec<T>, Failure> {
        Ok(self.under("").await?.into_iter().map(|kept| kept.doc).collect())
    }

    /// Those whose keys begin so, to be changed. One that cannot be read does not keep the others
    /// from anybody.
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
                        tracing::error!(kind, key, %failure, "a document is passed over");
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
        .map_err(|error| Failure::internal(format!("a stored document cannot be read: {error}")))
}
