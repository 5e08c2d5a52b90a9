//! Events as clients see them.

use std::borrow::Cow;

use super::{Asked, Event, EventKind};

impl Event {
    /// Returns the event without [`Asked::elicited`], which can hold a secret of an MCP server.
    pub fn shown(&self) -> Cow<'_, Self> {
        match &self.kind {
            EventKind::Asked(asked) if asked.elicited.is_some() => {
                let kind = EventKind::Asked(Asked { elicited: None, ..asked.clone() });
                Cow::Owned(Self { kind, ..self.clone() })
            }
            _ => Cow::Borrowed(self),
        }
    }
}
