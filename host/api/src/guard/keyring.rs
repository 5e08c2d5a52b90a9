//! Created keys: their storage, and the cache of this host.
//!
//! The key records are in the host's own memory, which all hosts of a database share. A host reads
//! all records together, at most every few seconds, and only while requests arrive. A request with
//! an unknown key therefore causes no additional read, and the host knows whether any key exists.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::Digest;
use wattle_run::limit::MEMORY_RESULTS;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::{Item, MemoryScope, MemorySearch, PutItem};

use crate::guard::key_record::{KeyRecord, NewKey};
use crate::guard::limits::{
    KEY_CACHE_TTL_MS, KEY_RELOAD_RETRY_MS, KEY_USE_INTERVAL_MS, KEY_USE_TTL_MS, MAX_KEY_ANCESTORS,
    MAX_KEYS, MAX_TENANT_KEYS,
};

/// Memory namespace of the key records, by id.
const KEYS_NAMESPACE: &str = "keys";

/// Memory namespace of the times of last use. They are separate from the records, because a delayed
/// write of a time must not restore the record of a revoked key.
const KEY_USES_NAMESPACE: &str = "key-uses";

/// Field with the time of last use.
const USED_FIELD: &str = "at_ms";

/// A snapshot of all keys.
#[derive(Debug, Default)]
pub(crate) struct KeySet(HashMap<Digest, Arc<KeyRecord>>);

impl KeySet {
    /// Returns the key with a digest.
    pub(crate) fn find(&self, digest: &Digest) -> Option<&Arc<KeyRecord>> {
        self.0.get(digest)
    }

    /// Returns true if there is no key at all, not even an expired one.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the key with a digest is active: it exists and has not expired.
    fn is_active(&self, digest: &Digest, now_ms: i64) -> bool {
        self.find(digest).is_some_and(|record| !record.is_expired(now_ms))
    }

    /// Returns true if any key is active.
    pub(crate) fn has_active(&self, now_ms: i64) -> bool {
        self.values().any(|record| !record.is_expired(now_ms))
    }

    /// Returns the ids and names of the keys that a request sees, ordered by id: all keys for the
    /// operator, else those of `tenant`, or those without a tenant if it is `None`.
    pub(crate) fn names(&self, is_operator: bool, tenant: Option<&str>) -> Vec<(&str, &str)> {
        let is_visible =
            |record: &&Arc<KeyRecord>| is_operator || record.tenant.as_deref() == tenant;
        let visible = self.values().filter(is_visible);
        let mut names: Vec<_> =
            visible.map(|record| (record.id.as_str(), record.name.as_str())).collect();
        names.sort_unstable();
        names
    }

    fn values(&self) -> impl Iterator<Item = &Arc<KeyRecord>> {
        self.0.values()
    }
}

impl FromIterator<KeyRecord> for KeySet {
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
    /// True to also revoke the descendants of the key.
    pub(crate) with_descendants: bool,
    /// True to permit the revocation of the last active key.
    pub(crate) allow_last: bool,
}

/// Ids of the revoked keys, and of their active descendants that remain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Revoked {
    pub(crate) revoked: Vec<String>,
    pub(crate) remaining: Vec<String>,
}

/// Creates and revokes keys, and caches their records.
#[derive(Default)]
pub(crate) struct Keyring {
    /// Last snapshot, with the monotonic time at which it was read, in nanoseconds.
    cache: Mutex<Option<(u64, Arc<KeySet>)>>,
    /// Failure of the last read, with its monotonic time in nanoseconds.
    failed: Mutex<Option<(u64, Failure)>>,
    /// Locked during reads and changes of keys. Otherwise a read that starts before a revocation
    /// could complete after it and cache the revoked key.
    update_lock: tokio::sync::Mutex<()>,
    /// Map from the id of a key to the time of the key's last recorded use, in milliseconds since
    /// 1970.
    recorded_uses: Mutex<HashMap<String, i64>>,
    /// Notified when this host revokes a key.
    revoked: Notify,
}

