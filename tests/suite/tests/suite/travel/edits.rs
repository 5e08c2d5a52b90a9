//! Tests of blocks that a person edits: two pages on one session, edits between two runs, and a
//! page that lost its stream.

use serde_json::{Value, json};
use wattle_kit::standin::Pattern;
use wattle_run::ports::Clock;
use wattle_suite::answer::Answer;
use wattle_suite::server::Setup;
use wattle_suite::travel::{CHAT_MODEL, NOMINATIM, OSAKA, SESSIONS, TOKYO, Travel, working_on};

fn at(session: &str) -> String {
    format!("{SESSIONS}/{session}/state")
}

/// Saves edits like a page that knows this revision.
async fn save(travel: &Travel<'_>, session: &str, blocks: &Value, known: Option<&str>) -> Answer {
    let request = travel.request("PATCH", &at(session)).json(&json!({ "blocks": blocks }));
    Answer::of(match known {
        Some(tag) => request.header("if-match", tag),
        None => request,
    })
    .await
}

/// Requests the state like a page that checks for edits of others.
async fn look(travel: &Travel<'_>, session: &str, known: &str) -> Answer {
    Answer::of(travel.request("GET", &at(session)).header("if-none-match", known)).await
}

/// Returns the blocks with another title for the first one.
fn renamed(blocks: &Value, title: &str) -> Value {
    let mut blocks = blocks.clone();
    blocks[0]["title"] = json!(title);
    blocks
}

#[tokio::test]
async fn s3_52_two_pages_on_one_session_agree() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let (session, _) = travel.make(OSAKA).await;
    let seen = travel.send("GET", &at(&session), None).await;
    let old = seen.header("etag").to_owned();
    let blocks = seen.body["blocks"].clone();
    assert_eq!(seen.body, travel.session(&session).await["state"]);
    assert_eq!(look(&travel, &session, &old).await.status, 304);

    let first = save(&travel, &session, &renamed(&blocks, "First page"), Some(&old)).await;
    let new = first.header("etag").to_owned();
    assert_eq!((first.status, new != old), (200, true));
    let second = save(&travel, &session, &renamed(&blocks, "Second page"), Some(&old)).await;
    assert_eq!((second.status, second.header("etag")), (412, new.as_str()));
    assert_eq!(second.body["state"], first.body, "the response has the stored state");
    assert!(second.body["error"].is_string(), "{second:?}");

    let told = look(&travel, &session, &old).await;
    assert_eq!((told.status, &told.body), (200, &first.body));
    let again = save(&travel, &session, &renamed(&blocks, "Second page"), Some(&new)).await;
    assert_eq!(again.status, 200);
    let last = save(&travel, &session, &renamed(&blocks, "Third page"), None).await;
    assert_eq!(last.status, 200, "without a condition the last edit is stored");
    let shown = travel.session(&session).await["state"].clone();
    assert_eq!((&shown, &shown["blocks"][0]["title"]), (&last.body, &json!("Third page")));
    assert_eq!(shown["handbookVersion"], 1);
}

#[tokio::test]
async fn s3_52_edits_within_a_millisecond_have_different_revisions() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    let revision = |answer: Answer| answer.expect(200)["revision"].as_i64().unwrap();
    let made = revision(travel.send("GET", &at(&session), None).await);
    let first = revision(save(&travel, &session, &json!([]), None).await);
    let second = revision(save(&travel, &session, &json!([]), None).await);
    let clock = server.clock();
    clock.set_now_ms(Clock::now_ms(clock) - 3_600_000);
    let third = revision(save(&travel, &session, &json!([]), None).await);
    assert!(made < first && first < second && second < third, "{made} {first} {second} {third}");
}

