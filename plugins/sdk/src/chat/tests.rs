//! Tests of the work of endpoints.

use serde_json::{Value, json};

use super::{Agent, Chat, Texts};
use crate::failure::{Failure, code};
use crate::runs::{EndedRun, Interrupt, Outcome, RunRef, Thread};
use crate::testing::FakeHost;
use crate::web::{Body, HandOff, Request, Response, StreamFormat};

const CHAT: Chat = Chat::graph("notes").message_chars(10);

const TEXTS: Texts = Texts::ENGLISH;

fn hi() -> Value {
    json!({"id": "u", "role": "user", "content": "hi"})
}

fn hello() -> Value {
    json!({"id": "a", "role": "assistant", "content": "hello"})
}

fn thread(id: &str, status: &str, messages: Value) -> Thread {
    Thread::new(id, "notes", status, json!({ "messages": messages }))
}

/// A host with a conversation with a reply, two without, one with an active run, and a thread of
/// another graph. Its runs are cancelled.
fn host() -> FakeHost {
    let mut running = thread("running", "running", json!([hi(), hello()]));
    running.run_id = Some("run-7".to_owned());
    let mut foreign = thread("foreign", "idle", json!([hi()]));
    foreign.graph = "other".to_owned();
    let host = FakeHost::new().run_ends(|run| ended(run, Outcome::Cancelled));
    [
        thread("done", "idle", json!([hi(), hello()])),
        thread("failed", "error", json!([hi()])),
        thread("empty", "idle", json!(null)),
        running,
        foreign,
    ]
    .into_iter()
    .fold(host, FakeHost::thread)
}

fn ended(run: &RunRef, outcome: Outcome) -> EndedRun {
    EndedRun { run: run.clone(), outcome, state: json!({"messages": [hi(), hello()]}) }
}

fn post(body: &Value) -> Request {
    Request::new("POST", "/api/chat").with_body(body.to_string())
}

fn get() -> Request {
    Request::new("GET", "/api/threads/t/stream")
}

/// Returns status and text of a refusal.
fn refused<T: std::fmt::Debug>(result: Result<T, Failure>) -> (Option<u16>, String) {
    let failure = result.unwrap_err();
    (failure.status(), failure.message)
}

fn handed_off(response: Response) -> HandOff {
    match response.body {
        Body::HandOff(hand_off) => hand_off,
        other => panic!("no stream: {other:?}"),
    }
}

#[test]
fn requests_start_runs() {
    let said = json!({"messages": [{"role": "user", "content": "hi"}]});
    for (body, thread_id, input) in [
        (json!({"message": " hi\n"}), None, &said),
        (json!({"message": "hi", "threadId": ""}), None, &said),
        (json!({"message": "hi", "threadId": "done"}), Some("done"), &said),
        (json!({"threadId": "failed", "retry": true}), Some("failed"), &json!({})),
    ] {
        let host = host();
        let run = host.run(|| CHAT.send(&post(&body))).unwrap();
        let started = &host.started()[0];
        assert_eq!((started.graph.as_str(), &started.input), ("notes", input), "{body}");
        assert_eq!(started.thread_id.as_deref(), thread_id, "{body}");
        assert_eq!(run.run_id, "run-1");
    }
}

#[test]
fn refused_requests_start_no_run() {
    let retry = |thread: Value| json!({"threadId": thread, "retry": true});
    for (body, status, text) in [
        (json!("hi"), 400, TEXTS.malformed),
        (json!({"message": 5}), 400, TEXTS.malformed),
        (json!({}), 400, TEXTS.empty),
        (json!({"message": " \n"}), 400, TEXTS.empty),
        (json!({"message": "\u{957f}".repeat(11)}), 413, TEXTS.too_long),
        (retry(json!("done")), 409, TEXTS.nothing_to_retry),
        (retry(json!("empty")), 409, TEXTS.nothing_to_retry),
        (retry(json!("foreign")), 404, TEXTS.missing),
        (retry(json!("nobody")), 404, TEXTS.missing),
        (retry(json!("")), 404, TEXTS.missing),
        (retry(json!(null)), 404, TEXTS.missing),
    ] {
        let host = host();
        let refusal = refused(host.run(|| CHAT.send(&post(&body))));
        assert_eq!(refusal, (Some(status), text.to_owned()), "{body}");
        assert!(host.started().is_empty(), "{body}");
    }
    let host = host();
    let longest = post(&json!({"message": format!(" {} ", "\u{957f}".repeat(10))}));
    assert!(host.run(|| CHAT.send(&longest)).is_ok());
}

