//! Steps of a session: calls of the tools that the table of steps may have.

pub(crate) use wattle_plugin::chat::{Step, StepStatus};
use wattle_plugin::prelude::log;
use wattle_plugin::redact;
use wattle_plugin::runs::Event;

use crate::channel::AGENT;
use crate::tool;

/// Returns the steps of a run, in order. A call of an unknown tool is not a step. Errors have no
/// secrets, which services repeat in their messages.
pub(crate) fn steps(events: &[Event]) -> Vec<Step> {
    let mut steps = AGENT.steps(events);
    steps.retain(|step| match check_name(&step.tool) {
        Ok(()) => true,
        Err(why) => {
            // A model can request a tool that does not exist.
            if !step.is_refused {
                log::error!("a step is not kept: {why}");
            }
            false
        }
    });
    for error in steps.iter_mut().filter_map(|step| step.error.as_mut()) {
        *error = redact::text(error);
    }
    steps
}

/// Checks that a name is that of a tool, as `session_steps.tool_name` may have it.
///
/// # Errors
///
/// Returns a message for the developer who has added a tool.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if tool::NAMES.contains(&name) {
        return Ok(());
    }
    Err(format!(
        "Expected SessionToolName, found `{name}`; known are {}. A new tool is added to \
         `tool::NAMES`; the column is `session_steps.tool_name` of the migration `0001_tables.sql`",
        tool::NAMES.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;
    use wattle_plugin::testing::FakeHost;

    use super::{Step, check_name, steps};
    use crate::session::testing::{Log, bad, good};

    fn asked(tool: &str) -> Log {
        let mut log = Log::of_run("r");
        log.answers("", &[("c", tool, json!({}))]);
        log.calls(tool, 0);
        log
    }

    fn of(log: &Log) -> Vec<Step> {
        steps(&log.run().events)
    }

    #[test]
    fn s3_50_each_tool_call_is_a_step_with_a_status() {
        let mut logs = [(); 4].map(|()| asked("search_image"));
        logs[1].returns("search_image", 0, good(json!({}), json!([])));
        logs[2].returns("search_image", 0, bad("no picture"));
        logs[3].ends("cancelled");
        let names = logs.map(|log| of(&log).remove(0).status.name());
        assert_eq!(names, ["RUNNING", "SUCCESS", "ERROR", "CANCELLED"]);
    }

    #[test]
    fn errors_of_steps_have_no_secrets() {
        let mut log = asked("search_image");
        log.returns("search_image", 0, bad("Client-ID sk-abc123456 is not valid"));
        assert_eq!(of(&log)[0].error.as_deref(), Some("Client-ID [redacted] is not valid"));
    }

    #[test]
    fn s3_70_an_unknown_tool_is_no_step_and_is_logged() {
        let why = check_name("fly").unwrap_err();
        assert!(
            why.starts_with("Expected SessionToolName") && why.contains("0001_tables.sql"),
            "{why}"
        );
        let log = asked("fly");
        let host = FakeHost::new();
        assert!(host.run(|| of(&log)).is_empty());
        assert!(host.logged()[0].message.contains("Expected SessionToolName"));
    }
}
