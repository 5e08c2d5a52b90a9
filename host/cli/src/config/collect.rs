//! Deserializes the values of the configuration and collects all of their problems.

use std::collections::BTreeSet;

use figment::error::{Actual, Kind};
use figment::value::Value;
use serde::de::DeserializeOwned;
use wattle_graph::{expectation, suggest};

use crate::config::ConfigProblem;

/// Maximum number of problems of a section or an entry that are reported. Nobody reads more
/// problems at once, and the value is deserialized again for each of them.
const PROBLEMS: usize = 100;

/// Deserializes a value. Each value inside of it that has a problem is left out, and the rest is
/// deserialized again, so that no problem hides another one. Returns `None` if the rest cannot be
/// deserialized either.
pub(super) fn deserialize<T: DeserializeOwned>(
    key: &str,
    value: &Value,
    problems: &mut Vec<ConfigProblem>,
) -> Option<T> {
    let mut rest = value.clone();
    let mut left_out = BTreeSet::new();
    loop {
        let error = match rest.deserialize::<T>() {
            Ok(parsed) => return Some(parsed),
            Err(error) => error,
        };
        let key = key_of(key, value, &error.path, &left_out);
        // A key that was left out is missing for this reason alone.
        let is_known = |field: &str| left_out.contains(&child(&key, field));
        if !matches!(&error.kind, Kind::MissingField(field) if is_known(field)) {
            problems.push(to_problem(key.clone(), &error));
        }
        if left_out.len() == PROBLEMS || !remove(&mut rest, &error.path) {
            return None;
        }
        left_out.insert(key);
    }
}

/// Returns the key of a value, such as `grants.shop.http[1].host`. `path` is its path in what is
/// left of `whole`.
fn key_of(key: &str, whole: &Value, path: &[String], left_out: &BTreeSet<String>) -> String {
    let mut key = key.to_owned();
    let mut place = Some(whole);
    for part in path {
        if let Some(items) = place.and_then(Value::as_array) {
            let position = part.parse().unwrap_or_default();
            let is_left = |index: &usize| !left_out.contains(&format!("{key}[{index}]"));
            let index = (0..items.len()).filter(is_left).nth(position).unwrap_or(position);
            key = format!("{key}[{index}]");
            place = items.get(index);
        } else {
            key = child(&key, part);
            place = place.and_then(Value::as_dict).and_then(|dict| dict.get(part));
        }
    }
    key
}

/// Removes the value at a path. Returns false if there is no such value, or if the path is empty.
fn remove(value: &mut Value, path: &[String]) -> bool {
    let Some((name, inner)) = path.split_first() else { return false };
    match value {
        Value::Dict(_, dict) if inner.is_empty() => dict.remove(name).is_some(),
        Value::Dict(_, dict) => dict.get_mut(name).is_some_and(|value| remove(value, inner)),
        Value::Array(_, items) => {
            let index = name.parse::<usize>().ok().filter(|index| *index < items.len());
            match index {
                Some(index) if inner.is_empty() => {
                    items.remove(index);
                    true
                }
                Some(index) => remove(&mut items[index], inner),
                None => false,
            }
        }
        _ => false,
    }
}

fn child(key: &str, name: &str) -> String {
    let name = toml_key(name);
    if key.is_empty() { name } else { format!("{key}.{name}") }
}

/// Returns a name as a key of TOML, with quotes if it needs them.
pub(super) fn toml_key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.chars().all(is_bare) { name.to_owned() } else { format!("{name:?}") }
}

/// Returns the problem of an error of the deserializer.
pub(super) fn to_problem(key: String, error: &figment::Error) -> ConfigProblem {
    let (message, hint) = match &error.kind {
        Kind::UnknownField(field, names) => (
            format!("`{field}` is not a valid key"),
            Some(unknown_name_hint(field, "known:", names)),
        ),
        Kind::MissingField(field) => (format!("the key `{field}` is missing"), None),
        Kind::UnknownVariant(variant, variants) => (
            format!("`{variant}` is not a valid value"),
            Some(unknown_name_hint(variant, "use", variants)),
        ),
        Kind::InvalidType(found, wanted) | Kind::InvalidValue(found, wanted) => {
            (format!("expected {}, found {}", expectation::in_words(wanted), in_words(found)), None)
        }
        other if key.ends_with("listen") => {
            (other.to_string(), Some("write address and port, such as `127.0.0.1:8700`".into()))
        }
        // The message of a syntax error ends with a line break.
        other => (other.to_string().trim_end().to_owned(), None),
    };
    ConfigProblem { key, message, hint }
}