#[test]
fn failures_of_starts_have_texts() {
    for (code, status, text) in [
        (code::BUSY, Some(409), TEXTS.busy),
        (code::NOT_FOUND, Some(404), TEXTS.missing),
        (code::INVALID, Some(400), TEXTS.thread_id),
        (code::LIMIT, None, "why"),
    ] {
        let host = host().starts(move |_| Err(Failure::new(code, "why")));
        let failure = host.run(|| CHAT.send(&post(&json!({"message": "hi"})))).unwrap_err();
        assert_eq!(failure.code, code);
        assert_eq!((failure.status(), failure.message.as_str()), (status, text), "{code}");
    }
}

/// A conversation of a graph with the question `q` about a tool call.
fn asking(id: &str, graph: &str, status: &str) -> Thread {
    let mut thread = thread(id, status, json!([hi()]));
    thread.graph = graph.to_owned();
    thread.interrupts = vec![Interrupt::new("q", "tools", json!({"tool": "pay"}))];
    thread
}

/// A host with conversations that have a question. `waiting` and `replied` wait for an answer; the
/// last message of `replied` is a reply.
fn host_with_questions() -> FakeHost {
    let mut replied = asking("replied", "notes", "interrupted");
    replied.state = json!({"messages": [hi(), hello()]});
    [
        replied,
        asking("waiting", "notes", "interrupted"),
        asking("foreign", "other", "interrupted"),
        asking("failed", "notes", "error"),
        asking("cancelled", "notes", "idle"),
    ]
    .into_iter()
    .fold(FakeHost::new(), FakeHost::thread)
    .run_ends(|run| ended(run, Outcome::Completed))
}

#[test]
fn thread_of_another_graph_is_not_found_by_a_start() {
    let host = host().starts(|_| Err(Failure::conflict("bound to another graph")));
    let message = post(&json!({"message": "hi", "threadId": "foreign"}));
    let refusal = refused(host.run(|| CHAT.send(&message)));
    assert_eq!(refusal, (Some(404), TEXTS.missing.to_owned()));
}

#[test]
fn messages_and_retries_wait_for_answers() {
    for (thread, is_waiting) in
        [("waiting", true), ("replied", true), ("failed", false), ("cancelled", false)]
    {
        for mut body in [json!({"message": "hi"}), json!({"retry": true})] {
            body["threadId"] = json!(thread);
            let host = host_with_questions();
            let sent = host.run(|| CHAT.send(&post(&body)));
            assert_eq!(host.started().len(), usize::from(!is_waiting), "{body}");
            if is_waiting {
                assert_eq!(refused(sent), (Some(409), TEXTS.waiting.to_owned()), "{body}");
            }
        }
    }
}

#[test]
fn question_of_a_run_that_ends_meanwhile_is_not_given_up() {
    for body in [json!({"message": "hi"}), json!({"threadId": "failed", "retry": true})] {
        let host = host().starts(|start| {
            assert_eq!(start.extra["reject_if_interrupted"], true);
            let reason = json!({"reason": "interrupted"});
            Err(Failure::conflict("an answer is missing").with_details(reason))
        });
        let refusal = refused(host.run(|| CHAT.send(&post(&body))));
        assert_eq!(refusal, (Some(409), TEXTS.waiting.to_owned()), "{body}");
    }
}

#[test]
fn pending_questions_are_shown() {
    let shown = |id: &str| json!(host_with_questions().run(|| CHAT.show(id)).unwrap());
    let questions = json!([{"id": "q", "payload": {"tool": "pay"}}]);
    assert_eq!(shown("waiting")["questions"], questions);
    for id in ["failed", "cancelled"] {
        assert_eq!(shown(id).get("questions"), None, "{id}");
    }
}

fn answered(host: &FakeHost, thread: &str, body: &Value) -> Result<Response, Failure> {
    let request = post(body);
    host.run(|| CHAT.answer(thread, &request)?.into_response())
}

