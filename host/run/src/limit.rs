//! The limits of the engine and of guests. Each constant gives its reason.

mod call_limits;
mod guest_limits;

pub use self::call_limits::{NetLimits, SqlLimits};
pub use self::guest_limits::Limits;

/// Maximum linear memory of a guest. A node that handles JSON needs a few MiB, an image in base64
/// about 50.
pub const MEMORY_BYTES: u64 = 64 << 20;

/// Minimum of the memory of all guests that an operator can set. The guests of one app then hold at
/// most 32 MiB, which a component of Python needs to start.
pub const LEAST_GUESTS_MEMORY_BYTES: u64 = 64 << 20;

/// Minimum of the memory of compiled code that an operator can set. Most components have less code.
pub const LEAST_CODE_MEMORY_BYTES: u64 = 64 << 20;

/// Minimum of the memory of SQLite that an operator can set. The pages that the connections of some
/// databases keep fit, and a sort of a million short rows.
pub const LEAST_SQLITE_MEMORY_BYTES: u64 = 64 << 20;

/// Divisor of an app's share of what all guests hold together. New nodes, new web handlers and
/// guests that hold more than [`SMALL_GUEST_BYTES`] cannot use the quotient, which is 64 MiB by
/// default. A guest that has started finds its next few MiB there, whatever other guests of the app
/// take. So 438 of the 1,000 guests of a host can be nodes of one app. The same part of a caller's
/// share of the memory of runs is for runs of at most [`SMALL_RUN_BYTES`].
pub const SHARE_RESERVE_DIVISOR: u64 = 8;

/// Divisor of an app's share of what all guests hold together. Tools and other guests for which a
/// guest waits cannot use the quotient, which is 16 MiB by default. They can use the rest of the
/// reserve, since the guest that waits holds a part of the share and ends only after them. The same
/// part of a caller's share of the memory of runs is kept from recovered runs, which may use the
/// rest of the other reserve before new runs.
pub const AWAITED_RESERVE_DIVISOR: u64 = 32;

/// Minimum of the memory of all runs that an operator can set. The runs of one caller then hold at
/// most 32 MiB, and some hundred small runs of one caller start at once.
pub const LEAST_RUNS_MEMORY_BYTES: u64 = 64 << 20;

/// Maximum memory of a run that can use the whole share of its caller. Most runs hold less. Runs
/// that hold more, and new runs, leave an eighth of the share to them.
pub const SMALL_RUN_BYTES: u64 = 1 << 20;

/// Memory with which a run starts, and by which its memory grows. Most runs need no more, so they
/// use the pool of all runs only at their start and at their end.
pub const RUN_MEMORY_CHUNK_BYTES: u64 = 256 << 10;

/// Maximum number of runs of a caller that wait for memory before they start. Pending runs wait in
/// the store and do not count. The number equals the default number of running runs.
pub const WAITING_RUNS: usize = 1_000;

/// Maximum time for which a run waits for memory before it starts. The request for the run waits as
/// well, and the run has claimed its thread.
pub const RUN_WAIT_MS: u64 = 30_000;

/// Minimum of the memory of responses of services that an operator can set. The responses of one
/// caller then hold at most 32 MiB, which is more than one message of an MCP server.
pub const LEAST_SERVICES_MEMORY_BYTES: u64 = 64 << 20;

/// Maximum memory of a response that can use the whole share of its owner. Most responses have
/// less. Those that have more leave an eighth of the share to them.
pub const SMALL_RESPONSE_BYTES: u64 = 1 << 20;

/// Memory by which that of a response grows. The HTTP clients hand over pieces of about this size.
pub const SERVICE_CHUNK_BYTES: u64 = 64 << 10;

/// Maximum memory of a guest that can use the whole share of its app. Handling a few hundred KiB of
/// JSON takes less.
pub const SMALL_GUEST_BYTES: u64 = 4 << 20;

/// Maximum number of guests of an app that wait for memory, or for a place. The number equals the
/// default number of guest instances.
pub const WAITING_GUESTS: usize = 1_000;

/// Maximum time for which a guest waits for memory, or for a place, if a client or another guest
/// waits for it. A node waits as long as its attempt may take.
pub const GUEST_WAIT_MS: u64 = 30_000;

/// Divisor of the memory of all guests. The quotient bounds the memory that the slots of ended guests keep for the next
/// guests, because it is not counted. With a thousand slots each keeps 256 KiB by default, more than most guests write.
pub const KEPT_MEMORY_DIVISOR: u64 = 4;

