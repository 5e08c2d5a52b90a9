//! Calls of the model: a decision as a document, or a summary in words.
//!
//! Retries, fallback models and the one repair of a wrong answer are the host's. What fails here
//! has failed for good, so no node is tried again for it: the user gets the failure at once.

use serde::de::DeserializeOwned;
use wattle_plugin::prelude::{Completion, Failure, JsonSchema, Value, json, llm};

use crate::ROUTE;

/// Code of the failure of a model that cannot be used.
pub(crate) const LLM: &str = "llm";

/// What clients look for in the message of a decision that failed.
const DECISION_FAILED: &str = "llm decision failed (task)";

/// What clients look for in the message of a summary that failed.
const SUMMARY_FAILED: &str = "llm summary failed";

/// Lets the model decide: instructions, the facts as a document, the answer as a type. `name`
/// names the schema, and with it what is decided.
pub(crate) fn decide<T>(name: &str, instructions: &str, facts: &Value) -> Result<T, Failure>
where
    T: DeserializeOwned + JsonSchema,
{
    let answer = ask::<T>(name, instructions, facts).and_then(|answer| answer.structured());
    answer.map_err(|failure| unavailable(&format!("{DECISION_FAILED}: {name}"), &failure))
}

/// Which answer of a model it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// It can still be corrected.
    First,
    /// It cannot.
    Last,
}

/// Lets the model decide among things that the facts list. `settle` reads the answer; for one that
/// names something else it says what is wrong, and the model is asked once more, with that as the
/// fact `correction`. Nothing if the second answer is wrong too: then only the user can tell.
/// `settle` learns whether it is the second, since some mistakes can be lived with.
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

/// Lets the model sum up.
pub(crate) fn summarize<T>(name: &str, instructions: &str, facts: &Value) -> Result<T, Failure>
where
    T: DeserializeOwned + JsonSchema,
{
    let answer = ask::<T>(name, instructions, facts).and_then(|answer| answer.structured());
    answer.map_err(|failure| unavailable(SUMMARY_FAILED, &failure))
}

fn ask<T: JsonSchema>(
    name: &str,
    instructions: &str,
    facts: &Value,
) -> Result<Completion, Failure> {
    llm::Request::route(ROUTE)
        .system(instructions.trim_end())
        .user(facts.to_string())
        .schema::<T>(name)
        .temperature(0.0)
        .complete()
}

fn unavailable(what: &str, cause: &Failure) -> Failure {
    let message = format!("{what}: {}", cause.message);
    let details = json!({ "reason": message, "cause": cause.code });
    Failure::new(LLM, message).with_details(details)
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

    /// What is chosen by a model that gives these answers, and how often it was asked.
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
    fn s1_40_a_wrong_choice_is_corrected_once() {
        assert_eq!(chosen(&["order"]).1, 1);
        let (found, asked, facts) = chosen(&["ship", "order"]);
        assert_eq!((found.as_deref(), asked), (Some("order"), 2));
        assert!(facts.contains(r#"{"correction":"`ship` is not there"}"#), "{facts}");
        let (found, asked, _) = chosen(&["ship", "boat", "order"]);
        assert_eq!((found, asked), (None, 2));
    }

    #[test]
    fn failures_say_what_clients_look_for_and_are_final() {
        let host = FakeHost::new().llm(|_| Err(Failure::unavailable("model down")));
        let failure = host.run(|| decide::<Answer>("reasoning_plan", "", &json!({}))).unwrap_err();
        assert_eq!(failure.message, "llm decision failed (task): reasoning_plan: model down");
        assert_eq!((failure.code.as_str(), failure.retryable), ("llm", false));
        let failure = host.run(|| summarize::<Answer>("s", "", &json!({}))).unwrap_err();
        assert_eq!(failure.message, "llm summary failed: model down");
    }
}
