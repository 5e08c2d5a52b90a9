//! Questions of servers to people in our words, and the answers in those of the protocol.

use std::collections::BTreeMap;

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequiredResult,
};
use serde_json::{Value, json};
use wattle_graph::elicitation::{Elicitation, ElicitedQuestion};
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::tool_server::Round;

use crate::speaker::plain;

/// The method of a request to a person.
pub(crate) const ASK: &str = "elicitation/create";

/// The name of a question that comes through a session, which gives it none.
const ONLY: &str = "question";

/// What a server wants in a way that nobody here can read, and what to do about it.
const UNKNOWN: (&str, &str) =
    ("something that this host does not know", "ask its makers for another way");

/// What a person is asked for the only question of a session.
pub(crate) fn only(question: ElicitedQuestion, held: Option<String>) -> Elicitation {
    Elicitation { questions: BTreeMap::from([(ONLY.to_owned(), question)]), state: None, held }
}

/// The answer that a person gave to a question when the call was made before, in a round from number `from` on, and
/// the number of the round after that.
pub(crate) fn held_answer(
    rounds: &[Round],
    from: usize,
    question: &ElicitedQuestion,
) -> Option<(usize, ElicitResult)> {
    let is_same = |round: &Round| {
        round.question.held.is_some() && round.question.questions.values().eq([question])
    };
    let mut later = rounds.iter().enumerate().skip(from);
    let (number, round) = later.find(|(_, round)| is_same(round))?;
    let answer = round.answers.values().next()?;
    Some((number + 1, result(answer)))
}

/// The answers that a person gave to the same questions in a round from number `from` on, in the words of the newer
/// protocol, and the number of the round after that. The names of the questions may be others.
pub(crate) fn stateless_answers(
    rounds: &[Round],
    from: usize,
    asked: &Elicitation,
) -> Option<(usize, BTreeMap<String, Value>)> {
    let answers = |round: &Round| {
        if round.question.questions.len() != asked.questions.len() {
            return None;
        }
        let answers = asked.questions.iter().map(|(name, question)| {
            let answer = answer_to(round, name, question)?;
            Some((name.clone(), json!(result(answer))))
        });
        answers.collect::<Option<BTreeMap<String, Value>>>()
    };
    let mut later = rounds.iter().enumerate().skip(from);
    later.find_map(|(number, round)| Some((number + 1, answers(round)?)))
}

/// The answer to a question in a round, by its name or else by its text.
fn answer_to<'r>(round: &'r Round, name: &str, question: &ElicitedQuestion) -> Option<&'r Value> {
    let known = &round.question.questions;
    if known.get(name) == Some(question) {
        return round.answers.get(name);
    }
    let (own, _) = known.iter().find(|(_, it)| *it == question)?;
    round.answers.get(own)
}

/// The question of a server, if it is one for a person.
pub(crate) fn question(asked: &ElicitRequestParams) -> Option<ElicitedQuestion> {
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = asked else {
        return None;
    };
    let mut schema = serde_json::to_value(requested_schema).unwrap_or_else(|_| json!({}));
    // A part of a schema has no dialect of its own.
    if let Value::Object(fields) = &mut schema {
        fields.remove("$schema");
    }
    clean(&mut schema);
    Some(ElicitedQuestion { message: plain(message), schema })
}

/// Takes control characters out of all texts of a schema: titles, descriptions and values to choose from.
fn clean(schema: &mut Value) {
    match schema {
        Value::String(text) => *text = plain(text),
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        _ => {}
    }
}

/// What a call of the newer protocol ended with.
pub(crate) enum Wanted {
    /// Answers of people.
    Answers(Elicitation),
    /// To be made again with this state.
    Again(String),
}

