//! Removal of the principals from events.

use super::{Event, EventKind};

impl Event {
    /// Removes the principal, the name under which a client settled a call, and the opaque state of
    /// an elicitation, which can be a secret of the MCP server. A re-execution reads none of these
    /// fields.
    pub fn make_anonymous(&mut self) {
        let principal = match &mut self.kind {
            EventKind::RunStarted(it) => &mut it.principal,
            EventKind::RunEnded(it) => &mut it.principal,
            EventKind::Answered(it) => &mut it.principal,
            EventKind::Checkpointed(it) => &mut it.principal,
            EventKind::Forked(it) => &mut it.principal,
            EventKind::Migrated(it) => &mut it.principal,
            EventKind::Settled(it) => {
                it.by.clear();
                &mut it.principal
            }
            EventKind::InterruptRaised(it) => {
                if let Some(elicited) = &mut it.elicited {
                    elicited.elicitation.state = None;
                }
                return;
            }
            EventKind::TaskStarted(_)
            | EventKind::TaskFinished(_)
            | EventKind::TaskFailed(_)
            | EventKind::CallStarted(_)
            | EventKind::Streamed(_)
            | EventKind::Called(_)
            | EventKind::Reopened(_)
            | EventKind::Custom(_)
            | EventKind::Progress(_)
            | EventKind::Log(_) => return,
        };
        *principal = None;
    }
}
