//! Elicitations of MCP servers as interrupts.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wattle_graph::elicitation::{Elicitation, ElicitedQuestion};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::InterruptId;

use crate::hostcall::interrupt::InterruptRequest;
use crate::json::{check_depth, with_integers};
use crate::limit::{
    ELICITED_MESSAGE_BYTES, ELICITED_NAME_BYTES, ELICITED_QUESTIONS, ELICITED_STATE_BYTES,
    SERVER_ROUNDS,
};

/// Maximum length of a question's name in an interrupt.
const NAME_BYTES: usize = 64;

/// Returns the interrupt for a round of a call. `round` is counted from 0.
///
/// # Errors
///
/// `limit` if the elicitation exceeds a limit; `invalid` if no schema can describe the answer, or
/// if the name of a field has control characters.
pub fn round_interrupt(
    server: &str,
    tool: &str,
    round: usize,
    elicitation: &Elicitation,
) -> Result<InterruptRequest, Failure> {
    check_bounds(server, tool, round, elicitation)?;
    let named = name_questions(elicitation);
    let messages: Vec<&str> = named.iter().map(|(.., it)| it.message.as_str()).collect();
    let mut payload = json!({ "message": messages.join("\n"), "server": server, "tool": tool });
    if named.len() > 1 {
        let texts = named.iter().map(|(name, _, it)| (name.clone(), json!(it.message)));
        payload["questions"] = Value::Object(texts.collect());
    }
    let response_schema = response_schema(&named);
    check_depth("the question of a server", &payload)?;
    check_depth("the response schema of a server", &response_schema)?;
    if elicitation.questions.values().any(|it| has_control_chars(&it.schema)) {
        let text = format!(
            "the tool `{tool}` of the MCP server `{server}` asks a person for a field whose name has \
             control characters; the question is not shown"
        );
        return Err(Failure::new(code::INVALID, text));
    }
    let ask = InterruptRequest { payload, response_schema: Some(response_schema) };
    ask.check_schema_now().map_err(|failure| {
        let message = format!(
            "the tool `{tool}` of the MCP server `{server}` asks for an answer that cannot be \
             checked: {}",
            failure.message
        );
        Failure { message, ..failure }
    })?;
    Ok(ask)
}

/// Returns a person's answers by the names that the server gave its questions. Each answer is
/// `{"action": "accept" | "decline" | "cancel", "content": ...}`. Integers have no decimal point,
/// as in arguments.
pub fn answers(elicitation: &Elicitation, answer: &Value) -> BTreeMap<String, Value> {
    let named = name_questions(elicitation);
    let is_alone = named.len() == 1;
    let of = |name: &str| if is_alone { Some(answer) } else { answer.get(name) };
    let answer = |name: &str| of(name).cloned().map(with_integers).unwrap_or_default();
    named.into_iter().map(|(name, own, _)| (own.to_owned(), answer(&name))).collect()
}

/// Returns the failure of a call that elicits where no interrupt can be raised.
pub fn elicitation_unsupported(server: &str, tool: &str) -> Failure {
    let text = format!(
        "the tool `{tool}` of the MCP server `{server}` asks a person, which a web handler cannot: \
         start a run whose node calls the tool"
    );
    let details = json!({ "feature": "mcp.input-required", "server": server, "tool": tool });
    Failure::new(code::UNSUPPORTED, text).with_details(details)
}

/// A question with its name in the interrupt and its name on the server.
type NamedQuestion<'a> = (String, &'a str, &'a ElicitedQuestion);

/// Returns the questions in the order of the server's names. If one of these names has the form of
/// an interrupt id or cannot be shown, all questions are numbered.
fn name_questions(elicitation: &Elicitation) -> Vec<NamedQuestion<'_>> {
    let is_name = |name: &String| {
        (1..=NAME_BYTES).contains(&name.len())
            && !name.contains(char::is_control)
            && !InterruptId::has_form(name)
    };
    let are_names = elicitation.questions.keys().all(is_name);
    let questions = elicitation.questions.iter().zip(1..);
    questions
        .map(|((own, question), number)| {
            let name = if are_names { own.clone() } else { format!("question {number}") };
            (name, own.as_str(), question)
        })
        .collect()
}

