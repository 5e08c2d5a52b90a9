//! A graph that stands still until it is cancelled, for what clients do with runs at work.

use wattle_plugin::prelude::{Context, Empty, Failure, JsonSchema, Serialize, node};

use crate::progress;

/// What would be written at an end.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Update {
    items: Vec<String>,
}

/// Fails at its first attempt, so that it is at work for as long as the graph waits for the next.
#[node]
pub(crate) fn stall(context: &Context, _input: Empty) -> Result<Update, Failure> {
    progress::begins("stall")?;
    if context.attempt < 2 {
        return Err(Failure::unavailable("there is nothing to do yet"));
    }
    Ok(Update { items: vec!["stalled".to_owned()] })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, json};
    use wattle_plugin::testing::{self, FakeHost};

    use super::stall;

    #[test]
    fn the_first_attempt_asks_for_another() {
        let run = |attempt| {
            let context = Context { attempt, ..Context::default() };
            FakeHost::new().run(|| testing::run_node::<stall>(&context, &json!({})))
        };
        assert!(run(1).unwrap_err().retryable);
        assert!(run(2).is_ok());
    }
}
