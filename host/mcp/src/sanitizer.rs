//! Quotes the name and the texts of a server in messages and in the log.

use std::sync::{Arc, Mutex, PoisonError};

use secrecy::ExposeSecret as _;
use serde_json::Value;
use tracing::Level;
use wattle_run::credentials::{self, Credentials};
use wattle_run::meter::WorkOwner;

use crate::config::{ServerConfig, TransportConfig};
use crate::log_budget::LogBudget;

/// Longest text of a server that becomes part of a message.
const MAX_TEXT_CHARS: usize = 300;

/// Bytes of a JSON text that have more than [`MAX_TEXT_CHARS`] characters.
const MAX_JSON_BYTES: usize = (MAX_TEXT_CHARS + 2) * 4;

/// The name of a server and the secrets that are redacted when messages quote the server. Clones
/// are cheap.
#[derive(Clone, Debug)]
pub(crate) struct Sanitizer {
    server_name: Arc<str>,
    /// Credentials that are redacted in messages.
    credentials: Credentials,
    /// Secrets that are redacted in messages and in data.
    secrets: Credentials,
    /// The lines that the server may still add to the log.
    log_budget: Arc<Mutex<LogBudget>>,
}

impl Sanitizer {
    pub(crate) fn new(name: &str, config: &ServerConfig) -> Self {
        let secrets = || config.secrets.iter().map(|secret| secret.expose_secret().to_owned());
        let headers = match &config.transport {
            TransportConfig::Http(http) => http.headers.values().collect(),
            TransportConfig::Stdio(_) | TransportConfig::Misconfigured(_) => Vec::new(),
        };
        let headers =
            headers.iter().flat_map(|value| credentials::header_secrets(value.expose_secret()));
        Self {
            server_name: name.into(),
            credentials: Credentials::new(headers.chain(secrets())),
            secrets: Credentials::new(secrets()),
            log_budget: Arc::new(Mutex::new(LogBudget::new())),
        }
    }

    pub(crate) fn server_name(&self) -> &str {
        &self.server_name
    }

    /// Returns the owner of work to which the work on messages of the server is counted.
    pub(crate) fn work_owner(&self) -> WorkOwner {
        WorkOwner::Server(self.server_name.clone())
    }

    /// Quotes a text of the server in a message: one line of bounded length, without control
    /// characters and with redacted credentials.
    pub(crate) fn quote(&self, text: &str) -> String {
        self.credentials.redact(&one_line(text))
    }

    /// Logs a text of the server, or about it, as [`quote`](Self::quote) returns it. Leaves out
    /// empty texts, and texts above the rate at which a server may add lines.
    pub(crate) fn log(&self, level: Level, text: &str) {
        // A line that is not logged does not count.
        let is_logged = match level {
            Level::DEBUG => tracing::enabled!(Level::DEBUG),
            Level::INFO => tracing::enabled!(Level::INFO),
            _ => tracing::enabled!(Level::WARN),
        };
        if !is_logged {
            return;
        }
        let (server, text) = (self.server_name(), self.quote(text));
        if text.is_empty() {
            return;
        }
        let taken = self.log_budget.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(left_out) = taken else { return };
        if left_out > 0 {
            tracing::warn!(server, "{left_out} lines of an MCP server are left out of the log");
        }
        match level {
            Level::DEBUG => tracing::debug!(server, "{text}"),
            Level::INFO => tracing::info!(server, "{text}"),
            _ => tracing::warn!(server, "{text}"),
        }
    }

    /// Logs a document of the server: a string as it is, and any other document as JSON.
    pub(crate) fn log_document(&self, level: Level, document: &Value) {
        match document {
            Value::String(text) => self.log(level, text),
            other => self.log(level, &json_start(other)),
        }
    }

