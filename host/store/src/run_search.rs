//! Decides which runs a search matches, and builds its page and its counts. All stores share these
//! rules.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use wattle_graph::event::RunStatus;
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};
use wattle_run::ports::store::{
    FoundRun, RemainingBudget, RunCounts, RunCursor, RunRecord, RunSearch, RunSearchPage,
    RunSummary, StoreError, ThreadRecord, ThreadStatus,
};

use crate::query::{FailureCode, ThreadFields};
use crate::search::{FoundPage, contains_all};

/// The fields of a stored record that select a run before its texts are decoded.
#[derive(Debug, Deserialize)]
pub(crate) struct RunFields {
    pub(crate) id: RunId,
    pub(crate) thread: ThreadId,
    pub(crate) status: RunStatus,
    pub(crate) failure: Option<FailureCode>,
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

    /// Returns a key that sorts runs as their [`cursor`](Self::cursor) does.
    pub(crate) fn sort_key(&self) -> Reverse<(i64, &RunId)> {
        Reverse((self.created_ms(), &self.id))
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

/// The metadata in the record of a thread. A search decodes them only if it compares them.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ThreadMetadata {
    #[serde(default)]
    metadata: BTreeMap<String, Value>,
}

impl From<&ThreadRecord> for ThreadMetadata {
    fn from(thread: &ThreadRecord) -> Self {
        Self { metadata: thread.metadata.clone() }
    }
}

/// The fields of a run that a search compares before it compares the thread and contents.
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

impl_thread_selectors!(RunThread, ThreadFields, ThreadRecord);

/// Compares runs and their threads with a search.
#[derive(Debug)]
pub(crate) struct RunMatcher {
    search: RunSearch,
    /// The text of the search in lower case.
    text: Option<String>,
}

impl RunMatcher {
    /// Creates a matcher for a page, which begins after the position of the search.
    pub(crate) fn of_page(search: &RunSearch) -> Self {
        let text = search.text.as_ref().map(|text| text.to_lowercase());
        Self { search: search.clone(), text }
    }

    /// Creates a matcher for counts, which ignore the position of the search.
    pub(crate) fn of_counts(search: &RunSearch) -> Self {
        Self::of_page(&RunSearch { after: None, ..search.clone() })
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

    /// Returns whether a run comes after the position of the search.
    pub(crate) fn continues_with(&self, run: &RunFields) -> bool {
        let after = self.search.after.as_ref();
        after.is_none_or(|after| run.sort_key() > Reverse((after.position, &after.run)))
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

    /// Returns whether a run matches. `metadata` reads those of its thread. It is called only if
    /// the search compares metadata and everything else matches.
    fn matches(
        &self,
        run: &RunSummary,
        thread: &RunThread,
        metadata: impl FnOnce() -> Result<ThreadMetadata, StoreError>,
    ) -> Result<bool, StoreError> {
        let is_found =
            self.selects(run) && self.selects_thread(thread) && self.has_text(run, thread);
        if !is_found || self.search.metadata.is_empty() {
            return Ok(is_found);
        }
        Ok(contains_all(&metadata()?.metadata, &self.search.metadata))
    }

    fn has_text(&self, run: &RunSummary, thread: &RunThread) -> bool {
        let Some(text) = &self.text else { return true };
        // `contains` takes linear time, also for hostile texts.
        let has = |part: &str| part.to_lowercase().contains(text);
        has(run.id.as_str())
            || has(run.thread.as_str())
            || has(thread.app.as_str())
            || has(thread.graph.as_str())
            || run.failure.as_ref().is_some_and(|it| has(&it.code) || has(&it.message))
    }
}

/// A run that a search examines, with its thread.
#[derive(Debug)]
pub(crate) struct ExaminedRun {
    /// Position of the run in the search.
    pub(crate) position: RunCursor,
    pub(crate) run: RunSummary,
    pub(crate) thread: RunThread,
    /// Number of bytes of JSON that the budget counts.
    pub(crate) bytes: u64,
}

/// Examines the runs of a search one after another.
pub(crate) trait RunExaminer {
    /// Examines the next run. `metadata` reads those of its thread, and is called only if the
    /// search compares them. Returns false if the result was complete before this run, or if the
    /// budget is exhausted.
    fn examine(
        &mut self,
        examined: ExaminedRun,
        metadata: impl FnOnce() -> Result<ThreadMetadata, StoreError>,
    ) -> Result<bool, StoreError>;
}

/// The page of a search of runs that is being read. Runs are examined in the order of the search,
/// which the store decides: by the time of the request or by its number.
#[derive(Debug)]
pub(crate) struct RunPage {
    matcher: RunMatcher,
    found: FoundPage<FoundRun, RunCursor>,
}

impl RunPage {
    /// Creates an empty page.
    pub(crate) fn new(search: &RunSearch) -> Self {
        let found = FoundPage::new(search.limit, search.budget);
        Self { matcher: RunMatcher::of_page(search), found }
    }

    /// Returns the page.
    pub(crate) fn finish(self) -> RunSearchPage {
        let (items, next) = self.found.finish();
        RunSearchPage { items, next }
    }
}

impl RunExaminer for RunPage {
    fn examine(
        &mut self,
        examined: ExaminedRun,
        metadata: impl FnOnce() -> Result<ThreadMetadata, StoreError>,
    ) -> Result<bool, StoreError> {
        let ExaminedRun { position, run, thread, bytes } = examined;
        if !self.found.admits(bytes) {
            return Ok(false);
        }
        let matches = self.matcher.matches(&run, &thread, metadata)?;
        let found = thread.with(run);
        let bytes = found.memory_bytes();
        Ok(self.found.examined(position, matches.then_some((found, bytes))))
    }
}

/// The counts of a search of runs in progress.
#[derive(Debug)]
pub(crate) struct RunSearchCounts {
    matcher: RunMatcher,
    budget: RemainingBudget,
    counts: RunCounts,
}

impl RunSearchCounts {
    /// Creates counts that are zero.
    pub(crate) fn new(search: &RunSearch) -> Self {
        Self {
            matcher: RunMatcher::of_counts(search),
            budget: RemainingBudget::new(search.budget),
            counts: RunCounts::default(),
        }
    }

    /// Counts a run that matches.
    pub(crate) fn add(&mut self, status: RunStatus) {
        self.counts.add(status);
    }

    /// Returns the counts.
    pub(crate) fn finish(self) -> RunCounts {
        self.counts
    }
}

impl RunExaminer for RunSearchCounts {
    fn examine(
        &mut self,
        examined: ExaminedRun,
        metadata: impl FnOnce() -> Result<ThreadMetadata, StoreError>,
    ) -> Result<bool, StoreError> {
        let ExaminedRun { run, thread, bytes, .. } = examined;
        if !self.budget.take(bytes) {
            self.counts.is_complete = false;
            return Ok(false);
        }
        if self.matcher.matches(&run, &thread, metadata)? {
            self.add(run.status);
        }
        Ok(true)
    }
}
