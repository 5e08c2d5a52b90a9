//! Nodes with effects that must not happen without a grant, and must not happen twice.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, Value, http, interrupt, json, llm, node,
};

/// Input of `ungranted_http`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Address {
    /// The URL of the GET request.
    pub(crate) url: String,
}

/// Output of `ungranted_http`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Status {
    /// The HTTP status of the response.
    pub(crate) status: u16,
}

/// Sends a GET request to `url`, which the manifest does not request.
#[node]
pub(crate) fn ungranted_http(_context: &Context, input: Address) -> Result<Status, Failure> {
    let response = http::Request::get(input.url).send()?;
    Ok(Status { status: response.status })
}

/// Input of `two_questions`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Targets {
    /// The URL of the GET request.
    pub(crate) url: String,
    /// The route of the model.
    pub(crate) route: String,
}

/// Output of `two_questions`.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "named after the channels they update")]
pub(crate) struct Answers {
    /// The HTTP status of the request before the first interrupt.
    pub(crate) status: u16,
    /// The completion of the model call between the interrupts.
    pub(crate) text: String,
    /// The answers to both interrupts.
    pub(crate) answers: Vec<Value>,
}

/// Sends a GET request to `url`, raises an interrupt with `{"question": 1}`, calls the model of
/// `route`, and raises an interrupt with `{"question": 2, "text": ...}`.
#[node]
pub(crate) fn two_questions(_context: &Context, input: Targets) -> Result<Answers, Failure> {
    let status = http::Request::get(input.url).send()?.status;
    let first = interrupt::ask(json!({ "question": 1 }))?;
    let text = llm::Request::route(input.route).user(format!("answer: {first}")).complete()?.text();
    let second = interrupt::ask(json!({ "question": 2, "text": text }))?;
    Ok(Answers { status, text, answers: vec![first, second] })
}

/// Input of `call_then_wait`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Errand {
    /// The route of the model.
    pub(crate) route: String,
    /// The user message to the model; `go` if it is absent.
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// The URL of the GET request, whose response is held back.
    pub(crate) url: String,
}

/// Output of `call_then_wait`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Errands {
    /// The text of the completion.
    pub(crate) text: String,
    /// The body of the response.
    pub(crate) body: String,
}

/// Calls the model of `route`, then sends a GET request to `url`. If the host dies while the
/// request waits, the model call must not be repeated.
#[node]
pub(crate) fn call_then_wait(_context: &Context, input: Errand) -> Result<Errands, Failure> {
    let words = input.text.unwrap_or_else(|| "go".to_owned());
    let text = llm::Request::route(input.route).user(words).complete()?.text();
    let body = http::Request::get(input.url).send()?.text();
    Ok(Errands { text, body })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, json, llm};
    use wattle_plugin::testing::{self, FakeHost};
    use wattle_plugin::{Failure, http};

    use super::{call_then_wait, two_questions};

    fn host() -> FakeHost {
        FakeHost::new()
            .llm(|request| Ok(llm::Completion::of_text(request.text())))
            .http(|_| Ok(http::Response::new(200, "there")))
    }

    #[test]
    fn two_questions_has_effects_around_its_interrupts() -> Result<(), Failure> {
        let host = host().answer("a").answer("b");
        let input = json!({"url": "http://a", "route": "chat"});
        let decision =
            host.run(|| testing::run_node::<two_questions>(&Context::default(), &input))?;
        assert_eq!(decision.update("answers"), Some(&json!(["a", "b"])));
        assert_eq!(host.questions()[1].payload["text"], "answer: \"a\"");
        Ok(())
    }

    #[test]
    fn without_an_answer_the_model_is_not_called() {
        let host = host();
        let input = json!({"url": "http://a", "route": "chat"});
        let ended = host.run(|| testing::run_node::<two_questions>(&Context::default(), &input));
        assert!(ended.is_err());
        assert_eq!((host.http_requests().len(), host.llm_requests().len()), (1, 0));
    }

    #[test]
    fn call_then_wait_writes_both_results() -> Result<(), Failure> {
        let input = json!({"url": "http://a", "route": "chat"});
        let decision =
            host().run(|| testing::run_node::<call_then_wait>(&Context::default(), &input))?;
        assert_eq!(decision.update("text"), Some(&json!("go")));
        assert_eq!(decision.update("body"), Some(&json!("there")));
        Ok(())
    }
}
