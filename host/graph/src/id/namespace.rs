//! Where in a tree of nested graphs something happens.
//!
//! A graph that a task runs has the namespace `<node>:<task id>` below its parent's, and levels are
//! joined by `|`. One that keeps its state over invocations has just `<node>`, and one that a call
//! of a task started has the place of that call behind the task: `<node>:<task id>.<place>`.

use serde::{Deserialize, Serialize};

use super::{NodeName, TaskId};

/// Between two levels.
const LEVEL: char = '|';
/// Between a node and its task.
const TASK: char = ':';
/// Between a task and the place of a call of it. No task id has one.
const CALL: char = '.';

/// A place in a tree of nested graphs; empty for the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Namespace(String);

impl Namespace {
    /// The namespace of a thread's own graph.
    pub fn root() -> Self {
        Self::default()
    }

    /// A namespace by its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The namespace as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is that of a thread's own graph.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// That of the graph that a task runs.
    pub fn of_task(&self, node: &NodeName, task: &TaskId) -> Self {
        self.below(format!("{node}{TASK}{task}"))
    }

    /// That of the graph that a node runs, the same for all of its tasks.
    pub fn of_node(&self, node: &NodeName) -> Self {
        self.below(node.to_string())
    }

    /// That of a graph that a task's call started; `place` names the call among those of the task.
    pub fn of_call(&self, node: &NodeName, task: &TaskId, place: &str) -> Self {
        self.below(format!("{node}{TASK}{task}{CALL}{place}"))
    }

    fn below(&self, level: String) -> Self {
        if self.is_root() { Self(level) } else { Self(format!("{}{LEVEL}{level}", self.0)) }
    }

    /// That of the graph around it; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let parent = self.0.rsplit_once(LEVEL).map_or("", |(parent, _)| parent);
        Some(Self(parent.to_owned()))
    }

    /// The graph itself and those around it, from the innermost to the thread's own.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self.clone()), Self::parent)
    }

    /// The graphs from the thread's own, which is left out, down to this one.
    pub fn path(&self) -> Vec<Self> {
        let mut path: Vec<Self> = self.ancestors().filter(|graph| !graph.is_root()).collect();
        path.reverse();
        path
    }

    /// The graph directly inside of `around` that it is, or is inside of; `None` if there is none.
    pub fn child_of(&self, around: &Self) -> Option<Self> {
        self.ancestors().find(|graph| graph.parent().as_ref() == Some(around))
    }

    /// The node of the graph around it that runs it or called for it; empty for the root.
    pub fn node(&self) -> &str {
        let level = self.level();
        level.split_once(TASK).map_or(level, |(node, _)| node)
    }

    /// The task of the graph around it that runs it or called for it; `None` for the root and for
    /// graphs that keep their state, which are of the node and not of one task.
    pub fn task(&self) -> Option<TaskId> {
        let (_, task) = self.level().split_once(TASK)?;
        TaskId::new(task.split(CALL).next().unwrap_or_default()).ok()
    }

    /// Whether it is, at any depth, inside of what a task of the graph `around` runs.
    pub fn is_run_by(&self, around: &Self, task: &TaskId, node: &NodeName) -> bool {
        // A graph that keeps its state is of the node and not of one task.
        self.child_of(around).is_some_and(|level| match level.task() {
            Some(own) => own == *task,
            None => level.node() == node.as_str(),
        })
    }

    /// The place of the call that started it among those of the task, each number inside of the
    /// one before; `None` if no call did.
    pub fn place(&self) -> Option<Vec<u32>> {
        let (_, task) = self.level().split_once(TASK)?;
        let (_, place) = task.split_once(CALL)?;
        place.split(CALL).map(|number| number.parse().ok()).collect()
    }

    /// The same graph below another one, and of another task if it is of one.
    #[must_use]
    pub fn moved(&self, around: &Self, task: Option<&TaskId>) -> Self {
        let level = self.level();
        let (Some(task), Some((node, old))) = (task, level.split_once(TASK)) else {
            return around.below(level.to_owned());
        };
        let place = old.find(CALL).map_or("", |start| &old[start..]);
        around.below(format!("{node}{TASK}{task}{place}"))
    }

    /// How many graphs are around it.
    pub fn depth(&self) -> usize {
        if self.is_root() { 0 } else { 1 + self.0.matches(LEVEL).count() }
    }

    /// Whether it is nested, at any depth, in the graph of another.
    pub fn is_below(&self, other: &Self) -> bool {
        if other.is_root() {
            return !self.is_root();
        }
        self.0.strip_prefix(&other.0).is_some_and(|rest| rest.starts_with(LEVEL))
    }

    fn level(&self) -> &str {
        self.0.rsplit(LEVEL).next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_tells_what_is_around_it() {
        let (node, task) = (NodeName::new("research").unwrap(), TaskId::new("0af3").unwrap());
        let root = Namespace::root();
        let one = root.of_task(&node, &task);
        let two = one.of_node(&node);
        let three = two.of_call(&node, &task, "0.2");
        assert_eq!(three.as_str(), "research:0af3|research|research:0af3.0.2");
        for (namespace, parent, owner, depth) in
            [(&one, &root, Some(&task), 1), (&two, &one, None, 2), (&three, &two, Some(&task), 3)]
        {
            assert_eq!(namespace.parent().as_ref(), Some(parent));
            assert_eq!(namespace.task().as_ref(), owner);
            assert_eq!((namespace.node(), namespace.depth()), ("research", depth));
            assert!(namespace.is_below(parent) && namespace.is_below(&root));
            assert!(!parent.is_below(namespace));
        }
        assert_eq!((root.parent(), root.task(), root.depth()), (None, None, 0));
        assert_eq!((three.place(), one.place(), two.place()), (Some(vec![0, 2]), None, None));
        assert_eq!(three.path(), [one.clone(), two.clone(), three.clone()]);
        assert!(three.ancestors().eq([three.clone(), two.clone(), one.clone(), root.clone()]));
        for (around, child) in
            [(&root, Some(&one)), (&one, Some(&two)), (&two, Some(&three)), (&three, None)]
        {
            assert_eq!(three.child_of(around).as_ref(), child);
        }
        let other = TaskId::new("9f").unwrap();
        let there = root.of_task(&node, &other);
        assert_eq!(three.moved(&there, Some(&other)), there.of_call(&node, &other, "0.2"));
        assert_eq!(two.moved(&there, None), there.of_node(&node));
    }
}