#[test]
fn pending_question_is_answered() {
    let host = host_with_questions();
    let decision = json!({"decision": "approve"});
    let response = answered(&host, "waiting", &json!({"id": "q", "answer": decision})).unwrap();
    assert_eq!((response.status, &response.json_body().unwrap()["reply"]), (200, &json!("hello")));
    let resumed = &host.resumed()[0];
    assert_eq!(resumed.thread_id, "waiting");
    assert_eq!(resumed.answers, [("q".to_owned(), decision)]);
}

#[test]
fn refused_answers_resume_no_run() {
    let answer = |id: &str| json!({"id": id, "answer": true});
    for (thread, body, status, text) in [
        ("waiting", json!([]), 400, TEXTS.answer),
        ("waiting", json!({"id": "q"}), 400, TEXTS.answer),
        ("waiting", json!({"answer": true}), 400, TEXTS.answer),
        ("waiting", answer("other"), 409, TEXTS.not_pending),
        ("waiting", answer(""), 409, TEXTS.not_pending),
        ("failed", answer("q"), 409, TEXTS.not_pending),
        ("cancelled", answer("q"), 409, TEXTS.not_pending),
        ("foreign", answer("q"), 404, TEXTS.missing),
        ("nobody", answer("q"), 404, TEXTS.missing),
    ] {
        let host = host_with_questions();
        let refusal = refused(answered(&host, thread, &body));
        assert_eq!(refusal, (Some(status), text.to_owned()), "{thread}: {body}");
        assert!(host.resumed().is_empty(), "{thread}: {body}");
    }
}

#[test]
fn failures_of_answers_have_texts() {
    for (code, status, text) in [
        (code::INVALID, Some(400), TEXTS.answer),
        (code::BUSY, Some(409), TEXTS.busy),
        (code::NOT_FOUND, Some(404), TEXTS.missing),
        (code::LIMIT, None, "why"),
    ] {
        let host = host_with_questions().resumes(move |_| Err(Failure::new(code, "why")));
        let answer = json!({"id": "q", "answer": true});
        let failure = answered(&host, "waiting", &answer).unwrap_err();
        assert_eq!(failure.code, code);
        assert_eq!((failure.status(), failure.message.as_str()), (status, text), "{code}");
    }
}

#[test]
fn failed_run_has_a_default_text() {
    let host =
        host_with_questions().run_ends(|run| ended(run, Outcome::Failed(Failure::timeout("late"))));
    let response = answered(&host, "waiting", &json!({"id": "q", "answer": true})).unwrap();
    let error = &response.json_body().unwrap()["error"];
    assert_eq!((response.status, error), (502, &json!(TEXTS.failed)));
}

#[test]
fn outcomes_have_responses() {
    let steps = json!([{"type": "model", "content": "hello", "toolCalls": []}]);
    let question = Interrupt {
        response_schema: Some(json!({"type": "object"})),
        ..Interrupt::new("q", "tools", json!({"kind": "tool_approval"}))
    };
    let questions = json!([{"id": "q", "payload": {"kind": "tool_approval"},
        "responseSchema": {"type": "object"}}]);
    let error = |text: &str| json!({"threadId": "thread-1", "error": text, "steps": steps});
    for (outcome, status, body) in [
        (
            Outcome::Completed,
            200,
            json!({"threadId": "thread-1", "reply": "hello", "steps": steps}),
        ),
        (
            Outcome::Interrupted(vec![question]),
            202,
            json!({"threadId": "thread-1", "reply": "hello", "questions": questions,
                "steps": steps}),
        ),
        (Outcome::Failed(Failure::timeout("late")), 502, error("timeout")),
        (Outcome::Cancelled, 409, error(TEXTS.cancelled)),
        (Outcome::Other("lost".to_owned()), 409, error(TEXTS.cancelled)),
    ] {
        let host = host().run_ends(move |run| ended(run, outcome.clone()));
        let response = host.run(|| {
            let run = CHAT.send(&post(&json!({"message": "hi"})))?;
            CHAT.wait(&run)?.respond(|failure| (502, failure.code.clone()))
        });
        let response = response.unwrap();
        assert_eq!((response.status, response.json_body().unwrap()), (status, body));
    }
}

