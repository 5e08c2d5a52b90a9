//! Namespaces as bytes. Their order is that of scopes and parts, and everything under a prefix
//! stands together, so that a search is one range.
//!
//! A scope is `0`, or `1` and the tenant as a part; what the host keeps for itself has `2` and `3` in
//! their place. A part is its UTF-8 with each byte raised by one,
//! then a `0`: so no part holds the byte that ends it, NUL included, and none holds [`AFTER`], since
//! UTF-8 has no byte above `0xf4`.

use std::ops::Range;

use wattle_graph::failure::{Failure, code};
use wattle_run::ports::memory::{ANY_PART, MemoryScope};

/// Above every byte of a part.
const AFTER: u8 = 0xff;

/// Ends a part.
const END: u8 = 0;

/// Of the first byte: a tenant follows.
const OF_TENANT: u8 = 1;

/// Of the first byte: what stands here is kept by the host for itself.
const OF_HOST: u8 = 2;

/// The bytes of a namespace, or of the beginning of one.
pub(crate) fn encode(scope: &MemoryScope, namespace: &[String]) -> Vec<u8> {
    let mut path = Vec::with_capacity(64);
    let tenant = scope.tenant();
    let of_host = if matches!(scope, MemoryScope::Host(_)) { OF_HOST } else { 0 };
    path.push(of_host | if tenant.is_some() { OF_TENANT } else { 0 });
    for part in tenant.into_iter().chain(namespace) {
        path.extend(part.bytes().map(|byte| byte + 1));
        path.push(END);
    }
    path
}

/// The parts of a namespace.
///
/// # Errors
///
/// `broken` if the bytes are none that [`encode`] made.
pub(crate) fn decode(path: &[u8]) -> Result<Vec<String>, Failure> {
    let broken =
        || Failure::new(code::BROKEN, "a namespace of the long-term memory cannot be read");
    split(path).map(|(_, namespace)| namespace).ok_or_else(broken)
}

/// A document in words.
pub(crate) fn named(path: &[u8], key: &str) -> String {
    match split(path) {
        Some((Some(tenant), namespace)) => {
            format!("document {key:?} in {namespace:?} of tenant {tenant:?}")
        }
        Some((None, namespace)) => format!("document {key:?} in {namespace:?}"),
        None => format!("document {key:?}"),
    }
}

/// The tenant and the parts of a namespace.
fn split(path: &[u8]) -> Option<(Option<String>, Vec<String>)> {
    let (tag, parts) = path.split_first()?;
    let mut parts = parts.split_inclusive(|byte| *byte == END).map(|part| {
        let letters = part.strip_suffix(&[END])?;
        let bytes = letters.iter().map(|byte| byte - 1).collect();
        String::from_utf8(bytes).ok()
    });
    let tenant = if tag & OF_TENANT == 0 { None } else { Some(parts.next()??) };
    Some((tenant, parts.collect::<Option<_>>()?))
}

/// Every path that begins as `prefix`, itself included.
pub(crate) fn under(prefix: &[u8]) -> Range<Vec<u8>> {
    prefix.to_vec()..with(prefix, AFTER)
}

/// The least path after `path` and all that begin as it.
pub(crate) fn past_all(path: &[u8]) -> Vec<u8> {
    with(path, AFTER)
}

/// The least path after `path`.
pub(crate) fn past(path: &[u8]) -> Vec<u8> {
    with(path, END)
}

fn with(path: &[u8], byte: u8) -> Vec<u8> {
    let mut longer = path.to_vec();
    longer.push(byte);
    longer
}

/// The parts of a pattern that every namespace which fits begins with.
pub(crate) fn literal(pattern: &[String]) -> &[String] {
    let end = pattern.iter().position(|part| part == ANY_PART).unwrap_or(pattern.len());
    &pattern[..end]
}

/// Whether a namespace begins as a pattern says.
pub(crate) fn begins(namespace: &[String], pattern: &[String]) -> bool {
    namespace.len() >= pattern.len() && fits(&namespace[..pattern.len()], pattern)
}

/// Whether a namespace ends as a pattern says.
pub(crate) fn ends(namespace: &[String], pattern: &[String]) -> bool {
    namespace.len() >= pattern.len() && fits(&namespace[namespace.len() - pattern.len()..], pattern)
}

fn fits(parts: &[String], pattern: &[String]) -> bool {
    parts.iter().zip(pattern).all(|(part, wanted)| wanted == ANY_PART || wanted == part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scope() -> impl Strategy<Value = MemoryScope> {
        let tenant = || proptest::option::of("[a-c\0\u{10ffff}]{1,3}");
        prop_oneof![tenant().prop_map(MemoryScope::Agents), tenant().prop_map(MemoryScope::Host),]
    }

    fn namespace() -> impl Strategy<Value = Vec<String>> {
        proptest::collection::vec("[ab*\0\u{1}\u{e9}\u{4e00}\u{10ffff}]{0,3}", 0..4)
    }

    proptest! {
        #[test]
        fn paths_come_back(scope in scope(), namespace in namespace()) {
            prop_assert_eq!(decode(&encode(&scope, &namespace)), Ok(namespace));
        }

        #[test]
        fn paths_are_ordered_as_scopes_and_parts(
            one in (scope(), namespace()),
            other in (scope(), namespace()),
        ) {
            let (a, b) = (encode(&one.0, &one.1), encode(&other.0, &other.1));
            prop_assert_eq!(a.cmp(&b), one.cmp(&other));
        }

        #[test]
        fn a_range_holds_what_begins_so_and_nothing_else(
            place in (scope(), namespace()),
            prefix in (scope(), namespace()),
        ) {
            let range = under(&encode(&prefix.0, &prefix.1));
            let begins = place.0 == prefix.0 && place.1.starts_with(&prefix.1);
            prop_assert_eq!(range.contains(&encode(&place.0, &place.1)), begins);
        }

        #[test]
        fn paths_after_a_path(place in (scope(), namespace()), other in (scope(), namespace())) {
            let (path, next) = (encode(&place.0, &place.1), encode(&other.0, &other.1));
            prop_assert_eq!(next > path, next >= past(&path));
            let is_under = under(&path).contains(&next);
            prop_assert_eq!(next >= past_all(&path), next > path && !is_under);
        }
    }

    #[test]
    fn patterns_know_any_part() {
        let parts = |parts: &[&str]| parts.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        let namespace = parts(&["users", "42", "facts"]);
        assert!(begins(&namespace, &parts(&["users", "*"])));
        assert!(ends(&namespace, &parts(&["*", "facts"])));
        assert!(!begins(&namespace, &parts(&["*", "43"])));
        assert!(!ends(&namespace, &parts(&["*", "*", "*", "facts"])));
        assert_eq!(literal(&parts(&["users", "*", "facts"])), parts(&["users"]));
    }

    #[test]
    fn documents_have_names() {
        let namespace = ["users".to_owned(), "a\n".to_owned()];
        let (own, tenant) = (MemoryScope::Agents(None), MemoryScope::Host(Some("acme".to_owned())));
        let name = r#"document "k" in ["users", "a\n"]"#;
        assert_eq!(named(&encode(&own, &namespace), "k"), name);
        let name = format!("{name} of tenant \"acme\"");
        assert_eq!(named(&encode(&tenant, &namespace), "k"), name);
        assert_eq!(named(&[], "k"), r#"document "k""#);
    }

    #[test]
    fn foreign_bytes_are_refused() {
        for path in [&[][..], &[0, 1, 2], &[1], &[0, 0xf0, 0]] {
            assert!(decode(path).is_err(), "{path:?}");
        }
    }
}
