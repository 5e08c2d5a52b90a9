//! The tables of the file.

use redb::TableDefinition;

/// Number of the format that this code writes, and the newest that it reads.
pub(crate) const FORMAT: u64 = 4;

/// Key in [`META`]: highest assigned thread number.
pub(crate) const META_THREADS: &str = "threads";

/// Key in [`META`]: number of openings of the file.
pub(crate) const META_OPENINGS: &str = "openings";

/// Format number and counters of the file.
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("wattle");

/// Frames of all threads in the order of writing. A large frame takes several entries.
pub(crate) const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");

/// Thread id to [`Head`](crate::disk::head::Head).
pub(crate) const HEADS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("heads");

/// Thread id to its record. Separate from the heads, since a record is larger and changes less
/// often.
pub(crate) const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");

/// Run id to its record.
pub(crate) const RUNS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("runs");

/// Pending run to its position. Runs that were requested later have higher positions.
pub(crate) const PENDING: TableDefinition<'_, &[u8], u64> = TableDefinition::new("pending");

/// Thread number and position to run id, oldest first.
pub(crate) const THREAD_RUNS: TableDefinition<'_, (u64, u64), &[u8]> =
    TableDefinition::new("thread_runs");

/// Thread number and newest event of a frame to that frame, for every [`FRAMES_PER_MARK`]th frame.
pub(crate) const MARKS: TableDefinition<'_, (u64, u64), u64> = TableDefinition::new("marks");

/// Thread number and digest of a blob that the thread mentions.
pub(crate) const MENTIONS: TableDefinition<'_, (u64, [u8; 32]), ()> =
    TableDefinition::new("mentions");

/// Orphaned thread number to its newest frame. The thread was deleted or replaced, or its rewrite
/// is not complete.
pub(crate) const ORPHANS: TableDefinition<'_, u64, u64> = TableDefinition::new("remains");

/// Thread that was set aside because its data are damaged, to the reason.
pub(crate) const ASIDE: TableDefinition<'_, &[u8], &str> = TableDefinition::new("aside");

/// Name of [`HEADS`], for checksums.
pub(crate) const HEADS_NAME: &str = "heads";

/// Name of [`RECORDS`], for checksums.
pub(crate) const RECORDS_NAME: &str = "records";

/// Name of [`RUNS`], for checksums.
pub(crate) const RUNS_NAME: &str = "runs";

/// Number of frames between two marks, and the maximum number of frames that a reader of old events
/// walks from a mark. Each mark costs one small insertion at a random position.
pub(crate) const FRAMES_PER_MARK: u64 = 64;
