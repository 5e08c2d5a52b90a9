//! Networks in the configuration: `10.0.0.0/8`, `::1`.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer};

/// A network of IP addresses. It can consist of a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(pub IpNet);

impl std::str::FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = || text.parse::<IpAddr>().map(IpNet::from);
        let network = text.parse::<IpNet>().or_else(|_| address());
        network.map(Self).map_err(|_| {
            format!("`{text}` is neither an IP address nor a network such as `10.0.0.0/8`")
        })
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_are_parsed() {
        for (text, network) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("127.0.0.1", "127.0.0.1/32"),
            ("::1", "::1/128"),
            ("2001:db8::/32", "2001:db8::/32"),
        ] {
            assert_eq!(text.parse::<Network>().unwrap().0.to_string(), network);
        }
        for odd in ["", "localhost", "10.0.0.0/33", "10.0.0", "*"] {
            assert!(odd.parse::<Network>().is_err(), "{odd}");
        }
    }
}
