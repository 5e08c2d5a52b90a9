//! One provider: its client, its key and its bounded concurrency.

mod fault;
mod options;
mod reply;

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, Headers, ModelIden, ServiceTarget};
use reqwest::Url;
use reqwest::redirect::Policy;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;
use wattle_graph::failure::{Failure, code};

use crate::config::{ProviderConfig, ProviderKind, Structured};
use crate::error::ConfigError;
use crate::provider::fault::Fault;
pub(crate) use crate::provider::options::{Format, chat_options};
pub(crate) use crate::provider::reply::Reply;
use crate::retry::Pauses;

/// Requests to one provider at once: kind to it, and a bound for memory. Others wait their turn.
const CONCURRENCY: usize = 32;

/// Longest wait for a connection: a provider that does not even answer is down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The name under which requests are made.
const USER_AGENT: &str = concat!("wattle/", env!("CARGO_PKG_VERSION"));

/// The version of Anthropic's wire format, as `genai` sends it.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// One provider.
pub(crate) struct Provider {
    name: String,
    kind: ProviderKind,
    structured: Structured,
    base_url: String,
    key: Key,
    client: Client,
    permits: Semaphore,
    pauses: Pauses,
}

/// How one model is called: for messages, and for the bounds of every attempt.
#[derive(Clone, Copy)]
pub(crate) struct Aim<'a> {
    pub(crate) route: &'a str,
    pub(crate) model: &'a str,
    pub(crate) timeout: Duration,
    pub(crate) retries: u32,
}

enum Key {
    /// None is needed.
    None,
    /// The variable is not set.
    Missing { variable: String },
    /// The variable's value.
    Present { variable: String, value: SecretString },
}

impl Provider {
    /// A provider as configured. A key that is missing is no error here: see
    /// [`Provider::problem`].
    pub(crate) fn new(
        name: &str,
        config: &ProviderConfig,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let default = config.kind.default_base_url();
        let http = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(CONNECT_TIMEOUT)
            // Keys in headers of their own would follow a redirect to another host.
            .redirect(Policy::none())
            .no_proxy()
            .tcp_nodelay(true)
            .build()
            .map_err(|error| ConfigError::Client {
                provider: name.to_owned(),
                reason: error.to_string(),
            })?;
        let client = Client::builder().with_reqwest(http).build();
        Ok(Self {
            name: name.to_owned(),
            kind: config.kind,
            structured: config.structured,
            base_url: base_url(name, config.base_url.as_deref().unwrap_or(default))?,
            key: Key::read(config.key_env.as_deref(), env),
            client: client.map_err(|error| ConfigError::Client {
                provider: name.to_owned(),
                reason: error.to_string(),
            })?,
            permits: Semaphore::new(CONCURRENCY),
            pauses: Pauses::default(),
        })
    }

    pub(crate) fn kind(&self) -> ProviderKind {
        self.kind
    }

