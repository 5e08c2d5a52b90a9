//! Created keys: their storage, and the cache of this host.
//!
//! The key records are in the host's own memory, which all hosts of a database share. A host reads
//! all records together, at most every few seconds, and only while requests arrive. A request with
//! an unknown key therefore causes no read of its own, and the host knows whether any key exists.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::Digest;
use wattle_run::limit::MEMORY_RESULTS;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::{Item, MemoryScope, MemorySearch, PutItem};

use crate::guard::kept::{KeyRecord, WantedKey};
use crate::guard::limits::{
    KEYS, KEYS_LIFE_MS, KEYS_RETRY_MS, MAKERS, TENANT_KEYS, USE_KEPT_MS, USE_NOTE_MS,
};

/// Memory namespace of the key records, by id.
const KEYS_PLACE: &str = "keys";

/// Memory namespace of the times of last use. They are separate from the records, because a delayed
/// write of a time must not restore the record of a revoked key.
const USES_PLACE: &str = "key-uses";

/// Field with the time of last use.
const USED_FIELD: &str = "at_ms";

/// A snapshot of all keys.
#[derive(Debug, Default)]
pub(crate) struct Kept(HashMap<Digest, Arc<KeyRecord>>);

impl Kept {
    /// Returns the key with a digest.
    pub(crate) fn find(&self, digest: &Digest) -> Option<&Arc<KeyRecord>> {
        self.0.get(digest)
    }

    /// Returns true if there is no key at all, not even an expired one.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the key with a digest is active: it exists and has not expired.
    fn opens(&self, digest: &Digest, now_ms: i64) -> bool {
        self.find(digest).is_some_and(|record| !record.is_expired(now_ms))
    }

    /// Returns true if any key is active.
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

/// Parameters of a revocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Revocation<'r> {
    pub(crate) id: &'r str,
    /// Restricts the revocation to keys of this tenant; `None` permits all keys.
    pub(crate) tenant: Option<&'r str>,
    /// True to revoke the descendants of the key, too.
    pub(crate) with_made: bool,
    /// True to permit the revocation of the last active key.
    pub(crate) may_be_last: bool,
}

/// Ids of the revoked keys, and of the active keys that they created and that remain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Revoked {
    pub(crate) revoked: Vec<String>,
    pub(crate) left: Vec<String>,
}

/// Creates and revokes keys, and caches their records.
#[derive(Default)]
pub(crate) struct Keyring {
    /// Last snapshot, with the monotonic time at which it was read, in nanoseconds.
    known: Mutex<Option<(u64, Arc<Kept>)>>,
    /// Failure of the last read, with its monotonic time in nanoseconds.
    failed: Mutex<Option<(u64, Failure)>>,
    /// Locked during reads and changes of keys. Otherwise a read that starts before a revocation
    /// could complete after it and cache the revoked key.
    turn: tokio::sync::Mutex<()>,
    /// Time of the last recorded use by key id, in milliseconds since 1970.
    noted: Mutex<HashMap<String, i64>>,
    /// Notified when this host revokes a key.
    revoked: Notify,
}

