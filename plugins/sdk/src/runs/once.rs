//! Resumes for requests that clients send more than once.

use serde_json::Value;

use crate::failure::{Failure, code};
use crate::log;
use crate::runs::{self, EndedRun, Resume, RunRef, Thread};

/// Maximum attempts. Each attempt may wait for a run of another request, which can fail and leave
/// the thread to this request.
const ATTEMPTS: u32 = 5;

/// The outcome of [`Resume::resume_once`].
#[derive(Debug, Clone, PartialEq)]
pub enum ResumeOutcome<T> {
    /// The thread was not resumed, because the app already had a result for it.
    Done(T),
    /// The resumed run has ended or is interrupted again.
    Ended(EndedRun),
    /// An answer violates the schema of its interrupt, which remains pending.
    Refused(Failure),
    /// The thread is not interrupted, does not exist or has expired.
    NotInterrupted,
    /// Other requests had active runs in all attempts.
    Busy,
}

impl Resume {
    /// Resumes an interrupted thread of a graph and waits until the run has ended or is interrupted
    /// again. Requests that arrive together, such as those of a double click, resume it once.
    ///
    /// `done` returns the result of a thread that needs no answers, such as that of an earlier
    /// request. If a run of another request is active, this request waits for its end and reads the
    /// thread again.
    ///
    /// ```
    /// use wattle_plugin::prelude::*;
    /// use wattle_plugin::runs::{Resume, ResumeOutcome, Thread};
    /// use wattle_plugin::testing::FakeHost;
    ///
    /// let stored = json!({"stored": [11, 12]});
    /// let host = FakeHost::new().thread(Thread::new("thread-1", "review", "idle", stored));
    /// let resume = Resume::thread("thread-1").answer(json!({"ok": true}));
    /// let once = host.run(|| {
    ///     resume.resume_once("review", |thread| thread.channel::<Vec<i64>>("stored"))
    /// })?;
    /// assert_eq!(once, ResumeOutcome::Done(vec![11, 12]));
    /// assert!(host.resumed().is_empty());
    /// # Ok::<_, Failure>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Failures of `done` and of host calls. The failure of a failed run is in
    /// [`ResumeOutcome::Ended`].
    pub fn resume_once<T>(
        self,
        graph: &str,
        mut done: impl FnMut(&Thread) -> Result<Option<T>, Failure>,
    ) -> Result<ResumeOutcome<T>, Failure> {
        for _ in 0..ATTEMPTS {
            let Some(thread) = runs::find(graph, &self.thread_id)? else {
                return Ok(ResumeOutcome::NotInterrupted);
            };
            if let Some(result) = done(&thread)? {
                return Ok(ResumeOutcome::Done(result));
            }
            if let Some(run) = thread.active_run() {
                await_other(&run);
                continue;
            }
            if !thread.is_interrupted() {
                return Ok(ResumeOutcome::NotInterrupted);
            }
            let failure = match self.clone().resume() {
                Ok(run) => return runs::wait(&run).map(ResumeOutcome::Ended),
                Err(failure) => failure,
            };
            match failure.code.as_str() {
                code::BUSY => {
                    if let Some(run) = active_run(thread, &failure) {
                        await_other(&run);
                    }
                }
                // Another request answered the interrupt meanwhile.
                code::CONFLICT => {}
                code::NOT_FOUND | code::EXPIRED => return Ok(ResumeOutcome::NotInterrupted),
                code::INVALID => return Ok(ResumeOutcome::Refused(failure)),
                _ => return Err(failure),
            }
        }
        Ok(ResumeOutcome::Busy)
    }
}

/// Returns the active run, which the failure of a busy thread names.
fn active_run(thread: Thread, failure: &Failure) -> Option<RunRef> {
    let run_id = failure.details.as_ref()?.get("run_id").and_then(Value::as_str)?.to_owned();
    Some(RunRef { thread_id: thread.thread_id, run_id })
}