    pub(crate) fn structured(&self) -> Structured {
        self.structured
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What keeps the provider from being used, and what to do about it.
    pub(crate) fn problem(&self) -> Option<String> {
        match &self.key {
            Key::Missing { variable } => Some(format!(
                "the model provider `{}` has no key; set the environment variable `{variable}`",
                self.name
            )),
            Key::None | Key::Present { .. } => None,
        }
    }

    /// One turn of a conversation: one request, and further ones after faults that may pass.
    pub(crate) async fn turn(
        &self,
        aim: Aim<'_>,
        chat: &ChatRequest,
        options: &ChatOptions,
    ) -> Result<Reply, Failure> {
        if let Some(problem) = self.problem() {
            return Err(Failure::new(code::UNAVAILABLE, problem));
        }
        let mut tried = 0;
        loop {
            let fault = match self.attempt(aim, chat, options).await {
                Ok(reply) => return Ok(reply),
                Err(fault) => fault,
            };
            let Some(pause) = self.pauses.next(fault.retry, tried, aim.retries) else {
                return Err(fault.failure);
            };
            tracing::debug!(
                provider = %self.name, model = %aim.model, code = %fault.failure.code,
                pause_ms = pause.as_millis() as u64, "model call is tried again"
            );
            tokio::time::sleep(pause).await;
            tried += 1;
        }
    }

    /// One request. Waiting for a free place does not count as waiting for the provider.
    async fn attempt(
        &self,
        aim: Aim<'_>,
        chat: &ChatRequest,
        options: &ChatOptions,
    ) -> Result<Reply, Fault> {
        let place = self.permits.acquire().await;
        let call = self.client.exec_chat(self.target(aim.model), chat.clone(), Some(options));
        let answer = tokio::time::timeout(aim.timeout, call).await;
        drop(place);
        match answer {
            Err(_) => Err(fault::timeout(self, aim)),
            Ok(Ok(response)) => {
                Reply::read(self.kind, response).map_err(|text| fault::broken(self, aim, &text))
            }
            Ok(Err(error)) => match reply::blocked(&error) {
                Some(reply) => Ok(reply),
                None => Err(fault::read(self, aim, error)),
            },
        }
    }

    fn target(&self, model: &str) -> ServiceTarget {
        let kind = match self.kind {
            ProviderKind::Openai => AdapterKind::OpenAI,
            ProviderKind::Gemini => AdapterKind::Gemini,
            ProviderKind::Anthropic => AdapterKind::Anthropic,
        };
        let auth = match &self.key {
            Key::Present { value, .. } => AuthData::from_single(value.expose_secret()),
            Key::None | Key::Missing { .. } => self.anonymous(model),
        };
        ServiceTarget {
            endpoint: Endpoint::from_owned(self.base_url.as_str()),
            auth,
            model: ModelIden::new(kind, model),
        }
    }

    /// A call without a key. `genai` wants a key for every provider unless address and headers
    /// are given whole.
    fn anonymous(&self, model: &str) -> AuthData {
        let base = &self.base_url;
        let (url, headers) = match self.kind {
            ProviderKind::Openai => (format!("{base}chat/completions"), Headers::default()),
            ProviderKind::Gemini => {
                (format!("{base}models/{model}:generateContent"), Headers::default())
            }
            ProviderKind::Anthropic => {
                (format!("{base}messages"), Headers::from(("anthropic-version", ANTHROPIC_VERSION)))
            }
        };
        AuthData::RequestOverride { url, headers }
    }

    /// The variable that holds the key, if one is needed.
    fn key_variable(&self) -> Option<&str> {
        match &self.key {
            Key::None => None,
            Key::Missing { variable } | Key::Present { variable, .. } => Some(variable),
        }
    }

    /// A text without the key, should a provider or a library repeat it.
    fn scrub(&self, text: &str) -> String {
        match &self.key {
            Key::Present { value, .. } => text.replace(value.expose_secret(), "***"),
            Key::None | Key::Missing { .. } => text.to_owned(),
        }
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

impl Key {
    /// An empty variable counts as missing, and white space around a key is never part of it.
    fn read(variable: Option<&str>, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let Some(variable) = variable else { return Self::None };
        let value = env(variable).map(|value| value.trim().to_owned());
        let variable = variable.to_owned();
        match value.filter(|value| !value.is_empty()) {
            Some(value) => Self::Present { variable, value: value.into() },
            None => Self::Missing { variable },
        }
    }
}

/// An address that suffixes such as `chat/completions` can be put after.
fn base_url(provider: &str, text: &str) -> Result<String, ConfigError> {
    let refused = |reason: &str| ConfigError::BaseUrl {
        provider: provider.to_owned(),
        url: text.to_owned(),
        reason: reason.to_owned(),
    };
    let mut url = Url::parse(text).map_err(|error| refused(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("the scheme is neither https nor http"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // The address appears in messages.
        return Err(ConfigError::BaseUrl {
            provider: provider.to_owned(),
            url: url.host_str().unwrap_or_default().to_owned(),
            reason: "it names a user or password; use `key_env`".to_owned(),
        });
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refused("it has a query or a fragment"));
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url.into())
}

/// Providers by name.
pub(crate) type Providers = HashMap<String, Provider>;
