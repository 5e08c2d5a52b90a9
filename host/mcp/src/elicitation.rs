//! Converts questions and answers between the types of the engine and of the protocol.

use std::collections::BTreeMap;

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequiredResult,
};
use serde_json::{Value, json};
use wattle_graph::elicitation::{Elicitation, ElicitedQuestion};
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::tool_server::ElicitationRound;

use crate::sanitizer::strip_control_chars;

/// Method of an elicitation.
pub(crate) const ELICITATION_METHOD: &str = "elicitation/create";

/// Name of the only question of an elicitation through a session. The protocol gives this question
/// no name.
const SINGLE_QUESTION: &str = "question";

/// Parts of the failure for a request of an unknown kind: what the tool wants, and advice.
const UNKNOWN_REQUEST: (&str, &str) =
    ("something that this host does not know", "ask its authors for an alternative");

/// Returns the elicitation for a question that a server sent through a session.
pub(crate) fn single_question(question: ElicitedQuestion, held: Option<String>) -> Elicitation {
    Elicitation {
        questions: BTreeMap::from([(SINGLE_QUESTION.to_owned(), question)]),
        state: None,
        held,
    }
}

/// Searches the rounds of an earlier execution of the call, from round `from` on, for the same
/// question. Returns the answer, and the number of the next round.
pub(crate) fn held_answer(
    rounds: &[ElicitationRound],
    from: usize,
    question: &ElicitedQuestion,
) -> Option<(usize, ElicitResult)> {
    let is_same = |round: &ElicitationRound| {
        round.elicitation.held.is_some() && round.elicitation.questions.values().eq([question])
    };
    let mut later = rounds.iter().enumerate().skip(from);
    let (number, round) = later.find(|(_, round)| is_same(round))?;
    let answer = round.answers.values().next()?;
    Some((number + 1, elicitation_result(answer)))
}

/// Searches the rounds of an earlier execution of the call, from round `from` on, for the same
/// questions. The names of the questions may differ. Returns the answers as results of the
/// stateless protocol, and the number of the next round.
pub(crate) fn stateless_answers(
    rounds: &[ElicitationRound],
    from: usize,
    elicitation: &Elicitation,
) -> Option<(usize, BTreeMap<String, Value>)> {
    let answers = |round: &ElicitationRound| {
        if round.elicitation.questions.len() != elicitation.questions.len() {
            return None;
        }
        let answers = elicitation.questions.iter().map(|(name, question)| {
            let answer = answer_to(round, name, question)?;
            Some((name.clone(), json!(elicitation_result(answer))))
        });
        answers.collect::<Option<BTreeMap<String, Value>>>()
    };
    let mut later = rounds.iter().enumerate().skip(from);
    later.find_map(|(number, round)| Some((number + 1, answers(round)?)))
}

/// Returns the answer to a question in a round. Finds the question by its name, or else by its
/// content.
fn answer_to<'r>(
    round: &'r ElicitationRound,
    name: &str,
    question: &ElicitedQuestion,
) -> Option<&'r Value> {
    let known = &round.elicitation.questions;
    if known.get(name) == Some(question) {
        return round.answers.get(name);
    }
    let (own, _) = known.iter().find(|(_, it)| *it == question)?;
    round.answers.get(own)
}

/// Converts an elicitation by form; returns `None` for an elicitation by URL.
pub(crate) fn form_question(asked: &ElicitRequestParams) -> Option<ElicitedQuestion> {
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = asked else {
        return None;
    };
    let mut schema = serde_json::to_value(requested_schema).unwrap_or_else(|_| json!({}));
    // The form becomes a subschema of the answer's schema, and only the root of a schema may have
    // `$schema`.
    if let Value::Object(fields) = &mut schema {
        fields.remove("$schema");
    }
    clean_schema(&mut schema);
    Some(ElicitedQuestion { message: strip_control_chars(message), schema })
}

/// Removes control characters from all texts of a schema.
fn clean_schema(schema: &mut Value) {
    match schema {
        Value::String(text) => *text = strip_control_chars(text),
        Value::Array(items) => items.iter_mut().for_each(clean_schema),
        Value::Object(fields) => fields.values_mut().for_each(clean_schema),
        _ => {}
    }
}