/// Maximum CPU time of a guest call, without waiting. JSON processing needs far less.
pub const CPU_MS: u64 = 2_000;

/// Maximum wall time of one attempt of a node without its own timeout, including waits, of a tool,
/// of a web handler and of a reducer. Some model calls take minutes.
pub const NODE_TIMEOUT_MS: u64 = 600_000;

/// Maximum number of host calls of one task or web handler. The limit stops a guest that calls the
/// host in an endless loop.
pub const HOST_CALLS: u32 = 10_000;

/// Maximum bytes of all requests and results of one task or web handler that pass the gate. The
/// limit bounds the size of the journal.
pub const HOST_CALL_BYTES: u64 = 64 << 20;

/// Maximum number of host calls of one task or web handler and all tools that it calls. Each tool
/// also has its own count.
pub const TASK_HOST_CALLS: u64 = 100_000;

/// Maximum bytes of all requests and results of one task or web handler and its tools. The limit
/// bounds how much one task adds to the log of its thread.
pub const TASK_HOST_CALL_BYTES: u64 = 256 << 20;

/// Maximum weight (see `wattle_graph::weight`) of the requests and results that the journal of one
/// task and its tools keeps in memory. A text of [`HOST_CALL_BYTES`] can weigh 36 times as much.
pub const TASK_JOURNAL_BYTES: u64 = 256 << 20;

/// Maximum bytes of a node's outcome. Large data belongs into blobs.
pub const OUTPUT_BYTES: u64 = 4 << 20;

/// Maximum bytes that the host copies out of a guest in one call; the component model calls this
/// *lifting*. Without the limit, a small guest could make the host allocate much memory.
pub const LIFT_BYTES: u64 = 32 << 20;

/// Divisor of the number of places for runs. The quotient is the number of places that stay free
/// for callers with fewer runs, once a caller has more runs than places are free. A caller that
/// comes later starts its first runs at once, although the runs of the other caller may last for
/// hours.
pub const RESERVED_PLACES_DIVISOR: usize = 8;

/// Divisor of the number of guest instances. The quotient is the number of instances that web handlers and the tools
/// that they call hold at once. A handler that waits holds its instance for as long as it waits. The other half of the
/// instances is for runs, whatever clients ask for.
pub const HANDLER_INSTANCES_DIVISOR: u32 = 2;

/// Maximum number of elements of a guest's tables, which hold the targets of indirect calls.
pub const TABLE_ELEMENTS: u64 = 20_000;

/// Maximum number of core instances in one component. Rust needs 3, Python 16.
pub const CORE_INSTANCES: u32 = 50;

/// Maximum number of events of a log that are read at a time. Each client of a stream holds one
/// page in memory and shares it with all clients at the same position. A page has some hundred KiB,
/// since few events exceed one KiB. Pages are not shorter, since a reader of a whole log makes one
/// round trip to a shared store for each page.
pub const PAGE_EVENTS: usize = 256;

/// Maximum bytes of the events of a log that are read at a time: of JSON, and in memory (see
/// `wattle_graph::weight`). An event with more bytes is read alone. Pages of usual events are far
/// smaller; 256 outcomes of tasks could have a gigabyte for each client of a stream.
pub const PAGE_EVENT_BYTES: u64 = 4 << 20;

/// Maximum bytes of the checkpoints that are read at a time, unless one alone has more: of the JSON
/// of their metadata, values and events, and in memory. A client gets the history of a thread in
/// pages of this size, and each state counts in full.
pub const HISTORY_BYTES: u64 = 32 << 20;

/// Maximum number of states of each graph of a thread that the engine keeps in memory: the newest
/// ones. The next run needs one; streams are a few checkpoints behind their run. A state that takes
/// more than the capacity of the cache divided by this number is not kept, so one graph never takes
/// the whole cache.
pub const CACHED_STATES: usize = 4;

/// Maximum bytes in memory of one run's batches that are not durable yet: their weight (see
/// `wattle_graph::weight`), the additional memory of list items, and the JSON of their events. A
/// run that is further ahead waits. The limit bounds this memory, and how long the end of the run
/// waits for the batches. A store in a file holds the batches once more, as it writes them.
pub const LOG_AHEAD_BYTES: u64 = 8 << 20;

/// Maximum bytes of the log of a thread in the store. Copying, verifying and exporting a thread
/// read the whole log. A conversation of ten thousand turns has some hundred MiB.
pub const THREAD_LOG_BYTES: u64 = 1 << 30;

