//! The application `notes`, whose agent adds notes, and deletes them if a person approves.

use serde_json::{Value, json};
use wattle_suite::answer::Answer;
use wattle_suite::guests;
use wattle_suite::server::{Setup, TestServer};

/// The path that sends a message.
const CHAT: &str = "/api/chat";

/// Starts a server with the application at its documented paths.
async fn started() -> TestServer {
    let setup = Setup::bare().await;
    setup.workspace.write("plugins/std/std.wasm", guests::bytes("wattle-std"));
    let folder = guests::root().join("plugins/apps/notes");
    let component = guests::path("wattle-app-notes");
    let app = format!(
        "[apps.notes]\npath = {:?}\nmount = \"/\"\ncomponents = {{ notes = {:?} }}\n",
        folder.display().to_string(),
        component.display().to_string(),
    );
    setup.with(&app).start().await
}

/// Sends a message, on a thread or a new one.
async fn send(server: &TestServer, thread: Option<&str>, message: &str) -> Answer {
    server.post(CHAT, &json!({ "threadId": thread, "message": message })).await
}

/// Returns the titles of all notes.
async fn titles(server: &TestServer) -> Vec<Value> {
    let found = server.post("/api/v1/memory/search", &json!({ "prefix": ["notes"] })).await;
    let found = found.expect(200);
    found["items"].as_array().unwrap().iter().map(|item| item["key"].clone()).collect()
}

#[tokio::test]
async fn a_note_is_deleted_if_a_person_approves() {
    let server = started().await;
    let reply = send(&server, None, "Note that the tea is in the kitchen.").await.expect(200);
    assert_eq!(reply["reply"], "add_note: added", "{reply}");
    assert_eq!(titles(&server).await, ["the tea"]);
    let thread = reply["threadId"].as_str().unwrap();
    let path = format!("/api/threads/{thread}");
    let answers = format!("{path}/answers");
    let cases: [(&str, &str, &[&str]); 2] = [
        ("reject", "delete_note: error: a person rejected the call", &["the tea"]),
        ("approve", "delete_note: deleted", &[]),
    ];
    for (decision, result, left) in cases {
        let waiting = send(&server, Some(thread), "Delete the note: the tea").await.expect(202);
        assert_eq!(titles(&server).await, ["the tea"]);
        // A page that is loaded again reads the same question.
        let pending = server.get(&path).await.expect(200)["questions"].clone();
        assert_eq!(pending, waiting["questions"]);
        assert_eq!(pending[0]["payload"]["arguments"], json!({ "title": "the tea" }));

        // Neither a message nor an answer that does not fit loses the question.
        send(&server, Some(thread), "Note that the cup is blue.").await.expect(409);
        let edit = json!({ "id": pending[0]["id"], "answer": { "decision": "edit" } });
        server.post(&answers, &edit).await.expect(400);
        let answer = json!({ "id": pending[0]["id"], "answer": { "decision": decision } });
        let reply = server.post(&answers, &answer).await.expect(200);
        assert_eq!(reply["reply"], result, "{reply}");
        assert_eq!(titles(&server).await, left);
        assert_eq!(server.get(&path).await.expect(200).get("questions"), None);
        server.post(&answers, &answer).await.expect(409);
    }
}

#[tokio::test]
async fn a_double_click_answers_once() {
    let server = started().await;
    send(&server, None, "Note that the tea is in the kitchen.").await.expect(200);
    let waiting = send(&server, None, "Delete the note: the tea").await.expect(202);
    let answers = format!("/api/threads/{}/answers", waiting["threadId"].as_str().unwrap());
    let id = &waiting["questions"][0]["id"];
    let answer = json!({ "id": id, "answer": { "decision": "approve" } });
    let (one, other) = tokio::join!(server.post(&answers, &answer), server.post(&answers, &answer));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{} {}", one.body, other.body);
}

#[tokio::test]
async fn conversations_are_listed_shown_renamed_and_deleted() {
    let server = started().await;
    let reply = send(&server, None, "Note that the tea is in the kitchen.").await.expect(200);
    let id = reply["threadId"].as_str().unwrap();
    let path = format!("/api/threads/{id}");
    let shown = server.get(&path).await.expect(200);
    let parts = shown["messages"][1]["parts"].as_array().unwrap();
    assert_eq!(parts.last().unwrap()["text"], "add_note: added", "{shown}");

    let listed = server.get("/api/threads").await.expect(200);
    assert_eq!(listed["threads"][0]["title"], "Note that the tea is in the kitchen.");
    let renamed = server.request("PATCH", &path).json(&json!({ "title": "Tea" }));
    assert_eq!(Answer::of(renamed).await.status, 204);
    let listed = server.get("/api/threads").await.expect(200);
    assert_eq!(
        (&listed["threads"][0]["threadId"], &listed["threads"][0]["title"]),
        (&json!(id), &json!("Tea"))
    );

    assert_eq!(server.get(&format!("{path}/stream")).await.status, 204, "no run is active");
    let cancelled = server.post(&format!("{path}/cancel"), &json!({})).await.expect(200);
    assert_eq!(cancelled, shown, "without an active run nothing changes");
    assert_eq!(server.delete(&path).await.status, 204);
    assert_eq!(server.get(&path).await.status, 404);
    assert_eq!(server.get("/api/threads").await.expect(200)["threads"], json!([]));
}

#[tokio::test]
async fn the_page_needs_no_build() {
    let server = started().await;
    let page = server.get("/apps/notes/").await.expect(200);
    let script = "src=\"page.js\"";
    assert!(page.as_str().is_some_and(|page| page.contains(script)), "{page}");
    let script = server.get("/apps/notes/page.js").await;
    assert_eq!(script.status, 200);
    assert!(script.header("content-type").starts_with("text/javascript"), "{:?}", script.headers);
}
