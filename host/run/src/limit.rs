//! Every limit of the engine and of guests, in one place, each with its reason.

use serde::{Deserialize, Serialize};

/// Linear memory of a guest: a JSON node needs a few MiB, a picture in base64 some 50.
pub const MEMORY_BYTES: u64 = 64 << 20;

/// Time a guest may compute, waiting not counted: far above any honest JSON work.
pub const CPU_MS: u64 = 2_000;

/// Wall time of one attempt of a node without a timeout of its own, waiting counted: some model
/// answers take minutes.
pub const NODE_TIMEOUT_MS: u64 = 600_000;

/// Host calls of one task: a loop that calls the host for ever ends here.
pub const HOST_CALLS: u32 = 10_000;

/// Bytes of all requests and answers of one task that pass the gate: bounds the journal.
pub const HOST_CALL_BYTES: u64 = 64 << 20;

/// Host calls of one task with all tools that it called: each tool has its own count as well.
pub const TASK_HOST_CALLS: u64 = 100_000;

/// Bytes of all requests and answers of one task and its tools: bounds what a thread's log grows
/// by in one task.
pub const TASK_HOST_CALL_BYTES: u64 = 256 << 20;

/// Bytes of a node's outcome: large things belong into blobs.
pub const OUTPUT_BYTES: u64 = 4 << 20;

/// Bytes that the host copies out of a guest in one call, so that a small guest cannot make a
/// large host.
pub const LIFT_BYTES: u64 = 32 << 20;

/// Elements of a guest's tables: functions called by pointer.
pub const TABLE_ELEMENTS: u64 = 20_000;

/// Core instances in one component: Rust needs 3, Python 16.
pub const CORE_INSTANCES: u32 = 50;

/// Events of a log that are read at a time. Each client of a stream holds one page in memory, shared
/// with all clients at the same position: some hundred KiB, since few events have more than one KiB.
/// A whole log takes one round trip to a shared store for each page, so pages are not shorter.
pub const PAGE_EVENTS: usize = 256;

/// Bytes of one run that wait for the disk: a run goes on ahead of it until then. It is what memory
/// and the end of a run, which waits for all of it, cost at most.
pub const LOG_AHEAD_BYTES: u64 = 8 << 20;

/// Bytes that the log of a thread takes in the store: copying, verifying and exporting a thread read
/// all of it. A conversation of ten thousand turns takes some hundred MiB.
pub const THREAD_LOG_BYTES: u64 = 1 << 30;

/// Questions of a thread that have no answer: every view of the thread has all of them.
pub const THREAD_QUESTIONS: u64 = 1_000;

/// Blobs that a thread mentions: a run that puts blobs holds their digests in memory.
pub const THREAD_BLOBS: u64 = 10_000;

/// Bytes of the blobs that a thread mentions: some hundred large pictures or documents.
pub const THREAD_BLOB_BYTES: u64 = 4 << 30;

/// Bytes of blobs that web handlers of an app put and that no thread mentions yet: those that none
/// mentions are swept after [`UNMENTIONED_MS`].
pub const HANDLER_BLOB_BYTES: u64 = 4 << 30;

/// Bytes that a blob counts at least: a file takes a block of the disk, whatever is in it.
pub const BLOB_LEAST_BYTES: u64 = 4 << 10;

/// How long a blob counts that no thread mentions: as long as it is surely not swept.
pub const UNMENTIONED_MS: u64 = 3_600_000;

/// Least time between two measures of what an app or a tenant has, which read the facts of all its
/// threads: what was deleted makes room within it.
pub const MEASURE_PAUSE_MS: u64 = 10_000;

/// Age at which such a measure is made again where hosts share the store: what other hosts add
/// counts within it.
pub const MEASURE_AGE_MS: u64 = 60_000;

/// What is taken within so many milliseconds is counted as one, so that a cap takes little memory.
pub const METER_SLOT_MS: u64 = 60_000;