/// Maximum number of pending interrupts of a thread. Every view of the thread contains all of them.
pub const THREAD_QUESTIONS: u64 = 1_000;

/// Maximum number of blobs that a thread mentions. A run that stores blobs holds their digests in
/// memory.
pub const THREAD_BLOBS: u64 = 10_000;

/// Maximum bytes of the blobs that a thread mentions. Enough for some hundred large images or
/// documents.
pub const THREAD_BLOB_BYTES: u64 = 4 << 30;

/// Maximum bytes of blobs that web handlers of an app stored and that no thread mentions yet. Blobs
/// without a mention are swept after [`UNMENTIONED_MS`].
pub const HANDLER_BLOB_BYTES: u64 = 4 << 30;

/// Default free space of the disk below which a host begins no work that takes more of it, unless
/// the file system is small. The logs of a thousand running runs have some hundred MiB, and a store
/// in a file needs room to be compacted.
pub const FREE_DISK_BYTES: u64 = 1 << 30;

/// Divisor of the size of the file system. The quotient bounds the default of the free space: 2 %.
pub const FREE_DISK_DIVISOR: u64 = 50;

/// Divisor of the floor of free disk space. Answers to questions are taken as long as the quotient is
/// free.
pub const ANSWER_FLOOR_DIVISOR: u64 = 2;

/// Minimum interval between two readings of the free space of the disk. A fast disk takes some
/// hundred MiB in this time.
pub const DISK_READING_MS: u64 = 2_000;

/// Minimum bytes that a blob counts. A file occupies at least one block of the disk.
pub const BLOB_MIN_BYTES: u64 = 4 << 10;

/// Maximum number of files that the file projections of an app write for one run. Each costs a few
/// operations of the file system.
pub const RUN_FILES: usize = 10_000;

/// Maximum bytes of the files that the file projections of an app write for one run. A task and its
/// tools may store as many bytes in blobs, which become parts of files.
pub const RUN_FILE_BYTES: u64 = 256 << 20;

/// Maximum bytes of the files of an app in the folders of its file projections, [`BLOB_MIN_BYTES`]
/// each at least. Enough for 64 runs that write the maximum, or for logs of years.
pub const APP_FILE_BYTES: u64 = 16 << 30;

/// How long a blob without a mention counts. The sweep does not delete it earlier.
pub const UNMENTIONED_MS: u64 = 3_600_000;

/// Minimum interval between two measurements of the usage of an app or a tenant, which read the records of all its
/// threads. The space of deleted data becomes available within this time.
pub const MEASURE_INTERVAL_MS: u64 = 10_000;

/// Age at which a measurement is repeated if hosts share the store. The usage of other hosts counts within this time.
pub const MEASURE_AGE_MS: u64 = 60_000;

/// Resolution of the times at which usage is recorded. Usage within one interval is merged to save memory.
pub const METER_SLOT_MS: u64 = 60_000;

/// Maximum number of cached measurements of apps and tenants. Beyond it, all of them are discarded.
pub const METERED_OWNERS: usize = 10_000;

/// Maximum number of blobs in one page of the list of blobs that threads mention.
pub const MENTIONED_PAGE: usize = 4_096;

/// Maximum number of characters of the message of a failure in the record of its thread. Lists show
/// it, and the record of the run has the whole message.
pub const THREAD_FAILURE_CHARS: usize = 200;

/// Maximum number of characters of the code of a failure in the record of its thread. Codes of the
/// host are far shorter; guests may use codes of their own.
pub const THREAD_FAILURE_CODE_CHARS: usize = 64;

/// Maximum number of pending runs of a thread. Each request for a run reads all of them.
pub const THREAD_PENDING_RUNS: usize = 1_000;

/// Maximum number of orphaned threads that are read at once.
pub const ORPHANED_PAGE: usize = 256;

/// Maximum bytes of the threads or runs in one page of a list, unless a single one has more: in
/// memory (see `wattle_graph::weight`), or of JSON for whole records of runs. A thread may have
/// [`METADATA_BYTES`] of metadata, and a pending run the input of a request. A store that is read
/// over a network sends about as many bytes.
pub const LIST_BYTES: u64 = 4 << 20;

/// Maximum number of threads, runs, webhooks or crons that a search examines. A client continues it.
pub const SEARCH_RECORDS: usize = 20_000;

/// Maximum bytes of JSON of these records. As many as a search of the long-term memory reads.
pub const SEARCH_BYTES: u64 = 64 << 20;

