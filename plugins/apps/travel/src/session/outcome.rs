//! The status of a session after the events of a run.
//!
//! A failed tool does not fail the session if the model continued without it. The session fails if
//! a failure remains when the run ends.

use wattle_plugin::prelude::Failure;
use wattle_plugin::redact;
use wattle_plugin::runs::{RunEnded, RunLog};

use crate::session::step::{Step, StepStatus};
use crate::session::{Session, Status};
use crate::tool::{GENERATE_HANDBOOK_HTML, GENERATE_IMAGE, RESOLVE_SPOT_COORDINATES, SEARCH_IMAGE};

/// The tools that prepare images, either of which is sufficient.
const IMAGE_TOOLS: [&str; 2] = [SEARCH_IMAGE, GENERATE_IMAGE];

/// The tool whose failure does not fail a guide.
const OPTIONAL_TOOL: &str = RESOLVE_SPOT_COORDINATES;

/// The steps and the end of a run, which determine the status of its session.
#[derive(Debug, Clone)]
pub(crate) struct RunView {
    pub(crate) run: String,
    /// Sequence number of its first event.
    pub(crate) first: u64,
    pub(crate) started_ms: i64,
    pub(crate) steps: Vec<Step>,
    /// Sequence number, time and content of the event that ended it.
    pub(crate) ended: Option<(u64, i64, RunEnded)>,
}

impl RunView {
    /// Creates the view of a run; `None` for a run without events.
    pub(crate) fn of(run: &RunLog, steps: Vec<Step>) -> Option<Self> {
        let first = run.events.first()?;
        let ended = run.ended().map(|(event, ended)| (event.seq, event.at_ms, ended.clone()));
        let (seq, started_ms) = (first.seq, first.at_ms);
        Some(Self { run: run.id.clone(), first: seq, started_ms, steps, ended })
    }

    /// Applies the events of the run after `cursor` to the session.
    pub(crate) fn apply(&self, session: &mut Session, cursor: u64) {
        if self.first > cursor {
            session.begin(&self.run, self.started_ms);
        }
        session.current_step = self
            .steps
            .iter()
            .rfind(|step| step.status == StepStatus::Running)
            .map(|step| step.tool.clone());
        if let Some(failed) = self.steps.iter().rfind(|step| step.status == StepStatus::Error) {
            session.fail(failed);
        }
        if let Some((seq, at_ms, ended)) = &self.ended
            && *seq > cursor
        {
            self.end(session, *seq, *at_ms, ended);
        }
    }

    fn end(&self, session: &mut Session, seq: u64, at_ms: i64, ended: &RunEnded) {
        session.current_step = None;
        (session.failed_step, session.last_error) = (None, None);
        match ended.status.as_str() {
            "completed" => match self.left_failed() {
                None => session.complete(at_ms),
                Some(step) => {
                    session.status = Status::Error;
                    session.fail(step);
                }
            },
            "cancelled" => {
                session.status = Status::Cancelled;
                session.cancelled_ms = Some(at_ms);
                if let Some(step) = self.left_failed() {
                    session.fail(step);
                }
            }
            _ => {
                session.status = Status::Error;
                // The step that the failure of the run cut off, and not one that failed by itself.
                let cut = self.steps.iter().rfind(|step| step.ended_seq == Some(seq));
                session.failed_step = cut.map(|step| step.tool.clone());
                session.last_error = Some(message(ended.failure.as_ref()));
            }
        }
    }

    /// Returns the last failed step that was not resolved, neither by a later success of the same
    /// kind nor by a page.
    fn left_failed(&self) -> Option<&Step> {
        let is_made =
            |step: &Step| step.tool == GENERATE_HANDBOOK_HTML && step.status == StepStatus::Success;
        if self.steps.iter().any(is_made) {
            return None;
        }
        let mut failed = self.steps.iter().enumerate().filter(|(index, step)| {
            let mut later = self.steps[index + 1..].iter();
            step.status == StepStatus::Error
                && step.tool != OPTIONAL_TOOL
                && !later.any(|it| it.status == StepStatus::Success && does(it, step))
        });
        failed.next_back().map(|(_, step)| step)
    }
}

/// Returns true if two steps have the same purpose in a guide.
fn does(one: &Step, other: &Step) -> bool {
    let is_image = |step: &Step| IMAGE_TOOLS.contains(&step.tool.as_str());
    one.tool == other.tool || (is_image(one) && is_image(other))
}

