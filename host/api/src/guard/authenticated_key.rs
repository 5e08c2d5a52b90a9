//! The authenticated key of a request, and its permissions.

use std::sync::Arc;

use crate::guard::key_record::KeyRecord;
use crate::guard::rate::Rate;
use crate::guard::scope::KeyScope;

/// Prefix of the public ids of configured keys.
const CONFIGURED: &str = "configured-";

/// Number of hex digits of the digest in the public id of a configured key. The digits distinguish
/// the few keys of a configuration.
const CONFIGURED_DIGITS: usize = 4;

/// The authenticated key of a request, in the extensions of the request. A handle: cheap to clone.
#[derive(Clone, Debug)]
pub struct AuthenticatedKey(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: String,
    tenant: Option<String>,
    scope: KeyScope,
    /// Record of a created key; `None` for a configured key.
    record: Option<Arc<KeyRecord>>,
}

impl AuthenticatedKey {
    /// Creates the handle of a configured key of the operator or of a tenant.
    pub(crate) fn configured(id: String, tenant: Option<String>) -> Self {
        Self(Arc::new(Inner { id, tenant, scope: KeyScope::Admin, record: None }))
    }

    /// Creates the handle of a created key.
    pub(crate) fn from_record(record: &Arc<KeyRecord>) -> Self {
        let scope = record.scopes.iter().copied().max().unwrap_or(KeyScope::Read);
        Self(Arc::new(Inner {
            id: record.id.clone(),
            tenant: record.tenant.clone(),
            scope,
            record: Some(record.clone()),
        }))
    }

    /// Returns the id under which the rate limiter counts the key's requests.
    pub(crate) fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns the id that events record. The id of a configured key contains only a few digits of
    /// the digest: a person may have chosen a weak key, and more digits would help an attacker to
    /// guess the key.
    pub(crate) fn public_id(&self) -> String {
        match self.record() {
            Some(record) => record.id.clone(),
            None => format!("{CONFIGURED}{}", &self.0.id[..CONFIGURED_DIGITS]),
        }
    }

    /// Returns the tenant of the key; `None` for a key without a tenant.
    pub(crate) fn tenant(&self) -> Option<&str> {
        self.0.tenant.as_deref()
    }

    /// Returns the record of a created key; `None` for a configured key.
    pub(crate) fn record(&self) -> Option<&KeyRecord> {
        self.0.record.as_deref()
    }

    /// Returns the highest scope of the key.
    pub(crate) fn scope(&self) -> KeyScope {
        self.0.scope
    }

    /// Returns true if the key has the scope or a higher one.
    pub(crate) fn allows(&self, needed: KeyScope) -> bool {
        self.0.scope >= needed
    }

    /// Returns true if the key has the rights of the operator.
    pub(crate) fn is_operator_key(&self) -> bool {
        self.0.tenant.is_none() && self.allows(KeyScope::Admin)
    }

    /// Returns the key's own rate limit.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.record()?.rate
    }
}
