//! Quotes the name and the texts of a server in messages.

use std::sync::Arc;

use secrecy::ExposeSecret as _;
use wattle_run::credentials::{self, Credentials};
use wattle_run::meter::WorkOwner;

use crate::config::{ServerConfig, TransportConfig};

/// Longest text of a server that becomes part of a message.
const MAX_TEXT_CHARS: usize = 300;

/// The name of a server and the secrets that are redacted when messages quote the server. Clones
/// are cheap.
#[derive(Clone, Debug)]
pub(crate) struct Sanitizer {
    server_name: Arc<str>,
    /// Credentials that are redacted in messages.
    credentials: Credentials,
    /// Secrets that are redacted in messages and in data.
    secrets: Credentials,
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
        Self { server_name: name.into(), credentials, secrets }
    }
}

/// Removes control characters other than line breaks and tabs from untrusted text.
pub(crate) fn strip_control_chars(text: &str) -> String {
    text.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t')).collect()
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
    use super::*;

    #[test]
    fn untrusted_text_becomes_one_short_line() {
        assert_eq!(one_line(" a\n\u{1b}[31mb\0 "), "a  [31mb");
        assert_eq!(one_line(&"x".repeat(400)).len(), MAX_TEXT_CHARS + 3);
        assert_eq!(one_line(&format!("{} \n", "x".repeat(300))).len(), MAX_TEXT_CHARS);
    }
}
