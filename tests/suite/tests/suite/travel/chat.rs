//! Tests of the conversation: what is stored, how it stops, and how it continues.

use serde_json::{Value, json};
use wattle_kit::standin::Pattern;
use wattle_suite::server::Setup;
use wattle_suite::travel::{APIFY, CHAT, CHAT_MODEL, MISSING, Stream, TOKYO, UNSPLASH, working_on};

/// Returns whether the session has no run in progress.
fn settled(shown: &Value) -> bool {
    shown["status"] != "RUNNING"
}

fn steps(shown: &Value) -> Vec<(&str, &str)> {
    let steps = shown["steps"].as_array().unwrap().iter();
    steps.map(|it| (it["toolName"].as_str().unwrap(), it["status"].as_str().unwrap())).collect()
}

/// Returns the part of a tool in a message.
fn part<'a>(message: &'a Value, tool: &str) -> &'a Value {
    let parts = message["parts"].as_array().unwrap();
    let kind = format!("tool-{tool}");
    parts.iter().rfind(|part| part["type"] == kind.as_str()).unwrap()
}

#[tokio::test]
async fn s3_49_steps_state_and_messages_of_a_chat_are_stored() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let (session, said) = travel.make(TOKYO).await;
    let shown = travel.session(&session).await;

    assert_eq!((&shown["status"], &shown["currentStep"]), (&json!("COMPLETED"), &Value::Null));
    assert_eq!(shown["title"], "Tokyo food walk", "S3-15");
    for time in ["startedAt", "completedAt"] {
        assert!(shown[time].as_str().is_some_and(|it| it.ends_with('Z')), "{time}: {shown}");
    }
    let steps = steps(&shown);
    assert_eq!(steps.iter().map(|(tool, _)| *tool).collect::<Vec<_>>(), said.tools(), "S3-50");
    assert!(steps.iter().all(|(_, status)| *status == "SUCCESS"), "{steps:?}");
    let page = shown["steps"].as_array().unwrap().last().unwrap();
    assert!(page["durationMs"].is_u64() && page["output"]["html"].is_null(), "{page}");
    assert_eq!(page["output"]["html_length"], said.output("generate_handbook_html")["html_length"]);

    let state = &shown["state"];
    assert_eq!(state["handbookVersion"], 1, "S3-51");
    assert_eq!(state["previewPath"], format!("/api/guide/{session}"));
    assert_eq!(state["blocks"], said.output("resolve_spot_coordinates")["blocks"]);
    assert_eq!(state["context"]["video"]["title"], "Tokyo food walk");
    assert_eq!(state["handbookHtml"], said.output("generate_handbook_html")["html"]);

    let messages = shown["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    let prompt = format!("Create a travel guide from this video: {TOKYO}");
    assert_eq!(messages[0]["parts"][0]["text"], prompt.as_str(), "S3-01");
    assert_eq!(messages[1]["id"], said.of("start")[0]["messageId"]);
    for tool in said.tools() {
        let (part, told) = (part(&messages[1], tool), said.output(tool));
        assert_eq!((&part["state"], &part["output"]), (&json!("output-available"), &told));
    }
    let told = said.output("crawl_youtube_videos")["videos"][0]["subtitles"].clone();
    let whole = &state["context"]["videos"][0]["subtitles"];
    let head = told.as_str().unwrap().strip_suffix("... (cut)").unwrap();
    assert!(whole.as_str().unwrap().starts_with(head), "the tool returns the beginning");
    let texts = messages[1]["parts"].as_array().unwrap().iter();
    let texts: String =
        texts.filter(|it| it["type"] == "text").map(|it| it["text"].as_str().unwrap()).collect();
    assert_eq!(texts, said.text());
}

#[tokio::test]
async fn s3_08_a_later_message_continues_from_the_stored_state() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let (session, _) = travel.make(TOKYO).await;
    let again = travel.chat(&session, "please make 2 new pictures").await;
    assert_eq!(again.tools(), ["search_image", "generate_handbook_html"]);
    assert_eq!(again.output("search_image")["image_count"], 2);
    let shown = travel.session(&session).await;
    assert_eq!(shown["state"]["handbookVersion"], 2);
    assert_eq!(shown["messages"].as_array().map(Vec::len), Some(4));
    assert_eq!(server.requests_on(APIFY).len(), 1);
}

