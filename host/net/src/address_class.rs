//! Classifies network addresses.
//!
//! The classes prevent server-side request forgery (SSRF): requests of guests to services that only
//! the host can reach. The ranges are the special-purpose addresses in the registries of IANA and
//! the addresses of the metadata services of cloud providers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// Class of a network address, which decides whether guests may reach the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressClass {
    /// An address that is reachable from the internet.
    Public,
    /// An address of this machine or of its networks. Only rules with `private = true` allow it.
    Private,
    /// An address that no rule allows.
    Forbidden,
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(first: u16, second: u16, third: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, third, 0, 0, 0, 0, 0), prefix)
}

/// Forbidden ranges of IPv4. An address in a forbidden and a private range is forbidden.
pub(crate) const FORBIDDEN_V4: [Ipv4Net; 11] = [
    v4(0, 0, 0, 0, 8),          // this network; Linux connects 0.0.0.0 to itself
    v4(100, 100, 100, 200, 32), // metadata service of Alibaba Cloud
    v4(168, 63, 129, 16, 32),   // metadata service of Azure
    v4(169, 254, 0, 0, 16),     // link-local, and the metadata service of most clouds
    v4(192, 0, 0, 0, 24),       // protocol assignments, and the metadata service of Oracle Cloud
    v4(192, 0, 2, 0, 24),       // documentation
    v4(192, 88, 99, 0, 24),     // relays of 6to4
    v4(198, 51, 100, 0, 24),    // documentation
    v4(203, 0, 113, 0, 24),     // documentation
    v4(224, 0, 0, 0, 4),        // multicast
    v4(240, 0, 0, 0, 4),        // reserved, and broadcast
];

/// Private ranges of IPv4.
pub(crate) const PRIVATE_V4: [Ipv4Net; 6] = [
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10), // carrier-grade NAT
    v4(127, 0, 0, 0, 8),
    v4(172, 16, 0, 0, 12),
    v4(192, 168, 0, 0, 16),
    v4(198, 18, 0, 0, 15), // benchmarks, and the fake addresses of some proxies
];

/// Forbidden ranges of IPv6 within `GLOBAL_V6` and `PRIVATE_V6`. Every address outside of these two
/// ranges except loopback is forbidden too, for example link-local, multicast and NAT64 addresses
/// and all addresses that embed an IPv4 address.
pub(crate) const FORBIDDEN_V6: [Ipv6Net; 5] = [
    v6(0x2001, 0, 0, 23), // protocol assignments: Teredo, benchmarks, identifiers
    v6(0x2001, 0xdb8, 0, 32), // documentation
    v6(0x2002, 0, 0, 16), // 6to4, which embeds an IPv4 address
    v6(0x3fff, 0, 0, 20), // documentation
    // Metadata service of AWS.
    Ipv6Net::new_assert(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128),
];

/// Private range of IPv6: unique local addresses. Loopback is private too.
pub(crate) const PRIVATE_V6: Ipv6Net = v6(0xfc00, 0, 0, 7);

/// Range of global unicast addresses of IPv6.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

/// Returns the class of an address.
pub(crate) fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

