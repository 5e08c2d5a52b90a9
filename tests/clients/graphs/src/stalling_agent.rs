//! A graph that waits until it is cancelled, for clients of running runs.

use wattle_plugin::prelude::{Context, Empty, Failure, JsonSchema, Serialize, node};

use crate::progress;

/// Output of `stall`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Update {
    items: Vec<String>,
}

/// Fails at its first attempt, so that the run is active while it waits for the retry.
#[node]
pub(crate) fn stall(context: &Context, _input: Empty) -> Result<Update, Failure> {
    progress::begins("stall")?;
    if context.attempt < 2 {
        return Err(Failure::unavailable("the first attempt always fails"));
    }
    Ok(Update { items: vec!["stalled".to_owned()] })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, json};
    use wattle_plugin::testing::{self, FakeHost};

    use super::stall;

    #[test]
    fn the_first_attempt_fails_with_a_retryable_failure() {
        let run = |attempt| {
            let context = Context { attempt, ..Context::default() };
            FakeHost::new().run(|| testing::run_node::<stall>(&context, &json!({})))
        };
        assert!(run(1).unwrap_err().retryable);
        assert!(run(2).is_ok());
    }
}
