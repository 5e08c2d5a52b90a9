//! The travel application: guides that are finished, edited, cancelled and failed, and a session
//! without a run.

use serde_json::{Value, json};
use wattle_suite::before::apps::say;
use wattle_suite::before::get;
use wattle_suite::server::TestServer;
use wattle_suite::travel::{MISSING, OSAKA, SESSIONS, TOKYO, Travel, working_on};

use crate::requests::{Requests, pause};

fn at(session: &str) -> String {
    format!("{SESSIONS}/{session}")
}

/// The path of a session's state.
fn state(session: &str) -> String {
    format!("{SESSIONS}/{session}/state")
}

fn patch(path: &str, body: &Value) -> Value {
    json!({ "method": "PATCH", "path": path, "body": body })
}

/// Creates the sessions. Most are not read after their runs, so the next host derives their rows
/// from the log.
pub(crate) async fn make(server: &TestServer) -> Requests {
    let travel = server.travel();
    let (finished, _) = travel.make(TOKYO).await;
    pause(server);
    let (edited, _) = travel.make(OSAKA).await;
    let page = edit(&travel, &edited).await;
    pause(server);
    let cancelled = cancelled(server, &travel).await;
    pause(server);
    let (failed, _) = travel.make(MISSING).await;
    pause(server);
    let empty = travel.create().await;
    let title = json!({ "title": "Named by hand" });
    travel.send("PATCH", &at(&empty), Some(&title)).await.expect(200);

    let all = [&finished, &edited, &cancelled, &failed, &empty];
    let guide = |session: &String| get(&format!("/api/guide/{session}"));
    let stream = |session: &String| get(&format!("/api/chat/{session}/stream"));
    let read = |session: &String| {
        [get(&at(session)), get(&state(session)), guide(session), stream(session)]
    };
    let lists = [get(SESSIONS), get(&format!("{SESSIONS}?limit=2&offset=1"))];
    let sent = [
        patch(&state(&edited), &json!({ "handbookHtml": page })),
        say(&finished, "thank you"),
        say(&edited, "please make 2 new pictures"),
        say(&cancelled, "go on"),
        say(&failed, "hm"),
        say(&empty, "hello"),
        patch(&at(&finished), &title),
    ];
    let last = [
        json!({ "method": "POST", "path": format!("{}/cancel", at(&finished)), "body": {} }),
        json!({ "method": "DELETE", "path": at(&edited) }),
        get(&at(&edited)),
        get(SESSIONS),
    ];
    let shown = all.into_iter().flat_map(|session| [get(&at(session)), guide(session)]);
    Requests {
        stored: lists.into_iter().chain(all.into_iter().flat_map(read)).collect(),
        continued: sent.into_iter().chain(shown).chain(last).collect(),
    }
}

/// Edits the first block and the page of a guide, and returns the page.
async fn edit(travel: &Travel<'_>, session: &str) -> Value {
    let before = travel.session(session).await["state"].clone();
    let mut blocks = before["blocks"].clone();
    blocks[0]["title"] = json!("Renamed by hand");
    let page = before["handbookHtml"].as_str().unwrap_or_default();
    let page = page.replacen("</h1>", " (edited)</h1>", 1);
    let edits = json!({ "blocks": blocks, "handbookHtml": page });
    let after = travel.send("PATCH", &state(session), Some(&edits)).await.expect(200);
    after["handbookHtml"].clone()
}

/// Cancels the creation of a guide, and returns its session.
async fn cancelled(server: &TestServer, travel: &Travel<'_>) -> String {
    let session = travel.create().await;
    let gate = server.standin().gate(working_on("json_compilation_strict"));
    let stream = travel.stream(&session, TOKYO).await;
    gate.arrived(1).await.expect("a request that is held");
    travel.cancel(&session).await.expect(200);
    stream.rest().await;
    session
}
