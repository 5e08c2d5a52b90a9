//! Encodes namespaces of the long-term memory as bytes, called paths. Paths sort by scope and then
//! by the parts of the namespace. All namespaces under a prefix are contiguous, so a search reads
//! one range.
//!
//! A scope is the byte `0`, or the byte `1` and the tenant as a part. The host's own scopes have
//! the bytes `2` and `3` instead. A part is its UTF-8 with each byte raised by one, then a `0`. So
//! no part contains the byte that ends the part, even if its text has a NUL. No part contains
//! [`MAX_BYTE`], since UTF-8 has no byte above `0xf4`.

use std::ops::Range;

use wattle_graph::failure::{Failure, code};
use wattle_run::ports::memory::{MemoryScope, WILDCARD};

/// A byte that is greater than every byte of an encoded namespace part.
const MAX_BYTE: u8 = 0xff;

/// The byte that ends each part of an encoded namespace.
const PART_END: u8 = 0;

/// Flag in the first byte of a path: a tenant follows.
const TENANT_FLAG: u8 = 1;

/// Flag in the first byte of a path: the path belongs to a scope of the host itself.
const HOST_FLAG: u8 = 2;

/// Returns the bytes of a namespace or of a prefix of a namespace.
pub(crate) fn encode(scope: &MemoryScope, namespace: &[String]) -> Vec<u8> {
    let mut path = Vec::with_capacity(64);
    let tenant = scope.tenant();
    let of_host = if matches!(scope, MemoryScope::Host(_)) { HOST_FLAG } else { 0 };
    path.push(of_host | if tenant.is_some() { TENANT_FLAG } else { 0 });
    for part in tenant.into_iter().chain(namespace) {
        path.extend(part.bytes().map(|byte| byte + 1));
        path.push(PART_END);
    }
    path
}

/// Returns the parts of a namespace.
///
/// # Errors
///
/// `broken` if the bytes are not the encoding of a namespace.
pub(crate) fn decode(path: &[u8]) -> Result<Vec<String>, Failure> {
    let broken =
        || Failure::new(code::BROKEN, "a namespace of the long-term memory cannot be read");
    split(path).map(|(_, namespace)| namespace).ok_or_else(broken)
}

/// Returns the paths of the scope and of all prefixes of a namespace, the whole namespace included.
pub(crate) fn prefixes(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == PART_END).map(|(at, _)| at + 1);
    // The first byte is that of the scope, which may be equal to `PART_END`.
    let ends = std::iter::once(1).chain(ends.filter(|end| *end > 1));
    ends.filter_map(|end| path.get(..end))
}

/// Returns the name of a document for messages.
pub(crate) fn document_name(path: &[u8], key: &str) -> String {
    match split(path) {
        Some((Some(tenant), namespace)) => {
            format!("document {key:?} in {namespace:?} of tenant {tenant:?}")
        }
        Some((None, namespace)) => format!("document {key:?} in {namespace:?}"),
        None => format!("document {key:?}"),
    }
}

/// Returns the tenant and the parts of a namespace; `None` for an invalid path.
fn split(path: &[u8]) -> Option<(Option<String>, Vec<String>)> {
    let (tag, parts) = path.split_first()?;
    let mut parts = parts.split_inclusive(|byte| *byte == PART_END).map(|part| {
        let letters = part.strip_suffix(&[PART_END])?;
        let bytes = letters.iter().map(|byte| byte - 1).collect();
        String::from_utf8(bytes).ok()
    });
    let tenant = if tag & TENANT_FLAG == 0 { None } else { Some(parts.next()??) };
    Some((tenant, parts.collect::<Option<_>>()?))
}

/// Returns the range of all paths that begin with `prefix`, including `prefix`.
pub(crate) fn prefix_range(prefix: &[u8]) -> Range<Vec<u8>> {
    prefix.to_vec()..with_byte(prefix, MAX_BYTE)
}

/// Returns the least path after `path` and after all paths that begin with it.
pub(crate) fn after_prefix(path: &[u8]) -> Vec<u8> {
    with_byte(path, MAX_BYTE)
}

/// Returns the least path after `path`.
pub(crate) fn successor(path: &[u8]) -> Vec<u8> {
    with_byte(path, PART_END)
}

fn with_byte(path: &[u8], byte: u8) -> Vec<u8> {
    let mut longer = path.to_vec();
    longer.push(byte);
    longer
}

/// Returns the parts of a pattern before its first wildcard.
pub(crate) fn literal_prefix(pattern: &[String]) -> &[String] {
    let end = pattern.iter().position(|part| part == WILDCARD).unwrap_or(pattern.len());
    &pattern[..end]
}