#[test]
fn stream_has_the_requested_format() {
    let stream = |chat: Chat, format: Option<&str>| {
        let request = post(&json!({"message": "hi"}));
        let request =
            format.into_iter().fold(request, |it, format| it.with_query("format", format));
        let host = host();
        (host.run(|| chat.stream(&request)), host.started().len())
    };
    for (format, expected) in [
        (None, StreamFormat::Sse),
        (Some("sse"), StreamFormat::Sse),
        (Some("ai-sdk"), StreamFormat::AiSdk),
    ] {
        let response = stream(CHAT, format).0.unwrap();
        assert_eq!(response.headers, [("x-thread-id".to_owned(), "thread-1".to_owned())]);
        let hand_off = handed_off(response);
        assert_eq!((hand_off.thread_id.as_str(), &hand_off.format), ("thread-1", &expected));
        assert_eq!(hand_off.run_id.as_deref(), Some("run-1"));
        assert_eq!(json!(hand_off.extra), json!({"nodes": ["agent"]}));
    }
    let (response, started) = stream(CHAT, Some("morse"));
    assert_eq!((refused(response), started), ((Some(400), TEXTS.format.to_owned()), 0));
    let chat =
        CHAT.agent(Agent { model_node: "writer", ..Agent::DEFAULT }).cancel_on_disconnect(5_000);
    let hand_off = handed_off(stream(chat, None).0.unwrap());
    assert_eq!(
        json!(hand_off.extra),
        json!({"nodes": ["writer"], "on_disconnect": "cancel", "grace_ms": 5000})
    );
}

#[test]
fn conversations_are_shown_without_messages_of_the_active_run() {
    for (id, status, count) in
        [("done", "idle", 2), ("failed", "error", 1), ("running", "running", 1)]
    {
        let shown = json!(host().run(|| CHAT.show(id)).unwrap());
        assert_eq!((&shown["threadId"], &shown["status"]), (&json!(id), &json!(status)));
        assert_eq!(shown["messages"].as_array().unwrap().len(), count, "{shown}");
    }
    let chat = CHAT.agent(Agent { channel: "other", ..Agent::DEFAULT });
    let shown = json!(host().run(|| chat.show("done")).unwrap());
    assert_eq!(shown["messages"], json!([]));
}

#[test]
fn stream_of_the_active_run_is_joined() {
    for (format, expected) in [
        (None, StreamFormat::AiSdk),
        (Some("ai-sdk"), StreamFormat::AiSdk),
        (Some("sse"), StreamFormat::Sse),
    ] {
        let request = format.into_iter().fold(get(), |it, format| it.with_query("format", format));
        let hand_off = handed_off(host().run(|| CHAT.join("running", &request)).unwrap());
        assert_eq!((hand_off.run_id.as_deref(), hand_off.after), (Some("run-7"), None));
        assert_eq!(hand_off.format, expected, "{format:?}");
        assert_eq!(json!(hand_off.extra), json!({"nodes": ["agent"]}));
    }
    assert_eq!(host().run(|| CHAT.join("done", &get())).unwrap(), Response::empty(204));
    let unknown = get().with_query("format", "morse");
    let refusal = refused(host().run(|| CHAT.join("running", &unknown)));
    assert_eq!(refusal, (Some(400), TEXTS.format.to_owned()));
}

#[test]
fn only_an_active_run_is_cancelled() {
    let host = host();
    for id in ["running", "done"] {
        let shown = json!(host.run(|| CHAT.cancel(id)).unwrap());
        assert_eq!(shown["threadId"], id);
    }
    let run = RunRef { thread_id: "running".to_owned(), run_id: "run-7".to_owned() };
    assert_eq!(host.cancelled(), [run]);
}

#[test]
fn new_conversations_have_titles() {
    let chat = CHAT.message_chars(100).title_chars(6);
    let started = |body: Value| {
        let host = host();
        host.run(|| chat.send(&post(&body))).unwrap();
        host.started().remove(0).metadata
    };
    for (message, title) in [("hi", "hi"), (" Green tea\nand more", "Green"), ("线线\n", "线线")]
    {
        assert_eq!(started(json!({ "message": message })), Some(json!({ "title": title })));
    }
    let own_id = json!({"message": "hi", "threadId": "of-the-client"});
    assert_eq!(started(own_id), Some(json!({"title": "hi"})));
    assert_eq!(started(json!({"message": "hi", "threadId": "done"})), None);
    let host = host();
    host.run(|| CHAT.send(&post(&json!({"message": "hi"})))).unwrap();
    assert_eq!(host.started()[0].metadata, None);
}