/// The input that a call of the stateless protocol requests before it continues.
pub(crate) enum RequestedInput {
    /// Answers to these questions.
    Answers(Elicitation),
    /// Another call with this `requestState`.
    Repeat(String),
}

/// Converts the input request of a call of the stateless protocol.
///
/// # Errors
///
/// Returns `unsupported` for anything but elicitations by form.
pub(crate) fn requested_input(
    server: &str,
    tool: &str,
    asked: InputRequiredResult,
) -> Result<RequestedInput, Failure> {
    let mut questions = BTreeMap::new();
    for (name, request) in asked.input_requests.unwrap_or_default() {
        let refused = match &request {
            InputRequest::Elicitation(request) => match form_question(&request.params) {
                Some(question) => {
                    questions.insert(name, question);
                    continue;
                }
                None => ("a person to visit a URL", "let it ask with a form"),
            },
            InputRequest::CreateMessage(_) => {
                ("a completion of a model", "let it call a model of its own")
            }
            InputRequest::ListRoots(_) => {
                ("the roots of its client", "name folders in its configuration")
            }
            _ => UNKNOWN_REQUEST,
        };
        return Err(unsupported(server, tool, "mcp.input-required", refused));
    }
    match asked.request_state {
        Some(state) if questions.is_empty() => Ok(RequestedInput::Repeat(state)),
        None if questions.is_empty() => {
            let refused = ("unspecified input", "report this to its authors");
            Err(unsupported(server, tool, "mcp.input-required", refused))
        }
        state => Ok(RequestedInput::Answers(Elicitation { questions, state, held: None })),
    }
}

/// Returns the failure of a call whose request the host cannot parse.
pub(crate) fn unknown_input(server: &str, tool: &str) -> Failure {
    unsupported(server, tool, "mcp.input-required", UNKNOWN_REQUEST)
}

/// Returns the failure of a call whose server requests a feature that this host does not offer: its
/// name, and advice.
pub(crate) fn unsupported(
    server: &str,
    tool: &str,
    feature: &str,
    (what, advice): (&str, &str),
) -> Failure {
    let text = format!(
        "the tool `{tool}` of the MCP server `{server}` wants {what}, which this host does not \
         offer: {advice}"
    );
    let details = json!({ "feature": feature, "server": server, "tool": tool, "wants": what });
    Failure::new(code::UNSUPPORTED, text).with_details(details)
}

/// Converts the answers of a round to input responses of the stateless protocol.
pub(crate) fn input_responses(round: &ElicitationRound) -> BTreeMap<String, Value> {
    let answers = round.answers.iter();
    answers.map(|(name, answer)| (name.clone(), json!(elicitation_result(answer)))).collect()
}