    /// Redacts credentials in a message of this host that quotes the server.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.credentials.redact(text)
    }

    /// Returns true if there are secrets to redact in messages.
    pub(crate) fn has_secrets(&self) -> bool {
        self.secrets.can_redact_exact()
    }

    /// Redacts the secrets in a text of a message. Returns `None` if the text contains no secret.
    pub(crate) fn redact_secrets(&self, text: &str) -> Option<String> {
        self.secrets.redact_exact(text)
    }
}

/// Creates a sanitizer without secrets.
impl From<&str> for Sanitizer {
    fn from(name: &str) -> Self {
        let (credentials, secrets) = (Credentials::default(), Credentials::default());
        let log_budget = Arc::new(Mutex::new(LogBudget::new()));
        Self { server_name: name.into(), credentials, secrets, log_budget }
    }
}

/// Removes control characters other than line breaks and tabs from untrusted text.
pub(crate) fn strip_control_chars(text: &str) -> String {
    text.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t')).collect()
}

/// Returns the JSON of a document up to [`MAX_JSON_BYTES`], after which it is not serialized.
fn json_start(document: &Value) -> String {
    let mut json = [0_u8; MAX_JSON_BYTES];
    let mut room = json.as_mut_slice();
    // Fails if there is not enough room, after the room is filled.
    serde_json::to_writer(&mut room, document).ok();
    let bytes = MAX_JSON_BYTES - room.len();
    String::from_utf8_lossy(&json[..bytes]).into_owned()
}

/// Converts untrusted text to one line without control characters, and bounds its length.
pub(crate) fn one_line(text: &str) -> String {
    let start = text.trim_start();
    let end = start.char_indices().nth(MAX_TEXT_CHARS).map(|(end, _)| end);
    let part = &start[..end.unwrap_or(start.len())];
    let cleaned: String =
        part.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    let is_cut = end.is_some_and(|end| !start[end..].trim_end().is_empty());
    if is_cut { format!("{cleaned}...") } else { cleaned.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use tokio::time::advance;
    use tracing::subscriber::{NoSubscriber, set_default};
    use wattle_kit::log::Log;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lines_of_a_server_in_the_log_are_limited() {
        let (log, _guard) = Log::start();
        let sanitizer = Sanitizer::from("graph");
        for _ in 0..3_000 {
            sanitizer.clone().log(Level::INFO, "said");
        }
        assert_eq!(log.lines().len(), 1_000);
        advance(Duration::from_secs(1)).await;
        sanitizer.log(Level::WARN, "said again");
        let lines = log.lines();
        let left_out =
            r#"WARN message=2000 lines of an MCP server are left out of the log server="graph""#;
        assert_eq!(lines[1_000..], [left_out, r#"WARN message=said again server="graph""#]);
    }

    #[tokio::test(start_paused = true)]
    async fn lines_that_are_not_logged_do_not_count() {
        let sanitizer = Sanitizer::from("graph");
        let silent = set_default(NoSubscriber::new());
        for level in [Level::DEBUG, Level::INFO, Level::WARN] {
            for _ in 0..1_000 {
                sanitizer.log(level, "said");
            }
        }
        drop(silent);
        let (log, _guard) = Log::start();
        sanitizer.log(Level::INFO, "said again");
        assert_eq!(log.lines(), [r#"INFO message=said again server="graph""#]);
    }

    #[test]
    fn documents_are_serialized_in_part() {
        let small = json!({ "room": [1, "a"] });
        assert_eq!(json_start(&small), small.to_string());
        let large = json!({ "room": "\u{1f600}".repeat(1_000) });
        assert!(json_start(&large).len() < 2 * MAX_JSON_BYTES);
        assert_eq!(one_line(&json_start(&large)), one_line(&large.to_string()));
    }

    #[test]
    fn untrusted_text_becomes_one_short_line() {
        assert_eq!(one_line(" a\n\u{1b}[31mb\0 "), "a  [31mb");
        assert_eq!(one_line(&"x".repeat(400)).len(), MAX_TEXT_CHARS + 3);
        assert_eq!(one_line(&format!("{} \n", "x".repeat(300))).len(), MAX_TEXT_CHARS);
    }
}
