//! The number and the memory of the pending interrupts of a thread.
//!
//! Interrupts of all graphs of the thread count. A run that resumes starts with the remaining
//! interrupts. When the root graph completes a superstep, all of them are answered.

use std::sync::{Mutex, MutexGuard, PoisonError};

use wattle_graph::event::InterruptRaised;
use wattle_graph::failure::Failure;
use wattle_graph::id::{Namespace, ThreadId};
use wattle_graph::interrupt::Interrupt;

use crate::caps;
use crate::log::batch_size::interrupt_memory_bytes;

/// Maximum memory of the pending interrupts of a thread, in bytes: the weight of their payloads,
/// response schemas and elicited questions (see `wattle_graph::weight`). Every view of the thread
/// contains all of them. The largest payload and the largest schema fit together.
const MAX_BYTES: u64 = 64 << 20;

/// Counter of the pending interrupts of a thread.
pub(super) struct InterruptCount {
    allowed: u64,
    pending: Mutex<Pending>,
}

/// What is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pending {
    interrupts: u64,
    bytes: u64,
}

impl InterruptCount {
    /// Creates a counter at 0.
    pub(super) fn new(allowed: u64) -> Self {
        Self { allowed, pending: Mutex::default() }
    }

    /// Sets the pending interrupts, each with the namespace of its graph.
    pub(super) fn set(&self, open: &[(Namespace, Interrupt)]) {
        let bytes = open.iter().map(|(_, open)| interrupt_memory_bytes(&open.raised)).sum();
        *self.lock() = Pending { interrupts: open.len() as u64, bytes };
    }

    /// Counts an interrupt that is about to be raised.
    ///
    /// # Errors
    ///
    /// `limit` if the maximum number of interrupts is pending, or if they would take more than the
    /// maximum memory. The interrupt is then not counted.
    pub(super) fn add(&self, thread: &ThreadId, raised: &InterruptRaised) -> Result<(), Failure> {
        let bytes = interrupt_memory_bytes(raised);
        let mut pending = self.lock();
        if pending.interrupts >= self.allowed {
            return Err(caps::interrupts_full(thread, pending.interrupts, self.allowed));
        }
        let total = pending.bytes.saturating_add(bytes);
        if total > MAX_BYTES {
            return Err(caps::interrupts_too_large(thread, pending.bytes, MAX_BYTES));
        }
        *pending = Pending { interrupts: pending.interrupts + 1, bytes: total };
        Ok(())
    }

    /// Locks the counter and ignores poisoning: no code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wattle_graph::id::{Digest, RunId};

    use super::*;
    use crate::limit::INTERRUPT_PAYLOAD_BYTES;

    fn thread() -> ThreadId {
        ThreadId::new("t").unwrap()
    }

    fn raised(payload: &Value, schema: &Value) -> InterruptRaised {
        serde_json::from_value(json!({
            "interrupt": "i", "task": "t", "node": "n", "call": 0, "payload": payload,
            "response_schema": schema,
        }))
        .unwrap()
    }

    /// Returns an interrupt for a question of an MCP server with the given schema.
    fn elicited(schema: &Value) -> InterruptRaised {
        let elicited = json!({
            "round": 0, "digest": Digest::of(b""), "server": "s", "tool": "t",
            "asked": { "questions": { "q": { "message": "?", "schema": schema } } },
        });
        let elicited = serde_json::from_value(elicited).unwrap();
        InterruptRaised { elicited, ..raised(&json!("?"), &json!(null)) }
    }

    fn open(raised: InterruptRaised) -> (Namespace, Interrupt) {
        let run = RunId::new("r").unwrap();
        let open = Interrupt { raised, raised_ms: 0, raised_seq: 0, run, answer: None };
        (Namespace::root(), open)
    }

    fn limit_of(refused: Result<(), Failure>) -> Value {
        refused.unwrap_err().details.unwrap()["limit"].clone()
    }

    /// Returns a payload of numbers. Its text has about half of the maximum size, and it takes 18
    /// MiB of memory.
    fn numbers() -> Value {
        json!(vec![0; INTERRUPT_PAYLOAD_BYTES / 4 - 8])
    }

    #[test]
    fn payloads_schemas_and_elicited_questions_have_one_limit_of_memory() {
        let count = InterruptCount::new(u64::MAX);
        let (large, small) = (raised(&numbers(), &json!(null)), raised(&json!("?"), &json!({})));
        for _ in 0..3 {
            count.add(&thread(), &large).unwrap();
        }
        let schema = raised(&json!("?"), &json!({ "enum": numbers() }));
        let elicited = elicited(&json!({ "enum": numbers() }));
        for refused in [&large, &schema, &elicited] {
            assert_eq!(limit_of(count.add(&thread(), refused)), "thread_question_bytes");
        }
        count.add(&thread(), &small).unwrap();
        assert_eq!(count.lock().interrupts, 4);
    }

    #[test]
    fn memory_of_answered_interrupts_is_free_again() {
        let count = InterruptCount::new(u64::MAX);
        let large = raised(&numbers(), &json!(null));
        let pending = vec![open(large.clone()); 3];
        count.set(&pending);
        assert_eq!(limit_of(count.add(&thread(), &large)), "thread_question_bytes");
        count.set(&pending[1..]);
        count.add(&thread(), &large).unwrap();
        count.set(&[]);
        assert_eq!(*count.lock(), Pending::default());
    }

    #[test]
    fn largest_payload_fits() {
        let digits = json!(vec![0; INTERRUPT_PAYLOAD_BYTES / 2 - 1]);
        let count = InterruptCount::new(1);
        count.add(&thread(), &raised(&digits, &json!(null))).unwrap();
        let refused = count.add(&thread(), &raised(&json!("?"), &json!(null)));
        assert_eq!(limit_of(refused), "thread_questions");
    }
}
