//! `POST /api/chat` and `POST /api/chat/stream`: answer one question, at once or step by step.

use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Request, Response, StreamFormat, Value, code, handler, json,
    random, runs,
};
use wattle_plugin::runs::{EndedRun, Start};
use wattle_plugin::web::{HandOff, refuse, respond, status};

use crate::owner::{Owner, RunContext};
use crate::state::ResultReturnResult;
use crate::store::{history, sessions};
use crate::web::event::StreamEvent;
use crate::web::{Envelope, ErrorEnvelope, check_session, ok};
use crate::{GRAPH, setting};

/// Maximum number of characters of a question. Longer messages are documents, in which models lose
/// the question.
const MESSAGE_CHARACTERS: usize = 4_000;

/// Number of random bytes in a new session id, which has two hex digits per byte.
const SESSION_BYTES: u32 = 8;

/// Name of the stream in the app's folder.
const STREAM: &str = "chat";

/// A question.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Question {
    /// Session of the question; a new one without it.
    #[serde(default)]
    session_id: Option<String>,
    message: String,
    /// One of the models that the operator listed.
    #[serde(default)]
    model_name: Option<String>,
}

/// Answers a question.
#[handler(POST, "/api/chat", body = Question, returns = Envelope<ResultReturnResult>,
    error = ErrorEnvelope)]
pub(crate) fn chat(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorEnvelope>(request, || {
        let ended = runs::wait(&begin(question(request)?)?)?;
        ok(&result(&ended)?)
    })
}

/// Answers a question and streams every step.
#[handler(POST, "/api/chat/stream", body = Question, events = StreamEvent, error = ErrorEnvelope)]
pub(crate) fn stream(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorEnvelope>(request, || {
        let run = begin(question(request)?)?;
        let format = StreamFormat::Custom(STREAM.to_owned());
        Ok(Response::hand_off_from(HandOff::run(run.thread_id, run.run_id, format)))
    })
}

/// Creates the run that answers a question. A session has one thread. Each question is a run of its
/// own, which gets nothing of earlier questions except the history.
fn question(request: &Request) -> Result<Start, Failure> {
    let owner = Owner::of_request(request)?;
    let body: Question = request.json().map_err(|failure| {
        refuse(status::BAD_REQUEST, format!("请求格式不正确：{}", failure.message))
    })?;
    let message = body.message.trim();
    if message.is_empty() || message.chars().count() > MESSAGE_CHARACTERS {
        let allowed = format!("message 的长度必须在 1 到 {MESSAGE_CHARACTERS} 之间");
        return Err(refuse(status::BAD_REQUEST, allowed));
    }
    let model_name = model(body.model_name)?;
    let session_id = match body.session_id.filter(|it| !it.is_empty()) {
        Some(session_id) => {
            check_session(&session_id)?;
            session_id
        }
        None => fresh_session(),
    };
    sessions::open(&session_id, &owner, message)?;
    let history = history::last_of_user(&session_id, setting::history_messages()?)?;
    Ok(Start::graph(GRAPH)
        .thread_id(session_id)
        .context(serde_json::to_value(RunContext { admin_id: owner.admin_id })?)
        .input(json!({
            "message": message,
            "history_user_messages": history,
            "threshold": setting::threshold()?,
            "model_name": model_name,
            "intent_result": null,
            "parse_result": null,
            "sql_result": null,
            "sql_validate_result": null,
            "hidden_context_result": null,
            "hidden_context_retry_count": 0,
            "result_return_result": null,
        })))
}

fn begin(start: Start) -> Result<runs::RunRef, Failure> {
    start.start().map_err(|failure| match failure.code.as_str() {
        code::BUSY => refuse(status::CONFLICT, "该会话正在处理上一个问题，请稍后再试"),
        _ => failure,
    })
}

fn result(ended: &EndedRun) -> Result<Value, Failure> {
    // The details of an inner failure must not determine the status of this response.
    let state = ended.completed().map_err(|failure| Failure { details: None, ..failure })?;
    match state.get("result_return_result") {
        Some(result @ Value::Object(_)) => Ok(result.clone()),
        _ => Err(Failure::internal("工作流结束但没有结果")),
    }
}

