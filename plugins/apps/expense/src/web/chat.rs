//! `POST /api/chat`: sends a message and responds with the reply and its steps.

use serde::Serialize;
use wattle_plugin::prelude::{
    Failure, JsonSchema, Request, Response, Value, code, handler, log, runs,
};
use wattle_plugin::runs::{EndedRun, Interrupt, Outcome};
use wattle_plugin::web::status::{ACCEPTED, BAD_GATEWAY, CONFLICT, UNPROCESSABLE_ENTITY};
use wattle_plugin::web::{ErrorDocument, respond};

use crate::MESSAGES;
use crate::talk::{Step, Talk};
use crate::web::{ChatRequest, start};

/// The reply to a message.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Reply<'a> {
    thread_id: &'a str,
    reply: String,
    steps: Vec<Step>,
}

/// A run that waits for approvals.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Waiting<'a> {
    thread_id: &'a str,
    reply: String,
    questions: Vec<Question<'a>>,
    steps: Vec<Step>,
}

/// A tool call that waits for approval.
#[derive(Serialize, JsonSchema)]
struct Question<'a> {
    id: &'a str,
    payload: &'a Value,
}

/// The reason of a refused request or a failed run, for users.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ChatError<'a> {
    /// The conversation of a failed run. Its next message continues it.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<&'a str>,
    error: &'a str,
    /// The steps of a failed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<Step>>,
}

/// Sends a message to a conversation and waits for the reply.
#[handler(POST, "/api/chat", body = ChatRequest, returns = Reply<'_>, returns(202) = Waiting<'_>,
    error = ChatError<'_>)]
pub(crate) fn chat(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || ended_response(&runs::wait(&start(request)?)?))
}

fn ended_response(ended: &EndedRun) -> Result<Response, Failure> {
    let thread_id = ended.run.thread_id.as_str();
    let talk = Talk::read(ended.state.get(MESSAGES).unwrap_or(&Value::Null));
    let Talk { reply, steps } = talk;
    let failed = |status, error, steps| {
        let body = ChatError { thread_id: Some(thread_id), error, steps: Some(steps) };
        Response::json(status, &body)
    };
    match &ended.outcome {
        Outcome::Completed => Response::json(200, &Reply { thread_id, reply, steps }),
        // Occurs only if the operator requires approval of tool calls.
        Outcome::Interrupted(questions) => {
            let questions = questions.iter().map(Question::from).collect();
            Response::json(ACCEPTED, &Waiting { thread_id, reply, questions, steps })
        }
        Outcome::Failed(failure) => {
            log::warn!("the run on thread `{thread_id}` failed: {failure}");
            let (status, text) = told(failure);
            failed(status, text, steps)
        }
        _ => failed(CONFLICT, "处理已取消", steps),
    }
}

impl<'a> From<&'a Interrupt> for Question<'a> {
    fn from(interrupt: &'a Interrupt) -> Self {
        Self { id: &interrupt.id, payload: &interrupt.payload }
    }
}

/// Returns the status and the message for a failed run. The thread is kept, so the next message
/// continues the conversation.
fn told(failure: &Failure) -> (u16, &'static str) {
    match failure.code.as_str() {
        code::LIMIT => (UNPROCESSABLE_ENTITY, "处理步骤过多，请把内容分成几条发送"),
        code::RATE_LIMITED => (BAD_GATEWAY, "AI 服务繁忙，请稍后再试"),
        _ => (BAD_GATEWAY, "AI 服务暂时不可用，请稍后再试"),
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Failure, Request, Value, code, json};
    use wattle_plugin::runs::{EndedRun, Interrupt, Outcome, Thread};
    use wattle_plugin::testing::FakeHost;

    use super::chat;

    fn host(outcome: Outcome) -> FakeHost {
        FakeHost::new().run_ends(move |run| EndedRun {
            run: run.clone(),
            outcome: outcome.clone(),
            state: json!({"messages": [
                {"role": "user", "content": "早"},
                {"role": "assistant", "content": "早上好"},
            ]}),
        })
    }

    fn post(host: &FakeHost, body: &Value) -> (u16, Value) {
        let request = Request::new("POST", "/api/chat").with_body(body.to_string());
        let response = host.run(|| chat(&request)).unwrap();
        (response.status, response.json_body().unwrap())
    }

    #[test]
    fn message_starts_a_run_and_gets_the_reply() {
        let host = host(Outcome::Completed);
        let (status, body) = post(&host, &json!({"message": " 早 "}));
        let steps = json!([{"type": "model", "content": "早上好", "toolCalls": []}]);
        let expected = json!({"threadId": "thread-1", "reply": "早上好", "steps": steps});
        assert_eq!((status, body), (200, expected));
        let started = &host.started()[0];
        assert_eq!((started.graph.as_str(), &started.thread_id), ("expense", &None));
        assert_eq!(started.input, json!({"messages": [{"role": "user", "content": "早"}]}));
    }

    #[test]
    fn message_continues_a_thread() {
        let host = host(Outcome::Completed).thread(Thread::new("t", "expense", "idle", json!({})));
        assert_eq!(post(&host, &json!({"threadId": "t", "message": "早"})).0, 200);
        assert_eq!(host.started()[0].thread_id.as_deref(), Some("t"));
    }

    #[test]
    fn retry_runs_without_a_new_message() {
        let thread = |id: &str, messages: Value| {
            Thread::new(id, "expense", "error", json!({ "messages": messages }))
        };
        let asked = json!({"role": "user", "content": "打车20元"});
        let host = host(Outcome::Completed)
            .thread(thread("open", json!([asked])))
            .thread(thread("done", json!([asked, {"role": "assistant", "content": "好了"}])));
        let retry = |id: &str| post(&host, &json!({"threadId": id, "retry": true})).0;
        assert_eq!(
            (retry("open"), retry("done"), retry("nobody"), retry("")),
            (200, 409, 404, 404)
        );
        let started = host.started();
        assert_eq!((started.len(), &started[0].input), (1, &json!({})));
    }

    #[test]
    fn invalid_messages_start_no_run() {
        let host = host(Outcome::Completed);
        for (body, status) in [
            (json!({}), 400),
            (json!({"message": "  "}), 400),
            (json!({"message": 5}), 400),
            (json!([]), 400),
            (json!({"message": "长".repeat(4_001)}), 413),
        ] {
            let (answered, document) = post(&host, &body);
            assert_eq!(answered, status, "{document}");
            assert!(document["error"].is_string());
        }
        assert!(host.started().is_empty());
    }

    #[test]
    fn failed_runs_have_a_message_and_keep_the_thread() {
        let failed = |code: &str| Outcome::Failed(Failure::new(code, "why"));
        for (outcome, status) in [
            (failed(code::LIMIT), 422),
            (failed(code::RATE_LIMITED), 502),
            (failed(code::UNAVAILABLE), 502),
            (Outcome::Cancelled, 409),
        ] {
            let (answered, body) = post(&host(outcome), &json!({"message": "早"}));
            assert_eq!((answered, &body["threadId"]), (status, &json!("thread-1")));
            assert!(body["error"].is_string() && body["steps"].is_array(), "{body}");
        }
    }

    #[test]
    fn pending_interrupts_are_returned() {
        let asked = Interrupt::new("q", "tools", json!({"kind": "tool_approval"}));
        let (status, body) =
            post(&host(Outcome::Interrupted(vec![asked])), &json!({"message": "早"}));
        let questions = json!([{"id": "q", "payload": {"kind": "tool_approval"}}]);
        assert_eq!((status, &body["questions"]), (202, &questions));
    }
}
