//! Keys of host calls.

use crate::id::{InterruptId, TaskId};

/// Identifies a host call within its thread. A call that failed may be repeated under the same key.
///
/// Keys are ordered by task, then by scope, then by number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey {
    /// The task.
    pub task: TaskId,
    /// Numbers of the enclosing tool calls, the outermost first; empty for a call of the node
    /// itself.
    pub scope: Vec<u32>,
    /// Number of the call in its scope.
    pub call: u32,
}

impl CallKey {
    /// Creates the key of call number `call` in a scope of a task.
    pub fn new(task: &TaskId, scope: &[u32], call: u32) -> Self {
        Self { task: task.clone(), scope: scope.to_vec(), call }
    }

    /// Returns the key of the tool call that made this call; `None` for a call of the node itself.
    pub fn outer(&self) -> Option<Self> {
        let (call, scope) = self.scope.split_last()?;
        Some(Self::new(&self.task, scope, *call))
    }

    /// Returns the id of the interrupt that the call raises; see [`InterruptId::derive`].
    pub fn interrupt_id(&self) -> InterruptId {
        InterruptId::derive(&self.task, &self.scope, self.call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(task: &str, scope: &[u32], call: u32) -> CallKey {
        CallKey::new(&TaskId::new(task).unwrap(), scope, call)
    }

    #[test]
    fn keys_are_ordered_by_task_then_scope_then_number() {
        let ordered = [
            key("a", &[], 0),
            key("a", &[], 9),
            key("a", &[0], 3),
            key("a", &[0, 4], 1),
            key("a", &[1], 0),
            key("b", &[], 0),
        ];
        assert!(ordered.is_sorted_by(|before, after| before < after), "{ordered:?}");
    }

    #[test]
    fn the_last_number_of_a_scope_is_the_outer_call() {
        let outer = key("t", &[3, 1], 2).outer();
        assert_eq!(outer, Some(key("t", &[3], 1)));
        let outermost = outer.and_then(|call| call.outer());
        assert_eq!(outermost, Some(key("t", &[], 3)));
        assert_eq!(outermost.and_then(|call| call.outer()), None);
    }

    #[test]
    fn calls_of_different_scopes_have_different_interrupts() {
        let inner = key("t", &[1], 2);
        assert_eq!(inner.interrupt_id(), InterruptId::derive(&inner.task, &[1], 2));
        assert_ne!(inner.interrupt_id(), key("t", &[], 2).interrupt_id());
    }
}
