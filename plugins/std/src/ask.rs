//! The completion of one turn. An empty or broken completion is requested again.
//!
//! Models and the services in front of them sometimes return empty completions, or completions
//! whose tool calls have incomplete arguments. The second request describes the defect to the
//! model. The description is in the system message at the beginning, because not every provider
//! accepts a system message at the end. The conversation does not keep a broken completion, because
//! the model would take it as an example.

use serde_json::{Map, Value};
use wattle_plugin::llm::{Completion, FinishReason, Request};
use wattle_plugin::message::{Part, ToolCall};
use wattle_plugin::prelude::{Failure, code, json, log};

use crate::config::AgentConfig;

/// Maximum number of requests in one turn. A model that repeats a described defect would most
/// likely repeat it a third time, and each request costs as much as a turn.
const MAX_REQUESTS: usize = 2;

/// Failure code after empty completions.
const NO_ANSWER: &str = "no-answer";

/// Failure code after a completion that the provider withheld.
const WITHHELD: &str = "withheld";

/// Instruction for a model without tools.
const WORDS: &str = "Answer in words.";

/// The defect of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    /// Neither text nor tool calls.
    Empty,
    /// Neither text nor tool calls, because the token limit was reached.
    OutOfTokens,
    /// Neither text nor tool calls, because the provider withheld the completion.
    Withheld,
    /// The arguments of all tool calls are not valid JSON.
    Unreadable,
    /// No tool calls, because the provider could not parse the call at the end. Text before the call
    /// only announces the call.
    Misread,
    /// Text and no tool calls, although the finish reason says that a call or more output follows.
    /// The text may be a complete reply: some services name such a reason behind each completion.
    Unfinished,
    /// No tool calls, because the provider did not expect the call at the end. Text before the call
    /// may be a complete reply.
    Unexpected,
}

/// Requests the completion of one turn. `request` creates the request, with an optional note for
/// the model. The completion may contain calls whose arguments are not valid JSON. [`crate::batch`]
/// rejects such calls without calling the tool.
///
/// # Errors
///
/// The failure of the model call; `no-answer`, `limit` or `withheld` for a completion with neither
/// text nor tool calls; `no-answer` for a completion whose call the provider could not parse. If
/// the provider did not expect or did not send the call, and the second completion is no better,
/// the text before the call is the result instead.
pub(crate) fn ask(
    config: &AgentConfig,
    request: impl Fn(Option<&str>) -> Request,
) -> Result<Completion, Failure> {
    let (mut note, mut words): (Option<String>, _) = (None, None);
    let mut requests = 0;
    loop {
        let request = request(note.as_deref());
        let offers_tools = !request.tools.is_empty();
        let completion = without_cut_call(request.complete()?, &config.route);
        requests += 1;
        let Some(flaw) = Flaw::of(&completion) else {
            log_filter(&completion, &config.route);
            return Ok(completion);
        };
        log_missing_call(flaw, &config.route);
        let failure = flaw.failure(config, &completion);
        note = flaw.note(offers_tools).filter(|_| requests < MAX_REQUESTS);
        if note.is_none() {
            return match (failure, words) {
                (None, _) => Ok(completion),
                (Some(_), Some(words)) => Ok(words),
                (Some(failure), None) => Err(failure),
            };
        }
        if matches!(flaw, Flaw::Unexpected | Flaw::Unfinished) && failure.is_none() {
            words = Some(completion);
        }
    }
}

/// Logs that a content filter cut or emptied a completion, or that the model refused. The host does
/// not distinguish these cases.
fn log_filter(completion: &Completion, route: &str) {
    if completion.finish_reason == FinishReason::ContentFilter {
        log::warn!(
            "a completion of route `{route}`, or its rest, was withheld by the provider or \
             refused by the model"
        );
    }
}

/// Logs that the provider dropped a call. Without this message, the dropped call may leave no
/// trace.
fn log_missing_call(flaw: Flaw, route: &str) {
    let ending = match flaw {
        Flaw::Unexpected => "with a call that its provider did not expect",
        Flaw::Unfinished => {
            "with text, although its finish reason says that a call or text follows"
        }
        _ => return,
    };
    log::warn!("a completion of route `{route}` ended {ending}");
}

