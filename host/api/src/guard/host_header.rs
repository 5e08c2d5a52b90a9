//! Validation of the `Host` header.

use std::net::{IpAddr, Ipv6Addr};

use crate::config::ApiConfig;

/// Returns true if requests for this host (and port) are allowed: `localhost`, IP address literals
/// and configured names. An IP address literal is always allowed, because DNS rebinding needs a
/// name.
pub(super) fn is_allowed(config: &ApiConfig, host: Option<&str>) -> bool {
    match host.and_then(parse) {
        Some(Name::Address) => true,
        Some(Name::Text(name)) => {
            let name = name.to_ascii_lowercase();
            name == "localhost" || config.hosts.contains(&name)
        }
        None => false,
    }
}

/// The host of an authority.
enum Name<'a> {
    /// An IP address literal.
    Address,
    /// A name.
    Text(&'a str),
}

/// Parses `host[:port]` (RFC 9110, 7.2). Returns `None` for any other form, because programs
/// disagree about which part of such a string is the host.
fn parse(authority: &str) -> Option<Name<'_>> {
    if let Some(literal) = authority.strip_prefix('[') {
        let (address, rest) = literal.split_once(']')?;
        let port = rest.strip_prefix(':');
        let is_right = rest.is_empty() || port.is_some_and(is_port);
        let is_address = is_right && address.parse::<Ipv6Addr>().is_ok();
        return is_address.then_some(Name::Address);
    }
    let name = match authority.split_once(':') {
        Some((name, port)) => Some(name).filter(|_| is_port(port))?,
        None => authority,
    };
    let is_address = name.parse::<IpAddr>().is_ok();
    Some(if is_address { Name::Address } else { Name::Text(name) })
}

/// Returns true if a string is a port. `parse` alone also accepts a sign.
fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}
