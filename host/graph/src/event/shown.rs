//! Events as clients see them.

use std::borrow::Cow;

use super::{Event, EventKind};

impl Event {
    /// Returns the event without its [`elicited`](super::InterruptRaised::elicited), which can hold
    /// a secret of an MCP server.
    pub fn shown(&self) -> Cow<'_, Self> {
        match &self.kind {
            EventKind::InterruptRaised(raised) if raised.elicited.is_some() => {
                Cow::Owned(self.clone().into_shown())
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// Returns the event like [`Event::shown`], without a copy.
    pub fn into_shown(mut self) -> Self {
        if let EventKind::InterruptRaised(raised) = &mut self.kind {
            raised.elicited = None;
        }
        self
    }
}
