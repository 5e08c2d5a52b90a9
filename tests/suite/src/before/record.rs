//! Records of a host's threads and responses, and their comparison with those of another host.

use serde_json::{Value, json};
use wattle_graph::id::Digest;

use crate::answer::Answer;
use crate::server::TestServer;

/// Records a thread: its document, runs, checkpoints and seal, and the digest of its exported log.
pub async fn record(server: &TestServer, thread: &str) -> Value {
    let path = format!("/api/v1/threads/{thread}");
    let get = async |place: &str| server.get(&format!("{path}{place}")).await.expect(200);
    let history = get("/history?limit=500").await;
    let history = history.as_array().into_iter().flatten();
    let history: Vec<Value> = history
        .map(|it| json!({ "id": it["id"], "source": it["source"], "next": it["next"] }))
        .collect();
    let export = get("/export?code=false&blobs=false").await;
    let lines = export.as_str().unwrap_or_default().lines();
    let batches: Vec<&str> = lines.filter(|line| line.starts_with("{\"batch\":")).collect();
    json!({
        "thread": get("").await,
        "runs": get("/runs").await,
        "history": history,
        "verified": get("/verify").await,
        "batches": Digest::of(batches.join("\n").as_bytes()).to_hex(),
    })
}

/// Returns a `GET` for [`ask`].
pub fn get(path: &str) -> Value {
    json!({ "method": "GET", "path": path })
}

/// Returns a `POST` for [`ask`].
pub fn post(path: &str, body: &Value) -> Value {
    json!({ "method": "POST", "path": path, "body": body })
}

/// Sends a recorded request, with `method`, `path` and an optional `body`, and returns the
/// response.
pub async fn ask(server: &TestServer, request: &Value) -> Value {
    let text = |field: &str| request[field].as_str().unwrap_or_default();
    let sent = server.request(text("method"), text("path"));
    let sent = match request.get("body") {
        Some(body) => sent.json(body),
        None => sent,
    };
    Answer::of(sent).await.expect(200)
}

/// Returns the differences of a document from the expected one, by JSON path. Additional fields are
/// not a difference, because a later host may return more of them.
pub fn lacking(found: &Value, wanted: &Value) -> Vec<String> {
    let mut places = Vec::new();
    compare(found, wanted, "", &mut places);
    places
}

fn compare(found: &Value, wanted: &Value, place: &str, places: &mut Vec<String>) {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            for (name, value) in wanted {
                let found = found.get(name).unwrap_or(&Value::Null);
                compare(found, value, &format!("{place}/{name}"), places);
            }
        }
        (Value::Array(found), Value::Array(wanted)) if found.len() == wanted.len() => {
            for (index, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                compare(found, wanted, &format!("{place}/{index}"), places);
            }
        }
        _ if found == wanted => {}
        _ => places.push(format!("{place}: {found} instead of {wanted}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_are_named_and_new_fields_ignored() {
        let wanted = json!({ "a": { "b": [1, { "c": "x" }] }, "d": null });
        let more = json!({ "a": { "b": [1, { "c": "x", "new": 1 }] }, "new": 2 });
        assert_eq!(lacking(&more, &wanted), Vec::<String>::new());
        let less = json!({ "a": { "b": [2, { "new": "x" }] } });
        let places = ["/a/b/0: 2 instead of 1", "/a/b/1/c: null instead of \"x\""];
        assert_eq!(lacking(&less, &wanted), places);
        let shorter = json!({ "a": { "b": [1] } });
        assert_eq!(lacking(&shorter, &wanted).len(), 1);
    }
}
