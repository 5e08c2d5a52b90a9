//! The keys that were made: where they are kept, and what this host knows of them.
//!
//! They are documents of the host's own memory, so all hosts of a database share them. A host reads
//! all of them at once, at most every few seconds and only while requests come. So an unknown key
//! costs no read, and whether there is any key at all is known as well.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::Digest;
use wattle_run::limit::MEMORY_RESULTS;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::{Item, MemoryScope, PutItem, Search};

use crate::guard::kept::{KeyRecord, WantedKey};
use crate::guard::limits::{KEYS, KEYS_LIFE_MS, TENANT_KEYS, USE_KEPT_MS, USE_NOTE_MS};

/// Namespace of the keys: their records by id.
const KEYS_PLACE: &str = "keys";

/// Namespace of the notes of when they were last used. Apart from the records, since a note that is
/// late must not bring a revoked key back.
const USES_PLACE: &str = "key-uses";

/// Field of such a note.
const USED_FIELD: &str = "at_ms";

/// Keys as they were read at one time.
#[derive(Debug, Default)]
pub(crate) struct Kept(HashMap<Digest, Arc<KeyRecord>>);

impl Kept {
    /// The key with this digest.
    pub(crate) fn find(&self, digest: &Digest) -> Option<&Arc<KeyRecord>> {
        self.0.get(digest)
    }

    /// Whether there is none, neither one that has expired.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the key with this digest still opens something.
    fn opens(&self, digest: &Digest, now_ms: i64) -> bool {
        self.find(digest).is_some_and(|record| !record.is_expired(now_ms))
    }

    /// Whether any of them does.
    pub(crate) fn opens_any(&self, now_ms: i64) -> bool {
        self.values().any(|record| !record.is_expired(now_ms))
    }

    fn values(&self) -> impl Iterator<Item = &Arc<KeyRecord>> {
        self.0.values()
    }
}

impl FromIterator<KeyRecord> for Kept {
    fn from_iter<I: IntoIterator<Item = KeyRecord>>(records: I) -> Self {
        Self(records.into_iter().map(|record| (record.digest, Arc::new(record))).collect())
    }
}

/// What this host knows of the keys.
#[derive(Default)]
pub(crate) struct Keyring {
    /// What was read last, and when by the monotonic clock.
    known: Mutex<Option<(u64, Arc<Kept>)>>,
    /// Held while keys are read or changed: a reading that began before a key was revoked must not
    /// end after it.
    turn: tokio::sync::Mutex<()>,
    /// When the use of a key was last noted.
    noted: Mutex<HashMap<String, i64>>,
    /// Told when this host revokes a key.
    revoked: Notify,
}

