//! Events as clients see them.

use std::borrow::Cow;

use super::{Event, EventKind, InterruptRaised};

impl Event {
    /// Returns the event without [`InterruptRaised::elicited`], which can hold a secret of an MCP
    /// server.
    pub fn shown(&self) -> Cow<'_, Self> {
        match &self.kind {
            EventKind::InterruptRaised(raised) if raised.elicited.is_some() => {
                let kind = EventKind::InterruptRaised(InterruptRaised {
                    elicited: None,
                    ..raised.clone()
                });
                Cow::Owned(Self { kind, ..self.clone() })
            }
            _ => Cow::Borrowed(self),
        }
    }
}