/// Locks a mutex and ignores poisoning: no other code runs under the lock, so its data is
/// consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keyring {
    /// Returns the keys, in a snapshot that is at most [`KEY_CACHE_TTL_MS`] old.
    ///
    /// # Errors
    ///
    /// The errors of the memory.
    pub(crate) async fn keys(&self, ports: &Ports) -> Result<Arc<KeySet>, Failure> {
        if let Some(keys) = self.cached(ports) {
            return Ok(keys);
        }
        let _guard = self.update_lock.lock().await;
        // While this request waited for the lock, another request may have read the keys, or failed
        // to read them.
        if let Some(keys) = self.cached(ports) {
            return Ok(keys);
        }
        if let Some(failure) = self.recent_failure(ports) {
            return Err(failure);
        }
        self.reload(ports).await
    }

    /// Returns the failure of the last read if it is younger than [`KEY_RELOAD_RETRY_MS`]. While
    /// the memory is unavailable, concurrent requests thus share one failed read.
    fn recent_failure(&self, ports: &Ports) -> Option<Failure> {
        let failed = lock(&self.failed);
        let (at_ns, failure) = failed.as_ref()?;
        let age_ns = ports.clock.monotonic_ns().saturating_sub(*at_ns);
        (age_ns < KEY_RELOAD_RETRY_MS * 1_000_000).then(|| failure.clone())
    }

    /// Returns true if the last snapshot contains no key. The age of the snapshot does not matter.
    pub(crate) fn had_no_keys(&self) -> bool {
        lock(&self.cache).as_ref().is_some_and(|(_, keys)| keys.is_empty())
    }

    fn cached(&self, ports: &Ports) -> Option<Arc<KeySet>> {
        let cache = lock(&self.cache);
        let (read_ns, keys) = cache.as_ref()?;
        let age_ns = ports.clock.monotonic_ns().saturating_sub(*read_ns);
        (age_ns < KEY_CACHE_TTL_MS * 1_000_000).then(|| keys.clone())
    }

    /// Reads all keys. The caller must hold the lock `update_lock`.
    async fn reload(&self, ports: &Ports) -> Result<Arc<KeySet>, Failure> {
        let result = self.load(ports).await;
        let failure = result.as_ref().err().cloned();
        *lock(&self.failed) = failure.map(|failure| (ports.clock.monotonic_ns(), failure));
        result
    }

    async fn load(&self, ports: &Ports) -> Result<Arc<KeySet>, Failure> {
        let begun_ns = ports.clock.monotonic_ns();
        let records = load_items(ports, KEYS_NAMESPACE).await?.into_iter().map(|item| {
            serde_json::from_value::<KeyRecord>(item.value).map_err(|error| {
                Failure::internal(format!("the key `{}` cannot be read: {error}", item.key))
            })
        });
        let keys = Arc::new(records.collect::<Result<KeySet, _>>()?);
        *lock(&self.cache) = Some((begun_ns, keys.clone()));
        Ok(keys)
    }

    /// Creates a key. This host accepts the key as soon as the function returns.
    ///
    /// # Errors
    ///
    /// `invalid`, `limit` if there are too many keys or the key has too many ancestors, `denied` if
    /// the creator was revoked after the request was admitted, and errors of the memory.
    pub(crate) async fn create(
        &self,
        ports: &Ports,
        new: NewKey,
        creator: Option<&KeyRecord>,
    ) -> Result<(KeyRecord, String), Failure> {
        let now_ms = ports.clock.now_ms();
        let (mut record, key) = new.generate(now_ms)?;
        if let Some(creator) = creator {
            record.restrict_to(creator);
        }
        let _guard = self.update_lock.lock().await;
        let keys = self.reload(ports).await?;
        check_may_create(keys.as_ref(), creator)?;
        // Creation times are unique, so that lists show keys in the order of their creation.
        let newest_ms = keys.values().map(|record| record.created_ms).max();
        record.created_ms = newest_ms.map_or(now_ms, |newest_ms| now_ms.max(newest_ms + 1));
        let value = serde_json::to_value(&record)
            .map_err(|error| Failure::internal(format!("the key cannot be written: {error}")))?;
        put_item(ports, KEYS_NAMESPACE, &record.id, value, None).await?;
        // Another host may have revoked the creator since the check. Either this read no longer
        // finds the creator, or the next read of that host finds the new key.
        if let Err(failure) = check_not_revoked(self.reload(ports).await?.as_ref(), creator) {
            self.delete_keys(ports, std::slice::from_ref(&record.id)).await?;
            return Err(failure);
        }
        Ok((record, key))
    }

    /// Revokes a key, and its descendants with `with_descendants`. After the function returns, this
    /// host no longer accepts these keys. Returns `None` if no key was found. With
    /// `with_descendants`, the descendants of a key that was revoked earlier are also found.
    ///
    /// # Errors
    ///
    /// If no active key would remain, `denied` for a tenant and `conflict` otherwise; errors of the
    /// memory.
    pub(crate) async fn revoke(
        &self,
        ports: &Ports,
        revocation: Revocation<'_>,
    ) -> Result<Option<Revoked>, Failure> {
        let _guard = self.update_lock.lock().await;
        let now_ms = ports.clock.now_ms();
        let keys = self.reload(ports).await?;
        let mut revoked = select(&keys, revocation, now_ms);
        if revoked.revoked.is_empty() {
            return Ok(None);
        }
        if !revocation.allow_last && leaves_no_active_key(&keys, &revoked.revoked, now_ms) {
            return Err(last_key_failure(revocation.tenant));
        }
        let mut keys = self.delete_keys(ports, &revoked.revoked).await?;
        // Another host may have created descendants after the keys were read. Each round revokes
        // the keys that the keys of the previous round created. The maximum number of ancestors
        // therefore limits the number of rounds.
        for _ in 0..MAX_KEY_ANCESTORS {
            let more = select(&keys, revocation, now_ms).revoked;
            if more.is_empty() {
                break;
            }
            keys = self.delete_keys(ports, &more).await?;
            revoked.revoked.extend(more);
        }
        self.revoked.notify_waiters();
        Ok(Some(revoked))
    }

    /// Deletes keys and reads the remaining keys. The caller must hold the lock `update_lock`.
    async fn delete_keys(&self, ports: &Ports, ids: &[String]) -> Result<Arc<KeySet>, Failure> {
        // Invalidate the cache first: if the deletion is aborted, no request uses the stale cache.
        *lock(&self.cache) = None;
        for (id, namespace) in
            ids.iter().flat_map(|id| [(id, KEYS_NAMESPACE), (id, KEY_USES_NAMESPACE)])
        {
            ports.memory.delete(&memory_scope(), &[namespace.to_owned()], id).await?;
        }
        self.reload(ports).await
    }

    /// Returns true if a key is revoked or expired.
    pub(crate) async fn is_revoked(&self, ports: &Ports, digest: &Digest) -> bool {
        // A failure to read the keys keeps open connections open.
        let keys = self.keys(ports).await;
        keys.is_ok_and(|keys| !keys.is_active(digest, ports.clock.now_ms()))
    }

    /// Waits until a key is revoked or expires. Detects a revocation by this host immediately, and
    /// a revocation by another host or an expiry within [`KEY_CACHE_TTL_MS`].
    pub(crate) async fn revoked(&self, ports: &Ports, digest: &Digest) {
        loop {
            // Register before the check, so that no revocation between the two is missed.
            let notified = self.revoked.notified();
            if self.is_revoked(ports, digest).await {
                return;
            }
            let _ = tokio::time::timeout(Duration::from_millis(KEY_CACHE_TTL_MS), notified).await;
        }
    }

    /// Lists the keys of a tenant, or all keys, oldest first, with the time of their last use.
    ///
    /// # Errors
    ///
    /// The errors of the memory.
    pub(crate) async fn list(
        &self,
        ports: &Ports,
        tenant: Option<&str>,
    ) -> Result<Vec<(KeyRecord, Option<i64>)>, Failure> {
        let key_set = {
            let _guard = self.update_lock.lock().await;
            self.reload(ports).await?
        };
        let uses = load_items(ports, KEY_USES_NAMESPACE).await?;
        let uses: HashMap<String, i64> = uses
            .into_iter()
            .filter_map(|item| Some((item.key, item.value.get(USED_FIELD)?.as_i64()?)))
            .collect();
        let of_tenant =
            |record: &&Arc<KeyRecord>| tenant.is_none() || record.tenant.as_deref() == tenant;
        let mut keys: Vec<_> = key_set
            .values()
            .filter(of_tenant)
            .map(|record| (record.as_ref().clone(), uses.get(&record.id).copied()))
            .collect();
        keys.sort_by(|(a, _), (b, _)| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
        Ok(keys)
    }

    /// Records the use of a key, at most once per [`KEY_USE_INTERVAL_MS`]. A failure is logged and
    /// does not affect the request.
    pub(crate) async fn record_use(&self, ports: &Ports, id: &str) {
        let now_ms = ports.clock.now_ms();
        {
            let mut recorded_uses = lock(&self.recorded_uses);
            if recorded_uses.get(id).is_some_and(|at_ms| now_ms - at_ms < KEY_USE_INTERVAL_MS) {
                return;
            }
            // The map also contains revoked keys. Clearing it costs one additional write for each
            // active key.
            if recorded_uses.len() >= 2 * MAX_KEYS {
                recorded_uses.clear();
            }
            recorded_uses.insert(id.to_owned(), now_ms);
        }
        let value = serde_json::json!({ USED_FIELD: now_ms });
        if let Err(failure) =
            put_item(ports, KEY_USES_NAMESPACE, id, value, Some(KEY_USE_TTL_MS)).await
        {
            tracing::warn!(key = id, %failure, "failed to record the last use of a key");
        }
    }
}

