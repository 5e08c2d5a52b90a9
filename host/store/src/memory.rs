//! Long-term memory: JSON documents under namespaces, in a file, in memory and in PostgreSQL.
//!
//! # Layout
//!
//! * `path`: the encoding of namespaces as bytes. Encoded namespaces sort like their parts.
//! * `document`: the stored form of a document, and its expiry.
//! * `search`: which documents match a search, and their ranks; `tokenize` splits texts into terms;
//!   `namespaces` selects namespaces. These modules are pure, and every adapter uses them.
//! * `scan`: the queries of all adapters with an ordered document scan.
//! * [`disk`] and [`volatile`]: the adapters. The PostgreSQL adapter is in the module of the
//!   PostgreSQL store.

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