/// Returns the error message of a run, without the secrets that services repeat in it.
fn message(failure: Option<&Failure>) -> String {
    let message = failure.map(|failure| failure.message.as_str());
    redact::text(message.unwrap_or("the run ended without a result"))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Failure, code};
    use wattle_plugin::runs::RunEnded;

    use super::RunView;
    use crate::session::step::{Step, StepStatus};
    use crate::session::{Session, Status};

    fn step(tool: &str, status: StepStatus) -> Step {
        let error = (status == StepStatus::Error).then(|| format!("{tool} is broken"));
        Step {
            id: "t:0".to_owned(),
            tool: tool.to_owned(),
            call_id: None,
            status,
            is_refused: false,
            input: None,
            output: None,
            error,
            duration_ms: None,
            seq: 12,
            started_ms: 1,
            ended_seq: None,
            ended_ms: None,
            writes: Vec::new(),
        }
    }

    fn view(steps: &[(&str, StepStatus)], ended: Option<&str>) -> RunView {
        let end = |status: &str| {
            let failure =
                (status == "failed").then(|| Failure::new(code::UNAVAILABLE, "no model answered"));
            (20, 2_000, RunEnded { status: status.to_owned(), failure })
        };
        RunView {
            run: "run-1".to_owned(),
            first: 11,
            started_ms: 1_000,
            steps: steps.iter().map(|(tool, status)| step(tool, *status)).collect(),
            ended: ended.map(end),
        }
    }

    fn after(steps: &[(&str, StepStatus)], ended: Option<&str>) -> Session {
        let mut session = Session { status: Status::Running, ..Session::default() };
        view(steps, ended).apply(&mut session, 10);
        session
    }

    #[test]
    fn s3_72_resolved_failures_are_no_error() {
        use StepStatus::{Error, Success};
        for steps in [
            &[][..],
            &[("parse_youtube_input", Success)],
            &[("search_image", Error), ("generate_image", Success)],
            &[("crawl_youtube_videos", Error), ("crawl_youtube_videos", Success)],
            &[("resolve_spot_coordinates", Error)],
            &[("search_image", Error), ("generate_handbook_html", Success)],
        ] {
            let session = after(steps, Some("completed"));
            assert_eq!(session.status, Status::Completed, "{steps:?}");
            assert_eq!((session.failed_step, session.last_error), (None, None));
            assert_eq!(session.completed_ms, Some(2_000));
        }
    }

    #[test]
    fn s3_67_remaining_failures_are_an_error() {
        use StepStatus::{Error, Success};
        for (steps, failed) in [
            (&[("crawl_youtube_videos", Error)][..], "crawl_youtube_videos"),
            (&[("build_travel_blocks", Success), ("search_image", Error)], "search_image"),
            (&[("search_image", Success), ("search_image", Error)], "search_image"),
            (
                &[("build_travel_blocks", Error), ("resolve_spot_coordinates", Error)],
                "build_travel_blocks",
            ),
        ] {
            let session = after(steps, Some("completed"));
            assert_eq!(session.status, Status::Error, "{steps:?}");
            assert_eq!(session.failed_step.as_deref(), Some(failed));
            assert_eq!(session.last_error, Some(format!("{failed} is broken")));
            assert_eq!(session.completed_ms, None);
        }
    }

    #[test]
    fn s3_67_a_failure_is_shown_while_the_run_continues() {
        let steps =
            [("crawl_youtube_videos", StepStatus::Error), ("search_image", StepStatus::Running)];
        let session = after(&steps, None);
        assert_eq!(session.status, Status::Running);
        assert_eq!(session.current_step.as_deref(), Some("search_image"));
        assert_eq!(session.failed_step.as_deref(), Some("crawl_youtube_videos"));
    }

    #[test]
    fn cancelled_and_failed_runs_set_the_status() {
        let session = after(&[("search_image", StepStatus::Cancelled)], Some("cancelled"));
        assert_eq!((session.status, session.cancelled_ms), (Status::Cancelled, Some(2_000)));
        assert_eq!(session.current_step, None);
        let session = after(&[], Some("failed"));
        assert_eq!(session.status, Status::Error);
        assert_eq!(session.last_error.as_deref(), Some("no model answered"));
    }

    #[test]
    fn error_of_a_failed_run_has_no_secrets() {
        let mut failed = view(&[], Some("failed"));
        if let Some((_, _, ended)) = &mut failed.ended {
            ended.failure = Some(Failure::unavailable("Incorrect API key: sk-abc123456"));
        }
        let mut session = Session { status: Status::Running, ..Session::default() };
        failed.apply(&mut session, 10);
        assert_eq!(session.last_error.as_deref(), Some("Incorrect API key: [redacted]"));
    }

    #[test]
    fn s3_67_the_failed_step_is_the_one_of_the_error() {
        use StepStatus::{Error, Success};
        let earlier = [("crawl_youtube_videos", Error), ("crawl_youtube_videos", Success)];
        for steps in [&earlier[..], &earlier[..1]] {
            let session = after(steps, Some("failed"));
            let told = (session.failed_step, session.last_error.as_deref());
            assert_eq!(told, (None, Some("no model answered")), "{steps:?}");
        }
        let mut cut = view(&[earlier[0], ("search_image", Error)], Some("failed"));
        cut.steps[1].ended_seq = Some(20);
        let mut session = Session { status: Status::Running, ..Session::default() };
        cut.apply(&mut session, 10);
        assert_eq!(session.failed_step.as_deref(), Some("search_image"));
    }

    #[test]
    fn s3_65_failures_that_were_resolved_before_a_stop_are_not_shown() {
        use StepStatus::{Cancelled, Error, Success};
        let mut steps = vec![("search_image", Error), ("generate_image", Success)];
        steps.push(("generate_handbook_html", Cancelled));
        let session = after(&steps, Some("cancelled"));
        assert_eq!((session.failed_step, session.last_error), (None, None));
        let session = after(&steps[..1], Some("cancelled"));
        assert_eq!(session.failed_step.as_deref(), Some("search_image"));
        assert_eq!(session.last_error.as_deref(), Some("search_image is broken"));
    }

    #[test]
    fn s3_73_a_later_run_clears_failures() {
        let mut session = Session {
            status: Status::Error,
            failed_step: Some("search_image".to_owned()),
            last_error: Some("no".to_owned()),
            started_ms: Some(5),
            cancelled_ms: Some(6),
            ..Session::default()
        };
        view(&[], None).apply(&mut session, 10);
        assert_eq!(session.status, Status::Running);
        assert_eq!((&session.failed_step, &session.last_error), (&None, &None));
        assert_eq!(session.started_ms, Some(5), "only the first time");
        assert_eq!(session.cancelled_ms, None);
        assert_eq!(session.run_id.as_deref(), Some("run-1"));
    }

    #[test]
    fn events_before_the_cursor_are_not_applied_again() {
        let mut session = Session { status: Status::Idle, ..Session::default() };
        view(&[], Some("completed")).apply(&mut session, 20);
        assert_eq!(session.status, Status::Idle);
    }
}
