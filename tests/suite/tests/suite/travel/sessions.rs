//! Tests of sessions as resources: creation, lists, titles, edits, deletion, and the page.

use serde_json::{Value, json};
use wattle_suite::server::Setup;
use wattle_suite::travel::{SESSIONS, TOKYO, Travel, working_on};

fn at(session: &str) -> String {
    format!("{SESSIONS}/{session}")
}

async fn patch(travel: &Travel<'_>, session: &str, body: &Value) -> wattle_suite::answer::Answer {
    travel.send("PATCH", &format!("{SESSIONS}/{session}/state"), Some(body)).await
}

fn block(id: &str, title: &str) -> Value {
    json!({"block_id": id, "type": "spot", "title": title, "description": "d",
        "location": {"lat": 1.0, "lng": 2.0}, "smart_tags": []})
}

#[tokio::test]
async fn s3_54_sessions_can_be_created_listed_renamed_and_deleted() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let made = travel.send("POST", SESSIONS, Some(&json!({}))).await.expect(201);
    assert_eq!((&made["title"], &made["status"]), (&json!("Untitled Guide"), &json!("IDLE")));
    let first = made["id"].as_str().unwrap();
    let named = travel.send("POST", SESSIONS, Some(&json!({"title": "Mine"}))).await.expect(201);
    let second = named["id"].as_str().unwrap();

    let listed = travel.send("GET", SESSIONS, None).await.expect(200);
    let ids: Vec<&str> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    assert!(ids.len() == 2 && ids.contains(&first) && ids.contains(&second), "{listed}");
    let page = travel.send("GET", &format!("{SESSIONS}?limit=1&offset=1"), None).await.expect(200);
    assert_eq!(page["sessions"].as_array().map(Vec::len), Some(1));

    let title = json!({"title": "Hers"});
    let renamed = travel.send("PATCH", &at(first), Some(&title)).await.expect(200);
    assert_eq!(renamed["title"], "Hers");
    for wrong in [json!({}), json!({"title": ""}), json!({"status": "COMPLETED"}), json!([])] {
        assert_eq!(travel.send("PATCH", &at(first), Some(&wrong)).await.status, 400, "{wrong}");
    }
    let shown = travel.session(first).await;
    assert_eq!(
        (&shown["title"], &shown["messages"], &shown["steps"]),
        (&json!("Hers"), &json!([]), &json!([]))
    );

    travel.send("DELETE", &at(first), None).await.expect(204);
    for (method, path) in [
        ("GET", at(first)),
        ("DELETE", at(first)),
        ("POST", format!("{}/cancel", at(first))),
        ("GET", format!("/api/chat/{first}/stream")),
    ] {
        assert_eq!(travel.send(method, &path, None).await.status, 404, "{method} {path}");
    }
}

#[tokio::test]
async fn s3_15_a_title_of_the_user_is_kept() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let made = travel.send("POST", SESSIONS, Some(&json!({"title": "My trip"}))).await.expect(201);
    let session = made["id"].as_str().unwrap();
    travel.chat(session, TOKYO).await;
    assert_eq!(travel.session(session).await["title"], "My trip");
}

#[tokio::test]
async fn a_running_session_can_be_deleted() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let session = travel.create().await;
    let gate = server.standin().gate(working_on("json_compilation_strict"));
    let stream = travel.stream(&session, TOKYO).await;
    gate.arrived(1).await.unwrap();
    travel.send("DELETE", &at(&session), None).await.expect(204);
    stream.rest().await;
    assert_eq!(travel.send("GET", &at(&session), None).await.status, 404);
    let thread = server.get(&format!("/api/v1/threads/{session}")).await;
    assert_eq!(thread.status, 404, "{thread:?}");
}

#[tokio::test]
async fn sessions_are_visible_to_their_tenant_only() {
    let server = Setup::travel().await.with_tenants().start().await;
    let (acme, bolt) = (server.travel_of("acme"), server.travel_of("bolt"));
    let (session, said) = acme.make(TOKYO).await;
    assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    let message = acme.message(&session, "more").await;
    for (method, path, body) in [
        ("GET", at(&session), None),
        ("PATCH", at(&session), Some(json!({"title": "x"}))),
        ("PATCH", format!("{}/state", at(&session)), Some(json!({"blocks": []}))),
        ("POST", format!("{}/cancel", at(&session)), None),
        ("DELETE", at(&session), None),
        ("POST", "/api/chat".to_owned(), Some(message)),
        ("GET", format!("/api/chat/{session}/stream"), None),
        ("GET", format!("/api/guide/{session}"), None),
        ("GET", format!("/api/handbook/{session}"), None),
    ] {
        let refused = bolt.send(method, &path, body.as_ref()).await;
        assert_eq!(refused.status, 404, "{method} {path}: {refused:?}");
    }
    let listed = bolt.send("GET", SESSIONS, None).await.expect(200);
    assert_eq!(listed["sessions"], json!([]));
    assert_eq!(acme.session(&session).await["title"], "Tokyo food walk");
}

