//! Managed tokens: secrets that a service issues for a limited time in exchange for other secrets.
//!
//! The host fetches the tokens, stores them in memory only and renews them, so that no token is in
//! a guest, in the journal or in a log.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;
use wattle_graph::definition::HumanDuration;
use wattle_graph::failure::{Failure, code};
use wattle_run::caller_id::CallerId;
use wattle_run::hostcall::http::HttpResponse;
use wattle_run::json::bounded::JsonBudget;
use wattle_run::lookups::on_behalf_of;
use wattle_run::ports::Clock;

use crate::body;
use crate::clients::Clients;
use crate::exchange;
use crate::request_url;
use crate::secret::{Position, SecretInjector, SizeLimit, placeholder_names};

/// Default lifetime of a token.
const DEFAULT_LIFETIME: HumanDuration = HumanDuration::from_ms(5 * 60_000);

/// Maximum time from the fetch of a token to its renewal. A service can state a lifetime that is
/// wrong, such as one in milliseconds, and the host would keep a token that has expired.
const MAX_AGE: HumanDuration = HumanDuration::from_ms(24 * 60 * 60_000);

/// Default time before the expiry at which a token is renewed.
const DEFAULT_REFRESH_BEFORE: HumanDuration = HumanDuration::from_ms(60_000);

/// Timeout of a fetch of a token.
const FETCH_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum bytes of a response with a token, and of one that rejects a token.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;

/// Maximum size of the body of a request for a token.
const REQUEST_LIMIT: SizeLimit = SizeLimit { name: "request_bytes", bytes: 1 << 20 };

/// Maximum characters of the service's message in a failure.
const MAX_MESSAGE_CHARS: usize = 200;

/// Milliseconds per second; lifetimes are in seconds.
const MS_PER_SECOND: f64 = 1_000.0;

/// The source of a managed token. A field of a JSON response is named by its top-level key, or by a
/// JSON pointer such as `/data/token`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenSource {
    /// URL that receives a `POST`. No grant is needed, since the operator configures it.
    pub url: String,
    /// Body of the request. It can contain placeholders of other secrets, `{{secret:NAME}}`.
    pub body: String,
    /// Content type of the body; `application/json` by default.
    #[serde(default = "json_type")]
    pub content_type: String,
    /// Field of the response that has the token.
    pub field: String,
    /// Field of the response that has the lifetime in seconds. Without it the lifetime is 5
    /// minutes.
    #[serde(default)]
    pub expires_field: Option<String>,
    /// Field of the response that has an error message for the operator.
    #[serde(default)]
    pub message_field: Option<String>,
    /// Time before the expiry at which the token is renewed; 1 minute by default.
    #[serde(default = "refresh_before")]
    pub refresh_before: HumanDuration,
    /// Responses by which a service rejects the token. The host then fetches another token and
    /// sends the request once more.
    #[serde(default)]
    pub invalid: Rejection,
}

/// Responses that reject a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rejection {
    /// Status codes that reject the token.
    pub status: Vec<u16>,
    /// Response field that rejects the token, with any status, if it has one of `values`.
    pub field: Option<String>,
    /// Values of `field` that reject the token.
    pub values: Vec<i64>,
}

fn json_type() -> String {
    "application/json".to_owned()
}

fn refresh_before() -> HumanDuration {
    DEFAULT_REFRESH_BEFORE
}

impl Rejection {
    fn matches(&self, response: &HttpResponse) -> bool {
        if self.status.contains(&response.status) {
            return true;
        }
        let Some(field) = self.field.as_ref().filter(|_| !self.values.is_empty()) else {
            return false;
        };
        // A rejection is short. The value of a large document takes many times its memory.
        if response.body.len() as u64 > MAX_RESPONSE_BYTES {
            return false;
        }
        let document: Option<Value> = JsonBudget::default().parse_slice(&response.body).ok();
        let value = document.as_ref().and_then(|document| field_value(document, field)?.as_i64());
        value.is_some_and(|value| self.values.contains(&value))
    }
}

