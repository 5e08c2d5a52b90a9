//! Synchronizes the tables with the event log of the session's thread.
//!
//! A request that reads a session folds the new events first. The same transaction advances the
//! cursor of the session, and only from the value that was read. Of two concurrent requests only
//! one therefore writes, and an event such as a new version of the page is counted once.

use wattle_plugin::prelude::{Failure, clock, params, sql};
use wattle_plugin::sql::Transaction;

use crate::preview::Preview;
use crate::session::log::{Run, events, matters, runs_of};
use crate::session::outcome::View;
use crate::session::snapshot;
use crate::session::step::{Step, StepStatus, steps};
use crate::session::{Session, step_table, table};
use crate::{DATABASE, message};

/// Maximum number of attempts if other requests are faster. After them, the stored session is
/// returned.
const ATTEMPTS: u32 = 5;

/// The tool whose output has the title of the video.
const CRAWL_TOOL: &str = "crawl_youtube_videos";

/// Resets a session whose thread was deleted: it has no active run. A session that has changed
/// since it was read is not reset, because it may have a new thread.
const FORGET: &str = "UPDATE sessions SET event_cursor = 0, run_cursor = 0, updated_ms = $1, \
    status = CASE WHEN status = 'RUNNING' THEN 'CANCELLED' ELSE status END, current_step = NULL \
    WHERE id = $2 AND event_cursor = $3";

/// Applies the new events of a session's thread.
pub(crate) fn sync(mut session: Session) -> Result<Session, Failure> {
    for _ in 0..ATTEMPTS {
        let Some(fresh) = events(&session.id, session.event_cursor)? else {
            return forget(session);
        };
        if !fresh.iter().any(matters) {
            return Ok(session);
        }
        let all = if session.run_cursor < session.event_cursor {
            events(&session.id, session.run_cursor)?.unwrap_or_default()
        } else {
            fresh
        };
        if let Some(last) = apply(&session, &runs_of(all))? {
            return Ok(last);
        }
        let tenant = session.tenant.clone();
        session = table::find(Some(&tenant), &session.id)?
            .ok_or_else(|| Failure::not_found("the session is gone"))?;
    }
    Ok(session)
}

/// Resets a session whose thread an operator deleted. Events of a new thread count from 1.
fn forget(session: Session) -> Result<Session, Failure> {
    if session.event_cursor == 0 {
        return Ok(session);
    }
    let row = params![clock::now_ms(), &session.id, session.event_cursor.cast_signed()];
    sql::database(DATABASE).execute(FORGET, row)?;
    let found = table::find(Some(&session.tenant), &session.id)?;
    Ok(found.unwrap_or(session))
}

/// Writes the new events of runs. Returns `None` if another request was faster.
fn apply(session: &Session, runs: &[Run]) -> Result<Option<Session>, Failure> {
    let cursor = session.event_cursor;
    let views: Vec<View> =
        runs.iter().filter_map(|run| View::of(run, steps(&run.events))).collect();
    let mut after = session.clone();
    for view in &views {
        view.apply(&mut after, cursor);
    }
    let last = runs.iter().rev().find_map(|run| run.events.last());
    after.event_cursor = last.map_or(cursor, |event| event.seq);
    let under_way = views.last().filter(|view| view.ended.is_none());
    after.run_cursor = under_way.map_or(after.event_cursor, |view| view.first - 1);

    let transaction = sql::database(DATABASE).begin()?;
    if !table::advance(&transaction, &after, cursor)? {
        transaction.rollback()?;
        return Ok(None);
    }
    for (run, view) in runs.iter().zip(&views) {
        keep_steps(&transaction, &after, view, cursor)?;
        if view.ended.as_ref().is_some_and(|(seq, ..)| *seq > cursor)
            && let Some(said) = message::said(run, &view.steps)
        {
            message::put(&transaction, &after, &said)?;
        }
    }
    transaction.commit()?;
    table::find(Some(&after.tenant), &after.id).map(|found| found.or(Some(after)))
}

/// Writes the steps that have changed, and their results. A failed step may have a result for the
/// next attempt.
fn keep_steps(
    transaction: &Transaction,
    session: &Session,
    view: &View,
    cursor: u64,
) -> Result<(), Failure> {
    let fresh: Vec<&Step> = view.steps.iter().filter(|step| step.touched() > cursor).collect();
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
    let output = step.output.as_ref().filter(|_| step.tool == CRAWL_TOOL)?;
    output["videos"][0]["title"].as_str()
}

#[cfg(test)]
mod tests;
