//! Names to addresses, and only to those that may be reached.
//!
//! The client connects to what this resolver gives it and to nothing else, so there is no moment
//! between check and connection in which a name could be made to mean something else.

use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::zone::reachable;

/// The system's resolver behind the check.
#[derive(Debug)]
pub(crate) struct Guarded {
    /// Whether private addresses may be reached.
    pub(crate) private: bool,
}

/// A name that leads only to addresses that may not be reached.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` leads to the address {address}")]
pub(crate) struct Refused {
    name: String,
    pub(crate) address: std::net::IpAddr,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let private = self.private;
        let name = name.as_str().to_owned();
        Box::pin(async move {
            // The port is filled in by the client.
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> =
                found.iter().copied().filter(|found| reachable(found.ip(), private)).collect();
            match (allowed.is_empty(), found.first()) {
                (true, Some(refused)) => Err(Refused { name, address: refused.ip() }.into()),
                (true, None) => Err(format!("`{name}` has no address").into()),
                (false, _) => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}
