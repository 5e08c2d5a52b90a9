//! Decides which threads a search matches, and builds its page and its counts. All stores share
//! these rules.

use std::collections::{BTreeMap, BinaryHeap};

use serde_json::Value;
use wattle_graph::id::{AppName, GraphName, ThreadId};
use wattle_run::limit::LIST_BYTES;
use wattle_run::metadata::json_contains;
use wattle_run::ports::store::{
    RemainingBudget, SearchBudget, StoreError, ThreadCounts, ThreadCursor, ThreadRecord,
    ThreadSearch, ThreadSearchPage, ThreadStatus, ThreadSummary,
};

use crate::page::PageBuilder;
use crate::query::ThreadFields;

/// The fields of a thread that a search compares before it compares texts and metadata.
pub(crate) struct Selectors<'t> {
    app: &'t AppName,
    graph: &'t GraphName,
    status: ThreadStatus,
    tenant: Option<&'t str>,
    failure: Option<&'t str>,
    created_ms: i64,
    updated_ms: i64,
    expires_ms: Option<i64>,
    id: &'t ThreadId,
}

/// Implements `From<&T>` for [`Selectors`]. Each type `T` must have the fields of a thread record.
macro_rules! impl_selectors {
    ($($thread:ty),+) => {$(
        impl<'t> From<&'t $thread> for Selectors<'t> {
            fn from(thread: &'t $thread) -> Self {
                Self {
                    app: &thread.app,
                    graph: &thread.graph,
                    status: thread.status,
                    tenant: thread.tenant.as_deref(),
                    failure: thread.failure.as_ref().map(|failure| failure.code.as_str()),
                    created_ms: thread.created_ms,
                    updated_ms: thread.updated_ms,
                    expires_ms: thread.expires_ms,
                    id: &thread.id,
                }
            }
        }
    )+};
}

impl_selectors!(ThreadFields, ThreadRecord, ThreadSummary);

/// Compares threads with a search.
#[derive(Debug)]
struct ThreadMatcher {
    search: ThreadSearch,
    /// The text of the search in lower case.
    text: Option<String>,
}

impl ThreadMatcher {
    /// Creates a matcher for a page, which begins after the position of the search.
    fn of_page(search: &ThreadSearch) -> Self {
        let text = search.text.as_ref().map(|text| text.to_lowercase());
        Self { search: search.clone(), text }
    }

    /// Creates a matcher for counts, which ignore the position of the search.
    fn of_counts(search: &ThreadSearch) -> Self {
        Self::of_page(&ThreadSearch { after: None, ..search.clone() })
    }

    /// Returns whether a thread matches.
    fn matches(&self, thread: &ThreadSummary) -> bool {
        self.selects(&Selectors::from(thread)) && self.has_metadata(thread) && self.has_text(thread)
    }

    /// Returns whether the fields of a thread match.
    fn selects(&self, thread: &Selectors<'_>) -> bool {
        let ThreadSearch { app, graph, status, tenant, failure, unexpired_at_ms, after, .. } =
            &self.search;
        app.as_ref().is_none_or(|app| app == thread.app)
            && graph.as_ref().is_none_or(|graph| graph == thread.graph)
            && status.is_none_or(|status| status == thread.status)
            && tenant.matches(thread.tenant)
            && failure.as_ref().is_none_or(|code| thread.failure == Some(code.as_str()))
            && self.search.created_ms.contains(&thread.created_ms)
            && self.search.updated_ms.contains(&thread.updated_ms)
            && unexpired_at_ms.is_none_or(|at| !thread.status.has_expired(thread.expires_ms, at))
            && after.as_ref().is_none_or(|after| is_after(thread, after))
    }

    fn has_metadata(&self, thread: &ThreadSummary) -> bool {
        contains_all(&thread.metadata, &self.search.metadata)
    }

    fn has_text(&self, thread: &ThreadSummary) -> bool {
        let Some(text) = &self.text else { return true };
        // `contains` takes linear time, also for hostile texts.
        let has = |found: &str| found.to_lowercase().contains(text);
        has(thread.id.as_str())
            || thread.run.as_ref().is_some_and(|run| has(run.as_str()))
            || has(thread.app.as_str())
            || has(thread.graph.as_str())
            || thread.failure.as_ref().is_some_and(|it| has(&it.code) || has(&it.message))
            || thread.metadata.values().any(|value| any_text(value, &has))
    }
}