/// Marks a call that the token limit cut off. Some providers return `{}` as its arguments, which a
/// tool without required arguments would accept.
fn without_cut_call(mut completion: Completion, route: &str) -> Completion {
    if completion.finish_reason != FinishReason::Length {
        return completion;
    }
    if let Some(Part::ToolCall(call)) = completion.parts.last_mut() {
        if call.arguments == Value::Object(Map::new()) {
            call.arguments = Value::String(String::new());
        }
        if is_unreadable(call) {
            log::warn!(
                "the token limit of route `{route}` cut off a call of the tool `{}`; raise \
                 `max_output_tokens` under `with` of the node or of the route",
                call.name
            );
        }
    }
    completion
}

/// Returns true if the arguments of a call are not valid JSON. The host passes such arguments as a
/// string.
fn is_unreadable(call: &ToolCall) -> bool {
    call.arguments.is_string()
}

/// Returns true if a completion without tool calls has text, and its finish reason says that a call
/// or more output follows the text.
fn only_announces_call(completion: &Completion) -> bool {
    let reason = &completion.finish_reason;
    let goes_on = *reason == FinishReason::ToolCalls || reason.is_paused();
    goes_on && completion.is_answer()
}

impl Flaw {
    fn of(completion: &Completion) -> Option<Self> {
        if completion.tool_calls().next().is_some() {
            // A call that the token limit cut off is not broken: another request would be cut off
            // as well. The call gets an error result, which tells the model about the limit.
            let is_broken = completion.finish_reason != FinishReason::Length
                && completion.tool_calls().all(is_unreadable);
            return is_broken.then_some(Self::Unreadable);
        }
        if completion.finish_reason.is_misread_call() {
            return Some(Self::Misread);
        }
        if only_announces_call(completion) {
            return Some(Self::Unfinished);
        }
        if completion.finish_reason.is_unexpected_call() {
            return Some(Self::Unexpected);
        }
        if completion.is_answer() {
            return None;
        }
        Some(match completion.finish_reason {
            FinishReason::Length => Self::OutOfTokens,
            FinishReason::ContentFilter => Self::Withheld,
            _ => Self::Empty,
        })
    }

    /// Returns the note for the next request. Returns `None` if another request would not help. The
    /// note does not ask a model without tools to call one.
    fn note(self, offers_tools: bool) -> Option<String> {
        let (flaw, wanted) = match self {
            Self::Empty => ("was empty", "Call a tool, or answer in words."),
            Self::Unreadable => (
                "called a tool with arguments that were no complete JSON object",
                "Make the call again with complete arguments.",
            ),
            Self::Misread => (
                "ended with a tool call that could not be read",
                "Make the call again, or answer in words.",
            ),
            Self::Unfinished => (
                "ended before the tool call or the text that it announced",
                "Make the call, or answer in words.",
            ),
            Self::Unexpected => (
                "ended with a tool call that was not expected",
                "Call no other tools than those that you have, or answer in words.",
            ),
            Self::OutOfTokens | Self::Withheld => return None,
        };
        let wanted = if offers_tools { wanted } else { WORDS };
        Some(format!("Your last answer in this conversation {flaw}. {wanted}"))
    }

    /// Returns the failure of the turn. Returns `None` if the completion is usable: each of its
    /// calls gets a result, or its text is the reply.
    fn failure(self, config: &AgentConfig, completion: &Completion) -> Option<Failure> {
        let (route, reason) = (&config.route, &completion.finish_reason);
        match self {
            Self::Unexpected | Self::Unfinished if completion.is_answer() => None,
            Self::Empty | Self::Unexpected | Self::Unfinished => {
                Some(no_answer(route, "neither text nor tool calls", reason))
            }
            Self::Misread => Some(no_answer(route, "a tool call that could not be parsed", reason)),
            Self::OutOfTokens => {
                let message = format!(
                    "the model of route `{route}` reached its token limit before any text or \
                     tool call; raise `max_output_tokens` under `with` of the node or of the route"
                );
                let tokens = config.max_output_tokens;
                let limit = json!({"limit": "max_output_tokens", "value": tokens});
                Some(Failure::new(code::LIMIT, message).with_details(limit))
            }
            Self::Withheld => {
                let message = format!(
                    "the provider of route `{route}` withheld the completion; rephrase the request"
                );
                let reason = json!({"finish_reason": "content-filter"});
                Some(Failure::new(WITHHELD, message).with_details(reason))
            }
            Self::Unreadable => None,
        }
    }
}

