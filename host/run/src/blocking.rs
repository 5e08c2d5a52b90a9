//! Moves work on many tasks or large values off the threads that the runtime's tasks share.

use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};

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

/// Returns true if parsing a document of this size is long work.
pub fn is_long_parse(bytes: usize) -> bool {
    bytes >= MANY_BYTES
}

/// Returns true if planning or applying a superstep of this many tasks is long work.
pub fn are_many_tasks(tasks: usize) -> bool {
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

/// Runs a closure. If `is_much` is true and the runtime has several threads, the other tasks of the
/// current thread move to another thread meanwhile.
pub fn block_in_place_if<T>(is_much: bool, work: impl FnOnce() -> T) -> T {
    let can_move = || {
        Handle::try_current()
            .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
    };
    if is_much && can_move() { tokio::task::block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

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
        assert_eq!(block_in_place_if(true, || 8), 8, "outside of a runtime");
    }
}