/// Returns whether metadata contain all wanted values.
pub(crate) fn contains_all(
    metadata: &BTreeMap<String, Value>,
    wanted: &BTreeMap<String, Value>,
) -> bool {
    wanted
        .iter()
        .all(|(name, wanted)| metadata.get(name).is_some_and(|known| json_contains(known, wanted)))
}

/// Returns whether a thread comes after a position.
fn is_after(thread: &Selectors<'_>, position: &ThreadCursor) -> bool {
    let position = ThreadCursor::sort_key(position.updated_ms, &position.thread);
    ThreadCursor::sort_key(thread.updated_ms, thread.id) > position
}

/// Returns whether a condition holds for any string in a value. Names of fields are not compared.
fn any_text(value: &Value, has: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => has(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, has)),
        Value::Object(fields) => fields.values().any(|value| any_text(value, has)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Examines the threads of a search one after another.
pub(crate) trait Examiner {
    /// Examines the next thread, whose record has `bytes` bytes of JSON. Returns false if the
    /// result was complete before this thread, or if the budget is exhausted.
    fn examine(&mut self, thread: ThreadSummary, bytes: u64) -> bool;
}

/// The items that a search has found, and the position up to which it has examined records. Records
/// are examined in the order of the search.
#[derive(Debug)]
pub(crate) struct FoundPage<T, C> {
    page: PageBuilder<T>,
    budget: RemainingBudget,
    /// Position of the record that was examined last.
    last: Option<C>,
    has_more: bool,
}

impl<T, C> FoundPage<T, C> {
    /// Creates an empty page.
    pub(crate) fn new(limit: usize, budget: SearchBudget) -> Self {
        Self {
            page: PageBuilder::new(limit, LIST_BYTES),
            budget: RemainingBudget::new(budget),
            last: None,
            has_more: false,
        }
    }

    /// Returns whether the next record, with `bytes` bytes of JSON, is examined. Otherwise the page
    /// is complete.
    pub(crate) fn admits(&mut self, bytes: u64) -> bool {
        let admits = !self.page.is_full() && self.budget.take(bytes);
        self.has_more |= !admits;
        admits
    }

    /// Ends the examination of an admitted record. `found` is the item of a record that matches,
    /// with its size in memory. Returns false if the page is complete without this record.
    pub(crate) fn examined(&mut self, position: C, found: Option<(T, u64)>) -> bool {
        if let Some((item, bytes)) = found {
            if !self.page.fits(bytes) {
                self.has_more = true;
                return false;
            }
            self.page.push(item, bytes);
        }
        self.last = Some(position);
        true
    }

    /// Returns the items, and the position after which the search continues.
    pub(crate) fn finish(self) -> (Vec<T>, Option<C>) {
        let next = self.last.filter(|_| self.has_more);
        (self.page.into_items(), next)
    }
}

/// The first positions of the records that a search selects, for a store that does not read records
/// in the order of the search. There are as many as the search may examine, and one more, which
/// shows that the search continues.
#[derive(Debug)]
pub(crate) struct FirstPositions<C> {
    /// The greatest position is the last one in the order of the search.
    positions: BinaryHeap<C>,
    /// Maximum number of positions.
    capacity: usize,
}

impl<C: Ord> FirstPositions<C> {
    /// Creates positions for a page of `limit` records; `None` if some of the selected records may
    /// not match.
    pub(crate) fn new(budget: SearchBudget, limit: Option<usize>) -> Self {
        let examined = budget.records.max(1);
        let most = limit.map_or(examined, |limit| examined.min(limit));
        Self { positions: BinaryHeap::new(), capacity: most.saturating_add(1) }
    }

    /// Returns whether a position comes after the last one of the maximum number of positions.
    pub(crate) fn excludes(&self, position: &C) -> bool {
        self.positions.len() == self.capacity
            && self.positions.peek().is_some_and(|last| position > last)
    }

    /// Adds a position, unless it comes after the last one of the maximum number of positions.
    pub(crate) fn push(&mut self, position: C) {
        self.positions.push(position);
        if self.positions.len() > self.capacity {
            self.positions.pop();
        }
    }

    /// Returns the positions in the order of the search.
    pub(crate) fn finish(self) -> Vec<C> {
        self.positions.into_sorted_vec()
    }
}

/// The page of a search of threads that is being read.
#[derive(Debug)]
pub(crate) struct SearchPage {
    matcher: ThreadMatcher,
    found: FoundPage<ThreadSummary, ThreadCursor>,
}

impl SearchPage {
    /// Creates an empty page.
    pub(crate) fn new(search: &ThreadSearch) -> Self {
        let found = FoundPage::new(search.limit, search.budget);
        Self { matcher: ThreadMatcher::of_page(search), found }
    }

    /// Returns whether the fields of a thread match, so that the thread must be examined.
    pub(crate) fn selects<'a>(&self, thread: impl Into<Selectors<'a>>) -> bool {
        let thread = thread.into();
        self.matcher.selects(&thread)
    }

    /// Returns the page.
    pub(crate) fn finish(self) -> ThreadSearchPage {
        let (items, next) = self.found.finish();
        ThreadSearchPage { items, next }
    }
}

