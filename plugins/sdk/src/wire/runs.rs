//! Calls of `runs`.

use serde_json::Value;

use crate::bindings::imports::wattle::plugin::runs as raw;
use crate::failure::Failure;
use crate::runs::{
    EndedRun, Interrupt, OnFailure, Outcome, Resume, RunRef, Start, Thread, ThreadPage,
    ThreadSearch, ThreadSummary,
};
use crate::wire::convert::{extra, raw_extra, result, text, value};

pub(crate) fn start(start: Start) -> Result<RunRef, Failure> {
    result(raw::start(&raw::StartRequest {
        graph: start.graph,
        input: start.input.to_string(),
        thread_id: start.thread_id,
        context: text(start.context),
        metadata: text(start.metadata),
        extra: raw_extra(start.extra),
    }))
}

pub(crate) fn resume(resume: Resume) -> Result<RunRef, Failure> {
    let on_failure = match resume.on_failure {
        OnFailure::Keep => raw::OnFailure::Keep,
        OnFailure::Reopen => raw::OnFailure::Reopen,
        OnFailure::Other(name) => raw::OnFailure::Other(name),
    };
    let answers = resume.answers.into_iter().map(|(id, answer)| (id, answer.to_string()));
    result(raw::resume(&raw::ResumeRequest {
        thread_id: resume.thread_id,
        answers: answers.collect(),
        on_failure,
        extra: raw_extra(resume.extra),
    }))
}

pub(crate) fn wait(run: &RunRef) -> Result<EndedRun, Failure> {
    result(raw::wait(&raw_run(run)))
}

pub(crate) fn cancel(run: &RunRef) -> Result<(), Failure> {
    Ok(raw::cancel(&raw_run(run))?)
}

pub(crate) fn thread(thread_id: &str) -> Result<Option<Thread>, Failure> {
    Ok(raw::thread(thread_id)?.map(Into::into))
}

pub(crate) fn delete_thread(thread_id: &str) -> Result<(), Failure> {
    Ok(raw::delete_thread(thread_id)?)
}

pub(crate) fn threads(search: ThreadSearch) -> Result<ThreadPage, Failure> {
    result(raw::threads(&raw::ThreadSearch {
        graph: search.graph,
        text: search.text,
        metadata: text(search.metadata),
        after: search.after,
        limit: search.limit,
        extra: raw_extra(search.extra),
    }))
}

pub(crate) fn update_thread(thread_id: &str, metadata: Value) -> Result<(), Failure> {
    Ok(raw::update_thread(thread_id, &metadata.to_string(), &[])?)
}

pub(crate) fn events(thread_id: &str, after: u64, limit: u32) -> Result<Vec<Value>, Failure> {
    let events = raw::events(thread_id, after, limit)?;
    Ok(events.iter().map(|event| value(event)).collect())
}

fn raw_run(run: &RunRef) -> raw::RunRef {
    raw::RunRef { thread_id: run.thread_id.clone(), run_id: run.run_id.clone() }
}

impl From<raw::RunRef> for RunRef {
    fn from(run: raw::RunRef) -> Self {
        Self { thread_id: run.thread_id, run_id: run.run_id }
    }
}

impl From<raw::EndedRun> for EndedRun {
    fn from(ended: raw::EndedRun) -> Self {
        Self { run: ended.run.into(), outcome: ended.outcome.into(), state: value(&ended.state) }
    }
}

impl From<raw::RunResult> for Outcome {
    fn from(result: raw::RunResult) -> Self {
        match result {
            raw::RunResult::Completed => Self::Completed,
            raw::RunResult::Interrupted(questions) => {
                Self::Interrupted(questions.into_iter().map(Into::into).collect())
            }
            raw::RunResult::Failed(failure) => Self::Failed(failure.into()),
            raw::RunResult::Cancelled => Self::Cancelled,
            raw::RunResult::Other(name) => Self::Other(name),
        }
    }
}

impl From<raw::InterruptInfo> for Interrupt {
    fn from(info: raw::InterruptInfo) -> Self {
        Self {
            id: info.id,
            node: info.node,
            payload: value(&info.payload),
            response_schema: info.response_schema.as_deref().map(value),
            asked_ms: info.asked_ms,
            expires_ms: info.expires_ms,
        }
    }
}

impl From<raw::ThreadPage> for ThreadPage {
    fn from(page: raw::ThreadPage) -> Self {
        Self { threads: page.threads.into_iter().map(Into::into).collect(), next: page.next }
    }
}

impl From<raw::ThreadSummary> for ThreadSummary {
    fn from(thread: raw::ThreadSummary) -> Self {
        Self {
            thread_id: thread.thread_id,
            graph: thread.graph,
            status: thread.status,
            run_id: thread.run_id,
            created_ms: thread.created_ms,
            updated_ms: thread.updated_ms,
            metadata: value(&thread.metadata),
            extra: extra(thread.extra),
        }
    }
}

impl From<raw::ThreadInfo> for Thread {
    fn from(info: raw::ThreadInfo) -> Self {
        Self {
            thread_id: info.thread_id,
            graph: info.graph,
            status: info.status,
            state: value(&info.state),
            interrupts: info.interrupts.into_iter().map(Into::into).collect(),
            run_id: info.run_id,
            created_ms: info.created_ms,
            updated_ms: info.updated_ms,
            metadata: value(&info.metadata),
            extra: extra(info.extra),
        }
    }
}