/// Apps and tenants whose measures are held; beyond, all are forgotten and measured again.
pub const METERED_OWNERS: usize = 10_000;

/// Blobs of which a store tells at once whether a thread mentions them.
pub const MENTIONED_PAGE: usize = 4_096;

/// Bytes of stored threads that are read at once to go on with their runs after a start: what the
/// recovery costs in memory, whatever there is to recover.
pub const RECOVERY_BYTES: u64 = 64 << 20;

/// Pending runs of a thread: a run that is asked for reads all of them.
pub const THREAD_PENDING_RUNS: usize = 1_000;

/// Records of cut threads that are read at once: one may have 64 KiB of metadata and a context as
/// large as a request.
pub const ABANDONED_PAGE: usize = 256;

/// Time to go on with one run after a start. A thread that takes longer is set aside, so that it
/// keeps no other from going on.
pub const RECOVERY_MS: u64 = 60_000;

/// Requests kept whole in the journal; a longer one is kept by its head and digest.
pub const JOURNAL_REQUEST_BYTES: usize = 16 << 10;

/// Events of its own that a task may emit.
pub const EMITTED_EVENTS: u32 = 10_000;

/// Bytes of one emitted event or log message; longer messages are cut.
pub const EVENT_BYTES: usize = 64 << 10;

/// Levels of nesting in JSON from guests, models and clients: the log adds some of its own, and
/// JSON readers end at 128.
pub const JSON_DEPTH: usize = 100;

/// Bytes of the metadata of a thread, a run or a checkpoint as JSON: lists and searches read those of
/// all threads.
pub const METADATA_BYTES: usize = 64 << 10;

/// Calls of one batch (`complete-all`, `send-all`) that run at once: kind to the services.
pub const BATCH_CONCURRENCY: usize = 4;

/// Calls in one batch.
pub const BATCH_CALLS: usize = 256;

/// Cancelled runs in a row whose unused answers are looked for when the next one begins: who stops
/// and goes on more often than that pays again.
pub const SALVAGED_RUNS: usize = 16;

/// Bytes of the unused answers of cancelled runs that the next one holds in memory; the oldest
/// beyond are not kept and paid again. Answers of models are some KiB and pictures are blobs, so
/// thousands fit.
pub const SALVAGED_BYTES: u64 = 32 << 20;

/// Tasks of one superstep that run at once in one run.
pub const STEP_CONCURRENCY: usize = 64;

/// Files of an app's page, compressed forms counted: a built page has some dozens.
pub const PAGE_FILES: usize = 1_000;

/// Bytes of all files of an app's page, compressed forms counted: they are held in memory as long
/// as the app is loaded. A page that browsers like has some hundred KiB.
pub const PAGE_BYTES: u64 = 32 << 20;

/// Bytes of a blob.
pub const BLOB_BYTES: u64 = 256 << 20;

/// Bytes of all blobs that one task and its tools put, also of blobs that are there already: as
/// many as the largest blob has.
pub const TASK_BLOB_BYTES: u64 = BLOB_BYTES;

/// Bytes of an export that is read, and of the code and blobs in it once they are unpacked: it is
/// held in memory, and a small file may unpack to much more.
pub const EXPORT_BYTES: u64 = 1 << 30;

/// Bytes of what differs that a replay shows: more than anybody reads, and a difference may be as
/// large as the whole state.
pub const REPLAY_SHOWN_BYTES: u64 = 64 << 20;

/// Longest time that an HTTP request may ask to be held back before it is sent: enough for a guest
/// to back off from a busy service, too short to keep its instance for nothing.
pub const HTTP_DELAY_MS: u32 = 10_000;

/// Random bytes per call, as the contract says.
pub const RANDOM_BYTES: u32 = 4_096;

/// Rounds of questions that a server of tools asks in one call: a form has a few steps, and a server that asks
/// without an end must not keep a person busy.
pub const SERVER_ROUNDS: usize = 16;

