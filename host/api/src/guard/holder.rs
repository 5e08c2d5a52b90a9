//! Whose key a request brings, and what that may do.

use std::sync::Arc;

use axum::http::{Extensions, HeaderMap};

use crate::guard::kept::KeyRecord;
use crate::guard::key;
use crate::guard::rate::Rate;
use crate::guard::scope::KeyScope;
use crate::state::ApiConfig;

/// With what the public id of a key of the configuration begins.
const CONFIGURED: &str = "configured-";

/// Hex digits of its digest in that id: enough to tell the few keys of a configuration apart.
const CONFIGURED_DIGITS: usize = 4;

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

    /// The id by which events name it. A person may have chosen a key of the configuration, and could
    /// be found by trying out keys if much of its digest was known.
    pub(crate) fn public_id(&self) -> String {
        match self.record() {
            Some(record) => record.id.clone(),
            None => format!("{CONFIGURED}{}", &self.0.id[..CONFIGURED_DIGITS]),
        }
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
