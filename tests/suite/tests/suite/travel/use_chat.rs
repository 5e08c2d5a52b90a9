//! Tests of what users of the unmodified `useChat` see, in each of its current versions.

mod user;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use wattle_kit::need;
use wattle_kit::needs::LeftOut;
use wattle_kit::standin::{Fault, FaultRule, Pattern, StreamQuirks, StreamVariant};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::travel::{APIFY, CHAT, CHAT_MODEL, SESSIONS, TOKYO};

use self::user::{MAJORS, Seen, User};

/// The tools in the order in which a guide is made.
const STEPS: [&str; 6] = [
    "parse_youtube_input",
    "crawl_youtube_videos",
    "build_travel_blocks",
    "resolve_spot_coordinates",
    "search_image",
    "generate_handbook_html",
];

/// The models of the conversation, and how often each answers before it fails.
const MODELS: [(&str, u32); 2] = [("deepseek-chat", 1), ("deepseek-reasoner", 0)];

/// Starts a server that waits this long for a page to reconnect.
async fn patient(grace: Duration) -> TestServer {
    let grace = format!("disconnect_grace_ms = {}", grace.as_millis());
    Setup::travel().await.replace("disconnect_grace_ms = 0", &grace).start().await
}

/// Starts a server that stops a run as soon as no page is connected.
async fn served() -> TestServer {
    patient(Duration::ZERO).await
}

/// Returns one user with a new session for each version.
async fn users(server: &TestServer) -> Result<Vec<(User, String)>, LeftOut> {
    let mut users = Vec::new();
    for major in MAJORS {
        let session = server.travel().create().await;
        users.push((User::of(major, &server.url(""))?, session));
    }
    Ok(users)
}

/// Returns the message that requests a guide.
fn question() -> String {
    format!("Please make a travel guide of {TOKYO}")
}

/// Returns the cards of a complete guide.
fn complete() -> Vec<(&'static str, &'static str)> {
    STEPS.into_iter().map(|step| (step, "output-available")).collect()
}

