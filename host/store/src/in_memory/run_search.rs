//! Searches and counts of the runs of all threads in memory.

use wattle_run::ports::store::{
    RunCounts, RunCursor, RunRecord, RunSearch, RunSearchPage, RunSummary, StoreError, ThreadRecord,
};

use crate::in_memory::state::State;
use crate::run_search::{
    ExaminedRun, RunExaminer, RunMatcher, RunPage, RunSearchCounts, RunThread, ThreadMetadata,
};

impl State {
    /// See [`Store::search_runs`](wattle_run::ports::Store::search_runs).
    pub(super) fn search_runs(&self, search: &RunSearch) -> Result<RunSearchPage, StoreError> {
        let mut page = RunPage::new(search);
        self.examine_runs(&RunMatcher::of_page(search), &mut page)?;
        Ok(page.finish())
    }

    /// See [`Store::count_runs`](wattle_run::ports::Store::count_runs).
    pub(super) fn count_runs(&self, search: &RunSearch) -> Result<RunCounts, StoreError> {
        let matcher = RunMatcher::of_counts(search);
        let mut counts = RunSearchCounts::new(search);
        if search.reads_contents() {
            self.examine_runs(&matcher, &mut counts)?;
        } else {
            self.selected_runs(&matcher).for_each(|(_, run, _)| counts.add(run.status));
        }
        Ok(counts.finish())
    }

    /// Examines the runs whose fields match, in the order of a search, until the examiner needs no
    /// further runs.
    fn examine_runs(
        &self,
        matcher: &RunMatcher,
        examiner: &mut impl RunExaminer,
    ) -> Result<(), StoreError> {
        let mut selected: Vec<_> = self.selected_runs(matcher).collect();
        selected.sort_unstable_by(|(one, ..), (other, ..)| one.cmp(other));
        for (position, run, thread) in selected {
            let run = RunSummary::from(run);
            let bytes = run.memory_bytes();
            let examined = ExaminedRun { position, run, thread: RunThread::from(thread), bytes };
            if !examiner.examine(examined, || Ok(ThreadMetadata::from(thread)))? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the runs whose fields match, with their positions and threads.
    fn selected_runs(
        &self,
        matcher: &RunMatcher,
    ) -> impl Iterator<Item = (RunCursor, &RunRecord, &ThreadRecord)> {
        self.runs.values().filter_map(move |run| {
            let thread = &self.threads.get(&run.thread)?.head.record;
            let position = RunCursor { position: run.created_ms(), run: run.id.clone() };
            let is_selected = matcher.continues_at(&position)
                && matcher.selects(run)
                && matcher.selects_thread(thread);
            is_selected.then_some((position, run, thread))
        })
    }
}