/// Waits for the run of another request. Its outcome does not matter, not even if the run was
/// rejected and never existed: the thread determines the next step.
fn await_other(run: &RunRef) {
    if let Err(failure) = runs::wait(run) {
        log::debug!("wait for the other run of thread `{}`: {failure}", run.thread_id);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use serde_json::{Value, json};

    use super::{ATTEMPTS, ResumeOutcome};
    use crate::failure::{Failure, code};
    use crate::runs::{EndedRun, Outcome, Resume, RunRef, Thread};
    use crate::testing::FakeHost;

    /// Returns a host with the thread `t`, whose runs complete, and the runs that were awaited.
    fn host(status: &str, state: Value) -> (FakeHost, Rc<RefCell<Vec<String>>>) {
        let mut thread = Thread::new("t", "review", status, state);
        thread.run_id = Some("newest".to_owned());
        let awaited = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&awaited);
        let host = FakeHost::new().thread(thread).run_ends(move |run| {
            seen.borrow_mut().push(run.run_id.clone());
            ended(&run.run_id)
        });
        (host, awaited)
    }

    fn ended(run_id: &str) -> EndedRun {
        let run = RunRef { thread_id: "t".to_owned(), run_id: run_id.to_owned() };
        EndedRun { run, outcome: Outcome::Completed, state: json!({}) }
    }

    fn once(host: &FakeHost, graph: &str) -> Result<ResumeOutcome<u32>, Failure> {
        let resume = Resume::thread("t").answer(7);
        host.run(|| resume.resume_once(graph, |thread| thread.channel::<u32>("stored")))
    }

    #[test]
    fn only_an_interrupted_thread_is_resumed() {
        for (status, stored, graph, expected) in [
            ("interrupted", None, "review", ResumeOutcome::Ended(ended("run-1"))),
            ("interrupted", Some(3), "review", ResumeOutcome::Done(3)),
            ("interrupted", None, "other", ResumeOutcome::NotInterrupted),
            ("idle", Some(3), "review", ResumeOutcome::Done(3)),
            ("idle", None, "review", ResumeOutcome::NotInterrupted),
            ("error", None, "review", ResumeOutcome::NotInterrupted),
            ("running", Some(3), "review", ResumeOutcome::Done(3)),
            ("running", None, "review", ResumeOutcome::Busy),
        ] {
            let is_resumed = matches!(expected, ResumeOutcome::Ended(_));
            let (host, _) = host(status, json!({ "stored": stored }));
            assert_eq!(once(&host, graph), Ok(expected), "{status} {stored:?}");
            let answers: Vec<_> = host.resumed().into_iter().map(|it| it.answers).collect();
            let one = vec![(String::new(), json!(7))];
            assert_eq!(answers, if is_resumed { vec![one] } else { Vec::new() }, "{status}");
        }
        assert_eq!(once(&FakeHost::new(), "review"), Ok(ResumeOutcome::NotInterrupted));
    }

    #[test]
    fn active_run_of_another_request_is_awaited() {
        let busy = || Failure::new(code::BUSY, "busy");
        let named = || busy().with_details(json!({ "run_id": "other" }));
        for (failure, awaited) in [
            (named(), vec!["other", "run-1"]),
            (busy(), vec!["run-1"]),
            (Failure::conflict("answered"), vec!["run-1"]),
        ] {
            let (host, seen) = host("interrupted", json!({}));
            let mut failure = Some(failure);
            let host = host.resumes(move |_| failure.take().map_or(Ok(()), Err));
            assert_eq!(once(&host, "review"), Ok(ResumeOutcome::Ended(ended("run-1"))));
            assert_eq!(*seen.borrow(), awaited);
        }
        let (host, seen) = host("running", json!({}));
        assert_eq!(once(&host, "review"), Ok(ResumeOutcome::Busy));
        assert_eq!(seen.borrow().len(), ATTEMPTS as usize);
        assert!(seen.borrow().iter().all(|run| run == "newest"));
    }

    #[test]
    fn failures_of_resumes_have_outcomes() {
        let failure = |code: &str| Failure::new(code, "why");
        for (code, expected) in [
            (code::BUSY, Ok(ResumeOutcome::Busy)),
            (code::CONFLICT, Ok(ResumeOutcome::Busy)),
            (code::NOT_FOUND, Ok(ResumeOutcome::NotInterrupted)),
            (code::EXPIRED, Ok(ResumeOutcome::NotInterrupted)),
            (code::INVALID, Ok(ResumeOutcome::Refused(failure(code::INVALID)))),
            (code::LIMIT, Err(failure(code::LIMIT))),
        ] {
            let (host, _) = host("interrupted", json!({}));
            let host = host.resumes(move |_| Err(failure(code)));
            assert_eq!(once(&host, "review"), expected, "{code}");
        }
    }

    #[test]
    fn other_run_may_fail_to_be_awaited() {
        let thread = Thread::new("t", "review", "interrupted", json!({}));
        let busy = Failure::new(code::BUSY, "busy").with_details(json!({ "run_id": "other" }));
        let host = FakeHost::new().thread(thread).resumes(move |_| Err(busy.clone()));
        assert_eq!(once(&host, "review"), Ok(ResumeOutcome::Busy));
        assert_eq!(host.logged().len(), ATTEMPTS as usize);
    }
}
