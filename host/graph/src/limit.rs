//! Limits of the pure core, each with its reason.
//!
//! What a limit of this crate ends is part of a run's outcome, so every limit counts work or size
//! and none counts time: a replay reaches the same limit at the same place.

use serde_json::json;

use crate::failure::{Failure, code};
use crate::id::GraphName;

/// Bytes of a JSON Schema, about as many as its text has: generated schemas of large types have
/// some ten KiB.
pub const SCHEMA_BYTES: u64 = 256 << 10;

/// JSON values in a schema: compiling takes time and memory in proportion.
pub const SCHEMA_NODES: u64 = 20_000;

/// Levels of nesting of a schema: compiling it is recursive.
pub const SCHEMA_DEPTH: u64 = 64;

/// Schemas that apply to one place of a value, `$ref` and all combinations followed: the validator
/// looks at each of them for every value there.
pub const SCHEMA_EXPANDED: u64 = 10_000;

/// Schemas within schemas that apply to one place of a value (`$ref`, `allOf` and the like): the
/// validator recurses through them.
pub const SCHEMA_CHAIN: u64 = 64;

/// Schemas within schemas on the way to one place of a value, over all of its levels: bounds the
/// stack of the validator.
pub const SCHEMA_RECURSION: u64 = 500;

/// Different patterns of a schema.
pub const SCHEMA_PATTERNS: u64 = 100;

/// Bytes of a pattern.
pub const PATTERN_BYTES: u64 = 1_000;

/// Bytes of a compiled pattern: a text is matched in time proportional to both.
pub const PATTERN_COMPILED_BYTES: u64 = 1 << 20;

/// Work of one validation, see [`crate::schema`]: a step takes some ten nanoseconds. A list of
/// 200,000 numbers of which each may have two types needs 1.6 million.
pub const SCHEMA_STEPS: u64 = 10_000_000;

/// Steps of a validation whose message names each place that does not fit: the memory of the messages
/// grows with them.
pub const SCHEMA_EXPLAINED_STEPS: u64 = 100_000;

/// Bytes of one sentence about what does not fit: some repeat the value.
pub const SCHEMA_MESSAGE_BYTES: usize = 2_000;

/// Work of all conditions of one superstep, and of one expression elsewhere: a step takes some ten
/// to hundred nanoseconds. A condition that compares each of 300 items with each of 300 others
/// needs less.
pub const CONDITION_STEPS: u64 = 1_000_000;

/// Bytes of the sentence that says why an expression failed: it may quote the state.
pub const CONDITION_MESSAGE_BYTES: usize = 2_000;

/// Further tasks (`send`) that one task may ask for: a map over some thousand items fits.
pub const TASK_SENDS: u64 = 10_000;

/// Tasks of one superstep: all of them are planned and kept in memory until it is applied.
pub const STEP_TASKS: u64 = 10_000;

/// Bytes of the inputs of all tasks of one superstep that were sent one: they stand in the
/// checkpoint.
pub const STEP_INPUT_BYTES: u64 = 64 << 20;

/// Tasks of a run in all of its graphs: each leaves events that a thread keeps.
pub const RUN_TASKS: u64 = 100_000;

/// The most that an operator may allow of each of these: planning takes memory in proportion.
pub const MOST_TASKS: u64 = 10_000_000;

/// Limits of tasks that an operator may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLimits {
    /// See [`TASK_SENDS`].
    pub task_sends: u64,
    /// See [`STEP_TASKS`].
    pub step_tasks: u64,
    /// See [`RUN_TASKS`].
    pub run_tasks: u64,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self { task_sends: TASK_SENDS, step_tasks: STEP_TASKS, run_tasks: RUN_TASKS }
    }
}

/// A run wants more tasks than it may have, in a graph of its own or below.
pub fn run_tasks(graph: &GraphName, allowed: u64) -> Exceeded {
    let message = format!(
        "graph `{graph}` wants more than {allowed} tasks in one run, those of all its graphs \
         counted: end it and go on with another run, or raise `limits.run_tasks` in wattle.toml"
    );
    Exceeded::new("run_tasks", allowed, message)
}

/// A limit that was reached, and what reached it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Exceeded {
    /// A short stable word for programs, `details.limit` of the failure.
    pub limit: &'static str,
    /// How much is allowed.
    pub allowed: u64,
    /// A sentence: what reached the limit, where, and what to do.
    pub message: String,
}

impl Exceeded {
    /// A limit that was reached.
    pub(crate) fn new(limit: &'static str, allowed: u64, message: impl Into<String>) -> Self {
        Self { limit, allowed, message: message.into() }
    }

    /// The same with words before the sentence that name the subject.
    #[must_use]
    pub fn of(mut self, subject: &str) -> Self {
        self.message = format!("{subject}: {}", self.message);
        self
    }

    /// The same as a failure for guests, events and HTTP answers.
    pub fn to_failure(&self) -> Failure {
        let details = json!({ "limit": self.limit, "allowed": self.allowed });
        Failure::new(code::LIMIT, self.message.clone()).with_details(details)
    }
}
