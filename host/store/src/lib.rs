//! Checkpoint and blob stores of Wattle, in a file, in PostgreSQL and in memory.
//!
//! | port | in a file | in PostgreSQL | in memory |
//! |---|---|---|---|
//! | [`Store`](wattle_run::ports::Store) | [`RedbStore`] | [`PostgresStore`] | [`MemoryStore`] |
//! | [`BlobStore`](wattle_run::ports::BlobStore) | [`FileBlobs`] | [`PostgresBlobs`] | [`MemoryBlobs`] |
//! | [`Memory`](wattle_run::ports::Memory) | [`RedbMemory`] | [`PostgresMemory`] | [`VolatileMemory`] |
//!
//! All stores answer alike; what they share (which batches are valid, how a filter matches, what
//! pruning leaves) is written once, and one conformance suite runs over all of them.
//!
//! # Layout
//!
//! * [`disk`]: the file store, its format, its writer thread and its readers.
//! * [`postgres`]: the store in a database, for many hosts.
//! * [`memory`]: the store that forgets.
//! * [`longterm`]: what agents remember over all threads.
//! * [`blob`]: content-addressed bytes; [`sweep`]: the deletion of those nobody mentions.
//! * `rules`: which batches are valid; `query`: which threads and checkpoints match.
//! * `plan`: what stays when something is taken away; `tail`: when a list is written whole again.
//! * `pending`: runs that were asked for and have not begun.
//! * `lease`: who may write, for stores of one process.
//! * `file`: files of redb that may be damaged or fail.
//! * `codec`: how records become bytes; `mention`: which blobs such bytes mention.
//! * [`urgency`]: whether somebody waits for a commit, and how long one is put off otherwise.
//! * `watches`: the newest sequence number of each thread, to wait for.

pub mod blob;
mod codec;
pub mod disk;
mod error;
mod file;
mod lease;
mod lock;
pub mod longterm;
pub mod memory;
mod mention;
mod pending;
mod plan;
pub mod postgres;
mod proof;
mod query;
mod rules;
pub mod sweep;
mod tail;
pub mod urgency;
mod watches;

pub use blob::file::FileBlobs;
pub use blob::memory::MemoryBlobs;
pub use disk::RedbStore;
pub use file::open::is_filled;
pub use longterm::{EssentialDocuments, RedbMemory, VolatileMemory};
pub use memory::MemoryStore;
pub use postgres::{PostgresBlobs, PostgresConfig, PostgresMemory, PostgresStore};
pub use wattle_run::ports::store::StoreError;
