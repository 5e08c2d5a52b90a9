//! Extracts values of a JSON object by their paths, such as `values.messages[-1].content`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Maximum number of paths in a request.
const MAX_PATHS: usize = 10;

/// Fields of a thread with which a path can begin.
const ROOTS: &[&str] = &["values", "metadata", "config", "context", "interrupts", "error"];

/// Paths by the names that their values have in the response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extract(BTreeMap<String, Vec<PathPart>>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathPart {
    Field(String),
    /// Index of an array item; a negative index counts from the end.
    Index(i64),
}

impl Extract {
    /// Parses the paths of a request.
    ///
    /// # Errors
    ///
    /// Returns a message that names the invalid path.
    pub fn parse(paths: &Map<String, Value>) -> Result<Self, String> {
        if paths.len() > MAX_PATHS {
            return Err(format!("`extract` has {} paths, more than {MAX_PATHS}", paths.len()));
        }
        let read = paths.iter().map(|(name, path)| {
            let text = path.as_str().ok_or_else(|| format!("path `{name}` must be a string"))?;
            Ok((name.clone(), parse_path(text).map_err(|why| format!("path `{text}`: {why}"))?))
        });
        read.collect::<Result<_, String>>().map(Self)
    }

    /// Returns whether there are no paths.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the values by name. A path that does not exist has the value `null`.
    pub fn apply(&self, document: &Value) -> Value {
        let value = |path: &Vec<PathPart>| {
            let found = path.iter().try_fold(document, |value, part| part.get(value));
            found.cloned().unwrap_or_default()
        };
        Value::Object(self.0.iter().map(|(name, path)| (name.clone(), value(path))).collect())
    }
}

impl PathPart {
    fn get<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Field(name) => value.get(name),
            Self::Index(at) => {
                let items = value.as_array()?;
                let from_end = || items.len().checked_sub(usize::try_from(at.unsigned_abs()).ok()?);
                items.get(usize::try_from(*at).ok().or_else(from_end)?)
            }
        }
    }
}

fn parse_path(path: &str) -> Result<Vec<PathPart>, String> {
    let mut parts = Vec::new();
    for level in path.split('.') {
        let (name, rest) = level.split_at(level.find('[').unwrap_or(level.len()));
        if name.is_empty() {
            return Err("a field has no name".to_owned());
        }
        parts.push(PathPart::Field(name.to_owned()));
        let mut rest = rest;
        while !rest.is_empty() {
            let item = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let (item, further) = item.ok_or("a bracket is not closed")?;
            let item = item.parse().map_err(|_| format!("`{item}` is not an array index"))?;
            parts.push(PathPart::Index(item));
            rest = further;
        }
    }
    match &parts[0] {
        PathPart::Field(root) if ROOTS.contains(&root.as_str()) => Ok(parts),
        _ => Err(format!("it must begin with one of {}", ROOTS.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(path: &str) -> Result<Extract, String> {
        Extract::parse(&Map::from_iter([("it".to_owned(), path.into())]))
    }

    #[test]
    fn values_are_found_by_their_paths() {
        let thread = json!({
            "values": { "messages": [{ "content": "a" }, { "content": "b" }], "grid": [[1, 2]] },
            "metadata": { "user": "u" },
        });
        for (path, expected) in [
            ("values.messages[-1].content", json!("b")),
            ("values.messages[0].content", json!("a")),
            ("values.messages[2]", Value::Null),
            ("values.messages[-3]", Value::Null),
            ("values.grid[0][1]", json!(2)),
            ("metadata.user", json!("u")),
            ("metadata.user.name", Value::Null),
            ("metadata", json!({ "user": "u" })),
        ] {
            assert_eq!(read(path).unwrap().apply(&thread), json!({ "it": expected }), "{path}");
        }
    }

    #[test]
    fn invalid_path_is_rejected() {
        for path in ["", "values.", "values[x]", "values[0", "values[0]x", "secret.a", "[0]"] {
            assert!(read(path).is_err(), "{path}");
        }
        let many = (0..11).map(|n| (n.to_string(), json!("values"))).collect();
        assert!(Extract::parse(&many).is_err());
        assert!(Extract::parse(&Map::from_iter([("a".to_owned(), json!(1))])).is_err());
        assert!(Extract::default().is_empty());
    }
}
