//! Synchronizes the tables with the event log of the session's thread.
//!
//! A request that reads a session applies the new events first, once for all requests: an event
//! such as a new version of the page is counted once.

use wattle_plugin::prelude::{Failure, Value};
use wattle_plugin::projection::{Cursor, Projection};
use wattle_plugin::runs::{Event, RunLog, by_run};
use wattle_plugin::sql::Transaction;

use crate::channel::AGENT;
use crate::preview::Preview;
use crate::session::outcome::RunView;
use crate::session::snapshot;
use crate::session::step::{Step, StepStatus, steps};
use crate::session::{Session, step_table, table};
use crate::tool::CRAWL_YOUTUBE_VIDEOS;
use crate::{DATABASE, message};

const SESSIONS: Cursor =
    Cursor { database: DATABASE, table: "sessions", id: "id", column: "event_cursor" };

/// What new events change: the session, and what its runs made.
pub(crate) struct Change {
    after: Session,
    runs: Vec<RunLog>,
    views: Vec<RunView>,
}

/// Applies the new events of a session's thread.
pub(crate) fn sync(mut session: Session) -> Result<Session, Failure> {
    SESSIONS.follow(&mut session)?;
    Ok(session)
}

impl Projection for Session {
    type Change = Change;

    fn thread_id(&self) -> &str {
        &self.id
    }

    fn cursor(&self) -> u64 {
        self.event_cursor
    }

    fn fold_after(&self) -> u64 {
        self.run_cursor
    }

    fn read(&self, event: &Value) -> Result<Event, Failure> {
        AGENT.read(event)
    }

    fn matters(&self, event: &Event) -> bool {
        AGENT.is_progress(event)
    }

    fn fold(&self, events: Vec<Event>) -> Result<Option<(Change, u64)>, Failure> {
        let Some(last) = events.last().map(|event| event.seq) else { return Ok(None) };
        let runs = by_run(events);
        let views: Vec<RunView> =
            runs.iter().filter_map(|run| RunView::of(run, steps(&run.events))).collect();
        let mut after = self.clone();
        for view in &views {
            view.apply(&mut after, self.event_cursor);
        }
        let under_way = views.last().filter(|view| view.ended.is_none());
        after.run_cursor = under_way.map_or(last, |view| view.first - 1);
        Ok(Some((Change { after, runs, views }, last)))
    }

    fn write(&self, transaction: &Transaction, change: Change) -> Result<(), Failure> {
        let (cursor, Change { after, runs, views }) = (self.event_cursor, change);
        table::set_status(transaction, &after)?;
        for (run, view) in runs.iter().zip(&views) {
            keep_steps(transaction, &after, view, cursor)?;
            if view.ended.as_ref().is_some_and(|(seq, ..)| *seq > cursor)
                && let Some(said) = message::said(run, &view.steps)
            {
                message::put(transaction, &after, &said)?;
            }
        }
        Ok(())
    }

    fn forget(&self, transaction: &Transaction) -> Result<(), Failure> {
        table::forget(transaction, &self.id)
    }

    /// A session that was deleted meanwhile remains as it was read.
    fn reload(&mut self) -> Result<bool, Failure> {
        let Some(found) = table::find(Some(&self.tenant), &self.id)? else { return Ok(false) };
        *self = found;
        Ok(true)
    }
}

/// Writes the steps that have changed, and their results. A failed step may have a result for the
/// next attempt.
fn keep_steps(
    transaction: &Transaction,
    session: &Session,
    view: &RunView,
    cursor: u64,
) -> Result<(), Failure> {
    let fresh: Vec<&Step> = view.steps.iter().filter(|step| step.last_seq() > cursor).collect();
    for step in &fresh {
        step_table::put(transaction, session, &view.run, step)?;
    }
    let has_made = |step: &&&Step| step.status == StepStatus::Success || !step.writes.is_empty();
    let made: Vec<&&Step> = fresh.iter().filter(has_made).collect();
    if made.is_empty() {
        return Ok(());
    }
    let mut state = snapshot::read(Some(transaction), &session.id)?;
    let preview = Preview::of(&session.id)?;
    for step in made {
        state.apply(&preview, step);
        if let Some(title) = title(step) {
            table::name(transaction, &session.id, title)?;
        }
    }
    snapshot::write(transaction, session, &state)
}

/// Returns the title of the video, from the step that crawled it.
fn title(step: &Step) -> Option<&str> {
    let output = step.output.as_ref().filter(|_| step.tool == CRAWL_YOUTUBE_VIDEOS)?;
    output["videos"][0]["title"].as_str()
}

#[cfg(test)]
mod tests;