/// Returns the name of a model. Names do not reach providers, so it must be a name that the
/// operator listed.
fn model(wanted: Option<String>) -> Result<String, Failure> {
    let default = setting::default_model()?;
    let Some(name) = wanted.filter(|name| !name.trim().is_empty()) else { return Ok(default) };
    if name == default || setting::models()?.contains_key(&name) {
        return Ok(name);
    }
    Err(refuse(status::BAD_REQUEST, format!("没有名为 `{name}` 的模型")))
}

fn fresh_session() -> String {
    random::bytes(SESSION_BYTES).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Failure, Request, Value, json, params, sql};
    use wattle_plugin::runs::Outcome;
    use wattle_plugin::testing::FakeHost;
    use wattle_plugin::web::Body;

    use super::{chat, stream};
    use crate::testing::business;

    fn host(outcome: Outcome) -> FakeHost {
        let host = business(|statement| {
            Ok(if statement.text.contains("FROM chat_session") {
                sql::Rows::new(["tenant", "admin_id"], vec![params!["", 7]]).into()
            } else if statement.text.contains("FROM chat_history") {
                sql::Rows::new(["content"], vec![params!["后"], params!["先"]]).into()
            } else {
                sql::Rows::default().into()
            })
        });
        host.outcome(outcome, json!({"result_return_result": {"summary": "好"}}))
    }

    fn post(host: &FakeHost, body: &Value, admin: &str) -> (u16, Value) {
        let request = Request::new("POST", "/api/chat")
            .with_body(body.to_string())
            .with_header("X-Admin-Id", admin);
        host.respond(chat, &request)
    }

    #[test]
    fn question_is_a_run_with_a_clean_state() {
        let host = host(Outcome::Completed);
        let (status, body) = post(&host, &json!({"message": " 有多少订单 "}), "7");
        assert_eq!(status, 200);
        assert_eq!(body, json!({"code": 0, "message": "ok", "data": {"summary": "好"}}));
        let started = &host.started()[0];
        assert_eq!(started.graph, "UnifiedChatGraph");
        assert_eq!(started.context, Some(json!({"admin_id": 7})));
        assert_eq!(started.input["message"], "有多少订单");
        assert_eq!(started.input["history_user_messages"], json!(["先", "后"]));
        assert_eq!(started.input["model_name"], "qwen-plus");
        assert_eq!(started.input["parse_result"], Value::Null);
        let session = started.thread_id.clone().unwrap();
        assert!(session.len() == 16 && session.bytes().all(|it| it.is_ascii_hexdigit()));
    }

    #[test]
    fn invalid_requests_start_no_run() {
        let host = host(Outcome::Completed);
        for (body, admin, status) in [
            (json!({}), "7", 400),
            (json!({"message": " "}), "7", 400),
            (json!({"message": "x".repeat(4_001)}), "7", 400),
            (json!({"message": "x", "extra": 1}), "7", 400),
            (json!({"message": "x", "session_id": "../x"}), "7", 400),
            (json!({"message": "x", "model_name": "gpt"}), "7", 400),
            (json!({"message": "x"}), "root", 400),
            (json!({"message": "x", "session_id": "s"}), "8", 404),
        ] {
            let (found, answer) = post(&host, &body, admin);
            assert_eq!((found, &answer["code"]), (status, &json!(status)), "{body} {answer}");
        }
        assert!(host.started().is_empty());
    }

    #[test]
    fn failed_workflow_is_an_error() {
        let (status, body) = post(
            &host(Outcome::Failed(Failure::unavailable("model down").with_status(503))),
            &json!({"message": "x"}),
            "7",
        );
        assert_eq!(status, 502);
        assert_eq!(body, json!({"code": 502, "message": "model down", "data": null}));
    }

    #[test]
    fn stream_is_handed_off_to_the_host() {
        let host = host(Outcome::Completed);
        let request = Request::new("POST", "/api/chat/stream")
            .with_body(r#"{"message": "x", "session_id": "s"}"#)
            .with_header("X-Admin-Id", "7");
        let response = host.run(|| stream(&request)).unwrap();
        let Body::HandOff(hand_off) = response.body else { panic!("{response:?}") };
        assert_eq!(hand_off.thread_id, "s");
        assert!(hand_off.run_id.is_some());
    }
}