#[tokio::test]
async fn s3_05_invalid_requests_are_rejected_with_json() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    let messages = json!([{"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]);
    for (body, status) in [
        (json!({"messages": messages}), 400),
        (json!({"sessionId": "nobody", "messages": messages}), 404),
        (json!({"sessionId": session, "messages": [{"role": "user"}]}), 400),
        (json!("?"), 400),
    ] {
        let refused = travel.send("POST", CHAT, Some(&body)).await;
        assert_eq!(refused.status, status, "{body}");
        assert!(refused.body["error"].is_string(), "{refused:?}");
    }
    let extra = json!({"sessionId": session, "messages": messages, "id": "x", "trigger": "submit-message",
        "messageId": "m", "anything": {"else": true}});
    let talk = Stream::open(travel.request("POST", CHAT).json(&extra)).await;
    let said = talk.rest().await;
    assert!(said.is_done && said.tools().is_empty(), "the reply is a question: {:#?}", said.chunks);
    assert_eq!(travel.session(&session).await["status"], "COMPLETED");
}

#[tokio::test]
async fn s3_75_a_running_session_accepts_no_second_message() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    let gate = server.standin().gate(working_on("json_compilation_strict"));
    let stream = travel.stream(&session, TOKYO).await;
    gate.arrived(1).await.unwrap();
    let shown = travel.session(&session).await;
    assert_eq!(
        (&shown["status"], &shown["currentStep"]),
        (&json!("RUNNING"), &json!("build_travel_blocks"))
    );
    assert_eq!(shown["messages"].as_array().map(Vec::len), Some(1), "the stream has the rest");
    assert_eq!(steps(&shown)[2], ("build_travel_blocks", "RUNNING"));

    let second = travel.message(&session, "and Kyoto").await;
    let refused = travel.send("POST", CHAT, Some(&second)).await;
    assert_eq!(refused.status, 409);
    assert!(refused.body["error"].is_string(), "{refused:?}");
    gate.open();
    let said = stream.rest().await;
    assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    assert_eq!(travel.messages(&session).await.len(), 2, "the second message is not stored");
}

#[tokio::test]
async fn s3_65_a_stop_ends_the_step_and_a_later_message_continues_there() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    let gate = server.standin().gate(working_on("json_compilation_strict"));
    let stream = travel.stream(&session, TOKYO).await;
    gate.arrived(1).await.unwrap();
    let stopped = travel.cancel(&session).await.expect(200);
    assert_eq!(stopped["status"], "CANCELLED");
    assert!(stopped["cancelledAt"].is_string() && stopped["currentStep"].is_null(), "{stopped}");
    let said = stream.rest().await;
    assert_eq!(said.of("abort").len(), 1, "{:#?}", said.chunks);

    let shown = travel.session(&session).await;
    assert_eq!(
        steps(&shown)[1..],
        [("crawl_youtube_videos", "SUCCESS"), ("build_travel_blocks", "CANCELLED")]
    );
    let kept = &shown["messages"][1];
    assert_eq!(part(kept, "crawl_youtube_videos")["state"], "output-available", "S3-66");
    assert_eq!(part(kept, "build_travel_blocks")["state"], "output-error");
    assert_eq!(travel.cancel(&session).await.expect(200)["status"], "CANCELLED", "S3-71");

    gate.open();
    let said = travel.chat(&session, "go on").await;
    assert_eq!(said.tools()[0], "build_travel_blocks", "S3-09: finished steps are not repeated");
    assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    assert_eq!(server.requests_on(APIFY).len(), 1);
    let shown = travel.session(&session).await;
    assert_eq!((&shown["status"], &shown["cancelledAt"]), (&json!("COMPLETED"), &Value::Null));
    assert_eq!(travel.cancel(&session).await.expect(200)["status"], "COMPLETED", "S3-71");
}

#[tokio::test]
async fn s3_66_a_disconnected_page_stops_the_run() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    let gate = server.standin().gate(Pattern::path(UNSPLASH));
    let mut stream = travel.stream(&session, TOKYO).await;
    gate.arrived(1).await.unwrap();
    stream.until_type("tool-output-available").await;
    drop(stream);
    let path = format!("/api/sessions/{session}");
    let shown = server.until(&path, |answer| settled(&answer.body)).await.expect(200);
    assert_eq!(shown["status"], "CANCELLED");
    assert_eq!(steps(&shown).last(), Some(&("search_image", "CANCELLED")));
    assert!(travel.reconnect(&session).await.is_none());
}

#[tokio::test]
async fn s3_66_a_partial_completion_is_stored() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let (session, _) = travel.make(TOKYO).await;
    let gate = server.standin().stream_gate(Pattern::path(CHAT_MODEL));
    let mut stream = travel.stream(&session, "thank you").await;
    gate.arrived(1).await.unwrap();
    gate.release(3);
    let delta = stream.until_type("text-delta").await;
    travel.cancel(&session).await.expect(200);
    let messages = travel.messages(&session).await;
    let last = messages.last().unwrap();
    assert_eq!(last["role"], "assistant");
    let text = last["parts"][1]["text"].as_str().unwrap();
    assert!(text.starts_with(delta["delta"].as_str().unwrap()), "{text}");
}

