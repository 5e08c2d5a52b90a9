//! Events as everybody outside of the host sees them.

use std::borrow::Cow;

use super::{Asked, Event, EventKind};

impl Event {
    /// The event without [`Asked::elicited`]: what a server wants back may be a secret of it.
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
