//! The intersection of requested and granted namespaces of the long-term memory.

use std::collections::BTreeSet;

use wattle_run::grant::MemoryRule;
use wattle_run::ports::memory::WILDCARD;

use crate::load::grants::{serde_name, toml_array};

/// Returns the intersections of requested and granted rules, and, as TOML, the requests that are
/// not granted completely.
pub(super) fn intersect(
    needs: &BTreeSet<MemoryRule>,
    granted: &BTreeSet<MemoryRule>,
) -> (Vec<MemoryRule>, Vec<String>) {
    let (mut given, mut refused) = (BTreeSet::new(), Vec::new());
    for need in needs {
        let is_whole =
            |grant: &MemoryRule| grant.access >= need.access && grant.covers(&need.namespace);
        if !granted.iter().any(is_whole) {
            refused.push(rule_toml(need));
        }
        given.extend(granted.iter().filter_map(|grant| intersect_rule(need, grant)));
    }
    (given.into_iter().collect(), refused)
}

/// Returns the intersection of two rules, or `None` if they have nothing in common.
pub(super) fn intersect_rule(one: &MemoryRule, other: &MemoryRule) -> Option<MemoryRule> {
    let length = one.namespace.len().max(other.namespace.len());
    let part = |rule: &MemoryRule, at| rule.namespace.get(at).cloned();
    let namespace = (0..length).map(|at| match (part(one, at), part(other, at)) {
        (Some(one), Some(other)) if one == other || other == WILDCARD => Some(one),
        (Some(one), Some(other)) => (one == WILDCARD).then_some(other),
        (one, other) => one.or(other),
    });
    let namespace = namespace.collect::<Option<_>>()?;
    Some(MemoryRule { namespace, access: one.access.min(other.access) })
}

pub(super) fn rule_toml(rule: &MemoryRule) -> String {
    let parts = toml_array(&rule.namespace);
    format!("{{ namespace = {parts}, access = \"{}\" }}", serde_name(&rule.access))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> BTreeSet<MemoryRule> {
        let read = |line: &str| {
            let (access, namespace) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            let namespace: Vec<&str> = namespace.split('/').filter(|it| !it.is_empty()).collect();
            let rule = serde_json::json!({ "namespace": namespace, "access": access });
            serde_json::from_value(rule).unwrap()
        };
        text.split(',').filter(|line| !line.trim().is_empty()).map(read).collect()
    }

    fn check(needs: &str, granted: &str, wanted: &str, refused: usize) {
        let (given, missing) = intersect(&rules(needs), &rules(granted));
        let given: BTreeSet<_> = given.into_iter().collect();
        assert_eq!((given, missing.len()), (rules(wanted), refused), "{needs} and {granted}");
    }

    #[test]
    fn rules_are_intersected() {
        check("read-write users", "read-write", "read-write users", 0);
        check("read-write users", "read users", "read users", 1);
        check("read-write", "read-write users, read facts", "read-write users, read facts", 1);
        check("read users/*/notes", "read-write users/42", "read users/42/notes", 1);
        check("read users/*/notes", "read-write users", "read users/*/notes", 0);
        check("read users", "read teams", "", 1);
        check("read a, read-write a/b", "read-write a", "read a, read-write a/b", 0);
    }

    #[test]
    fn missing_rules_are_reported_as_toml() {
        let (_, missing) = intersect(&rules("read-write users/42"), &BTreeSet::new());
        assert_eq!(missing, [r#"{ namespace = ["users", "42"], access = "read-write" }"#]);
    }
}
