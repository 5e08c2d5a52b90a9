//! Events without the parties whose requests they record.

use super::{Event, EventKind};

impl Event {
    /// Removes the party that made the request, and the state with which an MCP server continues a
    /// call, which can be a secret of the server. A node that is executed again reads neither.
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
