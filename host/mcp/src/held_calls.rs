//! Held calls: calls whose server waits for the answer of a person.
//!
//! A held call keeps its session open. Over HTTP several calls can share a session. A stdio server
//! does not name the call in its elicitations, so only one held call can use its process. The
//! number and the duration of held calls are therefore limited, for each server and each tenant.
//! Held calls do not survive a restart of the host: a held call becomes a call in doubt when its
//! host stops.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ThreadId;

/// Timeout of a held call, which gives a person one day to answer. With a longer timeout,
/// unanswered calls would occupy the processes of servers for longer.
const HELD_TIMEOUT: Duration = Duration::from_hours(24);

/// Maximum held calls of one server; each held call can occupy a process.
const MAX_HELD_PER_SERVER: usize = 32;

/// Maximum held calls of one tenant on all servers, so that unanswered elicitations do not use up
/// the slots of other tenants.
const MAX_HELD_PER_TENANT: usize = 8;

/// The owner of a held call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallOwner<'a> {
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) thread: &'a ThreadId,
    pub(crate) tenant: Option<&'a str>,
}

/// Held calls by their random names. A name is valid only for the thread of the call.
pub(crate) struct HeldCalls<C>(Mutex<HashMap<String, HeldEntry<C>>>);

/// A held call, or a reserved slot.
struct HeldEntry<C> {
    server: String,
    thread: ThreadId,
    tenant: Option<String>,
    /// The call, and the task that drops the call after [`HELD_TIMEOUT`]; `None` for a reserved
    /// slot.
    call: Option<(C, AbortOnDropHandle<()>)>,
}

impl<C> Default for HeldCalls<C> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<C> fmt::Debug for HeldCalls<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

impl<C: Send + 'static> HeldCalls<C> {
    /// Locks the held calls. Ignores poisoning, because no code that holds this lock can panic.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, HeldEntry<C>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a slot for a call. Dropping a slot without a call frees the slot.
    ///
    /// # Errors
    ///
    /// Returns `limit` if too many calls are held.
    pub(crate) fn reserve(self: &Arc<Self>, holder: CallOwner<'_>) -> Result<HeldSlot<C>, Failure> {
        let CallOwner { server, thread, tenant, .. } = holder;
        let mut kept = self.lock();
        let of_server = kept.values().filter(|it| it.server == server).count();
        let of_tenant =
            |tenant: &str| kept.values().filter(|it| it.tenant.as_deref() == Some(tenant)).count();
        if of_server >= MAX_HELD_PER_SERVER {
            return Err(too_many(holder, "held_calls", MAX_HELD_PER_SERVER, "of the server"));
        }
        if tenant.map_or(0, of_tenant) >= MAX_HELD_PER_TENANT {
            return Err(too_many(
                holder,
                "tenant_held_calls",
                MAX_HELD_PER_TENANT,
                "of the tenant",
            ));
        }
        let name = Uuid::new_v4().to_string();
        let place = HeldEntry {
            server: server.to_owned(),
            thread: thread.clone(),
            tenant: tenant.map(str::to_owned),
            call: None,
        };
        kept.insert(name.clone(), place);
        Ok(HeldSlot { calls: self.clone(), name: Some(name) })
    }

    /// Removes and returns the held call `name`, if the call belongs to the thread.
    pub(crate) fn take(&self, thread: &ThreadId, name: &str) -> Option<C> {
        let mut kept = self.lock();
        kept.get(name).filter(|it| it.thread == *thread)?;
        let (call, _) = kept.remove(name)?.call?;
        Some(call)
    }

    /// Returns the thread and the name of each held call of one thread, or of all threads.
    pub(crate) fn names(&self, thread: Option<&ThreadId>) -> Vec<(ThreadId, String)> {
        let kept = self.lock();
        let is_meant = |it: &HeldEntry<C>| {
            it.call.is_some() && thread.is_none_or(|thread| it.thread == *thread)
        };
        let meant = kept.iter().filter(|(_, it)| is_meant(it));
        meant.map(|(name, it)| (it.thread.clone(), name.clone())).collect()
    }

    /// Drops the held call `name`, if the call belongs to the thread.
    pub(crate) fn release(&self, thread: &ThreadId, name: &str) {
        // The call is dropped outside of the lock, since this can take long.
        drop(self.take(thread, name));
    }

    /// Removes all calls. Returns each with the name of its server.
    pub(crate) fn take_all(&self) -> Vec<(String, C)> {
        let kept = std::mem::take(&mut *self.lock());
        kept.into_values().filter_map(|kept| Some((kept.server, kept.call?.0))).collect()
    }
}

/// A reserved slot for a held call.
pub(crate) struct HeldSlot<C: Send + 'static> {
    calls: Arc<HeldCalls<C>>,
    /// Name of the slot. `None` once the slot holds a call, since dropping the `HeldSlot` then no
    /// longer frees the slot.
    name: Option<String>,
}

