//! Implements `runs`: records requests, and gets the outcomes of runs from the script.

use serde_json::Value;

use crate::failure::Failure;
use crate::runs::{EndedRun, PAGE_EVENTS, Resume, RunRef, Start, Thread};
use crate::testing::state::{play, with};

pub(crate) fn start(start: Start) -> Result<RunRef, Failure> {
    let script = with(|state| state.start.clone())?;
    if let Some(script) = script {
        let mut script = script.borrow_mut();
        script(&start)?;
    }
    with(|state| {
        let number = state.notes.started.len() + state.notes.resumed.len() + 1;
        let thread_id = start.thread_id.clone().unwrap_or_else(|| format!("thread-{number}"));
        state.notes.started.push(start);
        RunRef { thread_id, run_id: format!("run-{number}") }
    })
}

pub(crate) fn resume(resume: Resume) -> Result<RunRef, Failure> {
    let script = with(|state| state.resume.clone())?;
    if let Some(script) = script {
        let mut script = script.borrow_mut();
        script(&resume)?;
    }
    with(|state| {
        let number = state.notes.started.len() + state.notes.resumed.len() + 1;
        let thread_id = resume.thread_id.clone();
        state.notes.resumed.push(resume);
        RunRef { thread_id, run_id: format!("run-{number}") }
    })
}

pub(crate) fn wait(run: &RunRef) -> Result<EndedRun, Failure> {
    play(|state| state.run_ends.clone(), run, "FakeHost::run_ends")
}

pub(crate) fn cancel(run: &RunRef) -> Result<(), Failure> {
    with(|state| state.notes.cancelled.push(run.clone()))
}

pub(crate) fn thread(thread_id: &str) -> Result<Option<Thread>, Failure> {
    with(|state| state.threads.get(thread_id).cloned())
}

pub(crate) fn delete_thread(thread_id: &str) -> Result<(), Failure> {
    with(|state| {
        state.threads.remove(thread_id);
    })
}

pub(crate) fn events(thread_id: &str, after: u64, limit: u32) -> Result<Vec<Value>, Failure> {
    with(|state| {
        let mut own = state.events.iter().filter(|(thread, _)| thread == thread_id).peekable();
        if own.peek().is_none() && !state.threads.contains_key(thread_id) {
            return Err(Failure::not_found(format!("there is no thread `{thread_id}`")));
        }
        let limit = limit.min(PAGE_EVENTS) as usize;
        Ok(own.map(|(_, event)| event.clone()).skip(after as usize).take(limit).collect())
    })?
}