/// Converts an answer to an elicitation result.
pub(crate) fn elicitation_result(answer: &Value) -> ElicitResult {
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => {
            let content = answer.get("content").cloned().unwrap_or_else(|| json!({}));
            ElicitResult::new(ElicitationAction::Accept).with_content(content)
        }
        Some("decline") => ElicitResult::new(ElicitationAction::Decline),
        _ => ElicitResult::new(ElicitationAction::Cancel),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(message: &str) -> ElicitedQuestion {
        ElicitedQuestion { message: message.into(), schema: json!({}) }
    }

    /// Returns a round of a held call with one question and its answer.
    fn round(message: &str, action: &str) -> ElicitationRound {
        let answers = BTreeMap::from([(SINGLE_QUESTION.to_owned(), json!({ "action": action }))]);
        ElicitationRound {
            elicitation: single_question(asked(message), Some("name".to_owned())),
            answers,
        }
    }

    fn input(value: Value) -> Result<RequestedInput, Failure> {
        requested_input("s", "book", serde_json::from_value(value).unwrap())
    }

    #[test]
    fn answers_become_elicitation_results() {
        let accepted = json!({ "action": "accept", "content": { "n": 1 } });
        let answers = BTreeMap::from([
            ("a".to_owned(), accepted.clone()),
            ("b".to_owned(), json!({ "action": "decline", "content": { "n": 2 } })),
            ("c".to_owned(), json!("?")),
        ]);
        let elicitation = Elicitation { questions: BTreeMap::new(), state: None, held: None };
        let said = json!(input_responses(&ElicitationRound { elicitation, answers }));
        let (decline, cancel) = (json!({ "action": "decline" }), json!({ "action": "cancel" }));
        assert_eq!(said, json!({ "a": accepted, "b": decline, "c": cancel }));
    }

    #[test]
    fn repeated_call_gets_its_answers_in_order() {
        let rounds =
            [round("sure?", "accept"), round("really?", "cancel"), round("sure?", "decline")];
        let known = |from, message: &str| {
            let (next, answer) = held_answer(&rounds, from, &asked(message))?;
            Some((next, answer.action))
        };
        assert_eq!(known(0, "sure?"), Some((1, ElicitationAction::Accept)));
        assert_eq!(known(1, "sure?"), Some((3, ElicitationAction::Decline)));
        assert_eq!(known(0, "really?"), Some((2, ElicitationAction::Cancel)));
        assert_eq!(known(2, "really?"), None);
        assert_eq!(known(0, "perhaps?"), None);
    }

    #[test]
    fn repeated_stateless_call_gets_the_earlier_answers_to_the_same_questions() {
        let asking = |questions: &[(&str, &str)]| {
            let named = |(name, text): &(&str, &str)| ((*name).to_owned(), asked(text));
            let questions = questions.iter().map(named).collect();
            Elicitation { questions, state: Some("opaque".to_owned()), held: None }
        };
        let round = |questions: &[(&str, &str)], action: &str| {
            let answer = |(name, text): &(&str, &str)| {
                let content = json!({ "text": text });
                ((*name).to_owned(), json!({ "action": action, "content": content }))
            };
            ElicitationRound {
                elicitation: asking(questions),
                answers: questions.iter().map(answer).collect(),
            }
        };
        let rounds =
            [round(&[("1", "sure?")], "accept"), round(&[("2", "who?"), ("3", "when?")], "accept")];
        let said = |from, questions: &[(&str, &str)]| {
            let (next, answers) = stateless_answers(&rounds, from, &asking(questions))?;
            let said = answers.iter().map(|(name, it)| format!("{name} {}", it["content"]["text"]));
            Some((next, said.collect::<Vec<_>>()))
        };
        assert_eq!(said(0, &[("1", "sure?")]), Some((1, vec!["1 \"sure?\"".to_owned()])));
        let both = vec!["a \"when?\"".to_owned(), "b \"who?\"".to_owned()];
        assert_eq!(said(1, &[("a", "when?"), ("b", "who?")]), Some((2, both)));
        assert_eq!(said(1, &[("1", "sure?")]), None, "it was given before");
        assert_eq!(said(0, &[("2", "who?")]), None);
        assert_eq!(said(0, &[("2", "who?"), ("3", "where?")]), None);
    }

    #[test]
    fn input_requests_become_questions_or_failures() {
        let form = json!({ "mode": "form", "message": "a\u{7}?", "requestedSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": { "a": { "type": "string", "description": "b\u{1b}[8m" } },
        } });
        let elicitation =
            |params: &Value| json!({ "method": "elicitation/create", "params": params });
        let round = |request: Value| {
            input(json!({ "resultType": "input_required", "inputRequests": { "q": request } }))
        };
        let Ok(RequestedInput::Answers(asked)) = round(elicitation(&form)) else {
            panic!("for people")
        };
        let question = &asked.questions["q"];
        assert_eq!((question.message.as_str(), question.schema.get("$schema")), ("a?", None));
        assert_eq!(question.schema.pointer("/properties/a/description"), Some(&json!("b[8m")));
        let url = json!({ "mode": "url", "message": "go", "url": "https://example.com" });
        for (request, wants) in [
            (elicitation(&url), "a person to visit a URL"),
            (json!({ "method": "roots/list" }), "the roots of its client"),
        ] {
            let Err(refused) = round(request) else { panic!("{wants}") };
            assert_eq!(refused.code, code::UNSUPPORTED);
            assert!(refused.message.contains("`book` of the MCP server `s`"), "{refused}");
            assert_eq!(refused.details.unwrap()["wants"], wants);
        }
        let again = input(json!({ "resultType": "input_required", "requestState": "opaque" }));
        assert!(matches!(again, Ok(RequestedInput::Repeat(state)) if state == "opaque"));
    }
}
