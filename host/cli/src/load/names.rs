//! Rejects names that can be mistaken for others.
//!
//! A letter of another script can look like an ASCII letter. An operator who grants a permission to
//! a plugin, or reads a trace, could not distinguish two such names. Apps and plugins are therefore
//! loaded only if their names are ASCII. Logs of older hosts with other names remain readable.

use wattle_graph::graph::Graph;

use crate::load::hinted_message::HintedMessage;

/// Returns an error message if a name is not ASCII.
pub(super) fn problem(what: &str, name: &str) -> Option<HintedMessage> {
    let other = name.chars().find(|c| !c.is_ascii())?;
    let message = format!(
        "the {what} `{}` has the character U+{:04X}",
        name.escape_default(),
        u32::from(other)
    );
    Some(HintedMessage::new(
        message,
        "names consist of ASCII letters, digits, `_`, `-` and `.`, so that no name looks like \
         another one",
    ))
}

/// Returns an error message for each name in a graph that is not ASCII.
pub(super) fn problems(graph: &Graph) -> Vec<String> {
    let of = |what: &'static str| move |name: &str| problem(what, name);
    let nodes = graph.nodes().keys().filter_map(|name| of("node name")(name.as_str()));
    let channels = graph.channels().keys().filter_map(|name| of("channel name")(name.as_str()));
    let own = problem("graph name", graph.name.as_str());
    own.into_iter().chain(nodes).chain(channels).map(|problem| problem.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_of_another_script_is_shown_by_its_code_point() {
        assert_eq!(problem("node name", "asset-1.b_c"), None);
        let problem = problem("node name", "\u{430}sset").unwrap().message;
        assert!(problem.contains("`\\u{430}sset`") && problem.contains("U+0430"), "{problem}");
    }
}