impl Examiner for SearchPage {
    fn examine(&mut self, thread: ThreadSummary, bytes: u64) -> bool {
        if !self.found.admits(bytes) {
            return false;
        }
        let position = ThreadCursor::from(&thread);
        let bytes = thread.memory_bytes();
        let found = self.matcher.matches(&thread).then_some((thread, bytes));
        self.found.examined(position, found)
    }
}

/// The counts of a search in progress.
#[derive(Debug)]
pub(crate) struct SearchCounts {
    matcher: ThreadMatcher,
    budget: RemainingBudget,
    counts: ThreadCounts,
}

impl SearchCounts {
    /// Creates counts that are zero.
    pub(crate) fn new(search: &ThreadSearch) -> Self {
        Self {
            matcher: ThreadMatcher::of_counts(search),
            budget: RemainingBudget::new(search.budget),
            counts: ThreadCounts::default(),
        }
    }

    /// Counts a thread if it matches. Returns false if the budget is exhausted.
    ///
    /// `read` returns the summary of the thread and the number of bytes of its record. `read` is
    /// called only if the fields of the thread match and the search also compares texts or
    /// metadata.
    pub(crate) fn count<'a>(
        &mut self,
        thread: impl Into<Selectors<'a>>,
        read: impl FnOnce() -> Result<(ThreadSummary, u64), StoreError>,
    ) -> Result<bool, StoreError> {
        let thread = thread.into();
        if !self.matcher.selects(&thread) {
            return Ok(true);
        }
        if self.matcher.search.reads_contents() {
            let (thread, bytes) = read()?;
            return Ok(self.examine(thread, bytes));
        }
        self.add(thread.status, 1);
        Ok(true)
    }

    /// Returns whether the fields of a thread match.
    pub(crate) fn selects<'a>(&self, thread: impl Into<Selectors<'a>>) -> bool {
        let thread = thread.into();
        self.matcher.selects(&thread)
    }

    /// Counts threads that match.
    pub(crate) fn add(&mut self, status: ThreadStatus, threads: u64) {
        self.counts.add(status, threads);
    }

    /// Returns the counts.
    pub(crate) fn finish(self) -> ThreadCounts {
        self.counts
    }
}

impl Examiner for SearchCounts {
    fn examine(&mut self, thread: ThreadSummary, bytes: u64) -> bool {
        if !self.budget.take(bytes) {
            self.counts.is_complete = false;
            return false;
        }
        if self.matcher.matches(&thread) {
            self.add(thread.status, 1);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_positions_are_as_many_as_a_search_examines_and_one_more() {
        let budget = SearchBudget { records: 2, ..SearchBudget::default() };
        for (limit, first) in
            [(None, vec![1, 2, 3]), (Some(9), vec![1, 2, 3]), (Some(1), vec![1, 2])]
        {
            let mut positions = FirstPositions::new(budget, limit);
            assert!(!positions.excludes(&9));
            for position in [5, 3, 1, 4, 2] {
                positions.push(position);
            }
            assert!(positions.excludes(&4) && !positions.excludes(&1), "{limit:?}");
            assert_eq!(positions.finish(), first, "{limit:?}");
        }
    }
}
