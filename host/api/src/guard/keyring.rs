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
use crate::guard::limits::{
    KEYS, KEYS_LIFE_MS, KEYS_RETRY_MS, MAKERS, TENANT_KEYS, USE_KEPT_MS, USE_NOTE_MS,
};

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

/// A key that is to be revoked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Revocation<'r> {
    pub(crate) id: &'r str,
    /// Only a key of this tenant; of any without it.
    pub(crate) tenant: Option<&'r str>,
    /// Whether with all keys that came to be by it.
    pub(crate) with_made: bool,
    /// Whether that may leave no key that opens anything.
    pub(crate) may_be_last: bool,
}

/// Ids of keys that were revoked, and of those that they made and that still open something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Revoked {
    pub(crate) revoked: Vec<String>,
    pub(crate) left: Vec<String>,
}

/// What this host knows of the keys.
#[derive(Default)]
pub(crate) struct Keyring {
    /// What was read last, and when by the monotonic clock.
    known: Mutex<Option<(u64, Arc<Kept>)>>,
    /// Why they could not be read last, and when.
    failed: Mutex<Option<(u64, Failure)>>,
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
        // Another request may have read them while this one waited, or failed to.
        if let Some(kept) = self.fresh(ports) {
            return Ok(kept);
        }
        if let Some(failure) = self.failed_of_late(ports) {
            return Err(failure);
        }
        self.read(ports).await
    }

    /// Why the last reading failed, if that is a moment ago: requests that come while the memory is
    /// away wait for one reading and not for one each.
    fn failed_of_late(&self, ports: &Ports) -> Option<Failure> {
        let failed = lock(&self.failed);
        let (at_ns, failure) = failed.as_ref()?;
        let age_ns = ports.clock.monotonic_ns().saturating_sub(*at_ns);
        (age_ns < KEYS_RETRY_MS * 1_000_000).then(|| failure.clone())
    }

    /// Whether the last reading, however long ago, found no key at all.
    pub(crate) fn had_none(&self) -> bool {
        lock(&self.known).as_ref().is_some_and(|(_, kept)| kept.is_empty())
    }

    fn fresh(&self, ports: &Ports) -> Option<Arc<Kept>> {
        let known = lock(&self.known);
        let (read_ns, kept) = known.as_ref()?;
        let age_ns = ports.clock.monotonic_ns().saturating_sub(*read_ns);
        (age_ns < KEYS_LIFE_MS * 1_000_000).then(|| kept.clone())
    }

    /// Reads all of them. Only in one's turn.
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

    /// Makes a key. It opens this host at once.
    ///
    /// # Errors
    ///
    /// `invalid`, `limit` if there are too many or too many of one another, `denied` if the key that
    /// makes it was revoked right now, and those of the memory.
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
        // Keys are listed in the order in which they were made, also those of one millisecond.
        let newest_ms = kept.values().map(|record| record.created_ms).max();
        record.created_ms = newest_ms.map_or(now_ms, |newest_ms| now_ms.max(newest_ms + 1));
        let value = serde_json::to_value(&record)
            .map_err(|error| Failure::internal(format!("the key cannot be written: {error}")))?;
        put(ports, KEYS_PLACE, &record.id, value, None).await?;
        // Another host may have revoked the maker meanwhile. Either it is seen here that the maker is
        // gone, or that host sees the new key when it looks again.
        if let Err(failure) = check_alive(self.read(ports).await?.as_ref(), maker) {
            self.take_away(ports, std::slice::from_ref(&record.id)).await?;
            return Err(failure);
        }
        Ok((record, key))
    }

    /// Revokes a key, and those that came to be by it if that is wanted: they open this host no
    /// longer when this returns. `None` if there is nothing to revoke. The keys that a key made are
    /// found also when it was revoked before.
    ///
    /// # Errors
    ///
    /// `denied` to a tenant and `conflict` else if no key would be left that opens anything; those of
    /// the memory.
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
        // What came to be by them on another host meanwhile. Each round is of keys that those of the
        // last one made, and such a chain has an end.
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

    /// Deletes keys and reads those that are left. Only in one's turn.
    async fn take_away(&self, ports: &Ports, ids: &[String]) -> Result<Arc<Kept>, Failure> {
        // Nobody goes by what was read before, whatever becomes of this request meanwhile.
        *lock(&self.known) = None;
        for (id, place) in ids.iter().flat_map(|id| [(id, KEYS_PLACE), (id, USES_PLACE)]) {
            ports.memory.delete(&scope(), &[place.to_owned()], id).await?;
        }
        self.read(ports).await
    }

    /// Whether a key opens nothing any more.
    pub(crate) async fn is_revoked(&self, ports: &Ports, digest: &Digest) -> bool {
        // Nobody is cut off because the keys cannot be read for a while.
        let kept = self.kept(ports).await;
        kept.is_ok_and(|kept| !kept.opens(digest, ports.clock.now_ms()))
    }

    /// Ends when a key opens nothing any more: at once if this host revokes it, and a moment later
    /// if another one does or its time is over.
    pub(crate) async fn revoked(&self, ports: &Ports, digest: &Digest) {
        loop {
            // Before the look, so that nothing is missed between the two.
            let told = self.revoked.notified();
            if self.is_revoked(ports, digest).await {
                return;
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

/// Whether a key may be made, and by which.
fn check_maker(kept: &Kept, maker: Option<&KeyRecord>) -> Result<(), Failure> {
    let limit = |message: String| Err(Failure::new(code::LIMIT, message));
    if kept.values().count() >= KEYS {
        return limit(format!("there are {KEYS} keys, and no more may be; revoke some"));
    }
    check_alive(kept, maker)?;
    let Some(maker) = maker else { return Ok(()) };
    if maker.makers.len() >= MAKERS {
        return limit(format!(
            "the key `{}` came to be by {MAKERS} others, each made by the one before; make this one \
             by an earlier of them (see `made_by`)",
            maker.id
        ));
    }
    // The operator is not bound, whose key stands for no tenant.
    let Some(tenant) = maker.tenant.as_deref() else { return Ok(()) };
    let of_it = |key: &&Arc<KeyRecord>| key.tenant.as_deref() == Some(tenant);
    if kept.values().filter(of_it).count() >= TENANT_KEYS {
        return limit(format!("tenant `{tenant}` has {TENANT_KEYS} keys; revoke some"));
    }
    Ok(())
}

/// Who revokes a key with all that it made must not miss one that it is just making.
fn check_alive(kept: &Kept, maker: Option<&KeyRecord>) -> Result<(), Failure> {
    match maker {
        Some(maker) if kept.find(&maker.digest).is_none() => {
            Err(Failure::new(code::DENIED, format!("the key `{}` was revoked", maker.id)))
        }
        _ => Ok(()),
    }
}

/// Whether nobody would get in any more by a key, or everybody without one. Keys that have expired
/// keep a host closed and let nobody in, so they do not count unless they are all there is.
fn leaves_none(kept: &Kept, revoked: &[String], now_ms: i64) -> bool {
    let mut left = kept.values().filter(|key| !revoked.contains(&key.id)).peekable();
    let is_empty = left.peek().is_none();
    is_empty || (kept.opens_any(now_ms) && left.all(|key| key.is_expired(now_ms)))
}

/// Which keys a revocation means: the one that is named before those that came to be by it, so that
/// none comes to be meanwhile.
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

/// Why the last key is not revoked.
fn last(tenant: Option<&str>) -> Failure {
    if tenant.is_some() {
        let message = "no key that was made would be left that opens anything, and without any the \
                       host may be open to everybody; the operator revokes the last one";
        return Failure::new(code::DENIED, message);
    }
    let message = "no key would be left that opens anything, and without any the host is open to \
                   everybody who reaches it, or to nobody as long as one is left that has expired; \
                   make another key first, or say with `--open` (`?open=true`) that it shall be \
                   open, after those that have expired were revoked";
    Failure::new(code::CONFLICT, message)
}

/// Where the keys are kept: a host that loses all of them may be open to everybody.
pub fn keys_place() -> (MemoryScope, Vec<String>) {
    (scope(), vec![KEYS_PLACE.to_owned()])
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
    fn a_key_that_was_revoked_makes_none() {
        let maker = key(Some("a"));
        assert_eq!(refused(std::slice::from_ref(&maker), Some(&maker)), None);
        assert_eq!(refused(&[key(None)], Some(&maker)).as_deref(), Some(code::DENIED));
        assert_eq!(refused(&[], None), None, "the operator needs none");
    }

    #[test]
    fn there_are_so_many_keys_of_a_tenant_and_of_all() {
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
    fn keys_are_made_of_one_another_so_often_and_none_is_forgotten() {
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
        assert_eq!(meant(&kept, wanted, 0).revoked.len(), chain.len(), "by the first, all go");
    }

    #[test]
    fn a_key_that_has_expired_is_not_one_that_is_left() {
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
        assert!(leaves_none(&[&first, &expired], &first, 5), "nobody would get in");
        assert!(!leaves_none(&[&first, &expired], &expired, 5));
        assert!(leaves_none(&[&expired], &expired, 5), "everybody would get in");

        let wanted =
            Revocation { id: &first.id, tenant: None, with_made: false, may_be_last: true };
        let left = |now_ms| meant(&kept(&[&first, &expired]), wanted, now_ms).left;
        assert_eq!((left(4), left(5)), (vec![expired.id.clone()], Vec::new()));
    }

    #[test]
    fn a_tenant_revokes_its_own_only() {
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
        assert_eq!(revoke(None)[0], operators.id, "before those that it made");
        assert_eq!(revoke(Some("a")), [made[0].id.clone()]);
    }
}
