//! Namespaces: positions in the tree of a thread's graphs.
//!
//! A subgraph that a task runs adds the level `<node>:<task id>` to the namespace of its parent
//! graph. `|` separates levels. A subgraph that keeps its state across invocations adds just
//! `<node>`. A subgraph that a host call of a task started adds `<node>:<task id>.<call path>`.

use serde::{Deserialize, Serialize};

use super::{NodeName, TaskId};

/// Separates two levels.
const LEVEL_SEPARATOR: char = '|';
/// Separates a node from its task.
const TASK_SEPARATOR: char = ':';
/// Separates a task from a call path. No task id contains it.
const CALL_SEPARATOR: char = '.';

/// Position of a graph in the tree of a thread's graphs; empty for the root graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Namespace(String);

impl Namespace {
    /// Returns the namespace of the root graph.
    pub fn root() -> Self {
        Self::default()
    }

    /// Creates a namespace from its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the namespace as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true for the namespace of the root graph.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the namespace of the subgraph that a task runs.
    pub fn for_task(&self, node: &NodeName, task: &TaskId) -> Self {
        self.join(format!("{node}{TASK_SEPARATOR}{task}"))
    }

    /// Returns the namespace of the subgraph that a node runs, which all tasks of the node share.
    pub fn for_node(&self, node: &NodeName) -> Self {
        self.join(node.to_string())
    }

    /// Returns the namespace of a subgraph that a host call of a task started. `place` is the path
    /// of the call.
    pub fn for_call(&self, node: &NodeName, task: &TaskId, place: &str) -> Self {
        self.join(format!("{node}{TASK_SEPARATOR}{task}{CALL_SEPARATOR}{place}"))
    }

    fn join(&self, level: String) -> Self {
        if self.is_root() {
            Self(level)
        } else {
            Self(format!("{}{LEVEL_SEPARATOR}{level}", self.0))
        }
    }

    /// Returns the namespace of the parent graph; `None` for the root graph.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let parent = self.0.rsplit_once(LEVEL_SEPARATOR).map_or("", |(parent, _)| parent);
        Some(Self(parent.to_owned()))
    }

    /// Returns this namespace and those of all parent graphs, from the innermost to the root graph.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self.clone()), Self::parent)
    }

    /// Returns this namespace and those of its parent graphs without the root graph, the outermost
    /// first.
    pub fn path(&self) -> Vec<Self> {
        let mut path: Vec<Self> = self.ancestors().filter(|graph| !graph.is_root()).collect();
        path.reverse();
        path
    }

    /// Returns the namespace of the direct subgraph of `around` that is or contains this graph;
    /// `None` if this graph is not below `around`.
    pub fn child_of(&self, around: &Self) -> Option<Self> {
        self.ancestors().find(|graph| graph.parent().as_ref() == Some(around))
    }

    /// Returns the node of the parent graph that runs this graph or whose call started it; empty
    /// for the root graph.
    pub fn node(&self) -> &str {
        let level = self.level();
        level.split_once(TASK_SEPARATOR).map_or(level, |(node, _)| node)
    }

    /// Returns the task of the parent graph that runs this graph or whose call started it. `None`
    /// for the root graph and for subgraphs that keep their state, which belong to the node and not
    /// to one task.
    pub fn task(&self) -> Option<TaskId> {
        let (_, task) = self.level().split_once(TASK_SEPARATOR)?;
        TaskId::new(task.split(CALL_SEPARATOR).next().unwrap_or_default()).ok()
    }

    /// Returns true if a task of the graph `around` runs this graph, at any depth.
    pub fn is_run_by(&self, around: &Self, task: &TaskId, node: &NodeName) -> bool {
        // A subgraph that keeps its state belongs to the node and not to one task.
        self.child_of(around).is_some_and(|level| match level.task() {
            Some(own) => own == *task,
            None => level.node() == node.as_str(),
        })
    }

    /// Returns the path of the host call that started this graph; `None` if no call did.
    pub fn call_path(&self) -> Option<Vec<u32>> {
        let (_, task) = self.level().split_once(TASK_SEPARATOR)?;
        let (_, place) = task.split_once(CALL_SEPARATOR)?;
        place.split(CALL_SEPARATOR).map(|number| number.parse().ok()).collect()
    }

    /// Returns the namespace that this graph has below the parent graph `around`. If the namespace
    /// names a task, `task` replaces it.
    #[must_use]
    pub fn rebased(&self, around: &Self, task: Option<&TaskId>) -> Self {
        let level = self.level();
        let (Some(task), Some((node, old))) = (task, level.split_once(TASK_SEPARATOR)) else {
            return around.join(level.to_owned());
        };
        let place = old.find(CALL_SEPARATOR).map_or("", |start| &old[start..]);
        around.join(format!("{node}{TASK_SEPARATOR}{task}{place}"))
    }

    /// Returns the number of parent graphs.
    pub fn depth(&self) -> usize {
        if self.is_root() { 0 } else { 1 + self.0.matches(LEVEL_SEPARATOR).count() }
    }

    /// Returns true if this graph is a subgraph, at any depth, of the other graph.
    pub fn is_nested_in(&self, other: &Self) -> bool {
        if other.is_root() {
            return !self.is_root();
        }
        self.0.strip_prefix(&other.0).is_some_and(|rest| rest.starts_with(LEVEL_SEPARATOR))
    }

    fn level(&self) -> &str {
        self.0.rsplit(LEVEL_SEPARATOR).next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_node_task_and_call_are_read_from_a_namespace() {
        let (node, task) = (NodeName::new("research").unwrap(), TaskId::new("0af3").unwrap());
        let root = Namespace::root();
        let one = root.for_task(&node, &task);
        let two = one.for_node(&node);
        let three = two.for_call(&node, &task, "0.2");
        assert_eq!(three.as_str(), "research:0af3|research|research:0af3.0.2");
        for (namespace, parent, owner, depth) in
            [(&one, &root, Some(&task), 1), (&two, &one, None, 2), (&three, &two, Some(&task), 3)]
        {
            assert_eq!(namespace.parent().as_ref(), Some(parent));
            assert_eq!(namespace.task().as_ref(), owner);
            assert_eq!((namespace.node(), namespace.depth()), ("research", depth));
            assert!(namespace.is_nested_in(parent) && namespace.is_nested_in(&root));
            assert!(!parent.is_nested_in(namespace));
        }
        assert_eq!((root.parent(), root.task(), root.depth()), (None, None, 0));
        assert_eq!(
            (three.call_path(), one.call_path(), two.call_path()),
            (Some(vec![0, 2]), None, None)
        );
        assert_eq!(three.path(), [one.clone(), two.clone(), three.clone()]);
        assert!(three.ancestors().eq([three.clone(), two.clone(), one.clone(), root.clone()]));
        for (around, child) in
            [(&root, Some(&one)), (&one, Some(&two)), (&two, Some(&three)), (&three, None)]
        {
            assert_eq!(three.child_of(around).as_ref(), child);
        }
        let other = TaskId::new("9f").unwrap();
        let there = root.for_task(&node, &other);
        assert_eq!(three.rebased(&there, Some(&other)), there.for_call(&node, &other, "0.2"));
        assert_eq!(two.rebased(&there, None), there.for_node(&node));
    }
}