fn check_bounds(
    server: &str,
    tool: &str,
    round: usize,
    elicitation: &Elicitation,
) -> Result<(), Failure> {
    let longest = |bytes: fn((&String, &ElicitedQuestion)) -> usize| {
        elicitation.questions.iter().map(bytes).max().unwrap_or_default()
    };
    let state = elicitation.state.as_ref().map_or(0, String::len);
    for (limit, has, allowed, what) in [
        ("server_rounds", round + 1, SERVER_ROUNDS, "rounds of questions in one call"),
        (
            "elicited_questions",
            elicitation.questions.len(),
            ELICITED_QUESTIONS,
            "questions at once",
        ),
        (
            "elicited_message",
            longest(|(_, it)| it.message.len()),
            ELICITED_MESSAGE_BYTES,
            "bytes in one question",
        ),
        (
            "elicited_name",
            longest(|(name, _)| name.len()),
            ELICITED_NAME_BYTES,
            "bytes in the name of a question",
        ),
        ("elicited_state", state, ELICITED_STATE_BYTES, "bytes of state to be sent back"),
    ] {
        if has > allowed {
            let text = format!(
                "the tool `{tool}` of the MCP server `{server}` asks a person and has more than \
                 {allowed} {what}; the question is not shown"
            );
            let details = json!({ "limit": limit, "allowed": allowed });
            return Err(Failure::new(code::LIMIT, text).with_details(details));
        }
    }
    Ok(())
}

/// Returns true if a name in a schema has control characters.
fn has_control_chars(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let is_odd = |name: &String| name.contains(char::is_control);
            fields.iter().any(|(name, value)| is_odd(name) || has_control_chars(value))
        }
        Value::Array(items) => items.iter().any(has_control_chars),
        _ => false,
    }
}

