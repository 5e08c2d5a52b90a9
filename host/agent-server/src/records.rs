//! Records that the server stores in addition to threads, in the memory scope of the host, which
//! neither guests nor clients can access.
//!
//! * [`assistant`]: assistants that clients created.
//! * [`cron`]: crons and their due times.
//! * [`webhook`]: webhooks, pending, abandoned and delivered.
//! * [`legacy`]: runs as older versions stored them.

pub(crate) mod assistant;
pub(crate) mod cron;
pub(crate) mod legacy;
pub(crate) mod webhook;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wattle_graph::failure::Failure;
use wattle_run::json::approx_bytes;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::{Item, MemoryScope, PutItem};
use wattle_run::ports::store::{RemainingBudget, SearchBudget};

/// First part of the namespaces of all records of this server.
const NAMESPACE_ROOT: &str = "agent";

/// Number of records in one list request: the maximum that the memory allows.
const LIST_BATCH: usize = wattle_run::limit::MEMORY_RESULTS;

/// Maximum number of attempts to change a record by compare-and-swap. Each failed attempt means
/// that another writer succeeded, so the limit is reached only if [`MAX_ATTEMPTS`] requests change
/// the same record at the same time.
const MAX_ATTEMPTS: usize = 16;

/// Repeats a compare-and-swap until it succeeds. Each attempt reads the record again. Returns
/// `None` if another writer came first in each of [`MAX_ATTEMPTS`] attempts.
///
/// # Errors
///
/// The error of an attempt. An error is not retried.
pub(crate) async fn retry_on_conflict<T, E, A>(attempt: impl Fn() -> A) -> Result<Option<T>, E>
where
    A: Future<Output = Result<Option<T>, E>>,
{
    for _ in 0..MAX_ATTEMPTS {
        if let Some(result) = attempt().await? {
            return Ok(Some(result));
        }
    }
    Ok(None)
}

/// A record together with the JSON value that was read. [`Collection::replace`] returns `None` if
/// the stored value is no longer equal to it.
#[derive(Clone, Debug)]
pub(crate) struct Versioned<T> {
    /// The decoded value.
    pub(crate) value: T,
    pub(crate) key: String,
    stored: Value,
}

/// A page of a list of records.
pub(crate) struct RecordPage<T> {
    /// The records with their keys.
    pub(crate) records: Vec<(String, T)>,
    /// Position after which the list continues; `None` if nothing follows.
    pub(crate) next: Option<String>,
}

/// The records of one type, under one namespace of the memory.
pub(crate) struct Collection<'p> {
    ports: &'p Ports,
    scope: MemoryScope,
    namespace: Vec<String>,
}

impl<'p> Collection<'p> {
    pub(crate) fn new(ports: &'p Ports, scope: MemoryScope, parts: &[&str]) -> Self {
        let parts = [NAMESPACE_ROOT].iter().chain(parts).map(|part| (*part).to_owned());
        Self { ports, scope, namespace: parts.collect() }
    }

    async fn item(&self, key: &str) -> Result<Option<Item>, Failure> {
        let now_ms = self.ports.clock.now_ms();
        self.ports.memory.get(&self.scope, &self.namespace, key, now_ms).await
    }

    /// Reads a record.
    pub(crate) async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Failure> {
        self.item(key).await?.map(|item| decode(item.value)).transpose()
    }

    /// Reads a record to change it with [`Self::replace`].
    pub(crate) async fn get_versioned<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<Versioned<T>>, Failure> {
        self.item(key).await?.map(to_versioned).transpose()
    }

    /// Inserts a record. The record is durable when this method returns. Returns `None` if the key
    /// exists.
    pub(crate) async fn insert<T: Serialize>(
        &self,
        key: &str,
        record: T,
    ) -> Result<Option<Versioned<T>>, Failure> {
        self.put_if(key, None, record).await
    }