/// Maximum bytes of the text of a search, and of the code of a failure in it. Words of people and
/// ids are shorter. Each record that is examined is compared with the text.
pub const SEARCH_TEXT_BYTES: usize = 512;

/// Maximum number of threads in one page of the list of pending interrupts. The host reads the
/// current superstep of each from the store.
pub const INTERRUPT_THREADS: usize = 50;

/// Maximum bytes in memory of the events from which one page of the list of pending interrupts is
/// read. The page ends after the thread with which it exceeds the limit. A superstep that waits for
/// a person has some KiB of events.
pub const INTERRUPT_EVENT_BYTES: u64 = 8 << 20;

/// Maximum number of pages of the list of pending interrupts that a count of them reads. The number
/// of a thread's interrupts is not in its record. 500 threads are more than people answer one by
/// one, and a request reads ten times as much as one for a page.
pub const INTERRUPT_COUNT_PAGES: usize = 10;

/// Maximum number of threads that a reader of all threads reads at once. A thread without metadata
/// takes some hundred bytes.
pub const WALK_THREADS: usize = 1_000;

/// Maximum number of runs that a reader of all runs of a thread reads at once, without their
/// requests. Such a run takes some hundred bytes.
pub const WALK_RUNS: usize = 1_000;

/// Maximum number of runs that a reader of all runs of a thread reads at once, with their requests:
/// a few more than clients get in a page by default.
pub const WALK_RUN_RECORDS: usize = 32;

/// Time limit of the recovery of one run after a start, without waits for other runs with large
/// threads. A thread that takes longer is set aside, so that it does not block the recovery of
/// others.
pub const RECOVERY_MS: u64 = 60_000;

/// Maximum bytes of a request that the journal holds in full. A longer request is stored as its
/// first bytes and its digest.
pub const JOURNAL_REQUEST_BYTES: usize = 16 << 10;

/// Maximum number of deltas of a completion that its guest has not read. Beyond it, they are joined
/// by kind. A response of the maximum size can have 1.4 million deltas, which would take 140 MB.
/// The limit allows those of some minutes.
pub const UNREAD_DELTAS: usize = 10_000;

/// Maximum number of events that a task or a web handler may emit.
pub const EMITTED_EVENTS: u32 = 10_000;

/// Maximum bytes of one emitted event, or of one log message with its fields. A longer log message
/// is truncated.
pub const EVENT_BYTES: usize = 64 << 10;

/// Maximum number of log messages of one attempt of a task or of one web handler, with those of its
/// tools. Further messages are dropped: a message is for people, and the work that it describes
/// must not fail because of it.
pub const LOG_MESSAGES: u64 = 10_000;

/// Maximum bytes of all log messages of one attempt of a task or of one web handler, with those of
/// its tools: 800 bytes for each message. The operator's log receives them too, and nothing else
/// bounds what a web handler adds to it.
pub const LOG_MESSAGES_BYTES: u64 = 8 << 20;

/// Maximum bytes in memory of the buffered log messages of one thread: their weight (see
/// `wattle_graph::weight`) and their JSON. At this limit, the messages are flushed to the store
/// before the guest continues. Below the limit, they wait for the next event that is flushed, since
/// a flush for each message would be slower.
pub const LOG_BUFFER_BYTES: u64 = 1 << 20;

/// Maximum bytes of one JSON text in a host call: the arguments of a tool, a part of a message, a
/// parameter of a statement, the extension fields of a record. A parsed value takes up to 32 times
/// the memory of its text. The limit equals that of an outcome, from which such a value comes or of
/// which it becomes a part.
pub const CALL_JSON_BYTES: usize = 4 << 20;

/// Maximum bytes of the JSON text of the input, the context or an answer of a run that a guest
/// starts or resumes, or of the extension fields of a model request, which can have messages. As
/// many bytes as a request to the API may have by default.
pub const RUN_JSON_BYTES: usize = 16 << 20;

/// Maximum bytes of the JSON text of an interrupt's payload. A person reads it, and every view of
/// the thread contains it. The arguments of a tool call that a person approves fit.
pub const INTERRUPT_PAYLOAD_BYTES: usize = 1 << 20;

/// Maximum number of levels of nesting in JSON from guests, models and clients. The log adds some
/// levels, and JSON readers stop at 128.
pub const JSON_DEPTH: usize = 100;

/// Maximum number of levels of nesting in a message of a service or a body of a request, which
/// contains a value of [`JSON_DEPTH`] levels within some levels of its own.
pub const JSON_MESSAGE_DEPTH: usize = JSON_DEPTH + 16;