/// Locks a mutex and ignores poisoning: no other code runs under the lock, so its data is
/// consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keyring {
    /// Returns the keys, in a snapshot that is at most [`KEYS_LIFE_MS`] old.
    ///
    /// # Errors
    ///
    /// Those of the memory.
    pub(crate) async fn kept(&self, ports: &Ports) -> Result<Arc<Kept>, Failure> {
        if let Some(kept) = self.fresh(ports) {
            return Ok(kept);
        }
        let _turn = self.turn.lock().await;
        // While this request waited for the lock, another one may have read the keys, or failed to.
        if let Some(kept) = self.fresh(ports) {
            return Ok(kept);
        }
        if let Some(failure) = self.failed_of_late(ports) {
            return Err(failure);
        }
        self.read(ports).await
    }

    /// Returns the failure of the last read if it is younger than [`KEYS_RETRY_MS`]. While the
    /// memory is unavailable, concurrent requests thus share one failed read.
    fn failed_of_late(&self, ports: &Ports) -> Option<Failure> {
        let failed = lock(&self.failed);
        let (at_ns, failure) = failed.as_ref()?;
        let age_ns = ports.clock.monotonic_ns().saturating_sub(*at_ns);
        (age_ns < KEYS_RETRY_MS * 1_000_000).then(|| failure.clone())
    }

    /// Returns true if the last snapshot contains no key, whatever its age.
    pub(crate) fn had_none(&self) -> bool {
        lock(&self.known).as_ref().is_some_and(|(_, kept)| kept.is_empty())
    }

    fn fresh(&self, ports: &Ports) -> Option<Arc<Kept>> {
        let known = lock(&self.known);
        let (read_ns, kept) = known.as_ref()?;
        let age_ns = ports.clock.monotonic_ns().saturating_sub(*read_ns);
        (age_ns < KEYS_LIFE_MS * 1_000_000).then(|| kept.clone())
    }

    /// Reads all keys. The caller must hold the lock `turn`.
    async fn read(&self, ports: &Ports) -> Result<Arc<Kept>, Failure> {
        let read = self.read_all(ports).await;
        let failed = read.as_ref().err().cloned();
        *lock(&self.failed) = failed.map(|failure| (ports.clock.monotonic_ns(), failure));
        read
    }

    async fn read_all(&self, ports: &Ports) -> Result<Arc<Kept>, Failure> {
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

    /// Creates a key. This host accepts the key as soon as the function returns.
    ///
    /// # Errors
    ///
    /// `invalid`, `limit` if there are too many keys or the key has too many ancestors, `denied` if
    /// the creator was revoked meanwhile, and those of the memory.
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
        check_maker(kept.as_ref(), maker)?;
        // Creation times are unique, so that lists show keys in the order of their creation.
        let newest_ms = kept.values().map(|record| record.created_ms).max();
        record.created_ms = newest_ms.map_or(now_ms, |newest_ms| now_ms.max(newest_ms + 1));
        let value = serde_json::to_value(&record)
            .map_err(|error| Failure::internal(format!("the key cannot be written: {error}")))?;
        put(ports, KEYS_PLACE, &record.id, value, None).await?;
        // Another host may have revoked the creator in the meantime. Either this read no longer
        // finds the creator, or the next read of that host finds the new key.
        if let Err(failure) = check_alive(self.read(ports).await?.as_ref(), maker) {
            self.take_away(ports, std::slice::from_ref(&record.id)).await?;
            return Err(failure);
        }
        Ok((record, key))
    }

    /// Revokes a key, and its descendants with `with_made`. After the function returns, this host
    /// no longer accepts these keys. Returns `None` if no key was found. With `with_made`, the
    /// descendants of a key that was revoked earlier are found, too.
    ///
    /// # Errors
    ///
    /// If no active key would remain, `denied` for a tenant and `conflict` otherwise; those of the
    /// memory.
    pub(crate) async fn revoke(
        &self,
        ports: &Ports,
        wanted: Revocation<'_>,
    ) -> Result<Option<Revoked>, Failure> {
        let _turn = self.turn.lock().await;
        let now_ms = ports.clock.now_ms();
        let kept = self.read(ports).await?;
        let mut done = meant(&kept, wanted, now_ms);
        if done.revoked.is_empty() {
            return Ok(None);
        }
        if !wanted.may_be_last && leaves_none(&kept, &done.revoked, now_ms) {
            return Err(last(wanted.tenant));
        }
        let mut kept = self.take_away(ports, &done.revoked).await?;
        // Another host may have created descendants in the meantime. Each round revokes the keys
        // that those of the round before created, so the maximum number of ancestors limits the
        // rounds.
        for _ in 0..MAKERS {
            let more = meant(&kept, wanted, now_ms).revoked;
            if more.is_empty() {
                break;
            }
            kept = self.take_away(ports, &more).await?;
            done.revoked.extend(more);
        }
        self.revoked.notify_waiters();
        Ok(Some(done))
    }

    /// Deletes keys and reads the remaining ones. The caller must hold the lock `turn`.
    async fn take_away(&self, ports: &Ports, ids: &[String]) -> Result<Arc<Kept>, Failure> {
        // Invalidate the cache first: if the deletion is aborted, no request uses the stale cache.
        *lock(&self.known) = None;
        for (id, place) in ids.iter().flat_map(|id| [(id, KEYS_PLACE), (id, USES_PLACE)]) {
            ports.memory.delete(&scope(), &[place.to_owned()], id).await?;
        }
        self.read(ports).await
    }

    /// Returns true if a key is revoked or expired.
    pub(crate) async fn is_revoked(&self, ports: &Ports, digest: &Digest) -> bool {
        // A failure to read the keys keeps open connections open.
        let kept = self.kept(ports).await;
        kept.is_ok_and(|kept| !kept.opens(digest, ports.clock.now_ms()))
    }

    /// Waits until a key is revoked or expires. Notices a revocation by this host immediately, and
    /// any other within [`KEYS_LIFE_MS`].
    pub(crate) async fn revoked(&self, ports: &Ports, digest: &Digest) {
        loop {
            // Register before the check, so that no revocation between the two is missed.
            let told = self.revoked.notified();
            if self.is_revoked(ports, digest).await {
                return;
            }
            let _ = tokio::time::timeout(Duration::from_millis(KEYS_LIFE_MS), told).await;
        }
    }

    /// Lists the keys of a tenant, or all keys, oldest first, with the time of their last use.
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

    /// Records the use of a key, at most once per [`USE_NOTE_MS`]. A failure is logged and does not
    /// affect the request.
    pub(crate) async fn note_use(&self, ports: &Ports, id: &str) {
        let now_ms = ports.clock.now_ms();
        {
            let mut noted = lock(&self.noted);
            if noted.get(id).is_some_and(|at_ms| now_ms - at_ms < USE_NOTE_MS) {
                return;
            }
            // The map also contains revoked keys. Clearing it costs one additional write for each
            // active key.
            if noted.len() >= 2 * KEYS {
                noted.clear();
            }
            noted.insert(id.to_owned(), now_ms);
        }
        let note = serde_json::json!({ USED_FIELD: now_ms });
        if let Err(failure) = put(ports, USES_PLACE, id, note, Some(USE_KEPT_MS)).await {
            tracing::warn!(key = id, %failure, "failed to record the last use of a key");
        }
    }
}

