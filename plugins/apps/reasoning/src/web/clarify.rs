//! `POST /api/v1/reasoning/sessions/{session_id}/clarify`: answers a clarification.

use wattle_plugin::prelude::{Deserialize, Failure, Request, Response, Value, handler, json};

use crate::session::{self, status};
use crate::web::sessions::input;
use crate::web::{Refusal, answer, find};

/// The only type of answers.
const TYPE: &str = "clarification";

/// Fields of an answer that can have its text. The first one that is present counts.
const TEXTS: &[&str] = &["text", "content", "value", "answer", "message"];

#[derive(Deserialize)]
struct Body {
    answer: Value,
}

/// Stores an answer. The next run gets it as a further line of the input.
#[handler(POST, "/api/v1/reasoning/sessions/{session_id}/clarify")]
pub(crate) fn clarify(request: &Request) -> Result<Response, Failure> {
    answer(request, || {
        let body: Body = request.json()?;
        let text = input(text_of(&body.answer)?)?;
        let (session, _) = session::sync(request.tenant.as_deref(), find(request)?)?;
        let none = || Refusal::invalid("会话没有待回答的澄清问题");
        let asked = session::pending(&session)?.ok_or_else(none)?;
        let turns = session::turns(&session.id)?;
        let turn = turns.iter().find(|turn| turn.id == asked.turn_id).ok_or_else(none)?;
        if !session::answer(&session, turn, &asked, &body.answer, text)? {
            return Err(none());
        }
        Ok(json!({
            "session_id": session.id, "status": status::CREATED,
            "clarification": { "clarification_id": asked.id, "status": "answered" },
        }))
    })
}

fn text_of(answer: &Value) -> Result<&str, Refusal> {
    if answer.get("type").and_then(Value::as_str) != Some(TYPE) {
        return Err(Refusal::invalid(format!("answer.type 必须是 {TYPE}")));
    }
    let mut texts = TEXTS.iter().filter_map(|name| answer.get(name)?.as_str());
    texts.next().ok_or_else(|| Refusal::invalid("answer.text 不能为空"))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::text_of;

    #[test]
    fn answers_have_a_type_and_a_text() {
        for name in ["text", "content", "value"] {
            assert_eq!(text_of(&json!({"type": "clarification", name: "客户"})).ok(), Some("客户"));
        }
        for answer in [json!("客户"), json!({"text": "a"}), json!({"type": "clarification"})] {
            assert!(text_of(&answer).is_err(), "{answer}");
        }
    }
}
