//! Conversion between JSON text of guests and values.
//!
//! The values of all texts of a call share a budget. The budget also bounds their nesting. Host
//! functions need this bound: they parse on the small stack of the guest, and an overflow of this
//! stack would abort the process.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::limit::SCHEMA_BYTES;
use wattle_run::json::bounded::{JsonBudget, JsonError, JsonLimit};
use wattle_run::limit;

/// What to do if values exceed the budget of a call.
const FEWER_VALUES: &str = "all JSON texts of a call, or of a batch of calls, share this limit; \
                            send fewer values, or put large data into a text or a blob";

/// What to do if a value is nested too deeply.
const LESS_DEPTH: &str = "flatten it, or send it as a text";

/// The JSON texts of one host call of a guest, or of one batch of calls. Their values share a
/// budget.
#[derive(Clone, Copy)]
pub(crate) struct CallJson<'b> {
    /// The name of the function in failures.
    function: &'b str,
    budget: &'b JsonBudget,
}

/// Calls a closure with the reader of the JSON texts of one host call, or of one batch, whose
/// values take at most [`JSON_VALUES_BYTES`](limit::JSON_VALUES_BYTES). `function` is the name of
/// the function in failures.
pub(crate) fn of_call<T>(function: &str, read: impl FnOnce(CallJson<'_>) -> T) -> T {
    let budget = JsonBudget::new(limit::JSON_VALUES_BYTES);
    read(CallJson::within(function, &budget))
}

impl<'b> CallJson<'b> {
    /// Creates a reader of JSON texts whose values share a budget.
    pub(crate) fn within(function: &'b str, budget: &'b JsonBudget) -> Self {
        Self { function, budget }
    }

    /// Returns the name of the function in failures.
    pub(crate) fn function(self) -> &'b str {
        self.function
    }

    /// Parses JSON text from a guest, of at most `allowed` bytes. Longer text is rejected unparsed.
    ///
    /// # Errors
    ///
    /// A failure with the code `limit` or `invalid`, which names the function and the field of the
    /// text.
    pub(crate) fn parse(self, text: &str, field: &str, allowed: usize) -> Result<Value, Failure> {
        check_size(text.len(), self.function, field, allowed)?;
        self.parse_size_checked(text, field)
    }

    /// Parses optional JSON text of a guest.
    ///
    /// # Errors
    ///
    /// See [`parse`](Self::parse).
    pub(crate) fn parse_option(
        self,
        text: Option<&str>,
        field: &str,
        allowed: usize,
    ) -> Result<Option<Value>, Failure> {
        text.map(|text| self.parse(text, field, allowed)).transpose()
    }

    /// Parses a JSON Schema of a guest, of at most [`SCHEMA_BYTES`]: a longer schema would not
    /// compile.
    ///
    /// # Errors
    ///
    /// See [`parse`](Self::parse).
    pub(crate) fn parse_schema(self, text: &str, field: &str) -> Result<Value, Failure> {
        self.parse(text, field, SCHEMA_BYTES as usize)
    }

    /// Parses the extension fields `extra` of a record as the type `T`, whose fields have the known
    /// keys. All keys and values together may have at most
    /// [`CALL_JSON_BYTES`](limit::CALL_JSON_BYTES).
    ///
    /// # Errors
    ///
    /// A failure with the code `limit` or `invalid`, which names the function.
    pub(crate) fn parse_extra<T: DeserializeOwned>(
        self,
        extra: &[(String, String)],
    ) -> Result<T, Failure> {
        self.parse_extra_within(extra, limit::CALL_JSON_BYTES)
    }

    /// Parses extension fields like [`parse_extra`](Self::parse_extra), of at most `allowed` bytes
    /// together.
    ///
    /// # Errors
    ///
    /// See [`parse_extra`](Self::parse_extra).
    pub(crate) fn parse_extra_within<T: DeserializeOwned>(
        self,
        extra: &[(String, String)],
        allowed: usize,
    ) -> Result<T, Failure> {
        let function = self.function;
        check_size(extra_bytes(extra), function, "extra", allowed)?;
        let parsed = |(key, text): &(String, String)| {
            Ok((key.clone(), self.parse_size_checked(text, &format!("extra.{key}"))?))
        };
        let all: Map<String, Value> = extra.iter().map(parsed).collect::<Result<_, Failure>>()?;
        serde_json::from_value(Value::Object(all)).map_err(|error| {
            Failure::new(code::INVALID, format!("`{function}`: invalid value in `extra`: {error}"))
        })
    }

    /// Parses JSON text whose size the caller has checked.
    fn parse_size_checked(self, text: &str, field: &str) -> Result<Value, Failure> {
        self.budget.parse(text).map_err(|error| {
            let what = format!("`{}`: `{field}`", self.function);
            let failure = match error {
                JsonError::Syntax(error) => Failure::new(
                    code::INVALID,
                    format!("{what} is not a valid JSON document: {error}"),
                ),
                JsonError::Limit(exceeded) => exceeded.to_failure(
                    &what,
                    match exceeded {
                        JsonLimit::Values(_) => FEWER_VALUES,
                        JsonLimit::Depth => LESS_DEPTH,
                    },
                ),
            };
            self.with_place(failure, field)
        })
    }

    /// Adds the function and the field to the details of a failure.
    fn with_place(self, mut failure: Failure, field: &str) -> Failure {
        let mut details = failure.details.take().unwrap_or_else(|| json!({}));
        details["function"] = json!(self.function);
        details["field"] = json!(field);
        failure.with_details(details)
    }
}

