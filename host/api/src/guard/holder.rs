//! Whose key a request brings, and what that may do.

use std::fmt;
use std::sync::Arc;

use axum::http::{Extensions, HeaderMap};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::guard::kept::KeyRecord;
use crate::guard::key;
use crate::guard::rate::Rate;
use crate::state::ApiConfig;

/// What a key opens; each also opens what stands before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum KeyScope {
    /// Reading and searching.
    Read,
    /// Everything that is done with threads, runs, assistants and documents.
    Write,
    /// Keys and model routes of its tenant; without a tenant everything that is the operator's.
    Admin,
}

impl fmt::Display for KeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        })
    }
}

/// A known key, among the extensions of the requests that bring it. A handle: cheap to clone.
#[derive(Clone, Debug)]
pub struct Holder(Arc<Held>);

#[derive(Debug)]
struct Held {
    id: String,
    tenant: Option<String>,
    scope: KeyScope,
    /// The record, if the key was made and not configured.
    record: Option<Arc<KeyRecord>>,
}

impl Holder {
    /// A key of the configuration: the operator's, or a tenant's.
    pub(crate) fn configured(id: String, tenant: Option<String>) -> Self {
        Self(Arc::new(Held { id, tenant, scope: KeyScope::Admin, record: None }))
    }

    /// A key that was made.
    pub(crate) fn kept(record: &Arc<KeyRecord>) -> Self {
        let scope = record.scopes.iter().copied().max().unwrap_or(KeyScope::Read);
        Self(Arc::new(Held {
            id: record.id.clone(),
            tenant: record.tenant.clone(),
            scope,
            record: Some(record.clone()),
        }))
    }

    /// The key of a request. Guards have looked for it; keys of the configuration are also found
    /// where no guard stands.
    pub(crate) fn of(
        config: &ApiConfig,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Option<Self> {
        extensions.get::<Self>().cloned().or_else(|| key::configured(config, headers))
    }

    /// By which its requests are counted.
    pub(crate) fn id(&self) -> &str {
        &self.0.id
    }

    /// The tenant that it stands for.
    pub(crate) fn tenant(&self) -> Option<&str> {
        self.0.tenant.as_deref()
    }

    /// Its record, if it was made and not configured.
    pub(crate) fn record(&self) -> Option<&KeyRecord> {
        self.0.record.as_deref()
    }

    /// Whether it opens something.
    pub(crate) fn opens(&self, needed: KeyScope) -> bool {
        self.0.scope >= needed
    }

    /// Whether it is the operator's.
    pub(crate) fn is_operators(&self) -> bool {
        self.0.tenant.is_none() && self.opens(KeyScope::Admin)
    }

    /// How often it may be used, if it has a rate of its own.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.record()?.rate
    }
}