/// Returns a value of the wrong type as an author has written it.
fn in_words(found: &Actual) -> String {
    match found {
        Actual::Bool(value) => format!("`{value}`"),
        Actual::Unsigned(number) => format!("the number {number}"),
        Actual::Signed(number) => format!("the number {number}"),
        Actual::Float(number) => format!("the number {number}"),
        Actual::Str(text) => format!("the text {text:?}"),
        Actual::Seq => "a list".to_owned(),
        Actual::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// Returns the hint for an unknown name: the most similar known name, and all known names.
pub(super) fn unknown_name_hint(wanted: &str, what: &str, names: &[&str]) -> String {
    let listed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let question = suggest::did_you_mean(wanted, names.iter().copied());
    let question = question.map(|question| format!("{question} ")).unwrap_or_default();
    format!("{question}{what} {listed}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::parse;

    /// Returns the keys of the problems of a file, in their order.
    fn keys(text: &str) -> Vec<String> {
        let error = parse(text, Path::new("/base")).unwrap_err().to_string();
        let lines = error.lines().skip(1).filter(|line| !line.starts_with("  hint:"));
        lines.map(|line| line.split('`').nth(1).unwrap().to_owned()).collect()
    }

    #[test]
    fn no_problem_of_a_table_hides_another_one() {
        let limits = "[limits]\nmemory = \"5GB\"\nruns = \"many\"\nrun_tasks = 10_000_001\n\
                      run_context = \"17MiB\"\nstate_bytes = \"1GiB\"\n";
        let parts = ["memory", "runs", "run_tasks", "run_context", "state_bytes"];
        assert_eq!(keys(limits), parts.map(|part| format!("limits.{part}")));
        let grants = "[grants.x]\nhttp = [\"127.0.0.1\"]\ntols = []\ncpu = 2\nmemory = \"64MB\"\n";
        let parts = ["http[0]", "tols", "cpu", "memory"];
        assert_eq!(keys(grants), parts.map(|part| format!("grants.x.{part}")));
    }

    #[test]
    fn items_of_a_list_keep_their_position() {
        let text =
            "[grants.x]\nhttp = [\"a\", { host = \"b\" }, { port = 1 }, { host = 1, prt = 2 }]";
        let parts = ["[0]", "[2]", "[3].host", "[3].prt"];
        assert_eq!(keys(text), parts.map(|part| format!("grants.x.http{part}")));
    }

    #[test]
    fn values_of_the_wrong_type_are_described_without_rust_types() {
        for (text, message) in [
            (
                "[grants.x]\nhttp = [\"a\"]",
                "expected a table such as `{ host = \"api.example.com\" }`, found the text \"a\"",
            ),
            ("[grants.x]\nsql = [true]", "expected a table such as `{ database = \"notes\" }`"),
            ("[grants.x]\nhttp = 1", "expected a list, found the number 1"),
            ("[limits]\nruns = \"many\"", "expected a whole number above 0, found the text"),
            ("[limits]\nruns = 0", "expected a whole number above 0, found the number 0"),
            ("[limits]\nmemory = {}", "expected a string, found a table"),
            ("limits = 1", "expected a table, found the number 1"),
        ] {
            let error = parse(text, Path::new("/base")).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_provider_with_a_problem_is_known_to_routes() {
        let text = "[model.providers.openai]\nkind = \"opena\"\n\
                    [model.routes.a]\nprovider = \"openai\"\nmodel = \"m\"\n\
                    [model.routes.b]\nprovider = \"opnai\"\nmodel = \"m\"\n\
                    fallbacks = [{ provider = \"gemini\", model = \"m\" }]\n";
        assert_eq!(
            keys(text),
            [
                "model.providers.openai.kind",
                "model.routes.b.provider",
                "model.routes.b.fallbacks[0].provider",
            ]
        );
    }

    #[test]
    fn a_key_that_cannot_be_read_is_not_missing() {
        assert_eq!(keys("[mcp.date]\ncommand = 1\n"), ["mcp.date.command"]);
        let sql = "[sql.notes]\nurl = 1\nmax_size = \"1\"\n";
        assert_eq!(keys(sql), ["sql.notes.url", "sql.notes.max_size"]);
    }
}
