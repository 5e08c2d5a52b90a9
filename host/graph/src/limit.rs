//! Limits of the pure core, each with its reason.
//!
//! A limit of this crate affects the outcome of a run, except for [`SHORT_JSON_BYTES`]. Every limit
//! therefore counts work or size, and none measures time: a replay reaches the same limit at the
//! same point.

use serde_json::json;

use crate::failure::{Failure, code};
use crate::id::GraphName;

/// Maximum size of JSON, as text or in memory, that is parsed, copied or written on a thread that
/// tasks share, in bytes. The work takes about a millisecond. Work on more delays other tasks on the
/// thread, so it is done elsewhere, with the same outcome.
pub const SHORT_JSON_BYTES: u64 = 256 << 10;

/// Maximum weight of the values that the expressions of a projection yield for one file, or for all
/// messages of one event, and maximum size of these messages, in bytes. Each expression may yield a
/// whole state, and a projection may have thousands of expressions. The limit equals the default
/// limit of the state of a graph.
pub const RENDERED_BYTES: u64 = 64 << 20;

/// Maximum length of a document in bytes. Typical documents have a few kilobytes, and some checks
/// compare every node with every edge.
pub const DOCUMENT_LIMIT_BYTES: usize = 256 * 1024;

/// Maximum nesting of tables and arrays in a TOML document. What reads its values is recursive. The
/// limit equals that of JSON from guests, to which settings and constants are passed.
pub const DOCUMENT_DEPTH: usize = 100;

/// Maximum size of the texts that `with_files` of all nodes of one document add, in bytes. A text
/// counts once for each key, because each key gets a copy. The prompts of an app have some ten KiB.
pub const DOCUMENT_TEXT_BYTES: usize = 4 << 20;

/// Maximum number of problems of one document that are reported. Nobody reads more at once, and a
/// document of the largest size could have millions.
pub const DOCUMENT_PROBLEMS: usize = 1_000;

/// Maximum number of known names among which a similar one is searched for a hint. A typical graph
/// has about ten nodes. The limit is needed because each problem of a document can have a hint.
pub const SUGGESTED_FROM: usize = 250;

/// Maximum length of a name for which a similar one is searched, in characters. A comparison takes
/// time in proportion to the lengths of both names.
pub const SUGGESTION_CHARS: usize = 40;

/// Maximum size of a JSON Schema, in bytes; approximately the length of its text. Generated schemas
/// of large types have some ten KiB.
pub const SCHEMA_BYTES: u64 = 256 << 10;

/// Maximum number of JSON values in a schema. Compilation takes time and memory proportional to
/// this number.
pub const SCHEMA_NODES: u64 = 20_000;

/// Maximum length of the paths of all JSON values of a schema, in bytes. The compiled schema holds
/// the path of each value. The paths of a generated schema of 256 KiB have some MiB in total.
pub const SCHEMA_PATHS_BYTES: u64 = 8 << 20;

/// Maximum nesting of a schema, in levels. Compilation is recursive.
pub const SCHEMA_DEPTH: u64 = 64;

/// Maximum number of subschemas that apply to one location of a value, with `$ref` and all
/// combinations followed. The validator evaluates each of them for every value at the location.
pub const SCHEMA_EXPANDED: u64 = 10_000;

/// Maximum nesting of subschemas that apply to one location of a value (`$ref`, `allOf` and the
/// like). The validator recurses through them.
pub const SCHEMA_CHAIN: u64 = 64;

/// Maximum depth of the recursion of a validation. Each level of the value adds one to the depth,
/// and so does each subschema within a subschema for the same location. It bounds the stack of the
/// validator.
pub const SCHEMA_RECURSION: u64 = 500;

/// Maximum number of different patterns in a schema.
pub const SCHEMA_PATTERNS: u64 = 100;

