//! Hints for names that do not exist: a similar name, and the known names.

use crate::limit::{SUGGESTED_FROM, SUGGESTION_CHARS};

/// Maximum number of names that a hint lists.
const LISTED: usize = 10;

/// Maximum number of typing errors in a name: characters that are missing, wrong, superfluous or
/// swapped with the next one.
const TYPING_ERRORS: usize = 3;

/// Number of characters of a name for each accepted typing error. A shorter name that differs
/// counts as another name.
const CHARS_PER_ERROR: usize = 3;

/// Returns the known name that `wanted` most likely means; `None` if no name is similar enough for
/// a typing error. Of several equally similar names, the first one is returned. Case and the choice
/// between `-` and `_` make no difference. If none is similar, the only name that begins with the
/// words of `wanted` is returned: `recursion_limit` for `recursion`.
///
/// Names of more than [`SUGGESTION_CHARS`] characters, and all but the first [`SUGGESTED_FROM`]
/// known names, are left out.
pub fn closest<'k>(wanted: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let length = length(wanted)?;
    let most = TYPING_ERRORS.min(length / CHARS_PER_ERROR);
    let wanted = folded(wanted);
    let errors = |name: &'k str| {
        // The lengths differ by at most the number of errors.
        self::length(name).filter(|own| own.abs_diff(length) <= most)?;
        let errors = strsim::osa_distance(&wanted, &folded(name));
        (errors <= most).then_some((errors, name))
    };
    let known: Vec<&str> = known.into_iter().take(SUGGESTED_FROM).collect();
    let similar = known.iter().copied().filter_map(errors).min_by_key(|(errors, _)| *errors);
    if let Some((_, name)) = similar {
        return Some(name);
    }
    let mut longer = known.into_iter().filter(|name| begins_with_words(name, &wanted));
    longer.next().filter(|_| length >= CHARS_PER_ERROR && longer.next().is_none())
}

/// Returns true if a name has further words after those of the folded name `words`.
fn begins_with_words(name: &str, words: &str) -> bool {
    let is_short = length(name).is_some();
    is_short && folded(name).strip_prefix(words).is_some_and(|rest| rest.starts_with('_'))
}

/// Returns the number of characters of a name; `None` if there are too many.
fn length(name: &str) -> Option<usize> {
    let count = name.chars().take(SUGGESTION_CHARS + 1).count();
    (count <= SUGGESTION_CHARS).then_some(count)
}

fn folded(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// Returns the question whether [`closest`] was meant.
pub fn did_you_mean<'k>(wanted: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    closest(wanted, known).map(|name| format!("did you mean `{name}`?"))
}

/// Returns the hint for a name that does not exist: the most similar name, if there is one, and the
/// known names. `what` describes the known names, such as `nodes of this graph`.
pub fn hint<'k>(
    wanted: &str,
    what: &str,
    known: impl ExactSizeIterator<Item = &'k str> + Clone,
) -> String {
    let listed = format!("{what}: {}", quoted_names(known.clone()));
    match did_you_mean(wanted, known) {
        Some(question) => format!("{question} {listed}"),
        None => listed,
    }
}

/// Returns [`did_you_mean`] for the message of a deserializer about an unknown field or variant.
/// The message itself lists the known names.
pub fn of_message(message: &str) -> Option<String> {
    let kinds = ["unknown field `", "unknown variant `"];
    let rest = kinds.iter().find_map(|kind| message.strip_prefix(kind))?;
    let (wanted, known) = rest.split_once("`, expected ")?;
    // Every second part is between backticks.
    did_you_mean(wanted, known.split('`').skip(1).step_by(2))
}

/// Lists names for a hint, at most ten of them.
pub fn quoted_names<T: ToString>(names: impl ExactSizeIterator<Item = T>) -> String {
    let total = names.len();
    let shown: Vec<String> =
        names.take(LISTED).map(|name| format!("`{}`", name.to_string())).collect();
    match (total, total > LISTED) {
        (0, _) => "none".to_owned(),
        (_, false) => shown.join(", "),
        (_, true) => format!("{} and {} more", shown.join(", "), total - LISTED),
    }
}

#[cfg(test)]
mod tests {
    use super::{closest, hint, of_message};
    use crate::limit::{SUGGESTED_FROM, SUGGESTION_CHARS};

    #[test]
    fn the_closest_name_is_found_for_a_misspelled_one() {
        let known = ["classify", "clarify", "inputType", "END", "a", "publish_report"];
        for (wanted, meant) in [
            ("clasify", Some("classify")),
            ("calrify", Some("clarify")),
            ("Classify", Some("classify")),
            ("inputtype", Some("inputType")),
            ("publish-report", Some("publish_report")),
            ("publsh_raport", Some("publish_report")),
            ("EMD", Some("END")),
            ("publish", Some("publish_report")),
            // These are other names, and not misspellings.
            ("b", None),
            ("summarize", None),
            ("", None),
        ] {
            assert_eq!(closest(wanted, known), meant, "{wanted}");
        }
        assert_eq!(closest("node", ["nodf", "nods"]), Some("nodf"), "the first of equal ones");
        assert_eq!(closest("run", ["run_tasks", "run_context"]), None, "it begins several names");
    }

    #[test]
    fn the_work_for_a_suggestion_is_bounded() {
        let long = "x".repeat(SUGGESTION_CHARS + 1);
        assert_eq!(closest(&long, [long.as_str()]), None);
        let far = |before: usize| {
            let others = std::iter::repeat_n("other", before);
            closest("classfy", others.chain(["classify"]))
        };
        assert_eq!(far(SUGGESTED_FROM - 1), Some("classify"));
        assert_eq!(far(SUGGESTED_FROM), None);
    }

    #[test]
    fn a_hint_lists_the_known_names() {
        let names = ["first", "second"];
        let hint = |wanted: &str| hint(wanted, "nodes", names.iter().copied());
        assert_eq!(hint("third"), "nodes: `first`, `second`");
        assert_eq!(hint("frist"), "did you mean `first`? nodes: `first`, `second`");
    }

    #[test]
    fn messages_about_unknown_fields_get_a_suggestion() {
        for (message, meant) in [
            ("unknown field `schma`, expected one of `schema`, `doc`, `default`", Some("schema")),
            ("unknown field `form`, expected `from` or `to`", Some("from")),
            ("unknown variant `meesages`, expected `messages`", Some("messages")),
            ("unknown field `wait`, expected `from` or `to`", None),
            ("unknown field `x`, there are no fields", None),
            ("invalid type: integer `3`, expected a string", None),
        ] {
            let expected = meant.map(|name| format!("did you mean `{name}`?"));
            assert_eq!(of_message(message), expected, "{message}");
        }
    }
}