/// Returns true if guests may reach an address. `private` allows private addresses.
pub fn is_address_allowed(address: IpAddr, private: bool) -> bool {
    match classify(address) {
        AddressClass::Public => true,
        AddressClass::Private => private,
        AddressClass::Forbidden => false,
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    if FORBIDDEN_V4.iter().any(|range| range.contains(&address)) {
        AddressClass::Forbidden
    } else if PRIVATE_V4.iter().any(|range| range.contains(&address)) {
        AddressClass::Private
    } else {
        AddressClass::Public
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    if FORBIDDEN_V6.iter().any(|range| range.contains(&address)) {
        AddressClass::Forbidden
    } else if address.is_loopback() || PRIVATE_V6.contains(&address) {
        AddressClass::Private
    } else if GLOBAL_V6.contains(&address) {
        AddressClass::Public
    } else {
        AddressClass::Forbidden
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
    use proptest::sample::select;

    use super::*;

    /// Generates addresses in `ranges`.
    fn within_v4(ranges: &'static [Ipv4Net]) -> impl Strategy<Value = Ipv4Addr> {
        (select(ranges), any::<u32>()).prop_map(|(range, bits)| {
            let host = bits & !u32::from(range.netmask());
            Ipv4Addr::from(u32::from(range.network()) | host)
        })
    }

    fn within_v6(ranges: Vec<Ipv6Net>) -> impl Strategy<Value = Ipv6Addr> {
        (select(ranges), any::<u128>()).prop_map(|(range, bits)| {
            let host = bits & !u128::from(range.netmask());
            Ipv6Addr::from(u128::from(range.network()) | host)
        })
    }

    /// Returns ranges of IPv6 that embed IPv4 or are reserved: mapped, compatible, translated,
    /// NAT64, local NAT64, link-local, multicast and others.
    fn disguises() -> Vec<Ipv6Net> {
        let texts = [
            "::ffff:0:0/96",
            "::/96",
            "::ffff:0:0:0/96",
            "64:ff9b::/96",
            "64:ff9b:1::/48",
            "fe80::/10",
            "ff00::/8",
            "100::/64",
            "5f00::/16",
            "fec0::/10",
        ];
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    proptest! {
        #[test]
        fn forbidden_ipv4_ranges_are_unreachable(address in within_v4(&FORBIDDEN_V4)) {
            prop_assert_eq!(classify(address.into()), AddressClass::Forbidden);
        }

        #[test]
        fn private_ipv4_ranges_need_a_private_rule(address in within_v4(&PRIVATE_V4)) {
            prop_assert!(!is_address_allowed(address.into(), false));
        }

        #[test]
        fn forbidden_ipv6_ranges_are_unreachable(
            address in within_v6([&FORBIDDEN_V6[..], &disguises()].concat()),
        ) {
            prop_assert!(!is_address_allowed(address.into(), false));
            prop_assert!(address.is_loopback() || !is_address_allowed(address.into(), true));
        }

        #[test]
        fn unique_local_addresses_need_a_private_rule(address in within_v6(vec![PRIVATE_V6])) {
            prop_assert!(!is_address_allowed(address.into(), false));
        }

        #[test]
        fn addresses_that_std_classifies_as_special_are_not_public(bits in any::<u32>()) {
            let address = Ipv4Addr::from(bits);
            let special = address.is_private() || address.is_loopback() || address.is_link_local()
                || address.is_multicast() || address.is_broadcast() || address.is_unspecified()
                || address.is_documentation();
            prop_assert!(!special || !is_address_allowed(address.into(), false));
        }
    }

    #[test]
    fn well_known_addresses_are_classified() {
        let cases = [
            ("8.8.8.8", AddressClass::Public),
            ("100.63.255.255", AddressClass::Public),
            ("172.32.0.0", AddressClass::Public),
            ("198.20.0.0", AddressClass::Public),
            ("2606:4700:4700::1111", AddressClass::Public),
            ("2a00:1450:4001:80b::200e", AddressClass::Public),
            ("127.0.0.1", AddressClass::Private),
            ("192.168.1.1", AddressClass::Private),
            ("100.64.0.1", AddressClass::Private),
            ("::1", AddressClass::Private),
            ("fd12::1", AddressClass::Private),
            ("169.254.169.254", AddressClass::Forbidden),
            ("100.100.100.200", AddressClass::Forbidden),
            ("fd00:ec2::254", AddressClass::Forbidden),
            ("0.0.0.0", AddressClass::Forbidden),
            ("::", AddressClass::Forbidden),
            ("::ffff:127.0.0.1", AddressClass::Forbidden),
            ("::ffff:8.8.8.8", AddressClass::Forbidden),
            ("64:ff9b::7f00:1", AddressClass::Forbidden),
            ("fe80::1", AddressClass::Forbidden),
        ];
        for (text, expected) in cases {
            assert_eq!(classify(text.parse().unwrap()), expected, "{text}");
        }
    }
}
