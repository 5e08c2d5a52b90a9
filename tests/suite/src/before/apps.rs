//! The data folders of the applications, which hosts wrote before the applications moved code into
//! the SDK.
//!
//! The components of that time are not in the folders. Endpoints read threads without the code to
//! which the threads are pinned, and an operator pins them to the current code by a migration.

use serde_json::{Value, json};
use wattle_kit::configuration::Configuration;

use crate::answer::Answer;
use crate::before::folder::Folder;
use crate::event_stream::blocks;
use crate::server::{Setup, TestServer};
use crate::travel::CHAT;

/// The file with the recorded requests and responses.
const MANIFEST: &str = "manifest.json";

/// The address of the stand-in in recorded responses, whose port is another one in each run.
const SERVICES: &str = "http://services.example";

/// The trace id of all requests. Without one, the reasoning application generates it.
const TRACE: (&str, &str) = ("x-trace-id", "before");

/// The setting of the travel application with the services whose pictures a page may show.
const PICTURES: &str = "apps.travel.settings.thumbnail_base_urls";

/// An application with a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum App {
    /// Reviews that are stored, and one that waits.
    Asset,
    /// Conversations, one of them with a tool call without a result.
    Expense,
    /// Questions about a database.
    Nl2sql,
    /// Sessions in each status.
    Reasoning,
    /// Guides that are finished, edited, cancelled and failed.
    Travel,
}

impl App {
    /// All applications.
    pub const ALL: [Self; 5] =
        [Self::Asset, Self::Expense, Self::Nl2sql, Self::Reasoning, Self::Travel];

    /// Returns the folder of the application. Signed links of stored pages need the key that signed
    /// them. The sample of the data question application is not in its folder, because migrations
    /// create it.
    pub fn folder(self) -> Folder {
        match self {
            Self::Asset => Folder::new("before-apps/asset", &["asset.db"]),
            Self::Expense => Folder::new("before-apps/expense", &[]),
            Self::Nl2sql => Folder::new("before-apps/nl2sql", &["nl2sql.db"]),
            Self::Reasoning => Folder::new("before-apps/reasoning", &["reasoning.db"]),
            Self::Travel => Folder::new("before-apps/travel", &["travel.db", "link.key"]),
        }
    }

    /// Creates a server with the application. `earlier` is the address of the stand-in whose
    /// pictures are in stored pages.
    pub async fn setup(self, earlier: Option<&str>) -> Setup {
        match self {
            Self::Asset => Setup::asset().await,
            Self::Expense => Setup::expense().await,
            Self::Nl2sql => Setup::nl2sql().await,
            Self::Reasoning => Setup::reasoning().await,
            Self::Travel => Setup::travel_with(|config| allow_pictures(config, earlier)).await,
        }
    }

    /// Starts a host on the unpacked folder, at the time at which the recorded host stopped.
    /// Returns the host and the manifest.
    ///
    /// # Panics
    ///
    /// If the folder does not exist, or the host does not start.
    pub async fn open(self) -> (TestServer, Value) {
        let folder = self.folder();
        let manifest: Value = serde_json::from_slice(&folder.read(MANIFEST)).expect("JSON");
        let setup = Box::pin(self.setup(manifest["services"].as_str())).await;
        folder.unpack(&setup.workspace);
        setup.clock.set_now_ms(manifest["clock_ms"].as_i64().expect("a time"));
        (Box::pin(setup.start()).await, manifest)
    }

    /// Writes the manifest into the folder.
    ///
    /// # Errors
    ///
    /// I/O errors of the file system.
    pub fn put_manifest(self, manifest: &Value) -> std::io::Result<()> {
        self.folder().write(MANIFEST, manifest.to_string().as_bytes())
    }
}

fn allow_pictures(config: &mut Configuration, earlier: Option<&str>) {
    let Some(earlier) = earlier else { return };
    let services = config.get_mut(PICTURES).expect("the services of pictures");
    services.as_array_mut().expect("a list of services").push(earlier.into());
}

/// Returns the ids of all threads of a host.
pub async fn threads(server: &TestServer) -> Vec<String> {
    let listed = server.get("/api/v1/threads?limit=500").await.expect(200);
    let ids = listed["items"].as_array().into_iter().flatten();
    ids.filter_map(|it| it["thread"].as_str().map(str::to_owned)).collect()
}

