//! Names of tools that every provider accepts.

use std::collections::BTreeMap;

/// Maximum length of a tool name that providers accept, in characters.
const NAME_LIMIT: usize = 64;

/// Name for a tool call without a name.
const UNNAMED: &str = "unnamed";

/// Returns the name under which the model sees a tool. `names` contains these names by the tools'
/// own names, at least for the tools whose name is not the [`safe_name`].
pub(super) fn model_name(own: &str, names: &BTreeMap<String, String>) -> String {
    names.get(own).cloned().unwrap_or_else(|| safe_name(own))
}

/// Converts a name to one that providers accept: 1 to 64 characters of `[a-zA-Z0-9_-]`. Gemini
/// requires that the first character is a letter or `_`.
fn safe_name(name: &str) -> String {
    if name.is_empty() {
        return UNNAMED.to_owned();
    }
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let prefix = if name.starts_with(|c: char| c.is_ascii_digit() || c == '-') { "_" } else { "" };
    prefix.chars().chain(name.chars().map(safe)).take(NAME_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{model_name, safe_name};

    #[test]
    fn names_have_accepted_characters_only() {
        for (own, safe) in [
            ("add", "add"),
            ("mcp:graph/q.x", "mcp_graph_q_x"),
            ("日报", "__"),
            ("21st_builder", "_21st_builder"),
            ("-x", "_-x"),
            ("", "unnamed"),
            (&*"7".repeat(64), &*format!("_{}", "7".repeat(63))),
        ] {
            assert_eq!(safe_name(own), safe);
        }
    }

    #[test]
    fn assigned_names_replace_converted_ones() {
        let names = BTreeMap::from([("a.b".to_owned(), "a_b_2".to_owned())]);
        assert_eq!(model_name("a.b", &names), "a_b_2");
        assert_eq!(model_name("a/b", &names), "a_b");
    }
}
