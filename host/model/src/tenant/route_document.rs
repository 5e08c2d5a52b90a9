//! The settings of a tenant route, as a JSON object.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::{ModelConfig, ModelRef, ProviderConfig, ProviderKind, RouteConfig};
use crate::error::ConfigError;
use crate::extra::Extra;
use crate::provider::{self, ApiKey, Provider, Providers};
use crate::route::{Route, RouteOwner};
use crate::tenant::guarded_resolver;

/// Whether a tenant route applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// The tenant route applies.
    #[default]
    Active,
    /// The operator's route applies.
    Disabled,
}

/// The JSON object of a tenant route. It contains a key, and therefore has no `Debug`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RouteDocument {
    /// The name of a configured provider, or a kind of provider.
    provider: String,
    model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    api_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    enable_thinking: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fallback_provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fallback_model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    extra_json: Option<Value>,
    #[serde(default)]
    status: Status,
    /// The field that responses contain in place of the key. The field is ignored in requests, so
    /// that a client can send back the object that it received.
    #[serde(default, skip_serializing, rename = "has_api_key")]
    _has_api_key: Option<IgnoredAny>,
}

impl RouteDocument {
    /// Parses the JSON object of a tenant route.
    ///
    /// # Errors
    ///
    /// Returns why the document is invalid.
    pub(super) fn parse(document: Value) -> Result<Self, String> {
        // Messages of serde name the field, never its value.
        let mut document: Self =
            serde_json::from_value(document).map_err(|error| error.to_string())?;
        let texts =
            [&mut document.base_url, &mut document.fallback_provider, &mut document.fallback_model];
        for text in texts {
            // Forms send an empty string for an empty field.
            *text = text.take().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        }
        document.api_key = document.api_key.map(|key| key.trim().to_owned());
        Ok(document)
    }

    /// Copies the key of the previous document if this document has no key and both have the same
    /// provider and base URL. With another provider or base URL, the key would be sent to another
    /// service. An empty key removes the previous key.
    pub(super) fn inherit_key(&mut self, old: &Self) {
        if self.api_key.is_none() && self.provider == old.provider && self.base_url == old.base_url
        {
            self.api_key.clone_from(&old.api_key);
        }
    }

    /// Returns the document with `has_api_key` in place of the key.
    pub(super) fn redacted(&self) -> Value {
        let mut shown = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = shown.as_object_mut() {
            fields.shift_remove("api_key");
        }
        shown["has_api_key"] = json!(self.key().is_some());
        shown
    }

    fn key(&self) -> Option<&str> {
        self.api_key.as_deref().filter(|key| !key.is_empty())
    }
}

/// Builds routes from documents.
pub(super) struct RouteBuilder<'a> {
    pub(super) config: &'a ModelConfig,
    pub(super) providers: &'a Providers,
    /// The client for base URLs of tenants.
    pub(super) http: &'a reqwest::Client,
    pub(super) reachable: fn(IpAddr) -> bool,
}

