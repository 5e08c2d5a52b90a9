//! Lists that a store reads page by page.

/// A page of a list. It ends at the limit of its query, or before an item with which it would take too much memory. Its
/// first item may be of any size, so every reader makes progress.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPage<T> {
    /// The items, in the order of the list.
    pub items: Vec<T>,
    /// True if no item follows. False if one may follow.
    pub is_last: bool,
}

impl<T> ListPage<T> {
    /// Returns the only page of a list without items.
    #[must_use]
    pub fn empty() -> Self {
        Self { items: Vec::new(), is_last: true }
    }
}

/// The parts of a checkpoint that a store reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckpointParts {
    /// All parts.
    #[default]
    All,
    /// The metadata, and the events since the checkpoint. The checkpoint has no channel values.
    WithoutValues,
    /// The metadata. The checkpoint has no channel values, and no events are read.
    Meta,
}

impl CheckpointParts {
    /// Returns true if channel values are read.
    #[must_use]
    pub fn has_values(self) -> bool {
        self == Self::All
    }

    /// Returns true if the events since the checkpoint are read.
    #[must_use]
    pub fn has_events(self) -> bool {
        self != Self::Meta
    }
}