/// Maximum size of all compiled patterns of a schema, in bytes. Compilation takes time proportional
/// to this size. The limit allows some forty patterns such as `^.{1,300}$`.
pub const SCHEMA_PATTERNS_COMPILED_BYTES: u64 = 8 << 20;

/// Maximum length of a pattern, and of a text with the format `regex`, in bytes. The check of the
/// format takes time proportional to the square of the length.
pub const PATTERN_BYTES: u64 = 1_000;

/// Maximum number of escapes in a pattern that the validator translates (`\d`, `\s`, `\w`, their
/// negations and `\cA`). The translation reads the pattern once for each escape. Patterns of dates
/// have about twenty.
pub const PATTERN_ESCAPES: u64 = 50;

/// Maximum size of a compiled pattern, in bytes. Matching takes time proportional to the length of
/// the text and to this size.
pub const PATTERN_COMPILED_BYTES: u64 = 1 << 20;

/// Maximum number of steps of the validations of one outcome, input, edit, set of answers,
/// superstep or migration, or of the defaults of one graph; see [`crate::schema`]. A run context,
/// the arguments of a tool call, a structured output and the configuration of a node each have a
/// separate budget of the same size. A step takes some ten nanoseconds. Validating a list of
/// 200,000 numbers, each of which may have one of two types, takes 1.6 million steps.
pub const SCHEMA_STEPS: u64 = 10_000_000;

/// Maximum number of steps of a validation whose error describes each violation. The memory of the
/// messages grows with the steps.
pub const SCHEMA_EXPLAINED_STEPS: u64 = 100_000;

/// Maximum length of the description of a violation, in bytes. Some descriptions repeat the value.
pub const SCHEMA_MESSAGE_BYTES: usize = 2_000;

/// Maximum number of steps of all conditions of one superstep, and of one expression elsewhere. A
/// step takes some ten to hundred nanoseconds. A condition that compares each of 300 items with
/// each of 300 others needs fewer steps.
pub const CONDITION_STEPS: u64 = 1_000_000;

/// Maximum number of steps of all expressions of a stream of an app for one event, and of all files
/// of an app for one run. An expression takes at least as many steps as its text has bytes. The
/// limit allows ten expressions of [`CONDITION_STEPS`] each, or a thousand messages or files with
/// some hundred short expressions each.
pub const PROJECTION_STEPS: u64 = 10_000_000;

/// Maximum length of the message about a failed expression, in bytes. The message may quote the
/// state.
pub const CONDITION_MESSAGE_BYTES: usize = 2_000;

/// Maximum number of sends of one task. A node can thus send one task for each of some thousand
/// items.
pub const TASK_SENDS: u64 = 10_000;

/// Maximum number of tasks of one superstep. All of them are planned and kept in memory until their
/// writes are applied.
pub const STEP_TASKS: u64 = 10_000;

/// Maximum [weight](crate::weight) of the inputs of all sends of one superstep, in bytes. The
/// checkpoint contains these inputs.
pub const STEP_INPUT_BYTES: u64 = 64 << 20;

/// Maximum number of tasks of a run, including those of its subgraphs. Each task leaves events in
/// the log of the thread.
pub const RUN_TASKS: u64 = 100_000;

/// Maximum value of [`GraphLimits::task_sends`], [`GraphLimits::step_tasks`] and
/// [`GraphLimits::run_tasks`]. Planning takes memory in proportion to these limits.
pub const MOST_TASKS: u64 = 10_000_000;

/// Maximum [weight](crate::weight) of the state of one graph, in bytes. Each view of a thread has
/// the whole state in memory. Checkpoints share what did not change between them, such as the items
/// of a list. The limit allows a conversation of some ten thousand messages.
pub const STATE_BYTES: u64 = 64 << 20;

/// Maximum [weight](crate::weight) of the outcomes of one superstep, in bytes. All of them are in
/// memory until they are applied. The limit allows sixteen outcomes of the maximum size.
pub const STEP_OUTCOME_BYTES: u64 = 64 << 20;