/// Maximum bytes in memory of the values and keys of one message of a service, of one body of a
/// request, or of all JSON texts of one host call or of one batch of host calls, without their
/// texts; see `wattle_graph::weight`. A number in a list takes 36 times the memory of its text. As
/// many bytes as a state may have by default, so that a larger value could not be stored anyway. No
/// setting changes the limit of host calls, so a re-executed guest reaches it at the same call.
pub const JSON_VALUES_BYTES: u64 = 64 << 20;

/// Factor of [`Limits::output_bytes`]. The values and keys of one result of a guest take at most
/// this many times as many bytes in memory, without their texts, or [`JSON_VALUES_BYTES`] if that
/// is more. A list of numbers of four digits takes 14 times the memory of its text, and one of
/// numbers of one digit takes 36 times.
pub const OUTPUT_VALUES_FACTOR: u64 = 16;

/// Maximum bytes of a run context as JSON. The record of a thread contains it, and every task gets
/// a copy. Settings of a caller have some KiB; documents belong into the input.
pub const RUN_CONTEXT_BYTES: u64 = 256 << 10;

/// Maximum to which an operator can set [`RUN_CONTEXT_BYTES`]: the limit of the input of a run. The
/// text of a guest is parsed up to this size, whatever the cap is, so that a longer text has the
/// same result when the guest runs again under another cap. The gate records the result of the
/// check by the cap.
pub const MOST_RUN_CONTEXT_BYTES: u64 = RUN_JSON_BYTES as u64;

/// Maximum bytes of the metadata of a thread, a run or a checkpoint as JSON. Lists and searches
/// read the metadata of all threads.
pub const METADATA_BYTES: usize = 64 << 10;

/// Maximum number of calls of one batch (`complete-all`, `send-all`) that run concurrently. The
/// limit bounds the load on services.
pub const BATCH_CONCURRENCY: usize = 4;

/// Maximum number of calls in one batch.
pub const BATCH_CALLS: usize = 256;

/// Maximum number of consecutive cancelled runs whose unused results the next run may reuse. After
/// more cancels in a row, the calls are made and paid again.
pub const REUSE_SCAN_RUNS: usize = 16;

/// Maximum bytes of the reusable results of cancelled runs that a run holds in memory. Beyond the
/// limit, the oldest results are discarded and their calls are made and paid again. A completion
/// has some KiB and images are blobs, so thousands fit.
pub const REUSE_BYTES: u64 = 32 << 20;

/// Maximum number of tasks of one superstep that one run executes concurrently.
pub const STEP_CONCURRENCY: usize = 64;

/// Maximum number of versions of apps in memory that are not the newest of their app. Beyond the
/// limit, the least recently used ones that are archived are unloaded, and loaded again when a
/// thread needs them. Each holds the compiled code of its components.
pub const PINNED_VERSIONS: usize = 100;

/// Maximum number of files and folders of an app's page, compressed forms counted. A built page has
/// some dozens.
pub const PAGE_FILES: usize = 1_000;

/// Maximum bytes of all files of an app's page, with their compressed forms. They are in memory
/// while the app is loaded. A page that loads quickly has some hundred KiB.
pub const PAGE_BYTES: u64 = 32 << 20;

/// Maximum bytes of a blob.
pub const BLOB_BYTES: u64 = 256 << 20;

/// Maximum bytes of a blob that one read returns. A guest reads a larger blob in ranges. The bytes
/// are in the memory of the host, and of the guest, which has as much memory by default.
pub const BLOB_READ_BYTES: u64 = 64 << 20;

/// Maximum bytes of all blobs that one task or web handler and its tools store, including blobs
/// that exist already. The limit equals the size of the largest blob.
pub const TASK_BLOB_BYTES: u64 = BLOB_BYTES;

/// Maximum bytes of an export that is read, and of the code and blobs in it after decompression.
/// They are held in memory, and a small file may decompress to much more.
pub const EXPORT_BYTES: u64 = 1 << 30;

/// Maximum bytes of the differences that a replay reports. A difference may be as large as the
/// whole state.
pub const REPLAY_DIFF_BYTES: u64 = 64 << 20;

/// Maximum delay that an HTTP request may ask for before it is sent. Long enough to back off from a busy service, and
/// too short to keep a waiting instance for long.
pub const HTTP_DELAY_MS: u32 = 10_000;

/// Maximum number of random bytes per call, as the contract specifies.
pub const RANDOM_BYTES: u32 = 4_096;