/// Returns the JSON Schema of an answer, see [`answers`]: the answer to one question, or an object
/// of answers by question name.
fn response_schema(named: &[NamedQuestion<'_>]) -> Value {
    let of = |question: &ElicitedQuestion| {
        json!({
            "type": "object",
            "required": ["action"],
            "properties": { "action": {
                "enum": ["accept", "decline", "cancel"],
                "description":
                    "provide the requested data as `content`, decline, or cancel the operation",
            } },
            "if": { "properties": { "action": { "const": "accept" } } },
            "then": { "required": ["content"], "properties": { "content": question.schema } },
        })
    };
    if let [(.., only)] = named {
        return of(only);
    }
    let names: Vec<&String> = named.iter().map(|(name, ..)| name).collect();
    let all: Map<String, Value> =
        named.iter().map(|(name, _, question)| (name.clone(), of(question))).collect();
    json!({ "type": "object", "required": names, "properties": all })
}

#[cfg(test)]
mod tests {
    use wattle_graph::schema::Schema;

    use super::*;

    fn elicitation(names: &[&str]) -> Elicitation {
        let schema = json!({
            "type": "object", "properties": { "mail": { "type": "string", "format": "email" } },
            "required": ["mail"],
        });
        let question = |name: &&str| {
            let message = format!("{name}?");
            ((*name).to_owned(), ElicitedQuestion { message, schema: schema.clone() })
        };
        Elicitation { questions: names.iter().map(question).collect(), state: None, held: None }
    }

    fn limit(elicitation: &Elicitation, round: usize) -> String {
        let failure = round_interrupt("s", "t", round, elicitation).unwrap_err();
        assert_eq!(failure.code, code::LIMIT);
        failure.details.unwrap()["limit"].as_str().unwrap().to_owned()
    }

    #[test]
    fn single_question_has_an_unnamed_answer() {
        let elicitation = elicitation(&["a"]);
        let ask = round_interrupt("s", "book", 0, &elicitation).unwrap();
        let payload = json!({ "message": "a?", "server": "s", "tool": "book" });
        assert_eq!(ask.payload, payload);
        let schema = Schema::compile_with_formats(&ask.response_schema.unwrap()).unwrap();
        for (answer, fits) in [
            (json!({ "action": "accept", "content": { "mail": "jane@example.com" } }), true),
            (json!({ "action": "accept", "content": { "mail": "jane" } }), false),
            (json!({ "action": "accept", "content": null }), false),
            (json!({ "action": "accept" }), false),
            (json!({ "action": "decline", "content": null }), true),
            (json!({ "action": "cancel" }), true),
            (json!({ "action": "perhaps" }), false),
            (json!(true), false),
        ] {
            assert_eq!(schema.validate(&answer).is_ok(), fits, "{answer}");
        }
        let answer = json!({ "action": "cancel" });
        assert_eq!(answers(&elicitation, &answer), BTreeMap::from([("a".to_owned(), answer)]));
        let answer = json!({ "action": "accept", "content": { "seats": 2.0 } });
        assert_eq!(answers(&elicitation, &answer)["a"]["content"], json!({ "seats": 2 }));
    }

    #[test]
    fn several_questions_are_answered_by_name() {
        let elicitation = elicitation(&["a", "b"]);
        let ask = round_interrupt("s", "book", 0, &elicitation).unwrap();
        assert_eq!(ask.payload["message"], "a?\nb?");
        assert_eq!(ask.payload["questions"], json!({ "a": "a?", "b": "b?" }));
        let cancel = json!({ "action": "cancel" });
        let both = json!({ "a": cancel, "b": { "action": "decline" } });
        let schema = Schema::compile(&ask.response_schema.unwrap()).unwrap();
        assert!(schema.validate(&both).is_ok());
        assert!(schema.validate(&cancel).is_err());
        assert_eq!(answers(&elicitation, &both)["a"], cancel);
    }

    #[test]
    fn names_with_the_form_of_an_interrupt_id_are_replaced() {
        let id = "0123456789abcdef".repeat(2);
        let elicitation = elicitation(&[&id, "b"]);
        let ask = round_interrupt("s", "book", 0, &elicitation).unwrap();
        let names: Vec<&String> = ask.payload["questions"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["question 1", "question 2"]);
        let cancel = json!({ "action": "cancel" });
        assert_eq!(answers(&elicitation, &json!({ "question 1": cancel }))[&id], cancel);
    }

    #[test]
    fn field_name_with_control_characters_is_rejected() {
        let mut elicitation = elicitation(&["a"]);
        elicitation.questions.get_mut("a").unwrap().schema =
            json!({ "type": "object", "properties": { "pin\u{8}\u{8}\u{8}name": {} } });
        let refused = round_interrupt("s", "t", 0, &elicitation).unwrap_err();
        assert_eq!(refused.code, code::INVALID);
        assert!(refused.message.contains("control characters"), "{refused}");
    }

    #[test]
    fn oversized_elicitations_are_rejected() {
        assert!(round_interrupt("s", "t", SERVER_ROUNDS - 1, &elicitation(&["a"])).is_ok());
        assert_eq!(limit(&elicitation(&["a"]), SERVER_ROUNDS), "server_rounds");
        let names: Vec<String> = (0..=ELICITED_QUESTIONS).map(|n| n.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(limit(&elicitation(&names), 0), "elicited_questions");
        let long = "x".repeat(ELICITED_MESSAGE_BYTES);
        assert_eq!(limit(&elicitation(&[&long]), 0), "elicited_message");
        let name = "x".repeat(ELICITED_NAME_BYTES + 1);
        assert_eq!(limit(&elicitation(&[&name]), 0), "elicited_name");
        let state = Some("x".repeat(ELICITED_STATE_BYTES + 1));
        assert_eq!(limit(&Elicitation { state, ..elicitation(&["a"]) }, 0), "elicited_state");
    }
}