fn check_size(bytes: usize, function: &str, field: &str, allowed: usize) -> Result<(), Failure> {
    if bytes <= allowed {
        return Ok(());
    }
    let message = format!(
        "`{function}`: `{field}` has {bytes} bytes of JSON, more than the limit of {allowed}; put \
         large data into blobs"
    );
    let details = json!({
        "limit": "json_bytes", "allowed": allowed, "function": function, "field": field,
    });
    Err(Failure::new(code::LIMIT, message).with_details(details))
}

/// Returns the value of a key of `extra`, the extension fields of a record.
pub(crate) fn extra_field<'a>(extra: &'a [(String, String)], key: &str) -> Option<&'a str> {
    extra.iter().find(|(name, _)| name == key).map(|(_, text)| text.as_str())
}

/// Returns the size of `extra` as the guest wrote it, in bytes.
pub(crate) fn extra_bytes(extra: &[(String, String)]) -> usize {
    extra.iter().map(|(name, text)| name.len() + text.len()).sum()
}

/// Serializes a value as JSON text for a guest.
pub(crate) fn to_text(value: &Value) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, allowed: usize) -> Result<Value, Failure> {
        of_call("emit.custom", |json| json.parse(text, "data", allowed))
    }

    /// Returns the limit that a failure names, with its value.
    #[track_caller]
    fn limit_of(failure: &Failure) -> (Value, Value) {
        assert_eq!(failure.code, code::LIMIT, "{failure}");
        let details = failure.details.as_ref().unwrap();
        (details["limit"].clone(), details["allowed"].clone())
    }

    #[test]
    fn failures_name_function_and_field() {
        let failure = parse("{", 1).unwrap_err();
        assert_eq!(failure.code, code::INVALID);
        assert!(failure.message.contains("`emit.custom`: `data`"), "{}", failure.message);
        let place = json!({ "function": "emit.custom", "field": "data" });
        assert_eq!(failure.details, Some(place));
    }

    #[test]
    fn deeply_nested_json_is_rejected() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        for deep in ["[".repeat(100_000), nested(limit::JSON_MESSAGE_DEPTH + 1)] {
            let failure = parse(&deep, deep.len()).unwrap_err();
            assert_eq!(failure.code, code::INVALID);
            assert!(failure.message.contains("nested deeper than"), "{}", failure.message);
        }
        assert!(parse(&nested(limit::JSON_MESSAGE_DEPTH), usize::MAX).is_ok());
    }

    /// The text is not JSON: if it were parsed, the code of the failure would be `invalid`.
    #[test]
    fn text_above_the_limit_is_not_parsed() {
        let numbers = "0,".repeat(16 << 20);
        let failure = parse(&numbers, 64 << 10).unwrap_err();
        assert_eq!(limit_of(&failure), (json!("json_bytes"), json!(64 << 10)));
        assert_eq!(failure.details.unwrap()["field"], "data");
        of_call("f", |call| {
            let failure = call.parse_schema(&numbers, "schema").unwrap_err();
            assert_eq!(limit_of(&failure).0, "json_bytes");
            assert_eq!(call.parse_option(None, "field", 0), Ok(None));
        });
    }

    /// The numbers of each text fit into the budget, and those of both do not.
    #[test]
    fn texts_of_a_call_share_the_memory_of_their_values() {
        let numbers = format!("[{}0]", "0,".repeat(600_000));
        let failure = of_call("runs.resume", |call| {
            let parse = || call.parse(&numbers, "answers", limit::RUN_JSON_BYTES);
            assert!(parse().is_ok());
            parse().unwrap_err()
        });
        let allowed = json!(limit::JSON_VALUES_BYTES);
        assert_eq!(limit_of(&failure), (json!("json_values_bytes"), allowed));
        assert!(
            failure.message.starts_with("`runs.resume`: `answers` cannot be read"),
            "{failure}"
        );
        assert!(failure.message.contains("put large data into a text or a blob"), "{failure}");
        let details = failure.details.unwrap();
        assert_eq!(
            (&details["function"], &details["field"]),
            (&json!("runs.resume"), &json!("answers"))
        );
    }

    #[test]
    fn values_of_extension_fields_count_against_the_budget_of_the_call() {
        let numbers = format!("[{}0]", "0,".repeat(600_000));
        let extra = [("a".to_owned(), numbers.clone()), ("b".to_owned(), numbers)];
        let failure = of_call("f", |call| call.parse_extra::<Value>(&extra).unwrap_err());
        assert_eq!(limit_of(&failure).0, "json_values_bytes");
        assert_eq!(failure.details.unwrap()["field"], "extra.b");
    }

    #[test]
    fn extension_fields_share_one_limit() {
        let half = " ".repeat(limit::CALL_JSON_BYTES / 2);
        let field = |key: &str| (key.to_owned(), half.clone());
        let read = |extra: &[(String, String)]| {
            of_call("f", |call| call.parse_extra::<Value>(extra).unwrap_err())
        };
        let one = read(&[field("a")]);
        assert_eq!(one.code, code::INVALID, "one field is parsed: {one}");
        let two = read(&[field("a"), field("b")]);
        assert_eq!(two.code, code::LIMIT);
        assert_eq!(two.details.unwrap()["field"], "extra");
    }
}
