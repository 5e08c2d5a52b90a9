//! `POST /api/v1/reasoning/sessions/{session_id}/clarify`: answers a clarification.

use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Request, Response, Serialize, Value, handler,
};
use wattle_plugin::web::refuse;
use wattle_plugin::web::status::BAD_REQUEST;

use crate::session::{self, Status, status};
use crate::web::sessions::input;
use crate::web::{Envelope, ErrorEnvelope, find, respond};

/// The only type of answers.
const TYPE: &str = "clarification";

/// Fields of an answer that can have its text. The first one that is present counts.
const TEXTS: &[&str] = &["text", "content", "value", "answer", "message"];

/// The answer to the pending clarification.
#[derive(Deserialize, JsonSchema)]
struct ClarifyRequest {
    #[schemars(with = "Answer")]
    answer: Value,
}

/// An answer. The first of its texts counts.
#[expect(dead_code, reason = "only its schema is used: the answer is stored as it is")]
#[derive(JsonSchema)]
struct Answer {
    #[serde(rename = "type")]
    #[schemars(extend("const" = "clarification"))]
    kind: String,
    text: Option<String>,
    content: Option<String>,
    value: Option<String>,
    answer: Option<String>,
    message: Option<String>,
}

/// A session that can run again.
#[derive(Serialize, JsonSchema)]
struct AnsweredSession {
    session_id: String,
    #[schemars(with = "Status")]
    status: &'static str,
    clarification: AnsweredClarification,
}

/// The clarification that was answered.
#[derive(Serialize, JsonSchema)]
struct AnsweredClarification {
    clarification_id: String,
    #[schemars(extend("const" = "answered"))]
    status: &'static str,
}

/// Stores an answer. The next run gets it as a further line of the input.
#[handler(POST, "/api/v1/reasoning/sessions/{session_id}/clarify", body = ClarifyRequest,
    returns = Envelope<AnsweredSession>, error = ErrorEnvelope)]
pub(crate) fn clarify(request: &Request) -> Result<Response, Failure> {
    respond(request, || {
        let body: ClarifyRequest = request.json()?;
        let text = input(text_of(&body.answer)?)?;
        let (session, _) = session::sync(request.tenant.as_deref(), find(request)?)?;
        let none = || refuse(BAD_REQUEST, "会话没有待回答的澄清问题");
        let asked = session::pending(&session)?.ok_or_else(none)?;
        let turn = session::find_turn(&session.id, &asked.turn_id)?.ok_or_else(none)?;
        if !session::answer(&session, &turn, &asked, &body.answer, text)? {
            return Err(none());
        }
        let clarification =
            AnsweredClarification { clarification_id: asked.id, status: "answered" };
        Ok(AnsweredSession { session_id: session.id, status: status::CREATED, clarification })
    })
}

fn text_of(answer: &Value) -> Result<&str, Failure> {
    if answer.get("type").and_then(Value::as_str) != Some(TYPE) {
        return Err(refuse(BAD_REQUEST, format!("answer.type 必须是 {TYPE}")));
    }
    let mut texts = TEXTS.iter().filter_map(|name| answer.get(name)?.as_str());
    texts.next().ok_or_else(|| refuse(BAD_REQUEST, "answer.text 不能为空"))
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
