//! Long-term memory: JSON documents under namespaces, in a file, in memory and in PostgreSQL.
//!
//! # Layout
//!
//! * `path`: namespaces as bytes that sort as their parts do.
//! * `record`: the stored form of a document, and its expiry.
//! * `find`: which documents match a search, and how they rank; `words` splits texts into words;
//!   `list` selects namespaces. These modules are pure, and every adapter uses them.
//! * `shelf`: the queries of all adapters with an ordered document scan.
//! * [`disk`] and [`volatile`]: the adapters. The PostgreSQL adapter is in the module of that
//!   store.

pub mod disk;
pub(crate) mod find;
pub(crate) mod list;
pub(crate) mod path;
pub(crate) mod record;
pub(crate) mod shelf;
pub mod volatile;
mod words;

pub use disk::{EssentialDocuments, RedbMemory};
pub use volatile::VolatileMemory;
