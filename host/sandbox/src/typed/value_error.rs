//! Errors of converting values between JSON and WIT types.

use std::fmt;

use serde_json::Value;

/// Maximum length of a name or a text of the caller in a message, in characters.
const MAX_QUOTED_CHARS: usize = 64;

/// Maximum number of names that a message lists.
const MAX_NAMES: usize = 20;

/// Why a value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueFault {
    /// The value does not fit its type.
    Mismatch,
    /// The values exceed a limit.
    Limit,
    /// The memory that all guests share has no room for the values at the moment.
    GuestsMemory,
}

/// An error with its path in a JSON document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueError {
    /// The path from the root, such as `.order.lines[2]`.
    path: String,
    message: String,
    fault: ValueFault,
}

impl ValueError {
    /// Creates a mismatch with an empty path. The callers add the path of the value, from the
    /// inside out.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { path: String::new(), message: message.into(), fault: ValueFault::Mismatch }
    }

    /// Creates the error of values that exceed a limit.
    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self { fault: ValueFault::Limit, ..Self::new(message) }
    }

    /// Creates the error of values for which the memory that all guests share has no room at the
    /// moment.
    pub(crate) fn no_memory() -> Self {
        let fault = ValueFault::GuestsMemory;
        Self { fault, ..Self::new("the share of the memory of all guests is in use") }
    }

    /// Returns why the value is refused.
    pub(crate) fn fault(&self) -> ValueFault {
        self.fault
    }

    /// Creates the error of a JSON value of another kind than the expected one.
    pub(crate) fn expected(what: &str, found: &Value) -> Self {
        Self::new(format!("expected {what}, got {}", kind(found)))
    }

    /// Prepends a field of an object to the path.
    pub(crate) fn in_field(self, name: &str) -> Self {
        Self { path: format!(".{name}{}", self.path), ..self }
    }

    /// Prepends an index of an array to the path.
    pub(crate) fn at_index(self, index: usize) -> Self {
        Self { path: format!("[{index}]{}", self.path), ..self }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at ${}: {}", self.path, self.message)
    }
}

/// Returns the kind of a value, with an article if it has one.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Quotes a text of the caller. Truncates a long text.
pub(crate) fn quoted(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(MAX_QUOTED_CHARS).collect();
    let rest = if chars.next().is_some() { "..." } else { "" };
    format!("`{start}{rest}`")
}

/// Lists the valid names, for an error about an unknown name.
pub(crate) fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let further = names.len().saturating_sub(MAX_NAMES);
    let shown: Vec<String> = names.take(MAX_NAMES).map(quoted).collect();
    match (shown.is_empty(), further) {
        (true, _) => "none".to_owned(),
        (false, 0) => shown.join(", "),
        (false, further) => format!("{} and {further} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_have_the_path_of_the_value() {
        let error = ValueError::expected("a number", &json!("3"));
        assert_eq!(error.to_string(), "at $: expected a number, got a string");
        let error = error.in_field("price").at_index(2).in_field("lines").in_field("order");
        let text = "at $.order.lines[2].price: expected a number, got a string";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn long_texts_and_lists_are_shortened() {
        assert_eq!(quoted("sku"), "`sku`");
        assert_eq!(quoted(&"x".repeat(100)), format!("`{}...`", "x".repeat(64)));
        assert_eq!(listed(["a", "b"].into_iter()), "`a`, `b`");
        let names = vec!["n"; 22];
        assert!(listed(names.into_iter()).ends_with("`n` and 2 more"));
        assert_eq!(listed([].into_iter()), "none");
    }
}
