//! Decides which runs a search matches, and builds its page. All stores share these rules.

use serde::Deserialize;
use wattle_graph::event::RunStatus;
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};
use wattle_run::ports::store::{
    FoundRun, RunCursor, RunRecord, RunSearch, RunSearchPage, RunSummary, ThreadRecord,
    ThreadStatus,
};

use crate::search::{FailureCode, FoundPage};

/// The fields of a stored record that select a run before its texts are decoded.
#[derive(Debug, Deserialize)]
pub(crate) struct RunFields {
    id: RunId,
    pub(crate) thread: ThreadId,
    status: RunStatus,
    failure: Option<FailureCode>,
    created_ms: Option<i64>,
    started_ms: i64,
}

impl RunFields {
    fn created_ms(&self) -> i64 {
        self.created_ms.unwrap_or(self.started_ms)
    }

    /// Returns the position of the run in a search, for a store that orders runs by the time of
    /// their requests.
    pub(crate) fn cursor(&self) -> RunCursor {
        RunCursor { position: self.created_ms(), run: self.id.clone() }
    }
}

/// The fields of the record of a thread that a search compares, and returns with the runs of the
/// thread.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RunThread {
    app: AppName,
    graph: GraphName,
    status: ThreadStatus,
    expires_ms: Option<i64>,
    tenant: Option<String>,
}

impl RunThread {
    /// Returns a run of the thread as a search finds it.
    fn with(self, run: RunSummary) -> FoundRun {
        FoundRun { run, app: self.app, graph: self.graph, tenant: self.tenant }
    }
}

impl From<&ThreadRecord> for RunThread {
    fn from(thread: &ThreadRecord) -> Self {
        let ThreadRecord { app, graph, status, expires_ms, tenant, .. } = thread;
        Self {
            app: app.clone(),
            graph: graph.clone(),
            status: *status,
            expires_ms: *expires_ms,
            tenant: tenant.clone(),
        }
    }
}

/// The fields of a run that a search compares before it compares the thread and texts.
pub(crate) struct RunSelectors<'r> {
    status: RunStatus,
    failure: Option<&'r str>,
    created_ms: i64,
}

impl<'r> From<&'r RunFields> for RunSelectors<'r> {
    fn from(run: &'r RunFields) -> Self {
        let failure = run.failure.as_ref().map(|failure| failure.code.as_str());
        Self { status: run.status, failure, created_ms: run.created_ms() }
    }
}

impl<'r> From<&'r RunRecord> for RunSelectors<'r> {
    fn from(run: &'r RunRecord) -> Self {
        let failure = run.failure.as_ref().map(|failure| failure.code.as_str());
        Self { status: run.status, failure, created_ms: run.created_ms() }
    }
}

impl<'r> From<&'r RunSummary> for RunSelectors<'r> {
    fn from(run: &'r RunSummary) -> Self {
        let failure = run.failure.as_ref().map(|failure| failure.code.as_str());
        Self { status: run.status, failure, created_ms: run.created_ms }
    }
}

/// The fields of the thread of a run that a search compares.
#[derive(Clone, Copy)]
pub(crate) struct ThreadSelectors<'t> {
    app: &'t AppName,
    graph: &'t GraphName,
    status: ThreadStatus,
    expires_ms: Option<i64>,
    tenant: Option<&'t str>,
}

/// Implements `From<&T>` for [`ThreadSelectors`]. Each type `T` must have these fields.
macro_rules! impl_thread_selectors {
    ($($thread:ty),+) => {$(
        impl<'t> From<&'t $thread> for ThreadSelectors<'t> {
            fn from(thread: &'t $thread) -> Self {
                Self {
                    app: &thread.app,
                    graph: &thread.graph,
                    status: thread.status,
                    expires_ms: thread.expires_ms,
                    tenant: thread.tenant.as_deref(),
                }
            }
        }
    )+};
}

impl_thread_selectors!(RunThread, ThreadRecord);

/// The page of a search of runs that is being read. Runs are examined in the order of the search,
/// which the store decides: by the time of the request or by its number.
#[derive(Debug)]
pub(crate) struct RunPage {
    search: RunSearch,
    /// The text of the search in lower case.
    text: Option<String>,
    found: FoundPage<FoundRun, RunCursor>,
}

impl RunPage {
    /// Creates an empty page.
    pub(crate) fn new(search: &RunSearch) -> Self {
        Self {
            search: search.clone(),
            text: search.text.as_ref().map(|text| text.to_lowercase()),
            found: FoundPage::new(search.limit, search.budget),
        }
    }

    /// Returns whether the fields of a run match.
    pub(crate) fn selects<'a>(&self, run: impl Into<RunSelectors<'a>>) -> bool {
        let run = run.into();
        self.search.status.is_none_or(|status| status == run.status)
            && self.search.failure.as_ref().is_none_or(|code| run.failure == Some(code.as_str()))
            && self.search.created_ms.contains(&run.created_ms)
    }

    /// Returns whether a position comes after that of the search.
    pub(crate) fn continues_at(&self, position: &RunCursor) -> bool {
        self.search.after.as_ref().is_none_or(|after| position > after)
    }

    /// Returns whether the fields of the thread of a run match.
    pub(crate) fn selects_thread<'a>(&self, thread: impl Into<ThreadSelectors<'a>>) -> bool {
        let thread = thread.into();
        let RunSearch { app, graph, tenant, unexpired_at_ms, .. } = &self.search;
        app.as_ref().is_none_or(|app| app == thread.app)
            && graph.as_ref().is_none_or(|graph| graph == thread.graph)
            && tenant.as_ref().is_none_or(|tenant| thread.tenant == Some(tenant.as_str()))
            && unexpired_at_ms.is_none_or(|at| !thread.status.has_expired(thread.expires_ms, at))
    }

    /// Examines the next run of the order with its thread. `bytes` is the number of bytes of JSON
    /// that the budget counts. Returns false if the page was complete before this run, or if the
    /// budget is exhausted.
    pub(crate) fn examine(
        &mut self,
        position: RunCursor,
        run: RunSummary,
        thread: RunThread,
        bytes: u64,
    ) -> bool {
        if !self.found.admits(bytes) {
            return false;
        }
        let is_selected = self.selects(&run) && self.selects_thread(&thread);
        let found = thread.with(run);
        let matches = is_selected && self.has_text(&found);
        let bytes = found.memory_bytes();
        self.found.examined(position, matches.then_some((found, bytes)))
    }

    fn has_text(&self, found: &FoundRun) -> bool {
        let Some(text) = &self.text else { return true };
        // `contains` takes linear time, also for hostile texts.
        let has = |part: &str| part.to_lowercase().contains(text);
        let FoundRun { run, app, graph, .. } = found;
        has(run.id.as_str())
            || has(run.thread.as_str())
            || has(app.as_str())
            || has(graph.as_str())
            || run.failure.as_ref().is_some_and(|it| has(&it.code) || has(&it.message))
    }

    /// Returns the page.
    pub(crate) fn finish(self) -> RunSearchPage {
        let (items, next) = self.found.finish();
        RunSearchPage { items, next }
    }
}
