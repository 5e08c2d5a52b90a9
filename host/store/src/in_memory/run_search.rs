//! Searches of the runs of all threads in memory.

use wattle_run::ports::store::{
    RunCursor, RunRecord, RunSearch, RunSearchPage, RunSummary, ThreadRecord,
};

use crate::in_memory::state::State;
use crate::run_search::{RunPage, RunThread};

impl State {
    /// See [`Store::search_runs`](wattle_run::ports::Store::search_runs).
    pub(super) fn search_runs(&self, search: &RunSearch) -> RunSearchPage {
        let mut page = RunPage::new(search);
        let selected = self.runs.values().filter_map(|run| self.selected(run, &page));
        let mut selected: Vec<(RunCursor, &RunRecord, &ThreadRecord)> = selected.collect();
        selected.sort_unstable_by(|(one, ..), (other, ..)| one.cmp(other));
        for (position, run, thread) in selected {
            let run = RunSummary::from(run);
            let bytes = run.memory_bytes();
            if !page.examine(position, run, RunThread::from(thread), bytes) {
                break;
            }
        }
        page.finish()
    }

    /// Returns the position of a run, and the run with its thread, if their fields match a page.
    fn selected<'s>(
        &'s self,
        run: &'s RunRecord,
        page: &RunPage,
    ) -> Option<(RunCursor, &'s RunRecord, &'s ThreadRecord)> {
        let thread = &self.threads.get(&run.thread)?.head.record;
        let position = RunCursor { position: run.created_ms(), run: run.id.clone() };
        let is_selected =
            page.continues_at(&position) && page.selects(run) && page.selects_thread(thread);
        is_selected.then_some((position, run, thread))
    }
}