/// No code runs under these locks, so a poisoned one still holds whole data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keyring {
    /// The keys, as they were at most [`KEYS_LIFE_MS`] ago.
    ///
    /// # Errors
    ///
    /// Those of the memory.
    pub(crate) async fn kept(&self, ports: &Ports) -> Result<Arc<Kept>, Failure> {
        if let Some(kept) = self.fresh(ports) {
            return Ok(kept);
        }
        let _turn = self.turn.lock().await;
        // Somebody may have read them while this one waited.
        match self.fresh(ports) {
            Some(kept) => Ok(kept),
            None => self.read(ports).await,
        }
    }

    fn fresh(&self, ports: &Ports) -> Option<Arc<Kept>> {
        let known = lock(&self.known);
        let (read_ns, kept) = known.as_ref()?;
        let age_ns = ports.clock.monotonic_ns().saturating_sub(*read_ns);
        (age_ns < KEYS_LIFE_MS * 1_000_000).then(|| kept.clone())
    }

    /// Reads all of them. Only in one's turn.
    async fn read(&self, ports: &Ports) -> Result<Arc<Kept>, Failure> {
        let begun_ns = ports.clock.monotonic_ns();
        let records = all(ports, KEYS_PLACE).await?.into_iter().map(|item| {
            serde_json::from_value::<KeyRecord>(item.value).map_err(|error| {
                Failure::internal(format!("the key `{}` cannot be read: {error}", item.key))
            })
        });
        let kept = Arc::new(records.collect::<Result<Kept, _>>()?);
        *lock(&self.known) = Some((begun_ns, kept.clone()));
        Ok(kept)
    }

    /// Makes a key. It opens this host at once.
    ///
    /// # Errors
    ///
    /// `invalid`, `limit` if there are too many, and those of the memory.
    pub(crate) async fn make(
        &self,
        ports: &Ports,
        wanted: WantedKey,
        maker: Option<&KeyRecord>,
    ) -> Result<(KeyRecord, String), Failure> {
        let now_ms = ports.clock.now_ms();
        let (mut record, key) = wanted.make(now_ms)?;
        if let Some(maker) = maker {
            record.within(maker);
        }
        let _turn = self.turn.lock().await;
        let kept = self.read(ports).await?;
        if kept.values().count() >= KEYS {
            let message = format!("there are {KEYS} keys, and no more may be; revoke some");
            return Err(Failure::new(code::LIMIT, message));
        }
        if let Some(tenant) = maker.and(record.tenant.as_deref()) {
            let of_it = |it: &&Arc<KeyRecord>| it.tenant.as_deref() == Some(tenant);
            if kept.values().filter(of_it).count() >= TENANT_KEYS {
                let message = format!("tenant `{tenant}` has {TENANT_KEYS} keys; revoke some");
                return Err(Failure::new(code::LIMIT, message));
            }
        }
        let value = serde_json::to_value(&record)
            .map_err(|error| Failure::internal(format!("the key cannot be written: {error}")))?;
        put(ports, KEYS_PLACE, &record.id, value, None).await?;
        self.read(ports).await?;
        Ok((record, key))
    }

    /// Revokes a key, of one tenant or of any: it opens this host no longer when this returns.
    /// Answers whether there was such a key.
    ///
    /// # Errors
    ///
    /// Those of the memory.
    pub(crate) async fn revoke(
        &self,
        ports: &Ports,
        id: &str,
        tenant: Option<&str>,
    ) -> Result<bool, Failure> {
        let _turn = self.turn.lock().await;
        let kept = self.read(ports).await?;
        let is_it = |record: &&Arc<KeyRecord>| {
            record.id == id && (tenant.is_none() || record.tenant.as_deref() == tenant)
        };
        if !kept.values().any(|record| is_it(&record)) {
            return Ok(false);
        }
        if tenant.is_some() && kept.values().count() == 1 {
            let message = "this is the last key that was made, and without any the host may be \
                           open to everybody; the operator revokes it";
            return Err(Failure::new(code::DENIED, message));
        }
        // Nobody goes by what was read before, whatever becomes of this request meanwhile.
        *lock(&self.known) = None;
        for place in [KEYS_PLACE, USES_PLACE] {
            ports.memory.delete(&scope(), &[place.to_owned()], id).await?;
        }
        self.read(ports).await?;
        self.revoked.notify_waiters();
        Ok(true)
    }

    /// Ends when a key opens nothing any more: at once if this host revokes it, and a moment later
    /// if another one does or its time is over.
    pub(crate) async fn revoked(&self, ports: &Ports, digest: &Digest) {
        loop {
            // Before the look, so that nothing is missed between the two.
            let told = self.revoked.notified();
            match self.kept(ports).await {
                Ok(kept) if !kept.opens(digest, ports.clock.now_ms()) => return,
                // Nobody is cut off because the keys cannot be read for a while.
                Ok(_) | Err(_) => {}
            }
            let _ = tokio::time::timeout(Duration::from_millis(KEYS_LIFE_MS), told).await;
        }
    }

    /// All keys of one tenant or of any, oldest first, with when each was last used.
    ///
    /// # Errors
    ///
    /// Those of the memory.
    pub(crate) async fn list(
        &self,
        ports: &Ports,
        tenant: Option<&str>,
    ) -> Result<Vec<(KeyRecord, Option<i64>)>, Failure> {
        let kept = {
            let _turn = self.turn.lock().await;
            self.read(ports).await?
        };
        let uses = all(ports, USES_PLACE).await?;
        let uses: HashMap<String, i64> = uses
            .into_iter()
            .filter_map(|item| Some((item.key, item.value.get(USED_FIELD)?.as_i64()?)))
            .collect();
        let of_tenant =
            |record: &&Arc<KeyRecord>| tenant.is_none() || record.tenant.as_deref() == tenant;
        let mut keys: Vec<_> = kept
            .values()
            .filter(of_tenant)
            .map(|record| (record.as_ref().clone(), uses.get(&record.id).copied()))
            .collect();
        keys.sort_by(|(a, _), (b, _)| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
        Ok(keys)
    }

    /// Notes that a key was used, unless that was done a moment ago. A failure is logged: nobody is
    /// kept out because of it.
    pub(crate) async fn note_use(&self, ports: &Ports, id: &str) {
        let now_ms = ports.clock.now_ms();
        {
            let mut noted = lock(&self.noted);
            if noted.get(id).is_some_and(|at_ms| now_ms - at_ms < USE_NOTE_MS) {
                return;
            }
            // Revoked keys are among those; forgetting costs each of the others one write.
            if noted.len() >= 2 * KEYS {
                noted.clear();
            }
            noted.insert(id.to_owned(), now_ms);
        }
        let note = serde_json::json!({ USED_FIELD: now_ms });
        if let Err(failure) = put(ports, USES_PLACE, id, note, Some(USE_KEPT_MS)).await {
            tracing::warn!(key = id, %failure, "cannot note that a key was used");
        }
    }
}

/// No guest and no client works in this memory.
fn scope() -> MemoryScope {
    MemoryScope::Host(None)
}

async fn all(ports: &Ports, place: &str) -> Result<Vec<Item>, Failure> {
    let prefix = vec![place.to_owned()];
    let search = Search { prefix, limit: MEMORY_RESULTS, ..Search::default() };
    ports.memory.search(&scope(), &search, ports.clock.now_ms()).await
}

async fn put(
    ports: &Ports,
    place: &str,
    key: &str,
    value: serde_json::Value,
    ttl_ms: Option<u64>,
) -> Result<(), Failure> {
    let item = PutItem {
        namespace: vec![place.to_owned()],
        key: key.to_owned(),
        value,
        ttl_ms,
        refresh_on_read: false,
    };
    ports.memory.put(&scope(), item, ports.clock.now_ms()).await
}