/// What a call of the newer protocol wants before it goes on.
///
/// # Errors
///
/// `unsupported` if that is nothing that a person is asked.
pub(crate) fn wanted(
    server: &str,
    tool: &str,
    asked: InputRequiredResult,
) -> Result<Wanted, Failure> {
    let mut questions = BTreeMap::new();
    for (name, request) in asked.input_requests.unwrap_or_default() {
        let refused = match &request {
            InputRequest::Elicitation(request) => match question(&request.params) {
                Some(question) => {
                    questions.insert(name, question);
                    continue;
                }
                None => ("a person to visit an address", "let it ask with a form"),
            },
            InputRequest::CreateMessage(_) => {
                ("an answer of a model", "let it ask a model of its own")
            }
            InputRequest::ListRoots(_) => {
                ("the roots of its client", "name folders in its configuration")
            }
            _ => UNKNOWN,
        };
        return Err(unsupported(server, tool, "mcp.input-required", refused));
    }
    match asked.request_state {
        Some(state) if questions.is_empty() => Ok(Wanted::Again(state)),
        None if questions.is_empty() => {
            let refused = ("input and does not say which", "tell its makers");
            Err(unsupported(server, tool, "mcp.input-required", refused))
        }
        state => Ok(Wanted::Answers(Elicitation { questions, state, held: None })),
    }
}

/// A call that is not complete and does not say in the words of the protocol what it wants.
pub(crate) fn unreadable(server: &str, tool: &str) -> Failure {
    unsupported(server, tool, "mcp.input-required", UNKNOWN)
}

/// A server that wants something that this host does not offer: `what`, and what to do about it.
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

/// The answers of a round as the newer protocol says them.
pub(crate) fn responses(round: &Round) -> BTreeMap<String, Value> {
    let answers = round.answers.iter();
    answers.map(|(name, answer)| (name.clone(), json!(result(answer)))).collect()
}

/// What a person gave, as the protocol says it.
pub(crate) fn result(answer: &Value) -> ElicitResult {
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

    /// A round that was held, with one question and its answer.
    fn round(message: &str, action: &str) -> Round {
        let answers = BTreeMap::from([(ONLY.to_owned(), json!({ "action": action }))]);
        Round { question: only(asked(message), Some("name".to_owned())), answers }
    }

    fn input(value: Value) -> Result<Wanted, Failure> {
        wanted("s", "book", serde_json::from_value(value).unwrap())
    }

    #[test]
    fn answers_are_written_as_the_protocol_has_them() {
        let accepted = json!({ "action": "accept", "content": { "n": 1 } });
        let answers = BTreeMap::from([
            ("a".to_owned(), accepted.clone()),
            ("b".to_owned(), json!({ "action": "decline", "content": { "n": 2 } })),
            ("c".to_owned(), json!("?")),
        ]);
        let question = Elicitation { questions: BTreeMap::new(), state: None, held: None };
        let said = json!(responses(&Round { question, answers }));
        let (decline, cancel) = (json!({ "action": "decline" }), json!({ "action": "cancel" }));
        assert_eq!(said, json!({ "a": accepted, "b": decline, "c": cancel }));
    }

    #[test]
    fn a_call_that_is_made_again_is_answered_in_the_order_of_its_questions() {
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
    fn a_call_that_is_made_again_gets_the_answers_to_the_same_questions() {
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
            Round { question: asking(questions), answers: questions.iter().map(answer).collect() }
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
    fn what_a_server_wants_is_for_people_or_named() {
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
        let Ok(Wanted::Answers(asked)) = round(elicitation(&form)) else { panic!("for people") };
        let question = &asked.questions["q"];
        assert_eq!((question.message.as_str(), question.schema.get("$schema")), ("a?", None));
        assert_eq!(question.schema.pointer("/properties/a/description"), Some(&json!("b[8m")));
        let url = json!({ "mode": "url", "message": "go", "url": "https://example.com" });
        for (request, wants) in [
            (elicitation(&url), "a person to visit an address"),
            (json!({ "method": "roots/list" }), "the roots of its client"),
        ] {
            let Err(refused) = round(request) else { panic!("{wants}") };
            assert_eq!(refused.code, code::UNSUPPORTED);
            assert!(refused.message.contains("`book` of the MCP server `s`"), "{refused}");
            assert_eq!(refused.details.unwrap()["wants"], wants);
        }
        let again = input(json!({ "resultType": "input_required", "requestState": "opaque" }));
        assert!(matches!(again, Ok(Wanted::Again(state)) if state == "opaque"));
    }
}