/// Checks that a key may be created, by the given creator.
fn check_maker(kept: &Kept, maker: Option<&KeyRecord>) -> Result<(), Failure> {
    let limit = |message: String| Err(Failure::new(code::LIMIT, message));
    if kept.values().count() >= KEYS {
        return limit(format!("limit of {KEYS} keys reached; revoke unused keys"));
    }
    check_alive(kept, maker)?;
    let Some(maker) = maker else { return Ok(()) };
    if maker.makers.len() >= MAKERS {
        return limit(format!(
            "the key `{}` has {MAKERS} ancestors, which is the maximum; create the key with one of \
             them instead (see `made_by`)",
            maker.id
        ));
    }
    // The limit does not apply to keys without a tenant, which are the operator's.
    let Some(tenant) = maker.tenant.as_deref() else { return Ok(()) };
    let of_it = |key: &&Arc<KeyRecord>| key.tenant.as_deref() == Some(tenant);
    if kept.values().filter(of_it).count() >= TENANT_KEYS {
        return limit(format!(
            "limit of {TENANT_KEYS} keys of tenant `{tenant}` reached; revoke unused keys"
        ));
    }
    Ok(())
}

/// Checks that the creator was not revoked in the meantime: a revocation with descendants must not
/// miss a key that is being created.
fn check_alive(kept: &Kept, maker: Option<&KeyRecord>) -> Result<(), Failure> {
    match maker {
        Some(maker) if kept.find(&maker.digest).is_none() => {
            Err(Failure::new(code::DENIED, format!("the key `{}` was revoked", maker.id)))
        }
        _ => Ok(()),
    }
}

/// Returns true if no active key would remain. If all keys have already expired, returns true only
/// if no key at all would remain: an expired key is not accepted, but its existence keeps the host
/// closed.
fn leaves_none(kept: &Kept, revoked: &[String], now_ms: i64) -> bool {
    let mut left = kept.values().filter(|key| !revoked.contains(&key.id)).peekable();
    let is_empty = left.peek().is_none();
    is_empty || (kept.opens_any(now_ms) && left.all(|key| key.is_expired(now_ms)))
}

/// Selects the keys of a revocation: the named key first, so that it cannot create further keys
/// while its descendants are revoked.
fn meant(kept: &Kept, wanted: Revocation<'_>, now_ms: i64) -> Revoked {
    let Revocation { id, tenant, with_made, .. } = wanted;
    let own = kept.values().filter(|key| tenant.is_none() || key.tenant.as_deref() == tenant);
    let (named, others): (Vec<_>, Vec<_>) = own.partition(|key| key.id == id);
    let mut made: Vec<_> =
        others.into_iter().filter(|key| key.makers.iter().any(|maker| maker == id)).collect();
    made.sort_by(|one, other| (one.created_ms, &one.id).cmp(&(other.created_ms, &other.id)));
    let ids = |keys: Vec<&Arc<KeyRecord>>| keys.into_iter().map(|key| key.id.clone()).collect();
    if with_made {
        return Revoked { revoked: ids([named, made].concat()), left: Vec::new() };
    }
    made.retain(|key| !key.is_expired(now_ms));
    Revoked { revoked: ids(named), left: ids(made) }
}

/// Returns the failure for the revocation of the last active key.
fn last(tenant: Option<&str>) -> Failure {
    if tenant.is_some() {
        let message = "this is the last active key, and without keys the host may be open to every \
                       caller; only the operator can revoke it";
        return Failure::new(code::DENIED, message);
    }
    let message = "no active key would remain: without keys the host is open to every caller that \
                   reaches it, and with expired keys only it rejects every request; create another \
                   key first, or revoke this one with `--open` (`?open=true`)";
    Failure::new(code::CONFLICT, message)
}

