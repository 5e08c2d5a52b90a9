//! Calls that are held open for the answers of people.
//!
//! A held call keeps its session open. Over HTTP several calls may share one; a program, which does not say in which
//! call it asks, is left to its call. So there are at most so many for a server and for a tenant, and none is held for
//! ever. Nothing of them outlives the host: a call whose host stopped is in doubt.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ThreadId;

/// How long a call is held. A person has until the next day to answer. A longer wait would keep the server's process
/// for nothing.
const HELD: Duration = Duration::from_hours(24);

/// Calls that are held of one server, each perhaps with a process.
const HELD_OF_SERVER: usize = 32;

/// Calls that are held for one tenant, of all servers: questions that nobody answers must not take the places of
/// other tenants.
const HELD_OF_TENANT: usize = 8;

/// Whose call it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder<'a> {
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) thread: &'a ThreadId,
    pub(crate) tenant: Option<&'a str>,
}

/// Held calls by their names. A name is good for one thread and cannot be guessed.
pub(crate) struct Held<C>(Mutex<HashMap<String, Kept<C>>>);

/// A call, or the slot for one.
struct Kept<C> {
    server: String,
    thread: ThreadId,
    tenant: Option<String>,
    /// With the task that lets go of it when its time is over.
    call: Option<(C, AbortOnDropHandle<()>)>,
}

impl<C> Default for Held<C> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<C> fmt::Debug for Held<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

impl<C: Send + 'static> Held<C> {
    /// No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Kept<C>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a call; free again if it is dropped empty.
    ///
    /// # Errors
    ///
    /// `limit` if too many calls are held.
    pub(crate) fn slot(self: &Arc<Self>, holder: Holder<'_>) -> Result<Slot<C>, Failure> {
        let Holder { server, thread, tenant, .. } = holder;
        let mut kept = self.lock();
        let of_server = kept.values().filter(|it| it.server == server).count();
        let of_tenant =
            |tenant: &str| kept.values().filter(|it| it.tenant.as_deref() == Some(tenant)).count();
        if of_server >= HELD_OF_SERVER {
            return Err(too_many(holder, "held_calls", HELD_OF_SERVER, "of the server"));
        }
        if tenant.map_or(0, of_tenant) >= HELD_OF_TENANT {
            return Err(too_many(holder, "tenant_held_calls", HELD_OF_TENANT, "of the tenant"));
        }
        let name = Uuid::new_v4().to_string();
        let place = Kept {
            server: server.to_owned(),
            thread: thread.clone(),
            tenant: tenant.map(str::to_owned),
            call: None,
        };
        kept.insert(name.clone(), place);
        Ok(Slot { held: self.clone(), name: Some(name) })
    }

    /// Takes the call of a thread that has a name.
    pub(crate) fn take(&self, thread: &ThreadId, name: &str) -> Option<C> {
        let mut kept = self.lock();
        kept.get(name).filter(|it| it.thread == *thread)?;
        let (call, _) = kept.remove(name)?.call?;
        Some(call)
    }

    /// The calls that are held, of a thread or of all threads: the thread and the name of each.
    pub(crate) fn names(&self, thread: Option<&ThreadId>) -> Vec<(ThreadId, String)> {
        let kept = self.lock();
        let is_meant =
            |it: &Kept<C>| it.call.is_some() && thread.is_none_or(|thread| it.thread == *thread);
        let meant = kept.iter().filter(|(_, it)| is_meant(it));
        meant.map(|(name, it)| (it.thread.clone(), name.clone())).collect()
    }

    /// Drops the call of a thread that has a name.
    pub(crate) fn release(&self, thread: &ThreadId, name: &str) {
        // Without the lock: what ends with a call may take long.
        drop(self.take(thread, name));
    }

    /// Takes all calls, each with the name of its server.
    pub(crate) fn drain(&self) -> Vec<(String, C)> {
        let kept = std::mem::take(&mut *self.lock());
        kept.into_values().filter_map(|kept| Some((kept.server, kept.call?.0))).collect()
    }
}

/// A slot for a call.
pub(crate) struct Slot<C: Send + 'static> {
    held: Arc<Held<C>>,
    /// `None` once the call is there.
    name: Option<String>,
}

