//! The event log of a thread in pages.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use utoipa::IntoParams;
use wattle_graph::event::Event;
use wattle_graph::id::RunId;
use wattle_run::blocking::block_in_place;
use wattle_run::engine::Engine;
use wattle_run::ports::store::ThreadHead;

use crate::document::log::{LogItems, LogPage};
use crate::native::events::resolve_run;
use crate::native::tenant_scope::TenantScope;
use crate::native::threads::{MAX_PAGE_SIZE, invalid_id, invalid_query, page_size};
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;
use crate::state::ConfiguredModels;
use crate::stream::event_view::EventView;

/// Selects the events of a page.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LogFilter {
    /// Only events after this sequence number.
    after: u64,
    /// Maximum number of events that are read, up to 500, which is the default. Events that `run`
    /// and `types` omit also count.
    limit: Option<usize>,
    /// Only events of this run. The first page begins at the first event of the run.
    run: Option<String>,
    /// Only events of these types, separated by commas.
    types: Option<String>,
    /// True for outlines of the events, without requests, results and other large values.
    outline: bool,
}

/// Returns a page of the event log of a thread, oldest first. A page has at most 4 MiB of events,
/// or one larger event.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/log", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread"), LogFilter),
    responses(
        (status = 200, body = LogPage),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_log(
    State(engine): State<Engine>,
    State(models): State<Arc<ConfiguredModels>>,
    scope: TenantScope,
    Path(id): Path<String>,
    filter: Result<Query<LogFilter>, QueryRejection>,
) -> Result<Json<LogPage>, Problem> {
    let Query(filter) = filter.map_err(invalid_query)?;
    let view = EventView::new(filter.types.as_deref(), filter.outline)?.with_models(models);
    let run = filter.run.map(RunId::new).transpose().map_err(invalid_id)?;
    // Events that become durable after this read have a number above `last_seq`, or are on the
    // page.
    let ThreadHead { record, last_seq, .. } = scope.thread_head(&engine, &id).await?;
    let before_run = match &run {
        Some(run) => resolve_run(&engine, &record, Some(run.clone())).await?.1,
        None => 0,
    };
    let limit = page_size(filter.limit.or(Some(MAX_PAGE_SIZE)));
    let after = filter.after.max(before_run);
    let mut events = engine.ports().store.events(&record.id, after, limit).await?;
    let last_read = events.last().map(|event| event.seq);
    let last_seq = last_seq.max(last_read.unwrap_or(0));
    let next_after = last_read.filter(|seq| *seq < last_seq);
    let is_of_run = |event: &Event| run.as_ref().is_none_or(|run| *run == event.run);
    events.retain(|event| is_of_run(event) && view.includes(&event.kind));
    Ok(Json(LogPage { items: items(events, &view), next_after, last_seq }))
}

/// Returns events in the form of a view. An outline needs the size of each value, and measuring the
/// sizes takes as long as writing the events in full.
fn items(events: Vec<Event>, view: &EventView) -> LogItems {
    if view.is_outline() {
        let outlines = || events.iter().map(|event| view.outline(event)).collect();
        return LogItems::Outlines(block_in_place(outlines));
    }
    LogItems::Events(events.into_iter().map(Event::into_shown).collect())
}