impl RouteBuilder<'_> {
    /// Builds the route of a document; `None` if it is disabled.
    ///
    /// # Errors
    ///
    /// Returns why the document is invalid.
    pub(super) fn build(
        &self,
        name: &str,
        document: &RouteDocument,
    ) -> Result<Option<Arc<Route>>, String> {
        let provider = self.provider(document)?;
        let mut providers = Providers::new();
        providers.insert(document.provider.clone(), Arc::clone(&provider));
        let fallbacks: Vec<ModelRef> = Self::fallback(document)?.into_iter().collect();
        for target in &fallbacks {
            if target.provider != document.provider {
                let known = self.providers.get(&target.provider).ok_or_else(|| {
                    format!(
                        "`fallback_provider`: there is no provider `{}`; use the provider of the \
                         route or one of: {}",
                        target.provider,
                        self.provider_names()
                    )
                })?;
                providers.insert(target.provider.clone(), Arc::clone(known));
            }
        }
        let operator = self.config.routes.get(name);
        let route = RouteConfig {
            provider: document.provider.clone(),
            model: document.model.trim().to_owned(),
            model_env: None,
            timeout: timeout(document, operator)?,
            retries: operator.map_or(crate::config::DEFAULT_RETRIES, |route| route.retries),
            temperature: operator.and_then(|route| route.temperature),
            max_output_tokens: operator.and_then(|route| route.max_output_tokens),
            extra: extra(document, provider.kind())?,
            fallbacks,
        };
        let aliases = &self.config.aliases;
        let route = Route::new(name, route, &providers, aliases, RouteOwner::Tenant);
        let route = route.map_err(|error| match error {
            ConfigError::Route { field: "extra", reason, .. } => format!("`extra_json`: {reason}"),
            ConfigError::Route { field, reason, .. } => format!("`{field}`: {reason}"),
            other => other.to_string(),
        })?;
        Ok((document.status == Status::Active).then(|| Arc::new(route)))
    }

    /// Returns the operator's provider, or a provider with the key or base URL of the tenant.
    fn provider(&self, document: &RouteDocument) -> Result<Arc<Provider>, String> {
        let named = self.providers.get(&document.provider);
        if let (Some(named), None, None) = (named, document.key(), &document.base_url) {
            return Ok(Arc::clone(named));
        }
        let mut config = match self.config.providers.get(&document.provider) {
            Some(config) => config.clone(),
            None => default_config(&document.provider).ok_or_else(|| {
                format!(
                    "`provider`: there is no provider `{}`; use one of: openai, gemini, anthropic, \
                     {}",
                    document.provider,
                    self.provider_names()
                )
            })?,
        };
        // The operator's key is sent to the operator's base URL only.
        let key = document.key().map_or(ApiKey::None, |key| ApiKey::Tenant(key.to_owned().into()));
        let mut http = self.http;
        let ordinary;
        match &document.base_url {
            Some(url) => {
                self.check_url(url)?;
                config.base_url = Some(url.clone());
            }
            None => {
                // The base URL is the operator's or an official one, so its addresses need no
                // check.
                ordinary = provider::http_client(None)?;
                http = &ordinary;
            }
        }
        let provider = Provider::new(&document.provider, &config, key, http.clone());
        provider.map(Arc::new).map_err(|error| error.to_string())
    }

    fn check_url(&self, url: &str) -> Result<(), String> {
        match provider::base_url("tenant", url) {
            Err(ConfigError::BaseUrl { reason, .. }) => {
                return Err(format!("`base_url`: {reason}"));
            }
            Err(other) => return Err(other.to_string()),
            Ok(_) => {}
        }
        match guarded_resolver::literal_address(url) {
            Some(address) if !(self.reachable)(address) => Err(format!(
                "`base_url` has the address {address}, which tenants must not reach; an \
                 operator can allow private addresses with `tenant_private = true` under `[model]`"
            )),
            _ => Ok(()),
        }
    }

    fn fallback(document: &RouteDocument) -> Result<Option<ModelRef>, String> {
        match (&document.fallback_provider, &document.fallback_model) {
            (None, None) => Ok(None),
            (Some(_), None) => {
                Err("`fallback_model`: name a model of the fallback's provider".to_owned())
            }
            (provider, Some(model)) => Ok(Some(ModelRef {
                provider: provider.as_ref().unwrap_or(&document.provider).clone(),
                model: model.clone(),
                model_env: None,
                extra: Extra::new(),
            })),
        }
    }

    fn provider_names(&self) -> String {
        let names: Vec<&str> = self.config.providers.keys().map(String::as_str).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}

/// Returns the configuration of a provider of the kind `word` at its official base URL; `None` if
/// the word is not a kind of provider.
fn default_config(word: &str) -> Option<ProviderConfig> {
    let kind: ProviderKind = serde_json::from_value(json!(word)).ok()?;
    serde_json::from_value(json!({ "kind": kind })).ok()
}

fn timeout(document: &RouteDocument, operator: Option<&RouteConfig>) -> Result<Duration, String> {
    let longest = wattle_run::limit::NODE_TIMEOUT_MS;
    match document.timeout_ms {
        Some(ms) if (1..=longest).contains(&ms) => Ok(Duration::from_millis(ms)),
        Some(_) => Err(format!("`timeout_ms` must be between 1 and {longest}")),
        None => Ok(operator.map_or(crate::config::DEFAULT_TIMEOUT, |route| route.timeout)),
    }
}

/// Returns the extra fields of a document. `enable_thinking` sets the field `thinking` of
/// DeepSeek's API, a field that `extra_json` may replace.
fn extra(document: &RouteDocument, kind: ProviderKind) -> Result<Extra, String> {
    let mut extra = Extra::new();
    if let Some(enabled) = document.enable_thinking {
        if kind != ProviderKind::Openai {
            return Err("`enable_thinking` is for providers of kind `openai` only".to_owned());
        }
        let word = if enabled { "enabled" } else { "disabled" };
        extra.insert("thinking".into(), json!({ "type": word }));
    }
    let own = match &document.extra_json {
        None | Some(Value::Null) => Value::Object(Extra::new()),
        Some(Value::String(text)) if text.trim().is_empty() => Value::Object(Extra::new()),
        Some(Value::String(text)) => serde_json::from_str(text)
            .map_err(|error| format!("`extra_json` is not JSON: {error}"))?,
        Some(other) => other.clone(),
    };
    match own {
        Value::Object(own) => extra.extend(own),
        _ => {
            let problem = "`extra_json` must be a JSON object or a string that contains one";
            return Err(problem.to_owned());
        }
    }
    Ok(extra)
}
