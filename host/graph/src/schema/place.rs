//! Locations in JSON values, as JSON pointers.

use std::fmt::{self, Display, Write as _};

/// A step of a path into a value.
#[derive(Clone, Copy)]
pub(super) enum Step<'p> {
    Key(&'p str),
    Index(usize),
}

/// A location, as a linked path on the stack.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    parent: Option<&'p Place<'p>>,
    step: Option<Step<'p>>,
}

impl<'p> Place<'p> {
    /// The whole value.
    pub(super) const ROOT: Place<'static> = Place { parent: None, step: None };

    pub(super) fn key(&'p self, key: &'p str) -> Self {
        Self { parent: Some(self), step: Some(Step::Key(key)) }
    }

    pub(super) fn index(&'p self, index: usize) -> Self {
        Self { parent: Some(self), step: Some(Step::Index(index)) }
    }
}

/// Writes `/` for the whole value, and otherwise a JSON pointer.
impl Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = Vec::new();
        let mut place = Some(self);
        while let Some(at) = place {
            steps.extend(at.step);
            place = at.parent;
        }
        if steps.is_empty() {
            return f.write_char('/');
        }
        steps.iter().rev().try_for_each(|step| match step {
            Step::Key(key) => write!(f, "/{}", key.replace('~', "~0").replace('/', "~1")),
            Step::Index(index) => write!(f, "/{index}"),
        })
    }
}
