//! Parser of transcripts.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A parsed transcript.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// The file name without its extension.
    pub name: String,
    /// Keys before the exchanges, in order.
    keys: Vec<(String, String)>,
    pub(super) exchanges: Vec<Exchange>,
    /// Keys after `===`, in order.
    expected: Vec<(String, String)>,
    /// Conditions after `===`.
    outcome: Vec<Condition>,
}

/// A request and its response.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) times: Times,
    /// Method and path of an HTTP request, and the method of a JSON-RPC message. Parts that the
    /// exchange does not have are left out.
    pub(super) head: Vec<String>,
    pub(super) conditions: Vec<Condition>,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<String>,
}

/// How often an exchange is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    Once,
    AtMostOnce,
    Any,
}

/// A condition on a request or on an outcome.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    pub(super) selector: Selector,
    pub(super) test: Test,
}

/// The part of a message that a condition examines.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Selector {
    /// A JSON pointer into the body.
    Pointer(String),
    Header(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    Is(Value),
    /// The string, or the JSON of any other value, contains this text.
    Has(String),
    Absent,
}

impl Case {
    /// Reads and parses a file.
    ///
    /// # Errors
    ///
    /// Returns a message with the file, the line and the reason.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut case = Self::parse(&name, &text)
            .map_err(|(line, reason)| format!("{}:{line}: {reason}", path.display()))?;
        for other in case.all("with") {
            let shared = Self::read(&path.with_file_name(other))?;
            case.exchanges.extend(shared.exchanges);
        }
        Ok(case)
    }

    /// Returns the last value of a key.
    pub fn key(&self, key: &str) -> Option<&str> {
        self.keys.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Returns all values of a key, in order.
    pub fn all(&self, key: &str) -> Vec<String> {
        let values = self.keys.iter().filter(|(name, _)| name == key);
        values.map(|(_, value)| value.clone()).collect()
    }

    /// Returns the keys after `===` with their values, in order: the expected outcome.
    pub fn expected(&self) -> &[(String, String)] {
        &self.expected
    }

    /// Returns the expected conditions that `document` does not meet.
    pub fn unmet(&self, document: &Value) -> Vec<String> {
        let unmet = self.outcome.iter().filter(|it| !it.holds(&|_| None, document));
        unmet.map(|it| format!("{it:?} is not met")).collect()
    }

    fn parse(name: &str, text: &str) -> Result<Self, (usize, String)> {
        let mut case = Self { name: name.to_owned(), ..Self::default() };
        let mut section = Section::Keys;
        for (number, line) in text.lines().enumerate() {
            section = case.line(section, line).map_err(|reason| (number + 1, reason))?;
        }
        Ok(case)
    }

    fn line(&mut self, section: Section, line: &str) -> Result<Section, String> {
        if let Some(head) = line.strip_prefix(">>>") {
            self.exchanges.push(begun(head)?);
            return Ok(Section::Conditions);
        }
        if line == "===" {
            return Ok(Section::Expected);
        }
        if section == Section::Keys || section == Section::Expected {
            if line.is_empty() || line.starts_with('#') {
                return Ok(section);
            }
            if section == Section::Expected && line.starts_with('/') {
                self.outcome.push(condition(line)?);
                return Ok(section);
            }
            let (key, value) = line.split_once(':').ok_or("the key has no colon")?;
            let entry = (key.trim().to_owned(), value.trim().to_owned());
            match section {
                Section::Keys => self.keys.push(entry),
                _ => self.expected.push(entry),
            }
            return Ok(section);
        }
        let exchange = self.exchanges.last_mut().ok_or("the line belongs to no exchange")?;
        match section {
            Section::Conditions => match line.strip_prefix("<<<") {
                Some(status) => {
                    let status = status.trim();
                    if !status.is_empty() {
                        exchange.status =
                            status.parse().map_err(|_| format!("`{status}` is not a status"))?;
                    }
                    Ok(Section::Headers)
                }
                None if line.is_empty() => Ok(section),
                None => {
                    exchange.conditions.push(condition(line)?);
                    Ok(section)
                }
            },
            Section::Headers if line.is_empty() => Ok(Section::Body),
            Section::Headers => {
                let (name, value) = line.split_once(": ").ok_or("the header has no colon")?;
                exchange.headers.push((name.to_owned(), value.to_owned()));
                Ok(section)
            }
            _ => {
                exchange.body.push(line.to_owned());
                Ok(Section::Body)
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Keys,
    Conditions,
    Headers,
    Body,
    Expected,
}

fn begun(head: &str) -> Result<Exchange, String> {
    let (times, head) = match head.chars().next() {
        Some('?') => (Times::AtMostOnce, &head[1..]),
        Some('*') => (Times::Any, &head[1..]),
        _ => (Times::Once, head),
    };
    let head: Vec<String> = head.split_whitespace().map(str::to_owned).collect();
    if head.is_empty() {
        return Err("the exchange has no method".to_owned());
    }
    let (conditions, headers, body) = (Vec::new(), Vec::new(), Vec::new());
    Ok(Exchange { times, head, conditions, status: 200, headers, body })
}

fn condition(line: &str) -> Result<Condition, String> {
    let (selector, rest) = match line.strip_prefix("header ") {
        Some(rest) => {
            let (name, rest) = rest.split_once(' ').ok_or("the condition has no operator")?;
            (Selector::Header(name.to_owned()), rest)
        }
        None => {
            let (pointer, rest) = line.split_once(' ').ok_or("the condition has no operator")?;
            (Selector::Pointer(pointer.to_owned()), rest)
        }
    };
    let json = |text: &str| {
        serde_json::from_str::<Value>(text)
            .map_err(|error| format!("`{text}` is not JSON: {error}"))
    };
    let test = match rest.split_at_checked(2) {
        _ if rest == "absent" => Test::Absent,
        Some(("= ", value)) => Test::Is(json(value)?),
        Some(("~ ", value)) => match json(value)? {
            Value::String(part) => Test::Has(part),
            _ => return Err("the value of `~` must be a string".to_owned()),
        },
        _ => return Err(format!("unknown operator `{rest}`")),
    };
    Ok(Condition { selector, test })
}

/// Reads the cases of a folder, sorted by name. Files whose names begin with `_` are included by
/// other files.
///
/// # Errors
///
/// As [`Case::read`].
pub fn cases(folder: &Path) -> Result<Vec<Case>, String> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".txt") && !name.starts_with('_')
    });
    paths.sort();
    paths.iter().map(|path| Case::read(path)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "# About it.\nsay: a: b\n\n>>>* POST /x tools/list\n/a/0 = {\"b\": 1}\n\
                        header x-key ~ \"k\"\n/c absent\n<<< 400\nx-a: b\n\nfirst\n~~~\n\nlast\n\
                        >>> GET /y\n<<<\n\n===\ntext: it\n";

    #[test]
    fn a_transcript_is_parsed() {
        let case = Case::parse("name", TEXT).unwrap();
        assert_eq!(
            (case.key("say"), case.expected()),
            (Some("a: b"), &[("text".into(), "it".into())][..])
        );
        let [first, second] = case.exchanges.as_slice() else { panic!("{case:?}") };
        assert_eq!((first.times, first.status, first.head.len()), (Times::Any, 400, 3));
        let pointer = |text: &str| Selector::Pointer(text.to_owned());
        let expected = [
            Condition { selector: pointer("/a/0"), test: Test::Is(json!({ "b": 1 })) },
            Condition { selector: Selector::Header("x-key".into()), test: Test::Has("k".into()) },
            Condition { selector: pointer("/c"), test: Test::Absent },
        ];
        assert_eq!(first.conditions, expected);
        assert_eq!(first.headers, [("x-a".to_owned(), "b".to_owned())]);
        assert_eq!(first.body, ["first", "~~~", "", "last"]);
        assert_eq!((second.status, second.body.len()), (200, 0));
    }

    #[test]
    fn unmet_conditions_of_the_outcome_are_returned() {
        let text = "===\ntext: it\n/a/0 = 1\n/b ~ \"b\"\n/c absent\n";
        let case = Case::parse("name", text).unwrap();
        assert_eq!(case.expected(), [("text".to_owned(), "it".to_owned())]);
        assert!(case.unmet(&json!({ "a": [1], "b": "abc" })).is_empty());
        let unmet = case.unmet(&json!({ "a": [2], "b": "abc", "c": null }));
        assert_eq!(unmet.len(), 2, "{unmet:?}");
    }

    #[test]
    fn errors_contain_the_line_number() {
        for (text, line) in [
            ("say", 1),
            (">>>", 1),
            (">>> GET /\n/a", 2),
            (">>> GET /\n/a = {", 2),
            (">>> GET /\n<<< ok", 2),
            (">>> GET /\n<<< 200\nheader", 3),
            ("===\n/a is 1", 2),
        ] {
            assert_eq!(Case::parse("name", text).unwrap_err().0, line, "{text}");
        }
    }
}
