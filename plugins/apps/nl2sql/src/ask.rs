//! Asking a model for a document, once more if its answer is none. A step that takes a question
//! in has no other step behind it that would learn from a failure: it ends the workflow.

use serde::de::DeserializeOwned;
use wattle_plugin::prelude::{Completion, Failure, llm};

/// Where a failure has the answer that did not fit; other failures have none.
const ANSWER: &str = "answer";

/// The document of an answer, and the answer. The host has a wrong answer corrected once. If the
/// correction is wrong as well, the question is put a second time, without what was said before.
pub(crate) fn document<T: DeserializeOwned>(
    request: &llm::Request,
) -> Result<(T, Completion), Failure> {
    match once(request) {
        Err(failure) if is_misshapen(&failure) => once(request),
        asked => asked,
    }
}

fn once<T: DeserializeOwned>(request: &llm::Request) -> Result<(T, Completion), Failure> {
    let completion = request.clone().complete()?;
    Ok((completion.structured()?, completion))
}

fn is_misshapen(failure: &Failure) -> bool {
    failure.details.as_deref().is_some_and(|details| details.get(ANSWER).is_some())
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Completion, Failure, Value, json, llm};
    use wattle_plugin::testing::FakeHost;

    use super::document;
    use crate::testing::host;

    fn asked(failures: usize, failure: Failure) -> (Result<Value, Failure>, usize) {
        let mut left = failures;
        let host: FakeHost = host().llm(move |_| {
            if left == 0 {
                return Ok(Completion::of_json(json!({"ok": true})));
            }
            left -= 1;
            Err(failure.clone())
        });
        let request = llm::Request::route("intent").user("x");
        let found = host.run(|| document::<Value>(&request).map(|(found, _)| found));
        (found, host.llm_requests().len())
    }

    #[test]
    fn a_misshapen_answer_is_asked_for_twice_and_no_more() {
        let misshapen = Failure::invalid("not in shape").with_details(json!({"answer": "{"}));
        assert_eq!(asked(1, misshapen.clone()), (Ok(json!({"ok": true})), 2));
        let (found, count) = asked(2, misshapen);
        assert_eq!((found.unwrap_err().message.as_str(), count), ("not in shape", 2));
    }

    #[test]
    fn other_failures_are_final() {
        let refused = Failure::invalid("bad request").with_details(json!({"status": 400}));
        for failure in [refused, Failure::unavailable("model down")] {
            assert_eq!(asked(1, failure).1, 1);
        }
    }
}