/// Returns the keys of a document.
fn keys(document: &Value) -> BTreeSet<&str> {
    document.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

/// Returns the status of a session on the server.
async fn status(server: &TestServer, session: &str) -> Value {
    server.travel().session(session).await["status"].clone()
}

/// Makes the model of the conversation stream in an unusual way after `skip` completions.
fn streams(server: &TestServer, variant: StreamVariant, skip: u32) {
    let fault = Fault::Stream(StreamQuirks::of(variant));
    server.standin().fault(FaultRule::new(Pattern::model(MODELS[0].0), fault).skip(skip));
}

/// Checks that a newly opened page shows the same as this one.
async fn is_kept(user: &mut User, session: &str, seen: &Seen) {
    user.leave().await;
    let again = user.open(session).await;
    assert_eq!(again.messages(), seen.messages());
    assert_eq!((again.statuses(), again.error()), (vec!["ready"], ""));
}

/// Returns what two pages with different data have in common: the kinds and states of their parts,
/// and all texts.
fn likeness(seen: &Seen, session: &str) -> Value {
    let part = |part: &Value| {
        let text = part["text"].as_str().map(|text| text.replace(session, "<session>"));
        json!([part["type"], part["tool"], part["state"], text, keys(&part["output"])])
    };
    let parts = |message: &Value| -> Vec<Value> {
        message["parts"].as_array().into_iter().flatten().map(part).collect()
    };
    seen.messages().iter().map(|message| json!([message["role"], parts(message)])).collect()
}

#[tokio::test]
async fn s3_04_s3_05_s3_57_s3_66_the_page_shows_each_step_and_again_when_reopened() {
    let server = served().await;
    for (mut user, session) in need!(users(&server).await) {
        assert!(user.open(&session).await.messages().is_empty());
        let seen = user.ask(&question()).await;
        assert_eq!((seen.error(), seen.roles()), ("", vec!["user", "assistant"]));
        assert_eq!(seen.messages()[0]["parts"][0]["text"], question());
        assert_eq!(seen.tools(), complete());
        assert_eq!(seen.tool("build_travel_blocks")["output"]["blockCount"], 6);
        let page = &seen.tool("generate_handbook_html")["output"];
        assert!(page["html"].as_str().unwrap().starts_with("<!"), "{page:#}");
        let path = format!("/api/guide/{session}");
        assert_eq!(page["preview_url"], path);
        assert!(seen.text().contains(&path), "{}", seen.text());
        let sent = seen.requests("POST", CHAT);
        assert_eq!(
            keys(&sent[0]["body"]),
            BTreeSet::from(["id", "messages", "sessionId", "trigger"])
        );
        assert_eq!(status(&server, &session).await, "COMPLETED");
        is_kept(&mut user, &session, &seen).await;
        // A page that would continue the answer finds that there is none.
        user.leave().await;
        user.come_back(&session).await;
        let again = user.until("ready").await;
        let path = format!("{CHAT}/{session}/stream");
        assert_eq!(again.requests("GET", &path)[0]["status"], 204);
        assert_eq!((again.messages(), again.error()), (seen.messages(), ""));
    }
}

#[tokio::test]
async fn s3_04_the_session_and_the_messages_are_enough() {
    let server = served().await;
    for (mut user, session) in need!(users(&server).await) {
        user.open_bare(&session).await;
        // The answer is a question: it takes no tools.
        let seen = user.ask("hi").await;
        assert_eq!((seen.roles(), seen.error()), (vec!["user", "assistant"], ""));
        let sent = seen.requests("POST", CHAT);
        assert_eq!(keys(&sent[0]["body"]), BTreeSet::from(["messages", "sessionId"]));
        is_kept(&mut user, &session, &seen).await;
    }
}

#[tokio::test]
async fn s3_04_s3_49_a_further_message_contains_the_whole_conversation() {
    let server = served().await;
    for (mut user, session) in need!(users(&server).await) {
        user.open(&session).await;
        user.ask(&question()).await;
        let seen = user.ask("Please make the pictures again").await;
        assert_eq!(seen.roles(), ["user", "assistant", "user", "assistant"]);
        let again = ["search_image", "generate_handbook_html"];
        assert_eq!(seen.tools(), again.map(|step| (step, "output-available")));
        let sent = seen.requests("POST", CHAT);
        let counts: Vec<usize> =
            sent.iter().map(|it| it["body"]["messages"].as_array().unwrap().len()).collect();
        assert_eq!(counts, [1, 3]);
        is_kept(&mut user, &session, &seen).await;
    }
}

#[tokio::test]
async fn s3_65_s3_74_a_stopped_page_keeps_its_messages_and_continues() {
    let server = served().await;
    for (mut user, session) in need!(users(&server).await) {
        let gate = server.standin().gate(Pattern::path(APIFY));
        user.open(&session).await;
        user.send(&question()).await;
        user.until_tool("crawl_youtube_videos", "input-available").await;
        let seen = user.stop().await;
        let cards = [
            ("parse_youtube_input", "output-available"),
            ("crawl_youtube_videos", "input-available"),
        ];
        assert_eq!((seen.tools(), seen.error()), (cards.to_vec(), ""));
        let statuses = seen.statuses();
        assert_eq!((statuses.contains(&"streaming"), statuses.last()), (true, Some(&"ready")));
        assert_eq!(seen.requests("POST", &format!("{SESSIONS}/{session}/cancel")).len(), 1);
        assert_eq!(status(&server, &session).await, "CANCELLED");
        gate.open();
        let seen = user.ask("Please go on").await;
        let rest: Vec<_> = complete().split_off(1);
        assert_eq!((seen.tools(), seen.error()), (rest, ""));
        assert_eq!(status(&server, &session).await, "COMPLETED");
    }
}

#[tokio::test]
async fn s3_66_a_reopened_page_continues_the_answer() {
    let server = patient(Duration::from_mins(1)).await;
    for (mut user, session) in need!(users(&server).await) {
        let other = server.travel().create().await;
        user.open(&other).await;
        let expected = likeness(&user.ask(&question()).await, &other);
        user.leave().await;
        let gate = server.standin().gate(Pattern::path(APIFY));
        user.open(&session).await;
        user.send(&question()).await;
        user.until_tool("crawl_youtube_videos", "input-available").await;
        user.leave().await;
        user.come_back(&session).await;
        let seen = user.until_tool("crawl_youtube_videos", "input-available").await;
        assert_eq!(seen.roles(), ["user", "assistant"]);
        gate.open();
        let seen = user.until("ready").await;
        assert_eq!(likeness(&seen, &session), expected);
        is_kept(&mut user, &session, &seen).await;
    }
}

#[tokio::test]
async fn s3_04_the_last_answer_can_be_regenerated() {
    let server = served().await;
    for (mut user, session) in need!(users(&server).await) {
        user.open(&session).await;
        let first = user.ask(&question()).await;
        let second = user.ask_again().await;
        assert_eq!((second.roles(), second.error()), (vec!["user", "assistant"], ""));
        assert_eq!(second.messages()[0], first.messages()[0]);
        assert_ne!(second.messages()[1]["id"], first.messages()[1]["id"]);
        let sent = second.requests("POST", CHAT);
        assert_eq!(sent[1]["body"]["trigger"], "regenerate-message");
        is_kept(&mut user, &session, &second).await;
    }
}

#[tokio::test]
async fn s3_05_s3_75_the_page_shows_error_messages_of_the_server() {
    let server = served().await;
    for (mut user, session) in need!(users(&server).await) {
        user.open("unknown").await;
        user.send(&question()).await;
        let seen = user.until("error").await;
        let said: Value = serde_json::from_str(seen.error()).unwrap();
        assert!(said["error"].is_string(), "{said}");
        assert_eq!(seen.requests("POST", CHAT)[0]["status"], 404);
        user.leave().await;
        let gate = server.standin().gate(Pattern::path(APIFY));
        let (first, _) = (user.open(&session).await, user.send(&question()).await);
        assert!(first.messages().is_empty());
        user.until_tool("crawl_youtube_videos", "input-available").await;
        let busy = need!(second_page(&server, &session).await);
        assert_eq!(busy, 409);
        gate.open();
        assert_eq!(user.until("ready").await.tools(), complete());
    }
}

/// Returns the status of a message that another page sends during the run.
async fn second_page(server: &TestServer, session: &str) -> Result<Value, LeftOut> {
    let mut user = User::of(MAJORS[0], &server.url(""))?;
    user.open(session).await;
    user.send("Are you there?").await;
    let seen = user.until("error").await;
    assert!(seen.error().contains("error"), "{}", seen.error());
    Ok(seen.requests("POST", CHAT)[0]["status"].clone())
}

#[tokio::test]
async fn s3_47_s3_67_a_failure_during_a_guide_is_shown_and_can_be_retried() {
    let server = served().await;
    for (mut user, session) in need!(users(&server).await) {
        let down = Fault::Status { status: 500, retry_after: None, body: None };
        for (model, skip) in MODELS {
            server.standin().fault(FaultRule::new(Pattern::model(model), down.clone()).skip(skip));
        }
        user.open(&session).await;
        user.send(&question()).await;
        let seen = user.until("error").await;
        assert!(!seen.error().is_empty());
        assert_eq!(seen.tools(), [("parse_youtube_input", "output-available")]);
        assert_eq!(status(&server, &session).await, "ERROR");
        server.standin().clear_faults();
        let seen = user.ask_again().await;
        assert_eq!((seen.tools().last(), seen.error()), (complete().last(), ""));
        assert_eq!(status(&server, &session).await, "COMPLETED");
    }
}

#[tokio::test]
async fn s3_57_s3_67_the_card_of_a_failed_tool_shows_its_error() {
    let server = served().await;
    for (mut user, session) in need!(users(&server).await) {
        let unpaid = Fault::Status { status: 402, retry_after: None, body: None };
        server.standin().fault(FaultRule::new(Pattern::path(APIFY), unpaid));
        user.open(&session).await;
        let seen = user.ask(&question()).await;
        assert_eq!(seen.error(), "", "the answer reports the failure");
        let card = seen.tool("crawl_youtube_videos");
        assert_eq!(card["state"], "output-error");
        assert!(card["error"].as_str().is_some_and(|error| !error.is_empty()), "{card}");
        assert_eq!(status(&server, &session).await, "ERROR");
        server.standin().clear_faults();
        is_kept(&mut user, &session, &seen).await;
    }
}

#[tokio::test]
async fn s3_66_closing_the_page_cancels_the_run_and_keeps_finished_steps() {
    let server = served().await;
    for (mut user, session) in need!(users(&server).await) {
        let gate = server.standin().gate(Pattern::path(APIFY));
        user.open(&session).await;
        user.send(&question()).await;
        user.until_tool("crawl_youtube_videos", "input-available").await;
        user.leave().await;
        let path = format!("{SESSIONS}/{session}");
        server.until(&path, |answer| answer.body["status"] == "CANCELLED").await;
        gate.open();
        let seen = user.come_back(&session).await;
        let cards =
            [("parse_youtube_input", "output-available"), ("crawl_youtube_videos", "output-error")];
        assert_eq!(seen.tools(), cards);
        assert!(seen.tool("crawl_youtube_videos")["error"].as_str().unwrap().contains("cancel"));
        user.until("ready").await;
        let seen = user.ask("Please go on").await;
        assert_eq!((seen.tools(), seen.error()), (complete().split_off(1), ""));
        is_kept(&mut user, &session, &seen).await;
    }
}

#[tokio::test]
async fn s3_47_s3_66_the_text_of_an_interrupted_completion_is_kept() {
    let server = served().await;
    for (mut user, session) in need!(users(&server).await) {
        streams(&server, StreamVariant::Cut, 1);
        user.open(&session).await;
        user.send(&question()).await;
        let seen = user.until("error").await;
        let said = seen.text().to_owned();
        assert!(!said.is_empty() && !seen.error().is_empty(), "{seen:#?}");
        server.standin().clear_faults();
        user.leave().await;
        let seen = user.open(&session).await;
        assert_eq!((seen.text(), seen.error()), (said.as_str(), ""));
        assert_eq!(seen.tools(), [("parse_youtube_input", "output-available")]);
        let seen = user.ask("Please go on").await;
        assert_eq!((seen.tools(), seen.error()), (complete().split_off(1), ""));
        assert_eq!(status(&server, &session).await, "COMPLETED");
    }
}

#[tokio::test]
async fn s3_57_s3_76_reasoning_is_shown_and_sent_back_to_the_model() {
    let server = served().await;
    for (mut user, session) in need!(users(&server).await) {
        streams(&server, StreamVariant::Reasoning, 0);
        user.open(&session).await;
        let seen = user.ask(&question()).await;
        assert_eq!((seen.tools(), seen.error()), (complete(), ""));
        let reasoning: Vec<&Value> =
            seen.parts().iter().filter(|part| part["type"] == "reasoning").collect();
        assert_eq!(reasoning.len(), STEPS.len() + 1, "{seen:#?}");
        assert!(reasoning.iter().all(|part| part["state"] == "done"), "{reasoning:#?}");
        is_kept(&mut user, &session, &seen).await;
        server.standin().clear_requests();
        user.ask("Thank you").await;
        let asked = server.requests_on(CHAT_MODEL)[0].body.clone().unwrap();
        let messages = asked["messages"].as_array().unwrap().iter();
        let calling: Vec<&Value> = messages.filter(|it| it.get("tool_calls").is_some()).collect();
        assert_eq!(calling.len(), STEPS.len(), "{asked:#}");
        assert!(calling.iter().all(|it| it["reasoning_content"].is_string()), "{calling:#?}");
        server.standin().clear_faults();
    }
}