/// A managed token and its source.
pub(crate) struct ManagedToken {
    name: String,
    source: TokenSource,
    url: Url,
    clock: Arc<dyn Clock>,
    /// Locked during a fetch, so that concurrent requests fetch the token once.
    cached: Mutex<Option<CachedToken>>,
}

struct CachedToken {
    value: SecretString,
    renew_at_ms: i64,
}

impl ManagedToken {
    /// Creates a token without fetching it.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the source.
    pub(crate) fn new(
        name: &str,
        source: TokenSource,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, &'static str> {
        let url = request_url::parse(&source.url).map_err(|_| "has an invalid `url`")?;
        if source.field.is_empty() {
            return Err("needs a `field` that contains the token");
        }
        if placeholder_names(&source.body).any(|mentioned| mentioned == name) {
            return Err("names itself in its `body`");
        }
        Ok(Self { name: name.to_owned(), source, url, clock, cached: Mutex::new(None) })
    }

    /// Returns the token. Fetches a token if none is cached or the cached token is due for renewal.
    pub(crate) async fn value(&self, clients: &Clients) -> Result<SecretString, Failure> {
        let mut kept = self.cached.lock().await;
        if let Some(kept) = kept.as_ref().filter(|kept| self.clock.now_ms() < kept.renew_at_ms) {
            return Ok(kept.value.clone());
        }
        // The token is for all callers, so no caller has the lookups of a fetch. Otherwise, a fetch
        // would wait for other lookups of its caller, and other callers would wait for the lock.
        let fetched = on_behalf_of(CallerId::default(), self.fetch(clients)).await?;
        Ok(kept.insert(fetched).value.clone())
    }

    /// Discards the cached token if it is still the rejected token `refused`.
    pub(crate) async fn invalidate(&self, refused: &SecretString) {
        let mut kept = self.cached.lock().await;
        kept.take_if(|kept| kept.value.expose_secret() == refused.expose_secret());
    }

    /// Returns true if a response rejects the token.
    pub(crate) fn is_rejected_by(&self, response: &HttpResponse) -> bool {
        self.source.invalid.matches(response)
    }

    async fn fetch(&self, clients: &Clients) -> Result<CachedToken, Failure> {
        let mut injector = SecretInjector::new(clients.secrets());
        let body = injector.inject(&self.source.body, Position::Raw, REQUEST_LIMIT, &|_| Ok(()))?;
        // Like the lookups of a fetch, its request has no caller.
        let host = request_url::host(&self.url);
        clients.rate_limiter().acquire(CallerId::default(), &host).await;
        tracing::debug!(token = self.name, %host, "fetching a token");
        let asked_ms = self.clock.now_ms();
        // The client permits private addresses, because the operator may run the token service in a
        // private network.
        let request = clients.client(true).post(self.url.clone()).timeout(FETCH_TIMEOUT).body(body);
        let sent = request.header(CONTENT_TYPE, &self.source.content_type).send().await;
        let broken = |error: reqwest::Error| {
            self.fetch_failure(&injector.redact(&exchange::root_cause(&error))).retryable()
        };
        let mut response = sent.map_err(&broken)?;
        let status = response.status();
        let mut memory = clients.memory().response(CallerId::default());
        let body = body::read_body(&mut response, MAX_RESPONSE_BYTES, &mut memory, &broken).await?;
        let document: Value = JsonBudget::default().parse_slice(&body).unwrap_or_default();
        let token = field_value(&document, &self.source.field).and_then(Value::as_str);
        match token.filter(|token| status.is_success() && fits_in_a_header(token)) {
            Some(token) => Ok(CachedToken {
                value: token.into(),
                renew_at_ms: asked_ms.saturating_add(self.lifetime_ms(&document)),
            }),
            None => {
                let words = self.service_message(&document, &injector);
                let failure =
                    self.fetch_failure(&format!("it responded with status {status}{words}"));
                Err(if status.is_server_error() { failure.retryable() } else { failure })
            }
        }
    }