/// Maximum value of [`GraphLimits::state_bytes`] and [`GraphLimits::step_outcome_bytes`]. A store
/// writes at most as many bytes of JSON for one channel.
pub const MOST_STATE_BYTES: u64 = 512 << 20;

/// Maximum length of a name under which a history shows a tool, in bytes. Providers accept at most
/// 128. Each call of the tool in the conversation has the name, so long names would make gigabytes of
/// a conversation of some megabytes.
pub const HISTORY_NAME_BYTES: usize = 256;

/// Maximum weight of the tool results that a history has more than once, in bytes. Each call of a
/// conversation is followed by its result, and several calls can have the same id. Without the
/// limit, a conversation of some megabytes with many such calls could become gigabytes.
pub const HISTORY_REPEATED_BYTES: u64 = 16 << 20;

/// Limits of graphs that an operator can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphLimits {
    /// See [`TASK_SENDS`].
    pub task_sends: u64,
    /// See [`STEP_TASKS`].
    pub step_tasks: u64,
    /// See [`RUN_TASKS`].
    pub run_tasks: u64,
    /// See [`STATE_BYTES`].
    pub state_bytes: u64,
    /// See [`STEP_OUTCOME_BYTES`].
    pub step_outcome_bytes: u64,
}

impl Default for GraphLimits {
    fn default() -> Self {
        Self {
            task_sends: TASK_SENDS,
            step_tasks: STEP_TASKS,
            run_tasks: RUN_TASKS,
            state_bytes: STATE_BYTES,
            step_outcome_bytes: STEP_OUTCOME_BYTES,
        }
    }
}

/// Returns the error for a run that starts too many tasks in its root graph and its subgraphs.
pub fn run_tasks(graph: &GraphName, allowed: u64) -> Exceeded {
    let message = format!(
        "graph `{graph}` needs more than {allowed} tasks in one run, including those of all its \
         subgraphs: end it and continue with another run, or raise `limits.run_tasks` in \
         wattle.toml"
    );
    Exceeded::new("run_tasks", allowed, message)
}

/// Returns the error for a superstep whose outcomes exceed the limit together.
pub fn step_outcome_bytes(graph: &GraphName, allowed: u64) -> Exceeded {
    let message = format!(
        "the outcomes of the tasks of one superstep of graph `{graph}` take more than {allowed} \
         bytes of memory together: run fewer tasks in a superstep, return less from each task, put \
         large things into blobs, or raise `limits.step_outcome_bytes` in wattle.toml"
    );
    Exceeded::new("step_outcome_bytes", allowed, message)
}

/// Returns the error for a conversation whose calls repeat too many results.
pub fn history_repeated_bytes() -> Exceeded {
    let allowed = HISTORY_REPEATED_BYTES;
    let message = format!(
        "several calls have the same id, and the results that they repeat take more than {allowed} \
         bytes: give each call an id that no other call of the conversation has"
    );
    Exceeded::new("history_repeated_bytes", allowed, message)
}

/// Error: a limit was exceeded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Exceeded {
    /// Stable name of the limit for programs, `details.limit` of the failure.
    pub limit: &'static str,
    /// Value of the limit.
    pub allowed: u64,
    /// Message that names what exceeded the limit, where, and what to do.
    pub message: String,
}

impl Exceeded {
    pub(crate) fn new(limit: &'static str, allowed: u64, message: impl Into<String>) -> Self {
        Self { limit, allowed, message: message.into() }
    }

    /// Prefixes the message with its subject.
    #[must_use]
    pub fn of(mut self, subject: &str) -> Self {
        self.message = format!("{subject}: {}", self.message);
        self
    }

    /// Returns the error as a failure for guests, events and HTTP responses.
    pub fn to_failure(&self) -> Failure {
        let details = json!({ "limit": self.limit, "allowed": self.allowed });
        Failure::new(code::LIMIT, self.message.clone()).with_details(details)
    }
}