#[tokio::test]
async fn s3_52_edits_are_stored_without_a_new_version() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let (session, _) = travel.make(TOKYO).await;
    let blocks = json!([block("a", "Edited place")]);
    let body = json!({"blocks": blocks, "spotBlocks": blocks,
        "toolOutputs": {"build_travel_blocks": {"blockCount": 1}}});
    let state = patch(&travel, &session, &body).await.expect(200);
    assert_eq!((&state["blocks"], &state["handbookVersion"]), (&blocks, &json!(1)));
    for wrong in [
        json!({"title": "x"}),
        json!({"blocks": blocks, "context": {}}),
        json!({"toolOutputs": {"fly": {}}}),
        json!({"blocks": "none"}),
        json!({"previewPath": "/api/guide/another"}),
    ] {
        assert_eq!(patch(&travel, &session, &wrong).await.status, 400, "{wrong}");
    }
    let many = json!({"x": vec!["y".repeat(10_000); 180]});
    let body = json!({"toolOutputs": {"search_image": many}, "handbookHtml": "x".repeat(1 << 20)});
    assert_eq!(patch(&travel, &session, &body).await.status, 400, "the text is not a page");
    let body = json!({"toolOutputs": {"search_image": many, "generate_image": many}});
    assert_eq!(patch(&travel, &session, &body).await.status, 413);
    let shown = travel.session(&session).await;
    assert_eq!(shown["state"]["blocks"], blocks, "a rejected edit changes nothing");
    assert_eq!(shown["truncated"], false);
    let said = travel.chat(&session, "make 1 new picture").await;
    let page = said.output("generate_handbook_html")["html"].to_string();
    assert!(page.contains("Edited place"), "the next run uses the edited guide: {page}");
    assert_eq!(travel.session(&session).await["state"]["handbookVersion"], 2);
}

#[tokio::test]
async fn s3_39_an_edited_page_is_sanitized_and_otherwise_unchanged() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let (session, _) = travel.make(TOKYO).await;
    let made = travel.session(&session).await["state"]["handbookHtml"].clone();
    let same = patch(&travel, &session, &json!({"handbookHtml": made})).await.expect(200);
    assert_eq!(same["handbookHtml"], made, "the page has no second header or footer");
    let evil = made.as_str().unwrap().replace("</h1>", "</h1><script>alert(1)</script>");
    let evil = evil.replace("<h1", "<h1 onclick=\"alert(1)\"");
    let edited = patch(&travel, &session, &json!({"handbookHtml": evil})).await.expect(200);
    let page = edited["handbookHtml"].as_str().unwrap();
    assert!(!page.contains("alert(1)"), "{page}");
    assert_eq!(patch(&travel, &session, &json!({"handbookHtml": "text"})).await.status, 400);
    let shown = travel.guide(&session).await.expect(200);
    assert_eq!(shown.as_str(), Some(page));
}

#[tokio::test]
async fn s3_55_the_page_has_an_address_and_a_policy() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let empty = travel.create().await;
    assert_eq!(travel.guide(&empty).await.status, 404);
    let (session, _) = travel.make(TOKYO).await;
    let page = travel.guide(&session).await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(page.header("content-security-policy").starts_with("sandbox allow-popups"), "S3-62");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    let tag = page.header("etag").to_owned();
    let path = format!("/api/guide/{session}");
    let known = travel.request("GET", &path).header("if-none-match", &tag);
    assert_eq!(known.send().await.unwrap().status(), 304);

    patch(&travel, &session, &json!({"previewPath": path})).await.expect(200);
    let html = travel.session(&session).await["state"]["handbookHtml"].clone();
    server.clock().advance_ms(1);
    patch(&travel, &session, &json!({"handbookHtml": html})).await.expect(200);
    assert_ne!(travel.guide(&session).await.header("etag"), tag, "the page may have changed");

    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
    let old = client.unwrap().get(server.url(&format!("/api/handbook/{session}")));
    let moved = old.send().await.unwrap();
    assert_eq!(moved.status(), 308);
    assert_eq!(moved.headers()["location"], format!("../guide/{session}").as_str());
    let followed = travel.send("GET", &format!("/api/handbook/{session}"), None).await;
    assert!(followed.header("content-type").starts_with("text/html"), "{followed:?}");
}
