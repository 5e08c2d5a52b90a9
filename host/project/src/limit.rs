//! The limits of projections. Each constant gives its reason.

/// Entries of a trace: runs, changes, supersteps, tasks, attempts, calls, answers, interrupts and
/// messages. A client reads a trace as one document, and the log of a thread may have millions of
/// events. Traces of usual conversations have some thousand entries.
pub const TRACE_ENTRIES: usize = 100_000;

/// Bytes of the texts of a trace: answers, failures, messages and summaries. An answer may be as
/// large as a request, and a log message has up to 64 KiB.
pub const TRACE_BYTES: u64 = 32 << 20;
