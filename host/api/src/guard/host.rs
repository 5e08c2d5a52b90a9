//! Which `Host` headers are accepted.

use std::net::{IpAddr, Ipv6Addr};

use crate::state::ApiConfig;

/// Whether a request for this host (and port) may pass: `localhost`, literal addresses and
/// configured names. A literal address cannot be rebound, so it is always fine.
pub(super) fn is_allowed(config: &ApiConfig, host: Option<&str>) -> bool {
    let Some(host) = host else { return false };
    if let Some(literal) = host.strip_prefix('[') {
        let address = literal.split(']').next().unwrap_or_default();
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name).to_ascii_lowercase();
    name == "localhost" || name.parse::<IpAddr>().is_ok() || config.hosts.contains(&name)
}