/// Returns the failure of a turn whose last completion had the defect `what`.
fn no_answer(route: &str, what: &str, reason: &FinishReason) -> Failure {
    let (mut why, mut details) = (String::new(), json!({"requests": MAX_REQUESTS}));
    if let FinishReason::Other(reason) = reason {
        why = format!(", and ended with `{reason}`");
        details["finish_reason"] = json!(reason);
    }
    let message = format!(
        "the model of route `{route}` returned no usable completion in {MAX_REQUESTS} requests: \
         {what}{why}; rephrase the request, or configure another model for the route"
    );
    Failure::new(NO_ANSWER, message).with_details(details)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use wattle_plugin::llm::{Completion, FinishReason};
    use wattle_plugin::message::{Part, Role};
    use wattle_plugin::node::Decision;
    use wattle_plugin::prelude::{Context, Failure, Message, Value, json};
    use wattle_plugin::testing::{self, FakeHost};

    use crate::agent::agent;
    use crate::testing::{host, two_calls};

    /// Runs a turn in which the model returns the given completions, one for each request.
    fn turn(answers: Vec<Completion>, config: Value) -> (FakeHost, Result<Decision, Failure>) {
        let answers = RefCell::new(answers.into_iter());
        let host =
            host().llm(move |_| Ok(answers.borrow_mut().next().expect("no completion is left")));
        let context = Context::default().with_config(config);
        let state = json!({"messages": [{"role": "user", "content": "hi"}]});
        let ended = host.run(|| testing::run_node::<agent>(&context, &state));
        (host, ended)
    }

    fn chat() -> Value {
        json!({"route": "chat", "system": "be kind"})
    }

    fn unreadable(arguments: &str) -> Completion {
        Completion::of_tool_call("c1", "save", json!(arguments))
    }

    fn cut_off(completion: Completion) -> Completion {
        Completion { finish_reason: FinishReason::Length, ..completion }
    }

    fn systems(messages: &[Message]) -> Vec<String> {
        let system = messages.iter().filter(|message| message.role == Role::System);
        system.map(Message::text).collect()
    }

    #[test]
    fn empty_completion_is_requested_again() {
        for empty in [
            Completion::default(),
            Completion::of_text(" \n"),
            Completion { parts: vec![Part::Reasoning("hm".to_owned())], ..Completion::default() },
        ] {
            let (host, ended) = turn(vec![empty, Completion::of_text("hello")], chat());
            let written = ended.unwrap().update("messages").unwrap().clone();
            assert_eq!(written, json!([{"role": "assistant", "content": "hello"}]));
            let requests = host.llm_requests();
            assert_eq!(systems(&requests[0].messages), ["be kind"]);
            let told = systems(&requests[1].messages);
            assert!(told.len() == 1 && told[0].starts_with("be kind\n\n"), "{told:?}");
            assert!(told[0].contains("empty"), "{told:?}");
            assert_eq!(requests[1].tools.len(), 2, "the tools are still offered");
        }
    }

    #[test]
    fn second_empty_completion_fails_the_turn() {
        let (host, ended) = turn(vec![Completion::default(), Completion::of_text("")], chat());
        let failure = ended.unwrap_err();
        assert_eq!((&*failure.code, failure.retryable), ("no-answer", false));
        assert!(failure.message.contains("`chat`"), "{failure}");
        assert_eq!(host.llm_requests().len(), 2);
        let malformed = FinishReason::Other("MALFORMED_FUNCTION_CALL".to_owned());
        let malformed = Completion { finish_reason: malformed, ..Completion::default() };
        let (_, ended) = turn(vec![malformed.clone(), malformed], chat());
        let failure = ended.unwrap_err();
        assert!(failure.message.contains("`MALFORMED_FUNCTION_CALL`"), "{failure}");
    }

    /// Returns a completion with text after which the provider dropped a call, and with a finish
    /// reason.
    fn dropped(words: &str, reason: &str) -> Completion {
        let finish_reason = FinishReason::Other(reason.to_owned());
        Completion { finish_reason, ..Completion::of_text(words) }
    }

    #[test]
    fn misread_call_is_requested_again() {
        for reason in ["MALFORMED_FUNCTION_CALL", "function_call_filter: malformed_function_call"] {
            let announced = dropped("Let me save it.", reason);
            let (host, ended) = turn(vec![announced.clone(), two_calls()], chat());
            assert_eq!(ended.unwrap().sends.len(), 2);
            let noted = systems(&host.llm_requests()[1].messages);
            assert!(noted[0].contains("could not be read. Make the call again"), "{noted:?}");
            let (_, ended) = turn(vec![announced.clone(), announced], chat());
            let failure = ended.unwrap_err();
            assert_eq!(&*failure.code, "no-answer");
            assert!(failure.message.contains(&format!("`{reason}`")), "{failure}");
        }
    }

    /// The check of a model route decides these cases in the same way.
    #[test]
    fn text_is_the_answer_as_for_the_check_of_a_route() {
        let cases: Vec<(String, FinishReason, bool)> =
            serde_json::from_str(include_str!("../answers.json")).unwrap();
        for (text, finish_reason, is_answer) in cases {
            let completion = Completion { finish_reason, ..Completion::of_text(text.as_str()) };
            let (_, ended) = turn(vec![completion.clone(), completion.clone()], chat());
            let answer = ended.ok().map(|it| it.update("messages").unwrap()[0]["content"].clone());
            let expected = is_answer.then(|| json!(text));
            assert_eq!(answer, expected, "{:?}", completion.finish_reason);
        }
    }

    #[test]
    fn text_that_only_announces_a_call_is_requested_once_more() {
        let paused = FinishReason::Other("pause_turn".to_owned());
        for finish_reason in [FinishReason::ToolCalls, paused] {
            let announced = Completion { finish_reason, ..Completion::of_text("Let me look.") };
            let (host, ended) = turn(vec![announced.clone(), two_calls()], chat());
            assert_eq!(ended.unwrap().sends.len(), 2);
            let noted = systems(&host.llm_requests()[1].messages);
            assert!(noted[0].contains("ended before the tool call or the text"), "{noted:?}");
            let (_, ended) = turn(vec![announced.clone(), announced.clone()], chat());
            assert_eq!(ended.unwrap().update("messages").unwrap()[0]["content"], "Let me look.");
            assert!(host.logged()[0].message.contains("follows"), "{:?}", host.logged());
            let (_, ended) = turn(vec![announced, Completion::default()], chat());
            assert_eq!(ended.unwrap().update("messages").unwrap()[0]["content"], "Let me look.");
        }
    }

    #[test]
    fn text_before_an_unexpected_call_is_used_if_the_second_completion_is_no_better() {
        let unexpected = |words| dropped(words, "UNEXPECTED_TOOL_CALL");
        let without_tools = json!({"route": "chat", "tools": []});
        for (second, content) in [
            (unexpected("It is 4."), "It is 4."),
            (unexpected(""), "It is 3."),
            (Completion::default(), "It is 3."),
            (Completion::of_text("It is 5."), "It is 5."),
        ] {
            let (host, ended) = turn(vec![unexpected("It is 3."), second], without_tools.clone());
            assert_eq!(ended.unwrap().update("messages").unwrap()[0]["content"], content);
            let noted = systems(&host.llm_requests()[1].messages);
            assert!(noted[0].ends_with("was not expected. Answer in words."), "{noted:?}");
            assert!(host.logged()[0].message.contains("did not expect"), "{:?}", host.logged());
        }
        let (_, ended) = turn(vec![unexpected(""), unexpected(" ")], chat());
        let failure = ended.unwrap_err();
        assert_eq!(&*failure.code, "no-answer");
        assert!(failure.message.contains("`UNEXPECTED_TOOL_CALL`"), "{failure}");
    }

    #[test]
    fn filtered_text_is_used_and_logged() {
        let finish_reason = FinishReason::ContentFilter;
        let left = Completion { finish_reason, ..Completion::of_text("so far") };
        let (host, ended) = turn(vec![left], chat());
        assert_eq!(ended.unwrap().update("messages").unwrap()[0]["content"], "so far");
        assert!(host.logged()[0].message.contains("withheld"), "{:?}", host.logged());
    }

    #[test]
    fn token_limit_and_filter_fail_without_a_second_request() {
        let filtered = FinishReason::ContentFilter;
        for (empty, code) in [
            (cut_off(Completion::of_text(" ")), "limit"),
            (Completion { finish_reason: filtered, ..Completion::default() }, "withheld"),
        ] {
            let (host, ended) = turn(vec![empty], chat());
            assert_eq!((ended.unwrap_err().code, host.llm_requests().len()), (code.to_owned(), 1));
        }
    }

    #[test]
    fn text_at_the_token_limit_is_used() {
        let (_, ended) = turn(vec![cut_off(Completion::of_text("so far"))], chat());
        assert_eq!(ended.unwrap().update("messages").unwrap()[0]["content"], "so far");
    }

    #[test]
    fn invalid_arguments_are_requested_again() {
        let (host, ended) = turn(vec![unreadable("{\"a\":"), two_calls()], chat());
        let decision = ended.unwrap();
        assert_eq!(decision.sends.len(), 2);
        let written = decision.update("messages").unwrap();
        assert_eq!(written.as_array().map(Vec::len), Some(1), "the broken turn is not kept");
        let told = systems(&host.llm_requests()[1].messages);
        assert!(told[0].contains("JSON"), "{told:?}");
    }

    #[test]
    fn call_with_invalid_arguments_is_refused() {
        for answers in [
            vec![unreadable("{\"a\":"), unreadable("{\"a\":")],
            vec![cut_off(unreadable("{\"a\":"))],
            vec![cut_off(Completion::of_tool_call("c1", "save", json!({})))],
        ] {
            let (host, ended) = turn(answers, chat());
            let sent = ended.unwrap().sends.remove(0);
            let context = Context::default();
            let called =
                host.run(|| testing::run_node::<crate::tools::tools>(&context, &sent.input));
            let answer = called.unwrap().update("messages").unwrap()[0].clone();
            assert_eq!(answer["status"], "error", "{answer}");
            assert!(answer["content"].as_str().unwrap().contains("`save`"), "{answer}");
            assert!(host.tool_calls().is_empty());
        }
    }

    #[test]
    fn valid_calls_are_made_next_to_an_invalid_one() {
        let mut both = Completion::of_tool_call("c0", "parse", json!({"a": 1}));
        both.parts.extend(unreadable("{\"a").parts);
        let (host, ended) = turn(vec![both], json!({"route": "chat", "parallel": false}));
        let sent = ended.unwrap().sends.remove(0);
        let context = Context::default();
        let called = host.run(|| testing::run_node::<crate::tools::tools>(&context, &sent.input));
        let called = called.unwrap();
        let answers = called.update("messages").unwrap();
        assert_eq!(
            (&answers[0]["status"], &answers[1]["status"]),
            (&json!("success"), &json!("error"))
        );
        assert_eq!(host.tool_calls().len(), 1);
    }

    #[test]
    fn complete_call_at_the_token_limit_is_made() {
        let whole = Completion::of_tool_call("c1", "save", json!({"a": 1}));
        let (_, ended) = turn(vec![cut_off(whole)], chat());
        let sent = &ended.unwrap().sends[0].input["std.calls"]["calls"][0];
        assert_eq!(sent["arguments"], json!({"a": 1}));
    }
}