/// Pins threads to the current code. A task that waits for an answer starts again, so its thread is
/// resumed until the task has asked again.
///
/// # Panics
///
/// If a thread cannot be migrated, or a task does not ask again.
pub async fn migrate(server: &TestServer, threads: &[String]) {
    for thread in threads {
        let path = format!("/api/v1/threads/{thread}");
        let is_waiting = server.get(&path).await.expect(200)["interrupts"] != json!([]);
        let report = server.post(&format!("{path}/migrate"), &json!({})).await.expect(200);
        assert_eq!(report["obstacles"], json!([]), "{thread}: {report}");
        if is_waiting && report["applied"] == true {
            let resume = json!({ "wait": true });
            let run = server.post(&format!("{path}/resume"), &resume).await.expect(200);
            assert_eq!(run["status"], "interrupted", "{run}");
        }
    }
}

/// Returns a request that sends a message to a session of the travel application, with all messages
/// that the session has at that time.
pub fn say(session: &str, text: &str) -> Value {
    json!({ "method": "POST", "path": CHAT, "said": { "session": session, "text": text } })
}

/// Sends a recorded request, and returns the response in a form in which two hosts with the same
/// data agree.
///
/// # Panics
///
/// If the server does not respond.
pub async fn respond(server: &TestServer, request: &Value) -> Value {
    let text = |place: &str| request.pointer(place).and_then(Value::as_str).unwrap_or_default();
    let sent = server.request(text("/method"), text("/path")).header(TRACE.0, TRACE.1);
    let sent = if request.get("said").is_some() {
        let (session, said) = (text("/said/session"), text("/said/text"));
        sent.json(&server.travel().message(session, said).await)
    } else if let Some(body) = request.get("body") {
        sent.json(body)
    } else {
        sent
    };
    let answer = Answer::of(sent).await;
    let content_type = answer.header("content-type");
    let body = match answer.body.as_str() {
        Some(text) if content_type.starts_with("text/event-stream") => outline(text),
        _ => answer.body.clone(),
    };
    let body = body.to_string().replace(&server.standin().base_url, SERVICES);
    let body: Value = serde_json::from_str(&body).expect("JSON");
    let etag = answer.header("etag");
    json!({ "status": answer.status, "content_type": content_type, "etag": etag, "body": body })
}

/// Returns the types of the events of a stream, with the tools of calls, and the text of the reply.
/// The number of deltas depends on time, so equal types in a row count once.
fn outline(stream: &str) -> Value {
    let (mut types, mut reply): (Vec<String>, String) = Default::default();
    for block in blocks(stream) {
        let (kind, data) = (block.event.unwrap_or_default(), block.data.unwrap_or_default());
        let data: Value = serde_json::from_str(&data).unwrap_or_default();
        let name = data["type"].as_str().unwrap_or(&kind);
        let event = [name, data["toolName"].as_str().unwrap_or_default()].join(" ");
        let event = event.trim().to_owned();
        if !event.is_empty() && types.last() != Some(&event) {
            types.push(event);
        }
        if name == "text-delta" {
            reply.push_str(data["delta"].as_str().unwrap_or_default());
        }
    }
    json!({ "types": types, "reply": reply })
}

/// Removes what differs between two hosts that execute the same request: generated ids, durations
/// and revisions.
pub fn remove_generated(document: &mut Value) {
    match document {
        Value::Array(items) => items.iter_mut().for_each(remove_generated),
        Value::Object(fields) => {
            fields.retain(|name, _| !is_generated(name));
            fields.values_mut().for_each(remove_generated);
        }
        _ => {}
    }
}

fn is_generated(name: &str) -> bool {
    matches!(name, "id" | "etag" | "revision")
        || name.ends_with("_id")
        || name.ends_with("Id")
        || name.starts_with("duration")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_have_an_outline() {
        let stream = "event: step_start\ndata: {\"seq\":1}\n\n\
            data: {\"type\":\"tool-input-available\",\"toolName\":\"save\"}\n\n\
            data: {\"type\":\"text-delta\",\"delta\":\"a\"}\n\n\
            data: {\"type\":\"text-delta\",\"delta\":\"b\"}\n\n\
            : heartbeat\n\ndata: [DONE]\n\n";
        let types = ["step_start", "tool-input-available save", "text-delta"];
        assert_eq!(outline(stream), json!({ "types": types, "reply": "ab" }));
    }

    #[test]
    fn generated_values_are_removed() {
        let mut document = json!({ "id": 1, "a": [{ "threadId": "x", "turn_id": "y", "b": 2 }],
            "durationMs": 3, "ids": [4] });
        remove_generated(&mut document);
        assert_eq!(document, json!({ "a": [{ "b": 2 }], "ids": [4] }));
    }
}
