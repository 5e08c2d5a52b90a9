//! What the engine needs of the outside world, as traits. Adapters implement these traits and do
//! not know each other.
//!
//! Every method may be called concurrently. No method may block the thread that polls it for more
//! than a few microseconds: adapters move blocking work to threads of their own.

pub mod blob;
pub mod caller;
pub mod client_jobs;
pub mod clock;
pub mod installer;
pub mod lease;
pub mod link;
pub mod memory;
pub mod model;
pub mod net;
pub mod observer;
pub mod openapi;
pub mod sandbox;
pub mod sql;
pub mod statistics;
pub mod store;
pub mod tool_server;

use std::sync::Arc;

pub use blob::BlobStore;
pub use caller::Caller;
pub use client_jobs::ClientJobs;
pub use clock::Clock;
pub use installer::PluginInstaller;
pub use link::BlobLinks;
pub use memory::Memory;
pub use model::Model;
pub use net::Net;
pub use observer::Observer;
pub use sandbox::{Plugin, Sandbox};
pub use sql::Sql;
pub use statistics::Statistics;
pub use store::Store;
pub use tool_server::ToolServers;

/// All adapters. The binary or a test creates this value once.
#[derive(Clone)]
pub struct Ports {
    /// Threads, checkpoints and event logs.
    pub store: Arc<dyn Store>,
    /// Content-addressed bytes.
    pub blobs: Arc<dyn BlobStore>,
    /// Signed paths of blobs.
    pub links: BlobLinks,
    /// Long-term memory.
    pub memory: Arc<dyn Memory>,
    /// Language models.
    pub model: Arc<dyn Model>,
    /// Outbound HTTP.
    pub net: Arc<dyn Net>,
    /// Databases.
    pub sql: Arc<dyn Sql>,
    /// Tools outside of the sandbox.
    pub tools: Arc<dyn ToolServers>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Observers of runs.
    pub observer: Arc<dyn Observer>,
}
