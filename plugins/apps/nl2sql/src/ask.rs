//! Requests to the models: [`request`] begins one for a role, and [`document`] sends one and
//! repeats it once if the completion violates its schema.
//!
//! No later step could correct a failure of the steps that use [`document`], so such a failure ends
//! the workflow.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use wattle_plugin::prelude::{Completion, Failure, llm};

use crate::setting;

/// Temperature of all requests. It is low, so that completions vary little.
const TEMPERATURE: f64 = 0.1;

/// Creates a request for a role: `intent`, `parse`, `sql` or `summary`. A model that the caller
/// names takes precedence over the route of the role.
pub(crate) fn request(role: &str, model_name: &str) -> Result<llm::Request, Failure> {
    let is_default = model_name == setting::default_model()?;
    let models = if is_default { BTreeMap::new() } else { setting::models()? };
    let route = models.get(model_name).map_or(role, String::as_str);
    Ok(llm::Request::route(route).temperature(TEMPERATURE))
}

/// Returns the document of a completion, and the completion. The host requests one correction of an
/// invalid completion. If the correction is invalid too, the request is sent a second time, without
/// the rejected completion.
pub(crate) fn document<T: DeserializeOwned>(
    request: &llm::Request,
) -> Result<(T, Completion), Failure> {
    match once(request) {
        Err(failure) if failure.refused_completion().is_some() => once(request),
        asked => asked,
    }
}

fn once<T: DeserializeOwned>(request: &llm::Request) -> Result<(T, Completion), Failure> {
    let completion = request.clone().complete()?;
    Ok((completion.structured()?, completion))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Completion, Failure, Value, json, llm};
    use wattle_plugin::testing::FakeHost;

    use super::{document, request};
    use crate::testing::host;

    #[test]
    fn named_model_takes_precedence_over_the_role() {
        let host = host().setting("models", json!({"deepseek-chat": "deepseek"}));
        host.run(|| {
            assert_eq!(request("intent", "qwen-plus").unwrap().route, "intent");
            assert_eq!(request("intent", "deepseek-chat").unwrap().route, "deepseek");
            assert_eq!(request("intent", "unknown").unwrap().route, "intent");
        });
    }

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
    fn invalid_completion_is_requested_at_most_twice() {
        let misshapen = Failure::invalid("not in shape").with_details(json!({"answer": "{"}));
        assert_eq!(asked(1, misshapen.clone()), (Ok(json!({"ok": true})), 2));
        let (found, count) = asked(2, misshapen);
        assert_eq!((found.unwrap_err().message.as_str(), count), ("not in shape", 2));
    }

    #[test]
    fn other_failures_are_not_retried() {
        let refused = Failure::invalid("bad request").with_details(json!({"status": 400}));
        for failure in [refused, Failure::unavailable("model down")] {
            assert_eq!(asked(1, failure).1, 1);
        }
    }
}
