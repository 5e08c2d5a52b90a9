//! What the engine needs of the world. Adapters implement these traits and never see each other.
//!
//! Every method may be called from many tasks at once. None may block the thread it is polled on
//! for more than a few microseconds: adapters move blocking work to threads of their own.

pub mod blob;
pub mod clock;
pub mod model;
pub mod net;
pub mod sandbox;
pub mod sql;
pub mod store;

use std::sync::Arc;

use wattle_graph::id::{AppName, PluginName};

pub use blob::BlobStore;
pub use clock::Clock;
pub use model::Model;
pub use net::Net;
pub use sandbox::{Plugin, Sandbox};
pub use sql::Sql;
pub use store::Store;

/// All adapters, wired once by the binary (or a test).
#[derive(Clone)]
pub struct Ports {
    /// Threads, checkpoints and event logs.
    pub store: Arc<dyn Store>,
    /// Content-addressed bytes.
    pub blobs: Arc<dyn BlobStore>,
    /// Language models.
    pub model: Arc<dyn Model>,
    /// Outbound HTTP.
    pub net: Arc<dyn Net>,
    /// Databases.
    pub sql: Arc<dyn Sql>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// On whose behalf an adapter is called.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The app.
    pub app: AppName,
    /// The plugin.
    pub plugin: PluginName,
    /// The tenant of the request, if any.
    pub tenant: Option<String>,
}
