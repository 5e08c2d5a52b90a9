//! Nodes with different outputs: valid and invalid ones, failures, a trap, and values that are too
//! large.

use wattle_plugin::prelude::{
    Context, Deserialize, Empty, Failure, JsonSchema, Serialize, Value, node,
};

/// Input of `counter` and `escalate`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Number {
    /// The number; 0 if the channel was never written.
    #[serde(default)]
    pub(crate) number: Option<i64>,
}

/// A new value of `number`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NewNumber {
    /// The new number.
    pub(crate) number: i64,
}

/// Adds one to `number`.
#[node]
pub(crate) fn counter(_context: &Context, input: Number) -> Result<NewNumber, Failure> {
    Ok(NewNumber { number: input.number.unwrap_or_default() + 1 })
}

/// Input and output of `touch`.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Counted {
    /// An object with the counter `n`. Other keys are kept.
    pub(crate) document: serde_json::Map<String, Value>,
}

/// Adds one to `document.n`. The benchmarks use it as a minimal node that reads and writes its
/// whole state.
#[node]
pub(crate) fn touch(_context: &Context, mut input: Counted) -> Result<Counted, Failure> {
    let n = input.document.get("n").and_then(Value::as_i64).unwrap_or_default();
    input.document.insert("n".to_owned(), Value::from(n + 1));
    Ok(input)
}

/// Panics.
#[node]
pub(crate) fn trap(_context: &Context, _input: Empty) -> Result<(), Failure> {
    panic!("a misdeed");
}

/// Input of `typed_failure`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Fault {
    /// Whether the failure is retryable; false if it is absent.
    #[serde(default)]
    pub(crate) retryable: Option<bool>,
    /// The first attempt that succeeds. Every attempt fails if it is absent.
    #[serde(default)]
    pub(crate) succeed_on_attempt: Option<u32>,
}

/// Fails with code `misdeed`. From the attempt `succeed_on_attempt` on it writes the number of the
/// attempt.
#[node]
pub(crate) fn typed_failure(context: &Context, input: Fault) -> Result<NewNumber, Failure> {
    if input.succeed_on_attempt.is_some_and(|attempt| context.attempt >= attempt) {
        return Ok(NewNumber { number: context.attempt.into() });
    }
    let failure = Failure::new("misdeed", format!("attempt {} failed as asked", context.attempt));
    Err(if input.retryable == Some(true) { failure.retryable() } else { failure })
}

/// Input of `bad_output`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Mode {
    /// `unknown_channel` or `wrong_type`. With any other value the output is valid.
    pub(crate) mode: String,
}

/// Output of `bad_output`, whose schema has the number only.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Promise {
    #[schemars(with = "i64")]
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<Value>,
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    nowhere: Option<Value>,
}

/// Writes a channel that the output schema does not name, or a text into `number`.
#[node]
pub(crate) fn bad_output(_context: &Context, input: Mode) -> Result<Promise, Failure> {
    Ok(match input.mode.as_str() {
        "unknown_channel" => Promise { nowhere: Some(1.into()), ..Promise::default() },
        "wrong_type" => Promise { number: Some("text".into()), ..Promise::default() },
        _ => Promise { number: Some(1.into()), ..Promise::default() },
    })
}

/// Input of `huge_output`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Size {
    /// Size of the text, in bytes.
    pub(crate) size: u32,
}

/// Output of `huge_output`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Text {
    /// A text of the requested size.
    pub(crate) text: String,
}

/// Writes a text of `size` bytes to `text`.
#[node]
pub(crate) fn huge_output(_context: &Context, input: Size) -> Result<Text, Failure> {
    Ok(Text { text: "x".repeat(input.size as usize) })
}

/// Input of `many_numbers`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Amount {
    /// Number of zeros.
    pub(crate) count: u32,
}

/// Output of `many_numbers`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Numbers {
    /// The zeros. In the guest, each takes one byte.
    pub(crate) value: Vec<u8>,
}

/// Writes a list of `count` zeros to `value`. As JSON each has two bytes, and the host needs more
/// than thirty times as much memory for its value.
#[node]
pub(crate) fn many_numbers(_context: &Context, input: Amount) -> Result<Numbers, Failure> {
    Ok(Numbers { value: vec![0; input.count as usize] })
}

/// Input of `deep_json`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Depth {
    /// Levels of nesting. A few thousand overflow the guest's own stack.
    pub(crate) depth: u32,
}

/// Output of `deep_json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    /// The nested arrays.
    pub(crate) value: Value,
}

/// Writes arrays nested `depth` levels deep to `value`.
#[node]
pub(crate) fn deep_json(_context: &Context, input: Depth) -> Result<Document, Failure> {
    let value = (0..input.depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    Ok(Document { value })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, Value, json};
    use wattle_plugin::testing;

    use super::{bad_output, counter, deep_json, many_numbers, typed_failure};

    #[test]
    fn the_counter_starts_at_one() {
        for (input, number) in
            [(json!({}), 1), (json!({"number": null}), 1), (json!({"number": 4}), 5)]
        {
            let decision = testing::run_node::<counter>(&Context::default(), &input).unwrap();
            assert_eq!(decision.update("number"), Some(&json!(number)));
        }
    }

    #[test]
    fn typed_failure_succeeds_on_the_requested_attempt() {
        let input = json!({"retryable": true, "succeed_on_attempt": 2});
        let attempt = |attempt| {
            let context = Context { attempt, ..Context::default() };
            testing::run_node::<typed_failure>(&context, &input)
        };
        assert!(attempt(1).is_err_and(|failure| failure.retryable));
        assert!(attempt(2).is_ok());
    }

    #[test]
    fn bad_output_writes_a_channel_outside_of_its_schema() {
        let (_, promise) = testing::node_schemas::<bad_output>();
        assert_eq!(promise["properties"].as_object().map(serde_json::Map::len), Some(1));
        let input = json!({"mode": "unknown_channel"});
        let decision = testing::run_node::<bad_output>(&Context::default(), &input).unwrap();
        assert!(decision.update("nowhere").is_some() && decision.update("number").is_none());
    }

    #[test]
    fn many_numbers_writes_the_requested_number_of_zeros() {
        let input = json!({"count": 3});
        let decision = testing::run_node::<many_numbers>(&Context::default(), &input).unwrap();
        assert_eq!(decision.update("value"), Some(&json!([0, 0, 0])));
    }

    #[test]
    fn deep_json_has_the_requested_depth() {
        let input = json!({"depth": 3});
        let decision = testing::run_node::<deep_json>(&Context::default(), &input).unwrap();
        assert_eq!(decision.update("value"), Some(&json!([[[Value::Null]]])));
    }
}