#[tokio::test]
async fn s3_67_a_failure_is_reported_and_a_later_run_clears_it() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let (session, said) = travel.make(MISSING).await;
    assert!(said.tool_error("crawl_youtube_videos").contains("no video found"), "S3-17");
    let shown = travel.session(&session).await;
    assert_eq!(
        (&shown["status"], &shown["failedStep"]),
        (&json!("ERROR"), &json!("crawl_youtube_videos"))
    );
    assert!(shown["lastError"].as_str().is_some_and(|it| it.contains("no video found")), "{shown}");
    assert_eq!(shown["completedAt"], Value::Null);
    let step = shown["steps"].as_array().unwrap().last().unwrap();
    assert_eq!((&step["status"], &step["errorMessage"]), (&json!("ERROR"), &shown["lastError"]));

    let gate = server.standin().gate(Pattern::path(CHAT_MODEL));
    let stream = travel.stream(&session, "hm").await;
    gate.arrived(1).await.unwrap();
    let running = travel.session(&session).await;
    assert_eq!(
        (&running["status"], &running["failedStep"], &running["lastError"]),
        (&json!("RUNNING"), &Value::Null, &Value::Null),
        "S3-73"
    );
    assert_eq!(running["startedAt"], shown["startedAt"], "the first start is kept");
    gate.open();
    stream.rest().await;
}

#[tokio::test]
async fn s3_04_a_reconnected_page_receives_the_same_stream() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    assert!(travel.reconnect(&session).await.is_none(), "no run is in progress");
    let gate = server.standin().gate(Pattern::path(UNSPLASH));
    let stream = travel.stream(&session, TOKYO).await;
    gate.arrived(1).await.unwrap();
    let again = travel.reconnect(&session).await.unwrap();
    gate.open();
    let (first, again) = tokio::join!(stream.rest(), again.rest());
    assert_eq!(first.text(), again.text());
    for tool in first.tools() {
        assert_eq!(first.output(tool), again.output(tool));
    }
    assert!(travel.reconnect(&session).await.is_none(), "the run has ended");
}

#[tokio::test]
async fn s3_74_unfinished_calls_from_a_page_are_not_sent_to_the_model() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    let call = json!({"type": "tool-crawl_youtube_videos", "toolCallId": "c1",
        "state": "input-available", "input": {"userText": "x"}});
    let say = |text: &str| json!([{"type": "text", "text": text}]);
    let body = json!({"sessionId": session, "messages": [
        {"id": "u1", "role": "user", "parts": say("hello")},
        {"id": "a1", "role": "assistant", "parts": [{"type": "step-start"}, say("Well")[0], call]},
        {"id": "u2", "role": "user", "parts": say("and?")},
    ]});
    let said = Stream::open(travel.request("POST", CHAT).json(&body)).await.rest().await;
    assert!(said.is_done && said.errors().is_empty(), "{:#?}", said.chunks);
    let asked = server.requests_on(CHAT_MODEL).remove(0).body.unwrap();
    let messages = asked["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "system", "user"]);
    assert!(messages.iter().all(|it| it["tool_calls"].is_null()), "{asked}");
}

#[tokio::test]
async fn a_regenerated_answer_replaces_the_first() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    travel.chat(&session, "hello").await;
    let before = travel.messages(&session).await;
    assert_eq!(before.len(), 2);
    let body = json!({"sessionId": session, "messages": [before[0]], "messageId": before[1]["id"],
        "trigger": "regenerate-message"});
    Stream::open(travel.request("POST", CHAT).json(&body)).await.rest().await;
    let after = travel.messages(&session).await;
    assert_eq!(after.len(), 2);
    assert_eq!(after[0]["id"], before[0]["id"]);
    assert_ne!(after[1]["id"], before[1]["id"]);
}

#[tokio::test]
async fn a_long_session_remains_readable() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    // Each message is within the limit of one request, and all of them together exceed the limit of
    // a response.
    for number in 0..3 {
        let text = |id: &str, role: &str, text: &str| {
            json!({"id": format!("{id}{number}"),
            "role": role, "parts": [{"type": "text", "text": text}]})
        };
        let long = text("a", "assistant", &"x".repeat(2 << 20));
        let messages = json!([text("q", "user", "hello"), long, text("u", "user", "hello")]);
        let body = json!({"sessionId": session, "messages": messages});
        Stream::open(travel.request("POST", CHAT).json(&body)).await.rest().await;
    }
    let shown = travel.session(&session).await;
    assert_eq!(shown["truncated"], true);
    let messages = shown["messages"].as_array().unwrap();
    let ids: Vec<&str> = messages.iter().filter_map(|it| it["id"].as_str()).collect();
    assert!(ids.contains(&"u2") && ids.contains(&"a2") && !ids.contains(&"a0"), "{ids:?}");
}
