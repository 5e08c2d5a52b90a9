//! Token counts in the usage objects of a response.

use std::collections::BTreeMap;

use serde_json::Value;

/// The token counts of a response by JSON pointer, merged from all usage objects of the response.
///
/// Counts are cumulative. Services report them in several objects, each with some of the counts,
/// and gateways fill in 0 for the others. A later count therefore replaces an earlier one unless it
/// is 0.
#[derive(Debug, Default)]
pub(super) struct TokenCounts(BTreeMap<&'static str, u64>);

impl TokenCounts {
    /// Merges the counts that a usage object has at `pointers`. Returns whether it has any.
    pub(super) fn merge(&mut self, usage: &Value, pointers: &[&'static str]) -> bool {
        let mut has_counts = false;
        // Most chunks of a stream have no usage.
        if !usage.is_object() {
            return has_counts;
        }
        for &pointer in pointers {
            if let Some(count) = find(usage, pointer).and_then(parse) {
                has_counts = true;
                let known = self.0.entry(pointer).or_default();
                if count > 0 {
                    *known = count;
                }
            }
        }
        has_counts
    }

    /// Returns the count at a pointer; `None` if it was not reported.
    pub(super) fn get(&self, pointer: &str) -> Option<u64> {
        self.0.get(pointer).copied()
    }

    /// Returns the largest of the counts at several pointers, which are names of one count.
    pub(super) fn largest(&self, pointers: &[&str]) -> Option<u64> {
        pointers.iter().filter_map(|pointer| self.get(pointer)).max()
    }
}

/// Returns the value at a JSON pointer without escapes. Each chunk of a stream may have all counts,
/// and [`Value::pointer`] allocates two texts for each name.
fn find<'a>(usage: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(usage, |value, name| value.get(name))
}

/// Returns a count. Some gateways write it as a float or as a text.
fn parse(count: &Value) -> Option<u64> {
    let text = match count {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        _ => return None,
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text.as_str(), ""));
    fraction.chars().all(|digit| digit == '0').then(|| whole.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_are_integers_floats_or_texts() {
        for (count, expected) in [
            (json!(7), Some(7)),
            (json!(7.0), Some(7)),
            (json!("7"), Some(7)),
            (json!(" 7.00 "), Some(7)),
            (json!(0), Some(0)),
            (json!(u64::MAX), Some(u64::MAX)),
            (json!(7.5), None),
            (json!(-7), None),
            (json!(1e30), None),
            (json!("seven"), None),
            (json!(""), None),
            (json!(null), None),
            (json!(true), None),
            (json!([7]), None),
        ] {
            assert_eq!(parse(&count), expected, "{count}");
        }
    }

    #[test]
    fn later_counts_replace_earlier_ones_unless_they_are_zero() {
        const POINTERS: [&str; 3] = ["/in", "/out", "/details/cached"];
        let mut counts = TokenCounts::default();
        assert!(!counts.merge(&json!({}), &POINTERS));
        assert!(!counts.merge(&json!(null), &POINTERS));
        assert!(!counts.merge(&json!({ "in": null, "other": 1 }), &POINTERS));
        assert_eq!(counts.get("/in"), None);
        assert!(counts.merge(&json!({ "in": 3, "out": 1 }), &POINTERS));
        assert!(counts.merge(&json!({ "in": 0, "out": 4, "details": { "cached": 0 } }), &POINTERS));
        assert!(!counts.merge(&json!({ "out": null }), &POINTERS));
        let found = POINTERS.map(|pointer| counts.get(pointer));
        assert_eq!(found, [Some(3), Some(4), Some(0)]);
        assert_eq!(counts.get("/unknown"), None);
        assert_eq!(counts.largest(&["/unknown", "/details/cached", "/in"]), Some(3));
        assert_eq!(counts.largest(&["/unknown"]), None);
    }
}
