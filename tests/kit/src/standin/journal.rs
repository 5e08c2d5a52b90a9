//! The log of all requests, which tests read and wait for.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use super::call::Call;

/// Maximum number of entries, which bounds the memory of load tests.
const MAX_ENTRIES: usize = 10_000;

/// Maximum length of a string in a logged body, in bytes. Longer strings, mostly images, are
/// truncated and get their digest.
const MAX_TEXT: usize = 4_096;

/// Number of characters that are kept of a truncated string.
const KEPT_TEXT: usize = 64;

/// Headers and query parameters with secrets, in lower case.
const SECRETS: [&str; 8] =
    ["authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "apikey", "key", "token"];

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The request waits at a gate or is processed.
    Pending,
    /// The response was sent or is being sent.
    Answered,
    /// The client disconnected before the response.
    Abandoned,
}

/// A request and its outcome.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The number of the request, from 1 in the order of arrival.
    pub id: u64,
    /// Time of arrival, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// HTTP method.
    pub method: String,
    /// Path without query.
    pub path: String,
    /// Query parameters, with redacted secrets.
    pub query: BTreeMap<String, String>,
    /// Headers, with redacted secrets; see [`redact`].
    pub headers: BTreeMap<String, String>,
    /// The body if it is JSON, with long strings truncated.
    pub body: Option<Value>,
    /// Size of the body as it was sent, in bytes.
    pub body_bytes: usize,
    /// The requested model.
    pub model: Option<String>,
    /// The state of the request.
    pub outcome: Outcome,
    /// The status of the response.
    pub status: Option<u16>,
    /// The rule of the response, such as `classify` or `massive`.
    pub rule: Option<String>,
    /// The `kind` of the applied fault.
    pub fault: Option<String>,
    /// Time from the arrival to the response, in milliseconds.
    pub took_ms: Option<u64>,
    /// Whether the client disconnected before the end of the response.
    pub aborted: bool,
}

/// Redacts a secret for the log. The result contains a digest, so that tests can compare secrets.
pub fn redact(secret: &str) -> String {
    let digest = blake3::hash(secret.as_bytes()).to_hex();
    format!("redacted:{}", &digest[..16])
}

/// Returns the system time in milliseconds since the Unix epoch.
#[expect(clippy::disallowed_methods, reason = "stand-ins use the system time")]
pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u64
}

/// All entries, and a signal for changes. Clones share the entries.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    entries: Arc<Mutex<VecDeque<Entry>>>,
    changes: watch::Sender<u64>,
}

impl Default for Journal {
    fn default() -> Self {
        Self { entries: Arc::default(), changes: watch::Sender::new(0) }
    }
}

impl Journal {
    /// Records the arrival of a request.
    pub(super) fn open(&self, call: &Call) -> OpenEntry {
        let mut entries = self.lock();
        let mut id = 0;
        self.changes.send_modify(|changes| {
            *changes += 1;
            id = *changes;
        });
        if entries.len() == MAX_ENTRIES {
            entries.pop_front();
        }
        entries.push_back(entry(id, call));
        OpenEntry { journal: self.clone(), id, since: Instant::now() }
    }