/// Questions of one round: a person answers all of them at once.
pub const ELICITED_QUESTIONS: usize = 16;

/// Bytes of the text of one of them: a person reads it to the end. A longer one is refused and not cut, since
/// nobody may agree to what was not shown.
pub const ELICITED_MESSAGE_BYTES: usize = 4 << 10;

/// Bytes of the name of one of them: it is a name and no data.
pub const ELICITED_NAME_BYTES: usize = 256;

/// Bytes of what a server wants back with the answers: a sealed state of a few steps, and it stands in the log.
pub const ELICITED_STATE_BYTES: usize = 64 << 10;

/// Tools that call tools that call tools: deep enough for an agent among the tools of an agent,
/// while each level holds a guest instance.
pub const TOOL_DEPTH: u32 = 4;

/// Graphs inside of graphs inside of graphs: far deeper than anybody can follow, and the path of
/// names to the deepest one still fits into what the stores keep of it.
pub const GRAPH_DEPTH: usize = 8;

/// Violations of an arguments schema that a failure lists: a model corrects a few at a time.
pub const TOOL_VIOLATIONS: usize = 8;

/// Parts of a memory namespace: deeper trees are data, not names.
pub const MEMORY_PARTS: usize = 16;

/// Bytes of all parts of a memory namespace: with the key and a tenant's name it stays below the
/// longest entry of a database index.
pub const MEMORY_NAMESPACE_BYTES: usize = 1_024;

/// Bytes of a memory key.
pub const MEMORY_KEY_BYTES: usize = 512;

/// Bytes of a memory document: it is read whole for every search that meets it, so large things
/// belong into blobs.
pub const MEMORY_DOCUMENT_BYTES: usize = 256 << 10;

/// Documents or namespaces of one answer of the memory.
pub const MEMORY_RESULTS: usize = 1_000;

/// Bytes of the documents of one answer of the memory: the guest gets them whole.
pub const MEMORY_ANSWER_BYTES: usize = 8 << 20;

/// Documents that one search of the memory looks at: it reads each of them.
pub const MEMORY_SCANNED: usize = 20_000;

/// Bytes of the documents that one search of the memory looks at.
pub const MEMORY_SCANNED_BYTES: usize = 64 << 20;

/// Conditions of one filter of the memory.
pub const MEMORY_CONDITIONS: usize = 32;

/// Bytes of the words of one search of the memory.
pub const MEMORY_QUERY_BYTES: usize = 4 << 10;

/// Limits of one guest call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// See [`MEMORY_BYTES`].
    pub memory_bytes: u64,
    /// See [`CPU_MS`].
    pub cpu_ms: u64,
    /// See [`NODE_TIMEOUT_MS`].
    pub node_timeout_ms: u64,
    /// See [`HOST_CALLS`].
    pub host_calls: u32,
    /// See [`HOST_CALL_BYTES`].
    pub host_call_bytes: u64,
    /// See [`OUTPUT_BYTES`].
    pub output_bytes: u64,
    /// See [`LIFT_BYTES`].
    pub lift_bytes: u64,
    /// Of outbound HTTP.
    pub net: NetLimits,
    /// Of SQL.
    pub sql: SqlLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: MEMORY_BYTES,
            cpu_ms: CPU_MS,
            node_timeout_ms: NODE_TIMEOUT_MS,
            host_calls: HOST_CALLS,
            host_call_bytes: HOST_CALL_BYTES,
            output_bytes: OUTPUT_BYTES,
            lift_bytes: LIFT_BYTES,
            net: NetLimits::default(),
            sql: SqlLimits::default(),
        }
    }
}