/// Returns the memory scope and namespace of the keys. A host that loses all keys may be open to
/// every caller.
pub fn keys_place() -> (MemoryScope, Vec<String>) {
    (scope(), vec![KEYS_PLACE.to_owned()])
}

/// Returns the memory scope of the host itself, which neither guests nor clients can access.
fn scope() -> MemoryScope {
    MemoryScope::Host(None)
}

async fn all(ports: &Ports, place: &str) -> Result<Vec<Item>, Failure> {
    let prefix = vec![place.to_owned()];
    let search = MemorySearch { prefix, limit: MEMORY_RESULTS, ..MemorySearch::default() };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(tenant: Option<&str>) -> KeyRecord {
        let tenant = tenant.map(str::to_owned);
        WantedKey { name: "k".into(), tenant, ..WantedKey::default() }.make(0).unwrap().0
    }

    fn refused(kept: &[KeyRecord], maker: Option<&KeyRecord>) -> Option<String> {
        let kept = kept.iter().cloned().collect();
        check_maker(&kept, maker).err().map(|failure| failure.code)
    }

    #[test]
    fn revoked_key_cannot_create_keys() {
        let maker = key(Some("a"));
        assert_eq!(refused(std::slice::from_ref(&maker), Some(&maker)), None);
        assert_eq!(refused(&[key(None)], Some(&maker)).as_deref(), Some(code::DENIED));
        assert_eq!(refused(&[], None), None, "the operator needs no key");
    }

    #[test]
    fn number_of_keys_is_limited_per_tenant_and_in_total() {
        let (maker, limit) = (key(Some("a")), Some(code::LIMIT.to_owned()));
        let operators = key(None);
        let mut kept = vec![operators.clone(), maker.clone()];
        kept.extend((1..TENANT_KEYS).map(|_| key(Some("a"))));
        assert_eq!(refused(&kept, Some(&maker)), limit);
        assert_eq!((refused(&kept, Some(&operators)), refused(&kept, None)), (None, None));
        kept.resize_with(KEYS, || key(None));
        assert_eq!(refused(&kept, None), limit);
    }

    #[test]
    fn chain_of_keys_is_limited_and_revoked_as_a_whole() {
        let mut chain = vec![key(None)];
        while refused(&chain, chain.last()).is_none() {
            let mut next = key(None);
            next.within(&chain[chain.len() - 1]);
            chain.push(next);
        }
        assert_eq!(refused(&chain, chain.last()).as_deref(), Some(code::LIMIT));
        assert_eq!(chain.len(), MAKERS + 1);
        let id = chain[0].id.as_str();
        let wanted = Revocation { id, tenant: None, with_made: true, may_be_last: true };
        let kept = chain.iter().cloned().collect();
        assert_eq!(meant(&kept, wanted, 0).revoked.len(), chain.len(), "the first key revokes all");
    }

    #[test]
    fn expired_keys_do_not_count_as_active() {
        let (first, second) = (key(None), key(None));
        let mut expired = key(None);
        expired.within(&first);
        expired.expires_ms = Some(5);
        let kept = |keys: &[&KeyRecord]| keys.iter().copied().cloned().collect::<Kept>();
        let leaves_none = |keys: &[&KeyRecord], revoked: &KeyRecord, now_ms| {
            leaves_none(&kept(keys), std::slice::from_ref(&revoked.id), now_ms)
        };
        assert!(leaves_none(&[&first], &first, 0));
        assert!(!leaves_none(&[&first, &second, &expired], &first, 5));
        assert!(!leaves_none(&[&first, &expired], &first, 4));
        assert!(leaves_none(&[&first, &expired], &first, 5), "no request would be accepted");
        assert!(!leaves_none(&[&first, &expired], &expired, 5));
        assert!(leaves_none(&[&expired], &expired, 5), "every request would be accepted");

        let wanted =
            Revocation { id: &first.id, tenant: None, with_made: false, may_be_last: true };
        let left = |now_ms| meant(&kept(&[&first, &expired]), wanted, now_ms).left;
        assert_eq!((left(4), left(5)), (vec![expired.id.clone()], Vec::new()));
    }

    #[test]
    fn tenant_revokes_only_its_own_keys() {
        let operators = key(None);
        let mut made = [key(Some("a")), key(Some("b"))];
        for made in &mut made {
            made.within(&operators);
        }
        let kept: Kept = made.iter().chain([&operators]).cloned().collect();
        let revoke = |tenant| {
            let id = operators.id.as_str();
            meant(&kept, Revocation { id, tenant, with_made: true, may_be_last: false }, 0).revoked
        };
        assert_eq!(revoke(None).len(), 3);
        assert_eq!(revoke(None)[0], operators.id, "before its descendants");
        assert_eq!(revoke(Some("a")), [made[0].id.clone()]);
    }
}
