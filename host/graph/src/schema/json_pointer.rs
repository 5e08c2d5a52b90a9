//! Locations in JSON values, as JSON pointers.

use std::fmt::{self, Display, Write as _};

/// A segment of a JSON pointer.
#[derive(Clone, Copy)]
pub(super) enum Segment<'p> {
    Key(&'p str),
    Index(usize),
}

/// The location of a value inside of a JSON document: a path whose segments are linked on the call
/// stack.
#[derive(Clone, Copy)]
pub(super) struct JsonPointer<'p> {
    parent: Option<&'p JsonPointer<'p>>,
    segment: Option<Segment<'p>>,
}

impl<'p> JsonPointer<'p> {
    /// The location of the whole document.
    pub(super) const ROOT: JsonPointer<'static> = JsonPointer { parent: None, segment: None };

    pub(super) fn key(&'p self, key: &'p str) -> Self {
        Self { parent: Some(self), segment: Some(Segment::Key(key)) }
    }

    pub(super) fn index(&'p self, index: usize) -> Self {
        Self { parent: Some(self), segment: Some(Segment::Index(index)) }
    }
}

/// Writes `/` for the whole value, and otherwise a JSON pointer.
impl Display for JsonPointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut segments = Vec::new();
        let mut pointer = Some(self);
        while let Some(at) = pointer {
            segments.extend(at.segment);
            pointer = at.parent;
        }
        if segments.is_empty() {
            return f.write_char('/');
        }
        segments.iter().rev().try_for_each(|segment| match segment {
            Segment::Key(key) => write!(f, "/{}", key.replace('~', "~0").replace('/', "~1")),
            Segment::Index(index) => write!(f, "/{index}"),
        })
    }
}
