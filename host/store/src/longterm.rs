//! Long-term memory: JSON documents under namespaces, in a file, in memory and in PostgreSQL.
//!
//! # Layout
//!
//! * `path`: namespaces as bytes whose order is that of their parts.
//! * `record`: what is kept of a document, and how long.
//! * `find`: which documents fit a search and how well; `words` takes texts apart; `list` is the same
//!   for namespaces. They are pure, and every adapter answers by them.
//! * `shelf`: what is the same for all that can walk through their documents in order.
//! * [`disk`] and [`volatile`]: the adapters; the one for PostgreSQL stands with its store.

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
