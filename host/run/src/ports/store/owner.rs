//! Whose threads are counted together.

use wattle_graph::id::{AppName, ThreadId};

use crate::ports::blob::BlobRef;

/// Whose threads are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// One thread.
    Thread(ThreadId),
    /// All threads of an app, of whatever tenant.
    App(AppName),
    /// All threads of a tenant, of whatever app.
    Tenant(String),
}

impl Owner {
    /// Whether a thread is its own.
    pub fn has(&self, thread: &ThreadId, app: &AppName, tenant: Option<&str>) -> bool {
        match self {
            Self::Thread(one) => one == thread,
            Self::App(name) => name == app,
            Self::Tenant(name) => tenant == Some(name),
        }
    }
}

/// What threads take in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// How many there are.
    pub threads: u64,
    /// Their bytes, blobs not counted.
    pub bytes: u64,
}

impl Taken {
    /// Counts a thread with its bytes.
    pub fn add(&mut self, bytes: u64) {
        self.threads += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Some of the blobs that threads mention.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MentionPage {
    /// The blobs.
    pub blobs: Vec<BlobRef>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}
