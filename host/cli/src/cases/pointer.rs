//! JSON pointers with a wildcard: `/state/messages/*/content`.

use serde_json::Value;

/// Segment that matches every item of an array and every value of an object.
const EVERY: &str = "*";

/// A pointer into the result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    text: String,
    segments: Vec<String>,
}

/// The values that a pointer selects.
#[derive(Debug, PartialEq)]
pub(crate) enum Selected<'a> {
    /// The value of a pointer without a wildcard; `None` if there is no such value.
    One(Option<&'a Value>),
    /// All values that a pointer with a wildcard matches.
    Many(Vec<&'a Value>),
}

impl Pointer {
    /// Parses a pointer.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!(
                "`{text}` is not a pointer: it must begin with `/`, such as `/state/messages`"
            ));
        };
        let segments: Vec<String> =
            rest.split('/').map(|it| it.replace("~1", "/").replace("~0", "~")).collect();
        let roots = ["status", "state", "interrupt", "interrupts", "failure"];
        if !roots.contains(&segments[0].as_str()) {
            return Err(format!(
                "`{text}` is not a part of a run: begin with one of `/{}`",
                roots.join("`, `/")
            ));
        }
        Ok(Self { text: text.to_owned(), segments })
    }

    /// Returns the pointer as it is written in the data set.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the pointer with `*` in place of array indexes, by which the report groups results.
    pub(crate) fn field(&self) -> String {
        let is_index = |segment: &str| segment.bytes().all(|byte| byte.is_ascii_digit());
        let name = |segment: &'_ str| if is_index(segment) { EVERY } else { segment }.to_owned();
        let names = self.text.split('/').skip(1).map(name);
        names.map(|name| format!("/{name}")).collect()
    }

    /// Returns the values that the pointer selects.
    pub(crate) fn select<'a>(&self, document: &'a Value) -> Selected<'a> {
        let mut found = vec![document];
        for segment in &self.segments {
            found = found.into_iter().flat_map(|value| step(value, segment)).collect();
        }
        if self.segments.iter().any(|segment| segment == EVERY) {
            Selected::Many(found)
        } else {
            Selected::One(found.first().copied())
        }
    }
}

fn step<'a>(value: &'a Value, segment: &str) -> Vec<&'a Value> {
    match value {
        Value::Array(items) if segment == EVERY => items.iter().collect(),
        Value::Object(fields) if segment == EVERY => fields.values().collect(),
        Value::Array(items) => {
            segment.parse().ok().and_then(|index: usize| items.get(index)).into_iter().collect()
        }
        Value::Object(fields) => fields.get(segment).into_iter().collect(),
        _ => Vec::new(),
    }
}

impl Selected<'_> {
    /// Returns the selected values as one JSON value.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::One(found) => found.cloned().unwrap_or_default(),
            Self::Many(found) => found.iter().copied().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selected(pointer: &str, document: &Value) -> (bool, Value) {
        let pointer = Pointer::parse(pointer).unwrap();
        let selected = pointer.select(document);
        (matches!(selected, Selected::Many(_)), selected.to_value())
    }

    #[test]
    fn pointers_select_one_value_or_several() {
        let document = json!({ "state": { "rows": [{ "a": 1 }, { "b": 2 }, { "a": 3 }],
            "a/b": { "~": true } } });
        assert_eq!(selected("/state/rows/2/a", &document), (false, json!(3)));
        assert_eq!(selected("/state/rows/7/a", &document), (false, Value::Null));
        assert_eq!(selected("/state/rows/*/a", &document), (true, json!([1, 3])));
        assert_eq!(selected("/state/a~1b/~0", &document), (false, json!(true)));
        assert_eq!(selected("/interrupt/*", &document), (true, json!([])));
    }

    #[test]
    fn items_of_an_array_belong_to_one_field() {
        let field = |text: &str| Pointer::parse(text).unwrap().field();
        assert_eq!(field("/state/rows/12/a1"), "/state/rows/*/a1");
        assert_eq!(field("/status"), "/status");
    }

    #[test]
    fn invalid_pointers_are_refused() {
        assert!(Pointer::parse("state").unwrap_err().contains("begin with `/`"));
        assert!(Pointer::parse("/rows").unwrap_err().contains("`/state`"));
    }
}