    pub(super) fn list(&self) -> Vec<Entry> {
        self.lock().iter().cloned().collect()
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// Waits for an entry that matches, and returns it. Existing entries match, too.
    pub(super) async fn wait_for(&self, wanted: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            let found = self.lock().iter().find(|entry| wanted(entry)).cloned();
            if found.is_some() {
                return found;
            }
            changes.changed().await.ok()?;
        }
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.lock();
        if let Some(entry) = entries.iter_mut().rev().find(|entry| entry.id == id) {
            change(entry);
        }
        drop(entries);
        self.changes.send_modify(|_| {});
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request without a response. Dropping it records that the client disconnected.
#[derive(Debug)]
pub(super) struct OpenEntry {
    journal: Journal,
    id: u64,
    since: Instant,
}

impl OpenEntry {
    pub(super) fn note_fault(&self, kind: Option<String>) {
        self.journal.change(self.id, |entry| entry.fault = kind);
    }

    /// Records the response. The returned value records whether the client receives it completely.
    pub(super) fn answered(self, status: u16, rule: &str) -> Delivery {
        let took_ms = self.since.elapsed().as_millis() as u64;
        self.journal.change(self.id, |entry| {
            entry.outcome = Outcome::Answered;
            entry.status = Some(status);
            entry.rule = Some(rule.to_owned());
            entry.took_ms = Some(took_ms);
        });
        Delivery { journal: self.journal.clone(), id: self.id, ended: false }
    }
}

/// A response that is being sent. Dropping it before its end records that the client disconnected.
#[derive(Debug)]
pub(super) struct Delivery {
    journal: Journal,
    id: u64,
    ended: bool,
}

impl Delivery {
    /// Marks the end of the response.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if !self.ended {
            self.journal.change(self.id, |entry| entry.aborted = true);
        }
    }
}

impl Drop for OpenEntry {
    fn drop(&mut self) {
        self.journal.change(self.id, |entry| {
            if entry.outcome == Outcome::Pending {
                entry.outcome = Outcome::Abandoned;
            }
        });
    }
}

fn entry(id: u64, call: &Call) -> Entry {
    let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        (name.to_string(), shown(name.as_str(), &String::from_utf8_lossy(value.as_bytes())))
    };
    Entry {
        id,
        at_ms: now_ms(),
        method: call.method.clone(),
        path: call.path.clone(),
        query: call.query.iter().map(|(key, value)| (key.clone(), shown(key, value))).collect(),
        headers: call.headers.iter().map(header).collect(),
        body: call.json.clone().map(shortened),
        body_bytes: call.body.len(),
        model: call.model.clone(),
        outcome: Outcome::Pending,
        status: None,
        rule: None,
        fault: None,
        took_ms: None,
        aborted: false,
    }
}

fn shown(name: &str, value: &str) -> String {
    if SECRETS.contains(&name.to_ascii_lowercase().as_str()) {
        redact(value)
    } else {
        value.to_owned()
    }
}

/// Truncates the long strings of a JSON value, and appends their digests to distinguish them.
fn shortened(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() > MAX_TEXT => {
            let start: String = text.chars().take(KEPT_TEXT).collect();
            let digest = blake3::hash(text.as_bytes()).to_hex();
            Value::String(format!("{start}... {} bytes, blake3 {digest}", text.len()))
        }
        Value::Array(items) => items.into_iter().map(shortened).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, shortened(value))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Journal, Outcome, redact};
    use crate::standin::call::Call;

    #[test]
    fn secrets_are_redacted_and_long_texts_truncated() {
        let mut call = Call::sample("POST", "/echo", &json!({"data": "x".repeat(10_000)}));
        call.headers.insert("authorization", "Bearer sk-1".parse().unwrap());
        call.query.push(("apiKey".to_owned(), "k-1".to_owned()));
        let journal = Journal::default();
        drop(journal.open(&call));
        let entry = &journal.list()[0];
        assert_eq!(entry.headers["authorization"], redact("Bearer sk-1"));
        assert_eq!(entry.query["apiKey"], redact("k-1"));
        let shown = serde_json::to_string(entry).unwrap();
        assert!(!shown.contains("sk-1") && !shown.contains("k-1"), "{shown}");
        assert!(shown.len() < 1_000, "{shown}");
        assert_eq!(entry.outcome, Outcome::Abandoned);
    }

    #[test]
    fn responses_are_recorded() {
        let journal = Journal::default();
        journal.open(&Call::sample("GET", "/echo", &json!(null))).answered(200, "echo").end();
        let entry = &journal.list()[0];
        assert_eq!((entry.outcome, entry.status), (Outcome::Answered, Some(200)));
        assert_eq!(entry.rule.as_deref(), Some("echo"));
        assert!(!entry.aborted);
        drop(journal.open(&Call::sample("GET", "/echo", &json!(null))).answered(200, "echo"));
        assert!(journal.list()[1].aborted);
    }
}