/// Checks that another key may be created, and that `creator` may create it.
fn check_may_create(keys: &KeySet, creator: Option<&KeyRecord>) -> Result<(), Failure> {
    let limit = |message: String| Err(Failure::new(code::LIMIT, message));
    if keys.values().count() >= MAX_KEYS {
        return limit(format!("limit of {MAX_KEYS} keys reached; revoke unused keys"));
    }
    check_not_revoked(keys, creator)?;
    let Some(creator) = creator else { return Ok(()) };
    if creator.ancestors.len() >= MAX_KEY_ANCESTORS {
        return limit(format!(
            "the key `{}` has {MAX_KEY_ANCESTORS} ancestors, which is the maximum; create the key \
             with one of them instead (see `made_by`)",
            creator.id
        ));
    }
    // The limit does not apply to keys without a tenant, because they belong to the operator.
    let Some(tenant) = creator.tenant.as_deref() else { return Ok(()) };
    let of_tenant = |key: &&Arc<KeyRecord>| key.tenant.as_deref() == Some(tenant);
    if keys.values().filter(of_tenant).count() >= MAX_TENANT_KEYS {
        return limit(format!(
            "limit of {MAX_TENANT_KEYS} keys of tenant `{tenant}` reached; revoke unused keys"
        ));
    }
    Ok(())
}