    /// Replaces a record that was read. The change is durable when this method returns. Returns
    /// `None` if the record was changed or deleted since it was read.
    pub(crate) async fn replace<T: Serialize>(
        &self,
        versioned: &Versioned<T>,
        record: T,
    ) -> Result<Option<Versioned<T>>, Failure> {
        self.put_if(&versioned.key, Some(&versioned.stored), record).await
    }

    async fn put_if<T: Serialize>(
        &self,
        key: &str,
        expected: Option<&Value>,
        record: T,
    ) -> Result<Option<Versioned<T>>, Failure> {
        let item = self.put_item(key, &record, None)?;
        let (stored, now_ms) = (item.value.clone(), self.ports.clock.now_ms());
        let is_written =
            self.ports.memory.compare_and_set(&self.scope, expected, item, now_ms).await?;
        Ok(is_written.then(|| Versioned { value: record, key: key.to_owned(), stored }))
    }

    /// Writes a record. The record is durable when this method returns.
    pub(crate) async fn put<T: Serialize>(
        &self,
        key: &str,
        record: &T,
        ttl_ms: Option<u64>,
    ) -> Result<(), Failure> {
        let item = self.put_item(key, record, ttl_ms)?;
        self.ports.memory.put(&self.scope, item, self.ports.clock.now_ms()).await
    }