impl<C: Send + 'static> Slot<C> {
    /// Holds a call; its name.
    pub(crate) fn hold(mut self, call: C) -> String {
        let name = self.name.take().unwrap_or_default();
        let (held, expired) = (Arc::downgrade(&self.held), name.clone());
        let timer = AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::time::sleep(HELD).await;
            let kept = held.upgrade().and_then(|held| held.lock().remove(&expired));
            if let Some(Kept { server, thread, .. }) = &kept {
                tracing::info!(server, %thread, "nobody answered an MCP server in time");
            }
        }));
        if let Some(kept) = self.held.lock().get_mut(&name) {
            kept.call = Some((call, timer));
        }
        name
    }
}

impl<C: Send + 'static> Drop for Slot<C> {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            self.held.lock().remove(&name);
        }
    }
}

fn too_many(holder: Holder<'_>, limit: &str, allowed: usize, whose: &str) -> Failure {
    let Holder { server, tool, .. } = holder;
    let text = format!(
        "the tool `{tool}` of the MCP server `{server}` asks a person, and {allowed} calls {whose} \
         wait for people already: answer some of their questions, delete their threads, or give \
         these a new input"
    );
    let details = json!({ "limit": limit, "allowed": allowed });
    Failure::new(code::LIMIT, text).with_details(details)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that is alive as long as this is.
    type Alive = Arc<()>;

    fn thread(name: &str) -> ThreadId {
        ThreadId::new(name).unwrap()
    }

    fn slot(
        held: &Arc<Held<Alive>>,
        server: &str,
        thread: &ThreadId,
        tenant: Option<&str>,
    ) -> Result<Slot<Alive>, Failure> {
        held.slot(Holder { server, tool: "book", thread, tenant })
    }

    fn hold(held: &Arc<Held<Alive>>, thread: &ThreadId, call: &Alive) -> String {
        slot(held, "s", thread, None).unwrap().hold(call.clone())
    }

    fn limit(refused: Result<Slot<Alive>, Failure>) -> String {
        let failure = refused.err().unwrap();
        assert_eq!(failure.code, code::LIMIT);
        failure.details.unwrap()["limit"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_name_is_good_for_one_thread_and_once() {
        let held = Arc::new(Held::default());
        let (own, other) = (thread("own"), thread("other"));
        let call = Alive::default();
        let (first, second) = (hold(&held, &own, &call), hold(&held, &own, &call));
        assert_ne!(first, second, "two calls of one thread are told apart, whatever they ask");
        assert!(held.take(&other, &first).is_none() && held.take(&own, "first").is_none());
        assert!(held.take(&own, &first).is_some());
        assert!(held.take(&own, &first).is_none());
        assert!(held.take(&own, &second).is_some());
    }

    #[tokio::test]
    async fn what_is_let_go_of_ends() {
        let held = Arc::new(Held::default());
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
        assert_eq!(held.drain().len(), 2);
        assert_eq!(Arc::strong_count(&call), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn no_call_is_held_for_ever() {
        let held = Arc::new(Held::default());
        let (own, call) = (thread("own"), Alive::default());
        let first = hold(&held, &own, &call);
        tokio::time::sleep(HELD / 2).await;
        let second = hold(&held, &own, &call);
        tokio::time::sleep(HELD / 2 + Duration::from_secs(1)).await;
        assert!(held.take(&own, &first).is_none());
        assert!(held.take(&own, &second).is_some());
        assert_eq!(Arc::strong_count(&call), 1);
    }

    #[tokio::test]
    async fn servers_and_tenants_have_so_many_places() {
        let held = Arc::new(Held::default());
        let thread = thread("t");
        let call = Alive::default();
        for number in 0..HELD_OF_TENANT {
            let server = format!("s{number}");
            slot(&held, &server, &thread, Some("acme")).unwrap().hold(call.clone());
        }
        assert_eq!(limit(slot(&held, "s", &thread, Some("acme"))), "tenant_held_calls");
        for _ in 0..HELD_OF_SERVER {
            slot(&held, "s", &thread, None).unwrap().hold(call.clone());
        }
        assert_eq!(limit(slot(&held, "s", &thread, Some("zeta"))), "held_calls");
        assert!(slot(&held, "other", &thread, Some("zeta")).is_ok());
        held.drain();
        // One that nobody fills is free again.
        for _ in 0..=HELD_OF_SERVER {
            assert!(slot(&held, "s", &thread, None).is_ok());
        }
    }
}
