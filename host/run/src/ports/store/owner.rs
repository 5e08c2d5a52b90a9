//! Owners of threads, whose usage is counted together.

use std::collections::BTreeMap;

use wattle_graph::id::{AppName, ThreadId};

use crate::ports::blob::BlobRef;

/// An owner of threads, whose usage is counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// One thread.
    Thread(ThreadId),
    /// All threads of an app, of any tenant.
    App(AppName),
    /// All threads of a tenant, of any app.
    Tenant(String),
}

impl Owner {
    /// Returns true if the owner has a thread.
    pub fn has(&self, thread: &ThreadId, app: &AppName, tenant: Option<&str>) -> bool {
        match self {
            Self::Thread(one) => one == thread,
            Self::App(name) => name == app,
            Self::Tenant(name) => tenant == Some(name),
        }
    }
}

/// The usage of threads in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnerUsage {
    /// Number of threads.
    pub threads: u64,
    /// Bytes of the threads, without blobs.
    pub bytes: u64,
}

impl OwnerUsage {
    /// Adds a thread with its bytes.
    pub fn add(&mut self, bytes: u64) {
        self.threads += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The usage of all threads in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreUsage {
    /// Usage by app and tenant. Threads without a tenant have `None`.
    pub owners: BTreeMap<(AppName, Option<String>), OwnerUsage>,
    /// Bytes of the tables and indexes of a database; `None` for a store without a database.
    pub database_bytes: Option<u64>,
}

impl StoreUsage {
    /// Adds a thread with its bytes.
    pub fn add(&mut self, app: &AppName, tenant: Option<&str>, bytes: u64) {
        self.owners.entry((app.clone(), tenant.map(str::to_owned))).or_default().add(bytes);
    }
}

/// A page of the blobs that threads mention.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MentionPage {
    /// The blobs.
    pub blobs: Vec<BlobRef>,
    /// Start of the next page; `None` after the last.
    pub next: Option<String>,
}
