//! Work on many tasks or large values at once, where it holds up nobody else on the same runtime.

use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Tasks of a superstep from which on planning or applying it takes long enough to be noticed by
/// others that share the thread.
const MANY_TASKS: usize = 256;

/// Values, those inside of others counted, from which on validating them, or a condition that looks
/// at them, may take that long: a condition that compares each with each takes all steps that it
/// may.
const MANY_VALUES: usize = 1_000;

/// Bytes of a text that count as one value more: patterns take time in proportion.
const TEXT_BYTES: usize = 100;

/// Bytes of a document from which on reading it may take that long.
const MANY_BYTES: usize = 256 << 10;

/// Whether a document of so many bytes is much work to read.
pub fn is_long(bytes: usize) -> bool {
    bytes >= MANY_BYTES
}

/// Whether so many tasks are much work.
pub fn are_many(tasks: usize) -> bool {
    tasks >= MANY_TASKS
}

/// Whether these values are much work. Looks at no more of them than it takes to know.
pub fn are_large<'v>(values: impl IntoIterator<Item = &'v Value>) -> bool {
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

/// Does work. If it is much, other tasks of the runtime are moved to another of its threads
/// meanwhile.
pub fn in_bulk<T>(is_much: bool, work: impl FnOnce() -> T) -> T {
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
    fn large_values_are_found_by_what_is_in_them() {
        let numbers = |count: usize| json!({ "list": (0..count).collect::<Vec<_>>() });
        assert!(!are_large([&json!(null), &json!("short"), &numbers(900)]));
        assert!(are_large([&numbers(1_000)]));
        assert!(are_large([&numbers(600), &numbers(600)]));
        assert!(are_large([&json!("x".repeat(200_000))]));
    }

    /// The other task needs the runtime's only thread while the work waits for it.
    #[test]
    fn much_work_leaves_the_threads_of_the_runtime_to_others() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
        let runtime = runtime.expect("a runtime");
        let work = runtime.spawn(async {
            let (tell, told) = channel();
            tokio::spawn(async move { tell.send(7) });
            in_bulk(true, || told.recv())
        });
        assert_eq!(runtime.block_on(work).expect("it ends"), Ok(7));
        assert_eq!(in_bulk(true, || 8), 8, "outside of a runtime");
    }
}
