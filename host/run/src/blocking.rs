//! Moves long work off the threads that the runtime's tasks share: work on many tasks, on large
//! values and on large schemas.
//!
//! [`block_in_place_in_turn`] runs as many pieces of long work at once as the machine has cores, in
//! the order of arrival. More would not be faster, and each takes a thread of the pool on which the
//! store reads and writes.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use wattle_graph::graph::Graph;
use wattle_graph::lineage::Lineage;

/// Minimum number of tasks with which planning or applying a superstep delays other tasks on the
/// same thread.
const MANY_TASKS: usize = 256;

/// Minimum number of JSON values, including nested ones, with which validating them, or evaluating
/// a condition on them, delays other tasks on the same thread. A condition that compares all pairs
/// of values uses its whole budget of steps.
const MANY_VALUES: usize = 1_000;

/// Length of a string that counts as one more value, in bytes. The time of pattern matching is
/// proportional to the length.
const TEXT_BYTES: usize = 100;

/// Minimum size of a JSON document, in bytes, with which parsing it delays other tasks on the same
/// thread.
const MANY_BYTES: usize = 256 << 10;

/// Minimum number of JSON values in schemas, including nested ones, with which compiling them
/// delays other tasks on the same thread. A value takes some microseconds.
const MANY_SCHEMA_VALUES: usize = 200;

/// Keywords with patterns. Compiling a pattern can take some ten milliseconds, however short it is.
const PATTERN_KEYWORDS: [&str; 2] = ["pattern", "patternProperties"];

/// Turns for long work on all runtimes of this process.
static TURNS: LazyLock<Turns> =
    LazyLock::new(|| Turns::new(available_parallelism().map_or(1, NonZero::get)));

/// Returns true if parsing a document of this size is long work.
pub fn is_long_parse(bytes: usize) -> bool {
    bytes >= MANY_BYTES
}

/// Returns true if planning or applying a superstep of this many tasks is long work.
pub(crate) fn are_many_tasks(tasks: usize) -> bool {
    tasks >= MANY_TASKS
}

/// Returns true if work on these values is long. Stops counting at the threshold.
pub fn are_large_values<'v>(values: impl IntoIterator<Item = &'v Value>) -> bool {
    let mut left = MANY_VALUES;
    values.into_iter().any(|value| exhausts(value, &mut left))
}

fn exhausts(value: &Value, left: &mut usize) -> bool {
    let size = if let Value::String(text) = value { 1 + text.len() / TEXT_BYTES } else { 1 };
    *left = left.saturating_sub(size);
    if *left == 0 {
        return true;
    }
    match value {
        Value::Array(items) => items.iter().any(|item| exhausts(item, left)),
        Value::Object(fields) => fields.values().any(|field| exhausts(field, left)),
        _ => false,
    }
}

/// Returns true if validating these values against the schemas of a graph is long work.
pub fn is_long_validation<'v>(graph: &Graph, values: impl IntoIterator<Item = &'v Value>) -> bool {
    graph.has_expensive_schema() || are_large_values(values)
}

/// Returns true if applying a superstep is long work. The writes are validated, and conditions read
/// the whole state, so the work is proportional to their size.
pub(crate) fn is_long_superstep(graph: &Graph, lineage: &Lineage) -> bool {
    let written = lineage.finished.values().flat_map(|task| &task.writes);
    let values = lineage.checkpoint.values.values().map(AsRef::as_ref);
    are_many_tasks(lineage.finished.len())
        || is_long_validation(graph, values.chain(written.map(|write| &write.value)))
}

/// Returns true if compiling these schemas is long work. Stops counting at the threshold. A schema
/// with a pattern always counts as large.
pub fn are_large_schemas<'v>(schemas: impl IntoIterator<Item = &'v Value>) -> bool {
    let mut left = MANY_SCHEMA_VALUES;
    schemas.into_iter().any(|schema| has_pattern_or_exhausts(schema, &mut left))
}

fn has_pattern_or_exhausts(schema: &Value, left: &mut usize) -> bool {
    *left = left.saturating_sub(1);
    if *left == 0 {
        return true;
    }
    match schema {
        Value::Array(items) => items.iter().any(|item| has_pattern_or_exhausts(item, left)),
        Value::Object(fields) => {
            PATTERN_KEYWORDS.iter().any(|keyword| fields.contains_key(*keyword))
                || fields.values().any(|field| has_pattern_or_exhausts(field, left))
        }
        _ => false,
    }
}