fn listed(host: &FakeHost, query: &[(&str, &str)]) -> Value {
    let request = Request::new("GET", "/api/threads");
    let request = query.iter().fold(request, |it, (name, text)| it.with_query(name, *text));
    json!(host.run(|| CHAT.list(&request)).unwrap())
}

/// Returns the ids of a page.
fn ids(page: &Value) -> Vec<&str> {
    let threads = page["threads"].as_array().unwrap();
    threads.iter().map(|thread| thread["threadId"].as_str().unwrap()).collect()
}

#[test]
fn conversations_are_listed_in_pages() {
    let host = host();
    let all = listed(&host, &[]);
    assert_eq!(ids(&all), ["done", "empty", "failed", "running"]);
    assert_eq!(all["next"], Value::Null);
    let entry = json!({
        "threadId": "running", "title": null, "status": "running", "createdMs": 0, "updatedMs": 0,
    });
    assert_eq!(all["threads"][3], entry);
    let first = listed(&host, &[("limit", "3")]);
    assert_eq!(ids(&first), ["done", "empty", "failed"]);
    let next = first["next"].as_str().unwrap();
    assert_eq!(ids(&listed(&host, &[("limit", "3"), ("after", next)])), ["running"]);
    assert_eq!(ids(&listed(&host, &[("text", "FAIL")])), ["failed"]);
}

#[test]
fn invalid_parameters_of_lists_are_refused() {
    for name in ["after", "limit"] {
        let request = Request::new("GET", "/api/threads").with_query(name, "x");
        let refusal = refused(host().run(|| CHAT.list(&request)));
        assert_eq!(refusal, (Some(400), TEXTS.list.to_owned()), "{name}");
    }
    assert_eq!(listed(&host(), &[("offset", "x")]), listed(&host(), &[]));
}

fn title(body: &Value) -> Request {
    Request::new("PATCH", "/api/threads/done").with_body(body.to_string())
}

#[test]
fn conversations_are_renamed() {
    let host = host();
    let longest = "\u{957f}".repeat(200);
    for (title_text, shown) in [(" Tea\n", "Tea"), (longest.as_str(), longest.as_str())] {
        host.run(|| CHAT.rename("done", &title(&json!({ "title": title_text })))).unwrap();
        let page = listed(&host, &[]);
        assert_eq!((ids(&page)[0], &page["threads"][0]["title"]), ("done", &json!(shown)));
    }
    let too_long = "\u{957f}".repeat(201);
    for body in [json!({}), json!({"title": 7}), json!({"title": " "}), json!({"title": too_long})]
    {
        let refusal = refused(host.run(|| CHAT.rename("done", &title(&body))));
        assert_eq!(refusal, (Some(400), TEXTS.title.to_owned()), "{body}");
    }
}

#[test]
fn deleted_conversations_are_not_listed() {
    let host = host();
    for id in ["running", "failed"] {
        host.run(|| CHAT.delete(id)).unwrap();
    }
    assert_eq!(ids(&listed(&host, &[])), ["done", "empty"]);
    let run = RunRef { thread_id: "running".to_owned(), run_id: "run-7".to_owned() };
    assert_eq!(host.cancelled(), [run]);
}

#[test]
fn threads_of_other_graphs_are_not_found() {
    let missing = (Some(404), TEXTS.missing.to_owned());
    for id in ["nobody", "foreign", ""] {
        host().run(|| {
            assert_eq!(refused(CHAT.rename(id, &title(&json!({"title": "Tea"})))), missing, "{id}");
            assert_eq!(refused(CHAT.delete(id)), missing, "{id}");
            assert_eq!(refused(CHAT.show(id)), missing, "{id}");
            assert_eq!(refused(CHAT.join(id, &get())), missing, "{id}");
            assert_eq!(refused(CHAT.cancel(id)), missing, "{id}");
        });
    }
}
