//! Runs the step of a node, with its record and the log of a failure that ends the workflow.

use wattle_plugin::prelude::{Context, Failure, Serialize, log};

use crate::owner::Owner;
use crate::running_step::Step;
use crate::store::workflow_log;

/// The outcome of a step.
pub(crate) enum Done<O> {
    /// The step succeeded.
    Success(O),
    /// The step failed, but the workflow continues with a substitute output.
    Degraded(O, String),
}

/// Runs a step, and records its input and output.
pub(crate) fn run<I: Serialize, O: Serialize>(
    context: &Context,
    name: &'static str,
    input: &I,
    work: impl FnOnce(&Step<'_>) -> Result<Done<O>, Failure>,
) -> Result<O, Failure> {
    let step = Step { name, context, owner: Owner::of_run(context)? };
    match work(&step) {
        Ok(Done::Success(output)) => {
            step.record(input, Some(&output), None)?;
            Ok(output)
        }
        Ok(Done::Degraded(output, error)) => {
            step.record(input, Some(&output), Some(&error))?;
            Ok(output)
        }
        Err(failure) => {
            step.record(input, None::<&O>, Some(&failure.message))?;
            // The failure of the step is returned even if the log cannot be written.
            if let Err(unlogged) = workflow_log::write_failure(&step, &failure) {
                log::warn!("cannot log the failure of {name}: {}", unlogged.message);
            }
            Err(failure)
        }
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, Failure, json};
    use wattle_plugin::sql::Value;

    use super::{Done, run};
    use crate::testing::host;

    #[test]
    fn every_step_is_recorded() {
        let host = host();
        let context = Context { thread_id: "s".to_owned(), ..Context::default() };
        let output = host.run(|| {
            run(&context, "task_parse", &json!({"a": 1}), |_| Ok(Done::Success(json!({"b": 2}))))
        });
        assert_eq!(output, Ok(json!({"b": 2})));
        assert_eq!(
            host.emitted(),
            [(
                "node_io".to_owned(),
                json!({
                    "session_id": "s", "admin_id": 1, "step_name": "task_parse",
                    "status": "success", "error_message": null,
                    "timestamp": "2025-01-15T10:30:45+08:00",
                    "input": {"a": 1}, "output": {"b": 2},
                })
            )]
        );
    }

    #[test]
    fn failure_is_recorded_and_logged() {
        let host = host();
        let failed = host.run(|| {
            run(&Context::default(), "task_parse", &json!({}), |_| {
                Err::<Done<()>, _>(Failure::invalid("broken"))
            })
        });
        assert!(failed.is_err());
        let (_, record) = &host.emitted()[0];
        assert_eq!((&record["status"], &record["output"]), (&json!("failed"), &json!(null)));
        assert_eq!(record["error_message"], "broken");
        assert!(host.statements()[0].text.contains("workflow_log"));
    }

    #[test]
    fn logged_failure_has_no_secrets() {
        let host = host();
        let refused = Failure::unavailable("Incorrect API key: sk-abc123456");
        let failed = host.run(|| {
            run(&Context::default(), "task_parse", &json!({}), |_| Err::<Done<()>, _>(refused))
        });
        assert!(failed.is_err());
        let message = Value::Text("Incorrect API key: [redacted]".to_owned());
        assert_eq!(host.statements()[0].parameters[9], message);
    }

    #[test]
    fn large_input_becomes_a_blob() {
        let host = host();
        let input = json!({"rows": "x".repeat(30_000)});
        let output = host.run(|| run(&Context::default(), "x", &input, |_| Ok(Done::Success(1))));
        assert_eq!(output, Ok(1));
        let (_, record) = &host.emitted()[0];
        assert!(record["input"]["$blob"].as_str().unwrap().starts_with("blob:"), "{record}");
    }
}