    /// Returns the milliseconds from the fetch of the token to its renewal, at most [`MAX_AGE`].
    /// The result is not positive if the lifetime is at most `refresh_before`; the host then fetches
    /// a token for every request.
    fn lifetime_ms(&self, document: &Value) -> i64 {
        let field =
            self.source.expires_field.as_ref().and_then(|field| field_value(document, field));
        let seconds = field.and_then(|it| it.as_f64().or_else(|| it.as_str()?.parse().ok()));
        let lifetime = seconds.map_or(as_ms(DEFAULT_LIFETIME), |it| (it * MS_PER_SECOND) as i64);
        lifetime.saturating_sub(as_ms(self.source.refresh_before)).min(as_ms(MAX_AGE))
    }

    /// Returns the text of `message_field` after a colon, or an empty text. The rest of the
    /// response is left out, because it can contain a token. Secrets are redacted before the text
    /// is cut, so that no part of a secret remains.
    fn service_message(&self, document: &Value, injector: &SecretInjector<'_>) -> String {
        let field =
            self.source.message_field.as_ref().and_then(|field| field_value(document, field));
        let words = injector.redact(field.and_then(Value::as_str).unwrap_or_default());
        if words.is_empty() {
            return String::new();
        }
        format!(": {}", words.chars().take(MAX_MESSAGE_CHARS).collect::<String>())
    }

    fn fetch_failure(&self, reason: &str) -> Failure {
        let (name, origin) = (&self.name, request_url::origin(&self.url));
        let message = format!(
            "the token `{name}` cannot be fetched from `{origin}`: {reason}; check \
             `[secrets.{name}.token]` in wattle.toml and the secrets that it names"
        );
        Failure::new(code::UNAVAILABLE, message)
    }
}

impl fmt::Debug for ManagedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("name", &self.name).finish_non_exhaustive()
    }
}

fn as_ms(span: HumanDuration) -> i64 {
    i64::try_from(span.as_ms()).unwrap_or(i64::MAX)
}

/// Returns true if the text is a valid value of a header, and not blank.
fn fits_in_a_header(text: &str) -> bool {
    !text.trim().is_empty() && !text.chars().any(char::is_control)
}

fn field_value<'d>(document: &'d Value, field: &str) -> Option<&'d Value> {
    if field.starts_with('/') { document.pointer(field) } else { document.get(field) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wattle_run::hostcall::http::HttpResponse;

    use super::{Rejection, field_value, fits_in_a_header};

    fn answer(status: u16, body: &Value) -> HttpResponse {
        let body = body.to_string().into();
        HttpResponse { status, headers: Vec::new(), body, url: String::new() }
    }

    #[test]
    fn token_rejection_matches_status_or_field() {
        let by_code = Rejection {
            field: Some("code".to_owned()),
            values: vec![99_991_663, 99_991_661],
            ..Rejection::default()
        };
        assert!(by_code.matches(&answer(200, &json!({"code": 99_991_663}))));
        assert!(!by_code.matches(&answer(401, &json!({"code": 0}))));
        assert!(!by_code.matches(&answer(200, &json!("code"))));
        let large = json!({"code": 99_991_663, "text": "x".repeat(64 << 10)});
        assert!(!by_code.matches(&answer(200, &large)));
        // `serde_json` would parse the text in this field.
        let raw = json!({"$serde_json::private::RawValue": "{\"code\": 99991663}"});
        assert!(!by_code.matches(&answer(200, &raw)));
        let by_status = Rejection { status: vec![401], ..Rejection::default() };
        assert!(by_status.matches(&answer(401, &json!(null))));
        assert!(!Rejection::default().matches(&answer(401, &json!({"code": 1}))));
    }

    #[test]
    fn token_is_neither_blank_nor_has_it_control_characters() {
        for token in ["t", "t-1 é", " t"] {
            assert!(fits_in_a_header(token), "{token:?}");
        }
        for token in ["", "  ", "t\n", "t\u{85}"] {
            assert!(!fits_in_a_header(token), "{token:?}");
        }
    }

    #[test]
    fn token_fields_are_keys_or_json_pointers() {
        let document = json!({"a.b": 1, "data": {"token": "t"}});
        assert_eq!(field_value(&document, "a.b"), Some(&json!(1)));
        assert_eq!(field_value(&document, "/data/token"), Some(&json!("t")));
        assert_eq!(field_value(&document, "data/token"), None);
    }
}
