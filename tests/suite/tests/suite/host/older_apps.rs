//! Data folders of the applications from before they moved code into the SDK: the current
//! components show the same sessions, and continue them as the components of that time did.
//! [`wattle_suite::before`] describes the folders.
//!
//! The folders do not contain the components of that time, so threads are migrated before they
//! continue.

use serde_json::{Value, json};
use wattle_suite::before::apps::{self, App};
use wattle_suite::before::lacking;
use wattle_suite::reasoning::{SESSIONS, pairs};
use wattle_suite::server::TestServer;

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Sends recorded requests in order. Additional fields of a response are not a difference.
async fn compare(server: &TestServer, requests: &Value) {
    for request in items(requests) {
        let found = apps::respond(server, request).await;
        let lacks = lacking(&found, &request["response"]);
        let (method, path, body) = (&request["method"], &request["path"], &request["body"]);
        assert!(lacks.is_empty(), "{method} {path} {body}: {lacks:#?}");
    }
}

/// Removes when sessions were updated. The migration of a thread is an event of its log, so it updates
/// the session that follows the log. The host that wrote the folder migrated nothing.
///
/// The clock of the test stands still. Each write of a session advances its time by a millisecond, and
/// the number of writes depends on how many steps one read returns.
fn remove_update_times(document: &mut Value) {
    match document {
        Value::Array(items) => items.iter_mut().for_each(remove_update_times),
        Value::Object(fields) => {
            fields.retain(|name, _| name != "updated_at" && name != "updatedAt");
            fields.values_mut().for_each(remove_update_times);
        }
        _ => {}
    }
}

/// Opens the folder of an application, and compares all responses. `paths` are the beginnings of
/// the recorded paths, each up to a generated id.
async fn check(app: App, paths: &[&str]) -> (TestServer, Value) {
    let (server, manifest) = app.open().await;
    let requests = items(&manifest["stored"]).chain(items(&manifest["continued"]));
    let recorded: Vec<&str> = requests.filter_map(|it| it["path"].as_str()).collect();
    for path in paths {
        assert!(recorded.iter().any(|it| it.starts_with(*path)), "{path}: {recorded:?}");
    }
    compare(&server, &manifest["stored"]).await;
    let threads = apps::threads(&server).await;
    assert_eq!(manifest["threads"], threads.len());
    apps::migrate(&server, &threads).await;
    let mut continued = manifest["continued"].clone();
    remove_update_times(&mut continued);
    compare(&server, &continued).await;
    (server, manifest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reviews_are_shown_and_confirmed() {
    let paths = ["/api/portfolios", "/api/operations", "/api/holdings", "/api/ai/asset-graph/"];
    check(App::Asset, &paths).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversations_about_expenses_are_shown_and_continued() {
    let (server, _) =
        check(App::Expense, &["/api/threads/", "/api/chat", "/api/chat/stream"]).await;
    assert_eq!(server.booked().len(), 5, "each message books once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_and_their_files_are_shown_and_continued() {
    let paths = ["/api/chat/sessions", "/api/chat/downloads/", "/api/chat/stream"];
    check(App::Nl2sql, &paths).await;
}

/// A trail keeps its rows, and the rows of later runs follow them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reasoning_sessions_are_shown_and_continued() {
    let (server, manifest) = check(App::Reasoning, &[SESSIONS]).await;
    let mut trails = 0;
    for request in items(&manifest["stored"]) {
        if !request["path"].as_str().is_some_and(|path| path.ends_with("/trace")) {
            continue;
        }
        let shown = &request["response"]["body"]["data"];
        let before = shown["events"].as_array().unwrap();
        let trace = server.reasoning().trace(shown["session_id"].as_str().unwrap()).await;
        let kept = trace.iter().take(before.len()).cloned().collect::<Value>();
        let lacks = lacking(&kept, &json!(before));
        assert!(lacks.is_empty(), "{shown}: {lacks:#?}");
        pairs(&trace);
        trails += usize::from(trace.len() > before.len());
    }
    assert_eq!(trails, 4, "all but the cancelled session have a later run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guides_are_shown_and_continued() {
    let paths = ["/api/sessions", "/api/chat", "/api/guide/"];
    check(App::Travel, &paths).await;
}
