//! Long-term memory: JSON documents under namespaces, in a file, in memory and in PostgreSQL.
//!
//! # Layout
//!
//! * `path`: namespaces as bytes that sort as their parts do.
//! * `document`: the stored form of a document, and its expiry.
//! * `search`: which documents match a search, and how they rank; `tokenize` splits texts into
//!   terms; `namespaces` selects namespaces. These modules are pure, and every adapter uses them.
//! * `scan`: the queries of all adapters with an ordered document scan.
//! * [`disk`] and [`volatile`]: the adapters. The PostgreSQL adapter is in the module of that
//!   store.

pub mod disk;
pub(crate) mod document;
pub(crate) mod namespaces;
pub(crate) mod path;
pub(crate) mod scan;
pub(crate) mod search;
mod tokenize;
pub mod volatile;

pub use disk::{EssentialDocuments, RedbMemory};
pub use volatile::VolatileMemory;