/// Checks that the key that creates another key has not been revoked since its request was
/// admitted. Otherwise, a revocation with descendants could miss the key that is being created.
fn check_not_revoked(keys: &KeySet, creator: Option<&KeyRecord>) -> Result<(), Failure> {
    match creator {
        Some(creator) if keys.find(&creator.digest).is_none() => {
            Err(Failure::new(code::DENIED, format!("the key `{}` was revoked", creator.id)))
        }
        _ => Ok(()),
    }
}

/// Returns true if no active key would remain. If all keys have already expired, returns true only
/// if no key at all would remain: an expired key is not accepted, but its existence keeps the host
/// closed.
fn leaves_no_active_key(keys: &KeySet, revoked: &[String], now_ms: i64) -> bool {
    let mut remaining = keys.values().filter(|key| !revoked.contains(&key.id)).peekable();
    let is_empty = remaining.peek().is_none();
    is_empty || (keys.has_active(now_ms) && remaining.all(|key| key.is_expired(now_ms)))
}

/// Selects the keys of a revocation: the named key first, so that it cannot create further keys
/// while its descendants are revoked.
fn select(keys: &KeySet, revocation: Revocation<'_>, now_ms: i64) -> Revoked {
    let Revocation { id, tenant, with_descendants, .. } = revocation;
    let accessible =
        keys.values().filter(|key| tenant.is_none() || key.tenant.as_deref() == tenant);
    let (named, others): (Vec<_>, Vec<_>) = accessible.partition(|key| key.id == id);
    let mut descendants: Vec<_> = others
        .into_iter()
        .filter(|key| key.ancestors.iter().any(|ancestor| ancestor == id))
        .collect();
    descendants.sort_by(|one, other| (one.created_ms, &one.id).cmp(&(other.created_ms, &other.id)));
    let ids = |keys: Vec<&Arc<KeyRecord>>| keys.into_iter().map(|key| key.id.clone()).collect();
    if with_descendants {
        return Revoked { revoked: ids([named, descendants].concat()), remaining: Vec::new() };
    }
    descendants.retain(|key| !key.is_expired(now_ms));
    Revoked { revoked: ids(named), remaining: ids(descendants) }
}

