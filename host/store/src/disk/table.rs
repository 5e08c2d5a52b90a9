//! The tables of the file.

use redb::TableDefinition;

/// The number of the format that this code writes, and the newest it reads.
pub(crate) const FORMAT: u64 = 4;

/// Key in [`FACTS`]: format number of the file.
pub(crate) const FACT_FORMAT: &str = "format";

/// Key in [`FACTS`]: highest number given to a thread.
pub(crate) const FACT_THREADS: &str = "threads";

/// Key in [`FACTS`]: how often the file was opened.
pub(crate) const FACT_OPENINGS: &str = "openings";

/// Facts about the file.
pub(crate) const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("wattle");

/// Frames of all threads, in the order they were written; a large one takes several entries.
pub(crate) const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");

/// Thread id to [`Head`](crate::disk::head::Head).
pub(crate) const HEADS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("heads");

/// Thread id to its record. Apart from the heads, since it is larger and changes less often.
pub(crate) const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");

/// Run id to its record.
pub(crate) const RUNS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("runs");

/// Pending run to its place: runs that were asked for later have higher ones.
pub(crate) const PENDING: TableDefinition<'_, &[u8], u64> = TableDefinition::new("pending");

/// Thread number and position to run id, oldest first.
pub(crate) const THREAD_RUNS: TableDefinition<'_, (u64, u64), &[u8]> =
    TableDefinition::new("thread_runs");

/// Thread number and last event of a frame to that frame; for every [`MARK_EVERY`]th frame.
pub(crate) const MARKS: TableDefinition<'_, (u64, u64), u64> = TableDefinition::new("marks");

/// Thread number and digest of a blob that it mentions.
pub(crate) const MENTIONS: TableDefinition<'_, (u64, [u8; 32]), ()> =
    TableDefinition::new("mentions");

/// Number of a thread of which something is left though it is gone, or which is being written anew
/// and is not there yet, to its newest frame.
pub(crate) const REMAINS: TableDefinition<'_, u64, u64> = TableDefinition::new("remains");

/// Thread that was set aside since what is stored of it is damaged, to the reason.
pub(crate) const ASIDE: TableDefinition<'_, &[u8], &str> = TableDefinition::new("aside");

/// Name of [`HEADS`], for checksums.
pub(crate) const IN_HEADS: &str = "heads";

/// Name of [`RECORDS`], for checksums.
pub(crate) const IN_RECORDS: &str = "records";

/// Name of [`RUNS`], for checksums.
pub(crate) const IN_RUNS: &str = "runs";

/// How many frames a reader of old events walks at most from a mark; a mark costs one small
/// insertion at a random place, so few are better.
pub(crate) const MARK_EVERY: u64 = 64;
