//! Checkpoint and blob stores of Wattle, in a file and in memory.
//!
//! | port | in a file | in memory |
//! |---|---|---|
//! | [`Store`](wattle_run::ports::Store) | [`RedbStore`] | [`MemoryStore`] |
//! | [`BlobStore`](wattle_run::ports::BlobStore) | [`FileBlobs`] | [`MemoryBlobs`] |
//!
//! Both stores answer alike; what they share (which batches are valid, how a filter matches) is
//! written once, and one conformance suite runs over both.
//!
//! # Layout
//!
//! * [`disk`]: the file store, its format, its writer thread and its readers.
//! * [`memory`]: the store that forgets.
//! * [`blob`]: content-addressed bytes; [`sweep`]: the deletion of those nobody mentions.
//! * `rules`: which batches are valid; `query`: which threads and checkpoints match.
//! * `codec`: how records become bytes; `mention`: which blobs such bytes mention.
//! * `watches`: the newest sequence number of each thread, to wait for.

pub mod blob;
mod codec;
pub mod disk;
mod error;
mod lock;
pub mod memory;
mod mention;
mod query;
mod rules;
pub mod sweep;
mod watches;

pub use blob::file::FileBlobs;
pub use blob::memory::MemoryBlobs;
pub use disk::RedbStore;
pub use memory::MemoryStore;
pub use wattle_run::ports::store::StoreError;