/// Returns the failure for the revocation of the last active key.
fn last_key_failure(tenant: Option<&str>) -> Failure {
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
pub fn keys_namespace() -> (MemoryScope, Vec<String>) {
    (memory_scope(), vec![KEYS_NAMESPACE.to_owned()])
}

/// Returns the memory scope of the host itself, which neither guests nor clients can access.
fn memory_scope() -> MemoryScope {
    MemoryScope::Host(None)
}

async fn load_items(ports: &Ports, namespace: &str) -> Result<Vec<Item>, Failure> {
    let prefix = vec![namespace.to_owned()];
    let search = MemorySearch { prefix, limit: MEMORY_RESULTS, ..MemorySearch::default() };
    ports.memory.search(&memory_scope(), &search, ports.clock.now_ms()).await
}

async fn put_item(
    ports: &Ports,
    namespace: &str,
    key: &str,
    value: serde_json::Value,
    ttl_ms: Option<u64>,
) -> Result<(), Failure> {
    let item = PutItem {
        namespace: vec![namespace.to_owned()],
        key: key.to_owned(),
        value,
        ttl_ms,
        refresh_on_read: false,
    };
    ports.memory.put(&memory_scope(), item, ports.clock.now_ms()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(tenant: Option<&str>) -> KeyRecord {
        let tenant = tenant.map(str::to_owned);
        NewKey { name: "k".into(), tenant, ..NewKey::default() }.generate(0).unwrap().0
    }

    fn rejection_code(keys: &[KeyRecord], creator: Option<&KeyRecord>) -> Option<String> {
        let keys = keys.iter().cloned().collect();
        check_may_create(&keys, creator).err().map(|failure| failure.code)
    }

    #[test]
    fn revoked_key_cannot_create_keys() {
        let creator = key(Some("a"));
        assert_eq!(rejection_code(std::slice::from_ref(&creator), Some(&creator)), None);
        assert_eq!(rejection_code(&[key(None)], Some(&creator)).as_deref(), Some(code::DENIED));
        assert_eq!(rejection_code(&[], None), None, "the operator needs no key");
    }

    #[test]
    fn number_of_keys_is_limited_per_tenant_and_in_total() {
        let (creator, limit) = (key(Some("a")), Some(code::LIMIT.to_owned()));
        let operators = key(None);
        let mut keys = vec![operators.clone(), creator.clone()];
        keys.extend((1..MAX_TENANT_KEYS).map(|_| key(Some("a"))));
        assert_eq!(rejection_code(&keys, Some(&creator)), limit);
        assert_eq!(
            (rejection_code(&keys, Some(&operators)), rejection_code(&keys, None)),
            (None, None)
        );
        keys.resize_with(MAX_KEYS, || key(None));
        assert_eq!(rejection_code(&keys, None), limit);
    }

    #[test]
    fn chain_of_keys_created_by_keys_is_limited_and_revoked_as_a_whole() {
        let mut chain = vec![key(None)];
        while rejection_code(&chain, chain.last()).is_none() {
            let mut next = key(None);
            next.restrict_to(&chain[chain.len() - 1]);
            chain.push(next);
        }
        assert_eq!(rejection_code(&chain, chain.last()).as_deref(), Some(code::LIMIT));
        assert_eq!(chain.len(), MAX_KEY_ANCESTORS + 1);
        let id = chain[0].id.as_str();
        let revocation = Revocation { id, tenant: None, with_descendants: true, allow_last: true };
        let keys = chain.iter().cloned().collect();
        assert_eq!(
            select(&keys, revocation, 0).revoked.len(),
            chain.len(),
            "the first key revokes all"
        );
    }

    #[test]
    fn expired_keys_do_not_count_as_active() {
        let (first, second) = (key(None), key(None));
        let mut expired = key(None);
        expired.restrict_to(&first);
        expired.expires_ms = Some(5);
        let key_set = |keys: &[&KeyRecord]| keys.iter().copied().cloned().collect::<KeySet>();
        let leaves_no_active_key = |keys: &[&KeyRecord], revoked: &KeyRecord, now_ms| {
            leaves_no_active_key(&key_set(keys), std::slice::from_ref(&revoked.id), now_ms)
        };
        assert!(leaves_no_active_key(&[&first], &first, 0));
        assert!(!leaves_no_active_key(&[&first, &second, &expired], &first, 5));
        assert!(!leaves_no_active_key(&[&first, &expired], &first, 4));
        assert!(
            leaves_no_active_key(&[&first, &expired], &first, 5),
            "no request would be accepted"
        );
        assert!(!leaves_no_active_key(&[&first, &expired], &expired, 5));
        assert!(leaves_no_active_key(&[&expired], &expired, 5), "every request would be accepted");

        let revocation =
            Revocation { id: &first.id, tenant: None, with_descendants: false, allow_last: true };
        let remaining =
            |now_ms| select(&key_set(&[&first, &expired]), revocation, now_ms).remaining;
        assert_eq!((remaining(4), remaining(5)), (vec![expired.id.clone()], Vec::new()));
    }

    #[test]
    fn names_are_those_of_all_keys_for_the_operator_and_of_its_tenant_for_others() {
        let created = [key(Some("a")), key(Some("b")), key(None)];
        let keys: KeySet = created.iter().cloned().collect();
        for (tenant, record) in [Some("a"), Some("b"), None].into_iter().zip(&created) {
            assert_eq!(keys.names(false, tenant), [(record.id.as_str(), "k")]);
            assert_eq!(keys.names(true, tenant).len(), created.len());
        }
        assert!(keys.names(false, Some("c")).is_empty());
        assert!(keys.names(true, None).is_sorted());
    }

    #[test]
    fn tenant_revokes_only_its_own_keys() {
        let operators = key(None);
        let mut created = [key(Some("a")), key(Some("b"))];
        for key in &mut created {
            key.restrict_to(&operators);
        }
        let keys: KeySet = created.iter().chain([&operators]).cloned().collect();
        let revoke = |tenant| {
            let id = operators.id.as_str();
            select(&keys, Revocation { id, tenant, with_descendants: true, allow_last: false }, 0)
                .revoked
        };
        assert_eq!(revoke(None).len(), 3);
        assert_eq!(revoke(None)[0], operators.id, "before its descendants");
        assert_eq!(revoke(Some("a")), [created[0].id.clone()]);
    }
}