impl<C: Send + 'static> HeldSlot<C> {
    /// Stores a call in the slot. Returns the name by which [`HeldCalls::take`] finds the call.
    pub(crate) fn hold(mut self, call: C) -> String {
        let name = self.name.take().unwrap_or_default();
        let (held, expired) = (Arc::downgrade(&self.calls), name.clone());
        let timer = AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::time::sleep(HELD_TIMEOUT).await;
            let kept = held.upgrade().and_then(|held| held.lock().remove(&expired));
            if let Some(HeldEntry { server, thread, .. }) = &kept {
                tracing::info!(server, %thread, "a held call has expired without an answer");
            }
        }));
        if let Some(kept) = self.calls.lock().get_mut(&name) {
            kept.call = Some((call, timer));
        }
        name
    }
}

impl<C: Send + 'static> Drop for HeldSlot<C> {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            self.calls.lock().remove(&name);
        }
    }
}

fn too_many(holder: CallOwner<'_>, limit: &str, allowed: usize, whose: &str) -> Failure {
    let CallOwner { server, tool, .. } = holder;
    let text = format!(
        "the tool `{tool}` of the MCP server `{server}` asks a person, but {allowed} calls {whose} \
         wait for people already: answer some of their interrupts, delete their threads, or start \
         these with a new input"
    );
    let details = json!({ "limit": limit, "allowed": allowed });
    Failure::new(code::LIMIT, text).with_details(details)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Represents a call in these tests. The reference count shows how many calls are held.
    type Alive = Arc<()>;

    fn thread(name: &str) -> ThreadId {
        ThreadId::new(name).unwrap()
    }

    fn slot(
        held: &Arc<HeldCalls<Alive>>,
        server: &str,
        thread: &ThreadId,
        tenant: Option<&str>,
    ) -> Result<HeldSlot<Alive>, Failure> {
        held.reserve(CallOwner { server, tool: "book", thread, tenant })
    }

    fn hold(held: &Arc<HeldCalls<Alive>>, thread: &ThreadId, call: &Alive) -> String {
        slot(held, "s", thread, None).unwrap().hold(call.clone())
    }

    fn limit(refused: Result<HeldSlot<Alive>, Failure>) -> String {
        let failure = refused.err().unwrap();
        assert_eq!(failure.code, code::LIMIT);
        failure.details.unwrap()["limit"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn held_call_can_be_taken_once_and_only_for_its_thread() {
        let held = Arc::new(HeldCalls::default());
        let (own, other) = (thread("own"), thread("other"));
        let call = Alive::default();
        let (first, second) = (hold(&held, &own, &call), hold(&held, &own, &call));
        assert_ne!(first, second, "each call of a thread has a name of its own");
        assert!(held.take(&other, &first).is_none() && held.take(&own, "first").is_none());
        assert!(held.take(&own, &first).is_some());
        assert!(held.take(&own, &first).is_none());
        assert!(held.take(&own, &second).is_some());
    }

    #[tokio::test]
    async fn released_calls_are_dropped() {
        let held = Arc::new(HeldCalls::default());
        let (own, other) = (thread("own"), thread("other"));
        let call = Alive::default();
        let first = hold(&held, &own, &call);
        let second = hold(&held, &own, &call);
        hold(&held, &other, &call);
        held.release(&other, &first);
        assert_eq!(Arc::strong_count(&call), 4, "another thread's name");
        held.release(&own, &first);
        assert_eq!(Arc::strong_count(&call), 3);
        assert_eq!(held.names(Some(&own)), [(own.clone(), second)]);
        assert_eq!(held.names(None).len(), 2);
        assert_eq!(held.take_all().len(), 2);
        assert_eq!(Arc::strong_count(&call), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn held_calls_expire() {
        let held = Arc::new(HeldCalls::default());
        let (own, call) = (thread("own"), Alive::default());
        let first = hold(&held, &own, &call);
        tokio::time::sleep(HELD_TIMEOUT / 2).await;
        let second = hold(&held, &own, &call);
        tokio::time::sleep(HELD_TIMEOUT / 2 + Duration::from_secs(1)).await;
        assert!(held.take(&own, &first).is_none());
        assert!(held.take(&own, &second).is_some());
        assert_eq!(Arc::strong_count(&call), 1);
    }

    #[tokio::test]
    async fn held_calls_are_limited_by_server_and_tenant() {
        let held = Arc::new(HeldCalls::default());
        let thread = thread("t");
        let call = Alive::default();
        for number in 0..MAX_HELD_PER_TENANT {
            let server = format!("s{number}");
            slot(&held, &server, &thread, Some("acme")).unwrap().hold(call.clone());
        }
        assert_eq!(limit(slot(&held, "s", &thread, Some("acme"))), "tenant_held_calls");
        for _ in 0..MAX_HELD_PER_SERVER {
            slot(&held, "s", &thread, None).unwrap().hold(call.clone());
        }
        assert_eq!(limit(slot(&held, "s", &thread, Some("zeta"))), "held_calls");
        assert!(slot(&held, "other", &thread, Some("zeta")).is_ok());
        held.take_all();
        // A slot that is dropped without a call is free again.
        for _ in 0..=MAX_HELD_PER_SERVER {
            assert!(slot(&held, "s", &thread, None).is_ok());
        }
    }
}