/// The widest limits that code in an export gets: many times the usual ones, as the most generous
/// operator would set them, while no call of code from a stranger takes the machine for itself.
pub const LARGEST: Limits = Limits {
    memory_bytes: 16 * MEMORY_BYTES,
    cpu_ms: 30 * CPU_MS,
    node_timeout_ms: 6 * NODE_TIMEOUT_MS,
    host_calls: 10 * HOST_CALLS,
    host_call_bytes: TASK_HOST_CALL_BYTES,
    output_bytes: 16 * OUTPUT_BYTES,
    lift_bytes: 8 * LIFT_BYTES,
    net: NetLimits {
        response_bytes: 64 << 20,
        request_bytes: 64 << 20,
        timeout_ms: NODE_TIMEOUT_MS,
        longest_timeout_ms: NODE_TIMEOUT_MS,
        redirects: 20,
    },
    sql: SqlLimits {
        rows: 1_000_000,
        bytes: 64 << 20,
        timeout_ms: NODE_TIMEOUT_MS,
        statement_bytes: 1 << 20,
    },
};

impl Limits {
    /// The narrower of two, each by itself.
    #[must_use]
    pub fn at_most(&self, most: &Self) -> Self {
        let (net, sql) = (&self.net, &self.sql);
        Self {
            memory_bytes: self.memory_bytes.min(most.memory_bytes),
            cpu_ms: self.cpu_ms.min(most.cpu_ms),
            node_timeout_ms: self.node_timeout_ms.min(most.node_timeout_ms),
            host_calls: self.host_calls.min(most.host_calls),
            host_call_bytes: self.host_call_bytes.min(most.host_call_bytes),
            output_bytes: self.output_bytes.min(most.output_bytes),
            lift_bytes: self.lift_bytes.min(most.lift_bytes),
            net: NetLimits {
                response_bytes: net.response_bytes.min(most.net.response_bytes),
                request_bytes: net.request_bytes.min(most.net.request_bytes),
                timeout_ms: net.timeout_ms.min(most.net.timeout_ms),
                longest_timeout_ms: net.longest_timeout_ms.min(most.net.longest_timeout_ms),
                redirects: net.redirects.min(most.net.redirects),
            },
            sql: SqlLimits {
                rows: sql.rows.min(most.sql.rows),
                bytes: sql.bytes.min(most.sql.bytes),
                timeout_ms: sql.timeout_ms.min(most.sql.timeout_ms),
                statement_bytes: sql.statement_bytes.min(most.sql.statement_bytes),
            },
        }
    }
}

/// Limits of one outbound HTTP exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetLimits {
    /// Bytes of a response body: the guest gets it whole. 8 MiB holds any JSON answer.
    pub response_bytes: u64,
    /// Bytes of a request body.
    pub request_bytes: u64,
    /// Whole exchange, redirects included, of a request that does not say how long it may take.
    pub timeout_ms: u64,
    /// The most that a request may ask for: some services work while they are waited for, and what
    /// takes longer should be polled.
    pub longest_timeout_ms: u64,
    /// Redirects followed.
    pub redirects: u32,
}

impl Default for NetLimits {
    fn default() -> Self {
        Self {
            response_bytes: 8 << 20,
            request_bytes: 8 << 20,
            timeout_ms: 30_000,
            longest_timeout_ms: 120_000,
            redirects: 5,
        }
    }
}

/// Supersteps of one edit: they are all in memory before the first is written.
pub const EDIT_SUPERSTEPS: usize = 100;

/// Limits of one SQL statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SqlLimits {
    /// Rows returned; more are cut off and the answer says so.
    pub rows: u64,
    /// Bytes of all values returned; more are cut off likewise.
    pub bytes: u64,
    /// Time of one statement.
    pub timeout_ms: u64,
    /// Bytes of a statement's text: parsers recurse.
    pub statement_bytes: u64,
}

impl Default for SqlLimits {
    fn default() -> Self {
        Self { rows: 10_000, bytes: 8 << 20, timeout_ms: 30_000, statement_bytes: 256 << 10 }
    }
}
