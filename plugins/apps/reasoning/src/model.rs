//! Calls of the model, for a decision or a summary.
//!
//! The instructions of a call are a file of the folder `prompts`, which the module that makes the
//! call includes. They are constant. Data that differs from call to call is in the facts, a JSON
//! document in the user message, so text of a user or of a service never becomes an instruction.
//!
//! The host performs retries, fallbacks and the repair of an invalid completion. A failure that
//! arrives here is final, so the node is not retried and the user gets the failure immediately.

use serde::de::DeserializeOwned;
use wattle_plugin::prelude::{Failure, JsonSchema, Value, json, llm};

use crate::ROUTE;

/// Failure code of a failed model call.
pub(crate) const LLM: &str = "llm";

/// Text that clients expect in the message of a failed decision.
const DECISION_FAILED: &str = "llm decision failed (task)";

/// Text that clients expect in the message of a failed summary.
const SUMMARY_FAILED: &str = "llm summary failed";

/// Requests a decision of the type `T` from the model. `facts` is the document in the user message.
/// `name` names the schema and thereby the decision.
pub(crate) fn decide<T>(name: &str, instructions: &str, facts: &Value) -> Result<T, Failure>
where
    T: DeserializeOwned + JsonSchema,
{
    ask(name, instructions, facts, &format!("{DECISION_FAILED}: {name}"))
}

/// Attempt of the model at a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// An invalid choice is corrected.
    First,
    /// An invalid choice is not corrected.
    Last,
}

/// Requests a choice among things that the facts list. `settle` converts the decision of the model.
/// If it returns an error, the model decides once more, with the error as the fact `correction`.
/// Returns `None` if the second choice is invalid as well, so that the user has to choose. `settle`
/// gets the attempt, because some errors are acceptable in the second one.
pub(crate) fn choose<T, C>(
    name: &str,
    instructions: &str,
    facts: &Value,
    settle: impl Fn(T, Attempt) -> Result<C, String>,
) -> Result<Option<C>, Failure>
where
    T: DeserializeOwned + JsonSchema,
{
    let wrong = match settle(decide(name, instructions, facts)?, Attempt::First) {
        Ok(choice) => return Ok(Some(choice)),
        Err(wrong) => wrong,
    };
    let mut corrected = facts.clone();
    corrected["correction"] = json!(wrong);
    Ok(settle(decide(name, instructions, &corrected)?, Attempt::Last).ok())
}

/// Requests a summary of the type `T` from the model, like [`decide`].
pub(crate) fn summarize<T>(name: &str, instructions: &str, facts: &Value) -> Result<T, Failure>
where
    T: DeserializeOwned + JsonSchema,
{
    ask(name, instructions, facts, SUMMARY_FAILED)
}

/// Requests a document of the type `T`. The message of a failure begins with `failed`.
fn ask<T>(name: &str, instructions: &str, facts: &Value, failed: &str) -> Result<T, Failure>
where
    T: DeserializeOwned + JsonSchema,
{
    let completion = llm::Request::route(ROUTE)
        .system(instructions.trim_end())
        .user(facts.to_string())
        .schema::<T>(name)
        .temperature(0.0)
        .complete();
    completion.and_then(|completion| completion.structured()).map_err(|cause| {
        let message = format!("{failed}: {}", cause.message);
        let details = json!({ "reason": message, "cause": cause.code });
        Failure::new(LLM, message).with_details(details)
    })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Completion, Deserialize, Failure, JsonSchema, json};
    use wattle_plugin::testing::FakeHost;

    use super::{choose, decide, summarize};

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Answer {
        code: String,
    }

    /// Returns the choice of a model with these decisions, the number of its requests, and the text
    /// of the last one.
    fn chosen(answers: &'static [&'static str]) -> (Option<String>, usize, String) {
        let mut answers = answers.iter();
        let next = move |_: &_| {
            Ok(Completion::of_json(json!({ "code": answers.next().copied().unwrap_or("") })))
        };
        let host = FakeHost::new().llm(next);
        let settle = |answer: Answer, _| match answer.code.as_str() {
            "order" => Ok(answer.code),
            other => Err(format!("`{other}` is not there")),
        };
        let found = host.run(|| choose("reasoning_anchor", "", &json!({}), settle)).unwrap();
        let requests = host.llm_requests();
        (found, requests.len(), requests.last().unwrap().text())
    }

    #[test]
    fn s1_40_invalid_choice_is_corrected_once() {
        assert_eq!(chosen(&["order"]).1, 1);
        let (found, asked, facts) = chosen(&["ship", "order"]);
        assert_eq!((found.as_deref(), asked), (Some("order"), 2));
        assert!(facts.contains(r#"{"correction":"`ship` is not there"}"#), "{facts}");
        let (found, asked, _) = chosen(&["ship", "boat", "order"]);
        assert_eq!((found, asked), (None, 2));
    }

    #[test]
    fn failures_have_the_expected_message_and_are_not_retryable() {
        let host = FakeHost::new().llm(|_| Err(Failure::unavailable("model down")));
        let failure = host.run(|| decide::<Answer>("reasoning_plan", "", &json!({}))).unwrap_err();
        assert_eq!(failure.message, "llm decision failed (task): reasoning_plan: model down");
        assert_eq!((failure.code.as_str(), failure.retryable), ("llm", false));
        let failure = host.run(|| summarize::<Answer>("s", "", &json!({}))).unwrap_err();
        assert_eq!(failure.message, "llm summary failed: model down");
    }
}
