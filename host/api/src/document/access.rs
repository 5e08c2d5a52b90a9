//! JSON body of the endpoint that describes the access of a request.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::guard::scope::KeyScope;

/// The access of a request, and the properties of the host that a client needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccessDocument {
    /// True if requests need an API key.
    pub needs_key: bool,
    /// Scope of the request: the scope of its key, or `admin` on a host without keys.
    pub scope: KeyScope,
    /// Key of the request; absent for a request without a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyName>,
    /// Tenant of the request; absent for a request without a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Header in which a request can name its tenant; absent if the host reads no such header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_header: Option<String>,
    /// User that a trusted proxy named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// True if the request has the rights of the operator.
    pub is_operator: bool,
    /// Version of Wattle.
    pub version: String,
    /// Instance id of the server. Each start generates a new id.
    pub instance: String,
    /// IANA name of the time zone of the host.
    pub time_zone: String,
    /// True if this address serves the Agent Server API.
    pub agent_server: bool,
    /// True if this address serves the endpoints and pages of apps.
    pub apps: bool,
    /// True if this address serves the studio under `/studio/`.
    #[serde(default)]
    #[schema(required = true)]
    pub studio: bool,
    /// True if the request may install plugins.
    pub install: bool,
}

/// The names of an API key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyName {
    /// Public id, as events record it.
    pub id: String,
    /// Display name; absent for a key of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
