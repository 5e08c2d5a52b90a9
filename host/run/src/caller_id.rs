//! The identity of a caller. The host divides its resources between callers.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wattle_graph::id::{AppName, Digest};
use wattle_graph::principal::Principal;

/// The identity of a caller: a digest of what the host knows of the caller. The digest has a fixed
/// size and reveals no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallerId(Digest);

impl Default for CallerId {
    /// Returns the identity of all callers of whom nothing is known.
    fn default() -> Self {
        Self(Digest::from_bytes([0; 32]))
    }
}

impl CallerId {
    fn of(known: &Value) -> Self {
        Self(Digest::of(known.to_string().as_bytes()))
    }

    /// Returns the caller with an API key, by the id of the key.
    #[must_use]
    pub fn of_key(id: &str) -> Self {
        Self::of(&json!({ "key": id }))
    }

    /// Returns the caller of a run: the key, the tenant and the user of its request, as far as they
    /// are known. A request without any of them has the caller of [the app](Self::of_app).
    ///
    /// The network of a client does not identify a caller here, since the record of a run does not
    /// contain the network.
    #[must_use]
    pub fn of_run(principal: Option<&Principal>, app: &AppName) -> Self {
        match principal {
            Some(Principal { key, tenant, user, .. })
                if key.is_some() || tenant.is_some() || user.is_some() =>
            {
                Self::of(&json!({ "principal": [key, tenant, user] }))
            }
            _ => Self::of_app(app),
        }
    }

    /// Returns the caller of the work of an app that no caller requested, such as its migrations.
    #[must_use]
    pub fn of_app(app: &AppName) -> Self {
        Self::of(&json!({ "app": app }))
    }

    /// Returns true if nothing is known of the caller.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the bytes of the identity.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Creates an identity from its bytes. Returns `None` if their number does not match.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(|bytes| Self(Digest::from_bytes(bytes)))
    }

    /// Returns the caller without a key, by its network.
    #[must_use]
    pub fn of_network(network: IpAddr) -> Self {
        Self::of(&json!({ "network": network.to_string() }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn callers_with_different_keys_or_networks_have_different_ids() {
        let network = |last| CallerId::of_network(Ipv4Addr::new(127, 0, 0, last).into());
        let keys = ["1", "2", "127.0.0.1"].map(CallerId::of_key);
        let all: BTreeSet<CallerId> =
            keys.into_iter().chain([network(1), network(2), CallerId::default()]).collect();
        assert_eq!(all.len(), 6);
        assert_eq!(CallerId::of_key("1"), keys[0]);
        assert_eq!(CallerId::from_bytes(keys[0].as_bytes()), Some(keys[0]));
        assert_eq!(CallerId::from_bytes(b"short"), None);
    }

    #[test]
    fn run_belongs_to_the_principal_or_else_to_the_app() {
        let (one, other) = (AppName::new("one").unwrap(), AppName::new("other").unwrap());
        let jane = Principal { user: Some("jane".into()), ..Principal::default() };
        let tenant = Principal { tenant: Some("jane".into()), ..Principal::default() };
        let of = CallerId::of_run;
        assert_eq!(of(Some(&jane), &one), of(Some(&jane), &other));
        assert_ne!(of(Some(&jane), &one), of(Some(&tenant), &one));
        assert_ne!(of(None, &one), of(None, &other));
        assert_eq!(of(None, &one), CallerId::of_app(&one));
        // A web handler that starts a run without a caller adds only its app.
        let handler = Principal { app: Some(one.clone()), ..Principal::default() };
        assert_eq!(of(Some(&handler), &one), of(None, &one));
    }
}