/// Maximum number of elicitation rounds that an MCP server asks in one call. A form has a few
/// steps, and a server that asks endlessly must not keep a person busy.
pub const SERVER_ROUNDS: usize = 16;

/// Maximum number of questions of one elicitation round. A person answers all of them at once.
pub const ELICITED_QUESTIONS: usize = 16;

/// Maximum bytes of the text of one question of an elicitation round. A person reads the whole
/// text. A longer text is refused and not truncated, since a person must not agree to something
/// that was not shown.
pub const ELICITED_MESSAGE_BYTES: usize = 4 << 10;

/// Maximum bytes of the name of one question of an elicitation round.
pub const ELICITED_NAME_BYTES: usize = 256;

/// Maximum bytes of the state that a server expects back with the answers. Enough for the state of
/// a few steps. The log stores the state.
pub const ELICITED_STATE_BYTES: usize = 64 << 10;

/// Maximum number of levels of tools that call tools. Enough for an agent among the tools of an
/// agent. Each level holds a guest instance.
pub const TOOL_DEPTH: u32 = 4;

/// Maximum number of levels of subgraphs. Real applications need far fewer, and the longest
/// namespace still fits the keys of the stores.
pub const GRAPH_DEPTH: usize = 8;

/// Maximum violations of arguments that a failure lists. A model corrects only a few at a time.
pub const TOOL_VIOLATIONS: usize = 8;

/// Maximum parts of a namespace of the long-term memory. A deeper hierarchy is data, not a name.
pub const MEMORY_PARTS: usize = 16;

/// Maximum bytes of all parts of a namespace of the long-term memory. With the key and the name of
/// a tenant they stay below the longest entry of a database index.
pub const MEMORY_NAMESPACE_BYTES: usize = 1_024;

/// Maximum bytes of a key of the long-term memory.
pub const MEMORY_KEY_BYTES: usize = 512;

/// Maximum bytes of a document of the long-term memory. Every search that examines a document reads
/// all of it, so large data belongs into blobs.
pub const MEMORY_DOCUMENT_BYTES: usize = 256 << 10;

/// Maximum number of documents or namespaces in one result of the long-term memory.
pub const MEMORY_RESULTS: usize = 1_000;

/// Maximum bytes of the documents in one result of the long-term memory, which a guest gets whole.
pub const MEMORY_ANSWER_BYTES: usize = 8 << 20;

/// Maximum number of documents that one search of the long-term memory examines and reads.
pub const MEMORY_SCANNED: usize = 20_000;

/// Maximum bytes of the documents that one search of the long-term memory examines.
pub const MEMORY_SCANNED_BYTES: usize = 64 << 20;

/// Maximum number of conditions of one filter of the long-term memory.
pub const MEMORY_CONDITIONS: usize = 32;

/// Maximum bytes of the query text of one search of the long-term memory.
pub const MEMORY_QUERY_BYTES: usize = 4 << 10;

/// Bytes for which a document of the long-term memory counts in addition to its namespace, its key
/// and its JSON: for times, checksum and its place in the tables. So the number of small documents
/// is limited, too.
pub const MEMORY_ROW_BYTES: u64 = 128;

/// Maximum total size of one tenant's long-term memory documents, in bytes. Documents without a
/// tenant share one such quota. It suffices for a million facts of some KiB.
pub const MEMORY_TOTAL_BYTES: u64 = 4 << 30;

/// Maximum bytes of the outcomes in the cache of an app, for one tenant or for all requests without
/// a tenant. An outcome has at most [`MEMORY_DOCUMENT_BYTES`]. Beyond the limit, outcomes are not
/// cached: equal tasks are executed again, and nothing fails.
pub const APP_CACHE_BYTES: u64 = 1 << 30;

/// Maximum number of supersteps of one edit. All of them are in memory before the first is written.
pub const EDIT_SUPERSTEPS: usize = 100;

/// Upper bounds of the limits that an export gives its own code: many times the defaults, as a generous operator would
/// configure them. They keep a single call of untrusted code from exhausting the machine.
pub const MAX_EXPORT_LIMITS: Limits = Limits {
    memory_bytes: 16 * MEMORY_BYTES,
    cpu_ms: 30 * CPU_MS,
    node_timeout_ms: 6 * NODE_TIMEOUT_MS,
    host_calls: 10 * HOST_CALLS,
    host_call_bytes: TASK_HOST_CALL_BYTES,
    task_journal_bytes: TASK_JOURNAL_BYTES,
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