/// Runs a closure. If `is_long` is true, waits for its turn first, and if the runtime has several
/// threads, the other tasks of the current thread move to another thread meanwhile. Nothing happens
/// if the future is dropped before.
///
/// A caller may hold locks: a turn ends without waiting for anything.
pub async fn block_in_place_in_turn<T>(is_long: bool, work: impl FnOnce() -> T) -> T {
    TURNS.run_if(is_long, work).await
}

/// Runs a closure like [`block_in_place_in_turn`], but does not wait for a turn. For callers that
/// cannot wait.
pub fn block_in_place_if<T>(is_long: bool, work: impl FnOnce() -> T) -> T {
    let can_move = || {
        Handle::try_current()
            .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
    };
    if is_long && can_move() { tokio::task::block_in_place(work) } else { work() }
}

/// Turns of pieces of long work, in the order of arrival.
struct Turns(Semaphore);

impl Turns {
    fn new(at_once: usize) -> Self {
        Self(Semaphore::new(at_once))
    }

    async fn run_if<T>(&self, is_long: bool, work: impl FnOnce() -> T) -> T {
        if !is_long {
            return work();
        }
        // The semaphore is never closed.
        let _turn = self.0.acquire().await;
        block_in_place_if(true, work)
    }
}

/// Holds all turns, so that long work waits.
#[cfg(test)]
pub(crate) async fn hold_all_turns() -> tokio::sync::SemaphorePermit<'static> {
    let all = available_parallelism().map_or(1, NonZero::get);
    let all = u32::try_from(all).expect("a machine has few cores");
    TURNS.0.acquire_many(all).await.expect("the semaphore is never closed")
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::pin::pin;
    use std::sync::mpsc::channel;

    use futures::poll;
    use serde_json::json;

    use super::*;

    #[test]
    fn are_large_counts_nested_values_and_bytes_of_strings() {
        let numbers = |count: usize| json!({ "list": (0..count).collect::<Vec<_>>() });
        assert!(!are_large_values([&json!(null), &json!("short"), &numbers(900)]));
        assert!(are_large_values([&numbers(1_000)]));
        assert!(are_large_values([&numbers(600), &numbers(600)]));
        assert!(are_large_values([&json!("x".repeat(200_000))]));
    }

    #[test]
    fn schemas_are_large_if_they_have_many_values_or_a_pattern() {
        let fields = |count: usize| json!({ "enum": (0..count).collect::<Vec<_>>() });
        assert!(!are_large_schemas([&json!(true), &fields(150)]));
        assert!(are_large_schemas([&fields(200)]));
        assert!(are_large_schemas([&fields(150), &fields(150)]));
        assert!(are_large_schemas([&json!({ "items": { "pattern": "^a$" } })]));
        assert!(are_large_schemas([&json!({ "patternProperties": { "^a$": true } })]));
    }

    /// The spawned task needs the only thread of the runtime while the closure waits for it.
    #[test]
    fn long_work_does_not_block_other_tasks() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
        let runtime = runtime.expect("a runtime");
        let work = runtime.spawn(async {
            let (tell, told) = channel();
            tokio::spawn(async move { tell.send(7) });
            block_in_place_if(true, || told.recv())
        });
        assert_eq!(runtime.block_on(work).expect("it ends"), Ok(7));
        let work = runtime.spawn(async {
            let (tell, told) = channel();
            tokio::spawn(async move { tell.send(7) });
            block_in_place_in_turn(true, move || told.recv()).await
        });
        assert_eq!(runtime.block_on(work).expect("it ends"), Ok(7));
        assert_eq!(block_in_place_if(true, || 8), 8, "outside of a runtime");
    }

    #[tokio::test]
    async fn long_work_waits_for_its_turn_in_the_order_of_arrival() {
        let (turns, done) = (Turns::new(2), RefCell::new(Vec::new()));
        let held = [turns.0.acquire().await, turns.0.acquire().await];
        let (done, turns) = (&done, &turns);
        let piece = |number: u32| turns.run_if(true, move || done.borrow_mut().push(number));
        let (mut one, mut two, mut three) = (pin!(piece(1)), pin!(piece(2)), pin!(piece(3)));
        assert!(poll!(one.as_mut()).is_pending() && poll!(two.as_mut()).is_pending());
        assert!(poll!(three.as_mut()).is_pending());
        turns.run_if(false, || done.borrow_mut().push(0)).await;
        drop(held);
        assert!(poll!(three.as_mut()).is_pending(), "two others were here before");
        one.await;
        two.await;
        three.await;
        assert_eq!(*done.borrow(), [0, 1, 2, 3]);
    }
}
