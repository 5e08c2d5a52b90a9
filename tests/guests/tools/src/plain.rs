//! Ordinary tools: outputs, updates, unchecked arguments, failures, interrupts.

use wattle_plugin::prelude::{
    Deserialize, Empty, Failure, JsonSchema, ToolContext, ToolOutput, Unchecked, Value, interrupt,
    json, tool,
};

/// Arguments of `echo` and `wrong`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Words {
    /// The text to return.
    pub(crate) text: String,
}

/// Says the same.
#[tool(read_only, idempotent)]
pub(crate) fn echo(_context: &ToolContext, words: Words) -> Result<ToolOutput, Failure> {
    Ok(ToolOutput::text(words.text))
}

/// Returns a text as an error.
#[tool(read_only)]
pub(crate) fn wrong(_context: &ToolContext, words: Words) -> Result<ToolOutput, Failure> {
    Ok(ToolOutput::error(words.text))
}

/// Arguments of `add`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Summands {
    /// The first summand.
    pub(crate) a: i64,
    /// The second summand.
    pub(crate) b: i64,
    /// The channel to which the sum is written; none if it is absent.
    #[serde(default)]
    pub(crate) channel: Option<String>,
}

/// Adds two numbers.
#[tool(idempotent)]
pub(crate) fn add(_context: &ToolContext, args: Summands) -> Result<ToolOutput, Failure> {
    let sum = args.a + args.b;
    let output = ToolOutput::json(&json!({ "sum": sum }))?;
    Ok(match args.channel {
        Some(channel) => output.with_update(channel, sum),
        None => output,
    })
}

/// The schema of the arguments of `flagged`.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema matters")]
pub(crate) struct Number {
    /// Any integer.
    number: i64,
}

/// Declares a number and accepts any arguments.
#[tool(read_only)]
pub(crate) fn flagged(
    _context: &ToolContext,
    args: Unchecked<Number>,
) -> Result<ToolOutput, Failure> {
    ToolOutput::json(&json!({ "raw": args.raw, "violations": args.violations }))
}

/// Arguments of `fail`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Fault {
    /// The code of the failure; `misdeed` if it is absent.
    #[serde(default)]
    pub(crate) code: Option<String>,
    /// Whether the failure is retryable.
    #[serde(default)]
    pub(crate) retryable: bool,
}

/// Fails.
#[tool(read_only)]
pub(crate) fn fail(_context: &ToolContext, fault: Fault) -> Result<ToolOutput, Failure> {
    let code = fault.code.unwrap_or_else(|| "misdeed".to_owned());
    let failure = Failure::new(code, "the tool failed as asked");
    Err(if fault.retryable { failure.retryable() } else { failure })
}

/// Returns the context of the call.
#[tool(read_only)]
pub(crate) fn whoami(context: &ToolContext, _args: Empty) -> Result<ToolOutput, Failure> {
    ToolOutput::json(&json!({
        "tool": context.tool,
        "call_id": context.call_id,
        "thread_id": context.thread_id,
        "task_id": context.task_id,
        "tenant": context.tenant,
        "state": context.state::<Value>()?,
    }))
}

/// Arguments of `ask_first`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Wish {
    /// The question for a person.
    pub(crate) question: String,
}

/// Asks a person and returns the answer.
#[tool]
pub(crate) fn ask_first(context: &ToolContext, wish: Wish) -> Result<ToolOutput, Failure> {
    let question = json!({ "question": wish.question, "call_id": context.call_id });
    ToolOutput::json(&interrupt::ask(question)?)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{ToolContext, json};
    use wattle_plugin::testing::{self, FakeHost};

    use super::{add, ask_first, fail, flagged};

    #[test]
    fn the_sum_is_written_only_if_a_channel_is_given() {
        let context = ToolContext::default();
        let output = testing::call_tool::<add>(&context, &json!({"a": 1, "b": 2})).unwrap();
        assert_eq!((output.structured, output.updates), (Some(json!({"sum": 3})), vec![]));
        let args = json!({"a": 1, "b": 2, "channel": "sum"});
        let output = testing::call_tool::<add>(&context, &args).unwrap();
        assert_eq!(output.updates[0].value, json!(3));
    }

    #[test]
    fn invalid_arguments_are_returned() {
        let violations = vec!["`number` is no number".to_owned()];
        let context = ToolContext { violations, ..ToolContext::default() };
        let output = testing::call_tool::<flagged>(&context, &json!({"number": "x"})).unwrap();
        assert_eq!(
            output.structured,
            Some(json!({"raw": {"number": "x"}, "violations": ["`number` is no number"]}))
        );
    }

    #[test]
    fn a_failure_has_the_requested_code() {
        let args = json!({"code": "busy", "retryable": true});
        let failure = testing::call_tool::<fail>(&ToolContext::default(), &args).unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("busy", true));
    }

    #[test]
    fn the_answer_of_a_person_is_the_output() {
        let host = FakeHost::new().answer(json!({"approved": true}));
        let args = json!({"question": "may I"});
        let output =
            host.run(|| testing::call_tool::<ask_first>(&ToolContext::default(), &args)).unwrap();
        assert_eq!(output.structured, Some(json!({"approved": true})));
    }
}
