//! The data question application: a greeting, an answer with a file, a question with a later
//! follow-up question, and a question that failed.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::before::{get, post};
use wattle_suite::nl2sql::{CHAT, SESSIONS, STREAM};
use wattle_suite::server::TestServer;

use crate::requests::{Requests, pause};

/// The sessions, in the order of their creation.
const ALL: [&str; 4] = ["greeting", "list", "count", "failed"];

/// The path of a session's messages.
fn messages(session: &str) -> String {
    format!("{SESSIONS}/{session}/messages")
}

fn ask(path: &str, session: &str, message: &str) -> Value {
    post(path, &json!({ "session_id": session, "message": message }))
}

fn delete(path: &str) -> Value {
    json!({ "method": "DELETE", "path": path })
}

/// Creates the sessions.
pub(crate) async fn make(server: &TestServer) -> Requests {
    server.ask_in("greeting", "你好").await;
    pause(server);
    let list = server.ask_in("list", "列出2024年北京的订单").await;
    let file = list["download_url"].as_str().expect("a file with all rows").to_owned();
    pause(server);
    server.ask_in("count", "2024年北京有多少订单").await;
    pause(server);
    let down = Fault::Status { status: 503, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::model("parse"), down));
    let question = json!({ "session_id": "failed", "message": "有多少订单" });
    server.post(CHAT, &question).await.expect(502);
    server.standin().clear_faults();

    let said = server.get(&messages("list")).await.expect(200);
    let rows = format!("{}/{}/rows", messages("list"), said["data"]["messages"][1]["id"]);
    let lists = [SESSIONS.to_owned(), format!("{SESSIONS}?offset=1&limit=2")];
    let read = lists.into_iter().chain(ALL.map(messages));
    let read = read.chain([format!("{}?offset=1&limit=1", messages("count")), rows, file.clone()]);
    Requests {
        stored: read.map(|path| get(&path)).collect(),
        continued: vec![
            ask(CHAT, "count", "那上海呢"),
            get(&messages("count")),
            ask(STREAM, "greeting", "2024年的下单金额"),
            get(&messages("greeting")),
            ask(STREAM, "failed", "有多少订单"),
            get(&messages("failed")),
            delete(&messages("list")),
            get(&messages("list")),
            get(&file),
            ask(CHAT, "list", "有多少客户"),
            delete(&format!("{SESSIONS}/greeting")),
            get(&messages("greeting")),
            get(SESSIONS),
        ],
    }
}
