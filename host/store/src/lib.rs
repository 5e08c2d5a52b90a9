//! Checkpoint and blob stores of Wattle, in a file, in PostgreSQL and in memory.
//!
//! | port | in a file | in PostgreSQL | in memory |
//! |---|---|---|---|
//! | [`Store`](wattle_run::ports::Store) | [`RedbStore`] | [`PostgresStore`] | [`InMemoryStore`] |
//! | [`BlobStore`](wattle_run::ports::BlobStore) | [`FileBlobs`] | [`PostgresBlobs`] | [`InMemoryBlobs`] |
//! | [`Memory`](wattle_run::ports::Memory) | [`RedbMemory`] | [`PostgresMemory`] | [`VolatileMemory`] |
//!
//! All stores behave alike. The logic that they share (the validation of batches, the matching of
//! filters, the retention plans) is written once, and one conformance suite tests all stores.
//!
//! # Layout
//!
//! * [`disk`]: the file store, its format, its writer thread and its readers.
//! * [`postgres`]: the store in PostgreSQL, which many hosts share.
//! * [`in_memory`]: the store in memory.
//! * [`memory`]: the long-term memory.
//! * [`blob`]: content-addressed bytes; [`sweep`]: the deletion of blobs without a mention.
//! * `validate`: the validation of batches; `query`: the filters of threads and checkpoints;
//!   `search` and `run_search`: the conditions, pages and counts of searches.
//! * `retention_plan`: what a prune, a deletion of runs or a copy keeps; `delta_chain`: when a
//!   growing list is stored as a full value.
//! * `pending`: the pending runs of a store that one process opens.
//! * `page`: the limits of what one read of a list returns.
//! * `folders`: the names of folders beside the file of a store.
//! * `lease`: the leases of a store that one process opens.
//! * `file`: redb files, which may be damaged or fail.
//! * `codec`: the encoding of records; `json_scan`: the blobs that a record mentions, and its
//!   nesting depth.
//! * [`commit_delay`]: the commit delay, and the requests that end it early.
//! * `recent_write`: the newest successful write, as evidence that a store can be written.
//! * `watch`: the newest durable sequence number of each watched thread.

pub mod blob;
mod codec;
pub mod commit_delay;
mod delta_chain;
pub mod disk;
mod error;
mod file;
mod folders;
pub mod in_memory;
mod json_scan;
mod lease;
mod lock;
pub mod memory;
mod page;
mod pending;
pub mod postgres;
mod query;
mod recent_write;
mod retention_plan;
mod run_search;
mod search;
pub mod sweep;
mod validate;
mod watch;

pub use blob::file::FileBlobs;
pub use blob::in_memory::InMemoryBlobs;
pub use disk::{RedbConfig, RedbStore};
pub use file::open::is_filled;
pub use folders::{BACKUPS_FOLDER, BLOBS_FOLDER};
pub use in_memory::InMemoryStore;
pub use memory::{EssentialDocuments, RedbMemory, VolatileMemory};
pub use postgres::{PostgresBlobs, PostgresConfig, PostgresMemory, PostgresStore};
pub use wattle_run::ports::store::StoreError;
