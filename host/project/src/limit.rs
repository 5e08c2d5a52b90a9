//! The limits of projections. Each constant gives its reason.

/// Maximum number of entries of a trace: runs, changes, supersteps, tasks, attempts, calls,
/// answers, interrupts and messages. A client reads a trace as one document, and the log of a
/// thread may have millions of events. Traces of usual conversations have some thousand entries.
pub const TRACE_ENTRIES: usize = 100_000;

/// Maximum number of bytes of the texts of a trace: answers, failures, messages and summaries. An
/// answer may be as large as a request, and a log message has up to 64 KiB.
pub const TRACE_BYTES: u64 = 32 << 20;

/// Maximum size as JSON, in bytes, of a value in the outline of an event: the payload of an
/// interrupt, an answer, a custom event. A client reads hundreds of outlines at a time and shows a
/// line for each outline. Most questions and answers have fewer bytes.
pub const OUTLINE_VALUE_BYTES: u64 = 4 << 10;

/// Maximum number of bytes of a text in the outline of an event, such as the message of a failure
/// or of a log. A longer text is truncated. A person reads the first lines, and a log message may
/// have 64 KiB.
pub const OUTLINE_TEXT_BYTES: usize = 4 << 10;