/// Returns true if a namespace begins with parts that match a pattern.
pub(crate) fn matches_prefix(namespace: &[String], pattern: &[String]) -> bool {
    namespace.len() >= pattern.len() && matches_pattern(&namespace[..pattern.len()], pattern)
}

/// Returns true if a namespace ends with parts that match a pattern.
pub(crate) fn matches_suffix(namespace: &[String], pattern: &[String]) -> bool {
    namespace.len() >= pattern.len()
        && matches_pattern(&namespace[namespace.len() - pattern.len()..], pattern)
}

fn matches_pattern(parts: &[String], pattern: &[String]) -> bool {
    parts.iter().zip(pattern).all(|(part, expected)| expected == WILDCARD || expected == part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scope() -> impl Strategy<Value = MemoryScope> {
        let tenant = || proptest::option::of("[a-c\0\u{10ffff}]{1,3}");
        prop_oneof![tenant().prop_map(MemoryScope::Tenant), tenant().prop_map(MemoryScope::Host),]
    }

    fn namespace() -> impl Strategy<Value = Vec<String>> {
        proptest::collection::vec("[ab*\0\u{1}\u{e9}\u{4e00}\u{10ffff}]{0,3}", 0..4)
    }

    proptest! {
        #[test]
        fn paths_round_trip(scope in scope(), namespace in namespace()) {
            prop_assert_eq!(decode(&encode(&scope, &namespace)), Ok(namespace));
        }

        #[test]
        fn encoded_paths_sort_like_their_scopes_and_namespaces(
            one in (scope(), namespace()),
            other in (scope(), namespace()),
        ) {
            let (a, b) = (encode(&one.0, &one.1), encode(&other.0, &other.1));
            prop_assert_eq!(a.cmp(&b), one.cmp(&other));
        }

        #[test]
        fn prefix_range_contains_exactly_the_prefix(
            location in (scope(), namespace()),
            prefix in (scope(), namespace()),
        ) {
            let range = prefix_range(&encode(&prefix.0, &prefix.1));
            let begins = location.0 == prefix.0 && location.1.starts_with(&prefix.1);
            prop_assert_eq!(range.contains(&encode(&location.0, &location.1)), begins);
        }

        #[test]
        fn prefixes_are_those_of_scope_and_parts(scope in scope(), namespace in namespace()) {
            let path = encode(&scope, &namespace);
            let all: Vec<&[u8]> = prefixes(&path).collect();
            for parts in 0..=namespace.len() {
                prop_assert!(all.contains(&encode(&scope, &namespace[..parts]).as_slice()));
            }
            let tags = usize::from(scope.tenant().is_some());
            prop_assert_eq!(all.len(), 1 + tags + namespace.len());
        }

        #[test]
        fn successors_are_least(
            location in (scope(), namespace()),
            other in (scope(), namespace()),
        ) {
            let (path, next) = (encode(&location.0, &location.1), encode(&other.0, &other.1));
            prop_assert_eq!(next > path, next >= successor(&path));
            let is_under = prefix_range(&path).contains(&next);
            prop_assert_eq!(next >= after_prefix(&path), next > path && !is_under);
        }
    }

    #[test]
    fn wildcards_match_any_part() {
        let parts = |parts: &[&str]| parts.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        let namespace = parts(&["users", "42", "facts"]);
        assert!(matches_prefix(&namespace, &parts(&["users", "*"])));
        assert!(matches_suffix(&namespace, &parts(&["*", "facts"])));
        assert!(!matches_prefix(&namespace, &parts(&["*", "43"])));
        assert!(!matches_suffix(&namespace, &parts(&["*", "*", "*", "facts"])));
        assert_eq!(literal_prefix(&parts(&["users", "*", "facts"])), parts(&["users"]));
    }

    #[test]
    fn document_names_have_key_namespace_and_tenant() {
        let namespace = ["users".to_owned(), "a\n".to_owned()];
        let (own, tenant) = (MemoryScope::Tenant(None), MemoryScope::Host(Some("acme".to_owned())));
        let name = r#"document "k" in ["users", "a\n"]"#;
        assert_eq!(document_name(&encode(&own, &namespace), "k"), name);
        let name = format!("{name} of tenant \"acme\"");
        assert_eq!(document_name(&encode(&tenant, &namespace), "k"), name);
        assert_eq!(document_name(&[], "k"), r#"document "k""#);
    }

    #[test]
    fn invalid_paths_are_refused() {
        for path in [&[][..], &[0, 1, 2], &[1], &[0, 0xf0, 0]] {
            assert!(decode(path).is_err(), "{path:?}");
        }
    }
}
