//! What the server keeps beside threads: documents in the memory of the host, which no guest and no
//! client works in.
//!
//! * [`run`]: a run as it was asked for. The store knows a run once it has begun; what the client
//!   wanted, and runs that have not begun, stand here.
//! * [`assistant`]: a graph with settings that a client made.
//! * [`webhook`]: who is to be told when a run is over. [`cron`]: runs that come again and again.

pub(crate) mod assistant;
pub(crate) mod cron;
pub(crate) mod run;
pub(crate) mod webhook;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;
use wattle_run::ports::memory::{PutItem, Search};

/// First part of the namespaces of all documents of this server.
const ROOT: &str = "agent";

/// Documents that are listed at most: as many as one answer of the memory holds.
const LISTED: usize = wattle_run::limit::MEMORY_RESULTS;

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

    pub(crate) async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Failure> {
        let now_ms = self.ports.clock.now_ms();
        let item = self.ports.memory.get(&self.scope, &self.namespace, key, now_ms).await?;
        item.map(|item| read(item.value)).transpose()
    }

    /// Writes a document, durable when this returns.
    pub(crate) async fn put<T: Serialize>(
        &self,
        key: &str,
        document: &T,
        ttl_ms: Option<u64>,
    ) -> Result<(), Failure> {
        let value = serde_json::to_value(document)
            .map_err(|error| Failure::internal(format!("a document cannot be written: {error}")))?;
        let item = PutItem {
            namespace: self.namespace.clone(),
            key: key.to_owned(),
            value,
            ttl_ms,
            refresh_on_read: false,
        };
        self.ports.memory.put(&self.scope, item, self.ports.clock.now_ms()).await
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<(), Failure> {
        self.ports.memory.delete(&self.scope, &self.namespace, key).await
    }

    /// The documents that were written last, newest first.
    pub(crate) async fn all<T: DeserializeOwned>(&self) -> Result<Vec<T>, Failure> {
        self.listed(LISTED).await
    }

    /// All documents, page by page: for small ones of which there may be many. One that is written
    /// meanwhile may be left out or be there twice.
    pub(crate) async fn every<T: DeserializeOwned>(&self) -> Result<Vec<T>, Failure> {
        self.listed(usize::MAX).await
    }

    /// At most so many documents, in pages that become smaller where documents are large.
    async fn listed<T: DeserializeOwned>(&self, most: usize) -> Result<Vec<T>, Failure> {
        let (mut all, mut page) = (Vec::new(), LISTED);
        loop {
            let limit = page.min(most - all.len());
            let search = Search {
                prefix: self.namespace.clone(),
                limit,
                offset: all.len(),
                ..Search::default()
            };
            let now_ms = self.ports.clock.now_ms();
            let items = match self.ports.memory.search(&self.scope, &search, now_ms).await {
                Err(failure) if failure.code == code::LIMIT && limit > 1 => {
                    page = limit / 2;
                    continue;
                }
                items => items?,
            };
            let is_last = items.len() < limit;
            for item in items {
                all.push(read(item.value)?);
            }
            if is_last || all.len() >= most {
                return Ok(all);
            }
        }
    }

    pub(crate) async fn clear(&self) -> Result<(), Failure> {
        self.ports.memory.clear(&self.scope, &self.namespace).await.map(drop)
    }
}

fn read<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, Failure> {
    serde_json::from_value(value)
        .map_err(|error| Failure::internal(format!("a stored document cannot be read: {error}")))
}
