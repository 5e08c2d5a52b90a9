//! The identity of a caller, between which the host divides what it has.

use std::net::IpAddr;

use serde_json::{Value, json};
use wattle_graph::id::Digest;

/// The identity of a caller: a digest of what the host knows of it. It has a fixed size and names
/// nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    fn callers_with_other_keys_and_networks_differ() {
        let network = |last| CallerId::of_network(Ipv4Addr::new(127, 0, 0, last).into());
        let keys = ["1", "2", "127.0.0.1"].map(CallerId::of_key);
        let all: BTreeSet<CallerId> =
            keys.into_iter().chain([network(1), network(2), CallerId::default()]).collect();
        assert_eq!(all.len(), 6);
        assert_eq!(CallerId::of_key("1"), keys[0]);
    }
}