    fn put_item<T: Serialize>(
        &self,
        key: &str,
        record: &T,
        ttl_ms: Option<u64>,
    ) -> Result<PutItem, Failure> {
        let value = serde_json::to_value(record).map_err(|error| {
            Failure::internal(format!("a record cannot be serialized: {error}"))
        })?;
        let (namespace, key) = (self.namespace.clone(), key.to_owned());
        Ok(PutItem { namespace, key, value, ttl_ms, refresh_on_read: false })
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<(), Failure> {
        self.ports.memory.delete(&self.scope, &self.namespace, key).await
    }

    /// Deletes a record that was read. Returns `true` if no record has the key afterwards, `false`
    /// if the record was changed since it was read.
    pub(crate) async fn delete_unchanged<T>(
        &self,
        versioned: &Versioned<T>,
    ) -> Result<bool, Failure> {
        let (memory, now_ms) = (&self.ports.memory, self.ports.clock.now_ms());
        memory
            .compare_and_delete(
                &self.scope,
                &self.namespace,
                &versioned.key,
                &versioned.stored,
                now_ms,
            )
            .await
    }

    /// Lists all records by key. Suitable for small records only, because all records are in memory
    /// at once.
    pub(crate) async fn list<T: DeserializeOwned>(&self) -> Result<Vec<T>, Failure> {
        Ok(self.list_prefix("").await?.into_iter().map(|versioned| versioned.value).collect())
    }

    /// Lists the records whose keys have a prefix, to change them. A record that cannot be decoded
    /// is logged and skipped.
    pub(crate) async fn list_prefix<T: DeserializeOwned>(
        &self,
        prefix: &str,
    ) -> Result<Vec<Versioned<T>>, Failure> {
        let (mut all, mut after) = (Vec::new(), prefix.to_owned());
        loop {
            let items = self.batch(&after).await?;
            let Some(last) = items.last() else { return Ok(all) };
            after.clone_from(&last.key);
            for item in items {
                if !item.key.starts_with(prefix) {
                    return Ok(all);
                }
                all.extend(self.decode_or_skip(item));
            }
        }
    }

    /// Lists at most `limit` records after a position that satisfy a condition, by key. Keeps one
    /// batch in memory, and examines no more records than the budget of a search permits. A page
    /// may therefore be short or empty although another page follows.
    pub(crate) async fn page<T: DeserializeOwned + Send>(
        &self,
        after: &str,
        limit: usize,
        is_wanted: impl Fn(&T) -> bool + Send,
    ) -> Result<RecordPage<T>, Failure> {
        let (mut records, mut budget) = (Vec::new(), RemainingBudget::new(SearchBudget::default()));
        let mut examined = after.to_owned();
        loop {
            let items = self.batch(&examined).await?;
            if items.is_empty() {
                return Ok(RecordPage { records, next: None });
            }
            for item in items {
                let is_full = records.len() == limit;
                if !budget.take(approx_bytes(&item.value)) {
                    let next = if is_full {
                        last_key(&records)
                    } else {
                        Some(position_between(&examined, &item.key))
                    };
                    return Ok(RecordPage { records, next });
                }
                examined.clone_from(&item.key);
                let Some(record) = self.decode_or_skip::<T>(item) else { continue };
                if !is_wanted(&record.value) {
                    continue;
                }
                if is_full {
                    return Ok(RecordPage { next: last_key(&records), records });
                }
                records.push((record.key, record.value));
            }
        }
    }

    /// Returns the next records after a key.
    async fn batch(&self, after: &str) -> Result<Vec<Item>, Failure> {
        let now_ms = self.ports.clock.now_ms();
        let (memory, namespace) = (&self.ports.memory, &self.namespace);
        memory.list(&self.scope, namespace, after, LIST_BATCH, now_ms).await
    }

    /// Decodes a record of a list. A record that cannot be decoded is logged and skipped, so that
    /// the others remain available.
    fn decode_or_skip<T: DeserializeOwned>(&self, item: Item) -> Option<Versioned<T>> {
        let key = item.key.clone();
        let decoded = to_versioned(item);
        if let Err(failure) = &decoded {
            let kind = self.namespace.join("/");
            tracing::error!(kind, key, %failure, "skipped a record that cannot be decoded");
        }
        decoded.ok()
    }

    /// Deletes the records that `keeps` does not keep, and those that cannot be decoded. `keeps` is
    /// called by key.
    pub(crate) async fn retain<T: DeserializeOwned>(
        &self,
        mut keeps: impl FnMut(&T) -> bool + Send,
    ) -> Result<(), Failure> {
        let mut after = String::new();
        loop {
            let items = self.batch(&after).await?;
            let Some(last) = items.last() else { return Ok(()) };
            after.clone_from(&last.key);
            for item in items {
                let is_kept = decode::<T>(item.value).is_ok_and(|record| keeps(&record));
                if !is_kept {
                    self.delete(&item.key).await?;
                }
            }
        }
    }

    pub(crate) async fn delete_all(&self) -> Result<(), Failure> {
        self.ports.memory.clear(&self.scope, &self.namespace).await.map(drop)
    }
}

fn last_key<T>(records: &[(String, T)]) -> Option<String> {
    records.last().map(|(key, _)| key.clone())
}

/// Returns a position that is not before the key `last`, and before the key `next`, which follows
/// it. A reader of the position may have no access to the records of these keys, so the position
/// has no more of `last` than the first character that differs, if such a position exists.
fn position_between(last: &str, next: &str) -> String {
    let shared = last.chars().zip(next.chars()).take_while(|(one, other)| one == other).count();
    let mut position: String = last.chars().take(shared + 1).collect();
    // Greater than the characters of ids.
    position.push('~');
    let is_between = last <= position.as_str() && position.as_str() < next;
    if is_between { position } else { last.to_owned() }
}

fn to_versioned<T: DeserializeOwned>(item: Item) -> Result<Versioned<T>, Failure> {
    let stored = item.value.clone();
    Ok(Versioned { value: decode(item.value)?, key: item.key, stored })
}

fn decode<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value)
        .map_err(|error| Failure::internal(format!("a stored record cannot be decoded: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_is_between_two_keys_and_ends_where_they_differ() {
        for (last, next, position) in [
            ("1a-05", "1a-17", "1a-0~"),
            ("1a-05", "1b-00", "1a~"),
            ("a", "b", "a~"),
            // No shorter position is between these keys.
            ("a", "a0", "a"),
            ("a~~", "b", "a~~"),
        ] {
            assert_eq!(position_between(last, next), position);
            assert!(last <= position && position < next);
        }
    }
}