#[tokio::test]
async fn s3_52_s3_65_a_guide_contains_the_blocks_that_were_edited_after_a_stop() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    let gate = server.standin().gate(working_on("spot_query_normalization"));
    let stream = travel.stream(&session, TOKYO).await;
    gate.arrived(1).await.unwrap();
    travel.cancel(&session).await.expect(200);
    stream.rest().await;
    gate.open();
    let blocks = travel.session(&session).await["state"]["blocks"].clone();
    let place = blocks.as_array().unwrap().iter().position(|it| it["title"] == "Tokyo Tower");
    let mut edited = blocks.clone();
    edited[place.unwrap()]["title"] = json!("Senso-ji Temple");
    edited[place.unwrap()]["description"] = json!("The temple instead of the tower.");
    save(&travel, &session, &edited, None).await.expect(200);

    let said = travel.chat(&session, "go on").await;
    assert_eq!(said.tools()[0], "resolve_spot_coordinates", "{:#?}", said.chunks);
    let asked = server.requests_on(NOMINATIM);
    assert!(asked.iter().all(|entry| entry.query["q"] != "Tokyo Tower"), "{asked:?}");
    let page = travel.guide(&session).await.expect(200);
    let page = page.as_str().unwrap();
    assert!(page.contains("The temple instead of the tower.") && !page.contains("Tokyo Tower"));
}

#[tokio::test]
async fn s3_59_s3_60_blocks_can_be_edited_without_changes_to_the_page() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let (session, _) = travel.make(OSAKA).await;
    let before = travel.session(&session).await["state"].clone();
    let mut edited = renamed(&before["blocks"], "Renamed by hand");
    edited[0]["location"] = json!({"lat": -33.5, "lng": 151.25});
    edited[1]["type"] = json!("food");
    let paid = server.paid().len();
    let after = save(&travel, &session, &edited, None).await.expect(200);
    assert_eq!(after["blocks"], edited);
    let spots = after["spotBlocks"].as_array().unwrap();
    assert_eq!((spots.len(), &spots[0]["title"]), (1, &json!("Renamed by hand")));
    assert_eq!(after["handbookHtml"], before["handbookHtml"], "the page is not generated again");
    assert_eq!(server.paid().len(), paid);
    for (wrong, why) in [
        (json!([edited[0], edited[0]]), "`blocks[1].block_id`"),
        (renamed(&json!([{"block_id": "a"}]), "x"), "no list of blocks"),
        (json!({}), "no list of blocks"),
    ] {
        let refused = save(&travel, &session, &wrong, None).await;
        assert_eq!(refused.status, 400, "{wrong}");
        assert!(refused.body["error"].as_str().unwrap().contains(why), "{refused:?}");
    }
}

#[tokio::test]
async fn s3_66_an_interrupted_stream_is_received_completely_after_a_reconnect() {
    let patient = "disconnect_grace_ms = 60000";
    let setup = Setup::travel().await.replace("disconnect_grace_ms = 0", patient);
    let server = setup.start().await;
    let travel = server.travel();
    let (session, _) = travel.make(OSAKA).await;
    let gate = server.standin().stream_gate(Pattern::path(CHAT_MODEL));
    let mut broken = travel.stream(&session, "thank you").await;
    gate.arrived(1).await.unwrap();
    gate.release(3);
    let heard = broken.until_type("text-delta").await["delta"].as_str().unwrap().to_owned();
    drop(broken);
    let again = travel.reconnect(&session).await.expect("the run continues");
    gate.open();
    let said = again.rest().await;
    assert!(said.is_done && said.of("abort").is_empty(), "{:#?}", said.chunks);
    assert!(said.text().starts_with(&heard) && said.text().len() > heard.len());
    let shown = travel.session(&session).await;
    assert_eq!(shown["status"], "COMPLETED");
    let kept = shown["messages"].as_array().unwrap().last().unwrap();
    let texts = kept["parts"].as_array().unwrap().iter().filter(|it| it["type"] == "text");
    let kept: String = texts.map(|it| it["text"].as_str().unwrap()).collect();
    assert_eq!(kept, said.text(), "no text is repeated or lost");
}

#[tokio::test]
async fn s3_68_the_final_time_is_that_of_the_first_run_or_of_the_creation() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    let made = travel.session(&session).await;
    assert_eq!(made["finalTime"], made["createdAt"]);
    server.clock().advance_ms(60_000);
    travel.chat(&session, OSAKA).await;
    let ended = travel.session(&session).await;
    assert_eq!(ended["finalTime"], ended["startedAt"]);
    assert_ne!(ended["finalTime"], ended["createdAt"]);
    let listed = travel.send("GET", SESSIONS, None).await.expect(200);
    assert_eq!(listed["sessions"][0]["finalTime"], ended["finalTime"]);
}
